//! Federated algorithms: each a server half and a client half that exchange messages.
//!
//! To add one: a file here with its configuration and its halves, and a line in [`Algorithm::build`].

pub mod dsvgd;
pub mod fedavg;
mod local;
mod relay;
pub mod svgd;

use std::sync::Arc;

use fedstein_models::Model;

use crate::backend::{Backend, Session};
use crate::density::{Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{ClientId, Message, Reply, Request};
use crate::federation::shard::{Minibatches, Order, Shard};
use crate::particles::Particles;
use crate::random::Streams;
use crate::stein::Svgd;

/// The server's side of an algorithm.
pub trait ServerHalf<B: Backend>: Send {
    /// What a selected client is sent.
    fn configure(&self, round: usize, client: ClientId) -> Result<Message, RunError>;

    /// Takes the validated replies of a round, in the order of selection.
    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError>;

    /// The global particles Θ: what predictions are made with.
    fn particles(&self) -> &Particles<B>;
}

/// A client's side of an algorithm.
pub trait ClientHalf<B: Backend>: Send {
    /// Does the client's part of a round.
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError>;
}

/// Both sides, ready to run.
pub struct Halves<B: Backend> {
    /// The server.
    pub server: Box<dyn ServerHalf<B>>,
    /// The clients, by id.
    pub clients: Vec<Box<dyn ClientHalf<B>>>,
}

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

/// An algorithm and its constants.
#[derive(Clone, Copy, Debug)]
pub enum Algorithm {
    /// Distributed SVGD.
    Dsvgd(dsvgd::DsvgdConfig),
    /// SVGD on all rows in one place.
    Svgd(svgd::SvgdConfig),
    /// Federated averaging.
    FedAvg(fedavg::FedAvgConfig),
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
}

impl<B: Backend> Setup<B> {
    fn likelihoods(&mut self, data: LocalData) -> Vec<Likelihood<B>> {
        let (model, streams) = (&self.model, self.streams);
        let shards = std::mem::take(&mut self.shards).into_iter().enumerate();
        let likelihood = |(client, shard): (usize, Shard<B>)| {
            let minibatches = Minibatches::new(data.order, shard.rows(), data.batch, streams, client);
            Likelihood::new(model.clone(), shard, minibatches, data.scale, data.temperature)
        };
        shards.map(likelihood).collect()
    }
}

impl Algorithm {
    /// Number of particles N.
    pub fn particles(&self) -> usize {
        match self {
            Self::Dsvgd(config) => config.particles,
            Self::Svgd(config) => config.particles,
            Self::FedAvg(_) => 1,
        }
    }

    /// Whether all rows are in one place: then there is one client, whatever the partition.
    pub fn is_centralised(&self) -> bool {
        matches!(self, Self::Svgd(_))
    }

    /// Server and clients.
    pub fn build<B: Backend>(&self, setup: Setup<B>) -> Halves<B> {
        match *self {
            Self::Dsvgd(config) => dsvgd::build(config, setup),
            Self::Svgd(config) => svgd::build(config, setup),
            Self::FedAvg(config) => fedavg::build(config, setup),
        }
    }
}

/// The name under which particles travel.
const PARTICLES: &str = "particles";

/// Reads the particles out of a message.
fn particles_of<B: Backend>(
    message: &Message,
    like: &Particles<B>,
    session: &Session<B>,
) -> Result<Particles<B>, RunError> {
    message
        .array(PARTICLES)
        .and_then(|array| Particles::from_array(array, like.layout(), session))
        .map_err(RunError::Device)
}

/// A message that carries particles.
fn message_of<B: Backend>(particles: &Particles<B>) -> Result<Message, RunError> {
    Ok(Message::default().with_array(PARTICLES, particles.to_array()?))
}
