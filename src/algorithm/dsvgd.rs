//! DSVGD, distributed Stein variational gradient descent. Source: Kassab & Simeone Algorithm 1, eq. (13), (14) and (17).
//!
//! Particles Θ represent the global posterior q ∝ p0·Π_k t_k, local particles Θ_k the factor t_k of client k. In its
//! round the client
//! 1. moves Θ towards the *tilted* density p̃_k ∝ (q/t_k)·exp(−L_k/α): the factors of the other clients, times the
//!    likelihood of its own rows;
//! 2. *distils* the change into its factor, t_k ← t_k·q_new/q: in closed form where one centre has all the weight of
//!    each density, by moving Θ_k with SVGD elsewhere.
//!
//! Densities of particles are kernel density estimates (`cavity.rs`). Θ is sent to the client and back; Θ_k never
//! leaves the client.

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::{Int as I, Text as T};
use fedstein_schema::{COUNT_OR_ZERO, Key, Kind, key};
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, DensityConfig, KDE, KDE_BANDWIDTH, KDE_CLIP, KDE_DAMPING, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS,
    LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, REPLACES, Replies, UnusedKeys, VisitCost};

pub(super) mod cavity;

use std::sync::Arc;

use fedstein_models::Model;

use super::relay::Relay;
use super::uploaded::Uploaded;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::KdeBandwidth;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, ClientHalves, Halves, Message, Predictor, Question, Request, Setup, Watch, as_sent, diagnosed,
    message_of, particles_of,
};
use crate::schedule::indicator;
use crate::stein::{FirstNorm, OptimizerState, Score, Svgd};

pub use cavity::Factors;
use cavity::{Cavity, Start};

/// `[algorithm] kind = "dsvgd"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DsvgdConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The number of steps L on Θ, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The number of steps L' on Θ_k, where the new factor has no closed form.
    pub distill_steps: usize,
    /// The temperature α.
    pub temperature: f64,
    /// The kernel density estimate of the particles.
    #[serde(flatten)]
    pub density: DensityConfig,
    /// The content of a factor besides the likelihood.
    pub factors: Factors,
}

pub(super) const DISTILL_STEPS: Key = key(
    "distill_steps",
    COUNT_OR_ZERO,
    I(200),
    "Steps L' that move the client's particles onto its new factor ([D]: 200), where that has no closed form.",
);
/// The keys that say how densities are used.
const OF_DENSITIES: &[&str] = &["kde_bandwidth", "kde_damping", "kde_clip", "factors", "distill_steps"];
pub(super) const FACTORS: Key = key(
    "factors",
    Choice(Factors::WORDS),
    T(Factors::WithPrior.word()),
    "What a client's factor holds besides its likelihood: the whole prior (`with-prior`: the public code), or nothing (`paper`: the text; diverges).",
)
.paper(T(Factors::Paper.word()))
.reference(T(Factors::WithPrior.word()));

impl DsvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "dsvgd",
        about: "Distributed Stein variational gradient descent ([D]).",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            DISTILL_STEPS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            KDE,
            KDE_BANDWIDTH,
            KDE_DAMPING,
            KDE_CLIP,
            FACTORS,
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        keeps_upload: true,
        model_prior: true,
        tilted: true,
        one_client_per_round: true,
        replies: Replies::Different(REPLACES),
        ..Capabilities::FEDERATED
    };
}

/// The names under which a client keeps Θ_k, whether it was ever visited, and the optimiser states of its two loops.
const FACTOR: &str = "factor";
const VISITED: &str = "visited";
const LOCAL: &str = "local_optimizer";
const DISTILL: &str = "distill_optimizer";

struct Client {
    config: DsvgdConfig,
    sends: Sends,
    svgd: Svgd,
    reset_optimizer: bool,
    model: Arc<dyn Model>,
    likelihood: Likelihood,
    /// Θ_k; Θ^(0) until the first visit.
    factor: Particles,
    visited: bool,
    /// Θ after the last visit, where the client predicts with it.
    uploaded: Uploaded,
    /// The optimiser states of the local loop and of the distillation loop.
    optimizers: [OptimizerState; 2],
    session: Session,
    /// The number of clients K.
    clients: usize,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let cavity = self.cavity(&theta, request)?;
        let svgd = self.svgd.scaled(request.step_factor());
        // Between visits the optimisers are kept only if they are not reset: the accumulators of a client are as large
        // as its factor.
        let [mut moving, mut distill] = if self.reset_optimizer { Default::default() } else { self.optimizers.clone() };
        self.likelihood.start_visit(request.round);

        // (14): ∇ log p̃_k = ∇ log q − ∇ log t_k − (1/α) ∇L_k, and ∇ log p0 where the factor holds it
        let DsvgdConfig { local, density, .. } = self.config;
        let steps = local.steps(self.likelihood.rows());
        let (mut first_norm, likelihood) = (FirstNorm::default(), &mut self.likelihood);
        let mut others = cavity.score(density, svgd.optimizer.longest_step(theta.dim()));
        let tilted = |at: &Particles| {
            let score = likelihood.next_score(at, cavity.prior_weight).plus(others(at)?);
            first_norm.take(&score, at)?;
            Ok(score)
        };
        let moved = svgd.run::<RunError>(theta.clone(), steps, &mut moving, tilted, |done| watch(done, steps))?;
        // The factor follows from what the server receives.
        let moved = match self.sends {
            Sends::Global => as_sent(moved, request.wire, &self.session)?,
            Sends::Factor => moved,
        };
        let effective = cavity.effective_sample_size(&moved)?;

        // (10): t_k,new = t_k·q_new/q. Where the densities' scores are taken for 0 there is nothing to distil.
        if !cavity.zero_score {
            self.factor = match cavity.factor_in_closed_form(&moved)? {
                Some(factor) => factor,
                None => self.distil(&svgd, &cavity, &moved, &mut distill, watch)?,
            };
        }
        if self.sends == Sends::Factor {
            self.factor = as_sent(self.factor.clone(), request.wire, &self.session)?;
        }
        self.visited = true;
        self.uploaded.set(&moved);
        if !self.reset_optimizer {
            self.optimizers = [moving, distill];
        }
        let reply = match self.sends {
            Sends::Global => message_of(&moved)?,
            Sends::Factor => message_of(&self.factor)?,
        };
        Ok(diagnosed(reply, first_norm.get(), effective))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(self.uploaded.predictor())
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => self.likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let cavity = self.cavity(&theta, request)?;
                let local = self.likelihood.score_in(&theta, *rows, request.round, cavity.prior_weight);
                let density = self.config.density;
                let others = cavity.score(density, f64::INFINITY)(&theta)?;
                Score::dense(local).plus(others).evaluate(&theta)
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        self.factor.bytes() + self.uploaded.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.likelihood.save());
        state = state.with_particles(FACTOR, &self.factor)?.with_count(VISITED, usize::from(self.visited));
        state = self.uploaded.save(state)?;
        if !self.reset_optimizer {
            state = state.with_optimizer(LOCAL, &self.optimizers[0])?.with_optimizer(DISTILL, &self.optimizers[1])?;
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        self.factor = state.particles(FACTOR, self.factor.layout(), &self.session)?;
        self.visited = state.count(VISITED)? != 0;
        self.uploaded.restore(state, self.factor.layout(), &self.session)?;
        if !self.reset_optimizer {
            self.optimizers = [state.optimizer(LOCAL, &self.session)?, state.optimizer(DISTILL, &self.session)?];
        }
        Ok(())
    }
}

impl Client {
    /// The cavity q/t_k of this round.
    fn cavity(&self, theta: &Particles, request: &Request) -> Result<Cavity, RunError> {
        let start = Start {
            model: &self.model,
            theta,
            factor: &self.factor,
            visited: self.visited,
            round: request.round,
            clients: self.clients,
        };
        Cavity::new(self.config.factors, self.config.density.kde(), &start)
    }

    /// Distils: L' steps of SVGD on Θ_k towards the new factor.
    fn distil(
        &self,
        svgd: &Svgd,
        cavity: &Cavity,
        moved: &Particles,
        state: &mut OptimizerState,
        watch: Watch,
    ) -> Result<Particles, RunError> {
        let DsvgdConfig { local, distill_steps, .. } = self.config;
        let steps = local.steps(self.likelihood.rows());
        let after = |done| watch(steps + done, steps + distill_steps);
        let score = cavity.factor_score(moved, svgd.optimizer.longest_step(moved.dim()))?;
        svgd.run(self.factor.clone(), distill_steps, state, score, after)
    }
}

/// The particles that a client sends back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// The moved particles Θ.
    Global,
    /// The factor's particles Θ_k (P-DSVGD).
    Factor,
}

/// One client per shard in this process with its factor at Θ^(0).
pub(super) fn clients(config: DsvgdConfig, setup: &mut Setup, sends: Sends) -> ClientHalves {
    let likelihoods = setup.likelihoods(config.local.data(config.temperature));
    let client = |(id, likelihood)| {
        let client = Client {
            clients: setup.roster.len(),
            config,
            sends,
            svgd: setup.svgd,
            reset_optimizer: setup.reset_optimizer,
            model: setup.model.clone(),
            likelihood,
            factor: setup.initial.clone(),
            visited: false,
            uploaded: Uploaded::new(setup.personal && sends == Sends::Global),
            optimizers: Default::default(),
            session: setup.session.clone(),
        };
        (id, Box::new(client) as _)
    };
    likelihoods.into_iter().map(client).collect()
}

impl Algorithm for DsvgdConfig {
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

    fn check(&self) -> Result<(), String> {
        match self.factors {
            // The prior is in the density and in the local score.
            Factors::WithPrior => Ok(()),
            Factors::Paper => self.density.check_for_factors(),
        }
    }

    fn one_hot_advice(&self) -> &'static str {
        "with the factors of algorithm.kind = \"dsvgd\" a smaller algorithm.kde_bandwidth makes it worse where clients differ; \
         algorithm.kind = \"newton-dsvgd\" remembers them"
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        VisitCost { steps: self.local.steps(rows).saturating_add(self.distill_steps), draws: 0 }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys().into_iter().chain(self.density.unused_keys(OF_DENSITIES)).collect()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A relay server over the clients.
        let clients = clients(*self, &mut setup, Sends::Global);
        Ok(Halves { server: Box::new(Relay::new(setup.initial, setup.session)), clients })
    }
}
