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
use crate::experiment::{Config, Overrides};
use crate::metrics::{ParticleLogProbs, RegressionPredictions, predictive_moments};

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
    let text = dispatch(&backend, Job { run: &run, config: &config, input: &typed.input })??;
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
}

impl OnBackend for Job<'_> {
    type Output = Result<String, RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        let Self { run, config, input } = self;
        let NewRows { features, beside, notes } = new_rows::read(run, config, input, &[])?;
        notes.iter().for_each(|note| to_stderr(note));
        let ids = Before(&beside);
        Ok(match run.forecast::<B>(config, features, &input.display().to_string())? {
            Forecast::Classes { log_probs, names } => class_text(&log_probs, &names, &ids),
            Forecast::Real(predictions) => regression_text(&predictions, &ids),
        })
    }
}

/// The CSV text `prediction,confidence,p_0,...`, after the columns of `data.id`: the predicted class's name, its
/// probability, and the ensemble's probabilities in the order of the classes.
fn class_text(log_probs: &ParticleLogProbs, names: &[String], ids: &Before<'_>) -> String {
    let mut text = ids.header() + "prediction,confidence";
    (0..names.len()).for_each(|class| text.push_str(&format!(",p_{class}")));
    text.push('\n');
    for (at, row) in log_probs.ensemble().chunks_exact(names.len()).enumerate() {
        let best = crate::metrics::argmax(row);
        let _ = write!(text, "{}{},{}", ids.row(at), new_rows::cell(&names[best]), row[best]);
        row.iter().for_each(|p| text.push_str(&format!(",{p}")));
        text.push('\n');
    }
    text
}

/// The CSV text `mean,sd` of the predictive mixture, on the scale of the data, after the columns of `data.id`.
fn regression_text(predictions: &RegressionPredictions<'_>, ids: &Before<'_>) -> String {
    let mut text = ids.header() + "mean,sd\n";
    let moments = predictive_moments(predictions);
    for (at, (mean, variance)) in moments.mean.iter().zip(&moments.variance).enumerate() {
        let _ = writeln!(text, "{}{mean},{}", ids.row(at), variance.sqrt());
    }
    text
}
