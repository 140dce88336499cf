//! What every algorithm is built from.

use std::sync::Arc;

use fedstein_models::Model;

use crate::backend::{Backend, Session};
use crate::density::{Likelihood, LikelihoodScale};
use crate::ot::RobustBarycenter;
use crate::particles::Particles;
use crate::random::Streams;
use crate::rows::{Minibatches, Order, Shard};
use crate::stein::Svgd;

/// How clients turn their rows into scores.
#[derive(Clone, Copy, Debug)]
pub struct LocalData {
    /// Rows B in a minibatch.
    pub batch: usize,
    /// In which order rows are read.
    pub order: Order,
    /// How a minibatch stands for all rows.
    pub scale: LikelihoodScale,
    /// α.
    pub temperature: f64,
}

/// What every algorithm starts from.
pub struct Setup<B: Backend> {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The clients' rows, by id.
    pub shards: Vec<Shard<B>>,
    /// Θ^(0).
    pub initial: Particles<B>,
    /// The open device.
    pub session: Session<B>,
    /// The run's random numbers.
    pub streams: Streams,
    /// Kernel and step rule.
    pub svgd: Svgd,
    /// Whether the optimiser starts afresh at each visit.
    pub reset_optimizer: bool,
    /// Whether clients are scored on rows of their own, so that those that can predict with what they uploaded keep it.
    pub personal: bool,
    /// The robust rule of a server that has rules of its own ([`Replies::OwnRule`](crate::algorithm::Replies::OwnRule)).
    pub robust: Option<RobustBarycenter>,
}

impl<B: Backend> Setup<B> {
    /// One likelihood a client, by id. The rows are taken out of the setup.
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
