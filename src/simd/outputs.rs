//! A − B ((Θ − Θ_0)∘m): a score near Θ_0 whose curvature in a dense layer is a matrix B over the outputs and a diagonal m over
//! the inputs.
//!
//! A product of tensors would write the scaled displacements, and their products with B, and read both again. Here the
//! displacements of a tile of inputs stay in the cache, and the score is written once.

use ndarray::{Array2, ArrayView2};
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::combination::{SideBySide, combine, group_sizes};
use super::{Host, LINE, MOST_LANES, WORTH_THREADS, aligned, cached_values, dispatch, groups, load, store, with_room};

/// Fewest and most inputs of a tile; multiples of two vectors.
const TILE_INPUTS: (usize, usize) = (32, 512);

/// B of N particles.
#[derive(Debug)]
pub(crate) struct OutputMatrices {
    outputs: usize,
    /// −B of each particle, `[N, out·out]`, in the order in which the loop reads it.
    coefficients: Vec<f32>,
}

impl OutputMatrices {
    /// The matrices B `[N, out·out]`.
    pub fn new(matrices: &Host, outputs: usize) -> Self {
        let mut coefficients = Vec::with_capacity(matrices.values().len());
        for matrix in matrices.values().chunks_exact(matrices.columns()) {
            let matrix = ArrayView2::from_shape((outputs, outputs), matrix).expect("a square for each particle");
            let negative: Array2<f64> = matrix.mapv(|value| -f64::from(value));
            coefficients.extend(dispatch(SideBySide { matrices: &[&negative], count: outputs }));
        }
        Self { outputs, coefficients }
    }

    /// A − B ((Θ − Θ_0)∘m) of one block, `[N, out·in]`, with A, Θ_0 and Θ of this shape and m `[1, in]`.
    pub fn score(&self, score: &Host, from: &Host, at: &Host, inputs: &Host) -> Vec<f32> {
        let (size, inputs) = (score.columns(), inputs.values());
        let mut to = vec![0.0; score.values().len()];
        let particle = |(n, to): (usize, &mut [f32])| {
            let of = |set: &Host| n * size..(n + 1) * set.columns();
            let coefficients = &self.coefficients[n * self.outputs.pow(2)..][..self.outputs.pow(2)];
            let [score, from, at] = [score, from, at].map(|set| &set.values()[of(set)]);
            self.particle(coefficients, [score, from, at], inputs, to);
        };
        if self.outputs * to.len() < WORTH_THREADS {
            to.chunks_exact_mut(size).enumerate().for_each(particle);
        } else {
            to.par_chunks_exact_mut(size).enumerate().for_each(particle);
        }
        to
    }

    /// The score of one particle; A, Θ_0 and Θ in this order.
    fn particle(&self, coefficients: &[f32], sets: [&[f32]; 3], inputs: &[f32], to: &mut [f32]) {
        let side = 2 * MOST_LANES;
        let tile = (cached_values() / self.outputs / side * side).clamp(TILE_INPUTS.0, TILE_INPUTS.1);
        let tile = tile.min(inputs.len().next_multiple_of(side));
        // One cache line more than a tile from row to row: at a power of two all rows would fall into a few cache sets.
        let stride = tile + LINE;
        with_room(self.outputs * stride + LINE, |room| {
            let moved = aligned(room, self.outputs * stride);
            for start in (0..inputs.len()).step_by(tile) {
                let width = tile.min(inputs.len() - start);
                dispatch(Tile { coefficients, sets, inputs, start, width, moved, stride, to });
            }
        });
    }
}

/// The score in some inputs of every output.
struct Tile<'a> {
    coefficients: &'a [f32],
    /// A, Θ_0 and Θ of a particle, `[out, in]`.
    sets: [&'a [f32]; 3],
    /// m, `[in]`.
    inputs: &'a [f32],
    /// The first input of the tile, and how many it has.
    start: usize,
    width: usize,
    /// A buffer for (Θ − Θ_0)∘m, `[out, stride]`.
    moved: &'a mut [f32],
    stride: usize,
    /// `[out, in]`.
    to: &'a mut [f32],
}

impl WithSimd for Tile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let columns = self.start..self.start + self.width;
        let [_, from, at] = self.sets.map(|set| set.chunks_exact(self.inputs.len()));
        for ((moved, from), at) in self.moved.chunks_exact_mut(self.stride).zip(from).zip(at) {
            let rows = moved.iter_mut().zip(&from[columns.clone()]).zip(&at[columns.clone()]);
            for (((moved, from), at), input) in rows.zip(&self.inputs[columns.clone()]) {
                *moved = (at - from) * input;
            }
        }
        let outputs = self.moved.len() / self.stride;
        for start in (0..self.width).step_by(2 * S::F32_LANES) {
            for group in groups(outputs, group_sizes(S::F32_LANES)) {
                match group.len() {
                    10 => self.group::<S, 10>(simd, group.start, start),
                    5 => self.group::<S, 5>(simd, group.start, start),
                    4 => self.group::<S, 4>(simd, group.start, start),
                    _ => self.group::<S, 1>(simd, group.start, start),
                }
            }
        }
    }
}

impl Tile<'_> {
    /// R outputs in two vectors of inputs.
    #[inline(always)]
    fn group<S: Simd, const R: usize>(&mut self, simd: S, output: usize, start: usize) {
        let outputs = self.moved.len() / self.stride;
        let place = |r: usize, part: usize| {
            let first = (start + part * S::F32_LANES).min(self.width);
            let end = (first + S::F32_LANES).min(self.width);
            let row = (output + r) * self.inputs.len() + self.start;
            row + first..row + end
        };
        let sums: [[S::f32s; 2]; R] =
            std::array::from_fn(|r| std::array::from_fn(|part| load(simd, &self.sets[0][place(r, part)])));
        let coefficients = &self.coefficients[output * outputs..(output + R) * outputs];
        let sums = combine::<S, R, 2>(simd, sums, self.moved, self.stride, coefficients, start);
        for (r, sums) in sums.into_iter().enumerate() {
            for (part, sums) in sums.into_iter().enumerate() {
                store(simd, &mut self.to[place(r, part)], sums);
            }
        }
    }
}
