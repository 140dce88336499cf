//! The server half: q in natural parameters, and draws from it for predictions.

use std::sync::Arc;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};

use super::natural::Natural;
use super::problem::{COVARIANCE, Problem};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{Message, Posterior, Reply, ServerHalf};
use crate::random::Purpose;

/// The server of PVI and GVI.
pub(in crate::algorithm) struct Server {
    problem: Arc<Problem>,
    /// q = p0·Π_k t_k. It can be improper only where several clients moved in a round.
    q: Natural,
    /// Draws m + L⁻ᵀz `[N, d]` with the same z in every round, so that predictions change with q and not with the
    /// draws.
    draws: Particles,
}

impl Server {
    /// A server at q^(0) with this many draws from it.
    ///
    /// # Errors
    /// The device does not answer.
    pub(super) fn new(problem: Arc<Problem>, draws: usize) -> Result<Self, RunError> {
        let q = problem.initial.natural().clone();
        let draws = draw(&problem, &q, draws)?;
        Ok(Self { problem, q, draws })
    }
}

fn draw(problem: &Problem, q: &Natural, count: usize) -> Result<Particles, RunError> {
    let mut rng = problem.streams.rng(Purpose::Gaussian, 0, 0);
    let z = Array2::from_shape_simple_fn((count, problem.layout.dim()), || StandardNormal.sample(&mut rng));
    problem.place(&problem.proper(q), &z)
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        Ok(self.q.to_message())
    }

    /// The update η ← η + Σ_k (η_new,k − η); every client changes its own factor by the same difference, but for the rounding of
    /// η in the message to it.
    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let Problem { family, layout, .. } = &*self.problem;
        let sent = self.q.clone();
        for reply in replies {
            let moved = Natural::from_message(&reply.message, *family, layout.dim())?;
            self.q = self.q.plus(&moved.minus(&sent));
        }
        self.draws = draw(&self.problem, &self.q, self.draws.count())?;
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.draws
    }

    fn posterior(&self) -> Posterior {
        if self.draws.dim() > COVARIANCE {
            return Posterior::Particles;
        }
        let q = self.problem.proper(&self.q);
        let covariance = q.covariance().to_full().iter().copied().collect();
        Posterior::Gaussian { mean: q.mean().to_vec(), covariance }
    }

    fn state_bytes(&self) -> u64 {
        self.draws.bytes() + self.q.bytes()
    }

    /// The state holds q only; the draws follow from it.
    fn save(&self) -> Result<State, RunError> {
        Ok(self.q.save())
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let Problem { family, layout, .. } = &*self.problem;
        self.q = Natural::in_state(state, *family, layout.dim())?;
        self.draws = draw(&self.problem, &self.q, self.draws.count())?;
        Ok(())
    }
}
