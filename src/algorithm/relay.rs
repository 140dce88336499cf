//! A server that hands its particles to one client after the other: it sends Θ and receives the moved Θ.

use std::collections::BTreeSet;

use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, Message, PARTICLES, Reply, ServerHalf, message_of, particles_of};

/// The name of the number of clients that have participated so far, in messages and in states.
pub(super) const SEEN: &str = "seen";

/// The server half of sequential algorithms.
pub(super) struct Relay<B: Backend> {
    particles: Particles<B>,
    session: Session<B>,
    /// The clients that have participated so far.
    seen: BTreeSet<ClientId>,
}

impl<B: Backend> Relay<B> {
    /// A server that starts with these particles `[N, d]`.
    pub fn new(particles: Particles<B>, session: Session<B>) -> Self {
        Self { particles, session, seen: BTreeSet::new() }
    }
}

impl<B: Backend> ServerHalf<B> for Relay<B> {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        Ok(message_of(&self.particles)?.with_scalar(SEEN, self.seen.len() as f64))
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            self.particles = particles_of(&reply.message, &self.particles, &self.session)?;
            self.seen.insert(reply.client);
        }
        Ok(())
    }

    fn particles(&self) -> &Particles<B> {
        &self.particles
    }

    fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_particles(PARTICLES, &self.particles)?;
        Ok(state.with_counts(SEEN, self.seen.iter().copied()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.particles = state.particles(PARTICLES, self.particles.layout(), &self.session)?;
        self.seen = state.counts(SEEN)?.into_iter().collect();
        Ok(())
    }
}
