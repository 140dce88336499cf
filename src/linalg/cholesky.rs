//! The factorisation and its triangular solves in blocks: all but an O(n²) part of the n³/3 multiplications are matrix
//! products, on one thread, so that a run's bits do not depend on the number of threads.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, aview1};

/// Columns that are factored one by one before a matrix product subtracts them from the rest.
const BLOCK: usize = 32;

/// The Cholesky factor L of a matrix A = L·Lᵀ.
#[derive(Clone, Debug)]
pub struct Cholesky {
    /// Lower triangular `[n, n]`, 0 above the diagonal.
    lower: Array2<f64>,
}

impl Cholesky {
    /// The factor of A `[n, n]`, of which the lower triangle is read; `None` where A is not positive definite or not
    /// finite.
    pub fn of(matrix: &Array2<f64>) -> Option<Self> {
        let n = matrix.nrows();
        let mut lower = Array2::<f64>::zeros((n, n));
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            // Columns start..end of A minus the product of the columns of L before them.
            let mut panel = part(matrix, start..n, start..end).as_standard_layout().into_owned();
            let (below, beside) = (part(&lower, start..n, 0..start), part(&lower, start..end, 0..start));
            general_mat_mul(-1.0, &below, &beside.t(), 1.0, &mut panel);
            factor_panel(&mut panel)?;
            part_mut(lower.view_mut(), start..n, start..end).assign(&panel);
        }
        Some(Self { lower })
    }

    /// L, `[n, n]`.
    pub fn lower(&self) -> &Array2<f64> {
        &self.lower
    }

    /// L⁻¹·B for B `[n, m]`.
    pub fn solve_lower(&self, mut b: Array2<f64>) -> Array2<f64> {
        self.solve_lower_in(&mut b, false);
        b
    }

    /// L⁻¹, lower triangular `[n, n]`.
    fn inverse_lower(&self) -> Array2<f64> {
        let mut inverse = Array2::eye(self.lower.nrows());
        self.solve_lower_in(&mut inverse, true);
        inverse
    }

    /// B ← L⁻¹·B for B `[n, m]`. What is above the diagonal of a triangular B is 0 and stays so.
    fn solve_lower_in(&self, b: &mut Array2<f64>, is_triangular: bool) {
        let (n, m) = b.dim();
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            let width = if is_triangular { end } else { m };
            let (known, rest) = part_mut(b.view_mut(), 0..n, 0..width).split_at(Axis(0), start);
            let (mut block, _) = rest.split_at(Axis(0), end - start);
            general_mat_mul(-1.0, &part(&self.lower, start..end, 0..start), &known, 1.0, &mut block);
            for i in 0..end - start {
                let (above, mut below) = block.view_mut().split_at(Axis(0), i);
                let mut row = below.row_mut(0);
                for j in 0..i {
                    row.scaled_add(-self.lower[[start + i, start + j]], &above.row(j));
                }
                row /= self.lower[[start + i, start + i]];
            }
        }
    }

    /// L⁻ᵀ·B for B `[n, m]`.
    pub fn solve_upper(&self, mut b: Array2<f64>) -> Array2<f64> {
        let n = self.lower.nrows();
        for start in (0..n).step_by(BLOCK).rev() {
            let end = (start + BLOCK).min(n);
            let (rest, known) = b.view_mut().split_at(Axis(0), end);
            let (_, mut block) = rest.split_at(Axis(0), start);
            general_mat_mul(-1.0, &part(&self.lower, end..n, start..end).t(), &known, 1.0, &mut block);
            for i in (0..end - start).rev() {
                let (mut above, below) = block.view_mut().split_at(Axis(0), i + 1);
                let mut row = above.row_mut(i);
                for j in i + 1..end - start {
                    row.scaled_add(-self.lower[[start + j, start + i]], &below.row(j - i - 1));
                }
                row /= self.lower[[start + i, start + i]];
            }
        }
        b
    }

    /// A⁻¹·b for b `[n]`.
    pub fn solve(&self, b: Array1<f64>) -> Array1<f64> {
        self.solve_upper(self.solve_lower(b.insert_axis(Axis(1)))).remove_axis(Axis(1))
    }

    /// A⁻¹ = L⁻ᵀ·L⁻¹, `[n, n]`.
    pub fn inverse(&self) -> Array2<f64> {
        let root = self.inverse_lower();
        let n = root.nrows();
        let mut inverse = Array2::zeros((n, n));
        for start in (0..n).step_by(BLOCK) {
            let end = (start + BLOCK).min(n);
            // Above row `start` these columns of L⁻¹ are 0.
            let (columns, before) = (part(&root, start..n, start..end), part(&root, start..n, 0..end));
            part_mut(inverse.view_mut(), start..end, 0..end).assign(&columns.t().dot(&before));
        }
        for i in 0..n {
            for j in 0..i {
                inverse[[j, i]] = inverse[[i, j]];
            }
        }
        inverse
    }

    /// The diagonal of A⁻¹, `[n]`, for half the multiplications of [`Self::inverse`].
    pub fn inverse_diagonal(&self) -> Array1<f64> {
        self.inverse_lower().fold_axis(Axis(0), 0.0, |sum, value| sum + value * value)
    }

    /// log |A|.
    pub fn log_determinant(&self) -> f64 {
        2.0 * self.lower.diag().iter().map(|value| value.ln()).sum::<f64>()
    }
}

/// Some rows and columns of a matrix. (`ndarray::s!` expands to unsafe code, which this crate forbids.)
fn part(matrix: &Array2<f64>, rows: Range<usize>, columns: Range<usize>) -> ArrayView2<'_, f64> {
    let mut view = matrix.view();
    view.slice_axis_inplace(Axis(0), rows.into());
    view.slice_axis_inplace(Axis(1), columns.into());
    view
}

fn part_mut(mut view: ArrayViewMut2<f64>, rows: Range<usize>, columns: Range<usize>) -> ArrayViewMut2<f64> {
    view.slice_axis_inplace(Axis(0), rows.into());
    view.slice_axis_inplace(Axis(1), columns.into());
    view
}

/// Factors a panel `[rows, columns]` row by row: the triangle on top, then the rows below it. `None` where a pivot is
/// not positive.
fn factor_panel(panel: &mut Array2<f64>) -> Option<()> {
    let columns = panel.ncols();
    let values = panel.as_slice_mut().expect("a panel is in row-major order");
    for i in 0..values.len() / columns {
        let (above, rest) = values.split_at_mut(i * columns);
        let row = &mut rest[..columns];
        for j in 0..i.min(columns) {
            let pivot = &above[j * columns..][..=j];
            row[j] = (row[j] - aview1(&row[..j]).dot(&aview1(&pivot[..j]))) / pivot[j];
        }
        if i < columns {
            let rest = row[i] - aview1(&row[..i]).dot(&aview1(&row[..i]));
            row[i] = (rest > 0.0 && rest.is_finite()).then(|| rest.sqrt())?;
            row[i + 1..].fill(0.0);
        }
    }
    Some(())
}
