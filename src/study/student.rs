//! Student's t distribution with a whole number of degrees of freedom ν, by its finite sums (Abramowitz & Stegun 1964,
//! 26.7.3 and 26.7.4).

use std::f64::consts::FRAC_2_PI;

/// P(|T| ≤ t) for t ≥ 0 and ν ≥ 1; NaN for NaN.
///
/// With θ = atan(t/√ν): for odd ν, (2/π)(θ + sin θ (cos θ + ⅔ cos³ θ + … + 2·4⋯(ν−3)/(3·5⋯(ν−2)) cos^{ν−2} θ)); for even
/// ν, sin θ (1 + ½ cos² θ + … + 1·3⋯(ν−3)/(2·4⋯(ν−2)) cos^{ν−2} θ).
pub fn within(t: f64, freedom: usize) -> f64 {
    let theta = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cos, 0.0) } else { (1.0, 0.0) };
    // The term of cos^power; the first is that of power 1 or 0.
    let mut power = usize::from(odd);
    while power + 2 <= freedom {
        sum += term;
        term *= cos * cos * (power + 1) as f64 / (power + 2) as f64;
        power += 2;
    }
    if odd { FRAC_2_PI * (theta + sin * sum) } else { sin * sum }
}

/// P(|T| > t): the p-value of a two-sided test; NaN for NaN.
pub fn beyond(t: f64, freedom: usize) -> f64 {
    (1.0 - within(t.abs(), freedom)).clamp(0.0, 1.0)
}

/// The t with P(|T| ≤ t) = `level`, for 0 < level < 1: half the width of an interval, in standard errors.
pub fn quantile(level: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < level {
        (low, high) = (high, 2.0 * high);
    }
    // Halving ends where no number lies between the two.
    loop {
        let middle = low + 0.5 * (high - low);
        if middle <= low || middle >= high {
            return high;
        }
        if within(middle, freedom) < level { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// scipy 1.17.1: ν, `t.ppf(0.975, ν)`, and for t = 0.5, 2 and 4 `t.cdf(t, ν) - t.cdf(-t, ν)` and `2 * t.sf(t, ν)`.
    type Case = (usize, f64, [f64; 3], [f64; 3]);
    const SCIPY: [Case; 7] = [
        (
            1,
            12.706204736174694,
            [0.2951672353008665, 0.7048327646991335, 0.8440417392452613],
            [0.7048327646991335, 0.2951672353008665, 0.15595826075473865],
        ),
        (
            2,
            4.302652729749462,
            [0.33333333333333326, 0.816496580927726, 0.9428090415820634],
            [0.6666666666666667, 0.18350341907227397, 0.05719095841793663],
        ),
        (
            3,
            3.1824463052837078,
            [0.34855203515184896, 0.860674031441157, 0.9719915439898539],
            [0.651447964848151, 0.13932596855884305, 0.028008456010146152],
        ),
        (
            4,
            2.7764451051977934,
            [0.35667003681813675, 0.8838834764831844, 0.9838699100999075],
            [0.6433299631818633, 0.11611652351681556, 0.016130089900092546],
        ),
        (
            9,
            2.262157162798205,
            [0.37092870017397367, 0.9234471762292991, 0.9968895716896142],
            [0.6290712998260263, 0.07655282377070101, 0.0031104283103858543],
        ),
        (
            29,
            2.045229642132703,
            [0.3791519158062187, 0.9450563628170328, 0.9995999360543475],
            [0.6208480841937812, 0.05494363718296717, 0.00040006394565249173],
        ),
        (
            100,
            1.9839715185235518,
            [0.3818264341691134, 0.9517878212688664, 0.9998784763556992],
            [0.6181735658308866, 0.04821217873113365, 0.00012152364430076177],
        ),
    ];

    #[test]
    fn probabilities_and_quantiles_are_those_of_scipy() {
        for (freedom, wide, inside, outside) in SCIPY {
            assert!((quantile(0.95, freedom) - wide).abs() < 1e-11, "{freedom}: {}", quantile(0.95, freedom));
            for (t, (inside, outside)) in [0.5, 2.0, 4.0].into_iter().zip(inside.into_iter().zip(outside)) {
                assert!((within(t, freedom) - inside).abs() < 1e-14, "{freedom}, {t}: {}", within(t, freedom));
                assert!((beyond(-t, freedom) - outside).abs() < 1e-14, "{freedom}, {t}: {}", beyond(t, freedom));
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_are_0_and_1() {
        for freedom in [1, 2, 5, 1000] {
            assert_eq!((within(0.0, freedom), beyond(0.0, freedom)), (0.0, 1.0));
            assert!(beyond(f64::INFINITY, freedom) < 1e-15 && beyond(f64::NAN, freedom).is_nan());
        }
    }
}
