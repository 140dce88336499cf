//! FedAdam: federated averaging whose server takes Adam's step along the mean change of its clients.
//!
//! Client: as FedAvg. Server: Δ = Σ_{k ∈ S} N_k (θ_k − θ) / Σ_{k ∈ S} N_k, m ← β1 m + (1 − β1) Δ,
//! v ← β2 v + (1 − β2) Δ², θ ← θ + η m/(√v + τ), with m = 0 and v = τ² at the start and without correction of the bias.
//! Source: Reddi et al. 2021, Algorithm 2 (FedAdam), whose mean over clients is weighted by rows as in their
//! experiments. θ is sent to the clients, θ_k to the server.

use fedstein_schema::Accepts::Float;
use fedstein_schema::Literal::Float as F;
use fedstein_schema::{Interval, Kind, POSITIVE, key};
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, mixed};
use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{self, LocalLoop};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Halves, Message, PARTICLES, Reply, ServerHalf, Setup, message_of, particles_of};

/// `[algorithm] kind = "fedadam"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedAdamConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The server's step size η.
    pub server_lr: f64,
    /// The decay β1 of the average change.
    pub server_beta1: f64,
    /// The decay β2 of the average of squares.
    pub server_beta2: f64,
    /// The adaptivity τ.
    pub adaptivity: f64,
}

impl FedAdamConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedadam",
        about: "Averaging of one parameter vector, with Adam's step at the server (Reddi et al. 2021).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            key(
                "server_lr",
                POSITIVE,
                F(0.01),
                "η: step size of the server, about the length of its step in each coordinate.",
            ),
            key("server_beta1", Float(Interval::DECAY), F(0.9), "β1: decay of the average change."),
            key("server_beta2", Float(Interval::DECAY), F(0.99), "β2: decay of the average of squares."),
            key(
                "adaptivity",
                POSITIVE,
                F(1e-3),
                "τ: for changes well below τ, the steps are proportional to the changes.",
            ),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities::FEDERATED;
}

/// The names under which the server keeps m and v.
const MOMENTUM: &str = "momentum";
const SQUARES: &str = "squares";

struct Server {
    config: FedAdamConfig,
    theta: Particles,
    momentum: Particles,
    squares: Particles,
    session: Session,
}

impl Server {
    fn new(config: FedAdamConfig, theta: Particles, session: Session) -> Self {
        let momentum = theta.map(|block| block.zeros_like());
        let squares = theta.map(|block| block.full_like(config.adaptivity * config.adaptivity));
        Self { config, theta, momentum, squares, session }
    }
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let FedAdamConfig { server_lr, server_beta1: beta1, server_beta2: beta2, adaptivity, .. } = self.config;
        let moved = replies.iter().map(|reply| particles_of(&reply.message, &self.theta, &self.session));
        let mean = mixed(&self.theta, AveragingWeights::Rows.of(&replies), moved)?;
        let change = mean.zip(self.theta.clone(), |mean, theta| mean - theta);

        let average = |decay: f64, old: &Particles, new: Particles| {
            old.clone().zip(new, |old, new| old.mul_scalar(decay) + new.mul_scalar(1.0 - decay))
        };
        self.momentum = average(beta1, &self.momentum, change.clone());
        self.squares = average(beta2, &self.squares, change.map(|block| block.square()));
        let scale = self.squares.map(|block| block.sqrt().add_scalar(adaptivity));
        let step = self.momentum.clone().zip(scale, |momentum, scale| momentum / scale);
        self.theta = self.theta.clone().zip(step, |theta, step| theta + step.mul_scalar(server_lr));
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn state_bytes(&self) -> u64 {
        self.theta.bytes() + self.momentum.bytes() + self.squares.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_particles(PARTICLES, &self.theta)?;
        Ok(state.with_particles(MOMENTUM, &self.momentum)?.with_particles(SQUARES, &self.squares)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let read = |name: &str| state.particles(name, self.theta.layout(), &self.session);
        (self.theta, self.momentum, self.squares) = (read(PARTICLES)?, read(MOMENTUM)?, read(SQUARES)?);
        Ok(())
    }
}

impl Algorithm for FedAdamConfig {
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
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let clients = local::clients(&mut setup, self.local.data(1.0), visit, 0.0);
        Ok(Halves { server: Box::new(Server::new(*self, setup.initial, setup.session)), clients })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::Layout;

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision};
    use crate::density::LikelihoodScale;
    use crate::protocol::{Ask, ROWS, Request};
    use crate::rows::Order;

    const CONFIG: FedAdamConfig = FedAdamConfig {
        local: LocalConfig {
            local_steps: 1,
            local_epochs: None,
            batch: 1,
            minibatch: Order::Iid,
            likelihood_scale: LikelihoodScale::Full,
        },
        server_lr: 0.5,
        server_beta1: 0.9,
        server_beta2: 0.99,
        adaptivity: 0.25,
    };

    /// How each client of a round has moved, and how many rows it has.
    type Changes<'a> = [(&'a [f64], f64)];

    /// A server at θ = 0 `[1, d]`, and a function that runs a round; `changes` holds the change and the rows of each
    /// client.
    fn server(d: usize) -> (Server, impl Fn(&mut Server, &Changes<'_>)) {
        let session = Session::open::<Flex>(Precision::F64).unwrap();
        let layout = Arc::new(Layout::new([("theta", [d].as_slice())]));
        let upload = {
            let (layout, session) = (layout.clone(), session.clone());
            move |values: Vec<f64>| {
                let array = Array { shape: vec![1, d], values: Values::F64(values) };
                Particles::from_array(&array, &layout, &session).unwrap()
            }
        };
        let server = Server::new(CONFIG, upload(vec![0.0; d]), session);
        let round = move |server: &mut Server, changes: &Changes<'_>| {
            let theta = server.theta.to_array().unwrap().values.to_f64();
            let reply = |(client, (change, rows)): (usize, &(&[f64], f64))| {
                let moved = upload(theta.iter().zip(*change).map(|(theta, change)| theta + change).collect());
                let request = Request::new(1, client, Ask::Train, Message::default());
                request.reply(message_of(&moved).unwrap().with_scalar(ROWS, *rows))
            };
            server.aggregate(changes.iter().enumerate().map(reply).collect()).unwrap();
        };
        (server, round)
    }

    fn values(server: &Server) -> Vec<f64> {
        server.theta.to_array().unwrap().values.to_f64()
    }

    #[test]
    fn two_rounds_have_the_expected_values() {
        let (mut server, round) = server(1);
        // Δ = (3·0.4 + 1·0)/4 = 0.3; m = 0.03; v = 0.99·0.0625 + 0.01·0.09 = 0.062775.
        round(&mut server, &[(&[0.4], 3.0), (&[0.0], 1.0)]);
        let first = 0.5 * 0.03 / (0.062775f64.sqrt() + 0.25);
        assert!((values(&server)[0] - first).abs() < 1e-12, "{:?}", values(&server));
        // Δ = −0.1; m = 0.9·0.03 − 0.01 = 0.017; v = 0.99·0.062775 + 0.01·0.01 = 0.06224725.
        round(&mut server, &[(&[-0.1], 7.0)]);
        let second = first + 0.5 * 0.017 / (0.06224725f64.sqrt() + 0.25);
        assert!((values(&server)[0] - second).abs() < 1e-12, "{:?}", values(&server));
    }

    #[test]
    fn under_a_constant_change_the_step_of_each_coordinate_converges_to_its_closed_form() {
        let (mut server, round) = server(2);
        let change = [4.0, -0.05];
        for _ in 0..3000 {
            round(&mut server, &[(&change, 1.0)]);
        }
        let before = values(&server);
        round(&mut server, &[(&change, 1.0)]);
        // m → Δ and √v → |Δ|: the step is η·Δ/(|Δ| + τ).
        for ((after, before), change) in values(&server).iter().zip(before).zip(change) {
            let want = 0.5 * change / (change.abs() + 0.25);
            assert!((after - before - want).abs() < 1e-6, "{} instead of {want}", after - before);
        }
    }

    #[test]
    fn a_restored_server_continues_identically() {
        let ((mut straight, round), (mut resumed, _)) = (server(2), server(2));
        round(&mut straight, &[(&[1.0, -2.0], 2.0)]);
        resumed.restore(&straight.save().unwrap()).unwrap();
        for server in [&mut straight, &mut resumed] {
            round(server, &[(&[0.5, 0.5], 1.0)]);
        }
        assert_eq!(values(&straight), values(&resumed));
    }
}
