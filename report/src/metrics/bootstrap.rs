//! Percentile bootstrap over rows (Efron 1979): how much of a number is the luck of the test set.

use rand::{Rng, RngExt};
use serde::Serialize;

use super::calibration::{BinRule, bin_index, check_bins};
use super::classification::{argmax, floored_nll, squared_error};
use super::error::MetricError;
use super::predictions::ClassPredictions;

/// An interval of a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
}

/// Percentile intervals of several statistics that share their resamples.
///
/// # Arguments
/// * `rows`: number of rows to draw from, with replacement, `rows` at a time
/// * `resamples`: number of draws; 1,000 for 95 %
/// * `level`: mass between the two percentiles, such as 0.95
/// * `statistics`: the statistics of the drawn row indices; not finite ones are left out of their
///   percentiles
/// * `rng`: the source of the draws, so that a report can be repeated
///
/// # Returns
/// One interval a statistic, `None` where no resample gave a number.
///
/// # Errors
/// No rows, or a level outside (0, 1).
pub fn percentile_bootstrap<const S: usize, R: Rng + ?Sized>(
    rows: usize,
    resamples: usize,
    level: f64,
    mut statistics: impl FnMut(&[usize]) -> [f64; S],
    rng: &mut R,
) -> Result<[Option<Interval>; S], MetricError> {
    if rows == 0 {
        return Err(MetricError::NoRows);
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(MetricError::Share { what: "the level of the interval", value: level });
    }
    let mut drawn = vec![0; rows];
    let mut values: [Vec<f64>; S] = std::array::from_fn(|_| Vec::with_capacity(resamples));
    for _ in 0..resamples {
        drawn.iter_mut().for_each(|row| *row = rng.random_range(0..rows));
        for (of_statistic, value) in values.iter_mut().zip(statistics(&drawn)) {
            if value.is_finite() {
                of_statistic.push(value);
            }
        }
    }
    Ok(values.map(|mut v| {
        v.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - level);
        Some(Interval { lo: percentile(&v, tail)?, hi: percentile(&v, 1.0 - tail)? })
    }))
}

/// Intervals of the headline scores of a classification, all from the same resamples.
///
/// The calibration error of a resample is above that of the rows on average, because resampling
/// adds noise to every bin: its interval says how far the number can move, not where its centre
/// lies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreIntervals {
    /// Mass of every interval.
    pub level: f64,
    /// Number of resamples.
    pub resamples: usize,
    /// Accuracy.
    pub accuracy: Option<Interval>,
    /// Negative log-likelihood.
    pub nll: Option<Interval>,
    /// Brier score.
    pub brier: Option<Interval>,
    /// Expected calibration error.
    pub ece: Option<Interval>,
    /// Mean confidence minus accuracy.
    pub signed_gap: Option<Interval>,
}

/// What a resample needs of a row.
struct RowScores {
    bin: usize,
    gap: f64,
    correct: f64,
    nll: f64,
    brier: f64,
}

/// Bootstrap intervals of accuracy, NLL, Brier score, ECE and signed gap.
///
/// # Errors
/// A number of bins that makes no histogram, or a level outside (0, 1).
pub fn score_intervals<R: Rng + ?Sized>(
    predictions: &ClassPredictions,
    bins: usize,
    resamples: usize,
    level: f64,
    rng: &mut R,
) -> Result<ScoreIntervals, MetricError> {
    check_bins(bins)?;
    let of_row = |(row, &label): (&[f64], &usize)| {
        let predicted = argmax(row);
        let correct = f64::from(u8::from(predicted == label));
        RowScores {
            bin: bin_index(row[predicted], bins, BinRule::UpperClosed),
            gap: row[predicted] - correct,
            correct,
            nll: floored_nll(row[label]),
            brier: squared_error(row, label),
        }
    };
    let rows: Vec<RowScores> = predictions.rows().zip(predictions.labels()).map(of_row).collect();
    let mut gaps = vec![0.0; bins];
    let statistics = |drawn: &[usize]| {
        gaps.fill(0.0);
        let mut sums = [0.0; 5];
        for &row in drawn {
            let row = &rows[row];
            gaps[row.bin] += row.gap;
            for (sum, value) in sums.iter_mut().zip([row.correct, row.nll, row.brier, 0.0, row.gap]) {
                *sum += value;
            }
        }
        // n_j |conf_j - acc_j| is the absolute sum of the bin's gaps.
        sums[3] = gaps.iter().map(|gap: &f64| gap.abs()).sum();
        sums.map(|sum| sum / drawn.len() as f64)
    };
    let [accuracy, nll, brier, ece, signed_gap] = percentile_bootstrap(rows.len(), resamples, level, statistics, rng)?;
    Ok(ScoreIntervals { level, resamples, accuracy, nll, brier, ece, signed_gap })
}

/// Linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * (sorted.len().checked_sub(1)?) as f64;
    let below = at.floor() as usize;
    let (lo, hi) = (sorted.get(below)?, sorted.get(below + 1).or(sorted.last())?);
    Some(lo + (at - below as f64) * (hi - lo))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    #[test]
    fn the_interval_of_a_mean_matches_the_normal_approximation() -> Result<(), MetricError> {
        let values: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mean = |rows: &[usize]| [rows.iter().map(|&i| values[i]).sum::<f64>() / rows.len() as f64];
        let [interval] = percentile_bootstrap(400, 2000, 0.95, mean, &mut rng)?;
        // 0.25 +- 1.96 sqrt(0.25 * 0.75 / 400) = 0.2076 .. 0.2924; 2,000 draws leave an error of
        // about 0.002.
        let interval = interval.ok_or(MetricError::NoRows)?;
        assert!((interval.lo - 0.2076).abs() < 0.008 && (interval.hi - 0.2924).abs() < 0.008, "{interval:?}");
        Ok(())
    }

    #[test]
    fn one_row_has_an_interval_without_width() -> Result<(), MetricError> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let got = percentile_bootstrap(1, 10, 0.95, |_| [0.5, f64::NAN], &mut rng)?;
        assert_eq!(got, [Some(Interval { lo: 0.5, hi: 0.5 }), None]);
        Ok(())
    }
}
