//! Accuracy and proper scores of class probabilities.

use serde::Serialize;

use super::error::{MetricError, check_length};
use super::predictions::{ClassPredictions, ParticleLogProbs, argmax, check_labels};

/// Floor of the probability inside a logarithm, so that one certain mistake costs 27.6 nats instead
/// of infinity.
pub const PROBABILITY_FLOOR: f64 = 1e-12;

/// Share of rows whose predicted class is the label: the ensemble's accuracy, the headline.
pub fn accuracy(predictions: &ClassPredictions<'_>) -> f64 {
    let right = predictions.rows().zip(predictions.labels()).filter(|(row, label)| argmax(row) == **label).count();
    right as f64 / predictions.len() as f64
}

/// Mean over particles of each particle's accuracy: the number that the reference programs print.
///
/// # Errors
/// Labels out of range or not one per row.
pub fn accuracy_mean_particle(log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<f64, MetricError> {
    check_length("labels", labels.len(), log_probs.rows())?;
    check_labels(labels, log_probs.classes())?;
    let mut values = vec![0.0; log_probs.classes()];
    let mut is_right = |n, row, label| {
        log_probs.read_row(n, row, &mut values);
        argmax(&values) == label
    };
    let mut right = 0_usize;
    for n in 0..log_probs.particles() {
        right += labels.iter().enumerate().filter(|(row, label)| is_right(n, *row, **label)).count();
    }
    Ok(right as f64 / (labels.len() * log_probs.particles()) as f64)
}

/// A mean negative log-likelihood and the number of rows at the floor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NegativeLogLikelihood {
    /// `-mean ln max(p_label, 1e-12)`, nats.
    pub value: f64,
    /// Rows whose probability of the label lay below the floor.
    pub clamped: usize,
}

/// `-ln max(p, 1e-12)` of one probability.
pub(super) fn floored_nll(probability: f64) -> f64 {
    // Not a minus sign, which makes -0 of the 0 of a certain row.
    0.0 - probability.max(PROBABILITY_FLOOR).ln()
}

/// Negative log-likelihood of the predictive, with the number of floored rows.
pub fn nll(predictions: &ClassPredictions<'_>) -> NegativeLogLikelihood {
    let of_label = || predictions.rows().zip(predictions.labels()).map(|(row, &label)| row[label]);
    NegativeLogLikelihood {
        value: of_label().map(floored_nll).sum::<f64>() / predictions.len() as f64,
        clamped: of_label().filter(|p| *p < PROBABILITY_FLOOR).count(),
    }
}

/// Mean over particles of each particle's negative log-likelihood (Gibbs predictor), each floored like
/// [`nll`].
///
/// At least the ensemble's NLL by Jensen's inequality, where no probability of a label is below
/// the floor.
///
/// # Errors
/// Labels out of range or not one per row.
pub fn gibbs_nll(log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<f64, MetricError> {
    check_length("labels", labels.len(), log_probs.rows())?;
    check_labels(labels, log_probs.classes())?;
    let floor = PROBABILITY_FLOOR.ln();
    let sum: f64 = (0..log_probs.particles())
        .map(|n| {
            labels
                .iter()
                .enumerate()
                .map(|(row, &label)| 0.0 - log_probs.of_class(n, row, label).max(floor))
                .sum::<f64>()
        })
        .sum();
    Ok(sum / (labels.len() * log_probs.particles()) as f64)
}

/// Mean of `ln max_c p_c`: what the reference code of DSVGD prints as "log-likelihood"; it never
/// looks at a label.
pub fn reference_max(predictions: &ClassPredictions<'_>) -> f64 {
    let sum: f64 = predictions.rows().map(|row| -floored_nll(row[argmax(row)])).sum();
    sum / predictions.len() as f64
}

/// Squared distance of one row from the one-hot label.
pub(super) fn squared_error(row: &[f64], label: usize) -> f64 {
    row.iter().enumerate().map(|(class, p)| (p - f64::from(u8::from(class == label))).powi(2)).sum()
}

/// Brier score: mean over rows of `sum_c (p_c - [label = c])^2`, in `[0, 2]`, for two classes too
/// (Brier 1950).
pub fn brier(predictions: &ClassPredictions<'_>) -> f64 {
    let sum: f64 = predictions.rows().zip(predictions.labels()).map(|(row, &label)| squared_error(row, label)).sum();
    sum / predictions.len() as f64
}

/// Half of [`brier`], the squared error of `p(y = 1)`; `None` unless there are exactly two classes.
pub fn brier_binary(predictions: &ClassPredictions<'_>) -> Option<f64> {
    (predictions.classes() == 2).then(|| 0.5 * brier(predictions))
}

/// Scores of one class; shares are `None` where their denominator is 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassRow {
    /// The class.
    pub class: usize,
    /// Rows with this label.
    pub n: usize,
    /// Rows predicted as this class.
    pub predicted: usize,
    /// Share of this label's rows that are predicted right.
    pub recall: Option<f64>,
    /// Share of this prediction's rows that are right.
    pub precision: Option<f64>,
    /// Mean confidence of the rows predicted as this class.
    pub confidence: Option<f64>,
    /// `confidence - precision`: positive when the model trusts this prediction too much.
    pub gap: Option<f64>,
    /// Mean floored negative log-likelihood of this label's rows.
    pub nll: Option<f64>,
}

/// Recall, precision, confidence and NLL of every class, `[C]`.
pub fn per_class(predictions: &ClassPredictions<'_>) -> Vec<ClassRow> {
    #[derive(Clone, Default)]
    struct Sums {
        n: usize,
        predicted: usize,
        right: usize,
        confidence: f64,
        nll: f64,
    }
    let mut sums = vec![Sums::default(); predictions.classes()];
    for (row, &label) in predictions.rows().zip(predictions.labels()) {
        let predicted = argmax(row);
        sums[label].n += 1;
        sums[label].nll += floored_nll(row[label]);
        sums[predicted].predicted += 1;
        sums[predicted].confidence += row[predicted];
        sums[predicted].right += usize::from(predicted == label);
    }
    let share = |part: f64, whole: usize| (whole > 0).then(|| part / whole as f64);
    let row = |(class, s): (usize, &Sums)| ClassRow {
        class,
        n: s.n,
        predicted: s.predicted,
        recall: share(s.right as f64, s.n),
        precision: share(s.right as f64, s.predicted),
        confidence: share(s.confidence, s.predicted),
        gap: share(s.confidence - s.right as f64, s.predicted),
        nll: share(s.nll, s.n),
    };
    sums.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_counted() -> Result<(), MetricError> {
        let predictions = ClassPredictions::new(vec![1, 0], 2, vec![1.0, 0.0, 1.0, 0.0])?;
        let got = nll(&predictions);
        assert_eq!(got.clamped, 1);
        assert!((got.value - 0.5 * 27.631_021_115_928_547).abs() < 1e-12);
        Ok(())
    }

    #[test]
    fn a_class_that_is_never_predicted_has_no_precision() -> Result<(), MetricError> {
        let predictions = ClassPredictions::new(vec![0, 1], 2, vec![0.75, 0.25, 0.75, 0.25])?;
        let table = per_class(&predictions);
        assert_eq!((table[1].recall, table[1].precision, table[1].gap), (Some(0.0), None, None));
        assert_eq!((table[0].precision, table[0].gap), (Some(0.5), Some(0.25)));
        assert_eq!(brier_binary(&predictions), Some(0.5 * brier(&predictions)));
        Ok(())
    }

    #[test]
    fn every_class_has_the_numbers_of_its_rows_and_of_its_predictions() {
        // Two rows of class 0, of which one is taken for class 1, and one of class 1.
        let predictions =
            ClassPredictions::new(vec![0, 0, 1], 2, vec![0.75, 0.25, 0.375, 0.625, 0.125, 0.875]).unwrap();
        let rows = per_class(&predictions);
        let [first, second] = &rows[..] else { panic!() };
        assert_eq!((first.n, first.predicted, first.recall, first.precision), (2, 1, Some(0.5), Some(1.0)));
        assert_eq!((second.n, second.predicted, second.recall, second.precision), (1, 2, Some(1.0), Some(0.5)));
        assert_eq!((first.confidence, first.gap), (Some(0.75), Some(-0.25)));
        assert_eq!((second.confidence, second.gap), (Some(0.75), Some(0.25)));
        // The means of −ln 0.75 and −ln 0.375, and −ln 0.875.
        assert!((first.nll.unwrap() - 0.634_255_662_731_753_3).abs() < 1e-12, "{first:?}");
        assert!((second.nll.unwrap() - 0.133_531_392_624_522_6).abs() < 1e-12, "{second:?}");
    }
}
