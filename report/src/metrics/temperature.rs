//! Temperature scaling (Guo et al. 2017): one number T that divides every logit, fitted on rows
//! that are never reported.

use serde::Serialize;

use super::classification::{PROBABILITY_FLOOR, floored_nll};
use super::error::{MetricError, check_finite, check_length};
use super::golden_section::golden_section;
use super::predictions::{ClassPredictions, check_labels};

/// The search covers `ln T` in `[-3, 3]`.
pub const TEMPERATURE_LIMIT: f64 = 3.0;
/// Width of `ln T` at which the search stops; the objective is flat to rounding below it.
const RESOLUTION: f64 = 1e-10;

/// A fitted temperature.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TemperatureFit {
    /// T: above 1 the model was over-confident.
    pub temperature: f64,
    /// NLL of the fitting rows at T = 1 in nats, each row's at most ln 1e12.
    pub nll_before: f64,
    /// NLL of the fitting rows at T, in the same way.
    pub nll_after: f64,
    /// Whether the search ended at `exp(-3)` or `exp(3)`: the optimum may lie beyond (all rows
    /// right, for example).
    pub at_limit: bool,
}

/// Minimises the mean NLL of `softmax(logits / T)` over `ln T` by golden-section search; the NLL is convex in `1/T`. A floor
/// on probabilities, as reported NLLs have it, would make an overconfident mistake free of charge beyond the floor.
///
/// # Arguments
/// * `logits`: `[n, classes]`, row-major; log probabilities will do
/// * `labels`: `[n]`
///
/// # Errors
/// No rows, lengths that do not fit, a label out of range, a logit that is not finite.
pub fn fit_temperature(logits: &[f64], labels: &[usize], classes: usize) -> Result<TemperatureFit, MetricError> {
    if labels.is_empty() {
        return Err(MetricError::NoRows);
    }
    if classes < 2 {
        return Err(MetricError::TooFewClasses { got: classes });
    }
    check_length("logits", logits.len(), labels.len() * classes)?;
    check_labels(labels, classes)?;
    check_finite("logit", logits)?;
    let mean = |nll: fn(&[f64], usize, f64) -> f64, log_t: f64| {
        let inverse = (-log_t).exp();
        let rows = logits.chunks_exact(classes).zip(labels);
        rows.map(|(row, &label)| nll(row, label, inverse)).sum::<f64>() / labels.len() as f64
    };
    let exact = |log_t| mean(cross_entropy, log_t);
    let found = golden_section(exact, [-TEMPERATURE_LIMIT, TEMPERATURE_LIMIT], RESOLUTION, 0.0);
    let log_t = if exact(found) < exact(0.0) { found } else { 0.0 };
    Ok(TemperatureFit {
        temperature: log_t.exp(),
        nll_before: mean(floored_cross_entropy, 0.0),
        nll_after: mean(floored_cross_entropy, log_t),
        at_limit: log_t.abs() > TEMPERATURE_LIMIT - 1e-6,
    })
}

/// Logits of probabilities: their logarithms, floored at 1e-12 so that a probability of 0 stays
/// movable.
pub fn logits_of(predictions: &ClassPredictions<'_>) -> Vec<f64> {
    predictions.probabilities().iter().map(|&p| -floored_nll(p)).collect()
}

/// The predictions at temperature T, `softmax(ln p / T)`. The ranking inside a row, and therefore the
/// accuracy, is unchanged.
///
/// # Errors
/// A temperature that is not finite and positive.
pub fn apply_temperature(
    predictions: &ClassPredictions<'_>,
    temperature: f64,
) -> Result<ClassPredictions<'static>, MetricError> {
    if !(temperature.is_finite() && temperature > 0.0) {
        return Err(MetricError::NotPositive { what: "temperature", index: 0, value: temperature });
    }
    let mut probabilities = Vec::with_capacity(predictions.probabilities().len());
    for row in predictions.rows() {
        // Subtracting the largest logit first keeps every exponent at or below 0.
        let largest = row.iter().copied().fold(PROBABILITY_FLOOR, f64::max).ln();
        let start = probabilities.len();
        probabilities.extend(row.iter().map(|&p| ((-floored_nll(p) - largest) / temperature).exp()));
        let sum: f64 = probabilities[start..].iter().sum();
        probabilities[start..].iter_mut().for_each(|p| *p /= sum);
    }
    predictions.with_probabilities(probabilities)
}

/// [`cross_entropy`], floored like every NLL that is reported.
pub(super) fn floored_cross_entropy(row: &[f64], label: usize, inverse: f64) -> f64 {
    cross_entropy(row, label, inverse).min(-PROBABILITY_FLOOR.ln())
}

/// `-ln softmax(inverse * row)[label]`.
fn cross_entropy(row: &[f64], label: usize, inverse: f64) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|logit| ((logit - largest) * inverse).exp()).sum();
    sum.ln() - (row[label] - largest) * inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_all_correct_end_at_the_limit() -> Result<(), MetricError> {
        let fit = fit_temperature(&[1.0, 0.0, 0.0, 1.0], &[0, 1], 2)?;
        assert!(fit.at_limit && fit.temperature < 0.06);
        Ok(())
    }

    #[test]
    fn a_certain_mistake_costs_more_the_lower_the_temperature() -> Result<(), MetricError> {
        // 999 rows are right by a gap of 2, and one is wrong by ln 1e12. The slope in β = 1/T is 0 where
        // 999·2/(1 + e^2β) = ln 1e12, up to 1/(1 + e^(27.6 β)).
        let (mut logits, mut labels) = ([2.0, 0.0].repeat(999), vec![0; 999]);
        logits.extend([0.0, 1e12_f64.ln()]);
        labels.push(0);
        let fit = fit_temperature(&logits, &labels, 2)?;
        let inverse = 0.5 * (1998.0 / 1e12_f64.ln() - 1.0).ln();
        assert!((fit.temperature - 1.0 / inverse).abs() < 1e-6 && !fit.at_limit, "{fit:?}");
        Ok(())
    }

    #[test]
    fn a_certain_mistake_is_corrected_by_the_temperature() -> Result<(), MetricError> {
        let predictions = ClassPredictions::new(vec![1], 2, vec![1.0, 0.0])?;
        let fit = fit_temperature(&logits_of(&predictions), predictions.labels(), 2)?;
        assert!(fit.nll_after < fit.nll_before && fit.temperature > 1.0);
        Ok(())
    }
}
