//! The factorisation and its solves element by element.

use ndarray::{Array2, ArrayViewMut1};

/// The Cholesky factor L of a matrix A = L·Lᵀ; every element is one sum in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowCholesky {
    /// Lower triangular `[d, d]`, 0 above the diagonal.
    lower: Array2<f64>,
}

impl RowCholesky {
    /// The factor of A `[d, d]`, of which the lower triangle is read; `None` where A is not positive definite or not
    /// finite.
    pub fn of(matrix: &Array2<f64>) -> Option<Self> {
        let mut lower = Array2::zeros(matrix.raw_dim());
        for i in 0..matrix.nrows() {
            for j in 0..=i {
                let known: f64 = (0..j).map(|k| lower[[i, k]] * lower[[j, k]]).sum();
                let rest: f64 = matrix[[i, j]] - known;
                lower[[i, j]] = if j < i {
                    rest / lower[[j, j]]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        Some(Self { lower })
    }

    /// L, `[d, d]`.
    pub fn lower(&self) -> &Array2<f64> {
        &self.lower
    }

    /// b ← A⁻¹b for b `[d]`.
    pub fn solve(&self, mut b: ArrayViewMut1<f64>) {
        let lower = &self.lower;
        for i in 0..b.len() {
            let known: f64 = (0..i).map(|j| lower[[i, j]] * b[j]).sum();
            b[i] = (b[i] - known) / lower[[i, i]];
        }
        self.solve_transposed(b);
    }

    /// b ← L⁻ᵀb for b `[d]`.
    pub fn solve_transposed(&self, mut b: ArrayViewMut1<f64>) {
        let lower = &self.lower;
        for i in (0..b.len()).rev() {
            let known: f64 = (i + 1..b.len()).map(|j| lower[[j, i]] * b[j]).sum();
            b[i] = (b[i] - known) / lower[[i, i]];
        }
    }

    /// A⁻¹, `[d, d]`, symmetrised.
    pub fn inverse(&self) -> Array2<f64> {
        let mut inverse = Array2::eye(self.lower.nrows());
        inverse.columns_mut().into_iter().for_each(|column| self.solve(column));
        (&inverse + &inverse.t()) * 0.5
    }

    /// log |L|, half of log |A|.
    pub fn log_determinant_of_root(&self) -> f64 {
        self.lower.diag().iter().map(|value| value.ln()).sum()
    }
}
