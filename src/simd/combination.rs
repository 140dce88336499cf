//! Linear combinations of rows, C·X, a few at a time in registers: how many, C in the order in which the loop reads it, and
//! the loop.

use ndarray::Array2;
use pulp::{Simd, WithSimd};

use super::{MOST_LANES, groups};

/// Rows computed at once, largest first: as many as fit the 32 registers that x86 has for 16 lanes, and the 16 for fewer.
const GROUPS: ([usize; 3], [usize; 3]) = ([10, 4, 1], [5, 4, 1]);

/// Matrices `[N, M_s]` side by side as one `[N, depth]`, column by column within each group of rows.
pub(super) struct SideBySide<'a> {
    pub matrices: &'a [&'a Array2<f64>],
    pub count: usize,
}

impl WithSimd for SideBySide<'_> {
    type Output = Vec<f32>;

    fn with_simd<S: Simd>(self, _simd: S) -> Vec<f32> {
        let mut values = Vec::with_capacity(self.matrices.iter().map(|matrix| matrix.len()).sum());
        for group in groups(self.count, group_sizes(S::F32_LANES)) {
            for column in self.matrices.iter().flat_map(|matrix| matrix.columns()) {
                values.extend(group.clone().map(|row| column[row] as f32));
            }
        }
        values
    }
}

/// Sizes of the groups of rows that are computed at once with this vector width.
pub(super) fn group_sizes(lanes: usize) -> [usize; 3] {
    if lanes == MOST_LANES { GROUPS.0 } else { GROUPS.1 }
}

/// Sums that are 0.
#[inline(always)]
pub(super) fn zeros<S: Simd, const R: usize, const V: usize>(simd: S) -> [[S::f32s; V]; R] {
    [[simd.splat_f32s(0.0); V]; R]
}

/// `sums` and R rows of C·X at V vectors of columns.
#[inline(always)]
pub(super) fn combine<S: Simd, const R: usize, const V: usize>(
    simd: S,
    mut sums: [[S::f32s; V]; R],
    values: &[f32],
    stride: usize,
    coefficients: &[f32],
    start: usize,
) -> [[S::f32s; V]; R] {
    for (values, coefficients) in values.chunks_exact(stride).zip(coefficients.chunks_exact(R)) {
        let vectors = &S::as_simd_f32s(&values[start..][..V * S::F32_LANES]).0[..V];
        for r in 0..R {
            let c = simd.splat_f32s(coefficients[r]);
            for v in 0..V {
                sums[r][v] = simd.mul_add_f32s(c, vectors[v], sums[r][v]);
            }
        }
    }
    sums
}
