//! e^x of many f64 at once with SIMD vectors, for kernels of particles and probabilities of predictions.
//!
//! e^x = 2^n·e^r with n = round(x/ln 2) and |r| ≤ ln 2/2 by fourteen terms of e^r's series. The relative error is at
//! most 4e-16, except for subnormal results. There are only additions and products, so that every processor computes
//! the same bits; the compiler vectorises them.

use pulp::{Simd, WithSimd};

/// Replaces each value x ≤ 700 by e^x.
pub fn exponentials(values: &mut [f64]) {
    dispatch(Exponentials { values });
}

struct Exponentials<'a> {
    values: &'a mut [f64],
}

impl WithSimd for Exponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for value in self.values {
            *value = exp(*value);
        }
    }
}

/// Adds e^x of each x ≤ 700 in `of` to the element of `sums` with the same index.
pub fn add_exponentials(of: &[f64], sums: &mut [f64]) {
    dispatch(AddExponentials { of, sums });
}

struct AddExponentials<'a> {
    of: &'a [f64],
    sums: &'a mut [f64],
}

impl WithSimd for AddExponentials<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (sum, x) in self.sums.iter_mut().zip(self.of) {
            *sum += exp(*x);
        }
    }
}

/// Runs an operation with the widest vectors that this processor has: `fedstein_models::simd::dispatch`, which this
/// crate cannot use because that crate needs Burn.
fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(simd) = pulp::x86::V4::try_new() {
            return Simd::vectorize(simd, op);
        }
        if let Some(simd) = pulp::x86::V3::try_new() {
            return Simd::vectorize(simd, op);
        }
    }
    pulp::Arch::new().dispatch(op)
}

/// e^x of x ≤ 700; 0 for −∞, and NaN for NaN. It has the bits of [`exponentials`].
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    // Adding 1.5·2⁵² leaves the nearest whole number in the last bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two parts, the first with 21 zeros at its end: its products with n are exact.
    const LN_2: [f64; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const SERIES: [f64; 14] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // e^−746 rounds to 0. `max` is not used because it would lose a NaN.
    let bounded = if x < -746.0 { -746.0 } else { x };
    let n = (bounded * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = (bounded - n * LN_2[0]) - n * LN_2[1];
    let mut value = SERIES[0];
    for coefficient in &SERIES[1..] {
        value = value * r + coefficient;
    }
    // 2^n as two powers of 2; only the second one can be subnormal.
    let most = if n < -1000.0 { -1000.0 } else { n };
    let power = |n: f64| f64::from_bits(((n + ROUND).to_bits() << 52).wrapping_add(1.0f64.to_bits()));
    value * power(most) * power(n - most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exp_of(x: f64) -> f64 {
        let mut sum = [0.0];
        add_exponentials(&[x], &mut sum);
        sum[0]
    }

    #[test]
    fn the_exponential_agrees_with_the_standard_library() {
        for i in 0..=200_000 {
            let x = -745.5 + f64::from(i) * (1445.0 / 200_000.0);
            let (got, want) = (exp_of(x), x.exp());
            // 5e-324 is the distance of numbers below 2^−1022.
            assert!((got - want).abs() <= 5e-16 * want + 5e-324, "e^{x} is {want}, not {got}");
        }
    }

    #[test]
    fn exponentials_in_place_are_those_that_are_added_and_those_of_single_numbers() {
        let x: Vec<f64> = (0..37).map(|i| 3.0 - f64::from(i) * 21.7).collect();
        let mut values = x.clone();
        exponentials(&mut values);
        assert_eq!(values, x.iter().map(|x| exp_of(*x)).collect::<Vec<_>>());
        assert_eq!(values, x.into_iter().map(exp).collect::<Vec<_>>());
    }

    #[test]
    fn certainty_impossibility_and_nan_keep_their_values() {
        assert_eq!([0.0, -0.0, f64::NEG_INFINITY, -1e300].map(exp_of), [1.0, 1.0, 0.0, 0.0]);
        assert!(exp_of(f64::NAN).is_nan());
    }

    #[test]
    fn every_place_of_a_slice_of_any_length_has_its_own_sum() {
        for len in 0..40 {
            let of: Vec<f64> = (0..len).map(|i| -f64::from(i) * 0.7).collect();
            let mut sums = vec![1.0; of.len()];
            add_exponentials(&of, &mut sums);
            for (sum, x) in sums.iter().zip(&of) {
                assert!((sum - 1.0 - x.exp()).abs() < 1e-15, "e^{x} in {len} numbers");
            }
        }
    }
}
