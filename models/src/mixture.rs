//! The toy densities of the DSVGD paper: a client's likelihood of θ itself is a mixture of Gaussians.
//!
//! A row of "data" holds the mixture: `[weight, mean (d), covariance (d·d, row-major)]` for each of its components.
//! Source: Kassab & Simeone section 6 (Fig. 2, 3, 9, 10). The second argument of N(·,·) is a variance.

use std::f64::consts::PI;
use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Kind, key};
use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::kind::{DataShape, ModelKind, ModelTargets};
use crate::layer::unset;
use crate::layout::Layout;
use crate::model::{Architecture, Batch, Model, Network, ParticleModel, Task};
use crate::prior::{Prior, PriorTerm};

fedstein_schema::words! {
    /// The prior of a toy density.
    #[derive(Default)]
    pub enum MixturePrior {
        /// N(0, 1) in one dimension, N(0, [[4, 2], [2, 4]]) in two.
        #[default]
        Gaussian = "gaussian",
        /// U(-6, 6) in every coordinate.
        Uniform = "uniform",
    }
}

/// A density over θ in R^1 or R^2.
#[derive(Clone, Debug, PartialEq)]
pub struct MixtureConfig {
    dim: usize,
    components: usize,
    prior: MixturePrior,
}

impl MixtureConfig {
    /// A toy density whose data rows have `width` numbers and hold `components` components each.
    ///
    /// # Errors
    /// The width is not `components`·(1 + d + d²) for d = 1 or 2.
    pub fn new(width: usize, components: usize, prior: MixturePrior) -> Result<Self, ModelError> {
        let dim = [1, 2].into_iter().find(|d| components * (1 + d + d * d) == width);
        let dim = dim.ok_or_else(|| ModelError::Mismatch {
            what: "the width of a mixture's row".into(),
            got: width.to_string(),
            want: format!("{components} x (1 + d + d²) with d = 1 or 2"),
        })?;
        Ok(Self { dim, components, prior })
    }
}

/// N points of R^d.
#[derive(Module, Debug)]
pub struct Mixture {
    /// θ, `[N, d]`.
    pub theta: Param<Tensor<2>>,
    components: usize,
}

impl Mixture {
    /// log Σ_c w_c N(θ_n; m_c, V_c) of each row, `[N, B]`.
    fn row_log_likelihood(&self, rows: Tensor<2>) -> Tensor<2> {
        let theta = self.theta.val();
        let [particles, d] = theta.dims();
        let width = 1 + d + d * d;
        let count = rows.dims()[0];
        let terms = (0..self.components).map(|c| {
            let column = |k: usize| rows.clone().narrow(1, c * width + k, 1).transpose(); // [1, B]
            let offset = |i: usize| theta.clone().narrow(1, i, 1) - column(1 + i); // [N, B]
            let v = |i: usize, j: usize| column(1 + d + i * d + j);
            let (det, quadratic) = if d == 1 {
                (v(0, 0), offset(0).square() / v(0, 0))
            } else {
                let det = v(0, 0) * v(1, 1) - v(0, 1) * v(1, 0);
                let cross = offset(0) * offset(1) * (v(0, 1) + v(1, 0));
                let quadratic = offset(0).square() * v(1, 1) + offset(1).square() * v(0, 0) - cross;
                (det.clone(), quadratic / det)
            };
            let log_weight = column(0).log() - det.log().mul_scalar(0.5);
            let log_term = quadratic.mul_scalar(-0.5) + log_weight;
            log_term.sub_scalar(0.5 * d as f64 * (2.0 * PI).ln()).reshape([particles, count, 1])
        });
        let terms = Tensor::cat(terms.collect::<Vec<_>>(), 2); // [N, B, components]
        // log-sum-exp; an unused component has weight 0 and log-weight -inf, which exp turns into 0 again.
        let top = terms.clone().without_autodiff().max_dim(2);
        let sum = (terms - top.clone()).exp().sum_dim(2);
        (sum.log() + top).squeeze_dim(2)
    }
}

impl ParticleModel for Mixture {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        self.row_log_likelihood(batch.inputs.clone()).sum_dim(1).squeeze_dim(1)
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        self.row_log_likelihood(inputs).unsqueeze_dim(2)
    }
}

impl Architecture for MixtureConfig {
    type Module = Mixture;

    fn module(&self, particles: usize, device: &Device) -> Mixture {
        Mixture { theta: unset([particles, self.dim], device), components: self.components }
    }

    fn task(&self) -> Task {
        Task::Density
    }

    fn prior(&self, _layout: &Layout) -> Prior {
        let term = match (self.prior, self.dim) {
            (MixturePrior::Uniform, _) => PriorTerm::Uniform { block: 0, low: -6.0, high: 6.0 },
            (MixturePrior::Gaussian, 1) => PriorTerm::Normal { block: 0, precision: 1.0 },
            (MixturePrior::Gaussian, _) => PriorTerm::Gaussian {
                block: 0,
                mean: vec![0.0, 0.0],
                precision: vec![1.0 / 3.0, -1.0 / 6.0, -1.0 / 6.0, 1.0 / 3.0],
                cholesky: vec![2.0, 0.0, 1.0, 3f64.sqrt()],
            },
        };
        Prior { terms: vec![term] }
    }
}

/// The largest number of components of a toy's likelihood.
const COMPONENTS: usize = 2;

/// `[model] kind = "mixture"`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixtureSpec {
    /// The prior of θ.
    pub prior: MixturePrior,
}

impl MixtureSpec {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "mixture",
        about: "The toy densities of `mixture-1d` and `mixture-2d` themselves.",
        keys: &[key(
            "prior",
            Choice(MixturePrior::WORDS),
            T(MixturePrior::Gaussian.word()),
            "The toy's prior: normal, N(0, 1) in one dimension and N(0, [[4, 2], [2, 4]]) in two, or uniform on [-6, 6] in each. With the uniform one the column `kl` is of the density within these limits: particles beyond them do not count.",
        )],
    };
}

impl ModelKind for MixtureSpec {
    fn build(&self, data: &DataShape) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(Network::new(MixtureConfig::new(data.features(), COMPONENTS, self.prior)?)))
    }

    fn targets(&self) -> ModelTargets {
        ModelTargets::ToyDensity
    }
}
