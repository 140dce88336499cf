//! Mean and standard deviation in two passes of exact sums over parts of the values. The parts may be at different
//! places: the bits are those of all values at one place.

use crate::ExactSum;
use serde::{Deserialize, Serialize};

/// The first pass: the sum of some values of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnSum {
    /// The exact sum.
    pub sum: ExactSum,
    /// The value of all rows, where they have the same one. With a rounded mean, their deviation may be a few units of
    /// the last bit instead of 0.
    pub constant: Option<f64>,
}

impl ColumnSum {
    /// The sum of some values, in any order.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let first = values.clone().next();
        let constant = first.filter(|first| values.clone().all(|value| value == *first));
        Self { sum: values.collect(), constant }
    }

    /// The mean of all values: the value of a column that is constant, else the exact sum over their number.
    ///
    /// # Arguments
    /// - `parts`: the sums of all parts of the column.
    /// - `count`: the number of values in all parts.
    pub fn mean(parts: &[&Self], count: usize) -> f64 {
        match parts.first().and_then(|part| part.constant) {
            Some(value) if parts.iter().all(|part| part.constant == Some(value)) => value,
            _ => {
                let mut all = ExactSum::default();
                parts.iter().for_each(|part| all.merge(&part.sum));
                all.value() / count as f64
            }
        }
    }
}

/// The second pass: the exact sum of squared deviations of some values from the mean of all values. Each deviation and
/// each square is rounded for itself.
pub fn squared_deviations(values: impl Iterator<Item = f64>, mean: f64) -> ExactSum {
    values.map(|x| (x - mean) * (x - mean)).collect()
}

/// The standard deviation of all values, with divisor n; 1 where it is 0 or not finite, so that a constant column keeps
/// its scale.
///
/// # Arguments
/// - `squares`: the [`squared_deviations`] of all parts.
/// - `count`: the number of values n in all parts.
pub fn standard_deviation<'a>(squares: impl IntoIterator<Item = &'a ExactSum>, count: usize) -> f64 {
    let mut all = ExactSum::default();
    squares.into_iter().for_each(|part| all.merge(part));
    not_zero((all.value() / count as f64).sqrt())
}

/// A scale that can be divided by.
pub(crate) fn not_zero(scale: f64) -> f64 {
    if scale > 0.0 && scale.is_finite() { scale } else { 1.0 }
}
