//! P-DSVGD, DSVGD with several clients per round. Source: Kassab & Simeone Algorithm 4, eq. (22); ALGORITHMS 4.4.
//!
//! Every scheduled client does both loops of DSVGD from the server's Θ and sends its *factor* Θ_k. The server moves Θ
//! by L_s steps of SVGD towards the product of prior and factors, q(θ) ∝ p0(θ)·Π_k t_k(θ).
//!
//! All clients of a round start from one Θ, and the change of each would by itself move q to the optimum for its own
//! rows. The changes add up: undamped, |S| clients with equal changes move Θ |S| times too far, and rounds diverge. So
//! each factor takes the change of a visit with a share of its displacement, 1/|S| by default: the server then moves Θ
//! by the mean of the clients' displacements. Parallel power EP and PVI damp in the same way; the paper does not.

use std::collections::BTreeMap;
use std::sync::Arc;

use fedstein_models::Model;
use fedstein_schema::Literal::{Float as F, Int as I, Text as T};
use fedstein_schema::{Accepts, COUNT, Interval, Key, Kind, NumberOr, key};
use serde::{Deserialize, Serialize};

use super::dsvgd::{self, DISTILL_STEPS, DsvgdConfig, FACTORS, Factors, SEEN_AFTER, SHARE, Sends};
use super::keys::{
    BATCH, KDE, KDE_BANDWIDTH, KDE_CLIP, KDE_DAMPING, LIKELIHOOD_SCALE, LOCAL_STEPS, MINIBATCH, PARTICLE_COUNT,
    TEMPERATURE,
};
use super::relay::SEEN;
use super::{Algorithm, Capabilities, ONE_FACTOR_EACH, Replies};
use crate::backend::{Backend, Session};
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
    /// The share of a client's displacement of Θ that its factor takes; 1 in the paper.
    pub factor_damping: NumberOr<FactorDampingRule>,
}

/// The rule for the share of a client's displacement that its factor takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactorDampingRule {
    /// One over the number of clients in the round.
    ByClients,
}

const FACTOR_DAMPING: Key = key(
    "factor_damping",
    Accepts::NumberOr(Interval::FRACTION, &["by-clients"]),
    T("by-clients"),
    "Damping of the changes of the clients' factors, which add up because all clients of a round start from the same Θ; `by-clients`: one over the number of clients of the round; 1: undamped ([D]).",
)
.paper(F(1.0))
.reference(F(1.0));

impl PDsvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "p-dsvgd",
        about: "DSVGD with several clients per round.",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            DISTILL_STEPS,
            key(
                "server_steps",
                COUNT,
                I(200),
                "Steps L_s of the server towards the product of the factors ([D]: 200).",
            ),
            FACTOR_DAMPING,
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
    pub const CAPABILITIES: Capabilities =
        Capabilities { tilted: true, replies: Replies::Different(ONE_FACTOR_EACH), ..Capabilities::FEDERATED };
}

struct Server<B: Backend> {
    config: PDsvgdConfig,
    svgd: Svgd,
    model: Arc<dyn Model>,
    theta: Particles<B>,
    /// The factors Θ_k `[N, d]` of all clients visited so far, in the order of the clients.
    factors: BTreeMap<ClientId, Particles<B>>,
    /// The number of clients K.
    clients: f64,
    /// The number |S| of clients of the round, and the number of all clients visited after it.
    asked: usize,
    seen_after: usize,
    session: Session<B>,
}

impl<B: Backend> ServerHalf<B> for Server<B> {
    fn begin(&mut self, _round: usize, clients: &[ClientId]) -> Result<(), RunError> {
        let fresh = clients.iter().filter(|client| !self.factors.contains_key(client)).count();
        (self.asked, self.seen_after) = (clients.len(), self.factors.len() + fresh);
        Ok(())
    }

    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        let share = match self.config.factor_damping {
            NumberOr::Fixed(share) => share,
            NumberOr::Rule(FactorDampingRule::ByClients) => 1.0 / self.asked as f64,
        };
        let message = message_of(&self.theta)?.with_scalar(SEEN, self.factors.len() as f64);
        Ok(message.with_scalar(SEEN_AFTER, self.seen_after as f64).with_scalar(SHARE, share))
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            let factor = particles_of(&reply.message, &self.theta, &self.session)?;
            self.factors.insert(reply.client, factor);
        }
        let DsvgdConfig { density, factors, .. } = self.config.client;
        let kde = density.kde();
        let visited = self.factors.len() as f64;
        // The power of p0 that the visited factors leave over, and the widening of their densities.
        let (prior_weight, widening) = match factors {
            // The share of the prior of a client that was not visited is in no factor yet.
            Factors::SharedPrior | Factors::Growing => (1.0 - visited / self.clients, self.clients.sqrt()),
            Factors::Auto | Factors::WithPrior => (1.0 - visited, 1.0),
            Factors::Paper => (1.0, 1.0),
        };
        let longest_step = self.svgd.optimizer.longest_step(self.theta.dim());
        let density = |factor| Ok(Kde::new(factor, kde)?.widened(widening).evaluator(longest_step));
        let mut densities = self.factors.values().map(density).collect::<Result<Vec<_>, RunError>>()?;
        let prior = |at: &Particles<B>| match prior_weight {
            0.0 => Score::zero(at.count()),
            weight => prior_score(&*self.model, at, weight),
        };
        // (22): ∇ log q = ∇ log p0 + Σ_k ∇ log t_k
        let score = |at: &Particles<B>| {
            densities.iter_mut().try_fold(prior(at), |sum, density| Ok(sum.plus(density.score(at)?)))
        };
        let state = &mut OptimizerState::default();
        self.theta =
            self.svgd.run::<_, RunError>(self.theta.clone(), self.config.server_steps, state, score, |_| {})?;
        Ok(())
    }

    fn particles(&self) -> &Particles<B> {
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
        Ok(state.with_counts(SEEN, self.factors.keys().copied()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let layout = self.theta.layout().clone();
        let factor = |client| Ok((client, state.particles(&factor_of(client), &layout, &self.session)?));
        self.theta = state.particles(PARTICLES, &layout, &self.session)?;
        self.factors = state.counts(SEEN)?.into_iter().map(factor).collect::<Result<_, RunError>>()?;
        Ok(())
    }
}

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
        self.client.check()
    }

    fn one_hot_advice(&self) -> &'static str {
        self.client.one_hot_advice()
    }

    fn note<B: Backend>(&self, initial: &Particles<B>) -> Result<Option<String>, RunError> {
        self.client.note(initial)
    }

    fn build<B: Backend>(&self, mut setup: Setup<B>) -> Result<Halves<B>, RunError> {
        // A server that multiplies factors, over DSVGD's clients.
        if Kde::new(&setup.initial, self.client.density.kde())?.has_zero_score() {
            let d = setup.initial.dim();
            return Err(RunError::Config(format!(
                "algorithm kind `p-dsvgd`: the server learns through the clients' densities alone, and with these values of \
                 `algorithm.kde` and `algorithm.kde_bandwidth` they are 0 in d = {d} dimensions; use `algorithm.kde` = \"exact\""
            )));
        }
        let config = Self { client: self.client.with_chosen_form(&setup.initial)?, ..*self };
        let clients = dsvgd::clients(config.client, &mut setup, Sends::Factor);
        let server = Server {
            config,
            svgd: setup.svgd,
            model: setup.model.clone(),
            theta: setup.initial,
            factors: BTreeMap::new(),
            clients: clients.len() as f64,
            asked: 1,
            seen_after: 1,
            session: setup.session,
        };
        Ok(Halves { server: Box::new(server), clients })
    }
}
