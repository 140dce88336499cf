//! From the sections of a config to the objects that they name.

use std::sync::Arc;

use fedstein_schema::NumberOr;

use crate::algorithm::{Algorithm, Capabilities, Replies};
use crate::array::{Array, Values};
use crate::backend::{Backend, Session};
use crate::datasets::{DataConfig, Dataset, PartitionConfig, Targets};
use crate::density::{KdeBandwidth, KdeConfig, KdeMode};
use crate::error::RunError;
use crate::federation::combine::Robust;
use crate::federation::faults::{self, Fault, Faulty};
use crate::federation::guard::{Guard, Rules};
use crate::models::{DataShape, Model, ModelKind, TargetShape, Task};
use crate::ot::RobustBarycenter;
use crate::particles::Particles;
use crate::protocol::{Message, Question, RequestKind};
use crate::random::{Purpose, Streams};
use crate::rows::{Rows, Table};
use crate::schedule::{Random, Schedule, ScheduleKind, ScheduleSetup};
use crate::stein::{Kernel, Svgd};

use super::config::{Config, FaultsConfig, FederationConfig, Reset, RobustRule, SameKde};

/// Rows from which the noise of an untrained regression network is measured.
const NOISE_ROWS: usize = 1000;
/// Most numbers of all particles together: tensors count them in 32 bits.
const MOST_NUMBERS: usize = i32::MAX as usize;
/// λ of the papers, for algorithms without a density of their own.
const PAPERS_LAMBDA: f64 = 0.55;

impl Config {
    /// `[data]`.
    ///
    /// # Errors
    /// The section does not fit the type that it is read into.
    pub fn data(&self) -> Result<DataConfig, RunError> {
        self.data.clone().try_into().map_err(|error| RunError::Config(format!("[data]: {error}")))
    }

    /// `[partition]`.
    ///
    /// # Errors
    /// The section does not fit the type that it is read into.
    pub fn partition(&self) -> Result<PartitionConfig, RunError> {
        self.partition.clone().try_into().map_err(|error| RunError::Config(format!("[partition]: {error}")))
    }

    /// `[model]` for a data set of this shape.
    ///
    /// # Errors
    /// A model that does not fit the data.
    pub fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, RunError> {
        Ok(self.model.build(&shape_of(data))?)
    }

    /// `[kernel]` and `[optimizer]`.
    pub fn svgd(&self) -> Svgd {
        Svgd { kernel: self.kernel.build(), optimizer: self.optimizer.build() }
    }

    /// `optimizer.reset`.
    pub fn reset_optimizer(&self) -> bool {
        self.optimizer.reset() == Reset::PerVisit
    }

    /// `[schedule]` over K clients, for an algorithm that does not choose itself.
    pub fn schedule(&self, algorithm: &impl Algorithm, clients: usize, streams: Streams) -> Box<dyn Schedule> {
        match algorithm.clients_a_round(clients) {
            Some(per_round) => Box::new(Random::new(clients, per_round, streams)),
            None => self.schedule.build(ScheduleSetup { clients, streams, moving: self.kernel.median_rule() }),
        }
    }

    /// `[federation]`, and a number of the whole configuration.
    pub fn guard(&self, algorithm: Capabilities) -> Guard {
        let FederationConfig { deadline, min_replies, repeats, backoff, robust, outlier_scores, .. } = self.federation;
        let robust = match (robust, algorithm.replies) {
            (RobustRule::None, _) => Robust::None,
            (RobustRule::NormClip, _) => Robust::NormClip(self.federation.robust_clip),
            (_, Replies::OwnRule) => Robust::None,
            (RobustRule::Median, _) => Robust::Median,
            (RobustRule::Trimmed, _) => Robust::Trimmed(self.federation.robust_trim),
        };
        let deadline = (deadline > 0.0).then_some(deadline);
        let rules =
            Rules { deadline, min_replies, repeats, backoff, robust, changes: algorithm.changes, outlier_scores };
        Guard::new(rules, Message::default().with_scalar(&format!("{self:?}"), 0.0).fingerprint())
    }

    /// `federation.robust` for a server that has robust rules of its own.
    pub fn robust_barycenter(&self) -> Option<RobustBarycenter> {
        match self.federation.robust {
            RobustRule::None | RobustRule::NormClip => None,
            RobustRule::Median => Some(RobustBarycenter::Median),
            RobustRule::Trimmed => Some(RobustBarycenter::Trimmed(self.federation.robust_trim)),
        }
    }

    /// `[faults]` between the server and a fleet of K clients.
    pub fn faulty<F>(&self, algorithm: Capabilities, fleet: F, clients: usize, streams: Streams) -> Faulty<F> {
        let FaultsConfig { kinds, requests, share, probability, factor, delay } = &self.faults;
        let kinds = kinds.iter().filter_map(|word| Fault::named(word)).collect();
        let requests = requests.iter().filter_map(|word| RequestKind::named(word)).collect();
        let (share, probability, factor, delay) = (*share, *probability, *factor, *delay);
        let config = faults::FaultsConfig { kinds, requests, share, probability, factor, delay };
        Faulty::new(fleet, config, clients, algorithm.changes, streams)
    }

    /// What clients are asked each round where the schedule asks nothing: `evaluation.discrepancy`.
    pub fn diagnosis(&self) -> Option<Question> {
        let question = Question::Discrepancy { kernel: Kernel::Rbf(self.kernel.median_rule()), rows: Rows::Full };
        self.evaluation.discrepancy.then_some(question)
    }

    /// How the particles' density is estimated where a toy's divergence is computed.
    pub fn evaluation_kde(&self, algorithm: &impl Algorithm) -> KdeConfig {
        let bandwidth = match self.evaluation.kde_bandwidth {
            NumberOr::Fixed(lambda) => KdeBandwidth::Fixed(lambda),
            NumberOr::Rule(SameKde::Same) => algorithm.kde_bandwidth().unwrap_or(KdeBandwidth::Fixed(PAPERS_LAMBDA)),
        };
        KdeConfig { mode: KdeMode::Exact, bandwidth }
    }
}

/// What a model must know of the data.
fn shape_of(data: &Dataset) -> DataShape {
    let targets = match &data.targets {
        Targets::Classes { names, .. } => TargetShape::Classes(names.len()),
        Targets::Real { .. } => TargetShape::Real,
        Targets::None { .. } => TargetShape::None,
    };
    DataShape { name: data.name.clone(), input: data.feature_shape.clone(), targets }
}

/// Refuses more particles than tensors can count.
///
/// # Errors
/// `algorithm.particles`, and the most that there may be.
pub(super) fn check_size(algorithm: &impl Algorithm, model: &dyn Model) -> Result<(), RunError> {
    let (particles, dim) = (algorithm.particles(), model.layout().dim());
    if particles.checked_mul(dim).is_none_or(|numbers| numbers > MOST_NUMBERS) {
        return Err(RunError::Config(format!(
            "algorithm.particles = {particles}: with the model's {dim} parameters each, the particles are more than \
             {MOST_NUMBERS} numbers, the most that a tensor counts"
        )));
    }
    let pairs = particles.checked_mul(particles);
    if algorithm.capabilities().pairs && pairs.is_none_or(|pairs| pairs > MOST_NUMBERS) {
        return Err(RunError::Config(format!(
            "algorithm.particles = {particles}: the kernel between all of them has more than {MOST_NUMBERS} numbers, \
             the most that a tensor counts; at most {} particles",
            MOST_NUMBERS.isqrt()
        )));
    }
    Ok(())
}

/// Θ^(0), drawn on the host: the same numbers on every backend.
pub(super) fn initial_particles<B: Backend>(
    model: &dyn Model,
    count: usize,
    train: &Table,
    streams: Streams,
    session: &Session<B>,
) -> Result<Particles<B>, RunError> {
    let layout = model.layout();
    let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
    let mut rows: Vec<f64> = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    let upload = |rows: &[f64]| {
        let array = Array { shape: vec![count, layout.dim()], values: Values::F64(rows.to_vec()) };
        Particles::from_array(&array, layout, session).map_err(RunError::Device)
    };
    let particles = upload(&rows)?;
    let (Task::Regression, Some(block)) = (model.task(), model.log_noise_precision()) else {
        return Ok(particles);
    };
    // log γ = −log MSE of the initial network on some training rows (ALGORITHMS 3.2).
    let mut sample: Vec<usize> =
        rand::seq::index::sample(&mut rng, train.rows(), NOISE_ROWS.min(train.rows())).into_vec();
    sample.sort_unstable();
    let batch = train.batch(sample.iter().copied(), session);
    let targets = batch.targets.try_into_vec_as::<f64>()?;
    let outputs = model.predict(particles.blocks(), batch.inputs).try_into_vec_as::<f64>()?;
    let log_gamma = layout.blocks()[block].offset;
    for (n, outputs) in outputs.chunks_exact(2 * targets.len()).enumerate() {
        let squares = outputs.chunks_exact(2).zip(&targets).map(|(output, target)| (output[0] - target).powi(2));
        let mse = squares.sum::<f64>() / targets.len() as f64;
        rows[n * layout.dim() + log_gamma] = -mse.max(1e-12).ln();
    }
    upload(&rows)
}
