//! `fedstein report`: a calibration report on a run, or on a file of any model's predictions.

use std::path::{Path, PathBuf};

use super::personal;
use crate::cli::{CliError, Report, ReportSource};
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::finished::Finished;
use crate::experiment::run_dir;
use crate::experiment::schema::Source;
use crate::metrics::equal_width;
use crate::report::{self, Comparison, Content, ReportError, RunSummary, csv};

/// The number of bins where neither the command nor the run gives one.
const BINS: usize = 15;

/// Runs the command.
///
/// # Errors
/// The run or the predictions cannot be read, or the report cannot be written.
pub(super) fn report(typed: Report) -> Result<(), CliError> {
    let Report { source, bins, out, replace, compare, title } = typed;
    let occupied = out.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if out.exists() && !replace && (occupied || !out.is_dir()) {
        let message = "exists and is not empty; choose another with --out or replace it with --force";
        return Err(CliError::Usage(format!("`{}` {message}", out.display())));
    }
    // The run may come from an untrusted source: its report stays in its directory and does not follow a link out of
    // it.
    if matches!(&source, ReportSource::Run(run) if out.starts_with(run)) && out.is_symlink() {
        return Err(CliError::Usage(format!("`{}` is a link; name where the report goes with --out", out.display())));
    }
    let others = compare.iter().map(|run| Finished::open(run)).collect::<Result<Vec<_>, _>>()?;
    let written = match source {
        ReportSource::Run(path) => {
            let run = Finished::open(&path)?;
            let bins = match bins {
                Some(bins) => bins,
                None => config_of(&run)?.evaluation.bins,
            };
            let written = report_on(&run, bins, title, &others, &out)?;
            written.ok_or_else(|| CliError::Usage(nothing_to_report(&path)))?
        }
        ReportSource::Predictions(path) => {
            let predictions = csv::read_predictions(&path).map_err(input)?;
            let bins = bins.unwrap_or(BINS);
            let name =
                path.file_stem().map_or_else(|| "predictions".into(), |stem| stem.to_string_lossy().into_owned());
            let title = title.unwrap_or(name);
            let compare = comparisons(&others, &title, true, bins)?;
            let run = (!compare.is_empty()).then(|| RunSummary { compare, ..RunSummary::default() });
            let content = Content::Classification { predictions: &predictions, uncertainty: None };
            let report = report::Report { title, content, bins, seed: 1, run };
            written(&report, &out)?
        }
    };
    crate::cli::print_line(&written.display().to_string())
}

fn nothing_to_report(run: &Path) -> String {
    let predictions = run.join(run_dir::PREDICTIONS);
    format!("no {}: a toy density predicts nothing, any other run writes this file at its end", predictions.display())
}

/// Writes the report of a run into `out`; returns `None` where there are no predictions to report on (a toy density).
///
/// # Errors
/// The run's files cannot be read, or the report cannot be written.
pub(super) fn report_on(
    run: &Finished,
    bins: usize,
    title: Option<String>,
    compare: &[Finished],
    out: &Path,
) -> Result<Option<PathBuf>, CliError> {
    let summary = &run.summary;
    let path = run.path.join(run_dir::PREDICTIONS);
    if !path.exists() {
        return Ok(None);
    }
    let title = title.unwrap_or_else(|| summary.name.clone());
    let config = config_of(run)?;
    let about = RunSummary {
        config_toml: run.config_toml.clone(),
        rounds: summary.rounds.clone(),
        partition: summary.partition.clone(),
        personal: summary.personal.as_ref().map(personal::table),
        facts: summary.facts.clone(),
        compare: comparisons(compare, &title, classifies(run), bins)?,
    };
    let run_about = Some(about);
    let seed = config.seed;
    if classifies(run) {
        let predictions = csv::read_predictions(&path).map_err(input)?;
        let content = Content::Classification { predictions: &predictions, uncertainty: summary.uncertainty.clone() };
        written(&report::Report { title, content, bins, seed, run: run_about }, out).map(Some)
    } else {
        let predictions = csv::read_regression(&path).map_err(input)?;
        let content = Content::Regression { predictions: &predictions };
        written(&report::Report { title, content, bins, seed, run: run_about }, out).map(Some)
    }
}

/// Parses the configuration of a finished run.
///
/// # Errors
/// The configuration is invalid.
pub(super) fn config_of(run: &Finished) -> Result<Config, CliError> {
    let name = run.path.join(run_dir::CONFIG).display().to_string();
    let source = Source { name: &name, text: &run.config_toml };
    Ok(Config::of_run(source)?)
}

/// Whether a run is a classification; otherwise it is a regression.
fn classifies(run: &Finished) -> bool {
    run.card.classes.is_some()
}

/// The runs to compare with the one named `title`, all of its task. Runs with equal names are named by their
/// directories.
fn comparisons(runs: &[Finished], title: &str, classes: bool, bins: usize) -> Result<Vec<Comparison>, CliError> {
    let comparison = |run: &Finished| {
        if classifies(run) != classes {
            let task = |classes| if classes { "a classification" } else { "a regression" };
            let message = format!("is {}, the report is on {}", task(!classes), task(classes));
            return Err(CliError::Usage(format!("--compare `{}` {message}", run.path.display())));
        }
        let path = run.path.join(run_dir::PREDICTIONS);
        let bins = if classes {
            let top = csv::read_predictions(&path).map_err(input)?.top_label();
            let bins = equal_width(&top.confidence, &top.correct, bins);
            bins.map_err(|error| CliError::Usage(error.to_string()))?.bins().to_vec()
        } else {
            Vec::new()
        };
        let summary = &run.summary;
        let same = |other: &&Finished| other.summary.name == summary.name;
        let ambiguous = summary.name == title || runs.iter().filter(same).count() > 1;
        let name = if ambiguous { run.path.display().to_string() } else { summary.name.clone() };
        Ok(Comparison { name, evaluation: summary.evaluation.clone(), bins, rounds: summary.rounds.clone() })
    };
    runs.iter().map(comparison).collect()
}

fn written(report: &report::Report<'_>, out: &Path) -> Result<PathBuf, CliError> {
    let files = report::write(report, out).map_err(|error| match error {
        ReportError::Metric(_) => CliError::Usage(error.to_string()),
        _ => CliError::from(RunError::Output(error.to_string())),
    })?;
    Ok(files.html)
}

/// An unreadable predictions file is a usage error.
fn input(error: ReportError) -> CliError {
    CliError::Usage(error.to_string())
}
