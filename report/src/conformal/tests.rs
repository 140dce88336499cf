//! Coverage over many draws, and thresholds from counts.

use proptest::collection::vec;
use proptest::prelude::*;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::maps::MapKind;
use crate::metrics::{
    ClassPredictions, Clusters, Interval, MetricError, RegressionPredictions, apply_temperature, fit_temperature,
    logits_of,
};

/// Numbers of calibration rows, of new rows and of draws of both.
const CALIBRATION: usize = 200;
const NEW: usize = 500;
const DRAWS: usize = 1000;

/// Rows of five classes of which the model is too sure: labels are drawn from p, and the model says p^1.6, normalised.
fn classes(rows: usize, rng: &mut ChaCha8Rng) -> ClassPredictions<'static> {
    let (mut labels, mut said) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let logits: Vec<f64> = (0..5).map(|_| 2.5 * rng.random::<f64>() - 1.25 + rng.random::<f64>()).collect();
        let weights: Vec<f64> = logits.iter().map(|l| l.exp()).collect();
        let mut left = rng.random::<f64>() * weights.iter().sum::<f64>();
        let label = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        labels.push(label.unwrap_or(4));
        let sharp: Vec<f64> = logits.iter().map(|l| (1.6 * l).exp()).collect();
        let sum: f64 = sharp.iter().sum();
        said.extend(sharp.iter().map(|s| s / sum));
    }
    ClassPredictions::new(labels, 5, said).unwrap()
}

/// Rows of a regression whose noise the model takes for half as large as it is.
fn targets(rows: usize, rng: &mut ChaCha8Rng) -> RegressionPredictions<'static> {
    let normal = |rng: &mut ChaCha8Rng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let (mut mean, mut precision, mut target) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let (center, sd) = (3.0 * normal(rng), 0.2 + rng.random::<f64>());
        mean.push(center);
        precision.push(4.0 / (sd * sd));
        target.push(center + sd * normal(rng));
    }
    RegressionPredictions::new(1, mean, precision, target).unwrap()
}

/// The number of covered rows out of [`NEW`] in each of [`DRAWS`] draws.
fn covered(mut one: impl FnMut(u64, &mut ChaCha8Rng) -> SetCounts) -> Vec<usize> {
    let draw = |seed| {
        let counts = one(seed, &mut ChaCha8Rng::seed_from_u64(seed));
        assert_eq!(counts.rows, NEW);
        counts.covered
    };
    (0..DRAWS as u64).map(draw).collect()
}

fn of_sets(score: Score, level: f64, random: bool, temperature: Temperature) -> Vec<usize> {
    covered(|seed, rng| {
        let (calibration, new) = (classes(CALIBRATION, rng), classes(NEW, rng));
        let (calibration, new) = temperature.applied(calibration, new);
        let of = |stream, rows| random.then(|| draws(seed, stream, rows));
        let scores = class_scores(score, &calibration, of(0, calibration.len()).as_deref()).unwrap();
        let limit = threshold(&scores, level).unwrap();
        let (mut counts, of_new) = (SetCounts::default(), of(1, NEW));
        for (row, (probabilities, &label)) in new.rows().zip(new.labels()).enumerate() {
            let draw = of_new.as_ref().map(|draws| draws[row]);
            counts.add_set(&class_set(score, probabilities, limit, draw), label);
        }
        counts
    })
}

/// The rows on which a temperature is fitted.
#[derive(Clone, Copy)]
enum Temperature {
    None,
    /// The calibration rows, which the scores are of as well.
    SameRows,
    /// The first half of the calibration rows; the scores are of the other half.
    Halves,
}

impl Temperature {
    fn applied(
        self,
        calibration: ClassPredictions<'static>,
        new: ClassPredictions<'static>,
    ) -> (ClassPredictions<'static>, ClassPredictions<'static>) {
        let part = |range: std::ops::Range<usize>| {
            let p = calibration.probabilities()[5 * range.start..5 * range.end].to_vec();
            ClassPredictions::new(calibration.labels()[range].to_vec(), 5, p).unwrap()
        };
        let (fit, scored) = match self {
            Self::None => return (calibration, new),
            Self::SameRows => (0..CALIBRATION, 0..CALIBRATION),
            Self::Halves => (0..CALIBRATION / 2, CALIBRATION / 2..CALIBRATION),
        };
        let fit = part(fit);
        let t = fit_temperature(&logits_of(&fit), fit.labels(), 5).unwrap().temperature;
        (apply_temperature(&part(scored), t).unwrap(), apply_temperature(&new, t).unwrap())
    }
}

/// Mean and standard deviation over the draws of the number of covered rows by the beta-binomial distribution with n
/// calibration rows, whose coverage follows Beta(k, n + 1 − k).
fn expected(rows: usize, level: f64) -> (f64, f64) {
    let (a, sum, m) = (rank(rows, level).unwrap() as f64, rows as f64 + 1.0, NEW as f64);
    let p = a / sum;
    (m * p, (m * p * (1.0 - p) * (sum + m) / (sum + 1.0)).sqrt())
}

/// Checks mean and spread against the beta-binomial distribution, to four standard errors of 1,000 draws.
fn check(name: &str, covered: &[usize], rows: usize, level: f64) {
    let (mean, sd) = expected(rows, level);
    let n = covered.len() as f64;
    let got = covered.iter().sum::<usize>() as f64 / n;
    let spread = (covered.iter().map(|c| (*c as f64 - got).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    assert!((got - mean).abs() < 4.0 * sd / n.sqrt(), "{name}: {got} of {NEW} covered on average, not {mean}");
    // The standard error of a standard deviation is sd/√(2n), up to the kurtosis.
    assert!((spread / sd - 1.0).abs() < 4.0 / (2.0 * n).sqrt() + 0.02, "{name}: spread {spread}, not {sd}");
    // Of 1,000 draws 95 % lie within two standard deviations, up to four standard errors.
    let within = covered.iter().filter(|c| (**c as f64 - mean).abs() <= 1.96 * sd).count() as f64 / n;
    assert!((within - 0.95).abs() < 4.0 * (0.05_f64 * 0.95 / n).sqrt() + 0.01, "{name}: {within} of the draws");
}

#[test]
fn sets_hold_the_true_class_as_often_as_the_level_says_over_a_thousand_draws() {
    let raps = Score::Raps { penalty: 0.05, free: 1 };
    for (score, random) in [(Score::Lac, false), (Score::Aps, true), (raps, true)] {
        for level in [0.8, 0.9] {
            check(score.word(), &of_sets(score, level, random, Temperature::None), CALIBRATION, level);
        }
    }
}

#[test]
fn sets_without_chance_hold_it_at_least_as_often_and_are_never_empty() {
    for score in [Score::Aps, Score::Raps { penalty: 0.05, free: 1 }] {
        let covered = of_sets(score, 0.8, false, Temperature::None);
        let mean = covered.iter().sum::<usize>() as f64 / DRAWS as f64;
        let (least, sd) = expected(CALIBRATION, 0.8);
        assert!(mean > least - 4.0 * sd / (DRAWS as f64).sqrt(), "{mean} of {NEW}");
    }
    for threshold in [-1.0, 0.0, 0.3, 0.61, 2.0] {
        for score in [Score::Aps, Score::Raps { penalty: 0.5, free: 0 }] {
            assert!(class_set(score, &[0.1, 0.6, 0.3], Some(threshold), None)[1]);
        }
    }
}

#[test]
fn a_class_without_weight_has_the_score_of_the_one_before_and_is_in_the_sets_of_that_threshold() {
    // Nine rows whose truth has a probability too small to change the sum of 1.
    let rows = ClassPredictions::new(vec![1; 9], 2, [1.0, 1e-20].repeat(9)).unwrap();
    let limit = threshold(&class_scores(Score::Aps, &rows, None).unwrap(), 0.9).unwrap();
    assert_eq!(limit, Some(1.0));
    assert_eq!(class_set(Score::Aps, &[1.0, 1e-20], limit, None), [true, true]);
    assert_eq!(class_set(Score::Aps, &[0.7, 0.3], Some(0.7), None), [true, false]);
}

#[test]
fn intervals_hold_the_target_as_often_as_the_level_says_over_a_thousand_draws() {
    for score in [Score::Normalised, Score::Cqr] {
        let covered = covered(|_, rng| {
            let (calibration, new) = (targets(CALIBRATION, rng), targets(NEW, rng));
            let limit = threshold(&target_scores(score, &calibration, 0.9).unwrap(), 0.9).unwrap();
            let mut counts = SetCounts::default();
            let intervals = intervals(score, &new, 0.9, limit).unwrap();
            intervals.into_iter().zip(new.target()).for_each(|(interval, y)| counts.add_interval(interval, *y));
            counts
        });
        check(score.word(), &covered, CALIBRATION, 0.9);
    }
}

#[test]
fn a_temperature_fitted_on_the_same_rows_leaves_the_coverage_as_it_is() {
    // 1,000 draws of 200 calibration rows at the level 0.9. Printed with --nocapture: with half of the rows for each, the
    // coverage is no closer to the level, and its spread is wider by √2.
    let same = of_sets(Score::Lac, 0.9, false, Temperature::SameRows);
    let halves = of_sets(Score::Lac, 0.9, false, Temperature::Halves);
    for (name, covered, rows) in [("same rows", &same, CALIBRATION), ("halves", &halves, CALIBRATION / 2)] {
        let mean = covered.iter().sum::<usize>() as f64 / (DRAWS * NEW) as f64;
        println!("{name}: {mean:.4}, {:.4} by the beta distribution", expected(rows, 0.9).0 / NEW as f64);
    }
    check("same rows", &same, CALIBRATION, 0.9);
    check("halves", &halves, CALIBRATION / 2, 0.9);
}

/// The mean coverage of sets at 0.9 whose probabilities have a map of this kind, fitted on the rows of the scores.
fn of_map(score: Score, kind: MapKind, rows: usize) -> f64 {
    let covered = covered(|_, rng| {
        let (calibration, new) = (classes(rows, rng), classes(NEW, rng));
        let map = kind.fit(&calibration).unwrap();
        let (calibration, new) = (map.apply(&calibration).unwrap(), map.apply(&new).unwrap());
        let limit = threshold(&class_scores(score, &calibration, None).unwrap(), 0.9).unwrap();
        let mut counts = SetCounts::default();
        let set = |probabilities| class_set(score, probabilities, limit, None);
        new.rows().zip(new.labels()).for_each(|(row, label)| counts.add_set(&set(row), *label));
        counts
    });
    covered.iter().sum::<usize>() as f64 / (DRAWS * NEW) as f64
}

#[test]
fn a_map_with_more_numbers_that_is_fitted_on_the_same_rows_takes_coverage() {
    // Which is why sets are made from probabilities without such a map. 1,000 draws at the level 0.9 with the fewest rows of
    // a fit; printed with --nocapture.
    for kind in [MapKind::Vector, MapKind::Isotonic] {
        let rows = 5 * kind.fewest_rows_a_class();
        let (mean, formula) = (of_map(Score::Lac, kind, rows), expected(rows, 0.9).0 / NEW as f64);
        println!("{} of {rows} rows: {mean:.4}, {formula:.4} by the beta distribution", kind.word());
        assert!(mean < formula - 0.02, "{kind:?} of {rows} rows: {mean}, not below {formula}");
    }
}

#[test]
fn ranks_are_those_of_the_exact_product() {
    // (n + 1)·level in decimal numbers.
    for (rows, level, want) in
        [(99, 0.55, 55), (9, 0.9, 9), (19, 0.95, 19), (100, 0.9, 91), (10, 0.5, 6), (999, 0.7, 700)]
    {
        assert_eq!(rank(rows, level), Some(want), "{rows} rows at {level}");
    }
    assert_eq!((rank(8, 0.9), rank(0, 0.5), rank(18, 0.95)), (None, None, None));
    assert_eq!([0.5, 0.8, 0.9, 0.95, 0.99].map(fewest_rows), [1, 4, 9, 19, 99]);
    assert_eq!([-1.0, 0.0, 1.0, 1.5, f64::NAN].map(fewest_rows), [1, 1, usize::MAX, usize::MAX, usize::MAX]);
    assert_eq!(levels_with(0.9).len(), LEVELS.len());
    assert!(levels_with(0.93).is_sorted() && levels_with(0.93).contains(&0.93));
}

#[test]
fn the_expected_coverage_is_a_beta_distribution() {
    // scipy.stats.beta(k, n + 1 - k).ppf([0.025, 0.975]), SciPy 1.17.
    for (rows, level, lo, hi) in EXPECTED {
        let got = expected_coverage(rows, level).unwrap();
        assert!((got.lo - lo).abs() < 1e-10 && (got.hi - hi).abs() < 1e-10, "{rows} {level}: {got:?}");
    }
    assert_eq!(expected_coverage(8, 0.9), None);
}

#[test]
fn the_expected_share_of_new_rows_is_beta_binomial() {
    // scipy.stats.betabinom(m, k, n + 1 - k).ppf([0.025, 0.975]), SciPy 1.17, in rows: at most one row further out.
    for (rows, level, tested, lo, hi) in NEW_ROWS {
        let got = expected_share(rows, level, tested).unwrap();
        let (below, above) = (lo - got.lo * tested as f64, got.hi * tested as f64 - hi);
        assert!(
            (-1e-6..1.0 + 1e-6).contains(&below) && (-1e-6..1.0 + 1e-6).contains(&above),
            "{rows} {tested}: {got:?}"
        );
    }
    assert_eq!((expected_share(8, 0.9, 100), expected_share(9, 0.9, 0)), (None, None));
    // A single new row is covered or not.
    assert_eq!(expected_share(9, 0.9, 1), Some(Interval { lo: 0.0, hi: 1.0 }));
    // Of many new rows it is the range of all of them.
    let (all, many) = (expected_coverage(100, 0.9).unwrap(), expected_share(100, 0.9, 1 << 31).unwrap());
    assert!((all.lo - many.lo).abs() < 1e-6 && (all.hi - many.hi).abs() < 1e-6);
}

const NEW_ROWS: [(usize, f64, usize, f64, f64); 6] = [
    (9, 0.9, 2, 1.0, 2.0),
    (9, 0.9, 20, 12.0, 20.0),
    (100, 0.9, 50, 39.0, 49.0),
    (287, 0.9, 359, 306.0, 339.0),
    (1000, 0.95, 100, 90.0, 99.0),
    (50, 0.5, 1000, 371.0, 648.0),
];

const EXPECTED: [(usize, f64, f64, f64); 7] = [
    (9, 0.9, 0.6637328831200572, 0.9971908632534008),
    (100, 0.9, 0.8360177449703647, 0.9509953107785141),
    (287, 0.9, 0.8660777382129464, 0.9341882771259231),
    (1000, 0.95, 0.9357339468598304, 0.9626646023953382),
    (5000, 0.5, 0.486244258266102, 0.5139556259990742),
    // As many rows as a site may claim take no longer.
    (50_000_000, 0.9, 0.899916832619882, 0.9000831410712077),
    (1 << 31, 0.98, 0.9799940788130659, 0.9800059212528083),
];

#[test]
fn impossible_scores_and_levels_are_refused() {
    let predictions = ClassPredictions::new(vec![0], 2, vec![0.6, 0.4]).unwrap();
    let message = |error: MetricError| error.to_string();
    let other = class_scores(Score::Cqr, &predictions, None).unwrap_err();
    assert_eq!(message(other), "the score `cqr` is for real targets");
    assert!(message(class_scores(Score::Aps, &predictions, Some(&[])).unwrap_err()).starts_with("draws: 0 values"));
    let real = RegressionPredictions::new(1, vec![0.0], vec![1.0], vec![0.0]).unwrap();
    assert_eq!(message(target_scores(Score::Lac, &real, 0.9).unwrap_err()), "the score `lac` is for classes");
    assert!(message(target_scores(Score::Cqr, &real, 1.0).unwrap_err()).contains("strictly between 0 and 1"));
    assert!(message(threshold(&[0.5, f64::NAN], 0.9).unwrap_err()).contains("score 1 is NaN"));
    assert!(threshold(&[0.5], 0.0).is_err());
}

#[test]
fn draws_of_some_rows_are_those_among_all() {
    let all = draws(7, 3, 40);
    for rows in [0..40, 0..7, 7..40, 39..40, 40..40] {
        assert_eq!(draws_of(7, 3, rows.clone()), all[rows]);
    }
}

#[test]
fn counts_of_sites_have_the_interval_of_all_their_clusters() {
    let row = |covered: bool| {
        let mut counts = SetCounts::default();
        counts.add_set(&[covered, !covered], 0);
        counts
    };
    // Ten patients with four rows each, of which the first three are covered as a whole or in part.
    let rows: Vec<SetCounts> = (0..40).map(|at| row(at < 12 && at != 5)).collect();
    let clusters = Clusters::new((0..40).map(|row| row / 4));
    let all = SetCounts::of_rows(rows.iter().enumerate(), Some(&clusters));
    let site = |rows: &[SetCounts]| {
        let clusters = Clusters::new((0..rows.len()).map(|row| row / 4));
        SetCounts::of_rows(rows.iter().enumerate(), Some(&clusters))
    };
    let mut pooled = SetCounts::from_values(&site(&rows[..8]).to_values(true)).unwrap();
    pooled.merge(&SetCounts::from_values(&site(&rows[8..]).to_values(true)).unwrap());
    assert_eq!(pooled, all);
    let share = crate::metrics::Share::of(Some(&clusters), (0..40).map(|row| (row, rows[row].covered > 0))).unwrap();
    let independent = all.independent_rows().unwrap();
    assert!((independent - share.independent).abs() < 1e-9 && independent < 12.0, "{independent}");
    // A site without clusters has independent rows.
    let mut mixed = site(&rows[..8]);
    mixed.merge(&SetCounts::of_rows(rows[8..].iter().enumerate(), None));
    let clusters = Clusters::new((0..40).map(|row| if row < 8 { row / 4 } else { row }));
    let expected = SetCounts::of_rows(rows.iter().enumerate(), Some(&clusters));
    assert_eq!(mixed, expected);
    // No row at all, and values that no clusters can give.
    let none = SetCounts::default();
    assert_eq!(SetCounts::from_values(&none.to_values(true)), Some(none));
    let mut values = all.to_values(true);
    assert_eq!(values.len(), SetCounts::LENGTHS[1]);
    values[6] = 41.0;
    assert_eq!((SetCounts::from_values(&values), SetCounts::from_values(&values[..8])), (None, None));
}

#[test]
fn counts_are_read_as_they_were_written_and_impossible_ones_are_not() {
    let mut counts = SetCounts::default();
    counts.add_set(&[true, false], 0);
    counts.add_set(&[true, true], 1);
    counts.add_set(&[false, false], 1);
    assert_eq!((counts.rows, counts.covered, counts.empty, counts.single, counts.size), (3, 2, 1, 1, 3.0));
    assert_eq!(SetCounts::from_values(&counts.to_values(false)), Some(counts));
    for bad in [
        [3.0, 4.0, 0.0, 0.0, 0.0, 1.0],
        [3.0, 2.0, 2.0, 0.0, 0.0, 1.0],
        // A set is not empty and of one class, and no more intervals lack an end than there are rows.
        [3.0, 0.0, 2.0, 2.0, 0.0, 1.0],
        [3.0, 1.0, 0.0, 0.0, 4.0, 1.0],
        [-1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        [2e15, 1.0, 0.0, 0.0, 0.0, 1.0],
        [3.0, 0.5, 0.0, 0.0, 0.0, 1.0],
        [f64::INFINITY, 1.0, 0.0, 0.0, 0.0, 1.0],
        [3.0, 1.0, 0.0, 0.0, 0.0, f64::NAN],
        [3.0, 1.0, 0.0, 0.0, 0.0, -1.0],
    ] {
        assert_eq!(SetCounts::from_values(&bad), None, "{bad:?}");
    }
    assert_eq!(SetCounts::from_values(&[1.0]), None);
    // Without rows there are no sums of clusters.
    let mut of_no_rows = vec![0.0; SetCounts::LENGTHS[1]];
    assert!(SetCounts::from_values(&of_no_rows).is_some());
    of_no_rows[6] = 1.0;
    assert_eq!(SetCounts::from_values(&of_no_rows), None);
    let mut widths = SetCounts::default();
    widths.add_interval(Some(TargetInterval { lower: -1.0, upper: 1.0 }), 0.5);
    widths.add_interval(None, 0.5);
    assert_eq!((widths.coverage(), widths.mean_size(), widths.empty), (Some(0.5), Some(1.0), 1));
    widths.add_interval(Some(TargetInterval { lower: f64::NEG_INFINITY, upper: f64::INFINITY }), 0.5);
    assert_eq!((widths.mean_size(), widths.unbounded), (None, 1));
}

proptest! {
    #[test]
    fn counts_of_several_places_find_exactly_the_order_statistics_of_all_scores(
        scores in vec((prop_oneof![-1f64..1.0, any::<f64>(), Just(0.5), Just(-0.0), Just(0.0)], 0usize..5), 1..200),
        ranks in vec(0f64..1.0, 1..6),
    ) {
        let scores: Vec<(f64, usize)> = scores.into_iter().filter(|(score, _)| score.is_finite()).collect();
        if scores.is_empty() { return Ok(()) }
        let mut all: Vec<f64> = scores.iter().map(|(score, _)| *score).collect();
        all.sort_by(f64::total_cmp);
        let mut places = vec![Vec::new(); 5];
        scores.iter().for_each(|(score, at)| places[*at].push(*score));
        places.iter_mut().for_each(|of| of.sort_by(f64::total_cmp));
        let ranks: Vec<usize> = ranks.iter().map(|share| 1 + (share * all.len() as f64) as usize).collect();
        let mut search = QuantileSearch::new(ranks.clone());
        let mut asked = 0;
        while let Some(question) = search.question() {
            let mut counts = vec![0; question.len()];
            for of in &places {
                counts.iter_mut().zip(counts_up_to(of, &question)).for_each(|(all, one)| *all += one);
            }
            search.answer(&counts);
            asked += 1;
        }
        prop_assert!(asked <= 9, "{} questions", asked);
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        // -0 and 0 count the same.
        prop_assert_eq!(bits(search.found()), bits(ranks.iter().map(|rank| all[rank - 1] + 0.0).collect()));
    }

    #[test]
    fn a_search_ends_whatever_is_answered(answers in vec(vec(any::<u64>(), 255), 12)) {
        let mut search = QuantileSearch::new(vec![7]);
        answers.iter().for_each(|counts| search.answer(counts));
        prop_assert!(search.question().is_none());
        prop_assert!(search.found()[0].is_finite());
    }
}
