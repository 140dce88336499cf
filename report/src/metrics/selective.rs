//! How well a score ranks the mistakes: AUROC, FPR at 95 % TPR, area under the risk-coverage curve.
//!
//! Sources: Hanley and McNeil 1982 (AUROC as a rank statistic), Hendrycks and Gimpel 2017
//! (misclassification detection, FPR95), Geifman and El-Yaniv 2017 (AURC).

use super::error::{MetricError, check_finite, check_length, finite};
use super::ranking::Ranking;

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
/// confident rows (stable order on ties); `None` without a row.
///
/// # Errors
/// Lengths that differ or a confidence that is not finite.
pub fn aurc(confidence: &[f64], error: &[bool]) -> Result<Option<f64>, MetricError> {
    let risks = risk_coverage(confidence, error)?;
    Ok(if risks.is_empty() { None } else { finite(risks.iter().sum::<f64>() / risks.len() as f64) })
}

/// The risk-coverage curve: entry `i` is the error rate among the `i + 1` most confident rows,
/// `[n]`.
///
/// # Errors
/// Lengths that differ or a confidence that is not finite.
pub fn risk_coverage(confidence: &[f64], error: &[bool]) -> Result<Vec<f64>, MetricError> {
    check(confidence, error)?;
    let mut order: Vec<usize> = (0..confidence.len()).collect();
    order.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
    let mut errors = 0_usize;
    let risk = |(i, row): (usize, usize)| {
        errors += usize::from(error[row]);
        errors as f64 / (i + 1) as f64
    };
    Ok(order.into_iter().enumerate().map(risk).collect())
}

fn check(score: &[f64], of: &[bool]) -> Result<(), MetricError> {
    check_length("labels of the scores", of.len(), score.len())?;
    check_finite("score", score)
}
