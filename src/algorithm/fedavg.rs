//! Federated averaging: one parameter vector, no prior, no uncertainty of its own.
//!
//! Client: L steps on −(N_k/B) Σ_{i ∈ batch} log p(y_i | x_i, θ). Server: θ ← Σ_{k ∈ S} N_k θ_k / Σ_{k ∈ S} N_k.
//! Source: McMahan et al. 2017 as in Kassab & Simeone section 6; ALGORITHMS 4.9.

use serde::{Deserialize, Serialize};

use super::local::{self, Visit};
use super::{Halves, LocalData, ServerHalf, Setup, message_of, particles_of};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::federation::message::{ClientId, Message, Reply};
use crate::particles::Particles;

/// The name under which a reply tells N_k.
pub(super) const ROWS: &str = "rows";

/// What the server does with the replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// θ ← Σ N_k θ_k / Σ N_k over the selected clients; a single one replaces θ.
    #[default]
    Replace,
    /// θ ← θ + Σ_k (N_k/N_tot)(θ_k − θ), as in the DSVGD code: damped by about 1/K for one client a round.
    Reference,
}

/// Constants of federated averaging.
#[derive(Clone, Copy, Debug)]
pub struct FedAvgConfig {
    /// L.
    pub local_steps: usize,
    /// How rows become gradients.
    pub data: LocalData,
    /// How replies are mixed.
    pub mix: Mix,
}

struct Server<B: Backend> {
    theta: Particles<B>,
    session: Session<B>,
    mix: Mix,
    total_rows: f64,
}

impl<B: Backend> ServerHalf<B> for Server<B> {
    fn configure(&self, _round: usize, _client: ClientId) -> Result<Message, RunError> {
        message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let rows = |reply: &Reply| reply.message.scalars.get(ROWS).copied().unwrap_or(0.0);
        let selected: f64 = replies.iter().map(rows).sum();
        let total = match self.mix {
            Mix::Replace => selected,
            Mix::Reference => self.total_rows,
        };
        // Both mixes are θ + Σ (N_k/total)(θ_k − θ): with total = Σ N_k the old θ cancels.
        let start = self.theta.clone();
        let mut mixed = start.map(|block| block.mul_scalar(1.0 - selected / total));
        for reply in &replies {
            let theta_k = particles_of(&reply.message, &start, &self.session)?;
            let weight = rows(reply) / total;
            mixed = mixed.zip(theta_k, |sum, block| sum + block.mul_scalar(weight));
        }
        self.theta = mixed;
        Ok(())
    }

    fn particles(&self) -> &Particles<B> {
        &self.theta
    }
}

/// A server with one parameter vector and clients that step on their own rows.
pub(super) fn build<B: Backend>(config: FedAvgConfig, mut setup: Setup<B>) -> Halves<B> {
    let total_rows = setup.shards.iter().map(|shard| shard.rows() as f64).sum();
    let visit = Visit { steps: config.local_steps, prior_weight: 0.0, reset_optimizer: setup.reset_optimizer };
    let clients = local::clients(&mut setup, config.data, visit);
    let server = Server { theta: setup.initial, session: setup.session, mix: config.mix, total_rows };
    Halves { server: Box::new(server), clients }
}
