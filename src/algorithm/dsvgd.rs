//! DSVGD, distributed Stein variational gradient descent. Source: Kassab & Simeone Algorithm 1, eq. (13)-(16); ALGORITHMS 4.2.
//!
//! The global posterior q ∝ p0·Π_k t_k is carried by particles Θ, client k's factor t_k by local particles Θ_k. In its
//! round the client
//! 1. moves Θ towards the *tilted* density p̃_k ∝ (q/t_k)·exp(−L_k/α): what everybody else says, times its own rows;
//! 2. *distils* the change into its factor: moves Θ_k towards t_k ← t_k·q_new/q.
//!
//! Densities of particles are kernel density estimates. Θ goes down and up, Θ_k never leaves the client. How the prior
//! is dealt to the factors is [`Factors`]; docs/algorithms.md derives why it matters.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use fedstein_models::Model;

use super::relay::{Relay, SEEN};
use super::{
    BATCHES, ClientHalf, Halves, LocalData, Setup, diagnosed, mean, mean_norm, message_of, particles_of, prior_score,
};
use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::density::kde::{Kde, KdeConfig};
use crate::density::{Likelihood, LogDensity, Score};
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{Message, Question, Request};
use crate::particles::Particles;
use crate::schedule::indicator;
use crate::stein::{OptimizerState, Svgd};

/// What a client's factor holds beside its likelihood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factors {
    /// t̂_k = p0^(1/K)·t_k, and p0^(1/K) itself until the client's first visit. A factor has 1/K of λ's precision,
    /// λ_t = √K·λ, and q that of the V factors seen, λ_q = √(K/V)·λ: memory grows with what was said. Ours, beyond the
    /// paper, for the high dimensions in which a single centre speaks in each density estimate.
    #[default]
    Growing,
    /// The same with factors that start at Θ^(0), as if all had been seen: q has λ's precision from the first round on.
    SharedPrior,
    /// t̂_k = p0·t_k, a proper density that starts at Θ^(0); every local score contains p0 (the public code).
    WithPrior,
    /// t_k^(0) = 1 and q^(0) = p0, as printed.
    Paper,
}

/// Constants of DSVGD.
#[derive(Clone, Copy, Debug)]
pub struct DsvgdConfig {
    /// N.
    pub particles: usize,
    /// L steps on Θ.
    pub local_steps: usize,
    /// L' steps on Θ_k.
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
}

/// The names under which a client keeps Θ_k, whether it was ever visited, and what its two loops remember.
const FACTOR: &str = "factor";
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

        let DsvgdConfig { local_steps, distill_steps, kde, .. } = self.config;
        let steps = local_steps + if cavity.silent { 0 } else { distill_steps };
        let optimizer = self.svgd.optimizer.scaled(cavity.pace);
        let distillation = Svgd { optimizer, ..self.svgd };
        let Self { svgd, likelihood, .. } = self;

        // (14): ∇ log p̃_k = ∇ log q − ∇ log t_k − (1/α) ∇L_k, and this client's share of ∇ log p0
        let mut score_norm = None;
        let tilted = |at: &Particles<B>| {
            let score = likelihood.next_score(at, cavity.prior_weight).plus(cavity.score(at)?);
            if score_norm.is_none() {
                score_norm = Some(mean_norm(&score, at)?);
            }
            Ok(score)
        };
        let moved = svgd.run(theta, local_steps, &mut local, tilted, |done| watch(done, steps))?;

        // (15): ∇ log t_k,new = ∇ log q_new − ∇ log q + ∇ log t_k. Where densities are silent there is nothing to distil.
        if !cavity.silent {
            let q_new = Kde::new(&moved, kde)?.widened(cavity.widening_after);
            // A growing factor has no particles of its own before its first visit: it begins where q has got to.
            let fresh = self.config.factors == Factors::Growing && !self.visited;
            let start = if fresh { moved.clone() } else { self.factor.clone() };
            let distilled = |at: &Particles<B>| Ok(q_new.score(at)?.minus(cavity.difference(at)?));
            let after = |done| watch(local_steps + done, steps);
            self.factor = distillation.run(start, distill_steps, &mut distill, distilled, after)?;
        }
        self.visited = true;
        if !self.reset_optimizer {
            self.optimizers = [local, distill];
        }
        let reply = match self.sends {
            Sends::Global => message_of(&moved)?,
            Sends::Factor => message_of(&self.factor)?,
        };
        Ok(diagnosed(reply, score_norm, cavity.effective_sample_size(&moved)?))
    }

    fn answer(&mut self, request: &Request, question: &Question) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let score = match question {
            Question::LikelihoodScore { rows, .. } => self.likelihood.score_in(&theta, *rows, request.round, 0.0),
            Question::Discrepancy { rows, .. } => {
                let cavity = self.cavity(&theta, request)?;
                let local = self.likelihood.score_in(&theta, *rows, request.round, cavity.prior_weight);
                Score::dense(local).plus(cavity.score(&theta)?).evaluate(&theta)
            }
        };
        indicator::answer(question, &theta, &score)
    }

    fn state_bytes(&self) -> u64 {
        self.factor.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_part(BATCHES, self.likelihood.save());
        state = state.with_particles(FACTOR, &self.factor)?.with_count(VISITED, usize::from(self.visited));
        if !self.reset_optimizer {
            state = state.with_optimizer(LOCAL, &self.optimizers[0])?.with_optimizer(DISTILL, &self.optimizers[1])?;
        }
        Ok(state)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        self.factor = state.particles(FACTOR, self.factor.layout(), &self.session)?;
        self.visited = state.count(VISITED)? != 0;
        if !self.reset_optimizer {
            self.optimizers = [state.optimizer(LOCAL, &self.session)?, state.optimizer(DISTILL, &self.session)?];
        }
        Ok(())
    }
}

impl<B: Backend> Client<B> {
    /// q/t_k of this round, with the centres fixed at its start.
    fn cavity(&self, theta: &Particles<B>, request: &Request) -> Result<Cavity<B>, RunError> {
        let DsvgdConfig { kde, damping, clip, factors, .. } = self.config;
        let (q, t) = (Kde::new(theta, kde)?, Kde::new(&self.factor, kde)?);
        let silent = q.is_silent() && t.is_silent();
        let (clients, visited) = (self.clients, f64::from(u8::from(self.visited)));
        let seen = request.message.scalars.get(SEEN).copied().unwrap_or(0.0);
        let seen_after = seen + 1.0 - visited;
        let cavity = Cavity {
            q: None,
            t: None,
            prior: None,
            prior_weight: 1.0,
            widening_after: 1.0,
            pace: 1.0,
            silent,
            damping,
            clip,
        };
        // Silent densities carry no prior either: then the local score has to contain all of it.
        Ok(match if silent { Factors::WithPrior } else { factors } {
            Factors::Growing => Cavity {
                q: (seen > 0.0).then(|| q.widened((clients / seen).sqrt())),
                t: self.visited.then(|| t.widened(clients.sqrt())),
                // p0^((K−V)/K) of those not seen, and this client's own share where t̂_k divides it out.
                prior_weight: (clients - seen + visited) / clients,
                widening_after: (clients / seen_after).sqrt(),
                pace: seen_after,
                ..cavity
            },
            Factors::SharedPrior => Cavity {
                q: Some(q),
                t: Some(t.widened(clients.sqrt())),
                prior_weight: 1.0 / clients,
                pace: clients,
                ..cavity
            },
            Factors::WithPrior => Cavity { q: Some(q), t: Some(t), ..cavity },
            Factors::Paper => Cavity {
                q: (request.round > 1).then_some(q),
                t: self.visited.then_some(t),
                prior: (request.round == 1).then(|| self.model.clone()),
                prior_weight: 0.0,
                ..cavity
            },
        })
    }
}

/// The cavity q/t_k as particles see it.
struct Cavity<B: Backend> {
    /// The particles' part of q; `None` where nothing has been said.
    q: Option<Kde<B>>,
    /// The particles' part of t_k; `None` where the client has said nothing.
    t: Option<Kde<B>>,
    /// p0 in the place of q.
    prior: Option<Arc<dyn Model>>,
    /// How much of ∇ log p0 the local score contains.
    prior_weight: f64,
    /// What multiplies λ in q after the visit.
    widening_after: f64,
    /// How many times as far as Θ the particles of t_k have to go: a factor with 1/V of q's precision moves V times.
    pace: f64,
    /// Both densities say nothing anywhere.
    silent: bool,
    damping: f64,
    clip: Option<f64>,
}

impl<B: Backend> Cavity<B> {
    /// ∇ log q − ∇ log t_k.
    fn difference(&self, at: &Particles<B>) -> Result<Score<B>, RunError> {
        let q = match (&self.q, &self.prior) {
            (Some(q), _) => q.score(at)?,
            (None, Some(model)) => prior_score(&**model, at, 1.0),
            (None, None) => Score::zero(at.count()),
        };
        match &self.t {
            Some(t) => Ok(q.minus(t.score(at)?)),
            None => Ok(q),
        }
    }

    /// How many of q's particles speak at a θ_i, on average; `None` where q is no density of particles.
    fn effective_sample_size(&self, at: &Particles<B>) -> Result<Option<f64>, RunError> {
        match &self.q {
            Some(q) if !self.silent => Ok(Some(mean(&q.effective_sample_size(at)?))),
            _ => Ok(None),
        }
    }

    /// ρ·(∇ log q − ∇ log t_k), clipped.
    fn score(&self, at: &Particles<B>) -> Result<Score<B>, RunError> {
        let score = self.difference(at)?.times(self.damping);
        let Some(clip) = self.clip else { return Ok(score) };
        let lambda = self.q.as_ref().or(self.t.as_ref()).map_or(1.0, Kde::lambda);
        Ok(score.clipped(at, clip * (at.dim() as f64).sqrt() / lambda)?)
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

/// Clients with their factors at Θ^(0).
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
            optimizers: Default::default(),
            session: setup.session.clone(),
        };
        Box::new(client) as _
    };
    likelihoods.into_iter().map(client).collect()
}

/// A relay server over [`clients`].
pub(super) fn build<B: Backend>(config: DsvgdConfig, mut setup: Setup<B>) -> Halves<B> {
    let clients = clients(config, &mut setup, Sends::Global);
    Halves { server: Box::new(Relay::new(setup.initial, setup.session)), clients }
}
