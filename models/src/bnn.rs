//! Bayesian neural networks: any stack of dense layers, for classes or for real targets.
//!
//! Classification: log p(y | x, θ) = log softmax(f(x; θ))_y. Regression: y ~ N(f(x; θ), 1/γ), log γ a coordinate of
//! the particle with γ ~ Gamma(a0, b0). Weights and biases ~ N(0, 1/λ_w). Source: Kassab & Simeone section 6, ALGORITHMS 3.2-3.3.

use std::f64::consts::PI;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use crate::blr::standard_normal;
use crate::error::ModelError;
use crate::layer::{Activation, ParticleLinear, unset};
use crate::layout::{Block, Layout};
use crate::model::{Architecture, Batch, ParticleModel, Task};
use crate::prior::{Prior, PriorTerm};

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
    fn outputs(self) -> usize {
        match self {
            Self::Classes(classes) => classes,
            Self::Real { .. } => 1,
        }
    }
}

/// How the weights of a particle start; biases start at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightInit {
    /// N(0, 1/(fan_in + 1)), as in Kassab & Simeone.
    #[default]
    ScaledNormal,
    /// U(±√(6/fan_in)), as in the FedWBA paper.
    KaimingUniform,
}

/// A multilayer perceptron for every particle.
#[derive(Clone, Debug, PartialEq)]
pub struct BnnConfig {
    /// Number of features p.
    pub features: usize,
    /// Width of each hidden layer; empty gives a linear model.
    pub hidden: Vec<usize>,
    /// Between the layers.
    pub activation: Activation,
    /// Classes or a real target.
    pub head: Head,
    /// Prior precision λ_w of weights and biases (e in the papers).
    pub weight_precision: f64,
    /// Start of the weights.
    pub init: WeightInit,
}

impl BnnConfig {
    /// A classifier p-H-C with the papers' prior (λ_w = e), ReLU and scaled normal start.
    pub fn classifier(features: usize, hidden: &[usize], classes: usize) -> Self {
        Self {
            features,
            hidden: hidden.to_vec(),
            activation: Activation::Relu,
            head: Head::Classes(classes),
            weight_precision: std::f64::consts::E,
            init: WeightInit::ScaledNormal,
        }
    }

    /// Refuses widths of zero.
    pub fn check(self) -> Result<Self, ModelError> {
        if self.features == 0 {
            return Err(ModelError::Empty { what: "the number of features" });
        }
        if self.hidden.contains(&0) || self.head.outputs() == 0 {
            return Err(ModelError::Empty { what: "every layer's width" });
        }
        Ok(self)
    }

    fn widths(&self) -> Vec<usize> {
        let outputs = [self.head.outputs()];
        [self.features].iter().chain(&self.hidden).chain(&outputs).copied().collect()
    }

    fn initial_weights(&self, block: &Block, to: &mut [f64], rng: &mut dyn Rng) {
        let fan_in = block.shape[1] as f64;
        match self.init {
            WeightInit::ScaledNormal => {
                let sd = (fan_in + 1.0).powf(-0.5);
                to.iter_mut().for_each(|value| *value = sd * standard_normal(rng));
            }
            WeightInit::KaimingUniform => {
                let bound = (6.0 / fan_in).sqrt();
                to.iter_mut().for_each(|value| *value = rng.random_range(-bound..bound));
            }
        }
    }
}

/// N multilayer perceptrons.
#[derive(Module, Debug)]
pub struct Bnn {
    /// First to last.
    pub layers: Vec<ParticleLinear>,
    /// log γ, `[N, 1, 1]`, regression only.
    pub log_gamma: Option<Param<Tensor<3>>>,
    #[module(skip)]
    activation: Activation,
}

impl Bnn {
    /// Outputs of the last layer.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, outputs, B]`
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<3> {
        let (first, rest) = self.layers.split_first().expect("a network has at least one layer");
        let start = first.forward_shared(inputs);
        rest.iter().fold(start, |hidden, layer| layer.forward(self.activation.forward(hidden)))
    }
}

impl ParticleModel for Bnn {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        let outputs = self.forward(batch.inputs.clone());
        let targets = batch.targets.clone().transpose().unsqueeze_dim::<3>(0); // [1, outputs, B]
        match &self.log_gamma {
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

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        let outputs = self.forward(inputs);
        match &self.log_gamma {
            None => activation::log_softmax(outputs, 1).swap_dims(1, 2),
            Some(log_gamma) => {
                let [particles, _, rows] = outputs.dims();
                let log_gamma = log_gamma.val().expand([particles, 1, rows]);
                Tensor::cat(vec![outputs, log_gamma], 1).swap_dims(1, 2)
            }
        }
    }

    fn embed(&self, inputs: Tensor<2>, head_layers: usize) -> Option<Tensor<3>> {
        let below = self.layers.len().checked_sub(head_layers)?;
        let (first, rest) = self.layers[..below].split_first()?;
        let start = self.activation.forward(first.forward_shared(inputs));
        let top = rest.iter().fold(start, |hidden, layer| self.activation.forward(layer.forward(hidden)));
        Some(top.swap_dims(1, 2))
    }
}

impl Architecture for BnnConfig {
    type Module = Bnn;

    fn module(&self, particles: usize, device: &Device) -> Bnn {
        let widths = self.widths();
        let layers = widths.windows(2).map(|pair| ParticleLinear::new(particles, pair[0], pair[1], device)).collect();
        let log_gamma = match self.head {
            Head::Classes(_) => None,
            Head::Real { .. } => Some(unset([particles, 1, 1], device)),
        };
        Bnn { layers, log_gamma, activation: self.activation }
    }

    fn task(&self) -> Task {
        match self.head {
            Head::Classes(classes) => Task::Classification { classes },
            Head::Real { .. } => Task::Regression,
        }
    }

    fn prior(&self, layout: &Layout) -> Prior {
        let mut prior = Prior::normal(layout, self.weight_precision);
        if let (Head::Real { gamma_shape, gamma_rate }, Some(block)) = (self.head, self.log_noise_precision(layout)) {
            prior.terms[block] = PriorTerm::LogGamma { block, shape: gamma_shape, rate: gamma_rate };
        }
        prior
    }

    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut theta = vec![0.0; layout.dim()];
        for block in layout.blocks().iter().filter(|block| block.name.ends_with("weight")) {
            self.initial_weights(block, &mut theta[block.offset..block.offset + block.size()], rng);
        }
        theta
    }

    fn log_noise_precision(&self, layout: &Layout) -> Option<usize> {
        layout.position("log_gamma")
    }
}
