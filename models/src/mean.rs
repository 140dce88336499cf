//! Mean functions E[y | z] of the outputs z: softmax over classes, its logarithm and the logistic function, in SIMD
//! vectors on the CPU.
//!
//! Burn's own functions call the C library's exponential for each number; a network as small as 784-100-10 spends a tenth
//! of its score there. Here e^x = 2^n·e^r with n = round(x/ln 2) and |r| ≤ ln 2/2 by eight terms of e^r's series, with a
//! relative error of at most 3e-7. This is for `f32` on flex; elsewhere Burn's functions are used.

use std::ops::Range;

use burn::tensor::{Tensor, TensorData, activation};
use pulp::{Simd, WithSimd};

use crate::elementwise::{VectorFunction, apply};
use crate::simd::{MOST_LANES, dispatch, on_flex};

/// Softmax over the classes, off the tape.
///
/// # Shapes
/// - `outputs` and the result: `[N, C, B]`
pub(crate) fn softmax(outputs: Tensor<3>) -> Tensor<3> {
    let (shape, device) = (outputs.dims(), outputs.device());
    match numbers(outputs.clone()) {
        Some(mut values) => {
            let [_, classes, rows] = shape;
            if rows * classes > 0 {
                dispatch(Softmax { values: &mut values, classes, rows });
            }
            Tensor::from_data(TensorData::new(values, shape), &device)
        }
        None => activation::softmax(outputs, 1),
    }
}

/// Log-probabilities of the classes, with the classes in the last axis. They are on the tape only where Burn's function is
/// used.
///
/// # Shapes
/// - `outputs`: `[N, C, B]`
/// - returns `[N, B, C]`
pub(crate) fn log_softmax(outputs: Tensor<3>) -> Tensor<3> {
    let ([particles, classes, rows], device) = (outputs.dims(), outputs.device());
    let on_flex = on_flex(outputs.clone());
    match on_flex.as_ref().and_then(|outputs| outputs.as_slice::<f32>()) {
        Some(outputs) if rows * classes > 0 => {
            let mut log_probs = vec![0.0; outputs.len()];
            dispatch(LogSoftmax { outputs, log_probs: &mut log_probs, classes, rows });
            Tensor::from_data(TensorData::new(log_probs, [particles, rows, classes]), &device)
        }
        _ => activation::log_softmax(outputs, 1).swap_dims(1, 2),
    }
}

/// 1/(1 + e^−z) of every element, off the tape.
///
/// # Shapes
/// - `outputs` and the result: any `[a, b]`
pub fn logistic(outputs: Tensor<2>) -> Tensor<2> {
    let (shape, device) = (outputs.dims(), outputs.device());
    match numbers(outputs.clone()) {
        Some(mut values) => {
            apply(Logistic, &mut values);
            Tensor::from_data(TensorData::new(values, shape), &device)
        }
        // Not Burn's sigmoid, which ndarray computes in f32 whatever the format.
        None => outputs.neg().exp().add_scalar(1.0).recip(),
    }
}

/// A copy of a tensor's values, where they are f32 on flex.
fn numbers<const D: usize>(tensor: Tensor<D>) -> Option<Vec<f32>> {
    on_flex(tensor)?.as_slice::<f32>().map(<[f32]>::to_vec)
}

struct Softmax<'a> {
    /// `[N, classes, rows]`.
    values: &'a mut [f32],
    classes: usize,
    rows: usize,
}

impl WithSimd for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { values, classes, rows } = self;
        for particle in values.chunks_exact_mut(classes * rows) {
            for start in (0..rows).step_by(S::F32_LANES) {
                let end = (start + S::F32_LANES).min(rows);
                let class = |c: usize| c * rows + start..c * rows + end;
                let largest = largest(simd, particle, rows, start..end);
                let mut sum = simd.splat_f32s(0.0);
                for c in 0..classes {
                    let value = exp(simd, simd.sub_f32s(simd.partial_load_f32s(&particle[class(c)]), largest));
                    simd.partial_store_f32s(&mut particle[class(c)], value);
                    sum = simd.add_f32s(sum, value);
                }
                for c in 0..classes {
                    let share = simd.div_f32s(simd.partial_load_f32s(&particle[class(c)]), sum);
                    simd.partial_store_f32s(&mut particle[class(c)], share);
                }
            }
        }
    }
}

struct LogSoftmax<'a> {
    /// `[N, classes, rows]`
    outputs: &'a [f32],
    /// `[N, rows, classes]`
    log_probs: &'a mut [f32],
    classes: usize,
    rows: usize,
}

impl WithSimd for LogSoftmax<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { outputs, log_probs, classes, rows } = self;
        let mut lanes = [0.0f32; MOST_LANES];
        let particles = outputs.chunks_exact(classes * rows).zip(log_probs.chunks_exact_mut(classes * rows));
        for (outputs, log_probs) in particles {
            for (start, log_probs) in log_probs.chunks_mut(S::F32_LANES * classes).enumerate() {
                let (start, count) = (start * S::F32_LANES, log_probs.len() / classes);
                let class = |c: usize| c * rows + start..c * rows + start + count;
                let largest = largest(simd, outputs, rows, start..start + count);
                let mut sum = simd.splat_f32s(0.0);
                for c in 0..classes {
                    let below = simd.sub_f32s(simd.partial_load_f32s(&outputs[class(c)]), largest);
                    // An output of −∞ has probability 0; a NaN that this bound hides is in its own class below.
                    sum = simd.add_f32s(sum, exp(simd, simd.max_f32s(below, simd.splat_f32s(f32::MIN))));
                }
                let lanes = &mut lanes[..count];
                simd.partial_store_f32s(lanes, sum);
                for sum in lanes.iter_mut() {
                    *sum = sum.ln();
                }
                let log_sum = simd.partial_load_f32s(lanes);
                for c in 0..classes {
                    let below = simd.sub_f32s(simd.partial_load_f32s(&outputs[class(c)]), largest);
                    simd.partial_store_f32s(lanes, simd.sub_f32s(below, log_sum));
                    for (row, value) in lanes.iter().enumerate() {
                        log_probs[row * classes + c] = *value;
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Logistic;

impl VectorFunction for Logistic {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, z: S::f32s) -> S::f32s {
        one_over_one_plus_exp(simd, z)
    }
}

// These are `inline(always)` functions and not closures: a vector operation that is not inlined into a function with the
// target feature becomes a call.

/// The largest class of some rows, at most a vector of them; `outputs`: `[classes, rows]`.
#[inline(always)]
fn largest<S: Simd>(simd: S, outputs: &[f32], rows: usize, these: Range<usize>) -> S::f32s {
    let mut largest = simd.splat_f32s(f32::NEG_INFINITY);
    for class in outputs.chunks_exact(rows) {
        largest = simd.max_f32s(largest, simd.partial_load_f32s(&class[these.clone()]));
    }
    largest
}

#[inline(always)]
pub(crate) fn one_over_one_plus_exp<S: Simd>(simd: S, z: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    simd.div_f32s(one, simd.add_f32s(one, exp(simd, simd.neg_f32s(z))))
}

/// e^x with x clamped to [−80, 87]; NaN stays NaN. Then 1/(1 + e^87) is a normal number, and so is e^−80 over a sum of 1,000:
/// an operation with one that is not takes a hundred cycles on many processors.
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Adding 1.5·2²³ leaves the nearest whole number in the last bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts, the first of few digits: products with n are exact.
    const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    const SERIES: [f32; 8] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let bounded = simd.min_f32s(simd.max_f32s(x, simd.splat_f32s(-80.0)), simd.splat_f32s(87.0));
    let rounded = simd.mul_add_f32s(bounded, simd.splat_f32s(std::f32::consts::LOG2_E), simd.splat_f32s(ROUND));
    let n = simd.sub_f32s(rounded, simd.splat_f32s(ROUND));
    let r = simd.mul_add_f32s(n, simd.splat_f32s(-LN_2[0]), bounded);
    let r = simd.mul_add_f32s(n, simd.splat_f32s(-LN_2[1]), r);
    let mut value = simd.splat_f32s(SERIES[0]);
    for coefficient in &SERIES[1..] {
        value = simd.mul_add_f32s(value, r, simd.splat_f32s(*coefficient));
    }
    // Times 2^n: n goes to the exponent's bits.
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(rounded), simd.splat_u32s(23));
    let scaled = simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(value), exponent));
    // Bounds on x hide a NaN: 0·x brings it back (and makes one of an infinity, as ∞ − ∞ would).
    simd.mul_add_f32s(x, simd.splat_f32s(0.0), scaled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device};

    #[derive(Clone, Copy)]
    struct Exp;

    impl VectorFunction for Exp {
        #[inline(always)]
        fn of<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
            exp(simd, x)
        }
    }

    #[test]
    fn the_exponential_agrees_with_f64_over_its_range_and_keeps_nan() {
        let x: Vec<f32> = (0..200_001).map(|i| -80.0 + i as f32 * (167.0 / 200_000.0)).collect();
        let mut y = x.clone();
        apply(Exp, &mut y);
        for (x, y) in x.iter().zip(&y) {
            let want = f64::from(*x).exp();
            assert!((f64::from(*y) - want).abs() <= 3e-7 * want, "e^{x} is {want}, not {y}");
        }
        let mut odd = [f32::NAN, 0.0, -500.0, f32::INFINITY, f32::NEG_INFINITY];
        apply(Exp, &mut odd);
        assert!(odd[0].is_nan() && odd[1] == 1.0 && odd[2] < 2e-35 && odd[3].is_nan() && odd[4].is_nan(), "{odd:?}");
    }

    #[test]
    fn means_agree_with_f64_for_every_number_of_rows() {
        for rows in [1, 7, 16, 17, 40] {
            for classes in [2, 3, 10] {
                let numbers: Vec<f64> =
                    (0..3 * classes * rows).map(|i| f64::from((i as f32 * 0.37).sin() * 30.0)).collect();
                let of = |dtype| {
                    let data = TensorData::new(numbers.clone(), [3, classes, rows]);
                    let outputs = Tensor::<3>::from_data(data, (&Device::flex(), dtype));
                    let flat = outputs.clone().reshape([3 * classes, rows]);
                    let log_probs = log_softmax(outputs.clone()).exp();
                    let [a, b, c] = [softmax(outputs).into_data(), logistic(flat).into_data(), log_probs.into_data()];
                    [a, b, c].map(|data| data.convert::<f64>().try_into_vec::<f64>().unwrap())
                };
                let [exact, fast] = [DType::F64, DType::F32].map(of);
                for (exact, fast) in exact.iter().flatten().zip(fast.iter().flatten()) {
                    assert!((exact - fast).abs() < 4e-7, "{rows} rows of {classes} classes: {fast}, not {exact}");
                }
            }
        }
    }

    #[test]
    fn log_probabilities_agree_with_f64_and_keep_nan_and_infinity() {
        let rows = [[1.5, -40.0, f64::NEG_INFINITY], [2.5, 60.0, 0.0], [f64::NAN, 0.0, 1.0]];
        let numbers: Vec<f64> = (0..9).map(|i| rows[i % 3][i / 3]).collect(); // [1, C, B]
        let of = |dtype| {
            let outputs = Tensor::<3>::from_data(TensorData::new(numbers.clone(), [1, 3, 3]), (&Device::flex(), dtype));
            log_softmax(outputs).into_data().convert::<f64>().try_into_vec::<f64>().unwrap()
        };
        let [exact, fast] = [DType::F64, DType::F32].map(of);
        for (exact, fast) in exact[..6].iter().zip(&fast) {
            assert!(exact == fast || (exact - fast).abs() < 4e-6, "{fast}, not {exact}");
        }
        assert_eq!(fast[2], f64::NEG_INFINITY);
        assert!(fast[6..].iter().any(|value| value.is_nan()), "{fast:?}");
    }
}
