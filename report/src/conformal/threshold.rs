//! The threshold of a level: an order statistic of the calibration scores.

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
    Some(Interval { lo: beta_quantile(rows, rank, 0.025), hi: beta_quantile(rows, rank, 0.975) })
}

/// Quantile of Beta(k, n + 1 − k): its distribution function at x is the probability that of n rows at least k succeed with
/// probability x each.
fn beta_quantile(rows: usize, rank: usize, share: f64) -> f64 {
    // ln(n choose j) for j from k to n.
    let mut choose: f64 = (0..rows - rank).map(|i| ((rows - i) as f64 / (i + 1) as f64).ln()).sum();
    let mut logs = Vec::with_capacity(rows - rank + 1);
    for successes in rank..=rows {
        logs.push(choose);
        choose += ((rows - successes) as f64 / (successes + 1) as f64).ln();
    }
    let at_least = |x: f64| -> f64 {
        let term = |(above, log): (usize, &f64)| {
            let successes = rank + above;
            (log + successes as f64 * x.ln() + (rows - successes) as f64 * (-x).ln_1p()).exp()
        };
        logs.iter().enumerate().map(term).sum()
    };
    let (mut lo, mut hi) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (lo + hi);
        if at_least(middle) < share { lo = middle } else { hi = middle }
    }
    0.5 * (lo + hi)
}
