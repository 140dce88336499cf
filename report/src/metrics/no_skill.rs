//! The prediction without skill with which a model is compared: the frequencies of the classes, for every row.

use serde::Serialize;

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
            nll: shares.clone().filter(|share| *share > 0.0).map(|share| -share * share.ln()).sum(),
            brier: 1.0 - shares.map(|share| share * share).sum::<f64>(),
        })
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
}
