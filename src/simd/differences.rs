//! Squared distances of short rows in f64, from differences of coordinates.

use pulp::{Simd, WithSimd};

use super::dispatch;

/// Columns that are read together, so that the sums are read and written once for all of them.
const TOGETHER: usize = 4;

/// Σ_c (x_ci − x_cj)² of the pairs (1,0), (2,0), (2,1), (3,0), … of `count` rows, from their columns, `[d, count]`.
///
/// Sums are taken column by column without fused operations, so that every processor computes the same bits.
pub(crate) fn squared_distances(columns: &[f64], count: usize) -> Vec<f64> {
    let mut pairs = vec![0.0; count * count.saturating_sub(1) / 2];
    if count > 1 {
        dispatch(Differences { columns, count, pairs: &mut pairs });
    }
    pairs
}

struct Differences<'a> {
    /// `[d, count]`
    columns: &'a [f64],
    count: usize,
    /// `[count·(count − 1)/2]`
    pairs: &'a mut [f64],
}

impl WithSimd for Differences<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { columns, count, pairs } = self;
        let mut rest = pairs;
        for i in 1..count {
            let (sums, others) = rest.split_at_mut(i);
            rest = others;
            let mut groups = columns.chunks_exact(TOGETHER * count);
            for group in &mut groups {
                let (own, rows) = together(group, count, i);
                let [a, b, c, d] = rows;
                for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    let [a, b, c, d] = [own[0] - a, own[1] - b, own[2] - c, own[3] - d];
                    *sum += (a * a + b * b) + (c * c + d * d);
                }
            }
            for column in groups.remainder().chunks_exact(count) {
                for (sum, other) in sums.iter_mut().zip(column) {
                    let difference = column[i] - other;
                    *sum += difference * difference;
                }
            }
        }
    }
}

/// The values of row i in a group of columns, and those of the rows before it.
#[inline(always)]
fn together(group: &[f64], count: usize, i: usize) -> ([f64; TOGETHER], [&[f64]; TOGETHER]) {
    let column = |place: usize| &group[place * count..][..count];
    (std::array::from_fn(|place| column(place)[i]), std::array::from_fn(|place| &column(place)[..i]))
}
