//! Bootstrap over rows (Efron 1979), or over clusters of rows (Davison and Hinkley 1997, section 3.8): how far a score varies
//! with the sampling of the test rows.

use rand::{Rng, RngExt};
use rand_distr::{Binomial, Distribution};
use serde::{Serialize, Serializer};

use super::clusters::Clusters;
use super::ece_interval::ece_interval;
use super::error::{MetricError, check_length};
use super::interval::Interval;
use super::metric::{ClassStatistic, Metric, TargetStatistic};
use super::ranking::Ranking;
use super::scored::{ScoredClasses, ScoredTargets};
use super::share::Share;
use super::table::Evaluation;

/// Percentile intervals of several statistics that share their resamples.
///
/// # Arguments
/// * `rows`: number of rows to draw from, with replacement, `rows` at a time
/// * `clusters`: those of the rows, which are drawn whole and as many at a time as there are; `None` of independent rows
/// * `resamples`: number of draws; 1,000 for 95 %
/// * `level`: mass between the two percentiles, such as 0.95
/// * `count`: number of statistics `S`
/// * `statistics`: writes the statistics `[S]` of rows that are drawn so many times each, `[rows]`; values that are not finite
///   are left out of their percentiles
/// * `rng`: the source of the draws, so that a report can be repeated
///
/// # Returns
/// One interval per statistic, `[S]`; `None` where no resample gave a number, and of one cluster, whose resamples are all
/// alike.
///
/// # Errors
/// No rows, clusters of another number of rows, or a level outside (0, 1).
pub fn percentile_bootstrap<R: Rng + ?Sized>(
    (rows, clusters): (usize, Option<&Clusters>),
    resamples: usize,
    level: f64,
    count: usize,
    mut statistics: impl FnMut(&[u32], &mut [f64]),
    rng: &mut R,
) -> Result<Vec<Option<Interval>>, MetricError> {
    if rows == 0 {
        return Err(MetricError::NoRows);
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(MetricError::Share { what: "the level of the interval", value: level });
    }
    check_length("clusters", clusters.map_or(rows, Clusters::rows), rows)?;
    if clusters.is_some_and(|clusters| clusters.count() < 2) {
        return Ok(vec![None; count]);
    }
    // How often each row is drawn, and each cluster.
    let mut times = vec![0; rows];
    let mut of_clusters = vec![0; clusters.map_or(0, Clusters::count)];
    let mut found = vec![0.0; count];
    let mut values: Vec<Vec<f64>> = (0..count).map(|_| Vec::with_capacity(resamples)).collect();
    for _ in 0..resamples {
        match clusters {
            None => draw(&mut times, rng),
            Some(clusters) => {
                draw(&mut of_clusters, rng);
                times.iter_mut().zip(clusters.of_rows()).for_each(|(times, cluster)| *times = of_clusters[*cluster]);
            }
        }
        statistics(&times, &mut found);
        for (of_statistic, value) in values.iter_mut().zip(&found) {
            if value.is_finite() {
                of_statistic.push(*value);
            }
        }
    }
    let interval = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - level);
        Some(Interval { lo: percentile(&values, tail)?, hi: percentile(&values, 1.0 - tail)? })
    };
    Ok(values.into_iter().map(interval).collect())
}

/// Number of rows, or of clusters, that are drawn one after the other: their counts stay in the processor's first cache.
const BLOCK: usize = 4096;

/// Draws, with replacement, as many rows as there are, and counts how often each is drawn.
///
/// Rows are drawn in blocks of [`BLOCK`]. How many fall into a block, given those before it, is binomial, so that the counts
/// have the distribution that they have without blocks.
fn draw<R: Rng + ?Sized>(times: &mut [u32], rng: &mut R) {
    times.fill(0);
    let (mut left, mut rows) = (times.len(), times.len());
    for block in times.chunks_mut(BLOCK) {
        let share = block.len() as f64 / rows as f64;
        // The last block has all that are left.
        let here = match Binomial::new(left as u64, share) {
            Ok(here) if block.len() < rows => here.sample(rng) as usize,
            _ => left,
        };
        (0..here).for_each(|_| block[rng.random_range(0..block.len())] += 1);
        (left, rows) = (left - here, rows - block.len());
    }
}

/// The mean of the scores of rows that count so many times each.
///
/// # Arguments
/// * `scores`, `times`: `[rows]`
fn weighted_mean(scores: &[f64], times: &[u32]) -> f64 {
    // A score that is not finite has no part in resamples without its row. Vectors convert signed numbers at once.
    let part = |score: f64, times: u32| f64::from(times.cast_signed()) * if times > 0 { score } else { 0.0 };
    // Several sums, so that an addition need not wait for the one before.
    let mut sums = [0.0; 8];
    let (of_scores, of_times) = (scores.chunks_exact(8), times.chunks_exact(8));
    let rest: f64 =
        of_scores.remainder().iter().zip(of_times.remainder()).map(|(score, times)| part(*score, *times)).sum();
    for (scores, times) in of_scores.zip(of_times) {
        sums.iter_mut().zip(scores).zip(times).for_each(|((sum, score), times)| *sum += part(*score, *times));
    }
    let rows: u64 = times.iter().map(|times| u64::from(*times)).sum();
    (sums.iter().sum::<f64>() + rest) / rows as f64
}

/// Intervals of the headline scores of a classification: Wilson's of the accuracy, a share of rows, which has a width where
/// all rows are right; Wald's for the estimates of the logistic recalibration; that of the calibration error from the standard
/// errors of the gaps of its bins; of the others percentiles over the same resamples. That of the signed gap is from the
/// accuracy's where all rows are right, or all wrong.
///
/// Of rows with clusters, clusters are resampled; Wilson's intervals have the rows over the design effect in the place of the
/// rows; Wald's, and that of the calibration error, the variance by clusters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreIntervals {
    /// Mass of every interval.
    pub level: f64,
    /// Number of resamples.
    pub resamples: usize,
    /// Interval of every metric that has one, by its key.
    #[serde(flatten, serialize_with = "as_map")]
    pub intervals: Vec<(&'static str, Option<Interval>)>,
}

impl ScoreIntervals {
    /// The 95 % intervals of scores whose rows are not known one by one: Wilson's of shares of rows, and that of the signed
    /// gap.
    ///
    /// # Arguments
    /// * `independent`: the number of independent rows that tell as much of a metric, by its key; `None` for that of the rows
    pub(crate) fn of_evaluation(
        of: &Evaluation,
        gap: Option<Interval>,
        independent: impl Fn(&str) -> Option<f64>,
    ) -> Self {
        let share = |(metric, value): (&'static Metric, Option<f64>)| {
            let independent = independent(metric.key).unwrap_or(of.rows as f64).max(1.0);
            let range = value.filter(|_| of.rows > 0).map(|value| Share { value, independent }.interval(0.95));
            metric.is_share_of_rows().then_some((metric.key, range))
        };
        let intervals = of.values().filter_map(share).chain([("signed_gap", gap)]).collect();
        Self { level: 0.95, resamples: 0, intervals }
    }

    /// Whether a metric is resampled.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.intervals.iter().any(|(of, _)| *of == key)
    }

    /// The interval of a metric; `None` where it has none.
    pub fn get(&self, key: &str) -> Option<Interval> {
        self.intervals.iter().find(|(of, _)| *of == key).and_then(|(_, interval)| *interval)
    }
}

fn as_map<S: Serializer>(entries: &[(&'static str, Option<Interval>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(key, interval)| (key, interval)))
}

/// The interval of every metric whose entry in the table says that it is a share of rows, or how it is resampled or estimated.
///
/// # Errors
/// A level outside (0, 1).
pub fn score_intervals<R: Rng + ?Sized>(
    scored: &ScoredClasses<'_>,
    resamples: usize,
    level: f64,
    rng: &mut R,
) -> Result<ScoreIntervals, MetricError> {
    let with_interval = |metric: &'static Metric| Some((metric.key, metric.classes?.statistic?));
    let is_resampled =
        |(_, statistic): &(_, ClassStatistic)| matches!(statistic, ClassStatistic::Mean(_) | ClassStatistic::Ranked(_));
    let (resampled, others): (Vec<_>, Vec<_>) = Metric::all().filter_map(with_interval).partition(is_resampled);
    let (keys, statistics): (Vec<&str>, Vec<ClassStatistic>) = resampled.into_iter().unzip();
    let count = keys.len();
    let score = |statistic: &ClassStatistic, row: &[f64], label: usize| match statistic {
        ClassStatistic::Share(score) | ClassStatistic::Mean(score) => score(row, label),
        ClassStatistic::Ranked(_) | ClassStatistic::CalibrationError => 0.0,
    };
    let of_rows = |statistic| scored.rows().map(|(row, label)| score(statistic, row, label)).collect();
    let scores: Vec<Vec<f64>> = statistics.iter().map(of_rows).collect();
    let ranking = scored.ranking();
    let mut by_rank = ranking.map(Ranking::once);
    let statistics_of = |times: &[u32], found: &mut [f64]| {
        let ranked = ranking.zip(by_rank.as_mut()).map(|(ranking, by_rank)| {
            ranking.count(times, by_rank);
            (ranking, &*by_rank)
        });
        for ((found, scores), statistic) in found.iter_mut().zip(&scores).zip(&statistics) {
            *found = match statistic {
                ClassStatistic::Ranked(of) => {
                    ranked.and_then(|(ranking, times)| of(ranking, times)).unwrap_or(f64::NAN)
                }
                _ => weighted_mean(scores, times),
            };
        }
    };
    let clusters = scored.clusters();
    let intervals = percentile_bootstrap((scored.len(), clusters), resamples, level, count, statistics_of, rng)?;
    let estimated = |metric: &'static Metric| {
        let estimate = metric.classes?.estimate?;
        Some((metric.key, scored.recalibration().and_then(estimate).map(|of| of.interval(level))))
    };
    let of_gap = |(key, interval)| match key {
        "signed_gap" => (key, scored.top().interval_of_gap(level, interval, scored.independent())),
        _ => (key, interval),
    };
    let not_resampled = |(key, statistic): (_, ClassStatistic)| {
        if matches!(statistic, ClassStatistic::CalibrationError) {
            return (key, ece_interval(scored, resamples, level, rng));
        }
        let has = scored.rows().map(|(row, label)| score(&statistic, row, label) > 0.0).enumerate();
        (key, Share::of(clusters, has).map(|share| share.interval(level)))
    };
    let others: Vec<_> = others.into_iter().map(not_resampled).collect();
    let resampled = keys.into_iter().zip(intervals).map(of_gap);
    let intervals = others.into_iter().chain(resampled).chain(Metric::all().filter_map(estimated)).collect();
    Ok(ScoreIntervals { level, resamples, intervals })
}

/// The intervals of a regression: of every metric whose entry in the table says how it is resampled, percentiles over the same
/// resamples; of shares of rows Wilson's.
///
/// # Errors
/// A level outside (0, 1).
pub fn target_intervals<R: Rng + ?Sized>(
    scored: &ScoredTargets<'_>,
    resamples: usize,
    level: f64,
    rng: &mut R,
) -> Result<ScoreIntervals, MetricError> {
    let with_interval = |metric: &'static Metric| Some((metric.key, metric.targets?.statistic?));
    let is_share = |(_, statistic): &(_, TargetStatistic)| matches!(statistic, TargetStatistic::Share(_));
    let (shares, resampled): (Vec<_>, Vec<_>) = Metric::all().filter_map(with_interval).partition(is_share);
    let (keys, statistics): (Vec<&str>, Vec<TargetStatistic>) = resampled.into_iter().unzip();
    let of_rows = |statistic: &TargetStatistic| match statistic {
        TargetStatistic::Share(of) | TargetStatistic::Mean(of) | TargetStatistic::RootMean(of) => of(scored),
    };
    let scores: Vec<Vec<f64>> = statistics.iter().map(of_rows).collect();
    let (rows, clusters) = (scored.predictions().rows(), scored.predictions().clusters());
    let statistics_of = |times: &[u32], found: &mut [f64]| {
        for ((found, scores), statistic) in found.iter_mut().zip(&scores).zip(&statistics) {
            let mean = weighted_mean(scores, times);
            *found = if matches!(statistic, TargetStatistic::RootMean(_)) { mean.sqrt() } else { mean };
        }
    };
    let intervals = percentile_bootstrap((rows, clusters), resamples, level, keys.len(), statistics_of, rng)?;
    let share = |(key, statistic): (_, TargetStatistic)| {
        let has = of_rows(&statistic);
        let share = Share::of(clusters, has.iter().map(|value| *value > 0.0).enumerate());
        (key, share.map(|share| share.interval(level)))
    };
    let intervals = keys.into_iter().zip(intervals).chain(shares.into_iter().map(share)).collect();
    Ok(ScoreIntervals { level, resamples, intervals })
}

/// Linear interpolation between order statistics (type 7 of Hyndman and Fan 1996).
pub(super) fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
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
    use crate::metrics::{ClassPredictions, RegressionPredictions};

    #[test]
    fn the_interval_of_a_mean_matches_the_normal_approximation() -> Result<(), MetricError> {
        let values: Vec<f64> = (0..400).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mean = |times: &[u32], found: &mut [f64]| found[0] = weighted_mean(&values, times);
        let interval = percentile_bootstrap((400, None), 2000, 0.95, 1, mean, &mut rng)?[0];
        // 0.25 +- 1.96 sqrt(0.25 * 0.75 / 400) = 0.2076 .. 0.2924; 2,000 draws leave an error of
        // about 0.002.
        let interval = interval.ok_or(MetricError::NoRows)?;
        assert!((interval.lo - 0.2076).abs() < 0.008 && (interval.hi - 0.2924).abs() < 0.008, "{interval:?}");
        Ok(())
    }

    #[test]
    fn counts_of_rows_in_several_blocks_are_multinomial() {
        // Of n rows, the count of each has the variance 1 - 1 / n, that of the rows of a block n p (1 - p), and counts of two
        // blocks the covariance -n p q. Standard errors are 2 % of a variance, and 1.4 % of the root of two variances.
        const ROWS: usize = 10_000;
        let shares = [0.4096, 0.4096, 0.1808];
        let (mut rng, mut times) = (ChaCha8Rng::seed_from_u64(7), vec![0; ROWS]);
        let (mut squares, mut products) = (0.0, [[0.0; 3]; 3]);
        const RESAMPLES: u32 = 5000;
        for _ in 0..RESAMPLES {
            draw(&mut times, &mut rng);
            assert_eq!(times.iter().sum::<u32>(), 10_000);
            squares += (f64::from(times[17]) - 1.0).powi(2);
            let of_blocks: Vec<f64> = times.chunks(BLOCK).map(|block| f64::from(block.iter().sum::<u32>())).collect();
            for (a, row) in products.iter_mut().enumerate() {
                for (b, product) in row.iter_mut().enumerate() {
                    let from_mean = |of: usize| of_blocks[of] - 1e4 * shares[of];
                    *product += from_mean(a) * from_mean(b);
                }
            }
        }
        let resamples = f64::from(RESAMPLES);
        // The fourth moment of a count is 4, so that the error of its variance is sqrt(3 / 5000) = .024.
        assert!((squares / resamples - 1.0).abs() < 0.1, "{squares}");
        for (a, row) in products.iter().enumerate() {
            for (b, product) in row.iter().enumerate() {
                let expected = 1e4 * shares[a] * (f64::from(u8::from(a == b)) - shares[b]);
                let scale = 1e4 * (shares[a] * (1.0 - shares[a]) * shares[b] * (1.0 - shares[b])).sqrt();
                assert!((product / resamples - expected).abs() < 0.06 * scale, "{a} {b}: {product} {expected}");
            }
        }
    }

    #[test]
    fn a_score_that_is_not_finite_has_no_part_in_resamples_without_its_row() {
        let scores: Vec<f64> = (1..=11_u8).map(f64::from).collect();
        // 2 · 1 + 3 · 5 + 1 · 11 over six rows.
        let times = [2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 1];
        assert_eq!(weighted_mean(&scores, &times), 28.0 / 6.0);
        for (row, value) in [(1, f64::INFINITY), (9, f64::NAN)] {
            let mut scores = scores.clone();
            scores[row] = value;
            assert_eq!(weighted_mean(&scores, &times), 28.0 / 6.0);
            let mut times = times;
            times[row] = 1;
            assert!(!weighted_mean(&scores, &times).is_finite());
        }
    }

    #[test]
    fn clusters_are_drawn_whole() -> Result<(), MetricError> {
        // 100 clusters of four equal rows: the interval of 100 rows, ± 1.96 sqrt(0.25 · 0.75 / 100).
        let clusters = Clusters::new((0..400).map(|row| row / 4));
        let values: Vec<f64> = (0..400_u16).map(|row| f64::from(u8::from((row / 4).is_multiple_of(4)))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mean = |times: &[u32], found: &mut [f64]| found[0] = weighted_mean(&values, times);
        let interval = percentile_bootstrap((400, Some(&clusters)), 2000, 0.95, 1, mean, &mut rng)?[0];
        let interval = interval.ok_or(MetricError::NoRows)?;
        assert!((interval.lo - 0.1651).abs() < 0.012 && (interval.hi - 0.3349).abs() < 0.012, "{interval:?}");
        let one = Clusters::new([7; 400]);
        let alike = percentile_bootstrap((400, Some(&one)), 10, 0.95, 2, |_, found| found.fill(1.0), &mut rng)?;
        assert_eq!(alike, [None, None]);
        let short = percentile_bootstrap((7, Some(&clusters)), 10, 0.95, 1, |_, _| {}, &mut rng);
        assert!(matches!(short, Err(MetricError::Length { what: "clusters", got: 400, expected: 7 })), "{short:?}");
        Ok(())
    }

    /// How often intervals hold the value of the population, of 200 samples of patients with four alike visits each, and
    /// how often the ECE of calibrated predictions begins at 0.
    fn held(clustered: bool) -> Result<[usize; 4], MetricError> {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut held = [0; 4];
        for _ in 0..200 {
            let (mut labels, mut rows) = (Vec::new(), Vec::new());
            for _ in 0..60 {
                let p = [0.2, 0.4, 0.7, 0.9][rng.random_range(0..4)];
                let label = usize::from(rng.random::<f64>() < p);
                (0..4).for_each(|_| labels.push(label));
                (0..4).for_each(|_| rows.extend([1.0 - p, p]));
            }
            let clusters = clustered.then(|| Clusters::new((0..240).map(|row| row / 4)));
            let predictions = ClassPredictions::new(labels, 2, rows)?.with_clusters(clusters)?;
            let scored = ScoredClasses::of_predictions(&predictions, 10)?;
            let intervals = score_intervals(&scored, 200, 0.95, &mut rng)?;
            // Right with .8, .6, .7 and .9: .75; the gap is 0, and the slope 1.
            for (held, (key, value)) in
                held.iter_mut().zip([("accuracy", 0.75), ("signed_gap", 0.0), ("ece", 0.0), ("calibration_slope", 1.0)])
            {
                let Interval { lo, hi } = intervals.get(key).ok_or(MetricError::NoRows)?;
                *held += usize::from(lo <= value && value <= hi);
            }
        }
        Ok(held)
    }

    #[test]
    fn intervals_by_clusters_hold_the_population_and_those_by_rows_do_not() -> Result<(), MetricError> {
        // Of intervals of 95 %, 182 or fewer of 200 have a probability of .01.
        let by_clusters = held(true)?;
        assert!(by_clusters.iter().all(|held| *held >= 180), "{by_clusters:?}");
        let by_rows = held(false)?;
        assert!(by_rows.iter().all(|held| *held < 160), "{by_rows:?}");
        Ok(())
    }

    #[test]
    fn one_row_has_an_interval_without_width() -> Result<(), MetricError> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let got =
            percentile_bootstrap((1, None), 10, 0.95, 2, |_, found| found.copy_from_slice(&[0.5, f64::NAN]), &mut rng)?;
        assert_eq!(got, [Some(Interval { lo: 0.5, hi: 0.5 }), None]);
        Ok(())
    }

    #[test]
    fn the_interval_of_the_accuracy_has_a_width_where_all_rows_are_right() -> Result<(), MetricError> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        // SciPy: binomtest(count, 50).proportion_ci(level, "wilson").
        for (right, level, lo, hi) in [
            (50, 0.95, 0.928_652_401, 1.0),
            (49, 0.95, 0.895_045_564, 0.996_460_741),
            (49, 0.9, 0.915_194_706, 0.995_525_436),
        ] {
            let labels = (0..50).map(|row| usize::from(row < right)).collect();
            let predictions = ClassPredictions::new(labels, 2, [0.1, 0.9].repeat(50))?;
            let scored = ScoredClasses::of_predictions(&predictions, 10)?;
            let intervals = score_intervals(&scored, 50, level, &mut rng)?;
            let got = intervals.get("accuracy").ok_or(MetricError::NoRows)?;
            assert!((got.lo - lo).abs() < 1e-8 && (got.hi - hi).abs() < 1e-8, "{got:?}");
            // The gap of .9 less the accuracy: the same interval where all are right.
            let gap = intervals.get("signed_gap").ok_or(MetricError::NoRows)?;
            assert!(right < 50 || (gap.hi - (0.9 - lo)).abs() < 1e-8, "{gap:?}");
        }
        Ok(())
    }

    #[test]
    fn the_intervals_of_a_regression_are_those_of_the_normal_approximation() -> Result<(), MetricError> {
        // Errors of 1 and of 3 alike: a mean of 2 and of 5 for the squares, whose standard deviations are 1 and 4.
        let mean: Vec<f64> = (0..400).map(|row| if row % 2 == 0 { 1.0 } else { 3.0 }).collect();
        let predictions = RegressionPredictions::new(1, mean, vec![0.25; 400], vec![0.0; 400])?;
        let scored = ScoredTargets::new(&predictions);
        let intervals = target_intervals(&scored, 2000, 0.95, &mut ChaCha8Rng::seed_from_u64(7))?;
        let near = |key: &str, value: f64, standard_error: f64| {
            let got = intervals.get(key).unwrap_or_else(|| panic!("no interval of {key}"));
            let half = 1.959_964 * standard_error;
            let tolerance = 0.15 * standard_error;
            assert!(
                (got.lo - (value - half)).abs() < tolerance && (got.hi - (value + half)).abs() < tolerance,
                "{key}: {got:?}"
            );
        };
        near("mae", 2.0, 1.0 / 20.0);
        near("mean_error", 2.0, 1.0 / 20.0);
        // By the delta method, the standard error of a root is that of its square over twice the root.
        near("rmse", 5f64.sqrt(), 4.0 / 20.0 / (2.0 * 5f64.sqrt()));
        // An sd of 2: ln 2 + ½ ln 2π + e²/8.
        near("nll", 2f64.ln() + 0.918_938_533 + 5.0 / 8.0, 4.0 / 8.0 / 20.0);
        // Of sure predictions that are off by at most 1.5 sd, all are inside the 90 % interval: Wilson's of 400 of 400.
        let inside = intervals.get("coverage_90").ok_or(MetricError::NoRows)?;
        assert!((inside.lo - 0.990_487_706).abs() < 1e-8 && inside.hi >= 1.0, "{inside:?}");
        Ok(())
    }

    #[test]
    fn the_interval_of_the_ece_holds_that_of_the_population() -> Result<(), MetricError> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        // Confidences of .75 and .95 with so many right: the ECE of the population is 0, or half of .1 + .15.
        for (right, population) in [([0.75, 0.95], 0.0), ([0.65, 0.8], 0.125)] {
            let mut held = 0;
            for _ in 0..40 {
                let row = |row: usize| if row.is_multiple_of(2) { [0.25, 0.75] } else { [0.05, 0.95] };
                let rows = (0..200).flat_map(row).collect();
                let labels = (0..200).map(|row| usize::from(rng.random::<f64>() < right[row % 2])).collect();
                let predictions = ClassPredictions::new(labels, 2, rows)?;
                let scored = ScoredClasses::of_predictions(&predictions, 10)?;
                let ece = scored.top().ece().ok_or(MetricError::NoRows)?;
                let Interval { lo, hi } =
                    score_intervals(&scored, 200, 0.95, &mut rng)?.get("ece").ok_or(MetricError::NoRows)?;
                assert!(lo <= ece && ece <= hi, "{lo} {ece} {hi}");
                held += usize::from(lo <= population && population <= hi);
            }
            // 38 of 40 are expected; 33 or fewer of intervals that hold it in 95 % of samples have a probability of .003.
            assert!(held >= 34, "{held} of 40 with {population}");
        }
        Ok(())
    }
}
