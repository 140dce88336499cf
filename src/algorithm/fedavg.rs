//! Federated averaging: one parameter vector, no prior, no uncertainty of its own.
//!
//! Client: L steps on −(N_k/B) Σ_{i ∈ batch} log p(y_i | x_i, θ). Server: θ ← Σ_{k ∈ S} N_k θ_k / Σ_{k ∈ S} N_k.
//! Source: McMahan et al. 2017 as in Kassab & Simeone section 6.

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Kind, key};
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{self, LocalLoop};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Halves, Message, PARTICLES, ROWS, Reply, ServerHalf, Setup, message_of, particles_of};

fedstein_schema::words! {
    /// The way in which the server combines the replies.
    #[derive(Default)]
    pub enum Mix {
        /// θ ← Σ N_k θ_k / Σ N_k over the selected clients; a single one replaces θ.
        #[default]
        Replace = "replace",
        /// θ ← θ + Σ_k (N_k/N_tot)(θ_k − θ), as in the DSVGD code: damped by about 1/K for one client a round.
        Reference = "reference",
    }
}

/// `[algorithm] kind = "fedavg"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedAvgConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The way in which the server combines the replies.
    pub mix: Mix,
}

impl FedAvgConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedavg",
        about: "Averaging of one parameter vector (McMahan et al. 2017).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            key(
                "mix",
                Choice(Mix::WORDS),
                T(Mix::Replace.word()),
                "A single client's parameters replace the server's, or are averaged with them by the client's share of all rows.",
            )
            .reference(T(Mix::Reference.word())),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities::FEDERATED;
}

/// The weights of the replies in an average.
#[derive(Clone, Copy, Debug)]
pub(super) enum AveragingWeights {
    /// The weights N_k / Σ_{k ∈ S} N_k.
    Rows,
    /// The weights N_k / N_tot, with N_tot the rows of all clients.
    RowsOfAll(f64),
    /// The weights β/|S|.
    Equal(f64),
}

impl AveragingWeights {
    /// The weight of the old θ and the weight of every reply; together they sum to 1.
    pub fn of(self, replies: &[Reply]) -> (f64, Vec<f64>) {
        let rows = |reply: &Reply| reply.message.scalars.get(ROWS).copied().unwrap_or(0.0);
        let selected: f64 = replies.iter().map(rows).sum();
        let by_rows = |total: f64| replies.iter().map(|reply| rows(reply) / total).collect();
        match self {
            // No client has a row, so θ stays as it is.
            Self::Rows if selected <= 0.0 => (1.0, vec![0.0; replies.len()]),
            Self::Rows => (0.0, by_rows(selected)),
            Self::RowsOfAll(total) => (1.0 - selected / total, by_rows(total)),
            Self::Equal(step) => (1.0 - step, vec![step / replies.len() as f64; replies.len()]),
        }
    }
}

/// The sum keep·θ + Σ_k w_k θ_k of parameters `[N, d]`.
///
/// # Errors
/// An item of `moved` is an error.
pub(super) fn mixed(
    theta: &Particles,
    (keep, weights): (f64, Vec<f64>),
    moved: impl IntoIterator<Item = Result<Particles, RunError>>,
) -> Result<Particles, RunError> {
    let start = theta.map(|block| block.mul_scalar(keep));
    weights
        .into_iter()
        .zip(moved)
        .try_fold(start, |sum, (weight, theta_k)| Ok(sum.zip(theta_k?, |sum, block| sum + block.mul_scalar(weight))))
}

/// A server that sends one parameter vector to every client and replaces it by the mean of their replies.
pub(super) struct Server {
    theta: Particles,
    weights: AveragingWeights,
    session: Session,
}

impl Server {
    /// A server that starts from the initial parameters `[1, d]`.
    pub fn new(setup: &Setup, weights: AveragingWeights) -> Self {
        Self { theta: setup.initial.clone(), weights, session: setup.session.clone() }
    }
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let moved = replies.iter().map(|reply| particles_of(&reply.message, &self.theta, &self.session));
        self.theta = mixed(&self.theta, self.weights.of(&replies), moved)?;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.session)?;
        Ok(())
    }
}

impl Algorithm for FedAvgConfig {
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
        // A server with one parameter vector and clients that step on their own rows.
        let weights = match self.mix {
            Mix::Replace => AveragingWeights::Rows,
            Mix::Reference => AveragingWeights::RowsOfAll(setup.roster.iter().sum::<usize>() as f64),
        };
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let clients = local::clients(&mut setup, self.local.data(1.0), visit, 0.0);
        Ok(Halves { server: Box::new(Server::new(&setup, weights)), clients })
    }
}
