//! A score as a sum of products of small matrices with long particle sets, which are multiplied as late as possible.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorReadError};
use fedstein_models::{FactoredScore, Layout, SharedGradient};
use ndarray::{Array1, Array2};

use crate::particles::Particles;
use crate::simd::SparseEntry;

/// A small host matrix C in a product C·X.
#[derive(Clone, Debug)]
pub(crate) enum Coefficients {
    /// diag(c), with c `[M]` for X `[M, d]`.
    Diagonal(Array1<f64>),
    /// C, `[N, M]`.
    Matrix(Array2<f64>),
}

impl Coefficients {
    /// K·C, `[N', M]`, for K `[N', N]`.
    pub fn after(&self, k: &Array2<f64>) -> Array2<f64> {
        match self {
            Self::Diagonal(c) => k * c,
            Self::Matrix(c) => k.dot(c),
        }
    }

    /// Whether C is diagonal, or at most an eighth of its elements are not 0: then it is quicker to compute the rows of
    /// C·X than to read all rows of X.
    pub fn is_sparse(&self) -> bool {
        match self {
            Self::Diagonal(_) => true,
            Self::Matrix(c) => 8 * c.iter().filter(|c| **c != 0.0).count() <= c.len(),
        }
    }

    /// Whether C is the identity.
    pub fn is_identity(&self) -> bool {
        matches!(self, Self::Diagonal(c) if c.iter().all(|c| *c == 1.0))
    }

    /// The nonzero elements.
    pub fn entries(&self) -> Vec<SparseEntry> {
        let entry =
            |row, column, value: &f64| (*value != 0.0).then_some(SparseEntry { row, column, value: *value as f32 });
        match self {
            Self::Diagonal(c) => c.indexed_iter().filter_map(|(i, c)| entry(i, i, c)).collect(),
            Self::Matrix(c) => c.indexed_iter().filter_map(|((i, j), c)| entry(i, j, c)).collect(),
        }
    }

    /// C as a matrix, `[N, M]`.
    pub fn into_matrix(self) -> Array2<f64> {
        match self {
            Self::Diagonal(c) => Array2::from_diag(&c),
            Self::Matrix(c) => c,
        }
    }

    /// The product by·C with the number `by`.
    pub fn scaled(self, by: f64) -> Self {
        match self {
            Self::Diagonal(c) => Self::Diagonal(c * by),
            Self::Matrix(c) => Self::Matrix(c * by),
        }
    }

    /// C·X, `[N, d]`.
    pub fn product(&self, of: &Particles) -> Particles {
        match self {
            _ if self.is_identity() => of.clone(),
            Self::Diagonal(c) => of.combine(&Array2::from_diag(c)),
            Self::Matrix(c) => of.combine(c),
        }
    }
}

/// The diagonal precisions of N Gaussians in one block.
#[derive(Clone, Debug)]
pub struct Precisions {
    /// One for each coordinate, `[N, size]`, or for each output of a layer, `[N, out]`.
    pub(crate) outputs: Tensor<2>,
    /// What those of the outputs are multiplied by for each input, `[1, in]`.
    pub(crate) inputs: Option<Tensor<2>>,
}

impl Precisions {
    /// One for each coordinate, `[N, size]`.
    pub fn of_coordinates(precisions: Tensor<2>) -> Self {
        Self { outputs: precisions, inputs: None }
    }

    /// w_no m_i in the weights of a layer, `[N, out·in]`, with w `[N, out]` and m `[1, in]`: a step reads these in the place of
    /// the product.
    pub fn of_layer(outputs: Tensor<2>, inputs: Tensor<2>) -> Self {
        Self { outputs, inputs: Some(inputs) }
    }

    /// One for each coordinate, `[N, size]`.
    fn elements(&self) -> Tensor<2> {
        let Some(inputs) = &self.inputs else { return self.outputs.clone() };
        let ([particles, out], [_, input]) = (self.outputs.dims(), inputs.dims());
        let product = self.outputs.clone().unsqueeze_dim::<3>(2) * inputs.clone().unsqueeze_dim::<3>(1);
        product.reshape([particles, out * input])
    }
}

/// The long factor X of a product C·X.
#[derive(Clone, Debug)]
pub(crate) enum Factor {
    /// The rows of a set, `[M, d]`.
    Rows(Particles),
    /// W∘(μ − Θ), with the means μ and the precisions W of N Gaussians, `[N, d]`.
    Gaussian {
        /// μ.
        mean: Particles,
        /// W, block by block; `None` where it is 0.
        precision: Arc<Vec<Option<Precisions>>>,
    },
    /// A likelihood's score whose first block is not multiplied yet, `[N, d]`.
    FirstLayer(Box<FirstLayerProduct>),
}

/// A likelihood's score, `[N, d]`; its first block, the weights of a layer that reads the rows themselves, is a product.
#[derive(Clone, Debug)]
pub(crate) struct FirstLayerProduct {
    /// The first block.
    pub first: SharedGradient,
    /// The other blocks, one `[N, size]` tensor each.
    pub rest: Vec<Tensor<2>>,
    layout: Arc<Layout>,
}

impl FirstLayerProduct {
    /// All blocks.
    pub fn whole(&self) -> Particles {
        let blocks = std::iter::once(self.first.weights()).chain(self.rest.iter().cloned());
        Particles::from_blocks(blocks.collect(), self.layout.clone())
    }

    /// The norm of each row, `[N]`, without the first block. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    fn row_norms(&self) -> Result<Vec<f64>, TensorReadError> {
        let rest = self.rest.iter().map(|block| block.clone().square().sum_dim(1));
        let squares = rest.fold(self.first.squared_norms(), |sum, block| sum + block).try_into_vec_as::<f64>()?;
        // Rounding may leave a square below 0; NaN stays NaN.
        Ok(squares.into_iter().map(|square| if square < 0.0 { 0.0 } else { square.sqrt() }).collect())
    }
}

impl Factor {
    /// X at the particles Θ `[N, d]`.
    pub fn at(&self, theta: &Particles) -> Particles {
        match self {
            Self::Rows(rows) => rows.clone(),
            Self::Gaussian { mean, precision } => {
                let offsets = mean.clone().zip(theta.clone(), |mean, theta| mean - theta);
                let mut blocks = precision.iter();
                offsets.map_into(|offset| match blocks.next().expect("every block has an entry") {
                    Some(precisions) => offset * precisions.elements(),
                    None => offset.zeros_like(),
                })
            }
            Self::FirstLayer(product) => product.whole(),
        }
    }
}

/// S = diag(own)·Θ + Σ_s C_s·X_s at the particles Θ `[N, d]`, with small host matrices C_s `[N, M_s]`.
///
/// A likelihood's score is one term with C = 1. The score of a density estimate is a linear combination of its centres
/// and of Θ itself. The scores of Gaussians with diagonal precisions are a term that is computed from Θ where it is
/// added up. SVGD multiplies S by the `[N, N]` kernel matrix: the small matrices are multiplied first, and each
/// set of centres is read once, however many densities take part.
#[derive(Clone, Debug)]
pub struct Score {
    /// The coefficients of Θ itself, `[N]`.
    own: Array1<f64>,
    /// C_s and X_s.
    terms: Vec<(Coefficients, Factor)>,
}

impl Score {
    /// The score 0 of N particles.
    pub fn zero(count: usize) -> Self {
        Self { own: Array1::zeros(count), terms: Vec::new() }
    }

    /// A score that is given by its rows, `[N, d]`.
    pub fn dense(values: Particles) -> Self {
        Self::one(Array1::ones(values.count()), Factor::Rows(values))
    }

    /// A likelihood's score, `[N, d]`, with the gradient of its first block as a product.
    pub(crate) fn factored(score: FactoredScore, layout: Arc<Layout>) -> Self {
        let FactoredScore { first, rest } = score;
        Self::one(
            Array1::ones(first.outputs.dims()[0]),
            Factor::FirstLayer(Box::new(FirstLayerProduct { first, rest, layout })),
        )
    }

    /// The scores of Gaussians with diagonal precisions, one for each particle: W∘(μ − Θ), with the means μ and the
    /// precisions W, both `[N, d]`. `precision` has W block by block, `None` where it is 0; an element may be 0 too.
    pub fn gaussian(mean: Particles, precision: Arc<Vec<Option<Precisions>>>) -> Self {
        Self::one(Array1::ones(mean.count()), Factor::Gaussian { mean, precision })
    }

    /// diag(c)·X.
    fn one(c: Array1<f64>, of: Factor) -> Self {
        Self { own: Array1::zeros(c.len()), terms: vec![(Coefficients::Diagonal(c), of)] }
    }

    /// c·Θ of N particles.
    pub fn multiple(count: usize, c: f64) -> Self {
        Self { own: Array1::from_elem(count, c), terms: Vec::new() }
    }

    /// diag(own)·Θ + Σ_s C_s·X_s.
    pub(crate) fn linear<const S: usize>(own: Array1<f64>, terms: [(Array2<f64>, Particles); S]) -> Self {
        let term = |(coefficients, of)| (Coefficients::Matrix(coefficients), Factor::Rows(of));
        Self { own, terms: terms.into_iter().map(term).collect() }
    }

    /// The coefficients of Θ itself, `[N]`, and the products C_s·X_s.
    pub(crate) fn into_parts(self) -> (Array1<f64>, Vec<(Coefficients, Factor)>) {
        (self.own, self.terms)
    }

    /// The sum of two scores.
    ///
    /// # Panics
    /// They are of different numbers of particles.
    pub fn plus(mut self, other: Self) -> Self {
        assert_eq!(self.own.len(), other.own.len(), "scores of different numbers of particles");
        self.own += &other.own;
        self.terms.extend(other.terms);
        self
    }

    /// c·S.
    pub fn times(mut self, c: f64) -> Self {
        self.own *= c;
        self.terms = self.terms.into_iter().map(|(coefficients, of)| (coefficients.scaled(c), of)).collect();
        self
    }

    /// S − other.
    ///
    /// # Panics
    /// As [`Self::plus`].
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// The largest norm of each row among the terms that are given by their rows, such as a likelihood's, `[N]`. The
    /// terms of densities, those of Gaussians and the multiple of Θ do not count. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn row_norms(&self) -> Result<Vec<f64>, TensorReadError> {
        let mut largest = vec![0.0f64; self.own.len()];
        for (coefficients, of) in &self.terms {
            let Coefficients::Diagonal(c) = coefficients else { continue };
            let norms = match of {
                Factor::Rows(rows) => rows.row_norms()?,
                Factor::FirstLayer(product) => product.row_norms()?,
                Factor::Gaussian { .. } => continue,
            };
            for ((largest, norm), c) in largest.iter_mut().zip(norms).zip(c) {
                // `max` would lose a NaN.
                *largest = if norm * c.abs() <= *largest { *largest } else { norm * c.abs() };
            }
        }
        Ok(largest)
    }

    /// The score at the particles Θ `[N, d]` with every row shortened to the norm `bound`, if it is longer.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn clipped(&self, at: &Particles, bound: f64) -> Result<Self, TensorReadError> {
        let dense = self.evaluate(at);
        let shrink = dense.row_norms()?.into_iter().map(|norm| if norm > bound { bound / norm } else { 1.0 });
        Ok(Self::one(Array1::from_iter(shrink), Factor::Rows(dense)))
    }

    /// The score as one set `[N, d]`, at the particles Θ `[N, d]`.
    pub fn evaluate(&self, at: &Particles) -> Particles {
        let mut total = None;
        if self.own.iter().any(|c| *c != 0.0) {
            total = Some(at.combine(&Array2::from_diag(&self.own)));
        }
        for (coefficients, of) in &self.terms {
            let term = coefficients.product(&of.at(at));
            total = Some(match total {
                None => term,
                Some(sum) => sum.zip(term, |a, b| a + b),
            });
        }
        total.unwrap_or_else(|| at.map(|block| block.zeros_like()))
    }
}
