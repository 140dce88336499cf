//! How well a score ranks the mistakes: AUROC, FPR at 95 % TPR, area under the risk-coverage curve.
//!
//! Sources: Hanley and McNeil 1982 (AUROC as a rank statistic), Hendrycks and Gimpel 2017
//! (misclassification detection, FPR95), Geifman and El-Yaniv 2017 (AURC).

use super::error::{MetricError, check_finite, check_length, finite};
use super::ranking::{Ranking, expected_positives};

/// Probability that a positive scores higher than a negative, ties one half; `None` when one class
/// is absent.
///
/// # Errors
/// Lengths that differ or a score that is not finite.
pub fn auroc(score: &[f64], positive: &[bool]) -> Result<Option<f64>, MetricError> {
    let ranking = Ranking::new(score, positive)?;
    Ok(ranking.auroc(&ranking.once()))
}

/// The smallest false positive rate at a true positive rate of at least 95 %: the share of negatives that score at
/// least as high as the `ceil(0.95 n_pos)`-th largest positive; `None` when one class is absent.
///
/// # Errors
/// Lengths that differ or a score that is not finite.
pub fn fpr95(score: &[f64], positive: &[bool]) -> Result<Option<f64>, MetricError> {
    check(score, positive)?;
    let of = |wanted: bool| -> Vec<f64> {
        score.iter().zip(positive).filter(|(_, is)| **is == wanted).map(|(s, _)| *s).collect()
    };
    let (mut positives, negatives) = (of(true), of(false));
    if positives.is_empty() || negatives.is_empty() {
        return Ok(None);
    }
    positives.sort_by(|a, b| b.total_cmp(a));
    let threshold = positives[(95 * positives.len()).div_ceil(100) - 1];
    let passed = negatives.iter().filter(|s| **s >= threshold).count();
    Ok(finite(passed as f64 / negatives.len() as f64))
}

/// Area under the risk-coverage curve: mean over `i = 1..n` of the error rate among the `i` most
/// confident rows; `None` without a row.
///
/// # Errors
/// Lengths that differ or a confidence that is not finite.
pub fn aurc(confidence: &[f64], error: &[bool]) -> Result<Option<f64>, MetricError> {
    let risks = risk_coverage(confidence, error)?;
    Ok(if risks.is_empty() { None } else { finite(risks.iter().sum::<f64>() / risks.len() as f64) })
}

/// The risk-coverage curve: entry `i` is the error rate among the `i + 1` most confident rows, `[n]`.
/// Where some rows of equal confidence are among them and some are not, it is the mean over all choices.
///
/// # Errors
/// Lengths that differ or a confidence that is not finite.
pub fn risk_coverage(confidence: &[f64], error: &[bool]) -> Result<Vec<f64>, MetricError> {
    check(confidence, error)?;
    let mut order: Vec<usize> = (0..confidence.len()).collect();
    // -0.0 and 0.0 are a tie.
    order.sort_by(|&a, &b| (confidence[b] + 0.0).total_cmp(&(confidence[a] + 0.0)));
    let errors = expected_positives(&order, confidence, error);
    Ok(errors.into_iter().enumerate().skip(1).map(|(rows, errors)| errors / rows as f64).collect())
}

fn check(score: &[f64], of: &[bool]) -> Result<(), MetricError> {
    check_length("labels of the scores", of.len(), score.len())?;
    check_finite("score", score)
}

#[cfg(test)]
mod tests {
    use super::super::calibration::equal_mass;
    use super::*;

    /// All orders of the positions `0..n`.
    fn orders(n: usize) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for next in 0..n {
            let inserted = |order: &Vec<usize>| {
                (0..=order.len()).map(|at| [&order[..at], &[next], &order[at..]].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(inserted).collect();
        }
        all
    }

    /// Six rows, among them three and two of equal confidence.
    const CONFIDENCE: [f64; 6] = [0.9, 0.6, 0.6, 0.8, 0.6, 0.8];
    const RIGHT: [bool; 6] = [true, false, true, false, false, true];

    #[test]
    fn aurc_is_the_mean_over_all_orders_of_tied_rows_and_the_same_for_each() {
        let wrong = RIGHT.map(|right| !right);
        // The mean over all orders of the six rows, each sorted by confidence alone and stable.
        let mut sum = 0.0;
        let all = orders(6);
        for order in &all {
            let mut sorted = order.clone();
            sorted.sort_by(|&a, &b| CONFIDENCE[b].total_cmp(&CONFIDENCE[a]));
            let risk = |rows: usize| sorted[..rows].iter().filter(|row| wrong[**row]).count() as f64 / rows as f64;
            sum += (1..=6).map(risk).sum::<f64>() / 6.0;
            let (confidence, wrong): (Vec<f64>, Vec<bool>) =
                order.iter().map(|&row| (CONFIDENCE[row], wrong[row])).unzip();
            assert_eq!(aurc(&confidence, &wrong).unwrap(), aurc(&CONFIDENCE, &RIGHT.map(|right| !right)).unwrap());
        }
        let expected = sum / all.len() as f64;
        let found = aurc(&CONFIDENCE, &wrong).unwrap().unwrap();
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn bins_of_equal_mass_are_the_same_for_every_order_of_the_rows() {
        let bins = |order: &[usize]| {
            let (confidence, right): (Vec<f64>, Vec<bool>) =
                order.iter().map(|&row| (CONFIDENCE[row], RIGHT[row])).unzip();
            let cut = equal_mass(&confidence, &right, 4).unwrap();
            cut.bins().iter().map(|bin| (bin.n, bin.accuracy.unwrap())).collect::<Vec<_>>()
        };
        // Ascending: three rows at .6, of which one is right, two at .8, of which one is, and one at .9; cut 2, 2, 1, 1.
        let expected = [(2, 1.0 / 3.0), (2, (1.0 / 3.0 + 0.5) / 2.0), (1, 0.5), (1, 1.0)];
        for order in orders(6) {
            for ((n, accuracy), (rows, wanted)) in bins(&order).into_iter().zip(expected) {
                assert!(n == rows && (accuracy - wanted).abs() < 1e-12, "{order:?}: {accuracy} {wanted}");
            }
        }
    }
}
