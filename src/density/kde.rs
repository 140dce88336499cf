//! Kernel density estimates: how a set of particles speaks as a density, log q(θ) and ∇ log q(θ).
//!
//! q(θ) = (1/N) Σ_n N(θ; θ_n, λ²I). Always in the log domain: ∇ log q(θ) = (Σ_n w_n θ_n − θ)/λ² with
//! w = softmax_n(−‖θ − θ_n‖²/2λ²). Source: Kassab & Simeone eq. (8), (14); ALGORITHMS 3.8, 8.2.

use burn::tensor::{DType, TensorReadError};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::f64::consts::PI;

use super::LogDensity;
use crate::backend::Backend;
use crate::error::RunError;
use crate::journey::Journey;
use crate::particles::Particles;
use crate::stein::{Bandwidth, Distances, Score};

/// Weight of a centre below which f32 does not hear it beside the others: its rounding is 2^−24.
const UNHEARD: f64 = 1.0 / (1u64 << 40) as f64;

/// How much smaller than the largest an exponent is whose weight is far below [`UNHEARD`], and below the last bit of f64
/// beside a weight of 1, however many there are.
const UNHEARD_FOR_SURE: f64 = 64.0;

/// Weight of all other centres at a centre, beside its own, below which a density counts as one-hot.
const NEGLIGIBLE_TOGETHER: f64 = 0.01;

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
    /// ‖θ_j − θ_l‖, `[M, M]`.
    apart: Array2<f64>,
    /// What is known of particles on their way.
    known: RefCell<Option<Known>>,
}

/// Weights that hold until particles have moved too far.
#[derive(Clone, Debug)]
struct Known {
    weights: Array2<f64>,
    at: Journey,
    /// How far each particle may move: one centre alone speaks to it, with weight 1 to the last bit.
    reach: f64,
}

impl<B: Backend> Kde<B> {
    /// The density of the rows of `centres`.
    pub fn new(centres: &Particles<B>, config: KdeConfig) -> Result<Self, TensorReadError> {
        let (offsets, mean) = centres.centred();
        let gram = offsets.gram(&offsets)?;
        let along_mean = mean.gram(&offsets)?.row(0).to_owned();
        let shift = along_mean + gram.diag().mapv(|norm| 0.5 * norm);
        let lambda = config.bandwidth.evaluate(&gram, centres.dim());
        let apart = Distances::of_gram(&gram).matrix().mapv(f64::sqrt);
        Ok(Self { mode: config.mode, offsets, mean, lambda, shift, apart, known: RefCell::default() })
    }

    /// The same centres with λ·`factor`: the density to the power 1/factor², where one centre speaks.
    pub fn widened(mut self, factor: f64) -> Self {
        self.lambda *= factor;
        self.known.take();
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

    /// Whether the density is that of single Gaussians far apart: at each centre, all others together have less than a
    /// hundredth of its weight. Only where the score is the exact one.
    pub fn is_one_hot(&self) -> bool {
        let weight = |r: &f64| (-r * r / (2.0 * self.lambda * self.lambda)).exp();
        // Each row has the centre itself, with a weight of 1.
        let others = |row: ArrayView1<f64>| row.iter().map(weight).sum::<f64>() - 1.0;
        self.mode == KdeMode::Exact && self.apart.rows().into_iter().all(|row| others(row) < NEGLIGIBLE_TOGETHER)
    }

    /// w_ij = softmax_j(−‖θ_i − θ_j‖²/2λ²), `[N, M]`.
    pub fn weights(&self, at: &Particles<B>) -> Result<Array2<f64>, TensorReadError> {
        Ok(softmax(self.relative_exponents(at.gram(&self.offsets)?)))
    }

    /// −‖θ_i − θ_j‖²/2λ² up to a number for each i, from the products θ_i·offset_j, `[N, M]`.
    fn relative_exponents(&self, products: Array2<f64>) -> Array2<f64> {
        (products - &self.shift) / (self.lambda * self.lambda)
    }

    /// The weights as f32 hears them: centres whose voice is lost in rounding have 0.
    ///
    /// In high dimensions one centre speaks to each particle, and it takes many steps to come near another: then no
    /// products are taken meanwhile. The answer is the same to the last bit.
    fn audible_weights(&self, at: &Particles<B>) -> Result<Array2<f64>, TensorReadError> {
        if at.dtype() != DType::F32 {
            return self.weights(at);
        }
        if let (Some(known), Some(now)) = (&*self.known.borrow(), at.journey())
            && now.since(known.at) <= known.reach
        {
            return Ok(known.weights.clone());
        }
        let products = at.gram(&self.offsets)?;
        let largest = products.iter().fold(0.0f64, |most, product| most.max(product.abs()));
        let exponents = self.relative_exponents(products);
        let reach = self.reach(&exponents, largest);
        let weights = softmax(exponents).mapv(|w| if w < UNHEARD { 0.0 } else { w });
        let known = at.journey().filter(|_| reach > 0.0).map(|at| Known { weights: weights.clone(), at, reach });
        self.known.replace(known);
        Ok(weights)
    }

    /// How far every particle with these exponents may move before another centre than its own can be heard; `largest` is
    /// that of the products they come from.
    ///
    /// A move by δ changes x_j − x_l = θ·(θ_j − θ_l)/λ² + … by at most ‖δ‖·‖θ_j − θ_l‖/λ².
    fn reach(&self, exponents: &Array2<f64>, largest: f64) -> f64 {
        let variance = self.lambda * self.lambda;
        // A hundred times what f32 products are sure to.
        let margin = UNHEARD_FOR_SURE + 1e-5 * largest / variance;
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
        let of_offsets = self.audible_weights(at)? * &of_mean;
        Ok(Score::linear(-strength, [(of_offsets, self.offsets.clone()), (of_mean, self.mean.clone())]))
    }
}

/// e^(x_ij) over the sum of its row.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::{BlrConfig, Layout, Model, Network};
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};

    /// Five coordinates.
    fn layout() -> Arc<Layout> {
        Network::new(BlrConfig::new(4)).layout().clone()
    }

    fn set(rows: &[[f32; 5]]) -> Particles<Flex> {
        let session = Session::open(Precision::F32).unwrap();
        let array = Array { shape: vec![rows.len(), 5], values: Values::F32(rows.concat()) };
        Particles::from_array(&array, &layout(), &session).unwrap()
    }

    fn density(centres: &[[f32; 5]], lambda: f64) -> Kde<Flex> {
        let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(lambda) };
        Kde::new(&set(centres), config).unwrap()
    }

    #[test]
    fn a_centre_that_speaks_alone_is_taken_as_known_until_a_particle_has_come_far() {
        let centres = [[0.0; 5], [10.0, 0.0, 0.0, 0.0, 0.0]];
        let density = density(&centres, 0.5);
        let begin = Journey::begin();
        let weights = |row: usize, at: Journey| density.audible_weights(&set(&[centres[row]]).on(at)).unwrap();
        assert_eq!(weights(0, begin), ndarray::array![[1.0, 0.0]]);
        // The exponents 0 and −200 may come together by 200 − 64: 3.4 of the 10 between the centres. The particle is not
        // asked where it is.
        assert_eq!(weights(1, begin.after(3.3)), ndarray::array![[1.0, 0.0]]);
        assert_eq!(weights(1, begin.after(3.5)), ndarray::array![[0.0, 1.0]]);
        // What one loop found says nothing about another's particles.
        assert_eq!(weights(0, Journey::begin()), ndarray::array![[1.0, 0.0]]);
        assert_eq!(density.audible_weights(&set(&[centres[1]])).unwrap(), ndarray::array![[0.0, 1.0]]);
    }

    #[test]
    fn centres_that_speak_together_are_asked_every_time() {
        let density = density(&[[0.0; 5], [1.0, 0.0, 0.0, 0.0, 0.0]], 0.5);
        let begin = Journey::begin();
        let weight = |x: f32| density.audible_weights(&set(&[[x, 0.0, 0.0, 0.0, 0.0]]).on(begin)).unwrap()[[0, 0]];
        assert!(weight(0.1) > weight(0.2));
    }

    #[test]
    fn nobody_else_is_heard_within_reach() {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let mut reached = 0;
        for _ in 0..200 {
            let mut row = || std::array::from_fn(|_| rng.random_range(-10.0f32..10.0));
            let centres: Vec<[f32; 5]> = (0..4).map(|_| row()).collect();
            let x = row();
            let density = density(&centres, 0.4);
            density.audible_weights(&set(&[x]).on(Journey::begin())).unwrap();
            let Some(known) = density.known.take() else { continue };
            reached += 1;
            // Straight from the own centre to each other.
            let own = known.weights.row(0).iter().position(|w| *w == 1.0).unwrap();
            for other in (0..4).filter(|other| *other != own) {
                let way = known.reach as f32 / density.apart[[own, other]] as f32;
                let moved = std::array::from_fn(|i| x[i] + way * (centres[other][i] - centres[own][i]));
                let weights = density.audible_weights(&set(&[moved])).unwrap();
                assert_eq!(weights, known.weights, "{centres:?}, {x:?}");
            }
        }
        assert!(reached > 50, "{reached}");
    }
}
