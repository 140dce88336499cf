//! What follows from deciding by a threshold on p(y = 1): hits, false alarms, and the net benefit of a decision curve.
//!
//! A row is flagged where p(y = 1) is at least the threshold. Source: Vickers and Elkin 2006. The net benefit at a
//! threshold t is TP/n − FP/n · t/(1 − t): the weight of a false alarm against a hit is what makes t the right
//! threshold.

use serde::Serialize;

use super::interval::Interval;
use super::normal::two_sided_quantile;
use super::predictions::ClassPredictions;

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
    /// Net benefit of flagging by the threshold, in hits per row.
    pub net_benefit: f64,
    /// Its 95 % interval, that of a mean over rows; `None` where all rows have the same part in it.
    pub net_benefit_interval: Option<Interval>,
    /// Net benefit of flagging every row. That of flagging none is 0.
    pub net_benefit_all: f64,
}

impl ThresholdRow {
    /// The row of a threshold from its counts; there is at least one row.
    fn new(threshold: f64, [tp, fp, fn_, tn]: [usize; 4]) -> Self {
        let share = |part: usize, whole: usize| (whole > 0).then(|| part as f64 / whole as f64);
        let rows = (tp + fp + fn_ + tn) as f64;
        let weight = threshold / (1.0 - threshold);
        let benefit = |hits: usize, alarms: usize| hits as f64 / rows - alarms as f64 / rows * weight;
        let net_benefit = benefit(tp, fp);
        // A hit has the part 1 in the mean, a false alarm the part −weight, any other row 0.
        let variance = (tp as f64 + fp as f64 * weight * weight) / rows - net_benefit * net_benefit;
        let half = two_sided_quantile(0.95) * (variance.max(0.0) / rows).sqrt();
        let alike = [tp, fp, fn_ + tn].iter().filter(|count| **count > 0).count() == 1;
        Self {
            threshold,
            true_positives: tp,
            false_positives: fp,
            false_negatives: fn_,
            true_negatives: tn,
            sensitivity: share(tp, tp + fn_),
            specificity: share(tn, tn + fp),
            ppv: share(tp, tp + fp),
            npv: share(tn, tn + fn_),
            net_benefit,
            net_benefit_interval: (!alike).then_some(Interval { lo: net_benefit - half, hi: net_benefit + half }),
            net_benefit_all: benefit(tp + fn_, fp + tn),
        }
    }

    /// Whether the net benefit is above that of flagging every row and of flagging none, and whether it is so beyond
    /// chance: whether both differences have 95 % intervals above 0, counting one false alarm and one missed row more than
    /// there are, because none among few rows does not mean that there are none.
    pub fn is_useful(&self) -> (bool, bool) {
        let rows = self.rows() as f64;
        let weight = self.threshold / (1.0 - self.threshold);
        // From counts, so that equal benefits are equal. Beside flagging all, a row that is spared is an alarm less, and one
        // that is missed a hit less.
        let flag = |more: f64| (self.true_positives as f64, -(self.false_positives as f64) - more);
        let spare = |more: f64| (-(self.false_negatives as f64) - more, self.true_negatives as f64);
        let gain = |(hits, alarms): (f64, f64)| hits + alarms * weight;
        let least = |(hits, alarms): (f64, f64)| {
            let sum = gain((hits, alarms));
            let variance = (hits.abs() + alarms.abs() * weight * weight) / rows - (sum / rows).powi(2);
            sum - two_sided_quantile(0.95) * (variance.max(0.0) * rows).sqrt()
        };
        let above = |values: [f64; 2]| values.iter().all(|value| *value > ROUNDING);
        (above([gain(flag(0.0)), gain(spare(0.0))]), above([least(flag(1.0)), least(spare(1.0))]))
    }

    /// Number of rows.
    fn rows(&self) -> usize {
        self.true_positives + self.false_positives + self.false_negatives + self.true_negatives
    }
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
        ThresholdRow::new(threshold, [positives.len() - missed, negatives.len() - spared, missed, spared])
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
        let row = |of| ThresholdRow::new(0.5, of);
        assert!(1.959_963_984_540_054 * ((0.51 - 0.29_f64.powi(2)) / 100.0).sqrt() < 0.29);
        assert_eq!(row([40, 10, 10, 40]).is_useful(), (true, true));
        // 2 and 1 of 6 rows: a third of a hit per row, ± 0.38.
        assert_eq!(row([2, 1, 1, 2]).is_useful(), (true, false));
        // None missed of eleven that are spared, at a threshold of 0.005: one missed would outweigh them.
        assert_eq!(ThresholdRow::new(0.005, [188, 601, 0, 11]).is_useful(), (true, false));
        // Better than flagging none, worse than flagging all.
        assert_eq!(row([60, 10, 20, 10]).is_useful(), (false, false));
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
