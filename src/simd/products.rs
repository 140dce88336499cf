//! All products of some rows with others within a tile of columns, in f32.
//!
//! Long rows are multiplied vector by vector, and the lanes are summed at the end of the row. For many short rows these
//! sums would be most of the work. There Yᵀ is written out, and the lanes of a vector are the products of one x_i with
//! several y_j.

use pulp::{Simd, WithSimd};

use super::{LINE, MOST_LANES, dispatch, groups};

/// Numbers of rows of X whose products are held in registers at once, largest first.
const SIDES: [usize; 3] = [SIDE, 2, 1];
const SIDE: usize = 4;
/// The same for the rows of Y: on x86 there are 32 registers for vectors of 16 lanes and 16 for shorter ones, which must hold the
/// products and a vector of each row of Y.
const SIDES_OF_Y: ([usize; 3], [usize; 3]) = (SIDES, [3, 2, 1]);

/// Rows of at most so many columns are short.
const SHORT: usize = 128;
/// So many rows of Y or more are many.
const MANY: usize = 2 * MOST_LANES;

/// Adds x_i·y_j to `sums[i·stride + j]`; with `symmetric` for j ≥ i only, and for a few more j.
pub(super) struct Products<'a> {
    pub x: &'a [&'a [f32]],
    pub y: &'a [&'a [f32]],
    pub symmetric: bool,
    pub sums: &'a mut [f64],
    pub stride: usize,
}

impl Products<'_> {
    /// Runs the operation; `transposed` is a buffer for Yᵀ.
    pub fn add(self, transposed: &mut Vec<f32>) {
        let (width, count) = (self.x[0].len(), self.y.len());
        if width > SHORT || count < MANY {
            return dispatch(self);
        }
        // Whole pairs of vectors, and one cache line more: otherwise the values of a column would share a few cache
        // sets.
        let stride = count.next_multiple_of(2 * MOST_LANES) + LINE;
        transposed.clear();
        transposed.resize(width * stride, 0.0);
        for (j, row) in self.y.iter().enumerate() {
            transposed[j..].iter_mut().step_by(stride).zip(*row).for_each(|(to, value)| *to = *value);
        }
        dispatch(ShortProducts { products: self, transposed, transposed_stride: stride });
    }
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for rows in groups(self.x.len(), SIDES) {
            match rows.len() {
                4 => self.rows::<S, 4>(simd, rows.start),
                2 => self.rows::<S, 2>(simd, rows.start),
                _ => self.rows::<S, 1>(simd, rows.start),
            }
        }
    }
}

impl Products<'_> {
    /// The products of R rows of X, from row i on, with all of Y.
    #[inline(always)]
    fn rows<S: Simd, const R: usize>(&mut self, simd: S, i: usize) {
        let first = if self.symmetric { i } else { 0 };
        let sides = if S::F32_LANES == MOST_LANES { SIDES_OF_Y.0 } else { SIDES_OF_Y.1 };
        for columns in groups(self.y.len() - first, sides) {
            let j = first + columns.start;
            match columns.len() {
                4 => self.block::<S, R, 4>(simd, i, j),
                3 => self.block::<S, R, 3>(simd, i, j),
                2 => self.block::<S, R, 2>(simd, i, j),
                _ => self.block::<S, R, 1>(simd, i, j),
            }
        }
    }

    /// The products of R rows of X with C rows of Y.
    #[inline(always)]
    fn block<S: Simd, const R: usize, const C: usize>(&mut self, simd: S, i: usize, j: usize) {
        let sums = dots::<S, R, C>(simd, &self.x[i..i + R], &self.y[j..j + C]);
        for (r, sums) in sums.into_iter().enumerate() {
            let to = &mut self.sums[(i + r) * self.stride + j..][..C];
            for (to, sum) in to.iter_mut().zip(sums) {
                *to += f64::from(simd.reduce_sum_f32s(sum));
            }
        }
    }
}

/// All R·C products of R rows with C rows, lane by lane.
#[inline(always)]
fn dots<S: Simd, const R: usize, const C: usize>(simd: S, x: &[&[f32]], y: &[&[f32]]) -> [[S::f32s; C]; R] {
    let x: [_; R] = std::array::from_fn(|r| S::as_simd_f32s(x[r]));
    let y: [_; C] = std::array::from_fn(|c| S::as_simd_f32s(y[c]));
    let vectors = x[0].0.len();
    // Equal lengths, so that the compiler drops the bounds checks.
    let (xs, ys) = (x.map(|(row, _)| &row[..vectors]), y.map(|(row, _)| &row[..vectors]));
    let mut sums = [[simd.splat_f32s(0.0); C]; R];
    for v in 0..vectors {
        let y = ys.map(|row| row[v]);
        for (sums, x) in sums.iter_mut().zip(&xs) {
            for (sum, y) in sums.iter_mut().zip(y) {
                *sum = simd.mul_add_f32s(x[v], y, *sum);
            }
        }
    }
    // A partial load is a function call, so it is done once a row, and only where there is a rest.
    if !x[0].1.is_empty() {
        let mut ends = [simd.splat_f32s(0.0); C];
        for (end, (_, rest)) in ends.iter_mut().zip(&y) {
            *end = simd.partial_load_f32s(rest);
        }
        for (sums, (_, rest)) in sums.iter_mut().zip(&x) {
            let x = simd.partial_load_f32s(rest);
            for (sum, y) in sums.iter_mut().zip(&ends) {
                *sum = simd.mul_add_f32s(x, *y, *sum);
            }
        }
    }
    sums
}

/// [`Products`] for many short rows.
struct ShortProducts<'a, 'b> {
    products: Products<'a>,
    /// Yᵀ, `[width, transposed_stride]`, zeros beyond the last row of Y.
    transposed: &'b [f32],
    transposed_stride: usize,
}

impl WithSimd for ShortProducts<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (x, side) = (self.products.x, 2 * S::F32_LANES);
        for (i, rows) in x.chunks(SIDE).enumerate().map(|(part, rows)| (part * SIDE, rows)) {
            let first = if self.products.symmetric { i / side * side } else { 0 };
            for j in (first..self.products.y.len()).step_by(side) {
                match <&[&[f32]; SIDE]>::try_from(rows) {
                    Ok(rows) => self.block(simd, rows, i, j),
                    Err(_) => {
                        for (r, row) in rows.iter().enumerate() {
                            self.block(simd, &[*row], i + r, j);
                        }
                    }
                }
            }
        }
    }
}

impl ShortProducts<'_, '_> {
    /// Products of R rows of X, from row i on, with two vectors of rows of Y, from row j on.
    #[inline(always)]
    fn block<S: Simd, const R: usize>(&mut self, simd: S, x: &[&[f32]; R], i: usize, j: usize) {
        let lanes = S::F32_LANES;
        let mut sums = [[simd.splat_f32s(0.0); 2]; R];
        for (c, y) in self.transposed.chunks_exact(self.transposed_stride).enumerate() {
            let pair = &S::as_simd_f32s(&y[j..j + 2 * lanes]).0[..2];
            let (left, right) = (pair[0], pair[1]);
            for r in 0..R {
                let x = simd.splat_f32s(x[r][c]);
                sums[r] = [simd.mul_add_f32s(x, left, sums[r][0]), simd.mul_add_f32s(x, right, sums[r][1])];
            }
        }
        let Products { y, sums: total, stride, .. } = &mut self.products;
        let count = (y.len() - j).min(2 * lanes);
        for (r, pair) in sums.iter().enumerate() {
            let mut values = [0.0; 2 * MOST_LANES];
            S::as_mut_simd_f32s(&mut values).0[..2].copy_from_slice(pair);
            let to = &mut total[(i + r) * *stride + j..][..count];
            to.iter_mut().zip(values).for_each(|(sum, value)| *sum += f64::from(value));
        }
    }
}
