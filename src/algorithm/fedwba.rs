//! FedWBA: every client has particles of its own, and a Wasserstein barycenter of all of them is the prior of each.
//!
//! The server keeps Θ̄ `[N, d]`. A sampled client k receives Θ̄ and moves its Θ_k by L steps of SVGD along
//!
//! S(θ) = ρ·∇ log p̄(θ) − (1/α)·(N_k/B)·∇L_batch(θ),   p̄(θ) = (1/N) Σ_i N(θ; θ̄_i, λ²I),
//!
//! with p̄ as its whole prior, and sends back Θ_k, with which it also predicts. The server takes the barycenter of the
//! Θ_k from their mean by index: Θ̄ ← argmin Σ_k ω_k W₂²(·, Θ_k). Source: FedWBA eq. (2)-(6), Algorithm 1.
//!
//! Layers may be shared (`layers`): kernel, densities and transport use the Bayesian coordinates only; a shared one has
//! no prior, moves along the particles' mean likelihood score and is averaged with the weights ω.

use std::collections::BTreeSet;

use fedstein_schema::Accepts::{Choice, IntList};
use fedstein_schema::Literal::{Int as I, Ints, Text as T};
use fedstein_schema::{Kind, key};
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, DensityConfig, KDE, KDE_BANDWIDTH, KDE_CLIP, KDE_DAMPING, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS,
    LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, Replies, UnusedKeys, VisitCost};
use super::layers::{Layers, Parts};
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::kde::{Kde, KdeMode};
use crate::density::{Evaluator, KdeBandwidth, Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::ot::{BarycenterConfig, Eq5, Iterate, RobustBarycenter, barycenter, index_mean, robust_barycenter};
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, ClientId, Halves, Message, Predictor, ROWS, Reply, Request, ServerHalf, Setup, Watch,
    diagnosed,
};
use crate::rows::Order;
use crate::statistics::mean;
use crate::stein::{FirstNorm, OptimizerState, Score, Svgd, SvgdError};

/// The name of the share of matches π_k(i) = i: 1 where the barycenter is the mean by index.
pub const MATCHES_IDENTITY: &str = "matches_identity";
/// The name of the ratio of standard deviation to mean of the transport's costs: near 0 the matching is almost
/// arbitrary.
pub const COST_CONTRAST: &str = "cost_contrast";
/// The name of the number of updates of the barycenter.
pub const BARYCENTER_STEPS: &str = "barycenter_steps";
/// The name of Σ_k ω_k W₂²(Θ̄, Θ_k).
pub const BARYCENTER_OBJECTIVE: &str = "barycenter_objective";

fedstein_schema::words! {
    /// The point at which a client's particles start in its round.
    #[derive(Default)]
    pub enum Start {
        /// The global particles: the server's result reaches the client even where the density has almost no gradient.
        #[default]
        Global = "global",
        /// The client's own particles of its last round, Θ^(0) at first: Algorithm 1 and the public code.
        Own = "own",
    }
}

fedstein_schema::words! {
    /// The clients over whose particles the barycenter is taken.
    #[derive(Default)]
    pub enum Over {
        /// The clients of the round: Algorithm 1.
        #[default]
        Sampled = "sampled",
        /// All clients with the particles that they sent last, Θ^(0) for those that never trained: the public code.
        All = "all",
    }
}

fedstein_schema::words! {
    /// The weights ω_k of the barycenter.
    #[derive(Default)]
    pub enum Weights {
        /// Equal weights.
        #[default]
        Uniform = "uniform",
        /// Weights in proportion to the clients' rows.
        DataSize = "data-size",
    }
}

/// `[algorithm] kind = "fedwba"`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedWbaConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The kernel density estimate of the global particles, which is the clients' prior.
    #[serde(flatten)]
    pub density: DensityConfig,
    /// The point at which a client's particles start.
    pub start: Start,
    /// The clients over which the barycenter is taken.
    pub over: Over,
    /// The weights of the clients in the barycenter.
    pub weights: Weights,
    /// The iteration of the barycenter.
    pub iterate: Iterate,
    /// The factor of equation (5).
    pub eq5: Eq5,
    /// The layers, counted from 1, that have the same value in all particles.
    pub shared_layers: Vec<usize>,
}

impl FedWbaConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedwba",
        about: "Particles and Wasserstein barycenters ([W]).",
        keys: &[
            PARTICLE_COUNT.default(I(10)),
            LOCAL_STEPS.default(I(50)),
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH.reference(T(Order::Iid.word())),
            LIKELIHOOD_SCALE.reference(T(LikelihoodScale::BatchSum.word())),
            TEMPERATURE,
            KDE,
            KDE_BANDWIDTH,
            KDE_DAMPING,
            KDE_CLIP,
            key(
                "start",
                Choice(Start::WORDS),
                T(Start::Global.word()),
                "Initial particles of a client in its round: the global ones, or its own of its last round (the text \
                 and the public code).",
            )
            .paper(T(Start::Own.word()))
            .reference(T(Start::Own.word())),
            key(
                "over",
                Choice(Over::WORDS),
                T(Over::Sampled.word()),
                "Clients whose particles the barycenter is taken over: those of this round, or all, including those \
                 that have never trained (the public code).",
            )
            .reference(T(Over::All.word())),
            key(
                "weights",
                Choice(Weights::WORDS),
                T(Weights::Uniform.word()),
                "Weights of the clients in the barycenter.",
            ),
            key(
                "iterate",
                Choice(Iterate::WORDS),
                T(Iterate::FixedPoint.word()),
                "Assignment and averaging until convergence (at most 100 times: the public code), or once (the text).",
            )
            .paper(T(Iterate::OneStep.word())),
            key(
                "eq5",
                Choice(Eq5::WORDS),
                T(Eq5::N.word()),
                "Equation (5) with the factor N, or as printed, with 1/N: it shrinks the particles by N².",
            ),
            key(
                "shared_layers",
                IntList { min: 1 },
                Ints(&[]),
                "Layers, counted from 1 at the input, that have the same value in all particles; the others are \
                 Bayesian ([W] Table 7).",
            ),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        personal: true,
        replies: Replies::OwnRule,
        columns: &[MATCHES_IDENTITY, COST_CONTRAST, BARYCENTER_STEPS, BARYCENTER_OBJECTIVE],
        ..Capabilities::FEDERATED
    };
}

/// The names of the parts of the server's state: Θ̄, and the clients that have participated.
const CENTRE: &str = "centre";
const PARTICIPATED: &str = "participated";
/// The names of the parts of a client's state: Θ_k and the states of its optimisers.
const OWN: &str = "own";
const OF_BAYESIAN: &str = "bayesian_optimizer";
const OF_SHARED: &str = "shared_optimizer";

/// The name of the part of the server's state that holds what a client sent last.
fn contribution_name(client: ClientId) -> String {
    format!("contribution_{client}")
}

/// The contribution of one client to the barycenter.
#[derive(Clone, Debug)]
struct Contribution {
    /// The client's particles Θ_k in parts.
    parts: Parts,
    /// The number of the client's rows N_k.
    rows: f64,
}

struct Server {
    weights: Weights,
    transport: BarycenterConfig,
    robust: Option<RobustBarycenter>,
    layers: Layers,
    /// Θ̄ in parts, as it is sent.
    parts: Parts,
    /// Θ̄, `[N, d]`.
    theta: Particles,
    /// The last contribution of every client, by client, where the barycenter is over all; empty otherwise.
    contributions: Vec<Contribution>,
    /// The clients that have participated at least once.
    participated: BTreeSet<ClientId>,
    numbers: Vec<(&'static str, f64)>,
    session: Session,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        self.layers.message_of(&self.parts)
    }

    /// Refuses particles whose squared distances are beyond the numbers of their precision.
    fn check(&self, reply: &Reply) -> Result<(), String> {
        let is_far = |array: &Array| {
            let most = if matches!(array.values, Values::F32(_)) { f64::from(f32::MAX) } else { f64::MAX };
            let rows = array.values.to_f64();
            let width = array.shape.last().copied().unwrap_or(1).max(1);
            // The distance of two particles is at most twice that of the farther one from 0.
            rows.chunks(width).any(|row| row.iter().map(|value| value * value).sum::<f64>() > most / 16.0)
        };
        match reply.message.arrays.iter().find(|(_, array)| is_far(array)) {
            None => Ok(()),
            Some((name, _)) => Err(format!("\"{name}\" is so far from 0 that its distances are not finite")),
        }
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let mut contributions = Vec::with_capacity(replies.len());
        for Reply { client, message, .. } in replies {
            let parts = self.layers.parts_in(&message, &self.session)?;
            let contribution = Contribution { parts, rows: message.scalars.get(ROWS).copied().unwrap_or(0.0) };
            self.participated.insert(client);
            match self.contributions.get_mut(client) {
                Some(last) => *last = contribution,
                None => contributions.push(contribution),
            }
        }
        contributions.extend(self.contributions.iter().cloned());
        self.take_barycenter(&contributions)
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn numbers(&self) -> Vec<(&'static str, f64)> {
        self.numbers.clone()
    }

    fn state_bytes(&self) -> u64 {
        // Θ^(0) is kept once for all clients that have never participated.
        let not_participated = usize::from(self.participated.len() < self.contributions.len());
        let remembered = if self.contributions.is_empty() { 0 } else { self.participated.len() + not_participated };
        self.parts.bytes() * (1 + remembered as u64)
    }

    /// Θ̄ in parts, and the contributions of the clients that have participated. Those of the others are Θ^(0), which a
    /// server that is built from the same configuration has.
    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(CENTRE, self.layers.save(&self.parts)?);
        for (client, contribution) in
            self.contributions.iter().enumerate().filter(|(client, _)| self.participated.contains(client))
        {
            state = state.with_part(&contribution_name(client), self.layers.save(&contribution.parts)?);
        }
        Ok(state.with_counts(PARTICIPATED, self.participated.iter().copied()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.parts = self.layers.parts_of(&state.part(CENTRE), &self.session)?;
        self.theta = self.layers.whole(&self.parts.bayesian, self.parts.shared.as_ref());
        self.participated = state.counts(PARTICIPATED)?.into_iter().collect();
        for (client, contribution) in
            self.contributions.iter_mut().enumerate().filter(|(client, _)| self.participated.contains(client))
        {
            contribution.parts = self.layers.parts_of(&state.part(&contribution_name(client)), &self.session)?;
        }
        Ok(())
    }
}

impl Server {
    fn take_barycenter(&mut self, contributions: &[Contribution]) -> Result<(), RunError> {
        let share = |contribution: &Contribution| match self.weights {
            Weights::Uniform => 1.0,
            Weights::DataSize => contribution.rows,
        };
        let total: f64 = contributions.iter().map(share).sum();
        let weights: Vec<f64> = contributions.iter().map(|contribution| share(contribution) / total).collect();

        let sets: Vec<Particles> =
            contributions.iter().map(|contribution| contribution.parts.bayesian.clone()).collect();
        let shared: Option<Vec<_>> =
            contributions.iter().map(|contribution| contribution.parts.shared.clone()).collect();
        let found = match self.robust {
            None => barycenter(&sets, Some(&weights), &index_mean(&sets)?, &self.transport)?,
            Some(rule) => robust_barycenter(rule, &sets, &weights, &self.transport)?.0,
        };
        let shared = match (shared, self.robust) {
            (None, _) => None,
            (Some(shared), None) => Some(Particles::weighted_sum(&shared, &weights, None)),
            // A reply may be damaged in these layers alone: the rule is applied to them by themselves, as sets of one particle.
            (Some(shared), Some(rule)) => {
                Some(robust_barycenter(rule, &shared, &weights, &self.transport)?.0.particles)
            }
        };

        self.numbers = vec![
            (MATCHES_IDENTITY, found.identity_share),
            (COST_CONTRAST, found.cost_contrast),
            (BARYCENTER_STEPS, found.iterations() as f64),
            (BARYCENTER_OBJECTIVE, found.objective),
        ];
        self.theta = self.layers.whole(&found.particles, shared.as_ref());
        self.parts = Parts { bayesian: found.particles, shared };
        Ok(())
    }
}

struct Client {
    config: FedWbaConfig,
    svgd: Svgd,
    reset_optimizer: bool,
    layers: Layers,
    likelihood: Likelihood,
    /// The initial particles Θ^(0) in parts.
    initial: Parts,
    /// Θ_k in parts, from the first completed visit on.
    own: Option<Parts>,
    /// The optimiser states of the Bayesian and of the shared coordinates.
    optimizers: [OptimizerState; 2],
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let global = self.layers.parts_in(&request.message, &self.session)?;
        let svgd = self.svgd.scaled(request.step_factor());
        let longest_step = svgd.optimizer.longest_step(global.bayesian.dim());
        let mut prior = GlobalPrior::new(&global.bayesian, &self.config, longest_step)?;
        let start = match self.config.start {
            Start::Global => global,
            Start::Own => self.own.as_ref().unwrap_or(&self.initial).clone(),
        };
        let mut optimizers = if self.reset_optimizer { Default::default() } else { self.optimizers.clone() };
        self.likelihood.start_visit(request.round);

        let Self { config, layers, likelihood, .. } = self;
        let steps = config.local.steps(likelihood.rows());
        let [of_bayesian, of_shared] = &mut optimizers;
        let Parts { bayesian, mut shared } = start;
        let mut first_norm = FirstNorm::default();
        let score = |at: &Particles| {
            let own = match shared.take() {
                None => likelihood.next_score(at, 0.0),
                Some(network) => {
                    let gradient = likelihood.next_gradient(&layers.whole(at, Some(&network)), 0.0);
                    let gradient = layers.parts(&gradient, |block| block.mean_dim(0));
                    // The shared network stands for N equal ones, so it moves along their mean score.
                    shared = gradient.shared.map(|along| svgd.optimizer.step(network, along, of_shared));
                    Score::dense(gradient.bayesian)
                }
            };
            let score = own.plus(prior.score(at)?);
            first_norm.take(&score, at)?;
            Ok(score)
        };
        let bayesian = svgd.run::<RunError>(bayesian, steps, of_bayesian, score, |done| watch(done, steps))?;
        if let Some(shared) = &shared {
            check_finite(shared, steps)?;
        }

        let ess = prior.effective_sample_size(&bayesian)?;
        let moved = Parts { bayesian, shared };
        let reply = layers.message_of(&moved)?.with_scalar(ROWS, likelihood.rows() as f64);
        // The state is stored last, so that a failed visit leaves the client as it was.
        self.own = Some(moved);
        if !self.reset_optimizer {
            self.optimizers = optimizers;
        }
        Ok(diagnosed(reply, first_norm.get(), ess))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(match &self.own {
            Some(own) => Predictor::Own(self.layers.whole(&own.bayesian, own.shared.as_ref())),
            None => Predictor::Published,
        })
    }

    fn state_bytes(&self) -> u64 {
        self.own.as_ref().map_or(0, Parts::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.likelihood.save());
        if let Some(own) = &self.own {
            state = state.with_part(OWN, self.layers.save(own)?);
        }
        if !self.reset_optimizer {
            let [of_bayesian, of_shared] = &self.optimizers;
            state = state.with_optimizer(OF_BAYESIAN, of_bayesian)?.with_optimizer(OF_SHARED, of_shared)?;
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        self.own = state.has(OWN).then(|| self.layers.parts_of(&state.part(OWN), &self.session)).transpose()?;
        if !self.reset_optimizer {
            self.optimizers =
                [state.optimizer(OF_BAYESIAN, &self.session)?, state.optimizer(OF_SHARED, &self.session)?];
        }
        Ok(())
    }
}

/// The prior p̄, the kernel density estimate of Θ̄, for one loop.
struct GlobalPrior {
    density: Evaluator,
    config: DensityConfig,
}

impl GlobalPrior {
    fn new(centres: &Particles, config: &FedWbaConfig, longest_step: f64) -> Result<Self, RunError> {
        let density = Kde::new(centres, config.density.kde())?;
        Ok(Self { density: density.evaluator(longest_step), config: config.density })
    }

    /// The clipped score ρ·∇ log p̄.
    fn score(&mut self, at: &Particles) -> Result<Score, RunError> {
        let score = self.density.score(at)?;
        match self.density.kde().has_zero_score() {
            true => Ok(score),
            false => self.config.bounded(score, at, self.density.kde().lambda()),
        }
    }

    /// The effective number of global particles at a particle, on average; `None` where the score is 0 everywhere.
    fn effective_sample_size(&self, at: &Particles) -> Result<Option<f64>, RunError> {
        if self.density.kde().has_zero_score() {
            return Ok(None);
        }
        Ok(Some(mean(&self.density.kde().effective_sample_size(at)?)))
    }
}

/// Checks that the shared coordinates are finite; the SVGD loop checks the Bayesian coordinates only.
fn check_finite(shared: &Particles, step: usize) -> Result<(), RunError> {
    let is_finite = shared.squared_norms()?.iter().all(|norm| norm.is_finite());
    if is_finite { Ok(()) } else { Err(SvgdError::NotFinite { step, particle: 0 }.into()) }
}

impl Algorithm for FedWbaConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn temperature(&self) -> f64 {
        self.temperature
    }

    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        Some(self.density.kde().bandwidth)
    }

    fn one_hot_advice(&self) -> &'static str {
        "algorithm.kde_bandwidth then says how far a client may go from the barycenter; a smaller one holds it closer"
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local
            .unused_keys()
            .into_iter()
            .chain(self.density.unused_keys(&["kde_bandwidth", "kde_damping", "kde_clip"]))
            .collect()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server that takes barycenters, and clients with particles of their own.
        let mut config = self.clone();
        let mut layers = Layers::of(setup.initial.layout(), &self.shared_layers)?;
        if layers.none_bayesian() {
            // N equal networks without a density are one network.
            setup.initial = setup.initial.rows(&[0]);
            config.density.kde = KdeMode::Off;
            layers = Layers::of(setup.initial.layout(), &[])?;
        }
        // The mean of N draws would be smaller than a draw.
        let initial = layers.parts(&setup.initial, |block| block.narrow(0, 0, 1));
        let contribution = |rows: usize| Contribution { parts: initial.clone(), rows: rows as f64 };
        let server = Server {
            weights: self.weights,
            robust: setup.robust,
            transport: BarycenterConfig { iterate: self.iterate, eq5: self.eq5, ..BarycenterConfig::default() },
            theta: layers.whole(&initial.bayesian, initial.shared.as_ref()),
            parts: initial.clone(),
            contributions: match self.over {
                Over::Sampled => Vec::new(),
                Over::All => setup.roster.iter().map(|rows| contribution(*rows)).collect(),
            },
            participated: BTreeSet::new(),
            numbers: Vec::new(),
            layers: layers.clone(),
            session: setup.session.clone(),
        };
        let likelihoods = setup.likelihoods(self.local.data(self.temperature));
        let client = |(id, likelihood)| {
            let client = Client {
                config: config.clone(),
                svgd: setup.svgd,
                reset_optimizer: setup.reset_optimizer,
                layers: layers.clone(),
                likelihood,
                initial: initial.clone(),
                own: None,
                optimizers: Default::default(),
                session: setup.session.clone(),
            };
            (id, Box::new(client) as _)
        };
        Ok(Halves { server: Box::new(server), clients: likelihoods.into_iter().map(client).collect() })
    }
}
