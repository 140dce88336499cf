//! Weighted sums of several sets of rows, in one pass over the numbers.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{Host, WORTH_THREADS, dispatch};

/// Columns whose sums a core keeps in its first cache.
const TILE: usize = 4096;

/// Σ_k w_k X_k of one block, `[N, columns]`: row i of the sum has the rows `row(k, i)` of the sets X_k. A product is
/// rounded before it is added, and the sets are added in their order.
pub(crate) fn weighted_sum(sets: &[&Host], weights: &[f32], row: impl Fn(usize, usize) -> usize + Sync) -> Vec<f32> {
    let (rows, columns) = (sets[0].rows(), sets[0].columns());
    let mut sum = vec![0.0; rows * columns];
    let tile = |i: usize, start: usize, sum: &mut [f32]| {
        let terms = sets.iter().zip(weights).enumerate().map(|(k, (set, weight))| {
            let first = row(k, i) * columns + start;
            (&set.values()[first..first + sum.len()], *weight)
        });
        let terms: Vec<_> = terms.collect();
        dispatch(Terms { terms: &terms, sum });
    };
    if sets.len() * rows * columns < WORTH_THREADS {
        for (i, sum) in sum.chunks_exact_mut(columns).enumerate() {
            tile(i, 0, sum);
        }
    } else {
        sum.par_chunks_exact_mut(columns).enumerate().for_each(|(i, sum)| {
            sum.par_chunks_mut(TILE).enumerate().for_each(|(t, sum)| tile(i, t * TILE, sum));
        });
    }
    sum
}

/// Writes Σ_k w_k x_k into `sum`.
struct Terms<'a> {
    terms: &'a [(&'a [f32], f32)],
    sum: &'a mut [f32],
}

impl WithSimd for Terms<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { terms, sum } = self;
        for (k, (values, weight)) in terms.iter().enumerate() {
            match k {
                0 => sum.iter_mut().zip(*values).for_each(|(sum, value)| *sum = value * weight),
                _ => sum.iter_mut().zip(*values).for_each(|(sum, value)| *sum += value * weight),
            }
        }
    }
}
