//! Scores a client's own predictor, and where that is wanted the published particles, on the client's own held-out rows:
//! a [`Predictor`] in, sums of scores out. No row of the data leaves the client.

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_datasets::Targets;
use fedstein_models::{Model, Task};

use crate::array::{Array, Values};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::metrics::{ClientScores, ParticleLogProbs, RegressionPredictions, Scale};
use crate::particles::Particles;
use crate::protocol::{Message, PARTICLES, Predictor, Request};
use crate::rows::Table;

/// Held-out rows: a table, its targets in the form that the metrics take, and the rows of each client.
#[derive(Debug)]
pub struct HeldOut {
    /// Features and encoded targets.
    pub table: Table,
    /// The targets, in the units of the data.
    pub targets: Targets,
    /// The indices of each client's rows in the table.
    pub rows: Vec<Vec<usize>>,
}

/// Scores the predictors of the clients of one process.
#[derive(Debug)]
pub struct ClientEvaluator<B: Backend> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The device.
    pub session: Session<B>,
    /// The test rows.
    pub test: HeldOut,
    /// The validation rows, by which the best round is chosen.
    pub validation: HeldOut,
    /// The units of real targets.
    pub scale: Scale,
    /// The number of rows that are predicted at once.
    pub chunk: usize,
    /// The number of bins of confidence.
    pub bins: usize,
    /// Whether the published particles are scored too, for a server that has no test rows.
    pub published: bool,
}

/// The name of the array with the sums of the published particles over the test rows.
pub const PUBLISHED_SCORES: &str = "published_scores";
/// The name of the array with the sums over the test rows.
pub const TEST_SCORES: &str = "test_scores";
/// The name of the array with the sums over the validation rows.
pub const VALIDATION_SCORES: &str = "validation_scores";

/// The sums of scores over no rows, for a model of this task; `None` for a toy density, which has no rows.
pub fn no_scores(task: Task, bins: usize) -> Option<ClientScores> {
    match task {
        Task::Classification { classes } => Some(ClientScores::of_classes(classes, bins)),
        Task::Regression => Some(ClientScores::of_targets()),
        Task::Density => None,
    }
}

/// The error about a model without rows.
pub fn no_rows() -> RunError {
    RunError::Config("a toy density has no rows to be scored on".into())
}

impl<B: Backend> ClientEvaluator<B> {
    /// The sums of scores over the test and the validation rows of the request's client, `[number of sums]` each, and
    /// those of the published particles over the test rows.
    ///
    /// # Errors
    /// The published particles are missing, the device does not answer, or the predictions cannot be scored.
    pub fn score(&self, request: &Request, predictor: Predictor<B>) -> Result<Message, RunError> {
        let predicts_with_published = matches!(predictor, Predictor::Published);
        let predict = self.function(request, predictor)?;
        let test = self.scores(&*predict, &self.test, request)?;
        let validation = self.scores(&*predict, &self.validation, request)?;
        let mut message = Message::default();
        if self.published {
            let published = match predicts_with_published {
                true => test.clone(),
                false => self.scores(&*self.function(request, Predictor::Published)?, &self.test, request)?,
            };
            message = with_scores(message, PUBLISHED_SCORES, &published);
        }
        Ok(with_scores(with_scores(message, TEST_SCORES, &test), VALIDATION_SCORES, &validation))
    }

    fn scores(&self, predict: &Predict, held: &HeldOut, request: &Request) -> Result<ClientScores, RunError> {
        let rows = &held.rows[request.client];
        let mut scores = no_scores(self.model.task(), self.bins).ok_or_else(no_rows)?;
        for rows in rows.chunks(self.chunk) {
            let inputs = held.table.batch(rows.iter().copied(), &self.session).inputs;
            let outputs = predict(inputs)?;
            let [components, count, width] = outputs.dims();
            let values = outputs.try_into_vec_as::<f32>()?;
            let added = match (&held.targets, self.model.task()) {
                (Targets::Classes { labels, .. }, Task::Classification { .. }) => {
                    let labels: Vec<usize> = rows.iter().map(|row| labels[*row]).collect();
                    ParticleLogProbs::from_f32(components, count, width, &values)
                        .and_then(|log_probs| scores.add_classes(&log_probs, &labels))
                }
                (Targets::Real { values: targets }, Task::Regression) => {
                    let targets = rows.iter().map(|row| self.scale.standardise(targets[*row])).collect();
                    RegressionPredictions::from_outputs(components, &values, targets)
                        .and_then(|predictions| scores.add_real(&predictions.original_scale(self.scale)?))
                }
                _ => return Err(no_rows()),
            };
            added.map_err(RunError::Predictions)?;
        }
        Ok(scores)
    }

    /// The predictor as a function of rows.
    fn function<'a>(&'a self, request: &Request, predictor: Predictor<B>) -> Result<Box<Predict<'a>>, RunError> {
        let particles = match predictor {
            Predictor::Rows(predict) => return Ok(predict),
            Predictor::Own(particles) => particles,
            Predictor::Published => {
                Particles::from_array(request.message.array(PARTICLES)?, self.model.layout(), &self.session)?
            }
        };
        Ok(Box::new(move |inputs| Ok(self.model.predict(particles.blocks(), inputs))))
    }
}

fn with_scores(message: Message, name: &str, scores: &ClientScores) -> Message {
    let values = scores.to_values();
    message.with_array(name, Array { shape: vec![values.len()], values: Values::F64(values) })
}

/// A function from rows `[B, p]` to the predictive parameters `[S, B, outputs]` of S components.
type Predict<'a> = dyn Fn(Tensor<2>) -> Result<Tensor<3>, RunError> + 'a;
