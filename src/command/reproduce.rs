//! `fedstein reproduce`: carries out the runs that are not kept yet, then writes the figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::{CliError, Reproduce, print_text};
use crate::experiment::schema::{did_you_mean, first};
use crate::reproduce::curve::Results;
use crate::reproduce::data::Needed;
use crate::reproduce::kept_csv::{KeptCsv, KeptCsvError};
use crate::reproduce::output::{self, Written};
use crate::reproduce::runner::{Failure, Pending, Places};
use crate::reproduce::verdict::Verdict;
use crate::reproduce::{FIGURES, Figure, FigureError, Grid, Scale, Wanted, find};

/// The argument that lists the figures.
const LIST: &str = "list";

/// The directory of the kept runs below the output directory; all figures share it.
const RUNS: &str = "runs";

/// Runs the command.
///
/// # Errors
/// The figure, a data set or a config is invalid or missing, a run fails, or an output cannot be written.
pub(super) fn reproduce(typed: Reproduce) -> Result<(), CliError> {
    if typed.item == LIST {
        return print_text(&listing(typed.data_dir.path())?);
    }
    let figure = find(&typed.item)?;
    if !typed.from.is_empty() {
        return again(&figure, &typed);
    }
    let scale = typed.scale();
    if scale == Scale::Middle && figure.middle.is_none() {
        let message = format!("`{}` has no middle form; leave --middle out, or use --quick", figure.id);
        return Err(CliError::Usage(message));
    }
    let out = place(&typed.out, scale);
    let Reproduce { seeds, backend, only, data_dir, pace, .. } = typed;
    let grid = Grid::new(&figure, &Wanted { scale, seeds, backend, only: only.clone() });
    if grid.count() == 0 {
        return Err(CliError::Usage(nothing_has(&figure, &grid, &only.unwrap_or_default())));
    }
    data_must_be_here(&figure, &grid, data_dir.path())?;
    let runs = grid.runs(&figure)?;

    let (kept, directory) = (out.join(RUNS), out.join(&figure.id));
    [&kept, &directory].into_iter().try_for_each(|path| create(path))?;
    let pending = Pending::of(runs, &kept);
    let total = pending.total();
    let about = format!(
        "{}: {}; {total} runs ({}), {} of them kept from before",
        figure.id,
        figure.title,
        scale.word(),
        pending.known.len()
    );
    let places = Places { data_dir: data_dir.path(), kept: &kept };
    let failures = pending.carry_out(&about, (usize::from(pace.jobs), pace.quiet), places)?;
    write(&Results::read(&figure, &grid, &kept, &failures)?, scale, &directory, pace.quiet)?;
    all_worked(&failures, total, "the figure shows")
}

/// The end of a command some of whose runs have failed.
///
/// # Errors
/// There is a failure.
pub(super) fn all_worked(failures: &[Failure], total: usize, shown: &str) -> Result<(), CliError> {
    if failures.is_empty() {
        return Ok(());
    }
    let list: String = failures.iter().map(|failure| format!("\n  {}: {}", failure.label, failure.problem)).collect();
    Err(CliError::Failed(format!("{} of {total} runs failed; {shown} the others{list}", failures.len())))
}

/// Compares the numbers of kept CSV files with the paper, and draws them.
fn again(figure: &Figure, typed: &Reproduce) -> Result<(), CliError> {
    let wrong = |error: KeptCsvError| CliError::Usage(error.to_string());
    let csv = KeptCsv::open(&typed.from).map_err(wrong)?;
    let scale = csv.scale;
    if scale == Scale::Middle && figure.middle.is_none() {
        let message = format!("{}: its scale is middle, which `{}` does not have", typed.from[0].display(), figure.id);
        return Err(CliError::Usage(message));
    }
    if let Some(seeds) = typed.seeds.as_ref().filter(|seeds| !csv.has_one_of(seeds)) {
        let (first, last, most) = (seeds.start(), seeds.end(), csv.seeds);
        let files = typed.from.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        return Err(CliError::Usage(format!(
            "--seeds {first}-{last}: no row of {files} has one of these seeds; the largest there is {most}"
        )));
    }
    let own = || 1..=figure.seeds.at(scale).max(csv.seeds);
    let seeds = typed.seeds.clone().unwrap_or_else(own);
    let grid = Grid::new(figure, &Wanted { scale, seeds: Some(seeds), backend: None, only: None });
    let results = csv.results(figure, &grid).map_err(wrong)?;
    let directory = place(&typed.out, scale).join(&figure.id);
    create(&directory)?;
    write(&results, scale, &directory, typed.pace.quiet)
}

/// The output directory of a scale.
fn place(typed: &Option<PathBuf>, scale: Scale) -> PathBuf {
    let default = match scale {
        Scale::Quick => "results/quick",
        Scale::Middle => "results/middle",
        Scale::Full => "results",
    };
    typed.clone().unwrap_or_else(|| default.into())
}

pub(super) fn create(directory: &Path) -> Result<(), CliError> {
    super::output::check_place(directory)?;
    fs::create_dir_all(directory).map_err(|error| super::output::not_created(directory, &error))
}

fn write(results: &Results<'_>, scale: Scale, directory: &Path, quiet: bool) -> Result<(), CliError> {
    let written = output::write(results, scale, directory).map_err(|error| CliError::Failed(error.to_string()))?;
    if quiet { Ok(()) } else { print_text(&summary(&written)) }
}

impl From<FigureError> for CliError {
    fn from(error: FigureError) -> Self {
        match error {
            FigureError::Unknown(id) => {
                let hint = did_you_mean(&id, FIGURES.iter().map(|(name, _)| *name));
                Self::Usage(format!("there is no figure `{id}`{hint}; `fedstein reproduce list` shows all"))
            }
            FigureError::Definition { .. } => Self::Failed(error.to_string()),
        }
    }
}

/// The list of the figures, one line per figure.
fn listing(data_dir: &Path) -> Result<String, CliError> {
    let mut text = format!("data directory: {}\n", data_dir.display());
    let width = FIGURES.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
    for (id, _) in FIGURES {
        let figure = find(id)?;
        let grid = |scale| Grid::new(&figure, &Wanted { scale, seeds: None, backend: None, only: None });
        let full = grid(Scale::Full);
        let mut data: Vec<String> = Vec::new();
        for (table, _) in full.data() {
            let needed = Needed::of(&table, data_dir);
            let entry = format!("{} ({})", needed.name, needed.state());
            if !data.contains(&entry) {
                data.push(entry);
            }
        }
        let mut runs = format!("{} quick", grid(Scale::Quick).count());
        if figure.middle.is_some() {
            let _ = write!(runs, ", {} middle", grid(Scale::Middle).count());
        }
        let (title, count, data) = (&figure.title, full.count(), data.join(", "));
        let _ = writeln!(text, "{id:<width$}  {title}; runs: {runs}, {count} full; data: {data}");
    }
    Ok(text)
}

/// Refuses to start if a data set is missing.
fn data_must_be_here(figure: &Figure, grid: &Grid, data_dir: &Path) -> Result<(), CliError> {
    let needed: Vec<(Needed, Vec<usize>)> =
        grid.data().into_iter().map(|(table, panels)| (Needed::of(&table, data_dir), panels)).collect();
    let missing: Vec<&(Needed, Vec<usize>)> = needed.iter().filter(|(data, _)| !data.is_here()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<String> = missing.iter().map(|(data, _)| format!("\n  {}", data.advice())).collect();
    lines.dedup();
    let lacking = |panel: &usize| missing.iter().any(|(_, panels)| panels.contains(panel));
    let mut complete: Vec<usize> =
        needed.iter().flat_map(|(_, panels)| panels).copied().filter(|panel| !lacking(panel)).collect();
    complete.sort_unstable();
    complete.dedup();
    let complete: Vec<&str> = complete.iter().map(|panel| figure.panels[*panel].id.as_str()).collect();
    let rest = match complete.first() {
        Some(first) => format!("\npanels whose data are here: {} (one alone: --only {first})", complete.join(", ")),
        None => String::new(),
    };
    Err(CliError::Usage(format!(
        "`{}` needs data that are not there:{}\n  the data directory is {}; name another with --data-dir or FEDSTEIN_DATA\
         {rest}",
        figure.id,
        lines.concat(),
        data_dir.display()
    )))
}

fn nothing_has(figure: &Figure, grid: &Grid, only: &str) -> String {
    let mut names: Vec<String> = grid.cells.iter().map(|cell| grid.name(figure, cell)).collect();
    names.dedup();
    format!("nothing in `{}` has `{only}` in its name; there are {}", figure.id, first(12, names))
}

fn summary(written: &Written) -> String {
    let mut of: BTreeMap<Verdict, usize> = BTreeMap::new();
    written.rows.iter().for_each(|row| *of.entry(row.verdict).or_default() += 1);
    let mut text = String::new();
    let counts: Vec<String> = of.iter().map(|(verdict, rows)| format!("{rows} {}", verdict.words())).collect();
    if !counts.is_empty() {
        text += &format!("targets: {}\n", counts.join(", "));
    }
    written.pictures.iter().for_each(|path| text += &format!("picture {}\n", path.display()));
    text + &format!("table   {}\n", written.table.display())
}
