//! `fedstein bench`: times the workloads W1 to W8 and compares them with this machine's limits, or measures how time
//! grows with size.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde_json::{Map, Value};

use super::output;
use super::threads::on_threads;
use crate::backend::{AnyBackend, Precision};
use crate::bench::bands::{self, Bands};
use crate::bench::growth::{self, Series, Variable};
use crate::bench::{Bench, Ceilings, Line, Settings, Size, table};
use crate::cli::{self, CliError, print_text};
use crate::machine;
use crate::report::files::{read_regular, write_atomic};

/// Runs the command.
///
/// # Errors
/// The backend cannot be opened, a workload fails, or an output cannot be written.
pub(super) fn bench(typed: cli::Bench) -> Result<(), CliError> {
    // A number of threads needs a pool of its own: the command runs on a thread of the program's, whose size is fixed.
    let (threads, backend) = (typed.threads().unwrap_or(0), AnyBackend::named(&typed.backend)?);
    on_threads(threads, || bench_on(backend, &typed)).map_err(CliError::Failed)?
}

fn bench_on(backend: AnyBackend, typed: &cli::Bench) -> Result<(), CliError> {
    check_growth(typed.growth.as_deref())?;
    check_json(typed)?;
    let bands = Recorded::open(backend, typed)?;
    let settings = Settings { seconds: typed.seconds, size: Size::Full, allocations: None };
    let bench = Bench { session: backend.open(Precision::F32)?, settings };
    // Last, because it makes a file that is not there.
    let json = typed.json.as_deref().map(appended).transpose()?;
    print_text(&table::heading(&bench))?;
    match &typed.growth {
        Some(path) => grow(&bench, path),
        None => workloads(&bench, typed, json, bands),
    }
}

/// Checks what the lines are appended to, before anything is measured: a new or an empty file, one that begins with a line of
/// this command, a pipe or a device.
fn check_json(typed: &cli::Bench) -> Result<(), CliError> {
    let Some(path) = typed.json.as_deref() else { return Ok(()) };
    let refuse =
        |reason: &str| Err(CliError::Usage(format!("--json `{}` {reason}; choose another file", path.display())));
    if path == Path::new("-") {
        return Err(CliError::Usage("--json appends to a file; name one, such as times.jsonl".into()));
    }
    output::check_as("--json", path, true)?;
    let bands = typed.check.as_deref().or(typed.record.as_deref());
    let place = |path: &Path| std::path::absolute(path).ok();
    if bands.is_some_and(|bands| place(bands) == place(path)) {
        return refuse("is the file of the bands too");
    }
    match path.is_file() && !takes_lines(path) {
        true => refuse("exists and has no lines of this command"),
        false => Ok(()),
    }
}

/// Whether a file is empty, or its first line is a whole JSON object, which it is not in a file of bands.
fn takes_lines(path: &Path) -> bool {
    let is_object = |line: &str| serde_json::from_str::<Map<String, Value>>(line).is_ok();
    read_regular(path).is_ok_and(|text| text.lines().next().is_none_or(is_object))
}

/// Opens a file for appending.
fn appended(path: &Path) -> Result<File, CliError> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.map_err(|error| CliError::Usage(format!("cannot write {}: {error}", path.display())))
}

/// Checks where the picture goes, before anything is measured. It replaces nothing but a picture.
fn check_growth(path: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    if path == Path::new("-") {
        return Err(CliError::Usage("--growth draws a picture into a file; name one, such as growth.svg".into()));
    }
    output::check_as("--growth", path, true)?;
    let is_picture = || read_regular(path).is_ok_and(|text| text.starts_with("<svg"));
    if path.exists() && !is_picture() {
        return Err(CliError::Usage(format!(
            "--growth `{}` exists and is not a picture of this command; choose another file",
            path.display()
        )));
    }
    output::check_writable("--growth", path)
}

/// A file of bands, read before anything is measured.
enum Recorded<'a> {
    None,
    Record(&'a Path, Bands),
    Check(&'a Path, Bands),
}

impl<'a> Recorded<'a> {
    fn open(backend: AnyBackend, typed: &'a cli::Bench) -> Result<Self, CliError> {
        let (backend, threads) = (backend.name(), rayon::current_num_threads());
        let read = |path: &Path| -> Result<Bands, CliError> {
            let bands = Bands::read(path).map_err(CliError::Usage)?;
            let fits = bands.fits(backend, threads);
            fits.map_err(|error| CliError::Usage(format!("{}: {error}", path.display())))?;
            Ok(bands)
        };
        match (&typed.check, &typed.record) {
            (Some(path), _) => Ok(Self::Check(path, read(path)?)),
            (None, Some(path)) if path.exists() => Ok(Self::Record(path, read(path)?)),
            (None, Some(path)) => {
                output::check_as("--record", path, false)?;
                output::check_writable("--record", path)?;
                let bands = Bands::new(machine::processor().unwrap_or_else(|| "unknown".into()), backend, threads);
                Ok(Self::Record(path, bands))
            }
            (None, None) => Ok(Self::None),
        }
    }

    /// Writes the bands, or prints the comparison.
    fn close(self, lines: &[Line], ceilings: &Ceilings) -> Result<(), CliError> {
        match self {
            Self::None => Ok(()),
            Self::Record(path, mut bands) => {
                lines.iter().for_each(|Line { record, .. }| {
                    bands.record(&record.name, bands::ratio(record.median, ceilings));
                });
                let text = serde_json::to_string_pretty(&bands).map_err(|error| CliError::Failed(error.to_string()))?;
                let written = write_atomic(path, format!("{text}\n").as_bytes());
                written.map_err(|error| CliError::Failed(error.to_string()))?;
                print_text(&format!("\nbands      {}\n", path.display()))
            }
            Self::Check(path, bands) => {
                let (text, left) = bands.compare(lines, ceilings);
                print_text(&text)?;
                match left.is_empty() {
                    true => Ok(()),
                    false => {
                        Err(CliError::Failed(format!("outside the bands of {}: {}", path.display(), left.join(", "))))
                    }
                }
            }
        }
    }
}

fn workloads(bench: &Bench, typed: &cli::Bench, mut json: Option<File>, bands: Recorded<'_>) -> Result<(), CliError> {
    let ceilings = Ceilings::measure(bench)?;
    print_text(&table::columns(&ceilings))?;
    let mut lines = Vec::new();
    for workload in typed.workloads() {
        for line in workload.measure(bench)? {
            if let Some(file) = &mut json {
                let text = serde_json::to_string(&line.record).map_err(|error| CliError::Failed(error.to_string()))?;
                // Each line is one write, because another program may append to the same file.
                let written = file.write_all(format!("{text}\n").as_bytes());
                written.map_err(|error| CliError::Failed(format!("cannot write the JSON file: {error}")))?;
            }
            print_text(&table::row(&line, &ceilings))?;
            lines.push(line);
        }
    }
    print_text(&table::explanation(&lines))?;
    bands.close(&lines, &ceilings)
}

fn grow(bench: &Bench, path: &Path) -> Result<(), CliError> {
    let mut all: Vec<Series> = Vec::new();
    for variable in Variable::ALL {
        let series = variable.measure(bench)?;
        print_text(&table::growth(&series))?;
        all.push(series);
    }
    let on = format!("{} on {}", bench.session.backend().name(), bench.session.hardware());
    if let Some(svg) = growth::picture(&all, &on).svg() {
        write_atomic(path, svg.as_bytes()).map_err(|error| CliError::Failed(error.to_string()))?;
        print_text(&format!("\npicture    {}\n", path.display()))?;
    }
    Ok(())
}
