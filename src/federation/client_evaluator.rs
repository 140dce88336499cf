//! Scores a client's personal predictor, the global particles, or both on the client's own held-out rows: a [`Predictor`] in,
//! sums of scores out. No row of the data leaves the client.

use std::collections::BTreeMap;
use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_datasets::Targets;
use fedstein_models::{Model, Task};

use super::held_out::{CalibrationRows, HeldOut};
use super::prior_correction::PriorCorrection;
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::error::RunError;
use crate::metrics::{ClientScores, ParticleLogProbs, RegressionPredictions, Scale};
use crate::particles::Particles;
use crate::protocol::{ClientId, Message, PARTICLES, Predictor, Request, Scoring};

/// Scores the predictors of the clients of one process.
#[derive(Debug)]
pub struct ClientEvaluator {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The device.
    pub session: Session,
    /// The test rows.
    pub test: HeldOut,
    /// The validation rows, by which the best round is chosen.
    pub validation: HeldOut,
    /// The calibration rows, with what was computed of them.
    pub calibration: CalibrationRows,
    /// What corrects the classes' frequencies in the predictions of a client's personal predictor, where that is asked for.
    pub corrections: BTreeMap<ClientId, PriorCorrection>,
    /// The units of real targets.
    pub scale: Scale,
    /// The number of rows that are predicted at once.
    pub chunk: usize,
    /// The number of bins of confidence.
    pub bins: usize,
}

/// The predictive parameters of some rows.
#[derive(Debug)]
pub struct Outputs {
    /// The number of components S, such as particles.
    pub components: usize,
    /// The number of parameters of a component.
    pub width: usize,
    /// `[S, n, width]`.
    pub values: Vec<f32>,
}

/// The name of the array with the sums of the global particles over the test rows.
pub const PUBLISHED_SCORES: &str = "published_scores";
/// The name of the array with the sums of the global particles over the validation rows.
pub const PUBLISHED_VALIDATION_SCORES: &str = "published_validation_scores";
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

impl ClientEvaluator {
    /// The sums of scores of the client of this request, `[number of sums]` each: those of its personal predictor over its test and
    /// its validation rows, where `own` is given, and those of the global particles over the rows that are wanted.
    ///
    /// # Errors
    /// The global particles are missing, the device does not answer, or the predictions cannot be scored.
    pub fn score(&self, request: &Request, wanted: Scoring, own: Option<&Predictor>) -> Result<Message, RunError> {
        let of_published = |held| self.scores(&self.published(request)?, held, request);
        let published = wanted.published.then(|| of_published(&self.test)).transpose()?;
        let mut message = Message::default();
        if wanted.validation {
            message = with_scores(message, PUBLISHED_VALIDATION_SCORES, &of_published(&self.validation)?);
        }
        if let Some(own) = own {
            let predict = self.own(request, own)?;
            let predicts_as_published = predict.is_published && predict.correction.is_none();
            let test = match &published {
                Some(published) if predicts_as_published => published.clone(),
                _ => self.scores(&predict, &self.test, request)?,
            };
            message = with_scores(message, TEST_SCORES, &test);
            message = with_scores(message, VALIDATION_SCORES, &self.scores(&predict, &self.validation, request)?);
        }
        Ok(match published {
            Some(published) => with_scores(message, PUBLISHED_SCORES, &published),
            None => message,
        })
    }

    /// The predictions of all rows that the client of this request has among those held out, by its personal predictor, or by the
    /// global particles where none is given; `None` where it has no rows.
    ///
    /// # Errors
    /// The global particles are missing, or the device does not answer.
    pub fn predicted(
        &self,
        held: &HeldOut,
        request: &Request,
        own: Option<&Predictor>,
    ) -> Result<Option<Outputs>, RunError> {
        let predict = match own {
            Some(own) => self.own(request, own)?,
            None => self.published(request)?,
        };
        self.predicted_of(held, request, &predict)
    }

    /// The predictions of all rows that the client of this request has among those held out; `None` where it has none.
    ///
    /// # Errors
    /// As [`Self::predicted`].
    pub(super) fn predicted_of(
        &self,
        held: &HeldOut,
        request: &Request,
        predict: &Predict<'_>,
    ) -> Result<Option<Outputs>, RunError> {
        let rows = &held.rows[request.client];
        let some = |rows: &[usize]| self.outputs(predict, held, rows);
        let parts = rows.chunks(self.chunk).map(some).collect::<Result<Vec<_>, _>>()?;
        let Some(&Outputs { components, width, .. }) = parts.first() else { return Ok(None) };
        let mut values = Vec::with_capacity(components * rows.len() * width);
        for component in 0..components {
            for Outputs { values: part, .. } in &parts {
                let length = part.len() / components;
                values.extend_from_slice(&part[component * length..][..length]);
            }
        }
        Ok(Some(Outputs { components, width, values }))
    }

    fn scores(&self, predict: &Predict<'_>, held: &HeldOut, request: &Request) -> Result<ClientScores, RunError> {
        let clusters = held.clusters(request.client);
        let none = no_scores(self.model.task(), self.bins).ok_or_else(no_rows)?;
        let mut scores = none.builder(clusters.as_ref());
        for rows in held.rows[request.client].chunks(self.chunk) {
            let Outputs { components, width, values } = self.outputs(predict, held, rows)?;
            let added = match (&held.targets, self.model.task()) {
                (Targets::Classes { labels, .. }, Task::Classification { .. }) => {
                    let labels: Vec<usize> = rows.iter().map(|row| labels[*row]).collect();
                    ParticleLogProbs::from_f32(components, rows.len(), width, values)
                        .and_then(|log_probs| scores.add_classes(&log_probs, &labels))
                }
                (Targets::Real { values: targets }, Task::Regression) => {
                    let targets = rows.iter().map(|row| targets[*row]).collect();
                    RegressionPredictions::from_outputs(components, &values, self.scale, targets)
                        .and_then(|predictions| scores.add_real(&predictions))
                }
                _ => return Err(no_rows()),
            };
            added.map_err(RunError::Predictions)?;
        }
        scores.finish().map_err(RunError::Predictions)
    }

    fn outputs(&self, predict: &Predict<'_>, held: &HeldOut, rows: &[usize]) -> Result<Outputs, RunError> {
        let outputs = (predict.function)(held.table.batch(rows.iter().copied(), &self.session).inputs)?;
        let [components, _, width] = outputs.dims();
        if let Task::Classification { classes } = self.model.task()
            && width != classes
        {
            return Err(RunError::Config(format!("the predictor has {width} classes, and the model has {classes}")));
        }
        let mut values = outputs.try_into_vec_as::<f32>()?;
        if let Some(correction) = predict.correction {
            correction.apply(&mut values);
        }
        Ok(Outputs { components, width, values })
    }

    /// The client's personal predictor, corrected to its frequencies of classes where that is asked for.
    fn own<'a>(&'a self, request: &Request, own: &'a Predictor) -> Result<Predict<'a>, RunError> {
        let is_published = matches!(own, Predictor::Published);
        let correction = self.corrections.get(&request.client);
        Ok(Predict { function: self.function(request, own)?, is_published, correction })
    }

    /// The global particles.
    pub(super) fn published<'a>(&'a self, request: &Request) -> Result<Predict<'a>, RunError> {
        let function = self.function(request, &Predictor::Published)?;
        Ok(Predict { function, is_published: true, correction: None })
    }

    /// The predictor as a function of rows.
    fn function<'a>(&'a self, request: &Request, predictor: &'a Predictor) -> Result<Box<Function<'a>>, RunError> {
        let particles = match predictor {
            Predictor::Rows(predict) => return Ok(Box::new(predict)),
            Predictor::Own(particles) => particles.clone(),
            Predictor::Published => {
                Particles::from_array(request.message.array(PARTICLES)?, self.model.layout(), &self.session)?
            }
        };
        Ok(Box::new(move |inputs| Ok(self.model.predict(particles.blocks(), inputs))))
    }
}

pub(super) fn with_scores(message: Message, name: &str, scores: &ClientScores) -> Message {
    let values = scores.to_values();
    message.with_array(name, Array { shape: vec![values.len()], values: Values::F64(values) })
}

/// What gives the predictive parameters of rows.
pub(super) struct Predict<'a> {
    function: Box<Function<'a>>,
    /// Whether the function is that of the global particles.
    is_published: bool,
    /// What corrects its results.
    correction: Option<&'a PriorCorrection>,
}

/// A function from rows `[B, p]` to the predictive parameters `[S, B, outputs]` of S components.
type Function<'a> = dyn Fn(Tensor<2>) -> Result<Tensor<3>, RunError> + 'a;
