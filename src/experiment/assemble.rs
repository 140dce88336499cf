//! Builds the objects that the sections of a config name.

use std::sync::Arc;

use fedstein_schema::NumberOr;

use crate::algorithm::{Algorithm, Capabilities, Replies};
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::datasets::{Dataset, Partition, Targets, TrainTest};
use crate::density::{KdeBandwidth, KdeConfig, KdeMode};
use crate::error::RunError;
use crate::federation::fault_policy::{FaultPolicy, Rules};
use crate::federation::faults::{self, Fault, FaultPlan, Faulty};
use crate::federation::fleet::Fleet;
use crate::federation::robust::Robust;
use crate::models::{DataShape, Model, TargetShape, Task};
use crate::ot::RobustBarycenter;
use crate::particles::Particles;
use crate::protocol::{ClientId, Question, RequestKind, Setup};
use crate::random::{Purpose, Streams};
use crate::rows::{Rows, Shard, Table};
use crate::schedule::{OwnSelection, Random, Schedule, ScheduleSetup};
use crate::site::Squares;
use crate::stein::{Kernel, Svgd};

use super::config::{Config, EvaluationRows, FaultsConfig, FederationConfig, Reset, RobustRule, SameKde};
use super::evaluate::EvaluatorConfig;

/// Number of rows of a client on which the noise of an untrained regression network is measured.
const NOISE_ROWS: usize = 1000;
/// The largest number of coordinates of all particles together: tensors index them with 32 bits.
const MOST_NUMBERS: usize = i32::MAX as usize;
/// The λ of the papers, for algorithms without a density of their own.
const PAPERS_LAMBDA: f64 = 0.55;

impl Config {
    /// Builds the model of `[model]` for a data set of this shape.
    ///
    /// # Errors
    /// The model does not fit the data.
    pub fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, RunError> {
        Ok(self.model.build(&shape_of(data))?)
    }

    /// Builds SVGD from `[kernel]` and `[optimizer]`.
    pub fn svgd(&self) -> Svgd {
        Svgd { kernel: self.kernel.build(), optimizer: self.optimizer.build() }
    }

    /// Whether `optimizer.reset` asks for a reset at every visit.
    pub fn reset_optimizer(&self) -> bool {
        self.optimizer.reset() == Reset::PerVisit
    }

    /// What every algorithm is built from: the keys of `[kernel]`, `[optimizer]`, `[evaluation]` and `[federation]` besides the
    /// model, the clients, their number of features and the initial particles.
    pub(super) fn setup(
        &self,
        model: &Arc<dyn Model>,
        (roster, here): (&[usize], Vec<(ClientId, Shard)>),
        width: usize,
        initial: Particles,
        session: &Session,
    ) -> Setup {
        Setup {
            model: model.clone(),
            roster: roster.to_vec(),
            here,
            width,
            initial,
            session: session.clone(),
            streams: Streams::new(self.seed),
            svgd: self.svgd(),
            reset_optimizer: self.reset_optimizer(),
            personal: self.evaluation.personal,
            robust: self.robust_barycenter(),
        }
    }

    /// Builds the schedule of `[schedule]` over K clients, for an algorithm that does not choose its clients itself.
    pub fn schedule(&self, algorithm: &dyn Algorithm, clients: usize, streams: Streams) -> Box<dyn Schedule> {
        match algorithm.clients_per_round(clients) {
            Some(per_round) => Box::new(Random::new(clients, per_round, streams)),
            None => self.schedule.build(self.schedule_setup(clients, streams)),
        }
    }

    /// Builds a program's own schedule over K clients, of which it selects up to `schedule.clients`.
    ///
    /// # Errors
    /// The algorithm does not leave the selection to a schedule, or has no answer to its question.
    pub(super) fn own_schedule(
        &self,
        selection: &OwnSelection,
        algorithm: &dyn Algorithm,
        clients: usize,
        streams: Streams,
    ) -> Result<Box<dyn Schedule>, RunError> {
        let (kind, can) = (self.algorithm.name(), algorithm.capabilities());
        let schedule = selection.build(self.schedule_setup(clients, streams));
        let problem = if can.centralised {
            "has all rows in one place"
        } else if can.chooses_clients {
            "chooses the clients of a round itself"
        } else if schedule.question().is_some() && !can.tilted {
            "has no tilted densities, which the selection asks for (`Schedule::question`)"
        } else {
            return Ok(schedule);
        };
        let name = selection.name();
        Err(RunError::Config(format!("Experiment::with_selection(\"{name}\"): algorithm kind `{kind}` {problem}")))
    }

    fn schedule_setup(&self, clients: usize, streams: Streams) -> ScheduleSetup {
        ScheduleSetup {
            clients,
            per_round: self.schedule.clients(),
            streams,
            svgd_bandwidth: self.kernel.median_rule(),
        }
    }

    /// Builds the policy of `[federation]` for the run with this number.
    pub fn fault_policy(&self, algorithm: Capabilities, number: u64) -> FaultPolicy {
        let FederationConfig { deadline, min_replies, repeats, backoff, robust, outlier_scores, wire, .. } =
            self.federation;
        let robust = match (robust, algorithm.replies) {
            (RobustRule::None, _) => Robust::None,
            (RobustRule::NormClip, _) => Robust::NormClip(self.federation.robust_clip),
            (_, Replies::OwnRule) => Robust::None,
            (RobustRule::Median, _) => Robust::Median,
            (RobustRule::Trimmed, _) => Robust::Trimmed(self.federation.robust_trim),
        };
        let deadline = (deadline > 0.0).then_some(deadline);
        let rules = Rules {
            deadline,
            min_replies,
            repeats,
            backoff,
            robust,
            changes: algorithm.changes,
            row_sums: algorithm.row_sums,
            outlier_scores,
            wire,
            sends: !algorithm.centralised,
        };
        FaultPolicy::new(rules, number)
    }

    /// The rule of `federation.robust` for a server that has robust barycenters of its own.
    pub fn robust_barycenter(&self) -> Option<RobustBarycenter> {
        match self.federation.robust {
            RobustRule::None | RobustRule::NormClip => None,
            RobustRule::Median => Some(RobustBarycenter::Median),
            RobustRule::Trimmed => Some(RobustBarycenter::Trimmed(self.federation.robust_trim)),
        }
    }

    /// Builds a fleet of K clients, wrapped in the fault injector where `[faults]` asks for one.
    pub fn fleet<'a>(
        &self,
        algorithm: Capabilities,
        fleet: impl Fleet + 'a,
        clients: usize,
        streams: Streams,
    ) -> Box<dyn Fleet + 'a> {
        match self.fault_plan(algorithm, clients, streams) {
            Some(plan) => Box::new(Faulty::new(fleet, plan)),
            None => Box::new(fleet),
        }
    }

    /// The fault plan of `[faults]` for K clients; `None` where no faults are injected.
    pub fn fault_plan(&self, algorithm: Capabilities, clients: usize, streams: Streams) -> Option<FaultPlan> {
        let FaultsConfig { kinds, requests, share, probability, factor, delay } = &self.faults;
        let kinds = kinds.iter().filter_map(|word| Fault::named(word)).collect();
        let requests = requests.iter().filter_map(|word| RequestKind::named(word)).collect();
        let (share, probability, factor, delay) = (*share, *probability, *factor, *delay);
        let config = faults::FaultSettings { kinds, requests, share, probability, factor, delay };
        FaultPlan::new(config, clients, algorithm.changes, streams)
    }

    /// The validation rows of all clients, whose scores are columns of `rounds.csv` and may end the run; `None` where they are
    /// those of all metrics, or scored by the clients' personal predictors.
    ///
    /// # Errors
    /// They are to decide something, and there are none.
    pub(super) fn validation_rows(&self, train: &Dataset, partition: &Partition) -> Result<Option<Dataset>, RunError> {
        if self.evaluation.rows == EvaluationRows::Validation || self.evaluation.personal {
            return Ok(None);
        }
        let rows = partition.held_out();
        match (rows.is_empty(), self.validation_key()) {
            (false, _) => Ok(Some(train.select(&rows))),
            (true, None) => Ok(None),
            (true, Some(key)) => Err(RunError::Config(format!(
                "{key}: every client has too few rows to hold one out; raise `partition.validation`, or use fewer clients"
            ))),
        }
    }

    /// The bytes that the states of the clients of this process may take between rounds; `None` for any number.
    pub(super) fn state_budget(&self, algorithm: Capabilities) -> Option<u64> {
        let mib = self.federation.memory_mib as u64;
        (mib > 0 && !algorithm.centralised).then(|| mib.saturating_mul(1 << 20))
    }

    /// The question that clients answer each round where the schedule asks none: `evaluation.discrepancy`.
    pub fn diagnosis(&self) -> Option<Question> {
        let question = Question::Discrepancy { kernel: Kernel::Rbf(self.kernel.median_rule()), rows: Rows::Full };
        self.evaluation.discrepancy.then_some(question)
    }

    /// How test rows are predicted and scored: the keys of `[evaluation]`.
    pub(super) fn scoring(&self, algorithm: &dyn Algorithm) -> EvaluatorConfig {
        EvaluatorConfig {
            chunk: self.evaluation.chunk,
            bins: self.evaluation.bins,
            kde: self.evaluation_kde(algorithm),
            temperature: algorithm.temperature(),
        }
    }

    /// The configuration of the density estimate from which a toy's divergence is computed.
    pub fn evaluation_kde(&self, algorithm: &dyn Algorithm) -> KdeConfig {
        let bandwidth = match self.evaluation.kde_bandwidth {
            NumberOr::Fixed(lambda) => KdeBandwidth::Fixed(lambda),
            NumberOr::Rule(SameKde::Same) => algorithm.kde_bandwidth().unwrap_or(KdeBandwidth::Fixed(PAPERS_LAMBDA)),
        };
        KdeConfig { mode: KdeMode::Exact, bandwidth }
    }
}

/// The properties of the data on which a model depends.
fn shape_of(data: &Dataset) -> DataShape {
    let targets = match &data.targets {
        Targets::Classes { names, .. } => TargetShape::Classes(names.len()),
        Targets::Real { .. } => TargetShape::Real,
        Targets::None { .. } => TargetShape::None,
    };
    DataShape { name: data.name.clone(), input: data.feature_shape.clone(), targets }
}

/// The data with the rows of `evaluation.rows` in the place of the test rows.
///
/// # Errors
/// Validation rows are asked for, and no client has enough rows to hold one out.
pub(super) fn with_evaluated_rows(
    config: &Config,
    data: TrainTest,
    partition: &Partition,
) -> Result<TrainTest, RunError> {
    if config.evaluation.rows == EvaluationRows::Test {
        return Ok(data);
    }
    let rows = partition.held_out();
    if rows.is_empty() {
        return Err(RunError::Config(
            "evaluation.rows = \"validation\": every client has too few rows to hold one out; raise \
             `partition.validation`, or use fewer clients"
                .into(),
        ));
    }
    let mut notes = data.notes;
    notes.extend(EvaluationRows::Validation.note(rows.len()));
    Ok(TrainTest { test: data.train.select(&rows), notes, ..data })
}

/// Checks that the number of coordinates fits a tensor's index.
///
/// # Errors
/// There are too many particles; the error names `algorithm.particles` and the largest possible number.
pub(super) fn check_size(algorithm: &dyn Algorithm, model: &dyn Model) -> Result<(), RunError> {
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

/// The initial particles Θ^(0) `[N, d]`, drawn on the host so that every backend gets the same numbers. The noise of a
/// regression network is not set yet: see [`with_noise`].
pub(super) fn drawn_particles(model: &dyn Model, count: usize, streams: Streams) -> Array {
    let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
    let values = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    Array { shape: vec![count, model.layout().dim()], values: Values::F64(values) }
}

/// The sums over some training rows of a client of the squared residuals of untrained regression networks.
///
/// # Errors
/// The device fails.
pub(super) fn squared_residuals(
    model: &dyn Model,
    particles: &Particles,
    train: &Table,
    (client, rows): (ClientId, &[usize]),
    streams: Streams,
    session: &Session,
) -> Result<Squares, RunError> {
    let mut rng = streams.rng(Purpose::InitialParticles, 1, client);
    let mut sample = rand::seq::index::sample(&mut rng, rows.len(), NOISE_ROWS.min(rows.len())).into_vec();
    sample.sort_unstable();
    let batch = train.batch(sample.iter().map(|row| rows[*row]), session);
    let targets = batch.targets.try_into_vec_as::<f64>()?;
    let outputs = model.predict(particles.blocks(), batch.inputs).try_into_vec_as::<f64>()?;
    let sum = |outputs: &[f64]| {
        let squares = outputs.chunks_exact(2).zip(&targets).map(|(output, target)| (output[0] - target).powi(2));
        squares.sum::<f64>()
    };
    Ok(Squares { sums: outputs.chunks_exact(2 * targets.len()).map(sum).collect(), rows: targets.len() })
}

/// The initial particles with log γ = −log MSE of each untrained regression network on some rows of every client; other
/// models have no noise to set. `squares` are the clients', in their order.
pub(super) fn with_noise(model: &dyn Model, mut particles: Array, squares: &[Squares]) -> Array {
    let (true, Some(block)) = (has_noise(model), model.log_noise_precision()) else { return particles };
    let (layout, rows) = (model.layout(), squares.iter().map(|client| client.rows).sum::<usize>() as f64);
    let log_gamma = layout.blocks()[block].offset;
    if let Values::F64(values) = &mut particles.values {
        for (n, particle) in values.chunks_exact_mut(layout.dim()).enumerate() {
            let sum = squares.iter().filter_map(|client| client.sums.get(n)).sum::<f64>();
            particle[log_gamma] = -(sum / rows).max(1e-12).ln();
        }
    }
    particles
}

/// The initial particles Θ^(0) `[N, d]` of a run in one process.
///
/// # Arguments
/// * `shards`: the training rows of each client, `[K]`
///
/// # Errors
/// The device fails.
pub(super) fn first_particles(
    model: &dyn Model,
    count: usize,
    (train, shards): (&Table, &[Vec<usize>]),
    streams: Streams,
    session: &Session,
) -> Result<Particles, RunError> {
    let drawn = drawn_particles(model, count, streams);
    let on_device = |drawn: &Array| Particles::from_array(drawn, model.layout(), session);
    let squares = |(client, rows): (ClientId, &Vec<usize>)| {
        squared_residuals(model, &on_device(&drawn)?, train, (client, rows), streams, session)
    };
    let squares = if has_noise(model) { shards.iter().enumerate().map(squares).collect() } else { Ok(Vec::new()) };
    Ok(on_device(&with_noise(model, drawn, &squares?))?)
}

/// Whether the initial particles of a model depend on the clients' residuals.
pub(super) fn has_noise(model: &dyn Model) -> bool {
    model.task() == Task::Regression && model.log_noise_precision().is_some()
}
