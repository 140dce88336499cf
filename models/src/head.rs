//! The output head of a network: the meaning of the last layer's outputs, and the likelihood.
//!
//! Classification: log p(y | x, θ) = log softmax(f(x; θ))_y. Regression: y ~ N(f(x; θ), 1/γ), log γ a coordinate of
//! the particle with γ ~ Gamma(a0, b0). Source: Kassab & Simeone section 6.
//!
//! The functions are those of which [`ParticleModel`](crate::ParticleModel) has the names, of the outputs of the last layer;
//! `log_gamma` is `None` for a classification, and the parameter log γ, `[N, 1, 1]`, for a regression.

use std::f64::consts::PI;

use burn::module::Param;
use burn::tensor::{Device, Tensor, activation};
use rand::Rng;

use crate::curvature::drawn_residual;
use crate::layer::unset;
use crate::layout::Layout;
use crate::mean;
use crate::model::{Batch, Task};
use crate::prior::{Prior, PriorTerm, gamma_draw};

/// Name of the block that holds log γ.
const LOG_GAMMA: &str = "log_gamma";

/// The meaning of the last layer's outputs.
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
    /// The number of outputs of the last layer.
    pub(crate) fn outputs(self) -> usize {
        match self {
            Self::Classes(classes) => classes,
            Self::Real { .. } => 1,
        }
    }

    /// The meaning of the predictions.
    pub(crate) fn task(self) -> Task {
        match self {
            Self::Classes(classes) => Task::Classification { classes },
            Self::Real { .. } => Task::Regression,
        }
    }

    /// The unset parameter log γ, `[N, 1, 1]`, of a regression; the module's field must be called `log_gamma`.
    pub(crate) fn log_gamma(self, particles: usize, device: &Device) -> Option<Param<Tensor<3>>> {
        match self {
            Self::Classes(_) => None,
            Self::Real { .. } => Some(unset([particles, 1, 1], device)),
        }
    }

    /// The index of the block of log γ.
    pub(crate) fn log_noise_precision(self, layout: &Layout) -> Option<usize> {
        layout.position(LOG_GAMMA)
    }

    /// The prior with this precision of weights and biases, and the head's prior of γ.
    pub(crate) fn prior(self, layout: &Layout, weight_precision: WeightPrecision) -> Prior {
        let (noise, learned) = (self.log_noise_precision(layout), layout.position(LOG_PRECISION));
        let weights = (0..layout.blocks().len()).filter(|block| ![noise, learned].contains(&Some(*block)));
        let mut terms: Vec<PriorTerm> = match (weight_precision, learned) {
            (WeightPrecision::Learned { shape, rate }, Some(log_precision)) => {
                vec![PriorTerm::HierarchicalNormal { weights: weights.collect(), log_precision, shape, rate }]
            }
            (WeightPrecision::Learned { .. }, None) => unreachable!("the module has a block for it"),
            (WeightPrecision::Fixed(precision), _) => {
                weights.map(|block| PriorTerm::Normal { block, precision }).collect()
            }
        };
        if let (Self::Real { gamma_shape, gamma_rate }, Some(block)) = (self, noise) {
            terms.push(PriorTerm::LogGamma { block, shape: gamma_shape, rate: gamma_rate });
        }
        Prior { terms }
    }
}

/// Precision λ_w of the Gaussian prior of a network's weights and biases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightPrecision {
    /// A constant (e in the DSVGD paper).
    Fixed(f64),
    /// log λ_w is a coordinate of the particle, λ_w ~ Gamma(shape, rate): Liu & Wang 2016.
    Learned {
        /// Shape a0 (1 in that paper).
        shape: f64,
        /// Rate b0 (0.1 in that paper).
        rate: f64,
    },
}

impl WeightPrecision {
    /// Draws the initial log λ_w into a flat particle, `[d]`. As in Liu & Wang's code, λ_w is drawn with `rate` used as
    /// a *scale*. The prior is then weak at first (0.1); with the mean of its own distribution (10) it would shrink the
    /// weights from the first step.
    pub(crate) fn start(self, layout: &Layout, particle: &mut [f64], rng: &mut dyn Rng) {
        if let (Self::Learned { shape, rate }, Some(block)) = (self, layout.position(LOG_PRECISION)) {
            particle[layout.blocks()[block].offset] = gamma_draw(shape, 1.0 / rate, rng).ln();
        }
    }

    /// The unset parameter log λ_w, `[N, 1, 1]`, where it is learned; the module's field must be called
    /// `log_precision`.
    pub(crate) fn log_precision(self, particles: usize, device: &Device) -> Option<Param<Tensor<3>>> {
        match self {
            Self::Fixed(_) => None,
            Self::Learned { .. } => Some(unset([particles, 1, 1], device)),
        }
    }
}

/// Name of the block that holds log λ_w.
const LOG_PRECISION: &str = "log_precision";

/// Sum over the rows of log p(y | x, θ_n): of a softmax, or of a normal distribution where there is log γ.
///
/// # Shapes
/// - `outputs`: `[N, outputs, B]`
/// - `batch.targets`: `[B, outputs]`
/// - returns `[N]`
pub fn log_likelihood(outputs: Tensor<3>, log_gamma: Option<&Param<Tensor<3>>>, batch: &Batch) -> Tensor<1> {
    let targets = batch.targets.clone().transpose().unsqueeze_dim::<3>(0); // [1, outputs, B]
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

/// A function of outputs and log γ with the gradient of [`log_likelihood`], in the same shapes; see
/// `ParticleModel::log_likelihood_slope`.
pub fn log_likelihood_slope(outputs: Tensor<3>, log_gamma: Option<&Param<Tensor<3>>>, batch: &Batch) -> Tensor<1> {
    if log_gamma.is_some() {
        return log_likelihood(outputs, log_gamma, batch);
    }
    let targets = batch.targets.clone().transpose().unsqueeze_dim::<3>(0); // [1, outputs, B]
    let mean = mean::softmax(outputs.clone().without_autodiff());
    let residual = match &batch.weights {
        None => targets - mean,
        Some(weights) => targets - mean * weights.clone().transpose().unsqueeze_dim::<3>(0),
    };
    (outputs * residual).sum_dims_squeeze::<1, _>(&[1, 2])
}

/// The gradient of the log-likelihood in the outputs, off the tape, for a label or a target of each row that is drawn from
/// the model's own prediction. The normal distribution's draw is ±1/√γ from its mean: the square of the gradient is then
/// γ, its expectation.
///
/// # Shapes
/// - `outputs` and the result: `[N, outputs, B]`
/// - `uniforms`: in [0, 1), `[N, B]`
pub fn drawn_gradient(outputs: Tensor<3>, log_gamma: Option<&Param<Tensor<3>>>, uniforms: Tensor<2>) -> Tensor<3> {
    match log_gamma {
        None => drawn_residual(mean::softmax(outputs), uniforms),
        Some(log_gamma) => {
            let sign = uniforms.sub_scalar(0.5).unsqueeze_dim::<3>(1).sign();
            sign * log_gamma.val().without_autodiff().mul_scalar(0.5).exp()
        }
    }
}

/// Log-probabilities of the classes, or mean and log precision; see [`Task`].
///
/// # Shapes
/// - `outputs`: `[N, outputs, B]`
/// - returns `[N, B, C]` or `[N, B, 2]`
pub fn predict(outputs: Tensor<3>, log_gamma: Option<&Param<Tensor<3>>>) -> Tensor<3> {
    match log_gamma {
        None => mean::log_softmax(outputs),
        Some(log_gamma) => {
            let [particles, _, rows] = outputs.dims();
            let log_gamma = log_gamma.val().expand([particles, 1, rows]);
            Tensor::cat(vec![outputs, log_gamma], 1).swap_dims(1, 2)
        }
    }
}
