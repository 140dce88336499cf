//! The kernel density estimate of a particle set: log q(θ) and ∇ log q(θ).
//!
//! q(θ) = (1/N) Σ_n N(θ; θ_n, λ²I). All computations are in the log domain: ∇ log q(θ) = (Σ_n w_n θ_n − θ)/λ² with
//! w = softmax_n(−‖θ − θ_n‖²/2λ²). Source: Kassab & Simeone eq. (8), (14).

use burn::tensor::{DType, TensorReadError};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use std::f64::consts::PI;

use super::LogDensity;
use crate::error::RunError;
use crate::particles::Particles;
use crate::stein::{Bandwidth, Distances, Score};

/// Weights below this are set to 0 in f32. They change no sum by a bit, since the rounding of f32 is 2^−24.
const NEGLIGIBLE_WEIGHT: f64 = 1.0 / (1u64 << 40) as f64;

/// A centre whose exponent is smaller than the largest by this much has a weight far below [`NEGLIGIBLE_WEIGHT`]. All
/// such weights together are less than the last bit of a weight of 1 in f64.
const NEGLIGIBLE_GAP: f64 = 64.0;

/// A density counts as one-hot where at each centre the sum of all other weights, relative to its own, is below this.
const ONE_HOT_REMAINDER: f64 = 0.01;

/// A density counts as none where the public codes' formula leaves less than this of its exact score.
const NEGLIGIBLE_FACTOR: f64 = 0.01;

/// What the public codes add to a density before they take its logarithm.
const REFERENCE_FLOOR: f64 = 1e-10;

fedstein_schema::words! {
    /// The formula of a density estimate's score.
    #[derive(Default)]
    pub enum KdeMode {
        /// The score of the density, by log-sum-exp, as in the papers.
        #[default]
        Exact = "exact",
        /// The score times the underflow factor of the public codes, which is nearly 0 for d ≳ 20.
        Reference = "reference",
        /// No density terms: the score is 0.
        Off = "off",
    }
}

/// Standard deviation λ of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KdeBandwidth {
    /// A constant; 0.55 in the papers.
    Fixed(f64),
    /// λ² = median of the centres' pairwise r² over 2 ln(N+1): the kernel of SVGD's default bandwidth rule.
    Median,
    /// λ = sd·N^(−1/(d+4)) with sd² the mean over coordinates of the centres' unbiased variance.
    Scott,
}

/// The configuration of density estimates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KdeConfig {
    /// The formula of the score.
    pub mode: KdeMode,
    /// The width of the kernel.
    pub bandwidth: KdeBandwidth,
}

/// The kernel density estimate with these centres.
#[derive(Clone, Debug)]
pub struct Kde {
    mode: KdeMode,
    /// The centres θ_j minus their mean, `[M, d]`, so that f32 keeps its digits for the differences. Products and
    /// scores read no second array of this size, which would not fit the cache.
    offsets: Particles,
    /// The mean of the centres, `[1, d]`.
    mean: Particles,
    /// λ.
    lambda: f64,
    /// mean·offset_j + ½‖offset_j‖², `[M]`: θ·offset_j minus this is −½‖θ − θ_j‖² up to a term that all j have in
    /// common.
    shift: Array1<f64>,
    /// ‖θ_j − θ_l‖, `[M, M]`.
    apart: Array2<f64>,
}

/// Truncated weights, and how long they hold.
#[derive(Clone, Debug)]
pub(super) struct TruncatedWeights {
    /// w_ij without negligible weights, `[N, M]`.
    pub values: Array2<f64>,
    /// No weight changes by a bit while every particle moves at most this far; 0 where there is no such distance.
    pub reach: f64,
}

impl Kde {
    /// The density with the rows of `centres` `[M, d]` as its centres.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn new(centres: &Particles, config: KdeConfig) -> Result<Self, TensorReadError> {
        let (offsets, mean) = centres.centred();
        let gram = offsets.gram(&offsets)?;
        let along_mean = mean.gram(&offsets)?.row(0).to_owned();
        let shift = along_mean + gram.diag().mapv(|norm| 0.5 * norm);
        let lambda = config.bandwidth.evaluate(&gram, centres.dim());
        let apart = Distances::of_gram(&gram).matrix().mapv(f64::sqrt);
        Ok(Self { mode: config.mode, offsets, mean, lambda, shift, apart })
    }

    /// The standard deviation λ of the kernel.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// Whether the score is 0 at every θ: densities are off, or the public codes' formula underflows even at a centre.
    pub fn has_zero_score(&self) -> bool {
        self.is_below(f64::MIN_POSITIVE)
    }

    /// Whether the score says nothing at any θ: densities are off, or the public codes' formula leaves less than a hundredth of
    /// the exact score even where all centres coincide. What such a density stands for, the prior among it, has to come from
    /// elsewhere.
    pub fn is_negligible(&self) -> bool {
        // Q/(Q + 1e-10) < s is Q < 1e-10·s/(1 − s).
        self.is_below(REFERENCE_FLOOR * NEGLIGIBLE_FACTOR / (1.0 - NEGLIGIBLE_FACTOR))
    }

    /// Whether the density Q of the public codes' formula is below this at every θ; always where densities are off.
    fn is_below(&self, q: f64) -> bool {
        let (count, d) = (self.offsets.count(), self.offsets.dim());
        match self.mode {
            KdeMode::Off => true,
            KdeMode::Exact => false,
            // Q ≤ (N + 1)·e^(−normaliser)
            KdeMode::Reference => (count as f64).ln_1p() - reference_log_normaliser(count, d, self.lambda) < q.ln(),
        }
    }

    /// Whether the centres are so far apart that at each of them all others together have less than a hundredth of its
    /// weight. Always false unless the score is the exact one.
    pub fn is_one_hot(&self) -> bool {
        let weight = |r: &f64| (-r * r / (2.0 * self.lambda * self.lambda)).exp();
        // Each row contains the centre itself, with a weight of 1.
        let others = |row: ArrayView1<f64>| row.iter().map(weight).sum::<f64>() - 1.0;
        self.mode == KdeMode::Exact && self.apart.rows().into_iter().all(|row| others(row) < ONE_HOT_REMAINDER)
    }

    /// w_ij = softmax_j(−‖θ_i − θ_j‖²/2λ²), `[N, M]`, at particles `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn weights(&self, at: &Particles) -> Result<Array2<f64>, TensorReadError> {
        Ok(softmax(self.relative_exponents(at.gram(&self.offsets)?)))
    }

    /// −‖θ_i − θ_j‖²/2λ² up to a term that depends on i alone, `[N, M]`, from the products θ_i·offset_j.
    fn relative_exponents(&self, products: Array2<f64>) -> Array2<f64> {
        (products - &self.shift) / (self.lambda * self.lambda)
    }

    /// The weights, `[N, M]`, with 0 for negligible ones where the particles are in f32.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub(super) fn truncated_weights(&self, at: &Particles) -> Result<TruncatedWeights, TensorReadError> {
        let products = at.gram(&self.offsets)?;
        let largest = products.iter().fold(0.0f64, |most, product| most.max(product.abs()));
        let exponents = self.relative_exponents(products);
        if at.dtype() != DType::F32 {
            return Ok(TruncatedWeights { values: softmax(exponents), reach: 0.0 });
        }
        let reach = self.reach(&exponents, largest);
        let values = softmax(exponents).mapv(|w| if w < NEGLIGIBLE_WEIGHT { 0.0 } else { w });
        Ok(TruncatedWeights { values, reach })
    }

    /// How far every particle with these exponents `[N, M]` may move while one centre keeps all of its weight; 0 where
    /// it does not have all of it. `largest` is the largest absolute value of the products that the exponents come
    /// from.
    ///
    /// A displacement δ changes x_j − x_l = θ·(θ_j − θ_l)/λ² + … by at most ‖δ‖·‖θ_j − θ_l‖/λ².
    fn reach(&self, exponents: &Array2<f64>, largest: f64) -> f64 {
        let variance = self.lambda * self.lambda;
        // A hundred times the error of f32 products.
        let margin = NEGLIGIBLE_GAP + 1e-5 * largest / variance;
        let mut reach = f64::INFINITY;
        for row in exponents.rows() {
            let Some((own, top)) = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else { continue };
            for (other, x) in row.iter().enumerate().filter(|(other, _)| *other != own) {
                let far = (top - x - margin) * variance / self.apart[[own, other]];
                if far.is_nan() || far <= 0.0 {
                    return 0.0;
                }
                reach = reach.min(far);
            }
        }
        reach
    }

    /// Effective number of centres at each θ_i, `[N]`: exp of the entropy of w_i, from 1 (one-hot) to M.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn effective_sample_size(&self, at: &Particles) -> Result<Vec<f64>, TensorReadError> {
        let weights = self.weights(at)?;
        let entropy = |row: ArrayView1<f64>| row.iter().filter(|w| **w > 0.0).map(|w| -w * w.ln()).sum::<f64>();
        Ok(weights.rows().into_iter().map(|row| entropy(row).exp()).collect())
    }

    /// log q(θ_i), `[N]`, at particles `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn log_density(&self, at: &Particles) -> Result<Vec<f64>, TensorReadError> {
        let (count, d) = (self.offsets.count() as f64, self.offsets.dim() as f64);
        let constant = count.ln() + 0.5 * d * (2.0 * PI * self.lambda * self.lambda).ln();
        let log_sum = |row: ArrayView1<f64>| {
            let top = row.fold(f64::NEG_INFINITY, |top, value| top.max(*value));
            top + row.mapv(|value| (value - top).exp()).sum().ln()
        };
        Ok(self.exponents(at)?.rows().into_iter().map(|row| log_sum(row) - constant).collect())
    }

    /// −‖θ_i − θ_j‖²/2λ², `[N, M]`, at particles `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn exponents(&self, at: &Particles) -> Result<Array2<f64>, TensorReadError> {
        let from_mean = at.clone().zip(self.mean.clone(), |block, mean| block - mean);
        let norms = from_mean.squared_norms()?;
        let centre_norms = self.offsets.squared_norms()?;
        let products = from_mean.gram(&self.offsets)?;
        let scale = -0.5 / (self.lambda * self.lambda);
        Ok(Array2::from_shape_fn(products.raw_dim(), |(i, j)| {
            scale * (norms[i] + centre_norms[j] - 2.0 * products[[i, j]]).max(0.0)
        }))
    }

    /// The score at particles `[N, d]`, by weights from `weights`, which is called only where the score needs them.
    ///
    /// # Errors
    /// `weights` fails, or reading from the device.
    pub(super) fn score_by(
        &self,
        at: &Particles,
        weights: impl FnOnce() -> Result<Array2<f64>, TensorReadError>,
    ) -> Result<Score, RunError> {
        let n = at.count();
        if self.has_zero_score() {
            return Ok(Score::zero(n));
        }
        let mut strength = Array1::from_elem(n, 1.0 / (self.lambda * self.lambda));
        if self.mode == KdeMode::Reference {
            let factor = |row: ArrayView1<f64>| reference_factor(row, self.offsets.dim(), self.lambda);
            strength *= &Array1::from_iter(self.exponents(at)?.rows().into_iter().map(factor));
        }
        // Σ_j w_ij θ_j = mean + Σ_j w_ij offset_j.
        let of_mean = strength.clone().insert_axis(Axis(1));
        let of_offsets = weights()? * &of_mean;
        Ok(Score::linear(-strength, [(of_offsets, self.offsets.clone()), (of_mean, self.mean.clone())]))
    }
}

impl LogDensity for Kde {
    fn score(&self, at: &Particles) -> Result<Score, RunError> {
        self.score_by(at, || Ok(self.truncated_weights(at)?.values))
    }
}

/// e^(x_ij) over the sum of its row, `[N, M]`.
fn softmax(mut exponents: Array2<f64>) -> Array2<f64> {
    for mut row in exponents.rows_mut() {
        let top = row.fold(f64::NEG_INFINITY, |top, value| top.max(*value));
        row.mapv_inplace(|value| (value - top).exp());
        let total = row.sum();
        row /= total;
    }
    exponents
}

impl KdeBandwidth {
    /// λ for centres in d dimensions, from the Gram matrix `[M, M]` of their offsets from the mean.
    pub fn evaluate(self, gram: &Array2<f64>, d: usize) -> f64 {
        let n = gram.nrows() as f64;
        match self {
            Self::Fixed(lambda) => lambda,
            // h = 2λ² by the reference rule of SVGD, including its results for N = 1 and for equal centres.
            Self::Median => (0.5 * Bandwidth::default().evaluate(&Distances::of_gram(gram), 2)).sqrt(),
            Self::Scott => {
                let variance = gram.diag().sum() / ((n - 1.0).max(1.0) * d as f64);
                let lambda = variance.sqrt() * n.powf(-1.0 / (d as f64 + 4.0));
                if lambda > 0.0 { lambda } else { 1.0 }
            }
        }
    }
}

/// (d/2) ln(N·2πλ²): in the public codes N is inside the power.
fn reference_log_normaliser(count: usize, d: usize, lambda: f64) -> f64 {
    0.5 * d as f64 * (count as f64 * 2.0 * PI * lambda * lambda).ln()
}

/// The factor by which the public codes reduce the exact score at one θ: [Q/(Q + 1e-10)]·[A/(A + N·1e-9)] with
/// A = Σ_j e^(x_j) over the exponents x `[N]` and Q = (A + N·1e-9)·(N·2πλ²)^(−d/2).
pub fn reference_factor(exponents: ArrayView1<f64>, d: usize, lambda: f64) -> f64 {
    let a: f64 = exponents.iter().map(|exponent| exponent.exp()).sum();
    let floored = a + 1e-9 * exponents.len() as f64;
    let q = (floored.ln() - reference_log_normaliser(exponents.len(), d, lambda)).exp();
    q / (q + REFERENCE_FLOOR) * (a / floored)
}
