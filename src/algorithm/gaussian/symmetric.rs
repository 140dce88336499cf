//! Symmetric matrices in the two forms that the families need, and their Cholesky factors, in f64 on the host.

use ndarray::{Array1, Array2, ArrayViewMut1, Axis};

use super::family::Family;
use crate::linalg::RowCholesky;

/// A symmetric matrix `[d, d]`.
#[derive(Clone, Debug, PartialEq)]
pub enum Symmetric {
    /// A diagonal matrix, by its diagonal `[d]`.
    Diagonal(Array1<f64>),
    /// A full matrix `[d, d]`.
    Full(Array2<f64>),
}

impl Symmetric {
    /// The diagonal matrix with this diagonal `[d]`, in the form that the family needs.
    pub fn diagonal(family: Family, diagonal: Array1<f64>) -> Self {
        match family {
            Family::MeanField => Self::Diagonal(diagonal),
            Family::Full => Self::Full(Array2::from_diag(&diagonal)),
        }
    }

    /// All elements, `[d, d]`.
    pub fn to_full(&self) -> Array2<f64> {
        match self {
            Self::Diagonal(diagonal) => Array2::from_diag(diagonal),
            Self::Full(matrix) => matrix.clone(),
        }
    }

    /// The diagonal, `[d]`.
    pub fn to_diagonal(&self) -> Array1<f64> {
        match self {
            Self::Diagonal(diagonal) => diagonal.clone(),
            Self::Full(matrix) => matrix.diag().to_owned(),
        }
    }

    /// The product A·x `[d]` with a vector x `[d]`.
    pub fn dot(&self, x: &Array1<f64>) -> Array1<f64> {
        match self {
            Self::Diagonal(diagonal) => diagonal * x,
            Self::Full(matrix) => matrix.dot(x),
        }
    }

    /// The sum a·A + b·B.
    pub(super) fn combine(&self, a: f64, other: &Self, b: f64) -> Self {
        match (self, other) {
            (Self::Diagonal(x), Self::Diagonal(y)) => Self::Diagonal(x * a + y * b),
            _ => Self::Full(self.to_full() * a + other.to_full() * b),
        }
    }

    /// The trace tr(A·B).
    pub(super) fn trace_of_product(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Diagonal(x), Self::Diagonal(y)) => x.dot(y),
            _ => (self.to_full() * other.to_full()).sum(),
        }
    }

    /// The count of stored numbers.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Diagonal(diagonal) => diagonal.len(),
            Self::Full(matrix) => matrix.len(),
        }
    }
}

/// The Cholesky factor L of A = L·Lᵀ.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Factor {
    /// The square roots `[d]` of a diagonal A.
    Diagonal(Array1<f64>),
    /// The lower triangular factor of a full A.
    Lower(RowCholesky),
}

impl Factor {
    /// The factor of a matrix; `None` where the matrix is not positive definite.
    pub(super) fn of(matrix: &Symmetric) -> Option<Self> {
        match matrix {
            Symmetric::Diagonal(diagonal) => {
                let positive = diagonal.iter().all(|value| *value > 0.0 && value.is_finite());
                positive.then(|| Self::Diagonal(diagonal.mapv(f64::sqrt)))
            }
            Symmetric::Full(matrix) => RowCholesky::of(matrix).map(Self::Lower),
        }
    }

    /// The symmetrised L·(ZᵀF) `[d, d]` of rows Z and F `[S, d]`; only its diagonal `[d]` where L is diagonal.
    pub(super) fn curvature(&self, z: &Array2<f64>, f: &Array2<f64>) -> Symmetric {
        match self {
            Self::Diagonal(root) => Symmetric::Diagonal(root * &(z * f).sum_axis(Axis(0))),
            Self::Lower(lower) => {
                let product = lower.lower().dot(&z.t().dot(f));
                Symmetric::Full((&product + &product.t()) * 0.5)
            }
        }
    }

    /// Solves in place, b ← A⁻¹b, `[d]`.
    pub(super) fn solve(&self, mut b: ArrayViewMut1<f64>) {
        match self {
            Self::Diagonal(root) => b.zip_mut_with(root, |b, root| *b /= root * root),
            Self::Lower(lower) => lower.solve(b),
        }
    }

    /// Solves with the transposed factor in place, b ← L⁻ᵀb, `[d]`.
    pub(super) fn solve_transposed(&self, mut b: ArrayViewMut1<f64>) {
        match self {
            Self::Diagonal(root) => b /= root,
            Self::Lower(lower) => lower.solve_transposed(b),
        }
    }

    /// The inverse A⁻¹, `[d, d]`.
    pub(super) fn inverse(&self) -> Symmetric {
        match self {
            Self::Diagonal(root) => Symmetric::Diagonal(root.mapv(|root| 1.0 / (root * root))),
            Self::Lower(lower) => Symmetric::Full(lower.inverse()),
        }
    }

    /// The log determinant log |A|.
    pub(super) fn log_determinant(&self) -> f64 {
        let root: f64 = match self {
            Self::Diagonal(root) => root.iter().map(|value| value.ln()).sum(),
            Self::Lower(lower) => lower.log_determinant_of_root(),
        };
        2.0 * root
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_matrix_that_is_not_positive_definite_has_no_factor() {
        for bad in [array![[1.0, 2.0], [2.0, 1.0]], array![[0.0, 0.0], [0.0, 1.0]], array![[f64::NAN]]] {
            assert!(Factor::of(&Symmetric::Full(bad.clone())).is_none(), "{bad}");
        }
        assert!(Factor::of(&Symmetric::Diagonal(array![1.0, -1e-300])).is_none());
    }

    #[test]
    fn a_factor_solves_and_inverts() {
        let matrix = array![[4.0, 1.0, -0.5], [1.0, 3.0, 0.2], [-0.5, 0.2, 2.0]];
        let b = array![1.0, -2.0, 0.5];
        for matrix in [Symmetric::Full(matrix.clone()), Symmetric::Diagonal(matrix.diag().to_owned())] {
            let factor = Factor::of(&matrix).unwrap();
            let mut x = b.clone();
            factor.solve(x.view_mut());
            assert!((matrix.dot(&x) - &b).iter().all(|gap| gap.abs() < 1e-14));
            assert!((factor.inverse().dot(&b) - x).iter().all(|gap| gap.abs() < 1e-14));
            // Σ_ij A_ij A⁻¹_ij = d
            assert!((matrix.trace_of_product(&factor.inverse()) - 3.0).abs() < 1e-14);
        }
        // The determinant |A| by expansion along the first row.
        let determinant = 4.0 * (3.0 * 2.0 - 0.04) - (2.0 + 0.1) + -0.5 * (0.2 + 1.5);
        let log = Factor::of(&Symmetric::Full(matrix)).unwrap().log_determinant();
        assert!((log - f64::ln(determinant)).abs() < 1e-14, "{log}");
    }
}
