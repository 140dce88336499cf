//! Densities and their scores ∇ log p(θ), towards which particles move.

pub mod evaluator;
pub mod kde;
pub mod likelihood;
pub mod score;

pub use evaluator::Evaluator;
pub use kde::{Kde, KdeBandwidth, KdeConfig, KdeMode};
pub use likelihood::{Likelihood, LikelihoodScale};
pub(crate) use score::Coefficients;
pub use score::Score;

use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;

/// A density known up to a constant, by its score.
pub trait LogDensity<B: Backend> {
    /// ∇ log p at every particle `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails, or the density cannot be evaluated.
    fn score(&self, at: &Particles<B>) -> Result<Score<B>, RunError>;
}
