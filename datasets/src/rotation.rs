//! Features in the basis of their principal axes: x' = Qᵀx.
//!
//! Q holds the eigenvectors of the second moment (1/n) Σ_i x_i x_iᵀ of training rows, the largest eigenvalue first. Lengths
//! and angles of rows stay the same, so an isotropic prior on the weights of a first layer does too; the features become
//! uncorrelated (without centring), which is what diagonal step rules and diagonal curvatures assume.

use std::ops::Range;

use nalgebra::{DMatrix, SymmetricEigen};
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};

use crate::DataError;

/// Rows that are multiplied at once.
const CHUNK: usize = 4096;

/// The number of rows of which [`features_together`] takes the second moment.
const LOOKED_AT: usize = 1000;

/// The number of its steps.
const ITERATIONS: usize = 30;

/// The sum of x xᵀ over some rows x.
///
/// The sum over several sets of rows is that of their sums, added in the order of the sets.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondMoment {
    width: usize,
    rows: usize,
    /// The upper triangle, row by row: `[p (p + 1) / 2]`.
    upper: Vec<f64>,
}

impl SecondMoment {
    /// The sum over no rows of p features.
    pub fn zero(width: usize) -> Self {
        Self { width, rows: 0, upper: vec![0.0; triangle(width)] }
    }

    /// The sum over these features, `[rows, p]`.
    pub fn of(features: ArrayView2<f32>) -> Self {
        let width = features.ncols();
        let mut moment = Array2::<f64>::zeros((width, width));
        for rows in chunks(features.nrows()) {
            let rows = features.slice_axis(Axis(0), rows.into()).mapv(f64::from);
            moment += &rows.t().dot(&rows);
        }
        let upper = (0..width).flat_map(|i| (i..width).map(move |j| (i, j))).map(|at| moment[at]).collect();
        Self { width, rows: features.nrows(), upper }
    }

    /// A sum over `rows` rows of `width` features that was sent: its upper triangle, row by row.
    ///
    /// # Errors
    /// A sentence, where these are not p (p + 1) / 2 finite numbers, or where a sum of squares is negative.
    pub fn from_upper(width: usize, rows: usize, upper: Vec<f64>) -> Result<Self, String> {
        if upper.len() != triangle(width) {
            return Err(format!("{} numbers for {width} features, not {}", upper.len(), triangle(width)));
        }
        let is_sum = |i: usize| upper[place(width, i, i)] >= 0.0;
        match upper.iter().all(|value| value.is_finite()) && (0..width).all(is_sum) {
            true => Ok(Self { width, rows, upper }),
            false => Err("a number is not finite, or a sum of squares is negative".into()),
        }
    }

    /// The upper triangle, row by row: `[p (p + 1) / 2]`.
    pub fn upper(&self) -> &[f64] {
        &self.upper
    }

    /// Adds the sum over other rows of the same features.
    pub fn add(&mut self, other: &Self) {
        debug_assert_eq!(self.width, other.width);
        self.rows += other.rows;
        self.upper.iter_mut().zip(&other.upper).for_each(|(sum, more)| *sum += more);
    }
}

/// How many features move together, at most: the largest eigenvalue of the second moment of features `[rows, p]` of which each
/// is divided by its root mean square. It is 1 where all are uncorrelated, and p where all are multiples of one. Of more than
/// 1,000 rows, so many are looked at, evenly spaced.
pub fn features_together(features: ArrayView2<f32>) -> f64 {
    let stride = features.nrows().div_ceil(LOOKED_AT).max(1);
    let mut rows = features.slice_axis(Axis(0), Slice::new(0, None, stride as isize)).mapv(f64::from);
    for mut column in rows.columns_mut() {
        let norm = column.dot(&column).sqrt();
        if norm > 0.0 {
            column /= norm;
        }
    }
    // Power iteration, from a vector that no pattern of signs is orthogonal to.
    let mut axis = Array1::from_shape_fn(rows.ncols(), |feature| 1.0 + (feature as f64 * 0.618_034).fract());
    let mut largest = 0.0;
    for _ in 0..ITERATIONS {
        let length = axis.dot(&axis).sqrt();
        if length == 0.0 {
            break;
        }
        axis /= length;
        axis = rows.t().dot(&rows.dot(&axis));
        largest = axis.dot(&axis).sqrt();
    }
    largest
}

/// The number of elements on and above the diagonal.
fn triangle(width: usize) -> usize {
    width * (width + 1) / 2
}

/// The place of element (i, j), i ≤ j, in the upper triangle.
fn place(width: usize, i: usize, j: usize) -> usize {
    i * width - i * i.saturating_sub(1) / 2 + (j - i)
}

/// An orthogonal matrix Q, `[p, p]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Rotation {
    matrix: Array2<f32>,
}

impl Rotation {
    /// The principal axes of rows with this second moment.
    ///
    /// # Errors
    /// [`DataError::Config`] where there is no row, where a feature is not finite, or where the eigenvalue iteration does
    /// not converge.
    pub fn principal(moment: &SecondMoment) -> Result<Self, DataError> {
        let SecondMoment { width, rows, ref upper } = *moment;
        if rows == 0 || width == 0 {
            return Err(refused("there is no row or no feature; use \"none\""));
        }
        if !upper.iter().all(|value| value.is_finite()) {
            return Err(refused("a feature of the training rows is not finite"));
        }
        let mean = |i: usize, j: usize| upper[place(width, i.min(j), i.max(j))] / rows as f64;
        let matrix = DMatrix::from_fn(width, width, mean);
        let eigen = SymmetricEigen::try_new(matrix, f64::EPSILON, 1000 * width)
            .ok_or_else(|| refused("the eigenvalues of the features' second moment were not found; use \"none\""))?;
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
        let mut matrix = Array2::zeros((width, width));
        for (column, &from) in order.iter().enumerate() {
            let axis = eigen.eigenvectors.column(from);
            // An eigenvector has two signs: the one with a positive largest entry is taken.
            let largest =
                axis.iter().copied().fold(0.0, |largest: f64, x| if x.abs() > largest.abs() { x } else { largest });
            let sign = if largest < 0.0 { -1.0 } else { 1.0 };
            matrix.column_mut(column).iter_mut().zip(axis.iter()).for_each(|(to, x)| *to = (sign * x) as f32);
        }
        Ok(Self { matrix })
    }

    /// A rotation that was saved: Q, `[p, p]`.
    ///
    /// # Errors
    /// A sentence, where the matrix is not square, or is not orthogonal to 10⁻³.
    pub fn from_matrix(matrix: Array2<f32>) -> Result<Self, String> {
        let (rows, columns) = matrix.dim();
        if rows != columns {
            return Err(format!("a rotation is a square matrix, not {rows} × {columns}"));
        }
        let wide = matrix.mapv(f64::from);
        let product = wide.t().dot(&wide);
        let orthogonal = product.indexed_iter().all(|((i, j), value)| {
            let expected = if i == j { 1.0 } else { 0.0 };
            (value - expected).abs() < 1e-3
        });
        match orthogonal {
            true => Ok(Self { matrix }),
            false => Err("a rotation is an orthogonal matrix, and this one is not".into()),
        }
    }

    /// Q, `[p, p]`, with one axis a column.
    pub fn matrix(&self) -> &Array2<f32> {
        &self.matrix
    }

    /// Rotates features `[rows, p]` in place: every row x becomes Qᵀx.
    ///
    /// # Errors
    /// [`DataError::Width`] where the features have another number of columns; they are then left as they are.
    pub fn apply(&self, features: &mut Array2<f32>) -> Result<(), DataError> {
        let (expected, found) = (self.matrix.nrows(), features.ncols());
        if expected != found {
            return Err(DataError::Width { expected, found });
        }
        for rows in chunks(features.nrows()) {
            let rotated = features.slice_axis(Axis(0), rows.clone().into()).dot(&self.matrix);
            features.slice_axis_mut(Axis(0), rows.into()).assign(&rotated);
        }
        Ok(())
    }
}

/// The error of a rotation that cannot be computed.
fn refused(problem: &str) -> DataError {
    DataError::config("data.rotate", "principal", problem)
}

/// The indices of rows in groups of [`CHUNK`].
fn chunks(rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows).step_by(CHUNK).map(move |start| start..(start + CHUNK).min(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn features_that_move_together_are_counted() {
        let together = |features: Array2<f32>| features_together(features.view());
        let one = |row: usize| ((row * 7) % 11) as f32 - 5.0;
        // Multiples of one feature, of either sign and any unit; a constant 0 moves with none.
        let units = [1.0, -3.0, 1e6, 0.0, -2e-3];
        let multiples = together(Array2::from_shape_fn((2500, 5), |(row, column)| units[column] * one(row)));
        assert!((multiples - 4.0).abs() < 1e-6, "{multiples}");
        let orthogonal = together(array![[1., 0., 0.], [0., 5., 0.], [0., 0., 2.], [-1., 0., 0.]]);
        assert!((orthogonal - 1.0).abs() < 1e-9, "{orthogonal}");
        // Two features with the correlation 3/5: the eigenvalues are 1 ± 3/5.
        let two = together(array![[1., 1.], [1., 1.], [1., 1.], [1., 1.], [1., -1.]]);
        assert!((two - 1.6).abs() < 1e-3, "{two}");
        assert_eq!(together(Array2::zeros((3, 2))), 0.0);
        assert_eq!(together(Array2::zeros((0, 2))), 0.0);
    }

    /// Rows on a line through the origin, with a little of the direction across.
    fn line() -> Array2<f32> {
        array![[3.0, 4.0], [-3.0, -4.0], [6.0, 8.0], [-0.8, 0.6]]
    }

    fn principal(features: &Array2<f32>) -> Result<Rotation, DataError> {
        Rotation::principal(&SecondMoment::of(features.view()))
    }

    #[test]
    fn the_second_moment_of_two_sets_is_the_sum_of_theirs() {
        let mut sum = SecondMoment::zero(2);
        sum.add(&SecondMoment::of(array![[1.0, 2.0], [3.0, -1.0]].view()));
        sum.add(&SecondMoment::of(array![[0.5, 4.0]].view()));
        // Σ x₁², Σ x₁x₂, Σ x₂².
        assert_eq!((sum.upper(), sum.rows), (&[10.25, 1.0, 21.0][..], 3));
        assert_eq!(SecondMoment::from_upper(2, 3, vec![10.25, 1.0, 21.0]), Ok(sum));
        for bad in [vec![1.0; 4], vec![1.0, f64::NAN, 1.0], vec![1.0, 0.0, -1.0]] {
            assert!(SecondMoment::from_upper(2, 3, bad).is_err());
        }
        let four = SecondMoment::of(Array2::from_shape_fn((3, 4), |(i, j)| (i * 4 + j) as f32).view());
        let of = |i: usize, j: usize| (0..3).map(|row| ((row * 4 + i) * (row * 4 + j)) as f64).sum::<f64>();
        for (i, j) in (0..4).flat_map(|i| (i..4).map(move |j| (i, j))) {
            assert_eq!(four.upper()[place(4, i, j)], of(i, j), "{i}, {j}");
        }
    }

    #[test]
    fn the_first_axis_is_the_line_on_which_the_rows_lie() {
        let rotation = principal(&line()).unwrap();
        let mut rows = line();
        rotation.apply(&mut rows).unwrap();
        let expected = [[5.0, 0.0], [-5.0, 0.0], [10.0, 0.0], [0.0, 1.0]];
        for (row, expected) in rows.rows().into_iter().zip(expected) {
            let off = row.iter().zip(expected).map(|(x, e)| (x.abs() - f32::abs(e)).abs()).fold(0.0, f32::max);
            assert!(off < 1e-5, "{rows:?}");
        }
        assert!(rows[[0, 0]] > 0.0, "the largest entry of an axis is positive");
    }

    #[test]
    fn the_second_moment_of_rotated_rows_is_a_diagonal_that_descends() {
        let rows = Array2::from_shape_fn((50, 6), |(i, j)| ((i * 7 + j * 13) as f32 * 0.37).sin() + j as f32 * 0.2);
        let mut rotated = rows.clone();
        principal(&rows).unwrap().apply(&mut rotated).unwrap();
        let moment = rotated.t().dot(&rotated) / 50.0;
        for ((i, j), value) in moment.indexed_iter() {
            assert!(i == j || value.abs() < 1e-4, "{moment:?}");
        }
        assert!(moment.diag().windows(2).into_iter().all(|pair| pair[0] >= pair[1] - 1e-5), "{moment:?}");
        let lengths = |rows: &Array2<f32>| rows.rows().into_iter().map(|row| row.dot(&row)).collect::<Vec<_>>();
        for (before, after) in lengths(&rows).into_iter().zip(lengths(&rotated)) {
            assert!((before - after).abs() < 1e-4 * before.max(1.0), "{before} {after}");
        }
    }

    #[test]
    fn what_cannot_be_rotated_is_refused() {
        assert!(principal(&Array2::zeros((0, 3))).is_err());
        assert!(principal(&array![[f32::NAN, 1.0]]).is_err());
        assert!(Rotation::from_matrix(array![[1.0, 0.5], [0.0, 1.0]]).is_err());
        assert!(Rotation::from_matrix(Array2::zeros((2, 3))).is_err());
        let rotation = principal(&line()).unwrap();
        let mut rows = array![[1.0, 2.0, 3.0]];
        assert!(rotation.apply(&mut rows).is_err());
        assert_eq!(rows, array![[1.0, 2.0, 3.0]]);
        assert_eq!(Rotation::from_matrix(rotation.matrix().clone()).unwrap(), rotation);
    }
}
