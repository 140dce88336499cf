//! SVGD of every client on its own rows: what a client reaches without the federation, to compare a method with.
//!
//! Θ_k ~ p0, the same draw for all clients; L steps in each of its rounds:
//! S = ∇ log p0 + (1/α)(N_k/B) Σ_{i ∈ batch} ∇ log p(y_i | x_i, θ); Θ_k ← step(Θ_k, φ(Θ_k, S)).
//! Source: Liu & Wang 2016, for each client alone.
//!
//! Nothing is exchanged: the server sends no parameters, and its particles stay those of the start. The clients' own
//! predictors, with `evaluation.personal`, are those of the method. A client that was never selected has the initial
//! particles.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
};
use super::kind::{Algorithm, Capabilities, Replies, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, Halves, Message, PARTICLES, Predictor, ROWS, Reply, Request, ServerHalf, Setup, Watch,
};

/// `[algorithm] kind = "local-svgd"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalSvgdConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
}

impl LocalSvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "local-svgd",
        about: "SVGD of every client on its own rows alone, without any exchange: the baseline of a federation.",
        keys: &[PARTICLE_COUNT, LOCAL_STEPS, LOCAL_EPOCHS, BATCH, MINIBATCH, LIKELIHOOD_SCALE, TEMPERATURE],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        personal: true,
        untrained_part: true,
        sends_nothing: true,
        model_prior: true,
        replies: Replies::Different(NOTHING_SENT),
        unclipped: Some(NOTHING_SENT),
        ..Capabilities::FEDERATED
    };
}

/// Why no rule for replies applies.
const NOTHING_SENT: &str = "clients send no parameters";

/// A server without parameters to send.
struct Server {
    initial: Particles,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        Ok(Message::default())
    }

    fn aggregate(&mut self, _replies: Vec<Reply>) -> Result<(), RunError> {
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.initial
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default())
    }

    fn restore(&mut self, _state: &State) -> Result<(), RunError> {
        Ok(())
    }
}

struct Client {
    local: LocalSteps,
    /// Θ_k, `[N, d]`.
    own: Particles,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let score = |likelihood: &mut Likelihood, at: &Particles| Ok(likelihood.next_score(at, 1.0));
        self.own = self.local.run(self.own.clone(), request, watch, score)?;
        Ok(Message::default().with_scalar(ROWS, self.local.likelihood.rows() as f64))
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(Predictor::Own(self.own.clone()))
    }

    fn state_bytes(&self) -> u64 {
        self.own.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.local.save()?.with_particles(PARTICLES, &self.own)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.own = self.local.particles_in(state, PARTICLES)?;
        Ok(())
    }
}

impl Algorithm for LocalSvgdConfig {
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

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server with nothing to send, and clients with particles of their own.
        let initial = setup.initial.clone();
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local)| (id, Box::new(Client { local, own: initial.clone() }) as _);
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(self.temperature), visit).map(client).collect();
        Ok(Halves { server: Box::new(Server { initial: setup.initial }), clients })
    }
}
