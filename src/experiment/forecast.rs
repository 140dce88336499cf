//! Predictions of a finished run on new rows.

use std::borrow::Cow;
use std::sync::Arc;

use ndarray::Array2;

use super::client_predictor::ClientPredictor;
use super::config::Config;
use super::evaluate::{Predicted, piece, predict_rows, target_scale};
use super::finished::Finished;
use super::own_model;
use super::schema::first;
use crate::backend::Session;
use crate::datasets::{Dataset, Rotation, Targets};
use crate::error::RunError;
use crate::federation::client_evaluator;
use crate::federation::prior_correction::PriorCorrection;
use crate::metrics::{Clusters, MetricError, ParticleLogProbs, RegressionPredictions, Scale};
use crate::models::{Model, Task};
use crate::particles::Particles;
use crate::report::quoted;
use crate::rows::Table;

/// The most classes in a message.
const CLASSES: usize = 12;

/// The first names of classes, for a message.
pub(crate) fn listed(names: &[String]) -> String {
    first(CLASSES, names.iter().map(|name| format!("`{}`", quoted(name))))
}

/// What the particles of a run, or one of its clients, predict for new rows.
#[derive(Clone, Debug)]
pub enum Forecast {
    /// Of a classification.
    Classes {
        /// The log-probabilities of every particle, `[N, n, C]`.
        log_probs: ParticleLogProbs,
        /// The names of the classes, `[C]`.
        names: Vec<String>,
    },
    /// Of a regression: a Gaussian of every particle on the scale of the data, `[N, n]`. The targets are unknown, and 0.
    Real(RegressionPredictions<'static>),
}

/// Predicts rows by the particles of a run, or by the personal predictor of one of its clients.
#[allow(missing_debug_implementations)] // A predictor may be a closure.
pub struct Forecaster<'r> {
    run: &'r Finished,
    /// An empty data set of the shape that the model was trained on.
    shape: Dataset,
    model: Arc<dyn Model>,
    session: Session,
    rotation: Option<Rotation>,
    by: By,
    /// The number of particles.
    particles: usize,
    /// The number of predictive parameters of a component.
    width: usize,
    /// Rows predicted at once.
    chunk: usize,
}

/// Who predicts.
enum By {
    Run(Particles),
    Client(Box<ClientPredictor>),
}

/// The most numbers of a prediction that are held at once by those who go through rows in blocks.
const BLOCK: usize = 1 << 24;

/// The raw outputs of N particles, or components of a client's predictor, on some rows.
struct Outputs {
    /// `[N, n, width]`.
    values: Vec<f32>,
    particles: usize,
    width: usize,
    /// The transformation of a real target.
    scale: Scale,
}

impl Finished {
    /// Predicts rows with every particle of the run: scales the features, puts them into the run's basis where it has one,
    /// and passes them to the model.
    ///
    /// The predictions are those of the particles, without the temperature or another map that the run keeps where it has
    /// calibration rows. `fedstein predict` applies it; here it is one line, with the prediction sets beside it:
    ///
    /// ```no_run
    /// # use fedstein::experiment::{Finished, Forecast};
    /// # fn f(run: &Finished, rows: ndarray::Array2<f32>) -> Result<(), Box<dyn std::error::Error>> {
    /// let recalibrated = run.recalibrated(None)?;
    /// if let Forecast::Classes { log_probs, names } = run.forecast(&run.config()?, rows, "new rows")? {
    ///     let probabilities = recalibrated.probabilities(log_probs.ensemble(), names.len())?; // [n, C], at the temperature
    ///     let sets = recalibrated.sets(&log_probs.ensemble(), &probabilities, names.len()); // [n][C]
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]; its `backend` computes, and may be another one than the run's
    /// * `features`: `[n, p]`, in the units of the data and in the order of the training columns
    /// * `input`: what the rows are, for messages
    ///
    /// # Errors
    /// There are no rows, they have another number of columns or are not finite, a file of the run cannot be read, a key of the
    /// config has a value that it does not accept, the backend is not compiled in or cannot be opened, the predictions are not finite, the model makes none, or the run has a model of its own
    /// and [`Finished::with_model`] has not handed it over.
    pub fn forecast(&self, config: &Config, features: Array2<f32>, input: &str) -> Result<Forecast, RunError> {
        self.forecast_by(config, None, features, input)
    }

    /// As [`Self::forecast`], by the personal predictor of a client where one is given.
    ///
    /// # Errors
    /// As [`Self::forecast`].
    pub fn forecast_by(
        &self,
        config: &Config,
        client: Option<ClientPredictor>,
        features: Array2<f32>,
        input: &str,
    ) -> Result<Forecast, RunError> {
        self.forecaster(config, client)?.forecast((features, 0), input)
    }

    /// What predicts rows, for many rows that are predicted in [blocks](Forecaster::block).
    ///
    /// # Errors
    /// As [`Self::forecast`], of what is not about rows.
    pub fn forecaster(&self, config: &Config, client: Option<ClientPredictor>) -> Result<Forecaster<'_>, RunError> {
        config.check_values()?;
        let shape = self.shape();
        let model = self.model(config, &shape)?;
        let width = match (model.task(), &self.card.classes) {
            (Task::Classification { classes }, Some(_)) => classes,
            (Task::Regression, None) => 2,
            _ => return Err(RunError::Config("this run's model makes no predictions from rows".into())),
        };
        let session = Session::named(&config.backend, config.precision)?;
        own_model::is_that_of(&self.card.own_model_fingerprint, &*model, shape.width(), &session)
            .map_err(|problem| RunError::Config(format!("Finished::with_model: {problem}")))?;
        let (by, particles) = match client {
            Some(client) => (By::Client(Box::new(client)), config.algorithm.particles()),
            None => {
                let particles = self.particles(&*model, &session)?;
                (By::Run(particles.clone()), particles.count())
            }
        };
        let (rotation, chunk) = (self.rotation(config)?, config.evaluation.chunk);
        Ok(Forecaster { run: self, shape, model, session, rotation, by, particles, width, chunk })
    }

    /// As [`Self::forecast_by`], of rows whose targets are known, in the units of the data. Classes are those of the run by
    /// their names, in whatever order the targets have them. Clusters say which rows belong together; `None` where rows are
    /// independent.
    ///
    /// # Errors
    /// As [`Self::forecast`]; or the targets are of the other task, of another number than the rows, not finite, or have a
    /// row of a class that the run does not know.
    pub fn predict_labelled(
        &self,
        config: &Config,
        client: Option<ClientPredictor>,
        features: Array2<f32>,
        targets: &Targets,
        clusters: Option<Clusters>,
        input: &str,
    ) -> Result<Predicted, RunError> {
        let targets = self.targets_of_run(targets, features.nrows(), input)?;
        let of_rows = self.forecaster(config, client)?.outputs((features, 0), input)?;
        let Outputs { values, particles, width, scale } = of_rows;
        Predicted::of(&targets, (particles, width), values, scale, clusters).map_err(|error| match error {
            RunError::Predictions(error) => self.unusable(input, &error),
            other => other,
        })
    }

    /// The targets of rows as those of the run: labels are places in the run's classes.
    ///
    /// # Errors
    /// A sentence about the first target that the run could not have predicted.
    fn targets_of_run<'t>(&self, targets: &'t Targets, rows: usize, input: &str) -> Result<Cow<'t, Targets>, RunError> {
        let (run, wrong) = (self.path.display(), |problem: String| RunError::Config(format!("{input}: {problem}")));
        let count = match targets {
            Targets::Classes { labels, .. } => labels.len(),
            Targets::Real { values } => values.len(),
            Targets::None { .. } => return Err(wrong("the rows have no targets to score predictions by".into())),
        };
        if count != rows {
            return Err(wrong(format!("{count} targets for {rows} rows; each row has one")));
        }
        let (labels, names) = match (targets, &self.card.classes) {
            (Targets::Classes { labels, names }, Some(_)) => (labels, names),
            (Targets::Classes { .. }, None) => {
                return Err(wrong(format!(
                    "the targets are classes (`Targets::Classes`), and the run {run} predicts a number"
                )));
            }
            (_, Some(_)) => {
                return Err(wrong(format!(
                    "the targets are numbers (`Targets::Real`), and the run {run} predicts classes"
                )));
            }
            (Targets::Real { values }, None) => {
                return match values.iter().position(|value| !value.is_finite()) {
                    Some(row) => Err(wrong(format!("the target of data row {} is {}", row + 1, values[row]))),
                    None => Ok(Cow::Borrowed(targets)),
                };
            }
            (Targets::None { .. }, None) => return Ok(Cow::Borrowed(targets)),
        };
        let of_run = self.card.classes.as_deref().unwrap_or_default();
        let places: Vec<Option<usize>> =
            names.iter().map(|name| of_run.iter().position(|known| known == name)).collect();
        let place = |(row, label): (usize, &usize)| match places.get(*label) {
            Some(Some(place)) => Ok(*place),
            Some(None) => Err(wrong(format!(
                "data row {} has the class `{}`, which the run {run} does not know; its classes are {}",
                row + 1,
                quoted(&names[*label]),
                listed(of_run)
            ))),
            None => Err(wrong(format!(
                "data row {} has class {label}, and the targets name the classes 0 to {}",
                row + 1,
                names.len().max(1) - 1
            ))),
        };
        let labels = labels.iter().enumerate().map(place).collect::<Result<_, _>>()?;
        Ok(Cow::Owned(Targets::Classes { labels, names: of_run.to_vec() }))
    }

    /// Particles and rows are finite, but predictions overflow where either is extremely large.
    fn unusable(&self, input: &str, error: &dyn std::fmt::Display) -> RunError {
        RunError::Config(format!("{input}: the predictions of the run {} cannot be used: {error}", self.path.display()))
    }
}

impl Forecaster<'_> {
    /// A number of rows whose predictions fit into some 100 MB. Blocks of so many rows have the predictions of all rows at
    /// once to the bit.
    pub fn block(&self) -> usize {
        let piece = match &self.by {
            By::Run(_) => piece(self.chunk, &self.session),
            By::Client(_) => self.chunk,
        };
        (BLOCK / (self.particles * self.width).max(1) / piece).max(1) * piece
    }

    /// Predicts rows: scales the features, puts them into the run's basis where it has one, and passes them to the model.
    ///
    /// # Arguments
    /// * `features`: `[n, p]`, as in [`Finished::forecast`]
    /// * `first`: the number of rows of the input before these
    /// * `input`: what the rows are, for messages
    ///
    /// # Errors
    /// There are no rows, they have another number of columns or are not finite, or the predictions are not finite.
    pub fn forecast(&self, (features, first): (Array2<f32>, usize), input: &str) -> Result<Forecast, RunError> {
        let rows = features.nrows();
        let Outputs { values, particles, width, scale } = self.outputs((features, first), input)?;
        let wrong = |error: MetricError| match first {
            0 => self.run.unusable(input, &error),
            _ => self.run.unusable(input, &format!("{error}, where row 0 is data row {}", first + 1)),
        };
        match self.run.card.classes.clone() {
            Some(names) => {
                let log_probs = ParticleLogProbs::from_f32(particles, rows, width, values).map_err(wrong)?;
                Ok(Forecast::Classes { log_probs, names })
            }
            None => RegressionPredictions::from_outputs(particles, &values, scale, vec![0.0; rows])
                .map(Forecast::Real)
                .map_err(wrong),
        }
    }

    fn outputs(&self, (mut features, first): (Array2<f32>, usize), input: &str) -> Result<Outputs, RunError> {
        let Self { run, shape, model, session, rotation, by, width, chunk, particles: _ } = self;
        if features.ncols() != shape.width() {
            let (given, needed) = (features.ncols(), shape.width());
            return Err(RunError::Config(format!("{input}: rows of {given} features; the run has rows of {needed}")));
        }
        if features.nrows() == 0 {
            return Err(RunError::Config(format!("{input}: no data rows")));
        }
        let normalisation = &run.card.normalisation;
        normalisation.features.apply(&mut features)?;
        if let Some(((row, column), _)) = features.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(RunError::Feature { input: input.to_owned(), row: first + row, column });
        }
        if let Some(rotation) = rotation {
            rotation.apply(&mut features)?;
        }
        let rows = features.nrows();
        let data = Dataset { features, targets: Targets::None { rows }, ..shape.clone() };
        let (mut values, particles) = match by {
            By::Client(client) => match client.outputs(data, normalisation, *chunk)? {
                Some(client_evaluator::Outputs { components, values, .. }) => (values, components),
                None => return Err(RunError::Config(format!("{input}: no data rows"))),
            },
            By::Run(particles) => {
                let table = Table::new(data, normalisation);
                (predict_rows(&**model, particles, &table, *width, *chunk, session)?, particles.count())
            }
        };
        if let Some(log_ratios) = &run.card.prior_correction {
            PriorCorrection::of_log_ratios(log_ratios.clone()).apply(&mut values);
        }
        Ok(Outputs { values, particles, width: *width, scale: target_scale(normalisation) })
    }
}
