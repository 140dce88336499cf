//! Kernel density estimates: how a set of particles speaks as a density, log q(θ) and ∇ log q(θ).
//!
//! q(θ) = (1/N) Σ_n N(θ; θ_n, λ²I). Always in the log domain: ∇ log q(θ) = (Σ_n w_n θ_n − θ)/λ² with
//! w = softmax_n(−‖θ − θ_n‖²/2λ²). Source: Kassab & Simeone eq. (8), (14); ALGORITHMS 3.8, 8.2.

use burn::tensor::TensorReadError;
use ndarray::{Array1, Array2, ArrayView1, Axis};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

use super::{LogDensity, Score};
use crate::backend::Backend;
use crate::error::RunError;
use crate::particles::Particles;
use crate::stein::{Bandwidth, Distances};

/// Which score a density estimate answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KdeMode {
    /// The score of the density, by log-sum-exp: the printed algorithm.
    #[default]
    Exact,
    /// The score times the underflow factor of the public codes: nothing is left of it for d ≳ 20.
    Reference,
    /// No density terms at all.
    Off,
}

/// Standard deviation λ of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KdeBandwidth {
    /// The papers' 0.55.
    Fixed(f64),
    /// λ² = median of the centres' pairwise r² over 2 ln(N+1): as soft as the kernel in which SVGD moves.
    Median,
    /// λ = sd·N^(−1/(d+4)), sd² the mean over coordinates of the centres' unbiased variance.
    Scott,
}

/// How densities are estimated from particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KdeConfig {
    /// Which score.
    pub mode: KdeMode,
    /// How wide.
    pub bandwidth: KdeBandwidth,
}

/// The density of a set of centres.
#[derive(Clone, Debug)]
pub struct Kde<B: Backend> {
    mode: KdeMode,
    /// The centres θ_j less their mean, `[M, d]`: f32 keeps its digits for the differences. Products and scores read these
    /// alone, which stay in the cache where the centres beside them would not.
    offsets: Particles<B>,
    mean: Particles<B>,
    lambda: f64,
    /// mean·offset_j + ½‖offset_j‖², `[M]`: θ·offset_j less this is −½‖θ − θ_j‖², up to a term common to all j.
    shift: Array1<f64>,
}

impl<B: Backend> Kde<B> {
    /// The density of the rows of `centres`.
    pub fn new(centres: &Particles<B>, config: KdeConfig) -> Result<Self, TensorReadError> {
        let (offsets, mean) = centres.centred();
        let gram = offsets.gram(&offsets)?;
        let along_mean = mean.gram(&offsets)?.row(0).to_owned();
        let shift = along_mean + gram.diag().mapv(|norm| 0.5 * norm);
        let lambda = config.bandwidth.evaluate(&gram, centres.dim());
        Ok(Self { mode: config.mode, offsets, mean, lambda, shift })
    }

    /// The same centres with λ·`factor`: the density to the power 1/factor², where one centre speaks.
    pub fn widened(mut self, factor: f64) -> Self {
        self.lambda *= factor;
        self
    }

    /// λ.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// Whether the score is 0 at every θ: densities are off, or even a point on a centre underflows in the public
    /// codes' formula.
    pub fn is_silent(&self) -> bool {
        let (count, d) = (self.offsets.count(), self.offsets.dim());
        match self.mode {
            KdeMode::Off => true,
            KdeMode::Exact => false,
            // Q ≤ (N + 1)·e^(−normaliser), which is below f64's smallest number here.
            KdeMode::Reference => {
                (count as f64).ln_1p() - reference_log_normaliser(count, d, self.lambda) < f64::MIN_POSITIVE.ln()
            }
        }
    }

    /// w_ij = softmax_j(−‖θ_i − θ_j‖²/2λ²), `[N, M]`.
    pub fn weights(&self, at: &Particles<B>) -> Result<Array2<f64>, TensorReadError> {
        let products = at.gram(&self.offsets)?;
        let mut w = (products - &self.shift) / (self.lambda * self.lambda);
        for mut row in w.rows_mut() {
            let top = row.fold(f64::NEG_INFINITY, |top, value| top.max(*value));
            row.mapv_inplace(|value| (value - top).exp());
            let total = row.sum();
            row /= total;
        }
        Ok(w)
    }

    /// Effective number of centres that speak at each θ_i: exp of the entropy of w_i, from 1 (one-hot) to M.
    pub fn effective_sample_size(&self, at: &Particles<B>) -> Result<Vec<f64>, TensorReadError> {
        let weights = self.weights(at)?;
        let entropy = |row: ArrayView1<f64>| row.iter().filter(|w| **w > 0.0).map(|w| -w * w.ln()).sum::<f64>();
        Ok(weights.rows().into_iter().map(|row| entropy(row).exp()).collect())
    }

    /// log q(θ_i), `[N]`.
    pub fn log_density(&self, at: &Particles<B>) -> Result<Vec<f64>, TensorReadError> {
        let (count, d) = (self.offsets.count() as f64, self.offsets.dim() as f64);
        let constant = count.ln() + 0.5 * d * (2.0 * PI * self.lambda * self.lambda).ln();
        let log_sum = |row: ArrayView1<f64>| {
            let top = row.fold(f64::NEG_INFINITY, |top, value| top.max(*value));
            top + row.mapv(|value| (value - top).exp()).sum().ln()
        };
        Ok(self.exponents(at)?.rows().into_iter().map(|row| log_sum(row) - constant).collect())
    }

    /// −‖θ_i − θ_j‖²/2λ², `[N, M]`.
    pub fn exponents(&self, at: &Particles<B>) -> Result<Array2<f64>, TensorReadError> {
        let from_mean = at.clone().zip(self.mean.clone(), |block, mean| block - mean);
        let norms = from_mean.squared_norms()?;
        let centre_norms = self.offsets.squared_norms()?;
        let products = from_mean.gram(&self.offsets)?;
        let scale = -0.5 / (self.lambda * self.lambda);
        Ok(Array2::from_shape_fn(products.raw_dim(), |(i, j)| {
            scale * (norms[i] + centre_norms[j] - 2.0 * products[[i, j]]).max(0.0)
        }))
    }
}

impl<B: Backend> LogDensity<B> for Kde<B> {
    fn score(&self, at: &Particles<B>) -> Result<Score<B>, RunError> {
        let n = at.count();
        if self.is_silent() {
            return Ok(Score::zero(n));
        }
        let mut strength = Array1::from_elem(n, 1.0 / (self.lambda * self.lambda));
        if self.mode == KdeMode::Reference {
            let factor = |row: ArrayView1<f64>| reference_factor(row, self.offsets.dim(), self.lambda);
            strength *= &Array1::from_iter(self.exponents(at)?.rows().into_iter().map(factor));
        }
        // Σ_j w_ij θ_j = mean + Σ_j w_ij offset_j.
        let of_mean = strength.clone().insert_axis(Axis(1));
        let of_offsets = self.weights(at)? * &of_mean;
        Ok(Score::linear(-strength, [(of_offsets, self.offsets.clone()), (of_mean, self.mean.clone())]))
    }
}

impl KdeBandwidth {
    /// λ of centres with this Gram matrix of offsets from their mean, in d dimensions.
    pub fn evaluate(self, gram: &Array2<f64>, d: usize) -> f64 {
        let n = gram.nrows() as f64;
        match self {
            Self::Fixed(lambda) => lambda,
            // h = 2λ² with the reference rule of SVGD, and with its answers for N = 1 and for equal centres.
            Self::Median => (0.5 * Bandwidth::default().evaluate(&Distances::of_gram(gram), 2)).sqrt(),
            Self::Scott => {
                let variance = gram.diag().sum() / ((n - 1.0).max(1.0) * d as f64);
                let lambda = variance.sqrt() * n.powf(-1.0 / (d as f64 + 4.0));
                if lambda > 0.0 { lambda } else { 1.0 }
            }
        }
    }
}

/// (d/2) ln(N·2πλ²): the public codes have N inside the power.
fn reference_log_normaliser(count: usize, d: usize, lambda: f64) -> f64 {
    0.5 * d as f64 * (count as f64 * 2.0 * PI * lambda * lambda).ln()
}

/// What the public codes leave of the exact score at one θ: [Q/(Q + 1e-10)]·[A/(A + N·1e-9)] with A = Σ_j e^(x_j) over
/// the exponents x `[N]` and Q = (A + N·1e-9)·(N·2πλ²)^(−d/2).
pub fn reference_factor(exponents: ArrayView1<f64>, d: usize, lambda: f64) -> f64 {
    let a: f64 = exponents.iter().map(|exponent| exponent.exp()).sum();
    let floored = a + 1e-9 * exponents.len() as f64;
    let q = (floored.ln() - reference_log_normaliser(exponents.len(), d, lambda)).exp();
    q / (q + 1e-10) * (a / floored)
}
