//! The covariance of the Gaussian processes: k(e, e') = s·exp(−‖e − e'‖²/(2ℓ²)).

use ndarray::{Array1, Array2, ArrayView2, Axis};

/// An RBF kernel and its constants.
#[derive(Clone, Copy, Debug)]
pub struct Rbf {
    /// The variance s of the process.
    pub output_scale: f64,
    /// The length scale ℓ.
    pub length_scale: f64,
}

impl Rbf {
    /// The matrix K `[n, n]` of rows `[n, E]`; its diagonal is exactly s.
    pub fn gram(&self, rows: &Array2<f64>) -> Array2<f64> {
        let mut gram = self.cross(rows.view(), rows.view());
        gram.diag_mut().fill(self.output_scale);
        gram
    }

    /// The covariances `[m, n]` between rows `[m, E]` and rows `[n, E]`.
    pub fn cross(&self, left: ArrayView2<f64>, right: ArrayView2<f64>) -> Array2<f64> {
        let squares = |rows: &ArrayView2<f64>| -> Array1<f64> { rows.map_axis(Axis(1), |row| row.dot(&row)) };
        let (left_squares, right_squares) = (squares(&left), squares(&right));
        let mut covariance = left.dot(&right.t());
        for (mut row, square) in covariance.rows_mut().into_iter().zip(&left_squares) {
            row.zip_mut_with(&right_squares, |k, other| *k = self.of_squared_distance(square + other - 2.0 * *k));
        }
        covariance
    }

    /// The gradient in the rows `[n, E]` from the symmetric gradient G in K `[n, n]`: with W = G∘K, row i gets
    /// −(2/ℓ²) Σ_j W_ij (e_i − e_j).
    pub fn pull_back(&self, rows: &Array2<f64>, gram: &Array2<f64>, gradient: &Array2<f64>) -> Array2<f64> {
        let weights = gram * gradient;
        let mut sums = weights.dot(rows);
        for ((mut sum, row), weight) in sums.rows_mut().into_iter().zip(rows.rows()).zip(weights.sum_axis(Axis(1))) {
            sum.scaled_add(-weight, &row);
        }
        sums * (2.0 / self.length_scale.powi(2))
    }

    /// The covariance at a squared distance. Values below 0, which come from rounding, count as 0; NaN stays NaN.
    fn of_squared_distance(&self, squared: f64) -> f64 {
        let squared = if squared < 0.0 { 0.0 } else { squared };
        self.output_scale * (-0.5 * squared / self.length_scale.powi(2)).exp()
    }
}
