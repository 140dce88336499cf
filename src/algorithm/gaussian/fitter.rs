//! The local optimisation of q on a client's rows.

use std::sync::Arc;

use ndarray::Array2;

use super::expectation::Expected;
use super::natural::{Gaussian, Natural, StepBound};
use super::problem::Problem;
use crate::array::ArrayError;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, Message, Watch};
use crate::random::Purpose;

/// The Gaussian after `steps` updates η ← (1 − ρ)η + ρ(η_cav + g(η)) of `q`. The cavity may be improper.
///
/// # Arguments
/// - `cavity`: η_cav, with η1 `[d]`
/// - `damping`: the share ρ of a step
/// - `expected`: the expectations under q, given q and the step, from 0
///
/// # Errors
/// `expected` fails.
pub fn fit<E>(
    mut q: Gaussian,
    cavity: &Natural,
    steps: usize,
    damping: f64,
    bound: &StepBound,
    mut expected: impl FnMut(&Gaussian, usize) -> Result<Expected, E>,
) -> Result<Gaussian, E> {
    for step in 0..steps {
        let target = cavity.plus(&expected(&q, step)?.factor(&q));
        q = q.step(&target, damping, bound);
    }
    Ok(q)
}

/// The rows of a client and the optimisation that fits them; the client's factor is kept elsewhere.
pub(in crate::algorithm) struct Fitter {
    problem: Arc<Problem>,
    likelihood: Likelihood,
    client: ClientId,
}

impl Fitter {
    /// The fitter of a client with these rows.
    pub(super) fn new(problem: Arc<Problem>, likelihood: Likelihood, client: ClientId) -> Self {
        Self { problem, likelihood, client }
    }

    /// Reads q from a message.
    ///
    /// # Errors
    /// The arrays are missing or not of this family and dimension.
    pub fn read(&self, message: &Message) -> Result<Natural, RunError> {
        let Problem { family, layout, .. } = &*self.problem;
        Natural::from_message(message, *family, layout.dim()).map_err(RunError::Array)
    }

    /// The state: the position in the order of the rows.
    pub fn save(&self) -> State {
        self.likelihood.save()
    }

    /// Restores the state that [`Self::save`] has returned.
    ///
    /// # Errors
    /// The state is not one of this client's likelihood.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        Ok(self.likelihood.restore(state)?)
    }

    /// Reads a density in natural parameters from a state of the client.
    ///
    /// # Errors
    /// The arrays are missing or not of this family and dimension.
    pub fn natural_in(&self, state: &State) -> Result<Natural, RunError> {
        let Problem { family, layout, .. } = &*self.problem;
        Natural::in_state(state, *family, layout.dim())
    }

    /// The Gaussian closest to cavity · exp f, by L steps from q. The draws of a visit are one stream.
    ///
    /// # Errors
    /// The score is not finite at a node, or the device does not answer.
    pub fn fit(&mut self, q: &Natural, cavity: &Natural, round: usize, watch: Watch) -> Result<Gaussian, RunError> {
        let Self { problem, likelihood, client } = self;
        let Problem { local, shared, share, rule, layout, .. } = &**problem;
        let (d, steps) = (layout.dim(), local.steps(likelihood.rows()));
        likelihood.start_visit(round);
        let mut rng = problem.streams.rng(Purpose::Gaussian, round, *client);
        // ∇f at the nodes' places in q, f = −L_k/α + (1/K) log p'
        let expected = |q: &Gaussian, step: usize| {
            let nodes = rule.nodes(d, &mut rng);
            let at = problem.place(q, &nodes.points)?;
            let score = likelihood.next_gradient(&at, 0.0).blocks().to_vec();
            let score = shared.add_score(at.blocks(), score, *share);
            let score = Particles::from_blocks(score, layout.clone()).to_array()?.values;
            if let Some(bad) = score.first_non_finite() {
                return Err(RunError::Config(format!(
                    "step {}: the score is not finite at point {} of q; a smaller algorithm.damping usually helps",
                    step + 1,
                    bad / d
                )));
            }
            let gradients = Array2::from_shape_vec(nodes.points.raw_dim(), score.to_f64());
            let gradients = gradients.map_err(|error| ArrayError::Content(error.to_string()))?;
            watch(step + 1, steps);
            Ok(Expected::new(q, &nodes, gradients.view()))
        };
        fit(problem.proper(q), cavity, steps, problem.damping, &problem.bound, expected)
    }
}
