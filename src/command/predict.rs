//! `fedstein predict`: the predictive distribution of a finished run on new rows.

use std::fmt::Write as _;
use std::path::Path;

use ndarray::Array2;

use super::output;
use crate::backend::{Backend, OnBackend, dispatch};
use crate::cli::{CliError, Predict};
use crate::datasets::{DataConfig, read_features};
use crate::error::RunError;
use crate::experiment::config::schema;
use crate::experiment::finished::Finished;
use crate::experiment::forecast::Forecast;
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
        let features = self.features()?;
        let Self { run, config, input } = self;
        Ok(match run.forecast::<B>(config, features, &input.display().to_string())? {
            Forecast::Classes { log_probs, names } => class_text(&log_probs, &names),
            Forecast::Real(predictions) => regression_text(&predictions),
        })
    }
}

impl Job<'_> {
    /// The features in the file, `[n, p]`.
    fn features(&self) -> Result<Array2<f32>, RunError> {
        // The new file may also contain the columns of the training file that are not features.
        let (delimiter, ignore) = match self.config.data()? {
            DataConfig::Csv(csv) => (crate::datasets::delimiter(&csv.delimiter)?, vec![csv.target, csv.client_column]),
            _ => (b',', Vec::new()),
        };
        let ignore: Vec<&str> = ignore.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let shape = self.run.shape();
        Ok(read_features(self.input, shape.width(), shape.feature_names.as_deref(), delimiter, &ignore)?)
    }
}

/// The CSV text `prediction,confidence,p_0,...`: the predicted class's name, its probability, and the ensemble's
/// probabilities in the order of the classes.
fn class_text(log_probs: &ParticleLogProbs, names: &[String]) -> String {
    let mut text = String::from("prediction,confidence");
    (0..names.len()).for_each(|class| text.push_str(&format!(",p_{class}")));
    text.push('\n');
    for row in log_probs.ensemble().chunks_exact(names.len()) {
        let best = crate::metrics::argmax(row);
        let name = &names[best];
        let quoted =
            if name.contains([',', '"', '\n']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.clone() };
        let _ = write!(text, "{quoted},{}", row[best]);
        row.iter().for_each(|p| text.push_str(&format!(",{p}")));
        text.push('\n');
    }
    text
}

/// The CSV text `mean,sd` of the predictive mixture, on the scale of the data.
fn regression_text(predictions: &RegressionPredictions<'_>) -> String {
    let mut text = String::from("mean,sd\n");
    let moments = predictive_moments(predictions);
    for (mean, variance) in moments.mean.iter().zip(&moments.variance) {
        let _ = writeln!(text, "{mean},{}", variance.sqrt());
    }
    text
}
