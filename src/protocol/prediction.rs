//! What a run ends with: predictors and the posterior.

use burn::tensor::Tensor;

use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;

/// How a client predicts.
#[allow(missing_debug_implementations)] // Holds a closure.
pub enum Predictor<B: Backend> {
    /// With the particles that the server published.
    Published,
    /// With particles of its own.
    Own(Particles<B>),
    /// Rows `[B, p]` in, log-probabilities `[S, B, C]` of S predictive components out.
    Rows(Box<dyn Fn(Tensor<2>) -> Result<Tensor<3>, RunError>>),
}

/// What the global posterior q is.
#[derive(Clone, Debug, PartialEq)]
pub enum Posterior {
    /// Particles; a density only with a kernel around each.
    Particles,
    /// N(mean, covariance).
    Gaussian {
        /// `[d]`
        mean: Vec<f64>,
        /// `[d, d]`, row-major.
        covariance: Vec<f64>,
    },
    /// (1/N) Σ_n N(θ_n, v_n·I) around the particles.
    Mixture {
        /// v, `[N]`.
        variances: Vec<f64>,
    },
}
