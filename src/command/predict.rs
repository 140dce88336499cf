//! `fedstein predict`: the predictive distribution of a finished run on new rows.

use std::fmt::Write as _;
use std::path::Path;

use crate::backend::{Backend, OnBackend, Session, dispatch};
use crate::cli::{CliError, Predict};
use crate::datasets::{DataConfig, Dataset, Targets, read_features};
use crate::error::RunError;
use crate::experiment::artifact::write_text;
use crate::experiment::config::schema;
use crate::experiment::evaluate::predict_rows;
use crate::experiment::finished::Finished;
use crate::experiment::{Config, Overrides};
use crate::metrics::{ParticleLogProbs, RegressionPredictions, Scale, predictive_moments};
use crate::models::Task;
use crate::rows::Table;

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
    let text = dispatch(&backend, Job { run: &run, config: &config, input: &typed.input })??;
    match typed.out {
        Some(path) => Ok(write_text(&path, &text)?),
        None => crate::cli::print_text(&text),
    }
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
        let shape = run.shape();
        let table = self.rows(&shape)?;
        let model = config.model(&shape)?;
        let session = Session::<B>::open(config.precision)?;
        let particles = run.particles::<B>(&*model, &session)?;
        // Particles and rows are finite, but predictions overflow where either is extremely large.
        let wrong = |error: &dyn std::fmt::Display| {
            RunError::Config(format!(
                "{}: the predictions of the run {} cannot be used: {error}",
                input.display(),
                run.path.display()
            ))
        };
        let outputs = |outputs| predict_rows(&*model, &particles, &table, outputs, config.evaluation.chunk, &session);
        let (count, rows) = (particles.count(), table.rows());
        match (model.task(), &shape.targets) {
            (Task::Classification { classes }, Targets::Classes { names, .. }) => {
                let log_probs = ParticleLogProbs::from_f32(count, rows, classes, &outputs(classes)?);
                Ok(class_text(&log_probs.map_err(|error| wrong(&error))?, names))
            }
            (Task::Regression, _) => {
                let scale = run.card.normalisation.target.as_ref();
                let scale = scale.map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd });
                let predictions = RegressionPredictions::from_outputs(count, &outputs(2)?, vec![0.0; rows])
                    .and_then(|standardised| standardised.original_scale(scale))
                    .map_err(|error| wrong(&error))?;
                Ok(regression_text(&predictions))
            }
            _ => Err(RunError::Config("this run's model makes no predictions from rows".into())),
        }
    }
}

impl Job<'_> {
    fn rows(&self, shape: &Dataset) -> Result<Table, RunError> {
        // The new file may also contain the columns of the training file that are not features.
        let (delimiter, ignore) = match self.config.data()? {
            DataConfig::Csv(csv) => (crate::datasets::delimiter(&csv.delimiter)?, vec![csv.target, csv.client_column]),
            _ => (b',', Vec::new()),
        };
        let ignore: Vec<&str> = ignore.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let names = shape.feature_names.as_deref();
        let mut features = read_features(self.input, shape.width(), names, delimiter, &ignore)?;
        self.run.card.normalisation.features.apply(&mut features)?;
        if let Some(rotation) = self.run.rotation(self.config)? {
            rotation.apply(&mut features)?;
        }
        if let Some(((row, column), _)) = features.indexed_iter().find(|(_, value)| !value.is_finite()) {
            let (input, row, column) = (self.input.display(), row + 1, column + 1);
            return Err(RunError::Config(format!(
                "{input}: data row {row}, feature {column} is not finite on the scale of the training rows (`normalisation` \
                 in model.json)"
            )));
        }
        let rows = features.nrows();
        let data = Dataset { features, targets: Targets::None { rows }, ..shape.clone() };
        Ok(Table::new(data, &self.run.card.normalisation))
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
fn regression_text(predictions: &RegressionPredictions) -> String {
    let mut text = String::from("mean,sd\n");
    let moments = predictive_moments(predictions);
    for (mean, variance) in moments.mean.iter().zip(&moments.variance) {
        let _ = writeln!(text, "{mean},{}", variance.sqrt());
    }
    text
}
