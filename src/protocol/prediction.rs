//! The results of an algorithm: predictors and the posterior.

use burn::tensor::Tensor;

use crate::error::RunError;
use crate::particles::Particles;

/// The predictor of a client.
#[allow(missing_debug_implementations)] // Holds a closure.
pub enum Predictor {
    /// The particles that the server published.
    Published,
    /// Particles of its own.
    Own(Particles),
    /// A function from rows `[B, p]` to log-probabilities `[S, B, C]` of S predictive components.
    Rows(Box<dyn Fn(Tensor<2>) -> Result<Tensor<3>, RunError>>),
}

/// The form of the global posterior q.
#[derive(Clone, Debug, PartialEq)]
pub enum Posterior {
    /// Particles, which have a density only by a kernel density estimate.
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
