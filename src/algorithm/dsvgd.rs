//! DSVGD, distributed Stein variational gradient descent. Source: Kassab & Simeone Algorithm 1, eq. (13)-(16); ALGORITHMS 4.2.
//!
//! The global posterior q ∝ p0·Π_k t_k is carried by particles Θ, client k's factor t_k by local particles Θ_k. In its
//! round the client
//! 1. moves Θ towards the *tilted* density p̃_k ∝ (q/t_k)·exp(−L_k/α): the factors of the other clients, times the
//!    likelihood of its own rows;
//! 2. *distils* the change into its factor, t_k ← t_k·q_new/q: in closed form where one centre has all the weight of each
//!    density, by moving Θ_k with SVGD elsewhere.
//!
//! Densities of particles are kernel density estimates (`cavity.rs`). Θ goes down and up, Θ_k never leaves the client.

pub(super) mod cavity;

use std::sync::Arc;

use fedstein_models::Model;

use super::relay::{Relay, SEEN};
use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::density::kde::{KdeConfig, KdeMode};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, Halves, LocalData, Message, Predictor, Question, Request, Setup, Watch, diagnosed, message_of,
    particles_of,
};
use crate::schedule::indicator;
use crate::stein::{OptimizerState, Score, Svgd};

pub use cavity::Factors;
use cavity::{Cavity, Start};

/// Constants of DSVGD.
#[derive(Clone, Copy, Debug)]
pub struct DsvgdConfig {
    /// N.
    pub particles: usize,
    /// L steps on Θ.
    pub local_steps: usize,
    /// L' steps on Θ_k, where the new factor has no closed form.
    pub distill_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// How particles become densities.
    pub kde: KdeConfig,
    /// ρ ∈ (0, 1] multiplies ∇log q − ∇log t_k.
    pub damping: f64,
    /// Clips the norm of every row of that difference at c·√d/λ.
    pub clip: Option<f64>,
    /// What a factor holds beside the likelihood.
    pub factors: Factors,
    /// Whether a client keeps what it uploads, to predict with it.
    pub personal: bool,
}

/// The name under which a server tells which share of its way a client's Θ goes in q and in the factor; 1 where it is not
/// told.
pub(super) const SHARE: &str = "share";

/// The name under which a server tells how many clients will have been visited after the round, where it has several.
pub(super) const SEEN_AFTER: &str = "seen_after";

/// The names under which a client keeps Θ_k, whether it was ever visited, Θ as it uploaded it, and what its two loops
/// remember.
const FACTOR: &str = "factor";
const UPLOADED: &str = "uploaded";
const VISITED: &str = "visited";
const LOCAL: &str = "local_optimizer";
const DISTILL: &str = "distill_optimizer";

struct Client<B: Backend> {
    config: DsvgdConfig,
    sends: Sends,
    svgd: Svgd,
    reset_optimizer: bool,
    model: Arc<dyn Model>,
    likelihood: Likelihood<B>,
    /// Θ_k; Θ^(0) until the first visit.
    factor: Particles<B>,
    visited: bool,
    /// Θ after the last visit, where the client predicts with it.
    uploaded: Option<Particles<B>>,
    /// Of the local and of the distillation loop.
    optimizers: [OptimizerState; 2],
    session: Session<B>,
    /// K.
    clients: f64,
}

impl<B: Backend> ClientHalf<B> for Client<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let cavity = self.cavity(&theta, request)?;
        // Between visits only an optimiser that goes on is kept: the accumulators of a client are as large as its factor.
        let [mut local, mut distill] = if self.reset_optimizer { Default::default() } else { self.optimizers.clone() };
        self.likelihood.start_visit(request.round);

        // (14): ∇ log p̃_k = ∇ log q − ∇ log t_k − (1/α) ∇L_k, and this client's share of ∇ log p0
        let DsvgdConfig { local_steps, damping, clip, personal, .. } = self.config;
        let (mut score_norm, likelihood) = (None, &mut self.likelihood);
        let mut others = cavity.score(damping, clip, self.svgd.optimizer.longest_step(theta.dim()));
        let tilted = |at: &Particles<B>| {
            let score = likelihood.next_score(at, cavity.prior_weight).plus(others(at)?);
            if score_norm.is_none() {
                score_norm = Some(score.mean_norm(at)?);
            }
            Ok(score)
        };
        let moved = self
            .svgd
            .run::<_, RunError>(theta.clone(), local_steps, &mut local, tilted, |done| watch(done, local_steps))?;
        let effective = cavity.effective_sample_size(&moved)?;

        // (15): t_k,new = t_k·q_new/q. Where the densities' scores are 0 there is nothing to distil.
        if !cavity.zero_score {
            let share = request.message.scalars.get(SHARE).copied().unwrap_or(1.0);
            let taken = match share {
                1.0 => moved.clone(),
                share => theta.zip(moved.clone(), |old, new| old.clone() + (new - old).mul_scalar(share)),
            };
            self.factor = match cavity.factor_in_closed_form(&taken)? {
                Some(factor) => factor,
                None => self.distil(&cavity, &taken, &mut distill, watch)?,
            };
        }
        self.visited = true;
        self.uploaded = personal.then(|| moved.clone());
        if !self.reset_optimizer {
            self.optimizers = [local, distill];
        }
        let reply = match self.sends {
            Sends::Global => message_of(&moved)?,
            Sends::Factor => message_of(&self.factor)?,
        };
        Ok(diagnosed(reply, score_norm, effective))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor<B>, RunError> {
        Ok(self.uploaded.clone().map_or(Predictor::Published, Predictor::Own))
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => self.likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let cavity = self.cavity(&theta, request)?;
                let local = self.likelihood.score_in(&theta, *rows, request.round, cavity.prior_weight);
                let others = cavity.score(self.config.damping, self.config.clip, f64::INFINITY)(&theta)?;
                Score::dense(local).plus(others).evaluate(&theta)
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        self.factor.bytes() + self.uploaded.as_ref().map_or(0, Particles::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.likelihood.save());
        state = state.with_particles(FACTOR, &self.factor)?.with_count(VISITED, usize::from(self.visited));
        if let Some(uploaded) = &self.uploaded {
            state = state.with_particles(UPLOADED, uploaded)?;
        }
        if !self.reset_optimizer {
            state = state.with_optimizer(LOCAL, &self.optimizers[0])?.with_optimizer(DISTILL, &self.optimizers[1])?;
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        self.factor = state.particles(FACTOR, self.factor.layout(), &self.session)?;
        self.visited = state.count(VISITED)? != 0;
        let uploaded = || state.particles(UPLOADED, self.factor.layout(), &self.session);
        self.uploaded = if self.config.personal && self.visited { Some(uploaded()?) } else { None };
        if !self.reset_optimizer {
            self.optimizers = [state.optimizer(LOCAL, &self.session)?, state.optimizer(DISTILL, &self.session)?];
        }
        Ok(())
    }
}

impl<B: Backend> Client<B> {
    /// q/t_k of this round.
    fn cavity(&self, theta: &Particles<B>, request: &Request) -> Result<Cavity<B>, RunError> {
        let start = Start {
            model: &self.model,
            theta,
            factor: &self.factor,
            visited: self.visited,
            round: request.round,
            clients: self.clients,
            seen: request.message.scalars.get(SEEN).copied().unwrap_or(0.0),
            seen_after: request.message.scalars.get(SEEN_AFTER).copied(),
        };
        Cavity::new(self.config.factors, self.config.kde, &start)
    }

    /// L' steps of SVGD on Θ_k towards the new factor.
    fn distil(
        &self,
        cavity: &Cavity<B>,
        moved: &Particles<B>,
        state: &mut OptimizerState,
        watch: Watch,
    ) -> Result<Particles<B>, RunError> {
        let DsvgdConfig { local_steps, distill_steps, .. } = self.config;
        let svgd = Svgd { optimizer: self.svgd.optimizer.scaled(cavity.pace()), ..self.svgd };
        let start = cavity.distillation_start(&self.factor, moved);
        let after = |done| watch(local_steps + done, local_steps + distill_steps);
        let score = cavity.factor_score(moved, svgd.optimizer.longest_step(start.dim()))?;
        svgd.run(start, distill_steps, state, score, after)
    }
}

/// What a client sends back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// The moved Θ.
    Global,
    /// Its factor Θ_k (P-DSVGD).
    Factor,
}

impl DsvgdConfig {
    /// The constants with the form of the factors that these first particles ask for.
    ///
    /// # Errors
    /// The device does not answer.
    pub(super) fn chosen<B: Backend>(self, initial: &Particles<B>) -> Result<Self, RunError> {
        Ok(Self { factors: self.factors.chosen(self.kde, initial)?, ..self })
    }

    /// What the user should know of a form that was chosen for them.
    ///
    /// # Errors
    /// The device does not answer.
    pub(super) fn note<B: Backend>(&self, initial: &Particles<B>) -> Result<Option<String>, RunError> {
        if self.factors != Factors::Auto {
            return Ok(None);
        }
        let form = self.factors.chosen(self.kde, initial)?;
        let (word, d) = (form.word(), initial.dim());
        let densities = match (form, self.kde.mode) {
            (Factors::Growing, _) => "one centre has all the weight at each of the first particles",
            (_, KdeMode::Exact) => "several centres share the weight at the first particles",
            (_, KdeMode::Reference | KdeMode::Off) => "densities that are not exact do not carry the prior",
        };
        Ok(Some(format!(
            "algorithm.factors = \"{word}\" was chosen: in d = {d} {densities} (docs/algorithms.md, \"dsvgd\")"
        )))
    }
}

/// Clients with their factors at Θ^(0); the form of the factors is chosen.
pub(super) fn clients<B: Backend>(
    config: DsvgdConfig,
    setup: &mut Setup<B>,
    sends: Sends,
) -> Vec<Box<dyn ClientHalf<B>>> {
    let likelihoods = setup.likelihoods(config.data);
    let count = likelihoods.len() as f64;
    let client = |likelihood| {
        let client = Client {
            clients: count,
            config,
            sends,
            svgd: setup.svgd,
            reset_optimizer: setup.reset_optimizer,
            model: setup.model.clone(),
            likelihood,
            factor: setup.initial.clone(),
            visited: false,
            uploaded: None,
            optimizers: Default::default(),
            session: setup.session.clone(),
        };
        Box::new(client) as _
    };
    likelihoods.into_iter().map(client).collect()
}

/// A relay server over [`clients`].
pub(super) fn build<B: Backend>(config: DsvgdConfig, mut setup: Setup<B>) -> Result<Halves<B>, RunError> {
    let clients = clients(config.chosen(&setup.initial)?, &mut setup, Sends::Global);
    Ok(Halves { server: Box::new(Relay::new(setup.initial, setup.session)), clients })
}
