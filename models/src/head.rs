//! What stands on top of a network's last layer, and the likelihood that goes with it.
//!
//! Classification: log p(y | x, θ) = log softmax(f(x; θ))_y. Regression: y ~ N(f(x; θ), 1/γ), log γ a coordinate of
//! the particle with γ ~ Gamma(a0, b0). Source: Kassab & Simeone section 6, ALGORITHMS 3.2-3.3.

use std::f64::consts::PI;

use burn::module::Param;
use burn::tensor::{Device, Tensor, activation};

use crate::layer::unset;
use crate::layout::Layout;
use crate::model::Task;
use crate::prior::{Prior, PriorTerm};

/// Name of the block that holds log γ.
const LOG_GAMMA: &str = "log_gamma";

/// What stands on top of the last layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Head {
    /// Softmax over C classes.
    Classes(usize),
    /// One real target with noise precision γ ~ Gamma(shape, rate).
    Real {
        /// Shape a0.
        gamma_shape: f64,
        /// Rate b0.
        gamma_rate: f64,
    },
}

impl Head {
    /// Outputs of the last layer.
    pub(crate) fn outputs(self) -> usize {
        match self {
            Self::Classes(classes) => classes,
            Self::Real { .. } => 1,
        }
    }

    /// What `predict` returns.
    pub(crate) fn task(self) -> Task {
        match self {
            Self::Classes(classes) => Task::Classification { classes },
            Self::Real { .. } => Task::Regression,
        }
    }

    /// log γ, `[N, 1, 1]` without values, where there is noise; the module's field must be called `log_gamma`.
    pub(crate) fn log_gamma(self, particles: usize, device: &Device) -> Option<Param<Tensor<3>>> {
        match self {
            Self::Classes(_) => None,
            Self::Real { .. } => Some(unset([particles, 1, 1], device)),
        }
    }

    /// Index of the block of log γ.
    pub(crate) fn log_noise_precision(self, layout: &Layout) -> Option<usize> {
        layout.position(LOG_GAMMA)
    }

    /// Weights and biases ~ N(0, 1/`weight_precision`), γ as the head says.
    pub(crate) fn prior(self, layout: &Layout, weight_precision: f64) -> Prior {
        let mut prior = Prior::normal(layout, weight_precision);
        if let (Self::Real { gamma_shape, gamma_rate }, Some(block)) = (self, self.log_noise_precision(layout)) {
            prior.terms[block] = PriorTerm::LogGamma { block, shape: gamma_shape, rate: gamma_rate };
        }
        prior
    }
}

/// Sum over the rows of log p(y | x, θ_n): softmax, or a normal where there is log γ.
///
/// # Shapes
/// - `outputs`: `[N, outputs, B]`
/// - `targets`: `[B, outputs]`
/// - returns `[N]`
pub(crate) fn log_likelihood(
    outputs: Tensor<3>,
    log_gamma: Option<&Param<Tensor<3>>>,
    targets: &Tensor<2>,
) -> Tensor<1> {
    let targets = targets.clone().transpose().unsqueeze_dim::<3>(0); // [1, outputs, B]
    match log_gamma {
        None => (activation::log_softmax(outputs, 1) * targets).sum_dims_squeeze::<1, _>(&[1, 2]),
        Some(log_gamma) => {
            let rows = outputs.dims()[2] as f64;
            let log_gamma = log_gamma.val().squeeze_dims::<1>(&[1, 2]);
            let squared = (outputs - targets).square().sum_dims_squeeze::<1, _>(&[1, 2]);
            (log_gamma.clone().sub_scalar((2.0 * PI).ln())).mul_scalar(0.5 * rows)
                - log_gamma.exp().mul_scalar(0.5) * squared
        }
    }
}

/// Log-probabilities of the classes, or mean and log precision; [`Task`] says what they mean.
///
/// # Shapes
/// - `outputs`: `[N, outputs, B]`
/// - returns `[N, B, C]` or `[N, B, 2]`
pub(crate) fn predict(outputs: Tensor<3>, log_gamma: Option<&Param<Tensor<3>>>) -> Tensor<3> {
    match log_gamma {
        None => activation::log_softmax(outputs, 1).swap_dims(1, 2),
        Some(log_gamma) => {
            let [particles, _, rows] = outputs.dims();
            let log_gamma = log_gamma.val().expand([particles, 1, rows]);
            Tensor::cat(vec![outputs, log_gamma], 1).swap_dims(1, 2)
        }
    }
}
