//! Predictions of a finished run on new rows.

use ndarray::Array2;

use super::client_predictor::ClientPredictor;
use super::config::Config;
use super::evaluate::{Predicted, predict_rows};
use super::finished::Finished;
use crate::backend::{Backend, Session};
use crate::datasets::{Dataset, Targets};
use crate::error::RunError;
use crate::federation::client_evaluator;
use crate::metrics::{ParticleLogProbs, RegressionPredictions, Scale};
use crate::models::Task;
use crate::rows::Table;

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
    /// Of a regression: a Gaussian of every particle on the scale of the data, `[N, n]`. The targets are unknown, and 0 on
    /// the standardised scale.
    Real(RegressionPredictions<'static>),
}

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
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]
    /// * `features`: `[n, p]`, in the units of the data and in the order of the training columns
    /// * `input`: what the rows are, for messages
    ///
    /// # Errors
    /// The rows have another number of columns or are not finite, a file of the run cannot be read, the backend cannot be
    /// opened, the predictions are not finite, the model makes none, or the run has a model of its own and
    /// [`Finished::with_model`] has not handed it over.
    pub fn forecast<B: Backend>(
        &self,
        config: &Config,
        features: Array2<f32>,
        input: &str,
    ) -> Result<Forecast, RunError> {
        self.forecast_by::<B>(config, None, features, input)
    }

    /// As [`Self::forecast`], by the own predictor of a client where one is given.
    ///
    /// # Errors
    /// As [`Self::forecast`].
    pub fn forecast_by<B: Backend>(
        &self,
        config: &Config,
        client: Option<ClientPredictor<B>>,
        features: Array2<f32>,
        input: &str,
    ) -> Result<Forecast, RunError> {
        let rows = features.nrows();
        let Outputs { values, particles, width, scale } = self.outputs(config, client, features, input)?;
        let wrong = |error| self.unusable(input, &error);
        match self.card.classes.clone() {
            Some(names) => {
                let log_probs = ParticleLogProbs::from_f32(particles, rows, width, &values).map_err(wrong)?;
                Ok(Forecast::Classes { log_probs, names })
            }
            None => RegressionPredictions::from_outputs(particles, &values, vec![0.0; rows])
                .and_then(|standardised| standardised.original_scale(scale))
                .map(Forecast::Real)
                .map_err(wrong),
        }
    }

    /// As [`Self::forecast_by`], of rows whose targets are known, in the units of the data.
    ///
    /// # Errors
    /// As [`Self::forecast`].
    pub fn predict_labelled<B: Backend>(
        &self,
        config: &Config,
        client: Option<ClientPredictor<B>>,
        features: Array2<f32>,
        targets: &Targets,
        input: &str,
    ) -> Result<Predicted, RunError> {
        let Outputs { values, particles, width, scale } = self.outputs(config, client, features, input)?;
        Predicted::of(targets, (particles, width), &values, scale).map_err(|error| self.unusable(input, &error))
    }

    /// Particles and rows are finite, but predictions overflow where either is extremely large.
    fn unusable(&self, input: &str, error: &dyn std::fmt::Display) -> RunError {
        RunError::Config(format!("{input}: the predictions of the run {} cannot be used: {error}", self.path.display()))
    }

    fn outputs<B: Backend>(
        &self,
        config: &Config,
        client: Option<ClientPredictor<B>>,
        mut features: Array2<f32>,
        input: &str,
    ) -> Result<Outputs, RunError> {
        let shape = self.shape();
        if features.ncols() != shape.width() {
            let (given, needed) = (features.ncols(), shape.width());
            return Err(RunError::Config(format!("{input}: rows of {given} features; the run has rows of {needed}")));
        }
        self.card.normalisation.features.apply(&mut features)?;
        if let Some(rotation) = self.rotation(config)? {
            rotation.apply(&mut features)?;
        }
        if let Some(((row, column), _)) = features.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(RunError::Feature { input: input.to_owned(), row, column });
        }
        let rows = features.nrows();
        let data = Dataset { features, targets: Targets::None { rows }, ..shape.clone() };
        let model = self.model(config, &shape)?;
        let width = match (model.task(), &self.card.classes) {
            (Task::Classification { classes }, Some(_)) => classes,
            (Task::Regression, None) => 2,
            _ => return Err(RunError::Config("this run's model makes no predictions from rows".into())),
        };
        let (normalisation, chunk) = (&self.card.normalisation, config.evaluation.chunk);
        let (values, particles) = match client {
            Some(client) => match client.outputs(data, normalisation, chunk)? {
                Some(client_evaluator::Outputs { components, values, .. }) => (values, components),
                None => return Err(RunError::Config(format!("{input}: no data rows"))),
            },
            None => {
                let session = Session::<B>::open(config.precision)?;
                let particles = self.particles::<B>(&*model, &session)?;
                let table = Table::new(data, normalisation);
                (predict_rows(&*model, &particles, &table, width, chunk, &session)?, particles.count())
            }
        };
        let scale = normalisation.target.as_ref();
        let scale = scale.map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd });
        Ok(Outputs { values, particles, width, scale })
    }
}
