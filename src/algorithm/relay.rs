//! A server that hands its particles to one client after the other: it sends Θ and receives the moved Θ.

use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Message, PARTICLES, Reply, ServerHalf, message_of, particles_of};

/// The server half of sequential algorithms.
pub(super) struct Relay {
    particles: Particles,
    session: Session,
}

impl Relay {
    /// A server that starts with these particles `[N, d]`.
    pub fn new(particles: Particles, session: Session) -> Self {
        Self { particles, session }
    }
}

impl ServerHalf for Relay {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.particles)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            self.particles = particles_of(&reply.message, &self.particles, &self.session)?;
        }
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.particles
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.particles)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.particles = state.particles(PARTICLES, self.particles.layout(), &self.session)?;
        Ok(())
    }
}
