//! The temperature of rows that lie in several places, from sums alone.

use super::error::{MetricError, check_finite, check_length};
use super::predictions::check_labels;
use super::temperature::{TEMPERATURE_LIMIT, floored_cross_entropy};

/// A question splits the range of ln T into this many parts.
const PARTS: usize = 16;
/// Width of ln T at which the search ends.
const RESOLUTION: f64 = 1e-12;

/// Finds the temperature T with the lowest NLL of `softmax(logits / T)` by asking for sums over rows, eleven times. The NLL is
/// convex in 1/T, so the sign of its derivative says on which side the minimum lies; a question has 15 temperatures between
/// the ends of what is left of ln T in [−3, 3].
///
/// The minimum is that of [`fit_temperature`](super::fit_temperature), up to its resolution.
#[derive(Debug, Clone, PartialEq)]
pub struct TemperatureSearch {
    lo: f64,
    hi: f64,
}

impl Default for TemperatureSearch {
    fn default() -> Self {
        Self { lo: -TEMPERATURE_LIMIT, hi: TEMPERATURE_LIMIT }
    }
}

impl TemperatureSearch {
    /// The next temperatures, ascending; `None` at the end.
    pub fn question(&self) -> Option<Vec<f64>> {
        (self.hi - self.lo > RESOLUTION).then(|| (1..PARTS).map(|part| self.point(part).exp()).collect())
    }

    /// Takes the sums of [`TemperatureSums::slope`] over all places, in the order of the question.
    pub fn answer(&mut self, slopes: &[f64]) {
        // The slope in 1/T is positive where T is below the minimum.
        let below = slopes.iter().take(PARTS - 1).take_while(|slope| **slope > 0.0).count();
        (self.lo, self.hi) = (self.point(below), self.point(below + 1));
    }

    /// The temperature that was found.
    pub fn temperature(&self) -> f64 {
        (0.5 * (self.lo + self.hi)).exp()
    }

    /// Whether it is at an end of the range: the minimum may be beyond.
    pub fn at_limit(&self) -> bool {
        (0.5 * (self.lo + self.hi)).abs() > TEMPERATURE_LIMIT - 1e-6
    }

    fn point(&self, part: usize) -> f64 {
        self.lo + (self.hi - self.lo) * (part as f64 / PARTS as f64)
    }
}

/// Sums over rows at one temperature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemperatureSums {
    /// The derivative of the sum of the NLLs by 1/T.
    pub slope: f64,
    /// The sum of the NLLs in nats, each at most ln 1e12.
    pub nll: f64,
}

/// The sums over some rows at each temperature.
///
/// # Arguments
/// * `logits`: `[n, classes]`, row-major; [`logits_of`](super::logits_of) predictions
/// * `labels`: `[n]`
///
/// # Errors
/// Lengths that do not fit, a label out of range, a logit that is not finite, a temperature that is not finite and positive.
pub fn temperature_sums(
    logits: &[f64],
    labels: &[usize],
    classes: usize,
    temperatures: &[f64],
) -> Result<Vec<TemperatureSums>, MetricError> {
    check_length("logits", logits.len(), labels.len() * classes)?;
    check_labels(labels, classes)?;
    check_finite("logit", logits)?;
    if let Some(index) = temperatures.iter().position(|t| !(t.is_finite() && *t > 0.0)) {
        return Err(MetricError::NotPositive { what: "temperature", index, value: temperatures[index] });
    }
    let at = |temperature: &f64| {
        let rows = || logits.chunks_exact(classes.max(1)).zip(labels);
        TemperatureSums {
            slope: rows().map(|(row, &label)| slope(row, label, temperature.recip())).sum(),
            nll: rows().map(|(row, &label)| floored_cross_entropy(row, label, temperature.recip())).sum(),
        }
    };
    Ok(temperatures.iter().map(at).collect())
}

/// The mean logit under `softmax(inverse * row)` minus that of the label.
fn slope(row: &[f64], label: usize, inverse: f64) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut weights, mut sum) = (0.0, 0.0);
    for logit in row {
        let weight = ((logit - largest) * inverse).exp();
        weights += weight;
        sum += weight * (logit - largest);
    }
    sum / weights - (row[label] - largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::fit_temperature;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The temperature of rows in several places, and how many questions it took.
    fn searched(places: &[(Vec<f64>, Vec<usize>)], classes: usize) -> (TemperatureSearch, usize) {
        let (mut search, mut asked) = (TemperatureSearch::default(), 0);
        while let Some(question) = search.question() {
            let mut slopes = vec![0.0; question.len()];
            for (logits, labels) in places {
                let sums = temperature_sums(logits, labels, classes, &question).unwrap();
                slopes.iter_mut().zip(sums).for_each(|(all, one)| *all += one.slope);
            }
            search.answer(&slopes);
            asked += 1;
        }
        (search, asked)
    }

    #[test]
    fn two_classes_have_the_temperature_of_the_closed_form() {
        // Of ten rows with the logits (0, 2), seven are of the second class: σ(2/T) = 0.7 at T = 2 / ln(7/3).
        let (logits, labels) = ([0.0, 2.0].repeat(10), [vec![1; 7], vec![0; 3]].concat());
        let (search, asked) = searched(&[(logits, labels)], 2);
        assert!((search.temperature() - 2.0 / (7.0_f64 / 3.0).ln()).abs() < 1e-11, "{}", search.temperature());
        assert!(!search.at_limit() && asked == 11);
    }

    #[test]
    fn rows_that_are_all_right_end_at_the_limit() {
        let (search, _) = searched(&[(vec![1.0, 0.0, 0.0, 1.0], vec![0, 1])], 2);
        assert!(search.at_limit() && (search.temperature().ln() + 3.0).abs() < 1e-9);
    }

    #[test]
    fn temperatures_that_cannot_be_are_refused() {
        for temperature in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            let refused = temperature_sums(&[1.0, 0.0], &[0], 2, &[1.0, temperature]).unwrap_err();
            assert!(matches!(refused, MetricError::NotPositive { index: 1, .. }), "{temperature}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn places_together_have_the_temperature_that_all_rows_have_in_one(
            rows in vec((vec(-6f64..6.0, 3), 0usize..3, 0usize..4), 2..60),
        ) {
            let mut places = vec![(Vec::new(), Vec::new()); 4];
            let (mut logits, mut labels) = (Vec::new(), Vec::new());
            for (row, label, at) in rows {
                places[at].0.extend_from_slice(&row);
                places[at].1.push(label);
                logits.extend(row);
                labels.push(label);
            }
            let fit = fit_temperature(&logits, &labels, 3).unwrap();
            let (search, _) = searched(&places, 3);
            prop_assert_eq!(search.at_limit(), fit.at_limit);
            // A fit that is not better than T = 1 is T = 1.
            if !fit.at_limit && fit.temperature != 1.0 {
                prop_assert!((search.temperature().ln() - fit.temperature.ln()).abs() < 1e-5, "{search:?} {fit:?}");
            }
        }
    }
}
