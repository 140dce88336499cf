//! DSVGD, distributed Stein variational gradient descent. Source: [D] Algorithm 1, eq. (13)-(16); ALGORITHMS 4.2.
//!
//! The global posterior q ∝ p0·Π_k t_k is carried by particles Θ, client k's factor t_k by local particles Θ_k. In its
//! round the client
//! 1. moves Θ towards the *tilted* density p̃_k ∝ (q/t_k)·exp(−L_k/α): what everybody else says, times its own rows;
//! 2. *distils* the change into its factor: moves Θ_k towards t_k ← t_k·q_new/q.
//!
//! Densities of particles are kernel density estimates. Θ goes down and up, Θ_k never leaves the client.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use fedstein_models::Model;

use super::relay::Relay;
use super::{ClientHalf, Halves, LocalData, Setup, message_of, particles_of};
use crate::backend::{Backend, Session};
use crate::density::kde::{Kde, KdeConfig};
use crate::density::{Likelihood, LogDensity, Score};
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{Message, Request};
use crate::particles::Particles;
use crate::stein::{OptimizerState, Svgd};

/// Where the prior stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factors {
    /// Factors t̂_k = p0·t_k: proper densities that start at Θ^(0); every local score contains p0.
    #[default]
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
    /// Where the prior stands.
    pub factors: Factors,
}

struct Client<B: Backend> {
    config: DsvgdConfig,
    svgd: Svgd,
    reset_optimizer: bool,
    model: Arc<dyn Model>,
    likelihood: Likelihood<B>,
    /// Θ_k; Θ^(0) until the first visit.
    factor: Particles<B>,
    visited: bool,
    optimizer: [OptimizerState; 2],
    session: Session<B>,
}

impl<B: Backend> ClientHalf<B> for Client<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.factor, &self.session)?;
        let first_round = request.round == 1;
        let cavity = self.cavity(&theta, first_round)?;
        if self.reset_optimizer {
            self.optimizer = Default::default();
        }
        self.likelihood.start_visit(request.round);

        let DsvgdConfig { local_steps, distill_steps, .. } = self.config;
        let steps = local_steps + if cavity.is_silent() { 0 } else { distill_steps };
        let Self { svgd, likelihood, optimizer: [local, distill], .. } = self;

        // (14): ∇ log p̃_k = ∇ log q − ∇ log t_k + ∇ log p0 − (1/α) ∇L_k
        let with_prior = cavity.prior == Prior::InLocalScore;
        let tilted = |at: &Particles<B>| Ok(likelihood.next_score(at, with_prior).plus(cavity.score(at)?));
        let moved = svgd.run(theta, local_steps, local, tilted, |done| watch(done, steps))?;

        // (15): ∇ log t_k,new = ∇ log q_new − ∇ log q + ∇ log t_k. Without densities there is nothing to distil.
        if !cavity.is_silent() {
            let q_new = Kde::new(&moved, self.config.kde)?;
            let distilled = |at: &Particles<B>| Ok(q_new.score(at)?.minus(cavity.difference(at)?));
            let factor = self.factor.clone();
            self.factor =
                svgd.run(factor, distill_steps, distill, distilled, |done| watch(local_steps + done, steps))?;
        }
        self.visited = true;
        message_of(&moved)
    }
}

impl<B: Backend> Client<B> {
    /// ∇ log q − ∇ log t_k of this round, with the centres fixed at its start.
    fn cavity(&self, theta: &Particles<B>, first_round: bool) -> Result<Cavity<B>, RunError> {
        let DsvgdConfig { kde, damping, clip, factors, .. } = self.config;
        let paper = factors == Factors::Paper;
        let q = if paper && first_round { None } else { Some(Kde::new(theta, kde)?) };
        let t = if paper && !self.visited { None } else { Some(Kde::new(&self.factor, kde)?) };
        let prior = match (factors, first_round) {
            (Factors::WithPrior, _) => Prior::InLocalScore,
            (Factors::Paper, true) => Prior::IsGlobal,
            (Factors::Paper, false) => Prior::Absent,
        };
        Ok(Cavity { q, t, prior, damping, clip, model: self.model.clone() })
    }
}

/// Where p0 stands in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prior {
    /// In the client's own score (factors with prior).
    InLocalScore,
    /// It *is* q (first round of the printed algorithm).
    IsGlobal,
    /// Already inside q.
    Absent,
}

/// The cavity q/t_k as particles see it.
struct Cavity<B: Backend> {
    q: Option<Kde<B>>,
    t: Option<Kde<B>>,
    prior: Prior,
    damping: f64,
    clip: Option<f64>,
    model: Arc<dyn Model>,
}

impl<B: Backend> Cavity<B> {
    /// Whether both densities say nothing anywhere.
    fn is_silent(&self) -> bool {
        let silent = |kde: &Option<Kde<B>>| kde.as_ref().is_some_and(Kde::is_silent);
        silent(&self.q) && silent(&self.t)
    }

    /// ∇ log q − ∇ log t_k.
    fn difference(&self, at: &Particles<B>) -> Result<Score<B>, RunError> {
        let mut score = match &self.q {
            Some(q) => q.score(at)?,
            None => {
                let zeros = at.blocks().iter().map(|block| block.zeros_like()).collect();
                let prior = self.model.prior().add_score(at.blocks(), zeros);
                Score::dense(Particles::from_blocks(prior, at.layout().clone()))
            }
        };
        if let Some(t) = &self.t {
            score = score.minus(t.score(at)?);
        }
        Ok(score)
    }

    /// ρ·(∇ log q − ∇ log t_k), clipped.
    fn score(&self, at: &Particles<B>) -> Result<Score<B>, RunError> {
        let score = self.difference(at)?.times(self.damping);
        let Some(clip) = self.clip else { return Ok(score) };
        let lambda = self.q.as_ref().or(self.t.as_ref()).map_or(1.0, Kde::lambda);
        let bound = clip * (at.dim() as f64).sqrt() / lambda;
        Ok(score.clipped(at, bound)?)
    }
}

/// A relay server and clients with their factors at Θ^(0).
pub(super) fn build<B: Backend>(config: DsvgdConfig, mut setup: Setup<B>) -> Halves<B> {
    let clients = setup.likelihoods(config.data).into_iter().map(|likelihood| {
        let client = Client {
            config,
            svgd: setup.svgd,
            reset_optimizer: setup.reset_optimizer,
            model: setup.model.clone(),
            likelihood,
            factor: setup.initial.clone(),
            visited: false,
            optimizer: Default::default(),
            session: setup.session.clone(),
        };
        Box::new(client) as _
    });
    let clients = clients.collect();
    Halves { server: Box::new(Relay { particles: setup.initial, session: setup.session }), clients }
}
