//! A network in two parts: a base whose parameters are sent, and a head, its last layers, that stays with its client.

use std::sync::Arc;

use fedstein_models::{Block, Layout};

use super::fedavg::{AveragingWeights, mixed};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Message, PARTICLES, Reply, ServerHalf};

/// The name of a base in messages.
const BASE: &str = "base";

/// Whether a layer begins with this block, which is then its `weight`.
pub(super) fn begins_layer(block: &Block) -> bool {
    block.name.rsplit('.').next() == Some("weight")
}

/// The division of a layout into base and head.
#[derive(Clone, Debug)]
pub(super) struct Split {
    whole: Arc<Layout>,
    base: Arc<Layout>,
}

impl Split {
    /// The last `head_layers` layers are the head. A layer begins with its block `weight`; blocks after the last layer,
    /// such as the log precision of the noise, belong to the head.
    ///
    /// # Errors
    /// The head would be the whole network, and no base would be left.
    pub fn of(whole: &Arc<Layout>, head_layers: usize) -> Result<Self, RunError> {
        let blocks = whole.blocks();
        let layers: Vec<usize> = (0..blocks.len()).filter(|block| begins_layer(&blocks[*block])).collect();
        if layers.len() <= head_layers {
            return Err(RunError::Config(format!(
                "algorithm.personal_layers = {head_layers} leaves no layer that the clients share; the model has {}",
                layers.len()
            )));
        }
        let first_of_head = layers[layers.len() - head_layers];
        let names = blocks[..first_of_head].iter().map(|block| (block.name.as_str(), block.shape.as_slice()));
        Ok(Self { whole: whole.clone(), base: Arc::new(Layout::new(names)) })
    }

    /// The number of blocks of the base, which come before those of the head.
    pub fn base_blocks(&self) -> usize {
        self.base.blocks().len()
    }

    /// The base `[N, d_b]` of whole networks `[N, d]`.
    pub fn base_of(&self, particles: &Particles) -> Particles {
        Particles::from_blocks(particles.blocks()[..self.base_blocks()].to_vec(), self.base.clone())
    }

    /// The base as a message.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn message_of(&self, particles: &Particles) -> Result<Message, RunError> {
        Ok(Message::default().with_array(BASE, self.base_of(particles).to_array()?))
    }

    /// Reads the base from a message.
    ///
    /// # Errors
    /// The base is missing or has another shape.
    pub fn base_in(&self, message: &Message, session: &Session) -> Result<Particles, RunError> {
        let array = message.array(BASE)?;
        Particles::from_array(array, &self.base, session).map_err(RunError::Array)
    }

    /// The whole networks `[N, d]` of this base `[N, d_b]` under the head of `head` `[N, d]`.
    pub fn joined(&self, base: &Particles, head: &Particles) -> Particles {
        let head = &head.blocks()[self.base_blocks()..];
        Particles::from_blocks([base.blocks(), head].concat(), self.whole.clone())
    }
}

/// A server that averages the bases of its clients by their rows.
pub(super) struct BaseServer {
    /// The base under the initial head, which completes it to a whole network.
    theta: Particles,
    split: Split,
    session: Session,
}

impl BaseServer {
    /// A server that begins with this network.
    pub fn new(theta: Particles, split: Split, session: Session) -> Self {
        Self { theta, split, session }
    }
}

impl ServerHalf for BaseServer {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        self.split.message_of(&self.theta)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let bases = replies.iter().map(|reply| self.split.base_in(&reply.message, &self.session));
        let base = mixed(&self.split.base_of(&self.theta), AveragingWeights::Rows.of(&replies), bases)?;
        self.theta = self.split.joined(&base, &self.theta);
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn publish(&self) -> Result<Message, RunError> {
        self.split.message_of(&self.theta)
    }

    fn state_bytes(&self) -> u64 {
        self.split.base_of(&self.theta).bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.theta)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.theta = state.particles(PARTICLES, self.theta.layout(), &self.session)?;
        Ok(())
    }
}
