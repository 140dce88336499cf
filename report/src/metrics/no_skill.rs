//! The prediction without skill with which a model is compared: one for all rows, whatever their features.

use std::borrow::Cow;

use serde::Serialize;

use super::mixture::RegressionPredictions;
use super::regression::{crps, log_likelihood, rmse};

/// The scores of predicting every row with the frequencies of the classes among the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoSkill {
    /// The share of the most frequent class.
    pub accuracy: f64,
    /// The entropy of the frequencies, in nats.
    pub nll: f64,
    /// The Brier score, 0 to 2.
    pub brier: f64,
}

impl NoSkill {
    /// The scores over these labels of `classes` classes; `None` without a row.
    pub fn of(labels: &[usize], classes: usize) -> Option<Self> {
        let mut counts = vec![0usize; classes];
        labels.iter().for_each(|label| counts[*label] += 1);
        let shares = counts.iter().map(|count| *count as f64 / labels.len() as f64);
        (!labels.is_empty()).then(|| Self {
            accuracy: shares.clone().fold(0.0, f64::max),
            // Of one class it is 0, and not -0.
            nll: shares.clone().filter(|share| *share > 0.0).map(|share| -share * share.ln()).sum::<f64>() + 0.0,
            brier: 1.0 - shares.map(|share| share * share).sum::<f64>(),
        })
    }
}

/// The scores of predicting every row with the normal distribution that has the mean and the standard deviation of the
/// targets of the same rows, on the scale of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NoSkillTargets {
    /// The root mean squared error of the mean: the population standard deviation of the targets.
    pub rmse: f64,
    /// The negative log density, nats.
    pub nll: f64,
    /// The continuous ranked probability score, in the unit of the targets.
    pub crps: f64,
}

impl NoSkillTargets {
    /// The scores over these targets; `None` where all of them are equal, or without one.
    pub fn of(targets: &[f64]) -> Option<Self> {
        // The mean of equal numbers may not be that number, to the last digit.
        if targets.iter().all(|target| *target == targets[0]) {
            return None;
        }
        let n = targets.len() as f64;
        let mean = targets.iter().sum::<f64>() / n;
        let precision = n / targets.iter().map(|target| (target - mean).powi(2)).sum::<f64>();
        let of_each = |value| vec![value; targets.len()];
        let constant = RegressionPredictions::of(1, of_each(mean), of_each(precision), Cow::Borrowed(targets)).ok()?;
        Some(Self { rmse: rmse(&constant)?, nll: -log_likelihood(&constant)?, crps: crps(&constant)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{ClassPredictions, brier, nll};

    #[test]
    fn it_has_the_scores_of_the_frequencies_as_predictions() {
        let labels = vec![0, 2, 2, 1, 2, 2, 0, 2];
        let frequencies = [2.0 / 8.0, 1.0 / 8.0, 5.0 / 8.0].repeat(8);
        let predictions = ClassPredictions::new(labels.clone(), 3, frequencies).unwrap();
        let no_skill = NoSkill::of(&labels, 3).unwrap();
        assert!((no_skill.nll - nll(&predictions).value).abs() < 1e-12);
        assert!((no_skill.brier - brier(&predictions)).abs() < 1e-12);
        assert_eq!(no_skill.accuracy, 5.0 / 8.0);
        assert_eq!(NoSkill::of(&[], 3), None);
    }
    #[test]
    fn of_targets_it_has_the_scores_of_their_normal_distribution() {
        let targets = [1.0, 2.0, 3.0, 4.0, 10.0];
        let of = NoSkillTargets::of(&targets).unwrap();
        // The mean is 4 and the variance 10.
        let sd = 10f64.sqrt();
        assert!((of.rmse - sd).abs() < 1e-12);
        // The entropy of the normal distribution.
        let entropy = 0.5 * (2.0 * std::f64::consts::PI * std::f64::consts::E * 10.0).ln();
        assert!((of.nll - entropy).abs() < 1e-12, "{} {entropy}", of.nll);
        // Gneiting and Raftery 2007, equation (21), in Python; a numerical integral gives 1.78264.
        assert!((of.crps - 1.782_643_329_412).abs() < 1e-9, "{}", of.crps);
        // Seven times 0.1 is not 0.7, so that the mean is not 0.1.
        assert_eq!(NoSkillTargets::of(&[0.1; 7]), None);
        assert_eq!((NoSkillTargets::of(&[2.0, 2.0]), NoSkillTargets::of(&[])), (None, None));
    }
}
