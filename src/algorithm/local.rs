//! A client that moves the particles it is sent on its own rows, and remembers nothing of them.

use super::{ClientHalf, message_of, particles_of};
use crate::backend::{Backend, Session};
use crate::density::Likelihood;
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{Message, Request};
use crate::particles::Particles;
use crate::stein::{OptimizerState, Svgd};

/// The client half of algorithms without local particles.
pub(super) struct LocalSteps<B: Backend> {
    pub svgd: Svgd,
    pub steps: usize,
    pub prior_weight: f64,
    pub reset_optimizer: bool,
    pub likelihood: Likelihood<B>,
    pub state: OptimizerState,
    pub like: Particles<B>,
    pub session: Session<B>,
}

impl<B: Backend> ClientHalf<B> for LocalSteps<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let particles = particles_of(&request.message, &self.like, &self.session)?;
        if self.reset_optimizer {
            self.state = OptimizerState::default();
        }
        self.likelihood.start_visit(request.round);
        let Self { svgd, steps, prior_weight, likelihood, state, .. } = self;
        let score = |at: &Particles<B>| Ok(likelihood.next_score(at, *prior_weight));
        let moved = svgd.run(particles, *steps, state, score, |done| watch(done, *steps))?;
        let mut reply = message_of(&moved)?;
        reply.scalars.insert("rows".into(), self.likelihood.rows() as f64);
        Ok(reply)
    }
}
