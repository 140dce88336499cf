//! Bayesian neural networks of dense layers, for classes or for real targets:
//! f(x; θ) = W_L φ(… φ(W_1 x + b_1) …) + b_L.
//!
//! Weights and biases ~ N(0, 1/λ_w); the likelihood is the [`Head`]'s. Source: Kassab & Simeone section 6.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein_schema::Accepts::{Choice, IntList};
use fedstein_schema::Literal::{Ints, Text as T};
use fedstein_schema::{Key, Kind, NumberOr, UnusedKeys, key};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::curvature::{LayerInputs, LayerTrace};
use crate::error::ModelError;
use crate::head::{self, Head, WeightPrecision};
use crate::init::WeightInit;
use crate::kind::{
    DataShape, GAMMA_RATE, GAMMA_SHAPE, INIT, ModelKind, PrecisionRule, WEIGHT_PRECISION, precision,
    prior_and_start_keys, unused_gamma,
};
use crate::layer::{Activation, ParticleLinear};
use crate::layout::Layout;
use crate::model::{Architecture, Batch, Model, Network, ParticleModel, Task};
use crate::prior::Prior;
use crate::stack::{MOST_PARAMETERS, too_many_parameters};

/// A multilayer perceptron for every particle.
#[derive(Clone, Debug, PartialEq)]
pub struct BnnConfig {
    /// The number of features p.
    pub features: usize,
    /// Width of each hidden layer; empty gives a linear model.
    pub hidden: Vec<usize>,
    /// The function between the layers.
    pub activation: Activation,
    /// The likelihood: of classes or of a real target.
    pub head: Head,
    /// Prior precision λ_w of weights and biases.
    pub weight_precision: WeightPrecision,
    /// The initial weights.
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
            weight_precision: WeightPrecision::Fixed(std::f64::consts::E),
            init: WeightInit::ScaledNormal,
        }
    }

    /// The configuration, if it is valid.
    ///
    /// # Errors
    /// A width is 0, or a particle would have more than 2³¹ − 1 coordinates.
    pub fn check(self) -> Result<Self, ModelError> {
        if self.features == 0 {
            return Err(ModelError::Empty { what: "the number of features" });
        }
        if self.hidden.contains(&0) || self.head.outputs() == 0 {
            return Err(ModelError::Empty { what: "every layer's width" });
        }
        let mut parameters = 0usize;
        for (i, pair) in self.widths().windows(2).enumerate() {
            let own = pair[0].checked_add(1).and_then(|inputs| inputs.checked_mul(pair[1]));
            let total = own.and_then(|own| own.checked_add(parameters)).filter(|total| *total <= MOST_PARAMETERS);
            parameters = total.ok_or_else(|| ModelError::Layer {
                number: i + 1,
                text: format!("dense {}", pair[1]),
                problem: too_many_parameters(),
            })?;
        }
        Ok(self)
    }

    fn widths(&self) -> Vec<usize> {
        let outputs = [self.head.outputs()];
        [self.features].iter().chain(&self.hidden).chain(&outputs).copied().collect()
    }
}

/// N multilayer perceptrons.
#[derive(Module, Debug)]
pub struct Bnn {
    /// The dense layers in order.
    pub layers: Vec<ParticleLinear>,
    /// log γ, `[N, 1, 1]`, of a regression.
    pub log_gamma: Option<Param<Tensor<3>>>,
    /// log λ_w, `[N, 1, 1]`, where it is learned.
    pub log_precision: Option<Param<Tensor<3>>>,
    #[module(skip)]
    activation: Activation,
}

impl Bnn {
    /// The outputs of the last layer.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, outputs, B]`
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<3> {
        let first = self.layers.first().expect("a network has at least one layer");
        self.after_first(first.forward_shared(inputs))
    }

    /// The outputs of the last layer from those of the first, `[N, outputs, B]` both.
    fn after_first(&self, outputs: Tensor<3>) -> Tensor<3> {
        self.layers[1..].iter().fold(outputs, |hidden, layer| layer.forward(self.activation.forward(hidden)))
    }
}

impl ParticleModel for Bnn {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        head::log_likelihood(self.forward(batch.inputs.clone()), self.log_gamma.as_ref(), batch)
    }

    fn log_likelihood_slope(&self, batch: &Batch) -> Tensor<1> {
        head::log_likelihood_slope(self.forward(batch.inputs.clone()), self.log_gamma.as_ref(), batch)
    }

    fn first_outputs(&self, inputs: Tensor<2>) -> Option<Tensor<3>> {
        Some(self.layers.first()?.forward_shared(inputs))
    }

    fn slope_from_first(&self, outputs: Tensor<3>, batch: &Batch) -> Option<Tensor<1>> {
        Some(head::log_likelihood_slope(self.after_first(outputs), self.log_gamma.as_ref(), batch))
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        head::predict(self.forward(inputs), self.log_gamma.as_ref())
    }

    fn drawn_gradient(
        &self,
        inputs: Tensor<2>,
        uniforms: Tensor<2>,
        trace: &mut LayerTrace,
    ) -> Option<(Tensor<3>, Tensor<3>)> {
        let (first, rest) = self.layers.split_first()?;
        let start = trace.dense(LayerInputs::Shared(inputs.clone()), first.forward_shared(inputs));
        let outputs = rest.iter().fold(start, |hidden, layer| {
            let hidden = self.activation.forward(hidden);
            trace.dense(LayerInputs::Own(hidden.clone()), layer.forward(hidden))
        });
        let gradient = head::drawn_gradient(outputs.clone().without_autodiff(), self.log_gamma.as_ref(), uniforms);
        Some((outputs, gradient))
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
        let log_gamma = self.head.log_gamma(particles, device);
        let log_precision = self.weight_precision.log_precision(particles, device);
        Bnn { layers, log_gamma, log_precision, activation: self.activation }
    }

    fn task(&self) -> Task {
        self.head.task()
    }

    fn prior(&self, layout: &Layout) -> Prior {
        self.head.prior(layout, self.weight_precision)
    }

    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut particle = self.init.particle(layout, rng);
        self.weight_precision.start(layout, &mut particle, rng);
        particle
    }

    fn log_noise_precision(&self, layout: &Layout) -> Option<usize> {
        self.head.log_noise_precision(layout)
    }
}

/// `[model] kind = "bnn"`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BnnSpec {
    /// The number of units of each hidden layer.
    pub hidden: Vec<usize>,
    /// The activation after each hidden layer.
    pub activation: Activation,
    /// The prior precision λ_w of weights and biases.
    pub weight_precision: NumberOr<PrecisionRule>,
    /// The shape of the Gamma prior of a precision.
    pub gamma_shape: f64,
    /// The rate of that prior.
    pub gamma_rate: f64,
    /// The distribution of the initial weights.
    pub init: WeightInit,
}

impl BnnSpec {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "bnn",
        about: "Bayesian network of dense layers, classification or regression.",
        keys: &[
            key("hidden", IntList { min: 1 }, Ints(&[50]), "Units of each hidden layer; `[]`: none, a linear model."),
            ACTIVATION,
            WEIGHT_PRECISION,
            GAMMA_SHAPE,
            GAMMA_RATE,
            INIT,
        ],
    };
}

const ACTIVATION: Key =
    key("activation", Choice(Activation::WORDS), T(Activation::Relu.word()), "Activation after each hidden layer.");

impl ModelKind for BnnSpec {
    fn build(&self, data: &DataShape) -> Result<Arc<dyn Model>, ModelError> {
        let Self { hidden, activation, weight_precision, gamma_shape, gamma_rate, init } = self.clone();
        let head = data.head(Self::KIND.name, gamma_shape, gamma_rate)?;
        let weight_precision = precision(weight_precision, gamma_shape, gamma_rate);
        let network = BnnConfig { features: data.features(), hidden, activation, head, weight_precision, init };
        Ok(Arc::new(Network::new(network.check()?)))
    }

    fn prior_and_start_keys(&self) -> [&'static [&'static str]; 2] {
        prior_and_start_keys(self.weight_precision)
    }

    fn unused_keys(&self, is_classification: bool) -> Vec<UnusedKeys> {
        unused_gamma(self.weight_precision, is_classification)
    }

    fn has_curvature(&self) -> bool {
        true
    }
}
