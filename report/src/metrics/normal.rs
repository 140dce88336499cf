//! The error function and the standard normal distribution in `f64`.
//!
//! Source: W. J. Cody, "Rational Chebyshev approximations for the error function", Math. Comp. 23
//! (1969): relative error below 1e-15 on the whole line, tails included, so that the CRPS of an
//! observation forty standard deviations away stays exact.

use std::f64::consts::{PI, SQRT_2};

const SMALL_NUMERATOR: [f64; 5] = [
    3.161_123_743_870_565_6,
    1.138_641_541_510_501_6e2,
    3.774_852_376_853_02e2,
    3.209_377_589_138_469_5e3,
    1.857_777_061_846_031_5e-1,
];
const SMALL_DENOMINATOR: [f64; 4] =
    [2.360_129_095_234_412e1, 2.440_246_379_344_441_7e2, 1.282_616_526_077_372_3e3, 2.844_236_833_439_171e3];
const MIDDLE_NUMERATOR: [f64; 9] = [
    5.641_884_969_886_701e-1,
    8.883_149_794_388_377,
    6.611_919_063_714_163e1,
    2.986_351_381_974_001e2,
    8.819_522_212_417_69e2,
    1.712_047_612_634_070_7e3,
    2.051_078_377_826_071_6e3,
    1.230_339_354_797_997_2e3,
    2.153_115_354_744_038_3e-8,
];
const MIDDLE_DENOMINATOR: [f64; 8] = [
    1.574_492_611_070_983_5e1,
    1.176_939_508_913_125e2,
    5.371_811_018_620_099e2,
    1.621_389_574_566_690_3e3,
    3.290_799_235_733_459_7e3,
    4.362_619_090_143_247e3,
    3.439_367_674_143_721_6e3,
    1.230_339_354_803_749_5e3,
];
const LARGE_NUMERATOR: [f64; 6] = [
    3.053_266_349_612_323_6e-1,
    3.603_448_999_498_044_5e-1,
    1.257_817_261_112_292_6e-1,
    1.608_378_514_874_227_5e-2,
    6.587_491_615_298_378e-4,
    1.631_538_713_730_209_7e-2,
];
const LARGE_DENOMINATOR: [f64; 5] = [
    2.568_520_192_289_822,
    1.872_952_849_923_460_4,
    5.279_051_029_514_284e-1,
    6.051_834_131_244_132e-2,
    2.335_204_976_268_691_8e-3,
];
/// Up to this argument the odd series of erf is used, beyond it erfc.
const SMALL: f64 = 0.46875;
/// Beyond this argument erfc underflows to 0.
const UNDERFLOW: f64 = 26.543;

/// Error function `2/sqrt(pi) * integral_0^x exp(-t^2) dt`.
pub fn erf(x: f64) -> f64 {
    if x.abs() <= SMALL { erf_small(x) } else { (1.0 - erfc_tail(x.abs())).copysign(x) }
}

/// Complementary error function `1 - erf(x)`, exact in the upper tail too.
pub fn erfc(x: f64) -> f64 {
    match x {
        _ if x.abs() <= SMALL => 1.0 - erf_small(x),
        _ if x < 0.0 => 2.0 - erfc_tail(-x),
        _ => erfc_tail(x),
    }
}

/// Density of the standard normal distribution.
pub fn normal_pdf(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * PI).sqrt()
}

/// Distribution function of the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// The z for which a standard normal number lies between −z and z with this probability: 1.96 for 0.95.
///
/// `level` is between 0 and 1; the result has 40 correct bits at least.
pub(super) fn two_sided_quantile(level: f64) -> f64 {
    let (mut lo, mut hi) = (0.0, UNDERFLOW * SQRT_2);
    for _ in 0..80 {
        let middle = 0.5 * (lo + hi);
        if erf(middle / SQRT_2) < level { lo = middle } else { hi = middle }
    }
    0.5 * (lo + hi)
}

fn erf_small(x: f64) -> f64 {
    let square = x * x;
    let mut numerator = SMALL_NUMERATOR[4] * square;
    let mut denominator = square;
    for (a, b) in SMALL_NUMERATOR[..3].iter().zip(&SMALL_DENOMINATOR[..3]) {
        numerator = (numerator + a) * square;
        denominator = (denominator + b) * square;
    }
    x * (numerator + SMALL_NUMERATOR[3]) / (denominator + SMALL_DENOMINATOR[3])
}

/// erfc for `y > SMALL`.
fn erfc_tail(y: f64) -> f64 {
    if y >= UNDERFLOW {
        return 0.0;
    }
    let ratio = if y <= 4.0 {
        let mut numerator = MIDDLE_NUMERATOR[8] * y;
        let mut denominator = y;
        for (a, b) in MIDDLE_NUMERATOR[..7].iter().zip(&MIDDLE_DENOMINATOR[..7]) {
            numerator = (numerator + a) * y;
            denominator = (denominator + b) * y;
        }
        (numerator + MIDDLE_NUMERATOR[7]) / (denominator + MIDDLE_DENOMINATOR[7])
    } else {
        let z = 1.0 / (y * y);
        let mut numerator = LARGE_NUMERATOR[5] * z;
        let mut denominator = z;
        for (a, b) in LARGE_NUMERATOR[..4].iter().zip(&LARGE_DENOMINATOR[..4]) {
            numerator = (numerator + a) * z;
            denominator = (denominator + b) * z;
        }
        let tail = z * (numerator + LARGE_NUMERATOR[4]) / (denominator + LARGE_DENOMINATOR[4]);
        (1.0 / PI.sqrt() - tail) / y
    };
    // exp(-y^2) in two factors: the square of the truncated y is exact, so no relative error is
    // amplified.
    let truncated = (y * 16.0).trunc() / 16.0;
    (-truncated * truncated).exp() * (-(y - truncated) * (y + truncated)).exp() * ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the C library, through Python's `math.erfc`.
    #[test]
    fn erfc_is_exact_to_1e_14_in_every_branch() {
        let cases = [
            (-2.0, 1.995_322_265_018_952_7),
            (0.0, 1.0),
            (0.25, 0.723_673_609_831_763_1),
            (0.46875, 0.507_386_526_782_062),
            (1.0, 0.157_299_207_050_285_13),
            (3.5, 7.430_983_723_414_128e-7),
            (5.0, 1.537_459_794_428_035_1e-12),
            (20.0, 5.395_865_611_607_900_5e-176),
            (40.0, 0.0),
        ];
        for (x, want) in cases {
            assert!((erfc(x) - want).abs() <= 1e-14 * want.abs(), "erfc({x}) = {:e}, want {want:e}", erfc(x));
            assert!((erf(x) + erfc(x) - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn erf_is_odd_and_the_normal_cdf_of_zero_is_one_half() {
        for x in [1e-300, 0.1, 0.7, 3.0, 9.0] {
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!(normal_cdf(0.0), 0.5);
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.norm.ppf((1 + level) / 2)
        for (level, want) in
            [(0.5, 0.674_489_750_196_081_7), (0.95, 1.959_963_984_540_054), (0.999, 3.290_526_731_491_693_6)]
        {
            assert!((two_sided_quantile(level) - want).abs() < 1e-12, "{level}");
        }
    }
}
