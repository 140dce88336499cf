//! SCAFFOLD: federated averaging whose clients correct their gradients by those of the other clients.
//!
//! The control variate c_k is client k's estimate of its own gradient, c that of the mean over all clients, both in the
//! units of ∇L̄ and initially 0. Client: L times θ_k ← θ_k − η(∇L̄(θ_k) + c − c_k); then
//! c_k⁺ = c_k − c + (θ − θ_k)/(Lη) (option II). Server: θ ← θ + η_s·mean_{k ∈ S}(θ_k − θ), with equal weights, unlike
//! FedAvg's mean over rows; c ← c + (1/K) Σ_{k ∈ S}(c_k⁺ − c_k). Source: Karimireddy et al. 2020 (Algorithm 1).
//! θ and c are sent to the clients, θ_k and c_k⁺ − c_k to the server; c_k stays at the client. While all replies arrive,
//! Σ_k c_k = K·c.

use fedstein_schema::Literal::Float as F;
use fedstein_schema::{Kind, POSITIVE, key};
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, mixed};
use super::keys::{BATCH_OF_TEN, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, ClientId, Halves, Message, PARTICLES, Reply, Request, ServerHalf, Setup, Watch, as_sent, message_of,
    particles_of,
};
use crate::stein::{Optimizer, Score};

/// The name of c in requests and of c_k⁺ − c_k in replies.
pub(super) const CONTROL: &str = "control";

/// `[algorithm] kind = "scaffold"`; η is the step size of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaffoldConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The server's step size η_s.
    pub server_lr: f64,
}

impl ScaffoldConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "scaffold",
        about: "Averaging of one parameter vector, with control variates (Karimireddy et al. 2020).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH_OF_TEN,
            MINIBATCH,
            MEAN_LOSS,
            key("server_lr", POSITIVE, F(1.0), "Step size of the server along the mean change."),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { plain_gradient_steps: true, changes: &[CONTROL], ..Capabilities::FEDERATED };
}

struct Server {
    theta: Particles,
    /// The server's control variate c.
    control: Particles,
    server_lr: f64,
    /// The number of clients K.
    clients: f64,
    session: Session,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        Ok(message_of(&self.theta)?.with_array(CONTROL, self.control.to_array()?))
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let moved = replies.iter().map(|reply| particles_of(&reply.message, &self.theta, &self.session));
        let theta = mixed(&self.theta, AveragingWeights::Equal(self.server_lr).of(&replies), moved)?;
        let changes = replies.iter().map(|reply| control_of(&reply.message, &self.control, &self.session));
        // This is a sum and not a mean: c keeps the weight 1.
        self.control = mixed(&self.control, (1.0, vec![1.0 / self.clients; replies.len()]), changes)?;
        self.theta = theta;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn state_bytes(&self) -> u64 {
        self.theta.bytes() + self.control.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?.with_particles(CONTROL, &self.control)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.session)?;
        self.control = state.particles(CONTROL, self.control.layout(), &self.session)?;
        Ok(())
    }
}

struct Client {
    local: LocalSteps,
    /// The client's control variate c_k.
    control: Particles,
    /// The factor 1/(Lη) at the step size η of a round without `[lr_schedule]`.
    pace: f64,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let theta = self.local.sent(request)?;
        let global = control_of(&request.message, &self.control, &self.session)?;
        // Scores ascend: −(∇L̄ + c − c_k) is the score plus c_k − c.
        let correction = Score::dense(self.control.clone().zip(global.clone(), |own, global| own - global));
        let score =
            |likelihood: &mut Likelihood, at: &Particles| Ok(likelihood.next_score(at, 0.0).plus(correction.clone()));
        let moved = self.local.run(theta.clone(), request, watch, score)?;

        // c_k⁺ − c_k = (θ − θ_k)/(Lη) − c
        let pace = self.pace / request.step_factor();
        let drift = theta.zip(moved.clone(), |theta, moved| (theta - moved).mul_scalar(pace));
        let change = drift.zip(global, |drift, global| drift - global);
        // Both sides add the same change, so that Σ_k c_k = K·c holds whatever the precision in which it is sent.
        let change = as_sent(change, request.wire, &self.session)?;
        let sent = change.to_array()?;
        // The server would refuse this reply; here the cause is known.
        if sent.values.first_non_finite().is_some() {
            return Err(RunError::Config("the control variate is not finite; optimizer.lr is too small for it".into()));
        }
        let reply = self.local.reply(&moved)?.with_array(CONTROL, sent);
        self.control = self.control.clone().zip(change, |own, change| own + change);
        Ok(reply)
    }

    fn state_bytes(&self) -> u64 {
        self.control.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.local.save()?.with_particles(CONTROL, &self.control)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.control = self.local.particles_in(state, CONTROL)?;
        Ok(())
    }
}

/// Reads a control variate out of a message.
fn control_of(message: &Message, like: &Particles, session: &Session) -> Result<Particles, RunError> {
    Ok(Particles::from_array(message.array(CONTROL)?, like.layout(), session)?)
}

impl Algorithm for ScaffoldConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server and clients whose control variates are 0.
        let Optimizer::Sgd { lr } = setup.svgd.optimizer else {
            return Err(RunError::Config(
                "algorithm kind `scaffold` divides by the step size; it needs optimizer kind `sgd`".into(),
            ));
        };
        let zero = setup.initial.map(|block| block.zeros_like());
        let session = setup.session.clone();
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local): (ClientId, LocalSteps)| {
            let (control, session) = (zero.clone(), session.clone());
            let pace = 1.0 / (self.local.steps(local.likelihood.rows()) as f64 * lr);
            (id, Box::new(Client { local, control, pace, session }) as _)
        };
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(1.0), visit).map(client).collect();
        let server = Server {
            theta: setup.initial,
            control: zero.clone(),
            server_lr: self.server_lr,
            clients: setup.roster.len() as f64,
            session: setup.session,
        };
        Ok(Halves { server: Box::new(server), clients })
    }
}
