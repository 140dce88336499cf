//! The backward pass of a block: from the gradient of its output to those of its images, weights and bias.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use super::forward::Input;
use super::plan::{LANES, Plan};
use super::scratch::Scratch;
use super::tile::{Contraction, Correlation, OUTPUTS};
use crate::simd::dispatch;

/// Blocks of 16 rows whose gradients are summed by one task. It is a constant, so that the order of sums does not
/// depend on the number of threads.
const CHUNK: usize = 4;
/// The number of pixels of a map that are processed at once: four outputs of this many lanes stay in the first-level
/// cache.
const STRIP: usize = 96;
/// The number of pixels of a map that are processed at once where all outputs are read.
const SHORT_STRIP: usize = 16;

/// The saved results of the forward pass, and the gradient of its output.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    /// `[N, blocks, out, H', W', 16]`
    pub values: &'a [f32],
    /// The pixel of its window that each maximum was, in the shape of `values`; empty where nothing was pooled.
    pub picks: &'a [u8],
    /// The gradient of the values, in their shape.
    pub gradient: &'a [f32],
}

/// The gradients of images (empty unless they are wanted), weights and bias, each in the shape of its tensor.
pub(super) struct Gradients {
    pub images: Vec<f32>,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

/// The gradients of a block's images (only if `of_images` is true), weights and bias.
pub(super) fn backward(plan: &Plan, input: Input<'_>, output: Output<'_>, of_images: bool) -> Gradients {
    let (particles, blocks) = (input.particles(plan), input.blocks);
    let chunks = blocks.div_ceil(CHUNK);
    let turned: Vec<Vec<f32>> = match of_images {
        true => input.weights.chunks_exact(plan.weights()).map(|weights| turned(plan, weights)).collect(),
        false => vec![Vec::new(); particles],
    };
    let mut images = vec![0.0; if of_images { particles * blocks * plan.image_len() } else { 0 }];
    let mut sums = vec![0.0; particles * chunks * (plan.weights() + plan.outputs)];

    let mut wanted = images.chunks_exact_mut((blocks * plan.image_len()).max(1));
    let mut parts = Vec::with_capacity(particles * chunks);
    for (particle, sums) in sums.chunks_exact_mut(chunks * (plan.weights() + plan.outputs)).enumerate() {
        let mut images = wanted.next().unwrap_or_default().chunks_mut(CHUNK * plan.image_len());
        for (chunk, sums) in sums.chunks_exact_mut(plan.weights() + plan.outputs).enumerate() {
            parts.push((particle, chunk * CHUNK, images.next().unwrap_or_default(), sums));
        }
    }
    parts.into_par_iter().for_each_init(Scratch::default, |scratch, (particle, first, gradient, sums)| {
        let count = CHUNK.min(blocks - first);
        let range =
            (particle * blocks + first) * plan.pooled_len()..(particle * blocks + first + count) * plan.pooled_len();
        let output = Output {
            values: &output.values[range.clone()],
            picks: output.picks.get(range.clone()).unwrap_or_default(),
            gradient: &output.gradient[range],
        };
        let images = &input.images(plan, particle, first)[..count * plan.image_len()];
        dispatch(BackwardTask { plan, images, output, turned: &turned[particle], scratch, gradient, sums });
    });

    let mut gradients = Gradients { images, weights: Vec::new(), bias: Vec::new() };
    for sums in sums.chunks_exact_mut(chunks * (plan.weights() + plan.outputs)) {
        let (total, rest) = sums.split_at_mut(plan.weights() + plan.outputs);
        for sums in rest.chunks_exact(plan.weights() + plan.outputs) {
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        let (weights, bias) = total.split_at(plan.weights());
        gradients.weights.extend_from_slice(weights);
        gradients.bias.extend_from_slice(bias);
    }
    gradients
}

/// Weights of a particle as `[in / 4, kernel, out, 4]`, padded with zeros where `in` is not a multiple of 4.
pub(super) fn turned(plan: &Plan, weights: &[f32]) -> Vec<f32> {
    let area = plan.kernel[0] * plan.kernel[1];
    let mut turned = vec![0.0; plan.channels.next_multiple_of(OUTPUTS) * area * plan.outputs];
    for (i, weight) in weights.iter().enumerate() {
        let (o, c, tap) = (i / (plan.channels * area), i / area % plan.channels, i % area);
        turned[((c / OUTPUTS * area + tap) * plan.outputs + o) * OUTPUTS + c % OUTPUTS] = *weight;
    }
    turned
}

/// The backward pass of a few blocks of 16 rows of one particle.
pub(super) struct BackwardTask<'a> {
    pub plan: &'a Plan,
    /// `[blocks, in, H, W, 16]`
    pub images: &'a [f32],
    pub output: Output<'a>,
    /// See [`turned`].
    pub turned: &'a [f32],
    pub scratch: &'a mut Scratch,
    /// The gradient of the images, in their shape; empty where it is not wanted.
    pub gradient: &'a mut [f32],
    /// The gradient of the weights, then that of the bias, to which is added.
    pub sums: &'a mut [f32],
}

impl WithSimd for BackwardTask<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { plan, images, output, turned, scratch, gradient, sums } = self;
        let count = images.len() / plan.image_len();
        let sizes = [count * plan.padded_len(), count * plan.map_len(), OUTPUTS * plan.taps.len() * LANES];
        let [padded, maps, lanes] = scratch.take(sizes);
        let (weights, bias) = sums.split_at_mut(plan.weights());

        maps.fill(0.0);
        for (block, map) in maps.chunks_exact_mut(plan.map_len()).enumerate() {
            let range = block * plan.pooled_len()..(block + 1) * plan.pooled_len();
            let output = Output {
                values: &output.values[range.clone()],
                picks: output.picks.get(range.clone()).unwrap_or_default(),
                gradient: &output.gradient[range],
            };
            spread(simd, plan, output, S::as_mut_simd_f32s(map).0, bias);
        }
        for (map, image) in maps.chunks_exact(plan.map_len()).zip(gradient.chunks_exact_mut(plan.image_len())) {
            let padded = &mut padded[..plan.padded_len()];
            padded.fill(0.0);
            scatter(simd, plan, turned, S::as_simd_f32s(map).0, S::as_mut_simd_f32s(padded).0);
            plan.crop(padded, image);
        }
        for (image, padded) in images.chunks_exact(plan.image_len()).zip(padded.chunks_exact_mut(plan.padded_len())) {
            plan.pad(image, padded);
        }
        let (padded, maps) = (S::as_simd_f32s(padded).0, S::as_simd_f32s(maps).0);
        for (tile, weights) in weights.chunks_mut(OUTPUTS * plan.taps.len()).enumerate() {
            lanes.fill(0.0);
            gather(simd, plan, tile * OUTPUTS, [padded, maps], S::as_mut_simd_f32s(lanes).0);
            for (weight, lanes) in weights.iter_mut().zip(lanes.chunks_exact(LANES)) {
                *weight = S::as_simd_f32s(lanes).0.iter().map(|part| simd.reduce_sum_f32s(*part)).sum();
            }
        }
    }
}

/// The gradient of a block's output to the pixels that were the maxima; its sum is the bias's.
#[inline(always)]
fn spread<S: Simd>(simd: S, plan: &Plan, output: Output<'_>, map: &mut [S::f32s], bias: &mut [f32]) {
    let ([window, step], [down, across], [rows, columns]) = (plan.block.pool, plan.map, plan.pooled);
    let ([gradient, forward], zero) =
        ([output.gradient, output.values].map(|of| S::as_simd_f32s(of).0), simd.splat_f32s(0.0));
    let (parts, row) = (LANES / S::F32_LANES, columns * LANES);
    let mut picked = vec![0.0f32; row];
    for (o, bias) in bias.iter_mut().enumerate() {
        let mut total = zero;
        for y in (0..rows).map(|y| o * rows + y) {
            if let Some(picks) = output.picks.get(y * row..(y + 1) * row) {
                picked.iter_mut().zip(picks).for_each(|(picked, pick)| *picked = f32::from(*pick));
            }
            let corner = (o * down + (y - o * rows) * step) * across;
            for (i, picked) in S::as_simd_f32s(&picked).0.iter().enumerate() {
                let (x, part) = (i / parts, i % parts);
                let place = y * columns * parts + i;
                let is_off = simd.less_than_or_equal_f32s(forward[place], zero);
                let passed = gradient[place];
                let value = if plan.block.relu { simd.select_f32s(is_off, zero, passed) } else { passed };
                total = simd.add_f32s(total, value);
                let mut pixel = 0.0;
                for down in 0..window {
                    for right in 0..window {
                        let map = &mut map[(corner + down * across + x * step + right) * parts + part];
                        let here = simd.equal_f32s(*picked, simd.splat_f32s(pixel));
                        *map = simd.add_f32s(*map, simd.select_f32s(here, value, zero));
                        pixel += 1.0;
                    }
                }
            }
        }
        *bias += simd.reduce_sum_f32s(total);
    }
}

/// The gradient of a padded image from that of its map.
#[inline(always)]
fn scatter<S: Simd>(simd: S, plan: &Plan, turned: &[f32], map: &[S::f32s], padded: &mut [S::f32s]) {
    let ([down, across], [_, wide]) = (plan.map, plan.kernel);
    let (area, plane) = (plan.kernel[0] * wide, plan.padded[0] * plan.padded[1]);
    let strip = SHORT_STRIP.div_ceil(across) * across;
    for first in (0..down * across).step_by(strip) {
        let range = first..(first + strip).min(down * across);
        for (tile, turned) in turned.chunks_exact(OUTPUTS * plan.outputs * area).enumerate() {
            let outputs = OUTPUTS.min(plan.channels - tile * OUTPUTS);
            for (tap, weights) in turned.chunks_exact(OUTPUTS * plan.outputs).enumerate() {
                let (at, to) = (&plan.pixels[range.clone()], &plan.positions[range.clone()]);
                let shift = tile * OUTPUTS * plane + tap / wide * plan.padded[1] + tap % wide;
                Correlation { image: map, at, taps: &plan.maps, weights, outputs, to, shift, plane }.run(simd, padded);
            }
        }
    }
}

/// The gradient of the weights of four outputs, lane by lane, summed over some blocks of 16 rows.
#[inline(always)]
fn gather<S: Simd>(simd: S, plan: &Plan, first: usize, [padded, maps]: [&[S::f32s]; 2], lanes: &mut [S::f32s]) {
    let ([down, across], parts) = (plan.map, LANES / S::F32_LANES);
    let (area, strip) = (down * across, (STRIP / across).max(1) * across);
    let blocks =
        padded.chunks_exact(plan.padded_len() / S::F32_LANES).zip(maps.chunks_exact(plan.map_len() / S::F32_LANES));
    for (image, map) in blocks {
        for start in (0..area).step_by(strip) {
            let end = (start + strip).min(area);
            let output = |o: usize| {
                let o = (first + o).min(plan.outputs - 1);
                &map[(o * area + start) * parts..(o * area + end) * parts]
            };
            let maps = [output(0), output(1), output(2), output(3)];
            Contraction { image, at: &plan.positions[start..end], taps: &plan.taps, maps }.run(simd, lanes);
        }
    }
}
