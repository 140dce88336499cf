//! P-DSVGD, DSVGD with several clients per round. Source: Kassab & Simeone Algorithm 5, eq. (29).
//!
//! Every scheduled client does both loops of DSVGD from the server's Θ and sends its *factor* Θ_k. The server moves Θ
//! by L_s steps of SVGD towards the product of prior and factors, q(θ) ∝ p0(θ)·Π_k t_k(θ).

use std::collections::BTreeMap;
use std::sync::Arc;

use fedstein_models::Model;
use fedstein_schema::Literal::{Int as I, Text as T};
use fedstein_schema::{COUNT, Kind, key};
use serde::{Deserialize, Serialize};

use super::dsvgd::{self, DISTILL_STEPS, DsvgdConfig, FACTORS, Factors, Sends};
use super::keys::{
    BATCH, KDE, KDE_BANDWIDTH, KDE_CLIP, KDE_DAMPING, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, MINIBATCH,
    PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, ONE_FACTOR_EACH, Replies, UnusedKeys, VisitCost};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::kde::Kde;
use crate::density::{KdeBandwidth, KdeMode, prior_score};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, Halves, Message, PARTICLES, Reply, ServerHalf, Setup, message_of, particles_of};
use crate::stein::{OptimizerState, Score, Svgd};

/// `[algorithm] kind = "p-dsvgd"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PDsvgdConfig {
    /// The configuration of the clients.
    #[serde(flatten)]
    pub client: DsvgdConfig,
    /// The number of steps L_s of the server on Θ.
    pub server_steps: usize,
}

impl PDsvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "p-dsvgd",
        about: "DSVGD with several clients per round.",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            DISTILL_STEPS,
            key(
                "server_steps",
                COUNT,
                I(200),
                "Steps L_s of the server towards the product of the factors ([D]: 200).",
            ),
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            KDE,
            KDE_BANDWIDTH,
            KDE_DAMPING,
            KDE_CLIP,
            FACTORS.default(T(Factors::Paper.word())),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        model_prior: true,
        tilted: true,
        replies: Replies::Different(ONE_FACTOR_EACH),
        ..Capabilities::FEDERATED
    };
}

struct Server {
    config: PDsvgdConfig,
    svgd: Svgd,
    /// The factor of its step size in the round.
    step_factor: f64,
    model: Arc<dyn Model>,
    theta: Particles,
    /// The factors Θ_k `[N, d]` of all clients visited so far, in the order of the clients.
    factors: BTreeMap<ClientId, Particles>,
    session: Session,
}

impl ServerHalf for Server {
    fn set_step_factor(&mut self, factor: f64) {
        self.step_factor = factor;
    }

    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            let factor = particles_of(&reply.message, &self.theta, &self.session)?;
            self.factors.insert(reply.client, factor);
        }
        let DsvgdConfig { density, factors, .. } = self.config.client;
        let kde = density.kde();
        // The power of p0 that the visited factors leave over.
        let prior_weight = match factors {
            Factors::WithPrior => 1.0 - self.factors.len() as f64,
            Factors::Paper => 1.0,
        };
        let svgd = self.svgd.scaled(self.step_factor);
        let longest_step = svgd.optimizer.longest_step(self.theta.dim());
        let density = |factor| Ok(Kde::new(factor, kde)?.evaluator(longest_step));
        let mut densities = self.factors.values().map(density).collect::<Result<Vec<_>, RunError>>()?;
        let prior = |at: &Particles| match prior_weight {
            0.0 => Score::zero(at.count()),
            weight => prior_score(&*self.model, at, weight),
        };
        // (29): ∇ log q = ∇ log p0 + Σ_k ∇ log t_k
        let score =
            |at: &Particles| densities.iter_mut().try_fold(prior(at), |sum, density| Ok(sum.plus(density.score(at)?)));
        let state = &mut OptimizerState::default();
        self.theta = svgd.run::<RunError>(self.theta.clone(), self.config.server_steps, state, score, |_| {})?;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn state_bytes(&self) -> u64 {
        self.theta.bytes() + self.factors.values().map(Particles::bytes).sum::<u64>()
    }

    fn save(&self) -> Result<State, RunError> {
        let mut state = State::default().with_particles(PARTICLES, &self.theta)?;
        for (client, factor) in &self.factors {
            state = state.with_particles(&factor_of(*client), factor)?;
        }
        Ok(state.with_counts(VISITED, self.factors.keys().copied()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let layout = self.theta.layout().clone();
        let factor = |client| Ok((client, state.particles(&factor_of(client), &layout, &self.session)?));
        self.theta = state.particles(PARTICLES, &layout, &self.session)?;
        self.factors = state.counts(VISITED)?.into_iter().map(factor).collect::<Result<_, RunError>>()?;
        Ok(())
    }
}

/// The name under which the server keeps which clients have a factor.
const VISITED: &str = "visited";

/// The name under which a client's factor is kept.
fn factor_of(client: ClientId) -> String {
    format!("factor_{client}")
}

impl Algorithm for PDsvgdConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.client.particles
    }

    fn temperature(&self) -> f64 {
        self.client.temperature
    }

    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        self.client.kde_bandwidth()
    }

    fn check(&self) -> Result<(), String> {
        if self.client.density.kde == KdeMode::Off {
            return Err(
                "algorithm kind `p-dsvgd` learns through its clients' densities alone; `algorithm.kde` must be \"exact\""
                    .into(),
            );
        }
        self.client.density.check_for_factors()
    }

    fn one_hot_advice(&self) -> &'static str {
        self.client.one_hot_advice()
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.client.visit_cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.client.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server that multiplies factors, over DSVGD's clients.
        if Kde::new(&setup.initial, self.client.density.kde())?.is_negligible() {
            let d = setup.initial.dim();
            return Err(RunError::Config(format!(
                "algorithm kind `p-dsvgd`: the server learns through the clients' densities alone, and with these values of \
                 `algorithm.kde` and `algorithm.kde_bandwidth` they are next to 0 in d = {d} dimensions; use `algorithm.kde` = \"exact\""
            )));
        }
        let clients = dsvgd::clients(self.client, &mut setup, Sends::Factor);
        let server = Server {
            config: *self,
            svgd: setup.svgd,
            step_factor: 1.0,
            model: setup.model.clone(),
            theta: setup.initial,
            factors: BTreeMap::new(),
            session: setup.session,
        };
        Ok(Halves { server: Box::new(server), clients })
    }
}
