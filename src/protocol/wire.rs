//! The precision in which arrays are sent between server and clients.
//!
//! The sender rounds every array of a message once ([`Message::rounded`](super::Message::rounded)), and both sides compute with the rounded values in
//! the run's own precision. So a run in one process has the numbers of a run whose transport sends this precision. What
//! was rounded and arrives can be sent again without a further change: a server that hands on what it was sent adds no
//! error.
//!
//! | wire | bytes | largest error of an element x |
//! |---|---|---|
//! | `f32` | 4 | 2⁻²⁴·\|x\| |
//! | `f16` | 2 | 2⁻¹¹·\|x\|, or 2⁻³⁹ of the array's largest element where that is more |
//! | `bf16` | 2 | 2⁻⁸·\|x\| |
//!
//! f16 ends at 65,504, which gradient sums and curvatures exceed. So an array in f16 has a scale of its own, a power of
//! two 2^(e − 14), e the exponent of its largest element: nothing overflows, and elements down to 2⁻²⁸ of the largest keep
//! all 11 bits. Smaller ones lose bits one by one, and below 2⁻³⁹ they become 0. `f32` and `bf16` end at 3.4·10³⁸; what is
//! larger becomes infinite, and a reply with it is refused.
//!
//! Numbers of a message are not rounded, nor are sums of scores ([`Ask::Score`](super::Ask)), which are counts. The scale
//! travels in the array's header, whose bytes are not counted, as those of its shape are not.

use std::ops::RangeInclusive;

use half::{bf16, f16};

use crate::array::{Array, Values};

fedstein_schema::words! {
    /// `federation.wire`: the precision in which arrays are sent.
    #[derive(Default)]
    pub enum Wire {
        /// The precision in which an array was computed.
        #[default]
        Full = "full",
        /// 32-bit floats.
        F32 = "f32",
        /// 16-bit floats with 11 significant bits, and a power of two for each array.
        F16 = "f16",
        /// 16-bit floats with 8 significant bits and the range of 32-bit floats.
        Bf16 = "bf16",
    }
}

impl Wire {
    /// Whether elements have 16 bits.
    pub fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    /// Replaces the elements of an array by those that arrive.
    pub fn round(self, array: &mut Array) {
        let values = &mut array.values;
        match self {
            Self::Full => {}
            Self::F32 => replace(values, |value| f64::from(value as f32)),
            Self::F16 => {
                let scale = Scale::of(values);
                replace(values, |value| scale.up * f64::from(f16::from_f32((scale.down * value) as f32)));
            }
            Self::Bf16 => replace(values, |value| f64::from(bf16::from_f32(value as f32))),
        }
    }
}

/// The exponent k of the power of two by which the elements of an array are multiplied before they become f16.
pub(crate) fn half_exponent(values: &Values) -> i32 {
    Scale::exponent(values)
}

/// An element as it is sent in f16, multiplied by 2^k.
pub(crate) fn to_half(value: f64, k: i32) -> f16 {
    f16::from_f32((power_of_two(k) * value) as f32)
}

/// An element that arrived in f16, divided by 2^k; `None` for a k that no array has.
pub(crate) fn from_half(half: f16, k: i32) -> Option<f64> {
    EXPONENTS.contains(&k).then(|| power_of_two(-k) * f64::from(half))
}

/// Replaces every element. All arithmetic is in f64, in which a power of two times an f32 is exact.
fn replace(values: &mut Values, rounded: impl Fn(f64) -> f64) {
    match values {
        Values::F32(values) => values.iter_mut().for_each(|value| *value = rounded(f64::from(*value)) as f32),
        Values::F64(values) => values.iter_mut().for_each(|value| *value = rounded(*value)),
    }
}

/// The power of two of an array in f16, and its inverse.
#[derive(Clone, Copy, Debug)]
struct Scale {
    down: f64,
    up: f64,
}

/// The exponent of the largest element of a scaled array: below that of 65,504 by one, so that rounding up stays finite.
const TOP: i32 = 14;
/// The exponents k of scales: those of the elements' exponents from −1000 to 1023.
const EXPONENTS: RangeInclusive<i32> = TOP - 1023..=TOP + 1000;

impl Scale {
    /// The scale of an array with these elements.
    fn of(values: &Values) -> Self {
        let k = Self::exponent(values);
        Self { down: power_of_two(k), up: power_of_two(-k) }
    }

    /// The exponent of the scale. Elements that are not finite do not count; they stay as they are.
    fn exponent(values: &Values) -> i32 {
        let largest = |largest: f64, value: f64| if value.is_finite() { largest.max(value.abs()) } else { largest };
        let largest = match values {
            Values::F32(values) => values.iter().copied().map(f64::from).fold(0.0, largest),
            Values::F64(values) => values.iter().copied().fold(0.0, largest),
        };
        TOP - exponent(largest)
    }
}

/// The exponent that this element has after rounding to 11 bits; at least −1000, so that the scale is a normal number.
fn exponent(largest: f64) -> i32 {
    let biased = (largest.to_bits() >> 52) as i32;
    let floor = (biased - 1023).clamp(-1000, 1022);
    // A scaled element is rounded as f32 first, so this one is too.
    let mantissa = f16::from_f32((largest * power_of_two(-floor)) as f32);
    floor + i32::from(mantissa >= f16::from_f32(2.0))
}

/// 2^k for −1022 ≤ k ≤ 1023.
fn power_of_two(k: i32) -> f64 {
    f64::from_bits(((1023 + k) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use rand::rngs::ChaCha12Rng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    fn rounded(wire: Wire, values: Values) -> Values {
        let mut array = Array { shape: vec![values.len()], values };
        wire.round(&mut array);
        assert_eq!(array.shape, [array.values.len()]);
        array.values
    }

    fn of(wire: Wire, values: &[f64]) -> Vec<f64> {
        let Values::F64(values) = rounded(wire, Values::F64(values.to_vec())) else { panic!("another type") };
        values
    }

    /// Elements of both signs, of sizes from 2^from to 2^to.
    fn spread(seed: u64, from: f64, to: f64) -> Vec<f32> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let value = |_| {
            let (size, positive) = (rng.random_range(from..to).exp2(), rng.random::<bool>());
            (if positive { size } else { -size }) as f32
        };
        (0..2000).map(value).collect()
    }

    /// The nearest number with this many significant bits; of two, the one whose last bit is 0.
    fn nearest(value: f64, bits: i32) -> f64 {
        let exponent = value.abs().log2().floor() as i32;
        let spacing = 2f64.powi(exponent + 1 - bits);
        (value / spacing).round_ties_even() * spacing
    }

    #[test]
    fn halves_between_two_neighbours_go_to_the_even_one() {
        // Neighbours of 1 are 2⁻²³, 2⁻¹⁰ and 2⁻⁷ apart.
        for (wire, last) in [(Wire::F32, -23), (Wire::F16, -10), (Wire::Bf16, -7)] {
            let step = 2f64.powi(last);
            let got = of(wire, &[1.0, 1.0 + 0.5 * step, 1.0 + 0.51 * step, 1.0 + 1.5 * step, -1.0 - 0.5 * step, 0.0]);
            assert_eq!(got, [1.0, 1.0, 1.0 + step, 1.0 + 2.0 * step, -1.0, 0.0], "{wire:?}");
        }
    }

    #[test]
    fn elements_are_rounded_to_the_bits_of_the_format() {
        for (wire, bits) in [(Wire::F32, 24), (Wire::F16, 11), (Wire::Bf16, 8)] {
            // With 2⁻²⁶ of the largest element no bit is lost in f16; the exponents are those of gradient sums.
            let values = spread(1, -6.0, 20.0);
            let want: Vec<f64> = values.iter().map(|value| nearest(f64::from(*value), bits)).collect();
            let got = rounded(wire, Values::F32(values.clone())).to_f64();
            assert_eq!(got, want, "{wire:?}");
            let bound = 2f64.powi(-bits);
            let error = |(got, value): (&f64, &f32)| (got - f64::from(*value)).abs() / f64::from(value.abs());
            let worst = got.iter().zip(&values).map(error).fold(0.0, f64::max);
            assert!(worst <= bound && (wire == Wire::F32 || worst > 0.5 * bound), "{wire:?}: {worst}");
        }
    }

    #[test]
    fn numbers_in_f64_are_rounded_within_the_same_bounds() {
        let mut rng = ChaCha12Rng::seed_from_u64(2);
        let values: Vec<f64> = (0..2000).map(|_| rng.random_range(-3.0..3.0)).collect();
        for (wire, bits) in [(Wire::F32, 24), (Wire::F16, 11), (Wire::Bf16, 8)] {
            for (got, value) in of(wire, &values).iter().zip(&values) {
                // They are rounded to f32 first; an element near 0 has the error of the array's scale.
                let bound = 2f64.powi(-bits) * (1.0 + 2f64.powi(-10)) * value.abs() + 2f64.powi(-36);
                assert!((got - value).abs() <= bound, "{wire:?}: {value} became {got}");
            }
        }
        assert_eq!(of(Wire::Full, &values), values);
    }

    #[test]
    fn an_array_in_f16_has_a_scale_so_that_large_elements_stay_finite_and_small_arrays_keep_their_bits() {
        // f16 itself ends at 65,504 and has no element but 0 below 6·10⁻⁸.
        let large = of(Wire::F16, &[1e5, -3e6, 7.0, 65504.0, 65520.0, 1e30]);
        assert!(large.iter().all(|value| value.is_finite()));
        assert!((large[5] / 1e30 - 1.0).abs() <= 2f64.powi(-11));
        let sums = [1e5, -3e6, 7.0, 65504.0, 65520.0];
        assert!(of(Wire::F16, &sums).iter().zip(sums).all(|(got, value)| (got / value - 1.0).abs() <= 2f64.powi(-11)));
        let small = [1e-12, -3e-11, 2.5e-13];
        assert!(
            of(Wire::F16, &small).iter().zip(small).all(|(got, value)| (got / value - 1.0).abs() <= 2f64.powi(-11))
        );
    }

    #[test]
    fn elements_far_below_the_largest_lose_bits_and_then_vanish() {
        // The largest is 1: the smallest normal number is 2⁻²⁸, the spacing below it 2⁻³⁸.
        let (normal, spacing) = (2f64.powi(-28), 2f64.powi(-38));
        let got = of(Wire::F16, &[1.0, 1.001 * normal, 7.3 * spacing, 0.6 * spacing, -0.4 * spacing, 0.1 * spacing]);
        assert_eq!(got, [1.0, nearest(1.001 * normal, 11), 7.0 * spacing, spacing, 0.0, 0.0]);
        assert!(got[4].is_sign_negative());
        // bf16 has the exponents of f32.
        assert_eq!(of(Wire::Bf16, &[1.0, 2f64.powi(-100)]), [1.0, 2f64.powi(-100)]);
    }

    #[test]
    fn what_arrives_can_be_sent_again_without_a_change() {
        let extremes = [
            vec![0.0; 3],
            vec![],
            // The largest element is rounded up to a power of two, which has the next exponent; the smallest is odd in
            // the spacing of the one before.
            vec![2.0 - f32::EPSILON, 3.0 * 2f32.powi(-38)],
            vec![f32::MIN_POSITIVE / 8.0, f32::from_bits(1)],
            vec![1e38, 1e-38],
        ];
        for &wire in Wire::ALL {
            for values in extremes.iter().cloned().chain((0..20).map(|seed| spread(seed, -60.0, 20.0))) {
                let single = rounded(wire, Values::F32(values.clone()));
                assert_eq!(rounded(wire, single.clone()), single, "{wire:?}");
                let double = rounded(wire, Values::F64(values.iter().map(|value| f64::from(*value) / 3.0).collect()));
                assert_eq!(rounded(wire, double.clone()), double, "{wire:?}");
            }
            let tiny = of(wire, &[1e-310, 5e-324]);
            assert_eq!(of(wire, &tiny), tiny, "{wire:?}");
        }
    }

    #[test]
    fn elements_that_are_not_finite_stay_so_and_do_not_change_the_others() {
        for &wire in Wire::ALL {
            let got = of(wire, &[f64::NAN, 0.5, f64::INFINITY, -3.0, f64::NEG_INFINITY]);
            assert!(got[0].is_nan() && got[2] == f64::INFINITY && got[4] == f64::NEG_INFINITY, "{wire:?}: {got:?}");
            assert_eq!((got[1], got[3]), (0.5, -3.0), "{wire:?}");
        }
        // Beyond f32 there is no number in these formats.
        assert!(of(Wire::Bf16, &[1e39])[0].is_infinite() && of(Wire::F32, &[1e39])[0].is_infinite());
        for largest in [1e39, 0.999 * f64::MAX] {
            assert!((of(Wire::F16, &[largest])[0] / largest - 1.0).abs() <= 2f64.powi(-11));
        }
    }
}
