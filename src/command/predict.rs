//! `fedstein predict`: the predictive distribution of a finished run on new rows.

use std::fmt::Write as _;
use std::path::Path;

use super::new_rows::{self, Before};
use super::output;
use crate::backend::{Backend, OnBackend, dispatch};
use crate::cli::{CliError, Predict};
use crate::datasets::NewRows;
use crate::error::RunError;
use crate::experiment::config::schema;
use crate::experiment::finished::Finished;
use crate::experiment::forecast::Forecast;
use crate::experiment::progress::to_stderr;
use crate::experiment::recalibrated::Recalibrated;
use crate::experiment::{Config, Overrides};
use crate::metrics::{RegressionPredictions, predictive_moments};
use crate::report::conformal::TargetInterval;

/// Runs the command.
///
/// # Errors
/// The run or the input cannot be read, the backend cannot be opened, or the predictions are not finite or cannot be
/// written.
pub(super) fn predict(typed: Predict) -> Result<(), CliError> {
    let run = Finished::open(&typed.run)?;
    let config = run.config()?;
    let backend = typed.backend.clone().unwrap_or_else(|| config.backend.clone());
    schema().check_overrides(&Overrides { backend: Some(backend.clone()), ..Overrides::default() })?;
    if let Some(out) = typed.out.as_deref().filter(|out| same_file(out, &typed.input)) {
        let message = "is the file of --input; the predictions need another name";
        return Err(CliError::Usage(format!("--out `{}` {message}", out.display())));
    }
    let out = typed.out.as_deref().unwrap_or(Path::new("-"));
    output::check(out, typed.force)?;
    let recalibrated = run.recalibrated(typed.level)?;
    let job = Job { run: &run, config: &config, input: &typed.input, recalibrated: &recalibrated, raw: typed.raw };
    let text = dispatch(&backend, job)??;
    for note in recalibrated.notes(typed.raw) {
        crate::cli::print_note(&note);
    }
    output::write(out, &text, typed.force)
}

/// Whether two paths lead to the same existing file.
fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

struct Job<'a> {
    run: &'a Finished,
    config: &'a Config,
    input: &'a Path,
    recalibrated: &'a Recalibrated,
    /// Whether the probabilities are given without the temperature.
    raw: bool,
}

impl OnBackend for Job<'_> {
    type Output = Result<String, RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        let Self { run, config, input, recalibrated, raw } = self;
        let NewRows { features, beside, notes } = new_rows::read(run, config, input, &[])?;
        notes.iter().for_each(|note| to_stderr(note));
        let ids = Before(&beside);
        Ok(match run.forecast::<B>(config, features, &input.display().to_string())? {
            Forecast::Classes { log_probs, names } => {
                let unscaled = log_probs.ensemble();
                let scaled = recalibrated.probabilities(unscaled.clone(), names.len())?;
                let sets = recalibrated.sets(&scaled, names.len());
                class_text(&ids, if raw { &unscaled } else { &scaled }, &names, sets.as_deref())
            }
            Forecast::Real(predictions) => {
                let intervals = recalibrated.intervals(&predictions)?;
                regression_text(&ids, &predictions, intervals.as_deref())
            }
        })
    }
}

/// The CSV text `prediction,confidence,p_0,...`, after the columns of `data.id`: the predicted class's name, its
/// probability, and the probabilities `[n, C]` in the order of the classes; with `set`, the names of the classes in a
/// row's set, separated by `|`.
fn class_text(ids: &Before<'_>, probabilities: &[f64], names: &[String], sets: Option<&[Vec<bool>]>) -> String {
    let mut text = ids.header() + "prediction,confidence";
    (0..names.len()).for_each(|class| text.push_str(&format!(",p_{class}")));
    text.push_str(if sets.is_some() { ",set\n" } else { "\n" });
    for (row, of) in probabilities.chunks_exact(names.len()).enumerate() {
        let best = crate::metrics::argmax(of);
        let _ = write!(text, "{}{},{}", ids.row(row), new_rows::cell(&names[best]), of[best]);
        of.iter().for_each(|p| text.push_str(&format!(",{p}")));
        if let Some(sets) = sets {
            let _ = write!(text, ",{}", new_rows::cell(&listed(names, &sets[row])));
        }
        text.push('\n');
    }
    text
}

/// The names of the classes in a set, separated by `|`; a `|` or `\` in a name has a `\` before it.
fn listed(names: &[String], set: &[bool]) -> String {
    let is_in = names.iter().zip(set).filter(|(_, is_in)| **is_in);
    let escaped = is_in.map(|(name, _)| name.replace('\\', "\\\\").replace('|', "\\|"));
    escaped.collect::<Vec<_>>().join("|")
}

/// The CSV text `mean,sd` of the predictive mixture, on the scale of the data, after the columns of `data.id`; with
/// `lower,upper`, the interval of a row, which is blank where it is empty.
fn regression_text(
    ids: &Before<'_>,
    predictions: &RegressionPredictions<'_>,
    intervals: Option<&[Option<TargetInterval>]>,
) -> String {
    let mut text = ids.header() + if intervals.is_some() { "mean,sd,lower,upper\n" } else { "mean,sd\n" };
    let moments = predictive_moments(predictions);
    for (row, (mean, variance)) in moments.mean.iter().zip(&moments.variance).enumerate() {
        let _ = write!(text, "{}{mean},{}", ids.row(row), variance.sqrt());
        match intervals.map(|intervals| intervals[row]) {
            Some(Some(TargetInterval { lower, upper })) => text.push_str(&format!(",{lower},{upper}")),
            Some(None) => text.push_str(",,"),
            None => {}
        }
        text.push('\n');
    }
    text
}
