//! The objects from which every algorithm is built.

use std::sync::Arc;

use fedstein_models::Model;

use crate::backend::{Backend, Session};
use crate::density::{Likelihood, LikelihoodScale};
use crate::ot::RobustBarycenter;
use crate::particles::Particles;
use crate::random::Streams;
use crate::rows::{Minibatches, Order, Shard};
use crate::stein::Svgd;

/// The settings by which clients compute scores from their rows.
#[derive(Clone, Copy, Debug)]
pub struct LocalData {
    /// The number of rows B of a minibatch.
    pub batch: usize,
    /// The order in which rows are read.
    pub order: Order,
    /// The weight of a minibatch's likelihood.
    pub scale: LikelihoodScale,
    /// The temperature α.
    pub temperature: f64,
}

/// The objects from which every algorithm is built.
pub struct Setup<B: Backend> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The clients' rows, by id.
    pub shards: Vec<Shard<B>>,
    /// The initial particles Θ^(0), `[N, d]`.
    pub initial: Particles<B>,
    /// The open device.
    pub session: Session<B>,
    /// The random streams of the run.
    pub streams: Streams,
    /// The kernel and the optimiser.
    pub svgd: Svgd,
    /// Whether the optimiser's state is new in each visit.
    pub reset_optimizer: bool,
    /// Whether clients are scored on their own rows. Clients that predict with the particles they uploaded then keep
    /// them.
    pub personal: bool,
    /// The robust rule of a server that has its own rules ([`Replies::OwnRule`](crate::algorithm::Replies::OwnRule)).
    pub robust: Option<RobustBarycenter>,
}

impl<B: Backend> Setup<B> {
    /// The likelihoods of all clients, by id. The rows are moved out of the setup.
    pub fn likelihoods(&mut self, data: LocalData) -> Vec<Likelihood<B>> {
        let (model, streams) = (&self.model, self.streams);
        let shards = std::mem::take(&mut self.shards).into_iter().enumerate();
        let likelihood = |(client, shard): (usize, Shard<B>)| {
            let minibatches = Minibatches::new(data.order, shard.rows(), data.batch, streams, client);
            Likelihood::new(model.clone(), shard, minibatches, data.scale, data.temperature)
        };
        shards.map(likelihood).collect()
    }
}
