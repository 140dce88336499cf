//! A server that hands its particles to one client after the other: Θ goes down, the moved Θ comes up.

use super::{ServerHalf, message_of, particles_of};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::federation::message::{ClientId, Message, Reply};
use crate::particles::Particles;

/// The server half of sequential algorithms.
pub(super) struct Relay<B: Backend> {
    pub particles: Particles<B>,
    pub session: Session<B>,
}

impl<B: Backend> ServerHalf<B> for Relay<B> {
    fn configure(&self, _round: usize, _client: ClientId) -> Result<Message, RunError> {
        message_of(&self.particles)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            self.particles = particles_of(&reply.message, &self.particles, &self.session)?;
        }
        Ok(())
    }

    fn particles(&self) -> &Particles<B> {
        &self.particles
    }
}
