//! The objects from which every algorithm is built.

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein_models::Model;

use super::message::ClientId;
use crate::backend::Session;
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

/// The objects from which every algorithm is built: who there is, and who is here.
///
/// A client may live in another process than its server and the other clients. Each process builds the halves that live
/// there from a setup with the same roster, so what an algorithm needs to know of clients elsewhere is in the roster.
pub struct Setup {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The number of rows N_k of each of the K clients, by id.
    pub roster: Vec<usize>,
    /// The rows of the clients that live in this process: all clients in a simulation, one at its own machine, none at a
    /// server.
    pub here: Vec<(ClientId, Shard)>,
    /// The number of features p of a row.
    pub width: usize,
    /// The initial particles Θ^(0), `[N, d]`.
    pub initial: Particles,
    /// The open device.
    pub session: Session,
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

impl Setup {
    /// The likelihoods of the clients in this process. The rows are moved out of the setup.
    pub fn likelihoods(&mut self, data: LocalData) -> Vec<(ClientId, Likelihood)> {
        let (model, streams) = (&self.model, self.streams);
        let likelihood = |(client, shard): (ClientId, Shard)| {
            let minibatches = Minibatches::new(data.order, shard.rows(), data.batch, streams, client);
            (client, Likelihood::new(model.clone(), shard, minibatches, data.scale, data.temperature))
        };
        std::mem::take(&mut self.here).into_iter().map(likelihood).collect()
    }

    /// A row of zeros, `[1, p]`, to find out the shapes that any row has in the model: a server holds no rows.
    pub fn blank_row(&self) -> Tensor<2> {
        self.session.upload(vec![0.0; self.width], [1, self.width])
    }
}

/// The roster and the clients of a simulation: every client lives in this process, and its id is its index.
pub fn all_here(shards: impl IntoIterator<Item = Shard>) -> (Vec<usize>, Vec<(ClientId, Shard)>) {
    let here: Vec<_> = shards.into_iter().enumerate().collect();
    (here.iter().map(|(_, shard)| shard.rows()).collect(), here)
}
