//! FedProx: federated averaging in which a proximal term keeps clients near the parameters that they received.
//!
//! Client: L steps on the mean loss L̄ plus (μ/2)‖θ_k − θ‖², by the score −∇L̄(θ_k) + μ(θ − θ_k). Server: as FedAvg.
//! Source: Li et al. 2020 (Algorithm 2). θ is sent to the clients, θ_k to the server.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, Server};
use super::keys::{BATCH_OF_TEN, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH, PROXIMAL};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps, pull};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, Request, Setup, Watch};

/// `[algorithm] kind = "fedprox"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedProxConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The weight μ > 0 of the proximal term.
    pub proximal: f64,
}

impl FedProxConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedprox",
        about: "Averaging of one parameter vector, with a proximal term at the clients (Li et al. 2020).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH_OF_TEN,
            MINIBATCH,
            MEAN_LOSS,
            PROXIMAL.doc("μ: weight of the distance from the shared parameters."),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities::FEDERATED;
}

struct Client {
    local: LocalSteps,
    proximal: f64,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let (sent, mu) = (self.local.sent(request)?, self.proximal);
        let score =
            |likelihood: &mut Likelihood, at: &Particles| Ok(likelihood.next_score(at, 0.0).plus(pull(at, &sent, mu)));
        let moved = self.local.run(sent.clone(), request, watch, score)?;
        self.local.reply(&moved)
    }

    fn save(&self) -> Result<State, RunError> {
        self.local.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)
    }
}

impl Algorithm for FedProxConfig {
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
        // FedAvg's server over clients with a proximal term.
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local)| (id, Box::new(Client { local, proximal: self.proximal }) as _);
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(1.0), visit).map(client).collect();
        Ok(Halves { server: Box::new(Server::new(&setup, AveragingWeights::Rows)), clients })
    }
}
