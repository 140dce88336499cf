//! Predictions of the global particles on the test rows, in chunks, and their numbers.

use std::sync::Arc;

use crate::backend::{Backend, Session};
use crate::datasets::{Dataset, Normalisation, Targets};
use crate::error::RunError;
use crate::federation::shard::Table;
use crate::metrics::{Evaluation, MetricError, ParticleLogProbs, RegressionPredictions, Scale};
use crate::models::{Model, Task};
use crate::particles::Particles;

/// What the particles say about the test rows.
#[derive(Debug)]
pub enum Predicted {
    /// Log-probabilities of every particle, with the labels.
    Classes {
        /// `[N, n, C]`.
        log_probs: ParticleLogProbs,
        /// `[n]`.
        labels: Vec<usize>,
    },
    /// A Gaussian of every particle, in the standardised scale, with the scale of the targets.
    Real {
        /// Means and precisions `[N, n]`, targets `[n]`.
        predictions: RegressionPredictions,
        /// Back to the units of the data.
        scale: Scale,
    },
    /// A toy density has no test rows.
    Density,
}

/// Evaluates particles on a test set.
#[derive(Debug)]
pub struct Evaluator<B: Backend> {
    model: Arc<dyn Model>,
    session: Session<B>,
    table: Table,
    targets: Targets,
    scale: Scale,
    chunk: usize,
    bins: usize,
}

impl<B: Backend> Evaluator<B> {
    /// `chunk` rows are predicted at once; `bins` confidence bins are used for calibration.
    pub fn new(
        model: Arc<dyn Model>,
        session: Session<B>,
        test: Dataset,
        normalisation: &Normalisation,
        (chunk, bins): (usize, usize),
    ) -> Self {
        let targets = test.targets.clone();
        let scale = normalisation.target.as_ref().map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd });
        Self { model, session, table: Table::new(test, normalisation), targets, scale, chunk, bins }
    }

    /// Predicts every test row with every particle.
    pub fn predict(&self, particles: &Particles<B>) -> Result<Predicted, RunError> {
        match (&self.targets, self.model.task()) {
            (Targets::Classes { labels, .. }, Task::Classification { classes }) => {
                let log_probs = self.outputs(particles, classes)?;
                let log_probs = ParticleLogProbs::from_f32(particles.count(), self.table.rows(), classes, &log_probs);
                Ok(Predicted::Classes { log_probs: log_probs.map_err(undefined)?, labels: labels.clone() })
            }
            (Targets::Real { values }, Task::Regression) => {
                let outputs = self.outputs(particles, 2)?;
                let mean = outputs.iter().step_by(2).map(|mean| f64::from(*mean)).collect();
                let precision = outputs.iter().skip(1).step_by(2).map(|log| f64::from(*log).exp()).collect();
                let standardised = values.iter().map(|y| (y - self.scale.mean) / self.scale.sd).collect();
                let predictions = RegressionPredictions::new(particles.count(), mean, precision, standardised);
                Ok(Predicted::Real { predictions: predictions.map_err(undefined)?, scale: self.scale })
            }
            _ => Ok(Predicted::Density),
        }
    }

    /// The headline numbers of predictions.
    pub fn evaluate(&self, predicted: &Predicted) -> Result<Evaluation, RunError> {
        match predicted {
            Predicted::Classes { log_probs, labels } => Evaluation::classification(log_probs, labels, self.bins),
            Predicted::Real { predictions, scale } => Evaluation::regression(predictions, *scale),
            Predicted::Density => Ok(Evaluation::default()),
        }
        .map_err(undefined)
    }

    /// `[N, n, outputs]`, particle by particle.
    fn outputs(&self, particles: &Particles<B>, outputs: usize) -> Result<Vec<f32>, RunError> {
        predict_rows(&*self.model, particles, &self.table, outputs, self.chunk, &self.session)
    }
}

/// Predicts all rows of a table, `chunk` at once, so that memory does not grow with the table: `[N, n, outputs]`.
pub fn predict_rows<B: Backend>(
    model: &dyn Model,
    particles: &Particles<B>,
    table: &Table,
    outputs: usize,
    chunk: usize,
    session: &Session<B>,
) -> Result<Vec<f32>, RunError> {
    let rows = table.rows();
    let mut all = vec![0.0; particles.count() * rows * outputs];
    for start in (0..rows).step_by(chunk) {
        let end = (start + chunk).min(rows);
        let batch = table.batch(start..end, session);
        let values = model.predict(particles.blocks(), batch.inputs).try_into_vec_as::<f32>()?;
        let from = values.chunks_exact((end - start) * outputs);
        for (to, from) in all.chunks_exact_mut(rows * outputs).zip(from) {
            to[start * outputs..end * outputs].copy_from_slice(from);
        }
    }
    Ok(all)
}

fn undefined(error: MetricError) -> RunError {
    RunError::Device(format!("the predictions cannot be evaluated: {error}"))
}
