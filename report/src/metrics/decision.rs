//! What follows from deciding by a threshold on p(y = 1): hits, false alarms, and the net benefit of a decision curve.
//!
//! A row is flagged where p(y = 1) is at least the threshold. Source: Vickers and Elkin 2006. The net benefit at a
//! threshold t is TP/n − FP/n · t/(1 − t): the weight of a false alarm against a hit is what makes t the right
//! threshold.

use serde::Serialize;

use super::clusters::{Clusters, effect};
use super::interval::Interval;
use super::normal::two_sided_quantile;
use super::predictions::ClassPredictions;
use super::share::Share;

/// A gain in hits below this is rounding.
const ROUNDING: f64 = 1e-9;

/// The rows that a threshold flags, and what that is worth. Shares are `None` where their denominator is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThresholdRow {
    /// The threshold, strictly between 0 and 1.
    pub threshold: f64,
    /// Flagged rows of class 1.
    pub true_positives: usize,
    /// Flagged rows of class 0.
    pub false_positives: usize,
    /// Rows of class 1 that are not flagged.
    pub false_negatives: usize,
    /// Rows of class 0 that are not flagged.
    pub true_negatives: usize,
    /// Share of the rows of class 1 that are flagged (recall).
    pub sensitivity: Option<f64>,
    /// Share of the rows of class 0 that are not flagged.
    pub specificity: Option<f64>,
    /// Share of the flagged rows that are of class 1 (precision).
    pub ppv: Option<f64>,
    /// Share of the other rows that are of class 0.
    pub npv: Option<f64>,
    /// The 95 % intervals of these four shares (Wilson), by clusters where the rows have them.
    #[serde(skip)]
    pub share_intervals: [Option<Interval>; 4],
    /// Net benefit of flagging by the threshold, in hits per row.
    pub net_benefit: f64,
    /// Its 95 % interval, that of a mean over rows or clusters; `None` where all rows have the same part in it.
    pub net_benefit_interval: Option<Interval>,
    /// Net benefit of flagging every row. That of flagging none is 0.
    pub net_benefit_all: f64,
    /// Whether the net benefit is above that of flagging every row and of flagging none, and whether it is so beyond chance.
    #[serde(skip)]
    useful: (bool, bool),
}

/// What the rows at a threshold tell beside as many independent rows.
#[derive(Debug, Clone, Copy)]
struct Sampling {
    /// The independent rows behind sensitivity, specificity, PPV and NPV.
    shares: [f64; 4],
    /// The design effects of the net benefit, which is its difference from flagging none, and of that from flagging every row.
    benefit: [f64; 2],
    /// Whether all rows are of one cluster, which says nothing of the sampling.
    one_cluster: bool,
}

/// The kinds of rows: hits, false alarms, missed and spared ones.
const KINDS: [usize; 4] = [0, 1, 2, 3];

/// The parts of the kinds of rows in the net benefit, or in a difference of two.
type Parts = [f64; 4];

/// The parts in the net benefit less that of flagging none, and less that of flagging every row: a row that is spared is an
/// alarm less, and one that is missed a hit less. A false alarm costs so many hits.
fn parts(weight: f64) -> [Parts; 2] {
    [[1.0, -weight, 0.0, 0.0], [0.0, 0.0, -1.0, weight]]
}

impl Sampling {
    /// Of independent rows, from the counts of hits, false alarms, missed and spared rows.
    fn independent([tp, fp, missed, spared]: [usize; 4]) -> Self {
        let shares = [tp + missed, fp + spared, tp + fp, missed + spared].map(|rows| rows as f64);
        Self { shares, benefit: [1.0; 2], one_cluster: false }
    }

    /// Of clusters.
    fn of(clusters: &Clusters, predictions: &ClassPredictions<'_>, threshold: f64) -> Self {
        // The hits, false alarms, missed and spared rows of each cluster.
        let mut of_clusters = vec![[0.0; 4]; clusters.count()];
        for ((row, label), cluster) in predictions.rows().zip(predictions.labels()).zip(clusters.of_rows()) {
            let kind = 2 * usize::from(row[1] < threshold) + usize::from(*label != 1);
            of_clusters[*cluster][kind] += 1.0;
        }
        let all = of_clusters.iter().fold([0.0; 4], |all, of| KINDS.map(|kind| all[kind] + of[kind]));
        // The number of the rows that count, and the design effect of the mean of their parts.
        let effect_of = |counted: [bool; 4], parts: Parts| {
            let sum = |of: &[f64; 4], value: &dyn Fn(f64) -> f64| -> f64 {
                KINDS.into_iter().filter(|kind| counted[*kind]).map(|kind| of[kind] * value(parts[kind])).sum()
            };
            let n = sum(&all, &|_| 1.0);
            let mean = sum(&all, &|part| part) / n;
            let variance = sum(&all, &|part| (part - mean).powi(2)) / n;
            let deviations = of_clusters.iter().map(|of| (sum(of, &|_| 1.0), sum(of, &|part| part - mean)));
            (n, effect(deviations, variance))
        };
        let share = |has: usize, lacks: usize| {
            let counted = KINDS.map(|kind| kind == has || kind == lacks);
            let (n, effect) = effect_of(counted, KINDS.map(|kind| f64::from(u8::from(kind == has))));
            (n / effect).max(1.0)
        };
        Self {
            shares: [share(0, 2), share(3, 1), share(0, 1), share(3, 2)],
            benefit: parts(threshold / (1.0 - threshold)).map(|parts| effect_of([true; 4], parts).1),
            one_cluster: clusters.count() < 2,
        }
    }
}

impl ThresholdRow {
    /// The row of a threshold from its counts of hits, false alarms, missed and spared rows; there is at least one row.
    fn new(threshold: f64, counts: [usize; 4], sampling: &Sampling) -> Self {
        let [tp, fp, fn_, tn] = counts;
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        let rows = (tp + fp + fn_ + tn) as f64;
        let weight = threshold / (1.0 - threshold);
        let benefit = |hits: usize, alarms: usize| hits as f64 / rows - alarms as f64 / rows * weight;
        let net_benefit = benefit(tp, fp);
        // A hit has the part 1 in the mean, a false alarm the part −weight, any other row 0.
        let variance = (tp as f64 + fp as f64 * weight * weight) / rows - net_benefit * net_benefit;
        let half = two_sided_quantile(0.95) * (sampling.benefit[0] * variance.max(0.0) / rows).sqrt();
        let alike = [tp, fp, fn_ + tn].iter().filter(|count| **count > 0).count() == 1;
        let shares = [share(tp, tp + fn_), share(tn, tn + fp), share(tp, tp + fp), share(tn, tn + fn_)];
        let [sensitivity, specificity, ppv, npv] = shares;
        let interval = |at: usize| {
            let share = shares[at].map(|value| Share { value, independent: sampling.shares[at] })?;
            Some(share.interval(0.95))
        };
        Self {
            threshold,
            true_positives: tp,
            false_positives: fp,
            false_negatives: fn_,
            true_negatives: tn,
            sensitivity,
            specificity,
            ppv,
            npv,
            share_intervals: [interval(0), interval(1), interval(2), interval(3)],
            net_benefit,
            net_benefit_interval: (!alike && !sampling.one_cluster)
                .then_some(Interval { lo: net_benefit - half, hi: net_benefit + half }),
            net_benefit_all: benefit(tp + fn_, fp + tn),
            useful: useful(threshold, counts, sampling.benefit),
        }
    }

    /// Whether the net benefit is above that of flagging every row and of flagging none, and whether it is so beyond
    /// chance: whether both differences have 95 % intervals above 0, counting one false alarm and one missed row more than
    /// there are, because none among few rows does not mean that there are none. Of clusters, as many more as are worth one
    /// independent row.
    pub fn is_useful(&self) -> (bool, bool) {
        self.useful
    }
}

/// See [`ThresholdRow::is_useful`].
fn useful(threshold: f64, counts: [usize; 4], design_effects: [f64; 2]) -> (bool, bool) {
    let rows = counts.iter().sum::<usize>() as f64;
    let weight = threshold / (1.0 - threshold);
    let [flag, spare] = parts(weight);
    // The sum of the parts and that of their squares, with so many more rows of an adverse kind. From counts, so that equal
    // benefits are equal.
    let sums = |parts: Parts, adverse: usize, more: f64| {
        let rows = |kind: usize| counts[kind] as f64 + if kind == adverse { more } else { 0.0 };
        (0..4).fold((0.0, 0.0), |(sum, squares), kind| {
            (sum + rows(kind) * parts[kind], squares + rows(kind) * parts[kind].powi(2))
        })
    };
    let gain = |parts: Parts| sums(parts, 0, 0.0).0;
    let least = |parts: Parts, adverse: usize, effect: f64| {
        let (sum, squares) = sums(parts, adverse, effect);
        let variance = squares / rows - (sum / rows).powi(2);
        sum - two_sided_quantile(0.95) * (effect * variance.max(0.0) * rows).sqrt()
    };
    let above = |values: [f64; 2]| values.iter().all(|value| *value > ROUNDING);
    let [of_flag, of_spare] = design_effects;
    (above([gain(flag), gain(spare)]), above([least(flag, 1, of_flag), least(spare, 2, of_spare)]))
}

/// The thresholds of a decision curve: 0.001 to 0.009 by 0.001, then 0.01 to 0.99 by 0.01.
pub fn decision_thresholds() -> Vec<f64> {
    let fine = (1..10).map(|i| f64::from(i) / 1000.0);
    fine.chain((1..100).map(|i| f64::from(i) / 100.0)).collect()
}

/// The rows of some thresholds, each strictly between 0 and 1; `None` unless there are two classes.
pub fn threshold_table(predictions: &ClassPredictions<'_>, thresholds: &[f64]) -> Option<Vec<ThresholdRow>> {
    if predictions.classes() != 2 {
        return None;
    }
    let sorted = |class: usize| {
        let rows = predictions.rows().zip(predictions.labels());
        let mut of: Vec<f64> = rows.filter(|(_, label)| **label == class).map(|(row, _)| row[1]).collect();
        of.sort_by(f64::total_cmp);
        of
    };
    let (negatives, positives) = (sorted(0), sorted(1));
    let row = |&threshold: &f64| {
        let below = |of: &[f64]| of.partition_point(|p| *p < threshold);
        let (missed, spared) = (below(&positives), below(&negatives));
        let counts = [positives.len() - missed, negatives.len() - spared, missed, spared];
        let sampling = match predictions.clusters() {
            None => Sampling::independent(counts),
            Some(clusters) => Sampling::of(clusters, predictions, threshold),
        };
        ThresholdRow::new(threshold, counts, &sampling)
    };
    Some(thresholds.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(labels: &[usize], p: &[f64], thresholds: &[f64]) -> Vec<ThresholdRow> {
        let probabilities = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let predictions = ClassPredictions::new(labels.to_vec(), 2, probabilities).unwrap();
        threshold_table(&predictions, thresholds).unwrap()
    }

    #[test]
    fn a_row_at_the_threshold_is_flagged() {
        let [row] = table(&[0, 1, 1, 0, 1], &[0.5, 0.5, 0.25, 0.25, 1.0], &[0.5])[..] else { panic!() };
        let counts = [row.true_positives, row.false_positives, row.false_negatives, row.true_negatives];
        assert_eq!(counts, [2, 1, 1, 1]);
        assert_eq!((row.sensitivity, row.specificity), (Some(2.0 / 3.0), Some(0.5)));
        assert_eq!((row.ppv, row.npv), (Some(2.0 / 3.0), Some(0.5)));
        // Two hits and one false alarm of the same weight in five rows; flagging all: three and two.
        assert!((row.net_benefit - 0.2).abs() < 1e-15 && (row.net_benefit_all - 0.2).abs() < 1e-15);
        assert_eq!(row.is_useful(), (false, false));
        // Parts 1, 1, −1, 0, 0: variance 3/5 − 1/25.
        let half = 1.959_963_984_540_054 * (0.56_f64 / 5.0).sqrt();
        let Interval { lo, hi } = row.net_benefit_interval.unwrap();
        assert!((lo - (0.2 - half)).abs() < 1e-12 && (hi - (0.2 + half)).abs() < 1e-12);
    }

    #[test]
    fn a_model_is_useful_beyond_chance_where_both_differences_are() {
        // 40 hits, 10 false alarms, 10 missed and 40 spared of 100 rows at one half: 0.3 hits per row more than flagging
        // none, and as many more than flagging all; with an adverse row more 0.29, with the variance 0.51 − 0.29².
        let row = |of| ThresholdRow::new(0.5, of, &Sampling::independent(of));
        assert!(1.959_963_984_540_054 * ((0.51 - 0.29_f64.powi(2)) / 100.0).sqrt() < 0.29);
        assert_eq!(row([40, 10, 10, 40]).is_useful(), (true, true));
        // 2 and 1 of 6 rows: a third of a hit per row, ± 0.38.
        assert_eq!(row([2, 1, 1, 2]).is_useful(), (true, false));
        // None missed of eleven that are spared, at a threshold of 0.005: one missed would outweigh them.
        let none_missed = [188, 601, 0, 11];
        let row_of_few = ThresholdRow::new(0.005, none_missed, &Sampling::independent(none_missed));
        assert_eq!(row_of_few.is_useful(), (true, false));
        // Better than flagging none, worse than flagging all.
        assert_eq!(row([60, 10, 20, 10]).is_useful(), (false, false));
    }

    #[test]
    fn the_rows_of_a_single_patient_say_nothing_of_the_sampling() {
        let [of_rows] = table(&[0, 1, 1, 0], &[0.5, 0.5, 0.25, 0.25], &[0.5])[..] else { panic!() };
        let values = [0.5, 0.5, 0.25, 0.25].iter().flat_map(|p| [1.0 - p, *p]).collect();
        let predictions = ClassPredictions::new(vec![0, 1, 1, 0], 2, values).unwrap();
        let one = predictions.with_clusters(Clusters::new([7; 4])).unwrap();
        let [of_one] = threshold_table(&one, &[0.5]).unwrap()[..] else { panic!() };
        assert_eq!(of_one.net_benefit, of_rows.net_benefit);
        assert_eq!((of_one.net_benefit_interval, of_rows.net_benefit_interval.is_some()), (None, true));
    }

    #[test]
    fn the_interval_of_the_net_benefit_is_that_of_the_sums_of_two_patients() {
        // At ¼ a false alarm weighs a third of a hit. One patient has two hits and a false alarm, the other a false alarm, a
        // missed and a spared row: 2/9 per row, and sums that are 1 above and 1 below that of three such rows.
        let (labels, p) = (vec![1, 1, 0, 0, 1, 0], [0.5, 0.5, 0.5, 0.5, 0.125, 0.125]);
        let values = p.iter().flat_map(|p| [1.0 - p, *p]).collect();
        let predictions = ClassPredictions::new(labels, 2, values).unwrap();
        let two = predictions.with_clusters(Clusters::new([7, 7, 7, 3, 3, 3])).unwrap();
        let [row] = threshold_table(&two, &[0.25]).unwrap()[..] else { panic!() };
        let Interval { lo, hi } = row.net_benefit_interval.unwrap();
        // m/(m − 1) · (1² + 1²)/6², whose root is a third.
        let half = 1.959_963_984_540_054 / 3.0;
        assert!((lo - (2.0 / 9.0 - half)).abs() < 1e-12 && (hi - (2.0 / 9.0 + half)).abs() < 1e-12, "{lo} to {hi}");
    }

    #[test]
    fn nobody_flagged_and_one_class_have_no_shares_where_they_divide_by_zero() {
        let [none] = table(&[0, 1], &[0.1, 0.2], &[0.9])[..] else { panic!() };
        assert_eq!((none.ppv, none.npv, none.net_benefit, none.net_benefit_interval), (None, Some(0.5), 0.0, None));
        let [sick] = table(&[1, 1], &[0.1, 0.95], &[0.9])[..] else { panic!() };
        assert_eq!((sick.specificity, sick.sensitivity, sick.net_benefit_all), (None, Some(0.5), 1.0));
    }

    #[test]
    fn the_curve_begins_fine_and_is_ascending() {
        let thresholds = decision_thresholds();
        assert_eq!((thresholds.len(), thresholds[0], thresholds[9], thresholds[107]), (108, 0.001, 0.01, 0.99));
        assert!(thresholds.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
