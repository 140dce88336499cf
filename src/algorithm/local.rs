//! A client that moves the particles it is sent on its own rows, and remembers nothing of them.

use super::fedavg::ROWS;
use super::{ClientHalf, LocalData, Setup, message_of, particles_of};
use crate::backend::{Backend, Session};
use crate::density::Likelihood;
use crate::error::RunError;
use crate::federation::fleet::Watch;
use crate::federation::message::{Message, Request};
use crate::particles::Particles;
use crate::stein::{OptimizerState, Svgd};

/// What such a client does in a visit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    /// L.
    pub steps: usize,
    /// How much of ∇ log p0 the score contains.
    pub prior_weight: f64,
    /// Whether the optimiser starts afresh.
    pub reset_optimizer: bool,
}

/// One client a shard.
pub(super) fn clients<B: Backend>(setup: &mut Setup<B>, data: LocalData, visit: Visit) -> Vec<Box<dyn ClientHalf<B>>> {
    let likelihoods = setup.likelihoods(data).into_iter();
    let client = |likelihood| -> Box<dyn ClientHalf<B>> {
        Box::new(LocalSteps {
            svgd: setup.svgd,
            visit,
            likelihood,
            state: OptimizerState::default(),
            like: setup.initial.clone(),
            session: setup.session.clone(),
        })
    };
    likelihoods.map(client).collect()
}

/// The client half of algorithms without local particles.
struct LocalSteps<B: Backend> {
    svgd: Svgd,
    visit: Visit,
    likelihood: Likelihood<B>,
    state: OptimizerState,
    like: Particles<B>,
    session: Session<B>,
}

impl<B: Backend> ClientHalf<B> for LocalSteps<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let particles = particles_of(&request.message, &self.like, &self.session)?;
        if self.visit.reset_optimizer {
            self.state = OptimizerState::default();
        }
        self.likelihood.start_visit(request.round);
        let Self { svgd, visit, likelihood, state, .. } = self;
        let score = |at: &Particles<B>| Ok(likelihood.next_score(at, visit.prior_weight));
        let moved = svgd.run(particles, visit.steps, state, score, |done| watch(done, visit.steps))?;
        Ok(message_of(&moved)?.with_scalar(ROWS, self.likelihood.rows() as f64))
    }
}
