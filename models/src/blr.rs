//! Bayesian logistic regression: θ = [w, log ξ], p(y = 1 | x) = σ(w·x), w | ξ ~ N(0, I/ξ), ξ ~ Gamma(a, b).
//!
//! Source: Kassab & Simeone section 6.1, Liu & Wang 2016.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, activation};
use fedstein_schema::Accepts::{Bool, Choice};
use fedstein_schema::Literal::{self, Float as F, Text as T};
use fedstein_schema::{Kind, POSITIVE, UnusedKeys, key};
use serde::{Deserialize, Serialize};

use crate::curvature::{LayerCurvature, LayerInputs, LayerRows, OutputGradients, RowCurvature};
use crate::error::ModelError;
use crate::kind::{DataShape, GAMMA_RATE, GAMMA_SHAPE, ModelKind, ModelTargets, TargetShape};
use crate::layer::unset;
use crate::layout::Layout;
use crate::logistic;
use crate::mean;
use crate::model::{Architecture, Batch, Model, Network, ParticleModel, Task};
use crate::prior::{Prior, PriorTerm};
use crate::simd;

/// The widening of the predictive by the KDE kernel around each particle: σ(κ w·x), κ = (1 + π λ²‖x‖²/8)^(−1/2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probit {
    /// Standard deviation λ of the KDE kernel.
    pub lambda: f64,
}

/// Bayesian logistic regression for two classes.
#[derive(Clone, Debug, PartialEq)]
pub struct BlrConfig {
    /// The number of features p.
    pub features: usize,
    /// Shape a of the Gamma prior of ξ.
    pub gamma_shape: f64,
    /// Rate b of the Gamma prior of ξ.
    pub gamma_rate: f64,
    /// Whether a column of ones is appended to the features.
    pub bias: bool,
    /// Probit predictive; `None` averages σ(w·x) over the particles.
    pub probit: Option<Probit>,
}

impl BlrConfig {
    /// The papers' regression on `features` columns: Gamma(1, scale 0.01), no bias, plain average.
    pub fn new(features: usize) -> Self {
        Self { features, gamma_shape: 1.0, gamma_rate: 100.0, bias: false, probit: None }
    }

    /// The configuration, if it is valid.
    ///
    /// # Errors
    /// The number of features is 0.
    pub fn check(self) -> Result<Self, ModelError> {
        if self.features == 0 {
            return Err(ModelError::Empty { what: "the number of features" });
        }
        Ok(self)
    }
}

/// N logistic regressions.
#[derive(Module, Debug)]
pub struct Blr {
    /// w, `[N, 1, p]`, with one more column where there is a bias.
    pub weight: Param<Tensor<3>>,
    /// log ξ, `[N, 1, 1]`.
    pub log_precision: Param<Tensor<3>>,
    bias: bool,
    probit_lambda: Option<f64>,
}

impl Blr {
    /// The logits w_n·x.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, B]`
    pub fn logits(&self, inputs: Tensor<2>) -> Tensor<2> {
        let [particles, _, width] = self.weight.val().dims();
        self.weight.val().reshape([particles, width]).matmul(with_bias(inputs, self.bias).transpose())
    }
}

/// The features `[B, p]`, followed by a column of ones where there is a bias.
fn with_bias(inputs: Tensor<2>, bias: bool) -> Tensor<2> {
    if !bias {
        return inputs;
    }
    let ones = inputs.clone().narrow(1, 0, 1).ones_like();
    Tensor::cat(vec![inputs, ones], 1)
}

impl ParticleModel for Blr {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        // y in {-1, +1} from the one-hot columns; log σ(y z) stays finite for every z.
        let logits = self.logits(batch.inputs.clone());
        let positive = batch.targets.clone().narrow(1, 1, 1).transpose();
        let rows = match &batch.weights {
            None => activation::log_sigmoid(logits * positive.mul_scalar(2.0).sub_scalar(1.0)),
            Some(weights) => {
                let weights = weights.clone().transpose();
                let sign = (positive.mul_scalar(2.0) - weights.clone()).sign();
                activation::log_sigmoid(logits * sign) * weights
            }
        };
        rows.sum_dim(1).squeeze_dim(1)
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        let mut logits = self.logits(inputs.clone());
        if let Some(lambda) = self.probit_lambda {
            let norm = with_bias(inputs, self.bias).square().sum_dim(1).transpose();
            let kappa = norm.mul_scalar(PI * lambda * lambda / 8.0).add_scalar(1.0).sqrt().recip();
            logits = logits * kappa;
        }
        Tensor::stack(vec![activation::log_sigmoid(logits.clone().neg()), activation::log_sigmoid(logits)], 2)
    }
}

impl Architecture for BlrConfig {
    type Module = Blr;

    fn module(&self, particles: usize, device: &Device) -> Blr {
        Blr {
            weight: unset([particles, 1, self.features + usize::from(self.bias)], device),
            log_precision: unset([particles, 1, 1], device),
            bias: self.bias,
            probit_lambda: self.probit.map(|probit| probit.lambda),
        }
    }

    /// Σ_i (y_i − σ(w_n·x_i)) x_i in w, and 0 in log ξ.
    fn likelihood_gradient(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Option<Vec<Tensor<2>>> {
        let inputs = with_bias(batch.inputs.clone(), self.bias); // [B, p]
        if let Some(score) = logistic::score(&particles[0], &inputs, batch, scale) {
            let count = score.dims()[0];
            return Some(vec![score, simd::matrix(vec![0.0; count], [count, 1])]);
        }
        let positive = batch.targets.clone().narrow(1, 1, 1).transpose(); // [1, B]
        let mean = mean::logistic(particles[0].clone().matmul(inputs.clone().transpose())); // [N, B]
        let residual = match &batch.weights {
            None => positive - mean,
            Some(weights) => positive - mean * weights.clone().transpose(),
        };
        Some(vec![residual.matmul(inputs).mul_scalar(scale), particles[1].zeros_like()])
    }

    /// σ(1 − σ) for each row, the expectation over the model's own labels.
    fn row_curvature(&self, particles: &[Tensor<2>], inputs: &Tensor<2>) -> Option<RowCurvature> {
        let rows = inputs.dims()[0];
        let inputs = with_bias(inputs.clone(), self.bias); // [B, p]
        let mean = mean::logistic(particles[0].clone().matmul(inputs.clone().transpose())); // [N, B]
        let squares = (mean.clone() * mean.neg().add_scalar(1.0)).unsqueeze_dim::<3>(1);
        let inputs = LayerInputs::Shared(inputs);
        let dense = LayerRows::Dense { inputs, gradients: OutputGradients::Squares(squares) };
        let layer = LayerCurvature { weight: 0, bias: None, rows: dense };
        Some(RowCurvature { layers: vec![layer], noise: None, rows })
    }

    fn task(&self) -> Task {
        Task::Classification { classes: 2 }
    }

    fn prior(&self, _layout: &Layout) -> Prior {
        let (shape, rate) = (self.gamma_shape, self.gamma_rate);
        Prior { terms: vec![PriorTerm::HierarchicalNormal { weights: vec![0], log_precision: 1, shape, rate }] }
    }
}

fedstein_schema::words! {
    /// The predictive probability of logistic regression.
    pub enum Predictive {
        /// The mean over the particles.
        Mean = "mean",
        /// The mean over Gaussians around the particles.
        Probit = "probit",
    }
}

/// `[model] kind = "blr"`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlrSpec {
    /// Shape a of the Gamma prior of ξ.
    pub gamma_shape: f64,
    /// The rate b of that prior.
    pub gamma_rate: f64,
    /// Whether a constant feature is added.
    pub bias: bool,
    /// The predictive probability.
    pub predictive: Predictive,
    /// The standard deviation λ of the probit predictive.
    pub probit_lambda: f64,
}

impl BlrSpec {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "blr",
        about: "Bayesian logistic regression, two classes.",
        keys: &[
            GAMMA_SHAPE.doc("Shape of the Gamma prior of the weights' precision."),
            GAMMA_RATE.default(F(100.0)).doc(
                "Rate of the same prior; the default is [D]'s code, which reads \"Gamma(1, 0.01)\" as scale 0.01, so rate 100.",
            ),
            key("bias", Bool, Literal::Bool(false), "Whether a constant feature is added ([D]: no)."),
            key(
                "predictive",
                Choice(Predictive::WORDS),
                T(Predictive::Mean.word()),
                "Mean over particles of the probability, or with each particle widened to a Gaussian of sd λ = `probit_lambda`: σ(wᵀx / √(1 + πλ²‖x‖²/8)) ([D] eq. 24, which prints 1/λ² in the place of λ²).",
            ),
            key(
                "probit_lambda",
                POSITIVE,
                F(0.55),
                "Standard deviation for `predictive = \"probit\"` ([D]: 0.55); ignored otherwise.",
            ),
        ],
    };
}

impl ModelKind for BlrSpec {
    fn build(&self, data: &DataShape) -> Result<Arc<dyn Model>, ModelError> {
        let Self { gamma_shape, gamma_rate, bias, predictive, probit_lambda } = *self;
        let targets = |has: String| ModelError::Targets {
            kind: Self::KIND.name,
            needs: "separates two classes",
            data: data.name.clone(),
            has,
            remedy: "use model.kind = \"bnn\"",
        };
        match data.targets {
            TargetShape::Classes(2) => {}
            TargetShape::Classes(classes) => return Err(targets(classes.to_string())),
            TargetShape::Real => return Err(targets("real targets".to_string())),
            TargetShape::None => return Err(targets("no labels".to_string())),
        }
        let probit = (predictive == Predictive::Probit).then_some(Probit { lambda: probit_lambda });
        let regression = BlrConfig { features: data.features(), gamma_shape, gamma_rate, bias, probit };
        Ok(Arc::new(Network::new(regression.check()?)))
    }

    fn targets(&self) -> ModelTargets {
        ModelTargets::TwoClasses
    }

    fn has_constant(&self) -> bool {
        self.bias
    }

    fn is_logistic_regression(&self) -> bool {
        true
    }

    fn prior_and_start_keys(&self) -> [&'static [&'static str]; 2] {
        // It starts at draws from its prior.
        [&["gamma_shape", "gamma_rate"]; 2]
    }

    fn unused_keys(&self, _is_classification: bool) -> Vec<UnusedKeys> {
        let unused = UnusedKeys { keys: &["probit_lambda"], why: "`model.predictive` is not \"probit\"".into() };
        if self.predictive == Predictive::Probit { Vec::new() } else { vec![unused] }
    }

    fn has_curvature(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Network};
    use burn::tensor::{DType, TensorData};

    /// The same regression without the gradient's formula.
    #[derive(Debug)]
    struct OnTheTape(BlrConfig);

    impl Architecture for OnTheTape {
        type Module = Blr;

        fn module(&self, particles: usize, device: &Device) -> Blr {
            self.0.module(particles, device)
        }

        fn task(&self) -> Task {
            self.0.task()
        }

        fn prior(&self, layout: &Layout) -> Prior {
            self.0.prior(layout)
        }
    }

    #[test]
    fn the_formula_is_what_autodiff_makes_of_the_likelihood() {
        for bias in [false, true] {
            let config = BlrConfig { bias, ..BlrConfig::new(5) };
            let tensor = |rows: usize, columns: usize, f: fn(usize) -> f64| {
                let data = TensorData::new((0..rows * columns).map(f).collect::<Vec<_>>(), [rows, columns]);
                Tensor::<2>::from_data(data, (&Device::flex(), DType::F64))
            };
            let particles = [tensor(3, 5 + usize::from(bias), |i| (i as f64 * 0.7).sin() * 2.0), tensor(3, 1, |_| 0.3)];
            let positive = tensor(4, 1, |i| f64::from(u8::from(i % 3 == 0)));
            let targets = Tensor::cat(vec![positive.clone().neg().add_scalar(1.0), positive], 1);
            let batch = Batch::new(tensor(4, 5, |i| (i as f64 * 1.3).cos() * 3.0), targets);
            let formula = Network::new(config.clone()).likelihood_score(&particles, &batch, 2.5);
            let taped = Network::new(OnTheTape(config)).likelihood_score(&particles, &batch, 2.5);
            for (formula, taped) in formula.into_iter().zip(taped) {
                assert_eq!(formula.dims(), taped.dims());
                let furthest = (formula - taped).abs().max().into_scalar::<f64>();
                assert!(furthest < 1e-12, "bias {bias}: {furthest}");
            }
        }
    }
}
