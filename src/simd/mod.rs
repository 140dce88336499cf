//! Loops over long particles on the CPU, with SIMD vectors: Gram matrices and SVGD steps in one pass over the
//! coordinates.
//!
//! Besides a likelihood's score, two operations take most of the time: products of particles with particles, `[N, d]`
//! by `[d, M]`, and small matrices times particles, `[N, M]` by `[M, d]`, followed by the optimiser's element-wise
//! rule. General matrix products repack such thin operands, and each element-wise operation is another pass over
//! memory. Here both operations work on tiles of columns that stay in the cache.
//!
//! Every function has an equivalent in plain tensors, which is used on other devices and in f64;
//! `tests/numerics/host_loops.rs` compares the two. Results have the same bits at any number of threads: each column is
//! computed by itself, and sums over columns are taken tile by tile in a fixed order.

mod ascent;
mod combination;
mod differences;
mod gram;
mod host;
mod outer;
mod outputs;
mod products;
pub(crate) mod rule;
mod source;
mod sums;

pub(crate) use ascent::Ascent;
pub(crate) use differences::squared_distances;
pub(crate) use fedstein_report::exponential::exponentials;
pub(crate) use gram::{centred_gram, gram, gram_with_offsets, row_offsets, row_products};
pub(crate) use host::Host;
pub(crate) use outer::Outer;
pub(crate) use outputs::OutputMatrices;
pub(crate) use source::{HostPrecisions, Part, Source, SparseEntry};
pub(crate) use sums::weighted_sum;

use std::ops::Range;

use fedstein_models::simd::{MOST_LANES, dispatch, with_room};
use pulp::{Simd, WithSimd};

/// Number of multiply-adds below which a second thread costs more time than it saves.
const WORTH_THREADS: usize = 1 << 20;

/// Number of f32 in a cache line.
const LINE: usize = 16;

/// The number of f32 in this processor's widest vectors.
fn lanes() -> usize {
    dispatch(Lanes)
}

/// Whether this processor has vectors of 16 lanes.
fn has_long_vectors() -> bool {
    lanes() == MOST_LANES
}

/// Number of f32 that fill half of the second-level cache of a core: those with vectors of 16 lanes hold a megabyte or more,
/// others, such as Zen 3, 512 KiB.
fn cached_values() -> usize {
    if has_long_vectors() { 1 << 17 } else { 1 << 16 }
}

/// The number of f32 in a vector.
struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        S::F32_LANES
    }
}

/// `count` values of `room`, which has [`LINE`] more, starting at a cache line: a vector that crosses two lines takes
/// two reads.
fn aligned(room: &mut [f32], count: usize) -> &mut [f32] {
    let start = room.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
    &mut room[start..start + count]
}

/// 0..n in groups of these sizes, the largest that fits first; the last size is 1.
fn groups(n: usize, sizes: [usize; 3]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let size = sizes.into_iter().find(|size| *size <= n - start)?;
        start += size;
        Some(start - size..start)
    })
}

/// At most one vector of values, filled up with 0.
#[inline(always)]
fn load<S: Simd>(simd: S, values: &[f32]) -> S::f32s {
    match S::as_simd_f32s(values).0 {
        [whole, ..] => *whole,
        [] => simd.partial_load_f32s(values),
    }
}

/// Stores as many values of a vector as there is room for.
#[inline(always)]
fn store<S: Simd>(simd: S, to: &mut [f32], values: S::f32s) {
    match S::as_mut_simd_f32s(to) {
        ([whole, ..], _) => *whole = values,
        ([], part) => simd.partial_store_f32s(part, values),
    }
}

/// Writes the mean of each column of some rows into `mean`.
struct Mean<'a> {
    rows: &'a [&'a [f32]],
    mean: &'a mut [f32],
}

impl WithSimd for Mean<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, mean } = self;
        mean.copy_from_slice(rows[0]);
        for row in &rows[1..] {
            mean.iter_mut().zip(*row).for_each(|(sum, value)| *sum += value);
        }
        let scale = 1.0 / rows.len() as f32;
        mean.iter_mut().for_each(|sum| *sum *= scale);
    }
}

/// Writes the rows minus a centre into `offsets`, one row every `stride` values.
struct Offsets<'a> {
    rows: &'a [&'a [f32]],
    centre: &'a [f32],
    offsets: &'a mut [f32],
    stride: usize,
}

impl WithSimd for Offsets<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { rows, centre, offsets, stride } = self;
        for (row, offsets) in rows.iter().zip(offsets.chunks_exact_mut(stride)) {
            for ((offset, value), centre) in offsets.iter_mut().zip(*row).zip(centre) {
                *offset = value - centre;
            }
        }
    }
}
