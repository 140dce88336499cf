//! Products of long rows with long rows, Σ_c x_ic·y_jc: in f32 within a tile of columns, in f64 over the tiles.

use std::ops::Range;

use ndarray::Array2;
use rayon::prelude::*;

use super::products::Products;
use super::{Host, LINE, Mean, Offsets, WORTH_THREADS, aligned, cached_values, dispatch, has_long_vectors, lanes};

/// Most columns in a tile: enough that the sum over vector lanes at its end takes little time.
const TILE: usize = 2048;
/// Fewest columns in a tile; a multiple of two vectors.
const FEWEST: usize = 256;

/// The same with vectors of four lanes or fewer: a lane's sum would have more terms, and a larger error.
const TILE_OF_FOUR: usize = 512;

/// Columns in a tile of `rows` rows that are read again for every few others. Where the second-level cache is small, they fit
/// it; larger ones hold most of them in any case.
fn tile(rows: usize) -> usize {
    let most = if lanes() > 4 { TILE } else { TILE_OF_FOUR };
    match has_long_vectors() {
        true => most,
        false => (cached_values() / rows.max(1) / FEWEST * FEWEST).clamp(FEWEST, most),
    }
}

/// X Yᵀ summed over blocks, `[N, M]`.
pub(crate) fn gram(x: &[Host], y: &[Host]) -> Array2<f64> {
    let m = y[0].rows();
    over_tiles(x, m, |block, tile, scratch, sums| {
        let (x, y) = (cut(&x[block], &tile), cut(&y[block], &tile));
        Products { x: &x, y: &y, symmetric: false, sums, stride: m }.add(&mut scratch.transposed);
    })
}

/// The Gram matrix of the rows minus their mean, summed over blocks, `[N, N]`. Distances from it keep the digits that a
/// large common part would take.
pub(crate) fn centred_gram(x: &[Host]) -> Array2<f64> {
    let n = x[0].rows();
    let mut gram = over_tiles(x, n, |block, tile, scratch, sums| {
        let rows = cut(&x[block], &tile);
        let width = tile.len();
        scratch.offsets.resize((n + 1) * width + LINE, 0.0);
        let (mean, offsets) = aligned(&mut scratch.offsets, (n + 1) * width).split_at_mut(width);
        dispatch(Mean { rows: &rows, mean });
        dispatch(Offsets { rows: &rows, centre: mean, offsets, stride: width });
        let rows: Vec<&[f32]> = offsets.chunks_exact(width).collect();
        Products { x: &rows, y: &rows, symmetric: true, sums, stride: n }.add(&mut scratch.transposed);
    });
    for i in 0..n {
        for j in 0..i {
            gram[[i, j]] = gram[[j, i]];
        }
    }
    gram
}

/// X (Y − 1·centre)ᵀ summed over blocks, `[N, M]`; `centre` has one row.
pub(crate) fn gram_with_offsets(x: &[Host], y: &[Host], centre: &[Host]) -> Array2<f64> {
    let m = y[0].rows();
    over_tiles(x, m, |block, tile, scratch, sums| {
        let width = tile.len();
        scratch.offsets.resize(m * width + LINE, 0.0);
        let offsets = aligned(&mut scratch.offsets, m * width);
        let centre = &centre[block].values()[tile.clone()];
        dispatch(Offsets { rows: &cut(&y[block], &tile), centre, offsets, stride: width });
        let rows: Vec<&[f32]> = offsets.chunks_exact(width).collect();
        let x = cut(&x[block], &tile);
        Products { x: &x, y: &rows, symmetric: false, sums, stride: m }.add(&mut scratch.transposed);
    })
}

/// x_i·y_i summed over blocks, `[N]`.
pub(crate) fn row_products(x: &[Host], y: &[Host]) -> Vec<f64> {
    let products = over_tiles(x, 1, |block, tile, scratch, products| {
        let rows = cut(&x[block], &tile).into_iter().zip(cut(&y[block], &tile));
        for (product, (x, y)) in products.iter_mut().zip(rows) {
            let sums = std::slice::from_mut(product);
            Products { x: &[x], y: &[y], symmetric: false, sums, stride: 1 }.add(&mut scratch.transposed);
        }
    });
    products.into_iter().collect()
}

/// ‖x_i − centre‖² summed over blocks, `[N]`; `centre` has one row.
pub(crate) fn row_offsets(x: &[Host], centre: &[Host]) -> Vec<f64> {
    let norms = over_tiles(x, 1, |block, tile, scratch, norms| {
        let (rows, width) = (cut(&x[block], &tile), tile.len());
        scratch.offsets.resize(rows.len() * width + LINE, 0.0);
        let offsets = aligned(&mut scratch.offsets, rows.len() * width);
        let centre = &centre[block].values()[tile.clone()];
        dispatch(Offsets { rows: &rows, centre, offsets, stride: width });
        for (norm, row) in norms.iter_mut().zip(offsets.chunks_exact(width)) {
            let sums = std::slice::from_mut(norm);
            Products { x: &[row], y: &[row], symmetric: false, sums, stride: 1 }.add(&mut scratch.transposed);
        }
    });
    norms.into_iter().collect()
}

/// Buffers that a thread reuses from tile to tile.
#[derive(Default)]
struct Scratch {
    /// Rows minus a centre.
    offsets: Vec<f32>,
    /// The buffer of [`Products::add`].
    transposed: Vec<f32>,
}

/// The sum of the `[N, m]` products that `f` writes for each tile of each block, in a fixed order.
fn over_tiles(x: &[Host], m: usize, f: impl Fn(usize, Range<usize>, &mut Scratch, &mut [f64]) + Sync) -> Array2<f64> {
    let n = x[0].rows();
    let tile = tile(m);
    let tiles = |(block, host): (usize, &Host)| {
        let width = host.columns();
        (0..width).step_by(tile).map(move |start| (block, start..(start + tile).min(width)))
    };
    let tiles: Vec<(usize, Range<usize>)> = x.iter().enumerate().flat_map(tiles).collect();
    let columns: usize = x.iter().map(Host::columns).sum();
    let mut total = vec![0.0; n * m];
    if n * m * columns < WORTH_THREADS {
        let mut scratch = Scratch::default();
        tiles.into_iter().for_each(|(block, tile)| f(block, tile, &mut scratch, &mut total));
    } else {
        // As many products are kept at once as with the largest tiles.
        let part = |scratch: &mut Scratch, tiles: &[(usize, Range<usize>)]| {
            let mut products = vec![0.0; n * m];
            tiles.iter().for_each(|(block, tile)| f(*block, tile.clone(), scratch, &mut products));
            products
        };
        let parts: Vec<Vec<f64>> = tiles.par_chunks(TILE / tile).map_init(Scratch::default, part).collect();
        for part in parts {
            total.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
    }
    Array2::from_shape_vec((n, m), total).expect("n·m numbers")
}

/// A tile's columns of every row, `[rows, tile]`.
fn cut<'a>(block: &'a Host, tile: &Range<usize>) -> Vec<&'a [f32]> {
    block.values().chunks_exact(block.columns()).map(|row| &row[tile.clone()]).collect()
}
