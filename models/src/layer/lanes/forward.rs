//! The forward pass of a block: convolution, maximum, bias, max(z, 0). In: images and weights. Out: the block's output,
//! and which pixel of its window each maximum was.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::plan::{LANES, Plan};
use super::scratch::Scratch;
use super::tile::{Correlation, OUTPUTS};
use crate::simd::dispatch;

/// The images and weights that a block reads.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// `[N or 1, blocks, in, H, W, 16]`
    pub images: &'a [f32],
    /// `[N, out, in, kernel height, kernel width]`
    pub weights: &'a [f32],
    /// Blocks of 16 rows.
    pub blocks: usize,
}

impl Input<'_> {
    /// The number of particles N.
    pub fn particles(&self, plan: &Plan) -> usize {
        self.weights.len() / plan.weights()
    }

    /// The images of particle n that begin at this block.
    pub fn images(&self, plan: &Plan, particle: usize, block: usize) -> &[f32] {
        let shared = self.images.len() == self.blocks * plan.image_len();
        let first = if shared { block } else { particle * self.blocks + block };
        &self.images[first * plan.image_len()..]
    }
}

/// The block's output `[N, blocks, out, H', W', 16]`, and the picked pixels in the same shape if `keep` is true, else
/// none.
///
/// # Shapes
/// - `bias`: `[N, out]`
pub(super) fn forward(plan: &Plan, input: Input<'_>, bias: &[f32], keep: bool) -> (Vec<f32>, Vec<u8>) {
    let tasks = input.particles(plan) * input.blocks;
    let len = plan.pooled_len();
    let mut out = vec![0.0; tasks * len];
    let mut picks = vec![0; if keep { tasks * len } else { 0 }];
    let weights: Vec<f32> = input.weights.chunks_exact(plan.weights()).flat_map(|w| packed(plan, w)).collect();
    let packed_len = plan.outputs.next_multiple_of(OUTPUTS) * plan.taps.len();

    let mut kept = picks.chunks_exact_mut(len);
    let parts: Vec<_> = out.chunks_exact_mut(len).map(|out| (out, kept.next().unwrap_or_default())).collect();
    parts.into_par_iter().enumerate().for_each_init(Scratch::default, |scratch, (task, (out, picks))| {
        let (particle, block) = (task / input.blocks, task % input.blocks);
        let image = &input.images(plan, particle, block)[..plan.image_len()];
        let weights = &weights[particle * packed_len..][..packed_len];
        let bias = &bias[particle * plan.outputs..][..plan.outputs];
        dispatch(ForwardTask { plan, image, weights, bias, scratch, out, picks });
    });
    (out, picks)
}

/// Weights of a particle as `[out / 4, in · kernel, 4]`, padded with zeros where `out` is not a multiple of 4.
pub(super) fn packed(plan: &Plan, weights: &[f32]) -> Vec<f32> {
    let taps = plan.taps.len();
    let mut packed = vec![0.0; plan.outputs.next_multiple_of(OUTPUTS) * taps];
    for (o, weights) in weights.chunks_exact(taps).enumerate() {
        let tile = o / OUTPUTS * taps * OUTPUTS + o % OUTPUTS;
        weights.iter().enumerate().for_each(|(t, weight)| packed[tile + t * OUTPUTS] = *weight);
    }
    packed
}

/// The forward pass of 16 rows of one particle.
pub(super) struct ForwardTask<'a> {
    pub plan: &'a Plan,
    /// `[in, H, W, 16]`
    pub image: &'a [f32],
    /// See [`packed`].
    pub weights: &'a [f32],
    /// `[out]`
    pub bias: &'a [f32],
    pub scratch: &'a mut Scratch,
    /// `[out, H', W', 16]`
    pub out: &'a mut [f32],
    /// The pixel of its window that each maximum was, `[out, H', W', 16]`; empty where picks are not kept.
    pub picks: &'a mut [u8],
}

impl WithSimd for ForwardTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, image, weights, bias, scratch, out, picks } = self;
        let ([window, step], [_, across], [rows, columns]) = (plan.block.pool, plan.map, plan.pooled);
        let band = window * across;
        let [padded, sums] = scratch.take([plan.padded_len(), OUTPUTS * band * LANES]);
        plan.pad(image, padded);
        let padded = S::as_simd_f32s(padded).0;
        let sums = S::as_mut_simd_f32s(sums).0;
        let mut chosen = vec![0u32; columns * LANES];
        for y in 0..rows {
            let at = &plan.positions[y * step * across..][..band];
            for (tile, weights) in weights.chunks_exact(OUTPUTS * plan.taps.len()).enumerate() {
                let outputs = OUTPUTS.min(plan.outputs - tile * OUTPUTS);
                sums.fill(simd.splat_f32s(0.0));
                let to = &plan.pixels[..band];
                let (taps, image) = (&plan.taps[..], padded);
                Correlation { image, at, taps, weights, outputs, to, shift: 0, plane: band }.run(simd, sums);
                for o in 0..outputs {
                    let place = ((tile * OUTPUTS + o) * rows + y) * columns * LANES;
                    let out = S::as_mut_simd_f32s(&mut out[place..place + columns * LANES]).0;
                    let sums = &sums[o * band * LANES / S::F32_LANES..];
                    let bias = simd.splat_f32s(bias[tile * OUTPUTS + o]);
                    maxima(simd, plan, sums, bias, out, S::as_mut_simd_u32s(&mut chosen).0);
                    if let Some(picks) = picks.get_mut(place..place + columns * LANES) {
                        picks.iter_mut().zip(&chosen).for_each(|(pick, chosen)| *pick = *chosen as u8);
                    }
                }
            }
        }
    }
}

/// A row of the output from the rows of the map that its windows cover. The first of equal values is the maximum, and
/// NaN is larger than every number, as in Burn.
#[inline(always)]
fn maxima<S: Simd>(simd: S, plan: &Plan, sums: &[S::f32s], bias: S::f32s, out: &mut [S::f32s], chosen: &mut [S::u32s]) {
    let ([window, step], across, parts) = (plan.block.pool, plan.map[1], LANES / S::F32_LANES);
    let zero = simd.splat_f32s(0.0);
    for (i, (out, chosen)) in out.iter_mut().zip(chosen).enumerate() {
        let (x, part) = (i / parts, i % parts);
        let mut best = sums[x * step * parts + part];
        let mut place = simd.splat_u32s(0);
        for pixel in 1..window * window {
            let value = sums[(pixel / window * across + x * step + pixel % window) * parts + part];
            let is_not_nan = simd.equal_f32s(value, value);
            let take = simd.or_m32s(simd.greater_than_f32s(value, best), simd.not_m32s(is_not_nan));
            best = simd.select_f32s(take, value, best);
            place = simd.select_u32s(take, simd.splat_u32s(pixel as u32), place);
        }
        let value = simd.add_f32s(best, bias);
        let is_off = simd.less_than_or_equal_f32s(value, zero);
        *out = if plan.block.relu { simd.select_f32s(is_off, zero, value) } else { value };
        *chosen = place;
    }
}
