//! Per-FedAvg, first order: federated averaging of parameters from which one gradient step adapts to a client.
//!
//! With two minibatches B1, B2 in every step, client: L times θ' = θ_k − α∇L̄(θ_k; B1); θ_k ← θ_k − η∇L̄(θ'; B2), which
//! leaves the Hessian out of the gradient of L̄(θ − α∇L̄(θ)). Server: as FedAvg. A client predicts with θ − α∇L̄(θ),
//! the gradient over all its training rows: this is the step in the objective (public codes take one minibatch).
//! Source: Fallah, Mokhtari & Ozdaglar 2020 (Algorithm 1, first-order variant). θ is sent to the
//! clients, θ_k to the server; clients keep no parameters.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, Server};
use super::keys::{BATCH_OF_TEN, INNER_LR, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, Predictor, Request, Setup, Watch};
use crate::rows::Rows;

/// `[algorithm] kind = "per-fedavg"`; η is the step size of the optimiser. L steps read two minibatches each.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PerFedAvgConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The step size α of the adaptation.
    pub inner_lr: f64,
}

impl PerFedAvgConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "per-fedavg",
        about: "Averaging of an initialisation that each client adapts (Fallah et al. 2020).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS.doc("Steps of a client in a round: ⌈epochs · N_k / min(batch, N_k)⌉. Each reads two minibatches, so that a client goes twice as often through its rows. 0: `local_steps`, the same for all clients."),
            BATCH_OF_TEN,
            MINIBATCH,
            MEAN_LOSS,
            INNER_LR.doc("Step size of the adaptation; `optimizer.lr` is that of the shared parameters."),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { personal: true, plain_gradient_steps: true, ..Capabilities::FEDERATED };
}

struct Client {
    local: LocalSteps,
    inner_lr: f64,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let (sent, alpha) = (self.local.sent(request)?, self.inner_lr);
        let score = |likelihood: &mut Likelihood, at: &Particles| {
            let adapted = adapted(at, likelihood.next_gradient(at, 0.0), alpha);
            Ok(likelihood.next_score(&adapted, 0.0))
        };
        let moved = self.local.run(sent, request, watch, score)?;
        self.local.reply(&moved)
    }

    fn predictor(&mut self, published: &Request) -> Result<Predictor, RunError> {
        let theta = self.local.sent(published)?;
        let score = self.local.likelihood.score_in(&theta, Rows::Full, published.round, 0.0);
        Ok(Predictor::Own(adapted(&theta, score, self.inner_lr)))
    }

    fn save(&self) -> Result<State, RunError> {
        self.local.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)
    }
}

/// The adapted parameters θ + α·score, `[1, d]`.
fn adapted(theta: &Particles, score: Particles, alpha: f64) -> Particles {
    theta.clone().zip(score, |theta, score| theta + score.mul_scalar(alpha))
}

impl Algorithm for PerFedAvgConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        // Each step adapts first, which is a step of its own.
        VisitCost { steps: self.local.steps(rows).saturating_mul(2), draws: 0 }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // FedAvg's server over clients that train the parameters after one adaptation step.
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local)| (id, Box::new(Client { local, inner_lr: self.inner_lr }) as _);
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(1.0), visit).map(client).collect();
        Ok(Halves { server: Box::new(Server::new(&setup, AveragingWeights::Rows)), clients })
    }
}
