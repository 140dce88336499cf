//! A score as a sum of matrix products with long particle sets, evaluated as late as possible.

use burn::tensor::TensorReadError;
use ndarray::{Array1, Array2};

use crate::backend::Backend;
use crate::particles::Particles;

/// S = diag(own)·Θ + Σ_s C_s·X_s at the particles Θ `[N, d]`, with small host matrices C_s `[N, M_s]`.
///
/// A likelihood's score is one term with C = 1. The score of a density estimate is a combination of its centres and
/// of Θ itself. SVGD multiplies S by the `[N, N]` kernel matrix: that acts on the small matrices, and the centres are
/// touched once, however many densities take part.
#[derive(Clone, Debug)]
pub struct Score<B: Backend> {
    own: Array1<f64>,
    terms: Vec<(Array2<f64>, Particles<B>)>,
}

impl<B: Backend> Score<B> {
    /// The score 0 of N particles.
    pub fn zero(count: usize) -> Self {
        Self { own: Array1::zeros(count), terms: Vec::new() }
    }

    /// A score that is already there, `[N, d]`.
    pub fn dense(values: Particles<B>) -> Self {
        let count = values.count();
        Self { own: Array1::zeros(count), terms: vec![(Array2::eye(count), values)] }
    }

    /// c·Θ of N particles.
    pub fn multiple(count: usize, c: f64) -> Self {
        Self { own: Array1::from_elem(count, c), terms: Vec::new() }
    }

    /// diag(own)·Θ + C·X.
    pub(crate) fn linear(own: Array1<f64>, coefficients: Array2<f64>, of: Particles<B>) -> Self {
        Self { own, terms: vec![(coefficients, of)] }
    }

    /// The coefficients of Θ itself, `[N]`, and the products C_s·X_s.
    pub(crate) fn into_parts(self) -> (Array1<f64>, Vec<(Array2<f64>, Particles<B>)>) {
        (self.own, self.terms)
    }

    /// The sum of two scores.
    pub fn plus(mut self, other: Self) -> Self {
        self.own += &other.own;
        self.terms.extend(other.terms);
        self
    }

    /// c·S.
    pub fn times(mut self, c: f64) -> Self {
        self.own *= c;
        self.terms.iter_mut().for_each(|(coefficients, _)| *coefficients *= c);
        self
    }

    /// S − other.
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    /// The score with the norm of every row at most `bound`.
    pub fn clipped(&self, at: &Particles<B>, bound: f64) -> Result<Self, TensorReadError> {
        let dense = self.evaluate(at);
        let shrink = dense.row_norms()?.into_iter().map(|norm| if norm > bound { bound / norm } else { 1.0 });
        let shrink = Array1::from_iter(shrink);
        Ok(Self { own: Array1::zeros(shrink.len()), terms: vec![(Array2::from_diag(&shrink), dense)] })
    }

    /// The score as one `[N, d]` set.
    pub fn evaluate(&self, at: &Particles<B>) -> Particles<B> {
        let mut total = None;
        if self.own.iter().any(|c| *c != 0.0) {
            total = Some(at.combine(&Array2::from_diag(&self.own)));
        }
        for (coefficients, of) in &self.terms {
            let identity = is_identity(coefficients);
            let term = if identity { of.clone() } else { of.combine(coefficients) };
            total = Some(match total {
                None => term,
                Some(sum) => sum.zip(term, |a, b| a + b),
            });
        }
        total.unwrap_or_else(|| at.map(|block| block.zeros_like()))
    }
}

fn is_identity(matrix: &Array2<f64>) -> bool {
    matrix.is_square() && matrix.indexed_iter().all(|((i, j), value)| *value == f64::from(u8::from(i == j)))
}
