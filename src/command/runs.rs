//! `fedstein runs`: the runs below a directory, and the differences between their configs.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::cli::{CliError, Listing, Runs, print_text};
use crate::experiment::inventory::{self, Difference, Entry, RunState};
use crate::experiment::provenance::Provenance;
use crate::experiment::run_dir;
use crate::report::{HEADLINE, decimals};

/// Runs the command.
///
/// # Errors
/// The directory, or a run to compare, cannot be read.
pub(super) fn runs(typed: &Runs) -> Result<(), CliError> {
    let text = match typed.diff.is_empty() {
        true => list(typed)?,
        false => diff(&typed.diff, typed.listing())?,
    };
    print_text(&text)
}

fn list(typed: &Runs) -> Result<String, CliError> {
    let dir = &typed.dir;
    let paths = inventory::find(dir)
        .map_err(|error| CliError::Usage(format!("`{}`: {error}; name the directory of your runs", dir.display())))?;
    let entries: Vec<Entry> = paths.iter().map(|path| Entry::read(path)).collect();
    match typed.listing() {
        Listing::Json => json_text(&entries.iter().map(object).collect::<Vec<_>>()),
        Listing::Csv => csv_text(&heads(), entries.iter().map(|entry| cells(entry, |value| value.to_string()))),
        Listing::Text if entries.is_empty() => Ok(format!("no runs in {}\n", dir.display())),
        Listing::Text => {
            let mut text = aligned(
                &heads(),
                &entries
                    .iter()
                    .map(|entry| cells(entry, |value| decimals(value, 4)).into_iter().map(on_one_line).collect())
                    .collect::<Vec<Vec<String>>>(),
            );
            for entry in &entries {
                if let Some(hint) = hint(entry) {
                    let _ = writeln!(text, "{}: {}", entry.state.word(), on_one_line(hint));
                }
            }
            Ok(text)
        }
    }
}

/// How to go on with a run that has not ended, or to keep one that was to be replaced.
fn hint(entry: &Entry) -> Option<String> {
    let path = entry.path.display();
    match &entry.state {
        RunState::Stopped if entry.is_of_program => Some(format!(
            "{path}, of a program's own rows or model, which alone can resume it (`Artifacts::resume`, in Python \
             `fedstein.resume`)"
        )),
        RunState::Stopped => Some(inventory::resume(&entry.path)),
        RunState::SetAside { place } => Some(format!(
            "{path} is what `{place}` held before a `--force` that was killed; move it elsewhere to keep it, for the next \
             run with results in `{place}` removes it",
            place = place.display()
        )),
        _ => None,
    }
}

/// A text without the ends of lines and columns that a directory's name may have.
fn on_one_line(text: String) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

/// The columns of the list.
fn heads() -> Vec<String> {
    let words = ["run", "state", "algorithm", "data", "rounds"].into_iter().chain(HEADLINE).chain(["started"]);
    words.map(str::to_owned).collect()
}

fn cells(entry: &Entry, number: impl Fn(f64) -> String) -> Vec<String> {
    let mut cells = vec![
        entry.path.display().to_string(),
        entry.state.word().to_owned(),
        entry.algorithm.clone(),
        entry.data.clone(),
        format!("{}/{}", entry.done, entry.rounds),
    ];
    cells.extend(entry.metrics.iter().map(|value| value.map_or_else(String::new, &number)));
    cells.push(entry.started.clone().unwrap_or_default());
    cells
}

fn object(entry: &Entry) -> Value {
    let metrics: Map<String, Value> =
        HEADLINE.iter().zip(entry.metrics).map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let holder = match &entry.state {
        RunState::Running { holder } => Some(holder),
        _ => None,
    };
    json!({
        "run": entry.path.display().to_string(),
        "name": entry.name,
        "state": entry.state.word(),
        "process": holder,
        "algorithm": entry.algorithm,
        "data": entry.data,
        "rounds_done": entry.done,
        "rounds": entry.rounds,
        "metrics": metrics,
        "started": entry.started,
    })
}

/// The keys in which the configs of runs differ, and whether their rows and programs do.
fn diff(runs: &[PathBuf], listing: Listing) -> Result<String, CliError> {
    let mut rows = inventory::differences(runs).map_err(CliError::Usage)?;
    rows.extend(origins(runs));
    let heads: Vec<String> =
        ["key".to_owned()].into_iter().chain(runs.iter().map(|run| run.display().to_string())).collect();
    let cells = rows.iter().map(|Difference { key, values }| {
        let values = values.iter().map(|value| value.clone().unwrap_or_else(|| "-".into()));
        [key.clone()].into_iter().chain(values).collect::<Vec<_>>()
    });
    match listing {
        Listing::Json => {
            let object = |Difference { key, values }: &Difference| {
                let values: Map<String, Value> =
                    heads[1..].iter().cloned().zip(values.iter().map(|value| json!(value))).collect();
                (key.clone(), Value::Object(values))
            };
            json_text(&rows.iter().map(object).collect::<Map<_, _>>())
        }
        Listing::Csv => csv_text(&heads, cells),
        Listing::Text if rows.is_empty() => Ok("no key differs\n".into()),
        Listing::Text => Ok(aligned(&heads, &cells.collect::<Vec<_>>())),
    }
}

/// Something that `provenance.json` says of a run.
type Said = fn(&Provenance) -> String;

/// What `provenance.json` says differs between runs, besides their configs: rows and program.
fn origins(runs: &[PathBuf]) -> Vec<Difference> {
    let read = |run: &PathBuf| Provenance::read(&run.join(run_dir::PROVENANCE));
    // A run of an earlier version does not say.
    let Some(all) = runs.iter().map(read).collect::<Option<Vec<Provenance>>>() else { return Vec::new() };
    let version = |of: &Provenance| of.sessions.last().map(|session| session.version.clone()).unwrap_or_default();
    let what: [(&str, Said); 3] = [
        ("(rows, sha256)", |of| of.data_sha256.clone()),
        ("(clients' rows, sha256)", |of| of.partition_sha256.clone()),
        ("(fedstein)", version),
    ];
    let short = |value: String| Some(value.chars().take(12).collect());
    let difference = |(key, of): (&str, Said)| {
        let values: Vec<String> = all.iter().map(of).collect();
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        differs.then(|| Difference { key: key.to_owned(), values: values.into_iter().map(short).collect() })
    };
    // The prints of a federation's files are others in every run, so that the same rows have another hash.
    let comparable = !runs.iter().any(|run| inventory::is_federation(run));
    what.into_iter().skip(usize::from(!comparable)).filter_map(difference).collect()
}

fn json_text(value: &impl serde::Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::Failed(error.to_string()))?;
    Ok(text + "\n")
}

fn csv_text(heads: &[String], rows: impl Iterator<Item = Vec<String>>) -> Result<String, CliError> {
    let failed = |error: csv::Error| CliError::Failed(error.to_string());
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(heads).map_err(failed)?;
    for row in rows {
        table.write_record(row).map_err(failed)?;
    }
    let bytes = table.into_inner().map_err(|error| CliError::Failed(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A table whose columns begin under each other; names from files are shown as they are safe for a terminal.
fn aligned(heads: &[String], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> = std::iter::once(heads)
        .chain(rows.iter().map(Vec::as_slice))
        .map(|row| row.iter().map(|cell| crate::cli::printable(cell)).collect())
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}
