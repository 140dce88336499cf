//! Scores and intervals of real targets.

use serde::Serialize;

use super::score::Score;
use crate::metrics::{MetricError, RegressionPredictions, predictive_moments, quantile};

/// An interval of real targets, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TargetInterval {
    /// The lower end; −∞ where nothing bounds it.
    pub lower: f64,
    /// The upper end.
    pub upper: f64,
}

impl TargetInterval {
    /// Whether a target lies in it.
    pub fn holds(&self, target: f64) -> bool {
        (self.lower..=self.upper).contains(&target)
    }
}

/// The score of the target of every row, `[n]`.
///
/// # Arguments
/// * `level`: the level of [`Score::Cqr`]'s interval; the other score does not use it
///
/// # Errors
/// A score of classes, a level outside (0, 1), or a spread so small that a score is not finite.
pub fn target_scores(
    score: Score,
    predictions: &RegressionPredictions<'_>,
    level: f64,
) -> Result<Vec<f64>, MetricError> {
    let bands = bands(score, predictions, level)?;
    let of = |(band, y): (&Band, &f64)| match band {
        Band::Around { mean, sd } => (y - mean).abs() / sd,
        Band::Between { lower, upper } => (lower - y).max(y - upper),
    };
    let scores: Vec<f64> = bands.iter().zip(predictions.target()).map(of).collect();
    match scores.iter().position(|score| !score.is_finite()) {
        Some(index) => Err(MetricError::NotFinite { what: "score", index, value: scores[index] }),
        None => Ok(scores),
    }
}

/// The interval of every row, `[n]`: the targets whose score does not exceed the threshold. `None` where there are none:
/// CQR makes intervals narrower where the model's are too wide, and a narrow one may vanish.
///
/// # Arguments
/// * `threshold`: that of the calibration rows' scores at the same level; `None` for all numbers
///
/// # Errors
/// As [`target_scores`].
pub fn intervals(
    score: Score,
    predictions: &RegressionPredictions<'_>,
    level: f64,
    threshold: Option<f64>,
) -> Result<Vec<Option<TargetInterval>>, MetricError> {
    let Some(threshold) = threshold else {
        let all = TargetInterval { lower: f64::NEG_INFINITY, upper: f64::INFINITY };
        return Ok(vec![Some(all); predictions.rows()]);
    };
    let of = |band: Band| {
        let (lower, upper) = match band {
            Band::Around { mean, sd } => (mean - threshold * sd, mean + threshold * sd),
            Band::Between { lower, upper } => (lower - threshold, upper + threshold),
        };
        (lower <= upper).then_some(TargetInterval { lower, upper })
    };
    Ok(bands(score, predictions, level)?.into_iter().map(of).collect())
}

/// What a prediction says of where a target lies.
enum Band {
    Around { mean: f64, sd: f64 },
    Between { lower: f64, upper: f64 },
}

fn bands(score: Score, predictions: &RegressionPredictions<'_>, level: f64) -> Result<Vec<Band>, MetricError> {
    if !(level > 0.0 && level < 1.0) {
        return Err(MetricError::Share { what: "the level of an interval", value: level });
    }
    match score {
        Score::Normalised => {
            let moments = predictive_moments(predictions);
            let each = moments.mean.into_iter().zip(moments.variance);
            Ok(each.map(|(mean, variance)| Band::Around { mean, sd: variance.sqrt() }).collect())
        }
        Score::Cqr => {
            let of = |row| {
                let end = |share| quantile(predictions, row, share);
                Ok(Band::Between { lower: end(0.5 - 0.5 * level)?, upper: end(0.5 + 0.5 * level)? })
            };
            (0..predictions.rows()).map(of).collect()
        }
        Score::Lac | Score::Aps | Score::Raps { .. } => {
            Err(MetricError::OtherTask { score: score.word(), is_for: "classes" })
        }
    }
}
