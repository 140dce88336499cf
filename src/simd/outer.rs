//! Σ_m k_nm Σ_i a_mi x_iᵀ: kernel-weighted gradients of a dense layer whose rows x all particles share.
//!
//! The gradient of such a layer is the largest block of a score, and an SVGD step would write it, read it again and multiply
//! it by the kernel. Here the kernel multiplies a, which has a column for each row of data in the place of one for each
//! input, and the rest is one more sum over rows in the pass that updates the particles: the gradient is never stored.

use ndarray::Array2;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::combination::{SideBySide, combine, group_sizes, zeros};
use super::{Host, LINE, MOST_LANES, dispatch, groups};

/// The factors of the product. The layer's weights are rows of `inputs` coordinates, one for each output.
#[derive(Debug)]
pub(crate) struct Outer {
    /// k, `[N, N]`, in the order in which the loop reads it.
    mix: Vec<f32>,
    /// a, `[N, out·B]`.
    outputs: Host,
    /// x in panels of two vectors of columns, `[⌈in/2L⌉, B, 2L]` with L lanes, zeros beyond the last column, from `start` on,
    /// where a cache line begins.
    panels: Vec<f32>,
    start: usize,
    /// Number of rows of data B.
    rows: usize,
    /// Number of inputs.
    inputs: usize,
}

/// Buffers of a thread.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// a of one output, `[N, stride]`, zeros beyond B.
    outputs: Vec<f32>,
    /// Σ_m k_nm a_mi of one output, `[N, B]`, row of data by row of data within each group of particles.
    mixed: Vec<f32>,
}

impl Outer {
    /// The product with k `[N, N]`, a `[N, out·B]` and x `[B, in]`.
    pub fn new(k: &Array2<f64>, outputs: Host, inputs: &Host) -> Self {
        let mix = dispatch(SideBySide { matrices: &[k], count: k.nrows() });
        let (panels, start) = dispatch(Panels { of: inputs });
        Self { mix, outputs, panels, start, rows: inputs.rows(), inputs: inputs.columns() }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of sums that each coordinate takes.
    pub(super) fn depth(&self) -> usize {
        self.rows
    }

    /// Σ_m k_nm a_mi of one output.
    pub(super) fn mixed<'a>(&self, output: usize, scratch: &'a mut Scratch) -> &'a [f32] {
        let (n, rows) = (self.outputs.rows(), self.rows);
        let stride = rows.next_multiple_of(2 * MOST_LANES);
        scratch.outputs.resize(n * stride, 0.0);
        scratch.mixed.resize(n * rows, 0.0);
        let of = self.outputs.values().chunks_exact(self.outputs.columns());
        for (to, of) in scratch.outputs.chunks_exact_mut(stride).zip(of) {
            to[..rows].copy_from_slice(&of[output * rows..][..rows]);
        }
        dispatch(Mix { k: &self.mix, outputs: &scratch.outputs, stride, rows, count: n, mixed: &mut scratch.mixed });
        &scratch.mixed
    }

    /// The panel of the columns from `start` on, of two vectors of L = `lanes`: `[B, 2L]`.
    #[inline(always)]
    pub(super) fn panel(&self, start: usize, lanes: usize) -> &[f32] {
        let size = self.rows * 2 * lanes;
        &self.panels[self.start + start / (2 * lanes) * size..][..size]
    }
}

/// Rows in panels of two vectors, and where the first one begins.
struct Panels<'a> {
    of: &'a Host,
}

impl WithSimd for Panels<'_> {
    type Output = (Vec<f32>, usize);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> Self::Output {
        let (rows, columns, side) = (self.of.rows(), self.of.columns(), 2 * S::F32_LANES);
        let count = columns.div_ceil(side) * rows * side;
        let mut room = vec![0.0; count + LINE];
        let start = room.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        let fill = |(at, panel): (usize, &mut [f32])| {
            let start = at * side;
            let width = side.min(columns - start);
            for (to, row) in panel.chunks_exact_mut(side).zip(self.of.values().chunks_exact(columns)) {
                to[..width].copy_from_slice(&row[start..start + width]);
            }
        };
        room[start..start + count].par_chunks_exact_mut(rows * side).enumerate().for_each(fill);
        (room, start)
    }
}

/// K times the outputs' gradients of one output.
struct Mix<'a> {
    k: &'a [f32],
    outputs: &'a [f32],
    stride: usize,
    rows: usize,
    count: usize,
    mixed: &'a mut [f32],
}

impl WithSimd for Mix<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        for group in groups(self.count, group_sizes(S::F32_LANES)) {
            match group.len() {
                10 => self.group::<S, 10>(simd, group.start),
                5 => self.group::<S, 5>(simd, group.start),
                4 => self.group::<S, 4>(simd, group.start),
                _ => self.group::<S, 1>(simd, group.start),
            }
        }
    }
}

impl Mix<'_> {
    #[inline(always)]
    fn group<S: Simd, const R: usize>(&mut self, simd: S, first: usize) {
        let k = &self.k[first * self.count..(first + R) * self.count];
        let side = 2 * S::F32_LANES;
        let mixed = &mut self.mixed[first * self.rows..(first + R) * self.rows];
        for (at, mixed) in mixed.chunks_mut(R * side).enumerate() {
            let sums = combine::<S, R, 2>(simd, zeros(simd), self.outputs, self.stride, k, at * side);
            for (r, sums) in sums.iter().enumerate() {
                let mut values = [0.0; 2 * MOST_LANES];
                S::as_mut_simd_f32s(&mut values).0[..2].copy_from_slice(sums);
                mixed.iter_mut().skip(r).step_by(R).zip(values).for_each(|(to, value)| *to = value);
            }
        }
    }
}
