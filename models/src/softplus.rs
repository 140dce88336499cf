//! The softplus function, by which a positive number such as a standard deviation is kept as an unbounded one, in SIMD
//! vectors on the CPU.
//!
//! Burn's own operations call the C library's exponential and logarithm for each number, which took half of the time of a
//! method that keeps a deviation for each parameter. This is for `f32` on flex; elsewhere Burn's operations are used.

use burn::tensor::Tensor;
use pulp::Simd;

use crate::elementwise::{VectorFunction, apply};
use crate::mean::exp;
use crate::simd::{matrix, on_flex};

/// log(1 + e^x) of every element, off the tape, without overflow. Its relative error in `f32` on flex is at most 1e-6; there
/// e^x is at least e^−80.
///
/// # Shapes
/// - `x` and the result: any `[a, b]`
pub fn softplus(x: Tensor<2>) -> Tensor<2> {
    let shape = x.dims();
    let on_flex = on_flex(x.clone());
    match on_flex.as_ref().and_then(|x| x.as_slice::<f32>()) {
        Some(values) => {
            let mut values = values.to_vec();
            apply(Softplus, &mut values);
            matrix(values, shape)
        }
        None => x.clone().clamp_min(0.0) + x.abs().neg().exp().log1p(),
    }
}

/// max(x, 0) + log(1 + u) with u = e^−|x|. With s = u/(2 + u), at most 1/3, log(1 + u) = 2·artanh(s) = 2s·Σ s^2k/(2k + 1);
/// eight terms leave out 1.4e-9 of it.
#[derive(Clone, Copy)]
struct Softplus;

impl VectorFunction for Softplus {
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        const SERIES: [f32; 8] = [1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
        let positive = simd.max_f32s(x, simd.splat_f32s(0.0));
        let u = exp(simd, simd.neg_f32s(simd.abs_f32s(x)));
        let s = simd.div_f32s(u, simd.add_f32s(u, simd.splat_f32s(2.0)));
        let square = simd.mul_f32s(s, s);
        let mut sum = simd.splat_f32s(SERIES[0]);
        for coefficient in &SERIES[1..] {
            sum = simd.mul_add_f32s(sum, square, simd.splat_f32s(*coefficient));
        }
        simd.mul_add_f32s(simd.add_f32s(s, s), sum, positive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{DType, Device, TensorData};

    fn of(x: &[f64], dtype: DType) -> Vec<f64> {
        let x = Tensor::from_data(TensorData::new(x.to_vec(), [1, x.len()]), (&Device::flex(), dtype));
        softplus(x).into_data().convert::<f64>().try_into_vec().unwrap()
    }

    #[test]
    fn softplus_has_the_digits_of_its_format_over_its_range() {
        // -80 to 120, in steps that f32 has exactly; 25,601 numbers are no whole number of vectors.
        let x: Vec<f64> = (0..25_601).map(|i| -80.0 + f64::from(i) / 128.0).collect();
        for (dtype, error) in [(DType::F32, 1e-6), (DType::F64, 1e-15)] {
            for (x, got) in x.iter().zip(of(&x, dtype)) {
                let want = x.max(0.0) + (-x.abs()).exp().ln_1p();
                assert!((got - want).abs() <= error * want, "{dtype:?}: softplus({x}) is {want}, not {got}");
            }
        }
    }

    #[test]
    fn softplus_keeps_nan_and_is_small_far_below_zero() {
        let got = of(&[f64::NAN, -500.0, 3e38], DType::F32);
        assert!(got[0].is_nan() && got[1] > 0.0 && got[1] < 2e-35 && got[2] == f64::from(3e38f32), "{got:?}");
    }
}
