//! FedProx: federated averaging whose clients are held near the parameters they were sent.
//!
//! Client: L steps on the mean loss L̄ plus (μ/2)‖θ_k − θ‖², by the score −∇L̄(θ_k) + μ(θ − θ_k). Server: as FedAvg.
//! Source: Li et al. 2020 (Algorithm 2); ALGORITHMS 4.9. θ goes down, θ_k comes up.

use super::fedavg::{Server, Weights};
use super::local::{LocalSteps, Visit, pull};
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, LocalData, Message, Request, Setup, Watch};

/// Constants of FedProx.
#[derive(Clone, Copy, Debug)]
pub struct FedProxConfig {
    /// L.
    pub local_steps: usize,
    /// How rows become gradients.
    pub data: LocalData,
    /// μ > 0.
    pub proximal: f64,
}

struct Client<B: Backend> {
    local: LocalSteps<B>,
    proximal: f64,
}

impl<B: Backend> ClientHalf<B> for Client<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let (sent, mu) = (self.local.sent(request)?, self.proximal);
        let score = |likelihood: &mut Likelihood<B>, at: &Particles<B>| {
            Ok(likelihood.next_score(at, 0.0).plus(pull(at, &sent, mu)))
        };
        let moved = self.local.run(sent.clone(), request.round, watch, score)?;
        self.local.reply(&moved)
    }

    fn save(&self) -> Result<State, RunError> {
        self.local.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)
    }
}

/// FedAvg's server over clients with a proximal term.
pub(super) fn build<B: Backend>(config: FedProxConfig, mut setup: Setup<B>) -> Result<Halves<B>, RunError> {
    let visit = Visit { steps: config.local_steps, reset_optimizer: setup.reset_optimizer };
    let client = |local| Box::new(Client { local, proximal: config.proximal }) as _;
    let clients = LocalSteps::of_shards(&mut setup, config.data, visit).map(client).collect();
    Ok(Halves { server: Box::new(Server::new(&setup, Weights::Rows)), clients })
}
