//! The score of logistic regressions on a small batch, in SIMD vectors on the CPU.
//!
//! Burn's operations take about a microsecond each whatever their size, and general matrix products repack operands that
//! are read once. For 6 particles, 54 features and 100 rows that is most of the time. This is for `f32` on flex.

use burn::tensor::Tensor;
use pulp::{Simd, WithSimd};

use crate::mean::one_over_one_plus_exp;
use crate::model::Batch;
use crate::simd::{MOST_LANES, dispatch, matrix, on_flex, with_room};

/// The most multiply-adds, N·B·p, and features p for which this is used: beyond them matrix products use all cores.
const MOST_PRODUCTS: usize = 1 << 21;
const MOST_FEATURES: usize = 1 << 10;

/// Rows of a product that are computed at once.
const AT_ONCE: usize = 8;

/// The number of features a particle from which sums over the lanes of θ∘x cost less than the transpose of the batch.
const WORTH_SUMS: usize = 5;

/// scale · Σ_i w_i (y_i − σ(θ_n·x_i)) x_i of every particle, `[N, p]`; `None` where the tensors are elsewhere, in another
/// precision, or large. The class of row i and its weight are those of the batch.
///
/// # Shapes
/// - `theta`: `[N, p]`
/// - `inputs`: `[B, p]`, the batch's with a column of ones where there is a bias
pub(crate) fn score(theta: &Tensor<2>, inputs: &Tensor<2>, batch: &Batch, scale: f64) -> Option<Tensor<2>> {
    let ([particles, width], [rows, _]) = (theta.dims(), inputs.dims());
    if particles * rows * width > MOST_PRODUCTS || width > MOST_FEATURES || particles * rows * width == 0 {
        return None;
    }
    let host = |tensor: &Tensor<2>| on_flex(tensor.clone());
    let (theta_on, inputs_on, targets_on) = (host(theta)?, host(inputs)?, host(&batch.targets)?);
    let weights_on = match &batch.weights {
        Some(weights) => Some(host(weights)?),
        None => None,
    };
    let weights = match &weights_on {
        Some(weights) => Some(weights.as_slice::<f32>()?),
        None => None,
    };
    let (theta, inputs) = (theta_on.as_slice::<f32>()?, inputs_on.as_slice::<f32>()?);
    let targets = targets_on.as_slice::<f32>()?;
    let mut values = vec![0.0; particles * width];
    with_room(room_sizes(rows, width, MOST_LANES).iter().sum(), |room| {
        dispatch(Score { theta, inputs, targets, weights, scale: scale as f32, width, room, score: &mut values });
    });
    Some(matrix(values, [particles, width]))
}

/// p and B as multiples of two vectors.
fn padded(rows: usize, width: usize, lanes: usize) -> (usize, usize) {
    (width.next_multiple_of(2 * lanes), rows.next_multiple_of(2 * lanes))
}

/// How many rows of X begin at least `across` values before its end.
fn rows_inside(rows: usize, width: usize, across: usize) -> usize {
    (rows * width).checked_sub(across).map_or(0, |room| room / width + 1)
}

/// The sizes of the buffers: the other rows of X, w_i y_i, w_i, θ of the particles that are computed at once, and their
/// residuals. None is larger with fewer lanes.
fn room_sizes(rows: usize, width: usize, lanes: usize) -> [usize; 5] {
    let (across, down) = padded(rows, width, lanes);
    [(rows - rows_inside(rows, width, across)) * across, down, down, AT_ONCE * across, AT_ONCE * down]
}

struct Score<'a> {
    /// `[N, p]`
    theta: &'a [f32],
    /// `[B, p]`
    inputs: &'a [f32],
    /// One-hot times the weight, `[B, 2]`.
    targets: &'a [f32],
    /// `[B]`
    weights: Option<&'a [f32]>,
    scale: f32,
    /// p.
    width: usize,
    /// All buffers, at least as long as [`room_sizes`] are.
    room: &'a mut [f32],
    /// `[N, p]`
    score: &'a mut [f32],
}

/// The batch as the loops read it.
struct Prepared<'a> {
    /// X, `[B, p]`.
    inputs: &'a [f32],
    /// How many rows of X begin at least `across` values before its end.
    inside: usize,
    /// The other rows, `[B - inside, across]`, zeros beyond the last feature.
    end: &'a [f32],
    /// Xᵀ, `[p, down]`; `None` where there are few particles.
    columns: Option<Vec<f32>>,
    /// w_i y_i and w_i, `[down]` each, times the scale.
    positive: &'a [f32],
    weight: &'a [f32],
    /// p and B as multiples of two vectors.
    across: usize,
    down: usize,
}

impl Prepared<'_> {
    /// Row i of X, followed by numbers that are those of other rows or 0, `[across]`.
    #[inline(always)]
    fn row(&self, i: usize, width: usize) -> &[f32] {
        match i.checked_sub(self.inside) {
            None => &self.inputs[i * width..][..self.across],
            Some(i) => &self.end[i * self.across..][..self.across],
        }
    }
}

impl WithSimd for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rows, width, lanes) = (self.targets.len() / 2, self.width, S::F32_LANES);
        let particles = self.theta.len() / width;
        let (across, down) = padded(rows, width, lanes);
        let inside = rows_inside(rows, width, across);
        let room = std::mem::take(&mut self.room);
        room.fill(0.0);
        let [end, positive, weight, theta, residuals] = cut(room, room_sizes(rows, width, lanes));
        for (to, row) in end.chunks_exact_mut(across).zip(self.inputs[inside * width..].chunks_exact(width)) {
            to[..width].copy_from_slice(row);
        }
        for (i, (positive, weight)) in positive.iter_mut().zip(&mut *weight).enumerate().take(rows) {
            *positive = self.targets[2 * i + 1] * self.scale;
            *weight = self.weights.map_or(1.0, |weights| weights[i]) * self.scale;
        }
        let columns = (WORTH_SUMS * particles > width).then(|| {
            let mut columns = vec![0.0; width * down];
            for (i, row) in self.inputs.chunks_exact(width).enumerate() {
                columns[i..].iter_mut().step_by(down).zip(row).for_each(|(to, value)| *to = *value);
            }
            columns
        });
        let batch = Prepared { inputs: self.inputs, inside, end, columns, positive, weight, across, down };
        let mut start = 0;
        while start < particles {
            let (theta, residuals) = (&mut *theta, &mut *residuals);
            start += match particles - start {
                8.. => self.particles::<S, 8>(simd, &batch, theta, residuals, start),
                7 => self.particles::<S, 7>(simd, &batch, theta, residuals, start),
                6 => self.particles::<S, 6>(simd, &batch, theta, residuals, start),
                5 => self.particles::<S, 5>(simd, &batch, theta, residuals, start),
                4 => self.particles::<S, 4>(simd, &batch, theta, residuals, start),
                3 => self.particles::<S, 3>(simd, &batch, theta, residuals, start),
                2 => self.particles::<S, 2>(simd, &batch, theta, residuals, start),
                _ => self.particles::<S, 1>(simd, &batch, theta, residuals, start),
            };
        }
    }
}

/// Consecutive pieces of these sizes.
fn cut<const M: usize>(mut room: &mut [f32], sizes: [usize; M]) -> [&mut [f32]; M] {
    sizes.map(|size| {
        let (piece, rest) = std::mem::take(&mut room).split_at_mut(size);
        room = rest;
        piece
    })
}

impl Score<'_> {
    /// The scores of R particles from particle n on; returns R. `theta` and `residuals` are buffers, `[R, across]`, zeros
    /// beyond the last feature, and `[R, down]`.
    #[inline(always)]
    fn particles<S: Simd, const R: usize>(
        &mut self,
        simd: S,
        batch: &Prepared<'_>,
        theta: &mut [f32],
        residuals: &mut [f32],
        n: usize,
    ) -> usize {
        let (width, lanes, down) = (self.width, S::F32_LANES, batch.down);
        let own = &self.theta[n * width..][..R * width];
        if batch.columns.is_none() {
            for (to, own) in theta.chunks_exact_mut(batch.across).zip(own.chunks_exact(width)) {
                to[..width].copy_from_slice(own);
            }
            logits_by_rows::<S, R>(simd, theta, width, batch, residuals);
        }
        for at in (0..down).step_by(2 * lanes) {
            let logits = match &batch.columns {
                Some(columns) => combine::<S, R>(simd, own, width, width, |i| pair::<S>(columns, i * down + at)),
                None => std::array::from_fn(|r| pair::<S>(&residuals[r * down..], at)),
            };
            let (positive, weight) = (pair::<S>(batch.positive, at), pair::<S>(batch.weight, at));
            for r in 0..R {
                let to = &mut S::as_mut_simd_f32s(&mut residuals[r * down + at..]).0[..2];
                for v in 0..2 {
                    // y − w·σ(z).
                    let mean = one_over_one_plus_exp(simd, logits[r][v]);
                    to[v] = simd.sub_f32s(positive[v], simd.mul_f32s(weight[v], mean));
                }
            }
        }
        let rows = self.inputs.len() / width;
        for at in (0..width).step_by(2 * lanes) {
            let sums = combine::<S, R>(simd, residuals, down, rows, |i| pair::<S>(batch.row(i, width), at));
            for (r, sums) in sums.into_iter().enumerate() {
                let mut values = [0.0; 2 * MOST_LANES];
                S::as_mut_simd_f32s(&mut values).0[..2].copy_from_slice(&sums);
                let to = &mut self.score[(n + r) * width + at..][..(width - at).min(2 * lanes)];
                to.copy_from_slice(&values[..to.len()]);
            }
        }
        R
    }
}

/// θ_r·x_i of R particles `[R, across]` and every row, into `[R, down]`: a sum over lanes for each.
#[inline(always)]
fn logits_by_rows<S: Simd, const R: usize>(
    simd: S,
    theta: &[f32],
    width: usize,
    batch: &Prepared<'_>,
    logits: &mut [f32],
) {
    let theta: [&[S::f32s]; R] = std::array::from_fn(|r| S::as_simd_f32s(&theta[r * batch.across..][..batch.across]).0);
    for i in 0..batch.inputs.len() / width {
        // θ is 0 where the row has ended.
        let row = S::as_simd_f32s(batch.row(i, width)).0;
        let mut sums = [simd.splat_f32s(0.0); R];
        for (v, x) in row.iter().enumerate() {
            for r in 0..R {
                sums[r] = simd.mul_add_f32s(theta[r][v], *x, sums[r]);
            }
        }
        for (r, sum) in sums.into_iter().enumerate() {
            logits[r * batch.down + i] = simd.reduce_sum_f32s(sum);
        }
    }
}

/// Two vectors.
#[inline(always)]
fn pair<S: Simd>(values: &[f32], at: usize) -> [S::f32s; 2] {
    let vectors = &S::as_simd_f32s(&values[at..]).0[..2];
    [vectors[0], vectors[1]]
}

/// Σ_i c_ri x_i of R rows of coefficients, one every `step` values, and `depth` pairs of vectors x_i.
#[inline(always)]
fn combine<S: Simd, const R: usize>(
    simd: S,
    c: &[f32],
    step: usize,
    depth: usize,
    x: impl Fn(usize) -> [S::f32s; 2],
) -> [[S::f32s; 2]; R] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; R];
    let c: [&[f32]; R] = std::array::from_fn(|r| &c[r * step..][..depth]);
    for i in 0..depth {
        let [left, right] = x(i);
        for r in 0..R {
            let c = simd.splat_f32s(c[r][i]);
            sums[r] = [simd.mul_add_f32s(c, left, sums[r][0]), simd.mul_add_f32s(c, right, sums[r][1])];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};

    fn tensor(rows: usize, columns: usize, dtype: DType, value: impl Fn(usize) -> f64) -> Tensor<2> {
        let data = TensorData::new((0..rows * columns).map(value).collect::<Vec<_>>(), [rows, columns]);
        Tensor::from_data(data, (&Device::flex(), dtype))
    }

    #[test]
    fn scores_agree_with_sums_in_f64_for_every_number_of_particles_rows_and_features() {
        for (particles, rows, width) in [(1, 1, 1), (2, 3, 5), (6, 100, 54), (9, 33, 31), (20, 16, 32), (100, 7, 3)] {
            let theta = |i: usize| f64::from(((i * 7) as f32 * 0.31).sin());
            let x = |i: usize| f64::from(((i * 5) as f32 * 0.17).cos());
            let class = |row: usize| row.is_multiple_of(3);
            let weight = |row: usize| [1.0, 0.25, 3.0, 0.0][row % 4];
            for weighted in [false, true] {
                let of = |row: usize| if weighted { weight(row) } else { 1.0 };
                let f32 = DType::F32;
                let one_hot = |i: usize| f64::from(u8::from(class(i / 2) == (i % 2 == 1)));
                let batch = Batch::new(tensor(rows, width, f32, x), tensor(rows, 2, f32, one_hot));
                let batch = if weighted { batch.weighted(tensor(rows, 1, f32, weight)) } else { batch };
                let got = score(&tensor(particles, width, f32, theta), &batch.inputs, &batch, 2.5).unwrap();
                let got = got.into_data().convert::<f64>().try_into_vec::<f64>().unwrap();
                for n in 0..particles {
                    let mut want = vec![0.0; width];
                    for row in 0..rows {
                        let z: f64 = (0..width).map(|j| theta(n * width + j) * x(row * width + j)).sum();
                        let residual = of(row) * (f64::from(u8::from(class(row))) - 1.0 / (1.0 + (-z).exp()));
                        (0..width).for_each(|j| want[j] += 2.5 * residual * x(row * width + j));
                    }
                    for (got, want) in got[n * width..].iter().zip(&want) {
                        // Sums of at most 100 terms of order 1, in f32.
                        assert!((got - want).abs() < 1e-4, "{particles}, {rows}, {width}: {got}, not {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_large_or_in_f64_is_left_to_matrix_products() {
        let batch = |dtype| Batch::new(tensor(4, 3, dtype, |i| i as f64), tensor(4, 2, dtype, |i| (i % 2) as f64));
        let batch64 = batch(DType::F64);
        assert!(score(&tensor(2, 3, DType::F64, |_| 0.1), &batch64.inputs, &batch64, 1.0).is_none());
        let batch32 = batch(DType::F32);
        let wide = tensor(1, 1025, DType::F32, |_| 0.1);
        assert!(score(&wide, &tensor(4, 1025, DType::F32, |_| 0.1), &batch32, 1.0).is_none());
    }
}
