//! Score functions ∇ log p(θ) of the densities that particles are moved towards.

pub mod kde;
pub mod likelihood;

pub use kde::{Kde, KdeBandwidth, KdeConfig, KdeMode};
pub use likelihood::{Likelihood, LikelihoodScale};

use fedstein_models::Model;

use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;
use crate::stein::Score;

/// A density known up to a constant, by its score.
pub trait LogDensity<B: Backend> {
    /// ∇ log p at every particle.
    fn score(&self, at: &Particles<B>) -> Result<Score<B>, RunError>;
}

/// `weight`·∇ log p0 at every particle.
pub(crate) fn prior_score<B: Backend>(model: &dyn Model, at: &Particles<B>, weight: f64) -> Score<B> {
    let zeros = at.blocks().iter().map(|block| block.zeros_like()).collect();
    let prior = model.prior().add_score(at.blocks(), zeros, weight);
    Score::dense(Particles::from_blocks(prior, at.layout().clone()))
}
