//! Products of long rows with long rows, Σ_c x_ic·y_jc: in f32 within a tile of columns, in f64 over the tiles.

use std::ops::Range;

use ndarray::Array2;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::{Host, LINE, Mean, Offsets, WORTH_THREADS, aligned, dispatch};

/// Columns in a tile: long enough to hide the sum over vector lanes at its end; 64 rows of it fit a core's own cache.
const TILE: usize = 2048;

/// Rows of X and rows of Y whose products are held in registers at once.
const SIDE: usize = 4;

/// X Yᵀ summed over blocks, `[N, M]`.
pub(crate) fn gram(x: &[Host], y: &[Host]) -> Array2<f64> {
    over_tiles(x, y[0].rows(), |block, tile, _, products| {
        let (x, y) = (cut(&x[block], &tile), cut(&y[block], &tile));
        dispatch(Products { x: &x, y: &y, symmetric: false, products });
    })
}

/// The Gram matrix of rows less their mean, summed over blocks, `[N, N]`: distances keep the digits that a large common
/// part would eat.
pub(crate) fn centred_gram(x: &[Host]) -> Array2<f64> {
    let n = x[0].rows();
    let mut total = over_tiles(x, n, |block, tile, scratch, products| {
        let width = tile.len();
        scratch.resize((n + 1) * width + LINE, 0.0);
        let (mean, offsets) = aligned(scratch, (n + 1) * width).split_at_mut(width);
        let rows = cut(&x[block], &tile);
        dispatch(Mean { rows: &rows, mean });
        dispatch(Offsets { rows: &rows, centre: mean, offsets, stride: width });
        let rows: Vec<&[f32]> = offsets.chunks_exact(width).collect();
        dispatch(Products { x: &rows, y: &rows, symmetric: true, products });
    });
    for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
        total[[i, j]] = total[[j, i]];
    }
    total
}

/// X (Y − 1·centre)ᵀ summed over blocks, `[N, M]`; `centre` has one row.
pub(crate) fn gram_with_offsets(x: &[Host], y: &[Host], centre: &[Host]) -> Array2<f64> {
    let m = y[0].rows();
    over_tiles(x, m, |block, tile, scratch, products| {
        let width = tile.len();
        scratch.resize(m * width + LINE, 0.0);
        let offsets = aligned(scratch, m * width);
        let centre = &centre[block].values()[tile.clone()];
        dispatch(Offsets { rows: &cut(&y[block], &tile), centre, offsets, stride: width });
        let rows: Vec<&[f32]> = offsets.chunks_exact(width).collect();
        dispatch(Products { x: &cut(&x[block], &tile), y: &rows, symmetric: false, products });
    })
}

/// ‖x_i‖² summed over blocks, `[N]`.
pub(crate) fn squared_norms(x: &[Host]) -> Vec<f64> {
    let norms = over_tiles(x, 1, |block, tile, _, norms| {
        for (norm, row) in norms.iter_mut().zip(cut(&x[block], &tile)) {
            dispatch(Products { x: &[row], y: &[row], symmetric: false, products: std::slice::from_mut(norm) });
        }
    });
    norms.into_iter().collect()
}

/// Adds up the `[N, m]` products that `f` writes for each tile of each block, always in the same order.
fn over_tiles(x: &[Host], m: usize, f: impl Fn(usize, Range<usize>, &mut Vec<f32>, &mut [f64]) + Sync) -> Array2<f64> {
    let n = x[0].rows();
    let tiles = |(block, host): (usize, &Host)| {
        let width = host.columns();
        (0..width).step_by(TILE).map(move |start| (block, start..(start + TILE).min(width)))
    };
    let tiles: Vec<(usize, Range<usize>)> = x.iter().enumerate().flat_map(tiles).collect();
    let columns: usize = x.iter().map(Host::columns).sum();
    let mut total = vec![0.0; n * m];
    if n * m * columns < WORTH_THREADS {
        let mut scratch = Vec::new();
        tiles.into_iter().for_each(|(block, tile)| f(block, tile, &mut scratch, &mut total));
    } else {
        let part = |scratch: &mut Vec<f32>, (block, tile)| {
            let mut products = vec![0.0; n * m];
            f(block, tile, scratch, &mut products);
            products
        };
        let parts: Vec<Vec<f64>> = tiles.into_par_iter().map_init(Vec::new, part).collect();
        for part in parts {
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
    }
    Array2::from_shape_vec((n, m), total).expect("n·m numbers")
}

/// A tile's columns of every row.
fn cut<'a>(block: &'a Host, tile: &Range<usize>) -> Vec<&'a [f32]> {
    block.values().chunks_exact(block.columns()).map(|row| &row[tile.clone()]).collect()
}

/// Adds x_i·y_j to `products[i·M + j]`; only for j ≥ i where symmetric (and for a few more).
struct Products<'a> {
    x: &'a [&'a [f32]],
    y: &'a [&'a [f32]],
    symmetric: bool,
    products: &'a mut [f64],
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, y, symmetric, products } = self;
        let m = y.len();
        for (i, x) in x.chunks(SIDE).enumerate().map(|(part, rows)| (part * SIDE, rows)) {
            let first = if symmetric { i } else { 0 };
            for (j, y) in y[first..].chunks(SIDE).enumerate().map(|(part, rows)| (first + part * SIDE, rows)) {
                let mut add = |r: usize, c: usize, value: f32| products[(i + r) * m + j + c] += f64::from(value);
                // Loops, not closures, around vector code: outside a function with vectors on, its operations are calls.
                match (<&[&[f32]; SIDE]>::try_from(x), <&[&[f32]; SIDE]>::try_from(y)) {
                    (Ok(x), Ok(y)) => dots(simd, x, y, add),
                    (Err(_), Ok(y)) => {
                        for (r, x) in x.iter().enumerate() {
                            dots(simd, &[*x], y, |_, c, value| add(r, c, value));
                        }
                    }
                    (_, Err(_)) => {
                        for (r, x) in x.iter().enumerate() {
                            for (c, y) in y.iter().enumerate() {
                                dots(simd, &[*x], &[*y], |_, _, value| add(r, c, value));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// All R·C products of R rows with C rows.
#[inline(always)]
fn dots<S: Simd, const R: usize, const C: usize>(
    simd: S,
    x: &[&[f32]; R],
    y: &[&[f32]; C],
    mut add: impl FnMut(usize, usize, f32),
) {
    let x = x.map(|row| S::as_simd_f32s(row));
    let y = y.map(|row| S::as_simd_f32s(row));
    let vectors = x[0].0.len();
    // Equal lengths, told to the compiler once.
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
    for (r, (sums, x)) in sums.into_iter().zip(&x).enumerate() {
        for (c, (sum, y)) in sums.into_iter().zip(&y).enumerate() {
            let rest = simd.mul_add_f32s(simd.partial_load_f32s(x.1), simd.partial_load_f32s(y.1), sum);
            add(r, c, simd.reduce_sum_f32s(rest));
        }
    }
}
