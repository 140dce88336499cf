//! The threshold of a level: an order statistic of the calibration scores.

use libm::lgamma;

use crate::metrics::{Interval, MetricError};

/// The levels whose thresholds are kept with a model, besides the configured one.
///
/// Thresholds of a fixed grid are kept instead of the scores: sites then never send scores, the file does not grow with the
/// calibration rows, and CQR, whose scores depend on the level, is no exception.
pub const LEVELS: [f64; 10] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99];

/// [`LEVELS`] and another level, ascending, each once.
pub fn levels_with(level: f64) -> Vec<f64> {
    let mut levels = LEVELS.to_vec();
    if !levels.contains(&level) {
        levels.push(level);
        levels.sort_by(f64::total_cmp);
    }
    levels
}

/// The rank ⌈(n + 1)·level⌉, from 1, of the score that is the threshold; `None` where it exceeds n, so that there are too few
/// rows and the set is everything.
///
/// A product within 1e-9 of a whole number counts as this number: 0.55 · 100 is 55.00000000000001 in `f64`.
pub fn rank(rows: usize, level: f64) -> Option<usize> {
    let exact = (rows as f64 + 1.0) * level;
    let rank = if (exact - exact.round()).abs() < 1e-9 { exact.round() } else { exact.ceil() };
    Some((rank as usize).max(1)).filter(|rank| *rank <= rows)
}

/// The smallest number of calibration rows with which a level has a threshold: ⌈level / (1 − level)⌉. It is 1 for a level of 0
/// and below, and [`usize::MAX`] where no number is enough: a level of 1 and above, or NaN.
pub fn fewest_rows(level: f64) -> usize {
    if level.is_nan() || level >= 1.0 {
        return usize::MAX;
    }
    if level <= 0.0 {
        return 1;
    }
    let guess = (level / (1.0 - level)) as usize;
    (guess.saturating_sub(1)..).find(|rows| rank(*rows, level).is_some()).unwrap_or(guess)
}

/// The ⌈(n + 1)·level⌉-th smallest of n scores; `None` where there are too few of them.
///
/// # Errors
/// A level outside (0, 1), or a score that is not finite.
pub fn threshold(scores: &[f64], level: f64) -> Result<Option<f64>, MetricError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(MetricError::Share { what: "the level of a set", value: level });
    }
    if let Some(index) = scores.iter().position(|score| !score.is_finite()) {
        return Err(MetricError::NotFinite { what: "score", index, value: scores[index] });
    }
    let Some(rank) = rank(scores.len(), level) else { return Ok(None) };
    let mut scores = scores.to_vec();
    Ok(Some(*scores.select_nth_unstable_by(rank - 1, f64::total_cmp).1))
}

/// The range in which the coverage of all future rows lies for 95 of 100 draws of the calibration rows: it follows
/// Beta(k, n + 1 − k) with the [`rank`] k where no two scores are equal (Vovk 2012). `None` where there are too few rows.
pub fn expected_coverage(rows: usize, level: f64) -> Option<Interval> {
    let rank = rank(rows, level)?;
    let (a, b) = (rank as f64, (rows + 1 - rank) as f64);
    Some(Interval { lo: beta_quantile(a, b, 0.025), hi: beta_quantile(a, b, 0.975) })
}

/// The range in which the share of `tested` new rows whose set holds the truth lies for at least 95 of 100 draws of
/// calibration rows and new rows: their number follows the beta-binomial distribution of m rows with a = k and b = n + 1 − k,
/// k the [`rank`], where no two scores are equal. `None` where there are too few rows for calibration, or no new row.
///
/// The ends are those of the beta distribution with the same mean and variance, to the next whole row outwards, which is
/// within a row of the beta-binomial quantiles.
pub fn expected_share(rows: usize, level: f64, tested: usize) -> Option<Interval> {
    let rank = rank(rows, level)?;
    if tested < 2 {
        return (tested == 1).then_some(Interval { lo: 0.0, hi: 1.0 });
    }
    let (a, b, m) = (rank as f64, (rows + 1 - rank) as f64, tested as f64);
    let factor = (m - 1.0) / (a + b + m);
    let end = |share| m * beta_quantile(a * factor, b * factor, share);
    Some(Interval { lo: end(0.025).floor() / m, hi: end(0.975).ceil() / m })
}

/// Quantile of Beta(a, b), by bisection.
fn beta_quantile(a: f64, b: f64, share: f64) -> f64 {
    let (mut lo, mut hi) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (lo + hi);
        if incomplete_beta(a, b, middle) < share { lo = middle } else { hi = middle }
    }
    0.5 * (lo + hi)
}

/// The distribution function of Beta(a, b) at x in (0, 1), by its continued fraction (DLMF 8.17.22), which converges in some
/// √max(a, b) terms for x below the mean.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let ln_factor = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (-x).ln_1p() - a.ln();
    // Lentz's method. A partial denominator that vanishes is replaced by a tiny one.
    let not_zero = |value: f64| if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value };
    let (mut c, mut d) = (1.0, 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in (1..MOST_TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut last = 1.0;
        for term in [even, odd] {
            d = 1.0 / not_zero(1.0 + term * d);
            c = not_zero(1.0 + term / c);
            last = c * d;
            fraction *= last;
        }
        if (last - 1.0).abs() < 1e-15 {
            break;
        }
    }
    ln_factor.exp() * fraction
}

/// The largest number of terms of a continued fraction. Of 2³¹ rows it takes some 10⁵.
const MOST_TERMS: u32 = 1_000_000;
