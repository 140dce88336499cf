//! Predictions of the global particles on the test rows, in chunks, and their metrics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::array::{Array, Values};
use crate::backend::Session;
use crate::datasets::{Dataset, Normalisation, Targets};
use crate::density::kde::KdeConfig;
use crate::error::{RunError, words_of_panic};
use crate::federation::client_evaluator::{no_rows, no_scores};
use crate::federation::labelled::Labelled;
use crate::metrics::{
    ClientScores, Clusters, Evaluation, Grid, MetricError, ParticleLogProbs, PersonalScores, RegressionPredictions,
    Scale,
};
use crate::models::{Model, Task};
use crate::particles::Particles;
use crate::protocol::Posterior;
use crate::rows::Table;

/// The predictions of the particles on the test rows.
#[derive(Debug)]
pub enum Predicted {
    /// The log-probabilities of every particle, with the labels.
    Classes {
        /// `[N, n, C]`.
        log_probs: ParticleLogProbs,
        /// `[n]`.
        labels: Vec<usize>,
        /// Those of the rows; `None` where rows are independent.
        clusters: Option<Clusters>,
    },
    /// A Gaussian of every particle on the scale of the data: means and precisions `[N, n]`, targets `[n]`, with the clusters
    /// of the rows.
    Real(RegressionPredictions<'static>),
    /// Scores on the clients' own test rows: sums over rows that this process does not have.
    Pooled {
        /// The names of all clients, `[K]`.
        names: Vec<String>,
        /// The sums of each client and of all together; a client without scores has no rows.
        scores: PersonalScores,
    },
    /// The divergence from the exact posterior, for a toy density, which has no test rows.
    Density {
        /// KL(q ‖ posterior) in nats; `None` beyond two dimensions.
        kl: Option<f64>,
    },
}

impl Predicted {
    /// The predictions that the raw outputs `[S, n, width]` of S components make of n rows.
    ///
    /// # Arguments
    /// * `targets`: those of the rows, in the units of the data
    /// * `scale`: that of a real target, on which the outputs are
    /// * `clusters`: those of the rows; `None` where rows are independent
    ///
    /// # Errors
    /// An output is not finite, the rows have no targets, or the clusters are of another number of rows.
    pub fn of(
        targets: &Targets,
        (components, width): (usize, usize),
        outputs: Vec<f32>,
        scale: Scale,
        clusters: Option<Clusters>,
    ) -> Result<Self, RunError> {
        match targets {
            Targets::Classes { labels, .. } => {
                let log_probs = ParticleLogProbs::from_f32(components, labels.len(), width, outputs);
                Ok(Self::Classes { log_probs: log_probs.map_err(undefined)?, labels: labels.clone(), clusters })
            }
            Targets::Real { values } => {
                let predictions = RegressionPredictions::from_outputs(components, &outputs, scale, values.clone())
                    .and_then(|predictions| predictions.with_clusters(clusters));
                predictions.map(Self::Real).map_err(undefined)
            }
            Targets::None { .. } => Err(no_rows()),
        }
    }

    /// The predictive distribution in the units of the data, with the targets; `None` where rows are elsewhere, or of a
    /// density.
    ///
    /// # Errors
    /// The predictions cannot be scored.
    pub fn labelled(&self) -> Result<Option<Labelled>, RunError> {
        let labelled = match self {
            Self::Classes { log_probs, labels, clusters } => {
                let predictions = log_probs.predictions(labels);
                predictions.and_then(|of| of.with_clusters(clusters.clone())).map(Labelled::Classes)
            }
            Self::Real(predictions) => Ok(Labelled::Real(predictions.clone())),
            Self::Pooled { .. } | Self::Density { .. } => return Ok(None),
        };
        labelled.map(Some).map_err(undefined)
    }

    /// The headline metrics, with this number of bins of confidence.
    ///
    /// # Errors
    /// The metrics are undefined.
    pub fn evaluate(&self, bins: usize) -> Result<Evaluation, RunError> {
        match self {
            Self::Classes { log_probs, labels, .. } => Evaluation::classification(log_probs, labels, bins),
            Self::Real(predictions) => Ok(Evaluation::regression(predictions)),
            Self::Pooled { scores, .. } => Ok(Evaluation::of_sums(scores.pooled())),
            Self::Density { kl } => Ok(Evaluation { kl: *kl, ..Evaluation::default() }),
        }
        .map_err(undefined)
    }
}

/// How predictions are made and scored.
#[derive(Clone, Copy, Debug)]
pub struct EvaluatorConfig {
    /// Rows predicted at once.
    pub chunk: usize,
    /// Number of bins of confidence.
    pub bins: usize,
    /// The density estimate of the particles from which a toy's divergence is computed.
    pub kde: KdeConfig,
    /// The temperature α of the posterior with which it is compared.
    pub temperature: f64,
}

/// The exact posterior of a toy on a grid.
#[derive(Debug)]
struct Exact {
    grid: Grid,
    /// The unnormalised log density, `[G]`.
    log_posterior: Vec<f64>,
}

/// Evaluates particles on a test set.
#[derive(Debug)]
pub struct Evaluator {
    model: Arc<dyn Model>,
    session: Session,
    table: Table,
    targets: Targets,
    clusters: Option<Clusters>,
    scale: Scale,
    config: EvaluatorConfig,
    exact: Option<Exact>,
}

/// The mean and standard deviation that bring standardised targets back; the identity where targets are as they were read.
pub(super) fn target_scale(normalisation: &Normalisation) -> Scale {
    normalisation.target.as_ref().map_or(Scale::IDENTITY, |t| Scale { mean: t.mean, sd: t.sd })
}

impl Evaluator {
    /// Prepares the evaluation of a test set.
    ///
    /// # Errors
    /// The device fails.
    pub fn new(
        model: Arc<dyn Model>,
        session: Session,
        test: Dataset,
        normalisation: &Normalisation,
        config: EvaluatorConfig,
    ) -> Result<Self, RunError> {
        let (targets, clusters) = (test.targets.clone(), test.groups.as_ref().map(Clusters::new));
        let scale = target_scale(normalisation);
        let table = Table::new(test, normalisation);
        let exact = match model.task() {
            Task::Density => exact(&*model, &table, config.temperature, &session)?,
            Task::Classification { .. } | Task::Regression => None,
        };
        Ok(Self { model, session, table, targets, clusters, scale, config, exact })
    }

    /// Whether the rows have classes.
    pub fn has_classes(&self) -> bool {
        matches!(self.model.task(), Task::Classification { .. })
    }

    /// Predicts every test row with every particle, or compares a toy's posterior with the exact one.
    ///
    /// # Errors
    /// The device fails, or a prediction is not finite.
    pub fn predict(&self, particles: &Particles, posterior: &Posterior) -> Result<Predicted, RunError> {
        let width = match self.model.task() {
            Task::Classification { classes } => classes,
            Task::Regression => 2,
            Task::Density => return Ok(Predicted::Density { kl: self.divergence(particles, posterior)? }),
        };
        let (outputs, clusters) = (self.outputs(particles, width)?, self.clusters.clone());
        Predicted::of(&self.targets, (particles.count(), width), outputs, self.scale, clusters)
    }

    /// The headline metrics of predictions.
    ///
    /// # Errors
    /// The metrics are undefined.
    pub fn evaluate(&self, predicted: &Predicted) -> Result<Evaluation, RunError> {
        predicted.evaluate(self.config.bins)
    }

    /// The sums of scores over no rows, of the kind that the clients send; `None` for a toy density.
    pub fn no_scores(&self) -> Option<ClientScores> {
        no_scores(self.model.task(), self.config.bins)
    }

    /// Computes KL(q ‖ posterior) by quadrature.
    fn divergence(&self, particles: &Particles, posterior: &Posterior) -> Result<Option<f64>, RunError> {
        let Some(Exact { grid, log_posterior }) = &self.exact else { return Ok(None) };
        let centres = particles.to_array()?.values.to_f64();
        let log_q = match posterior {
            Posterior::Particles => {
                let gram = particles.centred_gram()?;
                let lambda = self.config.kde.bandwidth.evaluate(&gram, particles.dim());
                grid.log_mixture(&centres, &vec![lambda * lambda; particles.count()])
            }
            Posterior::Mixture { variances } => grid.log_mixture(&centres, variances),
            Posterior::Gaussian { mean, covariance } => grid.log_gaussian(mean, covariance),
        };
        Ok(grid.divergence(&log_q, log_posterior))
    }

    /// The raw outputs `[N, n, outputs]`, particle by particle.
    fn outputs(&self, particles: &Particles, outputs: usize) -> Result<Vec<f32>, RunError> {
        predict_rows(&*self.model, particles, &self.table, outputs, self.config.chunk, &self.session)
    }
}

/// Evaluates log p0 + (1/α) Σ_rows log p on a grid over θ.
fn exact(model: &dyn Model, table: &Table, temperature: f64, session: &Session) -> Result<Option<Exact>, RunError> {
    let Some(grid) = Grid::for_dimension(model.layout().dim()) else { return Ok(None) };
    let shape = vec![grid.points().len() / grid.dim(), grid.dim()];
    let array = Array { shape, values: Values::F64(grid.points().to_vec()) };
    let at = Particles::from_array(&array, model.layout(), session)?;
    let likelihood = model.log_likelihood(at.blocks(), &table.batch(0..table.rows(), session));
    let log_posterior =
        (likelihood.div_scalar(temperature) + model.prior().log_density(at.blocks())).try_into_vec_as::<f64>()?;
    Ok(Some(Exact { grid, log_posterior }))
}

/// Rows that one CPU thread predicts at once: whole tiles of a matrix product, with hidden values that fit its cache.
/// The number does not depend on the number of threads, so that results are bitwise equal for any number.
const PIECE: usize = 128;

/// The number of rows that are predicted at once.
pub(super) fn piece(chunk: usize, session: &Session) -> usize {
    if session.backend().has_parallel_clients() { chunk.min(PIECE) } else { chunk }
}

/// Predicts all rows of a table, at most `chunk` at once, so that memory does not grow with the table. Returns `[N, n,
/// outputs]`.
///
/// # Errors
/// The device fails.
pub fn predict_rows(
    model: &dyn Model,
    particles: &Particles,
    table: &Table,
    outputs: usize,
    chunk: usize,
    session: &Session,
) -> Result<Vec<f32>, RunError> {
    let rows = table.rows();
    let mut all = vec![0.0; particles.count() * rows * outputs];
    let piece = piece(chunk, session);
    let workers = if session.backend().has_parallel_clients() { (chunk / PIECE).max(1) } else { 1 };
    let mut rest: Vec<&mut [f32]> = all.chunks_exact_mut((rows * outputs).max(1)).collect();
    let pieces = (0..rows).step_by(piece).map(|start| {
        let rows = start..(start + piece).min(rows);
        (rows.clone(), cut(&mut rest, rows.len() * outputs))
    });
    let pieces = Mutex::new(pieces);
    let next = || pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
    (0..workers).into_par_iter().try_for_each(|_| {
        while let Some((rows, to)) = next() {
            let inputs = table.batch(rows.clone(), session).inputs;
            // A program's own model may panic on so many rows.
            let predicted = || model.predict(particles.blocks(), inputs).try_into_vec_as::<f32>();
            let values = catch_unwind(AssertUnwindSafe(predicted)).map_err(|panic| {
                let said = words_of_panic(&*panic).unwrap_or("without a message");
                let (first, last, of) = (rows.start, rows.end - 1, table.rows());
                RunError::Algorithm(
                    format!("the model panicked when it predicted rows {first} to {last} of {of}: {said}").into(),
                )
            })??;
            to.into_iter()
                .zip(values.chunks_exact(rows.len() * outputs))
                .for_each(|(to, from)| to.copy_from_slice(from));
        }
        Ok::<(), RunError>(())
    })?;
    Ok(all)
}

/// Splits off the next `count` elements of every slice.
fn cut<'a>(slices: &mut [&'a mut [f32]], count: usize) -> Vec<&'a mut [f32]> {
    let first = |slice: &mut &'a mut [f32]| slice.split_off_mut(..count).expect("as many rows as are left");
    slices.iter_mut().map(first).collect()
}

fn undefined(error: MetricError) -> RunError {
    RunError::Predictions(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Flex, Precision};
    use crate::datasets::FeatureScale;
    use crate::models::{BnnConfig, Network};
    use crate::random::{Purpose, Streams};
    use ndarray::Array2;

    /// Log-probabilities of 3 networks 5-7-4 on some rows, predicted in chunks.
    fn predicted(precision: Precision, rows: usize, chunk: usize) -> Vec<f32> {
        let session = Session::open::<Flex>(precision).unwrap();
        let model = Network::new(BnnConfig::classifier(5, &[7], 4));
        let mut rng = Streams::new(1).rng(Purpose::InitialParticles, 0, 0);
        let values = (0..3).flat_map(|_| model.initial(&mut rng)).collect();
        let array = Array { shape: vec![3, model.layout().dim()], values: Values::F64(values) };
        let particles = Particles::from_array(&array, model.layout(), &session).unwrap();
        let names = ["a", "b", "c", "d"].map(String::from).to_vec();
        let data = Dataset {
            name: "waves".into(),
            features: Array2::from_shape_fn((rows, 5), |(row, column)| ((row * 5 + column) as f32 * 0.7).sin() * 3.0),
            feature_shape: vec![5],
            feature_names: None,
            targets: Targets::Classes { labels: vec![0; rows], names },
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        };
        let table = Table::new(data, &Normalisation { features: FeatureScale::Identity, target: None });
        predict_rows(&model, &particles, &table, 4, chunk, &session).unwrap()
    }

    #[test]
    fn every_row_has_its_place_with_any_chunk_and_format() {
        for rows in [0, 1, 17, 128, 300] {
            let exact = predicted(Precision::F64, rows, 1000);
            assert_eq!(exact.len(), 3 * rows * 4);
            for chunk in [1, 7, 128, 200, 1000] {
                let fast = predicted(Precision::F32, rows, chunk);
                let furthest = exact.iter().zip(&fast).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(furthest < 1e-5 && fast.len() == exact.len(), "{rows} rows in chunks of {chunk}: {furthest}");
            }
        }
    }

    #[test]
    fn bits_are_the_same_at_any_number_of_threads() {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| predicted(Precision::F32, 900, 1000))
        };
        let one = on(1);
        assert!(one.iter().zip(on(2)).all(|(a, b)| a.to_bits() == b.to_bits()));
        assert!(one.iter().zip(on(5)).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}
