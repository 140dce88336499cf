//! Densities and their scores ∇ log p(θ), towards which particles move.

pub mod evaluator;
pub mod kde;
pub mod likelihood;

pub use evaluator::Evaluator;
pub use kde::{Kde, KdeBandwidth, KdeConfig, KdeMode};
pub use likelihood::{Likelihood, LikelihoodScale};

use fedstein_models::Model;

use crate::error::RunError;
use crate::particles::Particles;
use crate::stein::Score;

/// A density that is known up to a constant factor, given by its score.
pub trait LogDensity {
    /// ∇ log p at every particle `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails, or the density cannot be evaluated.
    fn score(&self, at: &Particles) -> Result<Score, RunError>;
}

/// `weight`·∇ log p0 at every particle `[N, d]`.
pub(crate) fn prior_score(model: &dyn Model, at: &Particles, weight: f64) -> Score {
    let zeros = at.blocks().iter().map(|block| block.zeros_like()).collect();
    let prior = model.prior().add_score(at.blocks(), zeros, weight);
    Score::dense(Particles::from_blocks(prior, at.layout().clone()))
}
