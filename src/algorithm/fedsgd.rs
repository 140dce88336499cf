//! Federated gradient steps: one parameter vector, one step per round along the clients' gradients.
//!
//! Client: the gradient of (1/N_k) Σ_i log p(y_i | x_i, θ) over all its rows. Server: θ ← step(θ, Σ_{k ∈ S} N_k g_k /
//! Σ_{k ∈ S} N_k), with the optimiser of the config. Source: McMahan et al. 2017 as in Kassab & Simeone section 6.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, mixed};
use super::kind::{Algorithm, Capabilities, VisitCost};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, Halves, LocalData, Message, OPTIMIZER, PARTICLES, ROWS, Reply, Request, ServerHalf, Setup, Watch,
    message_of, particles_of,
};
use crate::rows::{Order, Rows};
use crate::stein::{Optimizer, OptimizerState, SvgdError};

/// `[algorithm] kind = "fedsgd"`: it has no constants of its own.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedSgdConfig {}

impl FedSgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedsgd",
        about: "Averaging of the gradient of one parameter vector (McMahan et al. 2017).",
        keys: &[],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities { changes: &[PARTICLES], ..Capabilities::FEDERATED };
}

struct Server {
    theta: Particles,
    optimizer: Optimizer,
    /// The factor of its step size in the round.
    step_factor: f64,
    state: OptimizerState,
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
        let gradients = replies.iter().map(|reply| particles_of(&reply.message, &self.theta, &self.session));
        let zero = self.theta.map(|block| block.zeros_like());
        let gradient = mixed(&zero, AveragingWeights::Rows.of(&replies), gradients)?;
        let optimizer = self.optimizer.scaled(self.step_factor);
        self.theta = optimizer.step(self.theta.clone(), gradient, &mut self.state);
        if self.theta.squared_norms()?.iter().all(|norm| norm.is_finite()) {
            return Ok(());
        }
        Err(SvgdError::NotFinite { step: self.state.steps, particle: 0 }.into())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?.with_optimizer(OPTIMIZER, &self.state)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.session)?;
        self.state = state.optimizer(OPTIMIZER, &self.session)?;
        Ok(())
    }
}

struct Client {
    likelihood: Likelihood,
    like: Particles,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = particles_of(&request.message, &self.like, &self.session)?;
        let gradient = self.likelihood.score_in(&theta, Rows::Full, request.round, 0.0);
        watch(1, 1);
        Ok(message_of(&gradient)?.with_scalar(ROWS, self.likelihood.rows() as f64))
    }

    /// The state is empty, because every round reads all rows.
    fn save(&self) -> Result<State, RunError> {
        Ok(State::default())
    }

    fn restore(&mut self, _state: &State) -> Result<(), RunError> {
        Ok(())
    }
}

impl Algorithm for FedSgdConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, _rows: usize) -> VisitCost {
        VisitCost { steps: 1, draws: 0 }
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // The server makes the steps, and the clients compute gradients.
        // The score is the mean over rows; the batch size has no effect where all rows are read.
        let data = LocalData { batch: 1, order: Order::default(), scale: LikelihoodScale::Mean, temperature: 1.0 };
        let likelihoods = setup.likelihoods(data);
        let client = |(id, likelihood)| {
            let (like, session) = (setup.initial.clone(), setup.session.clone());
            (id, Box::new(Client { likelihood, like, session }) as _)
        };
        let clients = likelihoods.into_iter().map(client).collect();
        let (optimizer, state) = (setup.svgd.optimizer, OptimizerState::default());
        let server =
            Server { theta: setup.initial.clone(), optimizer, step_factor: 1.0, state, session: setup.session.clone() };
        Ok(Halves { server: Box::new(server), clients })
    }
}
