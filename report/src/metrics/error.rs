//! The error of predictions that cannot be scored, and the checks of arrays.

use thiserror::Error;

/// The reason why a set of predictions cannot be scored. Rows, classes and particles are counted from 0.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MetricError {
    /// There are no rows.
    #[error("there are no rows to score")]
    NoRows,
    /// A set of particles without particles.
    #[error("there are no particles")]
    NoParticles,
    /// Fewer classes than a classification has.
    #[error("{got} class(es); a classification has at least 2")]
    TooFewClasses {
        /// Number of classes given.
        got: usize,
    },
    /// Two arrays that belong together differ in length.
    #[error("{what}: {got} values, expected {expected}")]
    Length {
        /// The array, in words.
        what: &'static str,
        /// Its length.
        got: usize,
        /// The length that the other arrays imply.
        expected: usize,
    },
    /// A probability outside `[0, 1]`, NaN or infinite.
    #[error("row {row}: the probability of class {class} is {value}; probabilities lie in [0, 1]")]
    Probability {
        /// Row of the prediction.
        row: usize,
        /// Class of the probability.
        class: usize,
        /// The value found.
        value: f64,
    },
    /// A particle's log probability that is NaN or above 0 by more than rounding.
    #[error("particle {particle}, row {row}: the log probability of class {class} is {value}; it must be at most 0")]
    LogProbability {
        /// Particle of the prediction.
        particle: usize,
        /// Row of the prediction.
        row: usize,
        /// Class of the log probability.
        class: usize,
        /// The value found.
        value: f64,
    },
    /// A row whose probabilities do not add up to 1.
    #[error("row {row}: the probabilities sum to {sum}; they must sum to 1 within {tolerance}")]
    RowSum {
        /// Row of the prediction.
        row: usize,
        /// Sum found.
        sum: f64,
        /// Largest distance from 1 that is accepted.
        tolerance: f64,
    },
    /// A label that names no class.
    #[error("row {row}: label {label} is out of range; {classes} classes have the labels 0 to {}", classes - 1)]
    Label {
        /// Row of the label.
        row: usize,
        /// The label found.
        label: usize,
        /// Number of classes.
        classes: usize,
    },
    /// A row in a group that has no name.
    #[error("row {row}: group {group} is out of range; {groups} group(s) have the numbers 0 to {}", groups.saturating_sub(1))]
    Group {
        /// The row.
        row: usize,
        /// The group found.
        group: usize,
        /// Number of groups.
        groups: usize,
    },
    /// Two groups of rows with one name.
    #[error("two groups have the name `{}`; names differ", crate::files::quoted(name))]
    GroupTwice {
        /// The name.
        name: String,
    },
    /// Groups of rows that are not known one by one.
    #[error("sums over rows have no groups of rows; the scores of sites are `RunSummary::sites`")]
    GroupsOfSums,
    /// A number that must be finite is not.
    #[error("{what} {index} is {value}; it must be finite")]
    NotFinite {
        /// The array, in words.
        what: &'static str,
        /// Position in the array.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A number that must be finite and greater than 0 is not.
    #[error("{what} {index} is {value}; it must be finite and greater than 0")]
    NotPositive {
        /// The array, in words.
        what: &'static str,
        /// Position in the array.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A number of bins that makes no histogram.
    #[error("{got} bins; choose between 1 and {max}")]
    Bins {
        /// Number of bins asked for.
        got: usize,
        /// Largest number of bins.
        max: usize,
    },
    /// Sums of scores that cannot be added: of another task.
    #[error("sums over labelled rows and sums over real targets cannot be added")]
    OtherSums,
    /// A sum of scores that no rows can give.
    #[error("sum {index} of the scores is {value}, which {rows} rows cannot give")]
    Sum {
        /// Position in the message.
        index: usize,
        /// The value found.
        value: f64,
        /// The number of rows of the message.
        rows: f64,
    },
    /// Counts of bins that are not as many as the rows.
    #[error("the bins count {got} rows, expected {expected}")]
    Counts {
        /// Rows of all bins.
        got: f64,
        /// Rows according to the rest of the message.
        expected: f64,
    },
    /// A share outside the open interval (0, 1).
    #[error("{what} is {value}; it must lie strictly between 0 and 1")]
    Share {
        /// The share, in words.
        what: &'static str,
        /// The value found.
        value: f64,
    },
    /// A corner of an isotonic regression whose probabilities are not in range.
    #[error(
        "corner {corner} of the isotonic regression of class {class} has the probability {value}; it must lie in {range}"
    )]
    Corner {
        /// The corner, from 0.
        corner: usize,
        /// The class whose probability is mapped.
        class: usize,
        /// The value found.
        value: f64,
        /// Where it must lie.
        range: &'static str,
    },
    /// A function of an isotonic regression that falls, or whose corners are not in order.
    #[error("function {function} of the isotonic regression falls, or its corners are not in order")]
    Falling {
        /// The function.
        function: usize,
    },
    /// A conformal score of another task.
    #[error("the score `{score}` is for {is_for}")]
    OtherTask {
        /// Its name.
        score: &'static str,
        /// The labels that it is for, in words.
        is_for: &'static str,
    },
}

/// `Ok` when an array has the length that its companions imply.
pub(crate) fn check_length(what: &'static str, got: usize, expected: usize) -> Result<(), MetricError> {
    if got == expected { Ok(()) } else { Err(MetricError::Length { what, got, expected }) }
}

/// `Ok` when every value is finite.
pub(crate) fn check_finite(what: &'static str, values: &[f64]) -> Result<(), MetricError> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(index) => Err(MetricError::NotFinite { what, index, value: values[index] }),
    }
}

/// `Some` of a finite number. Every number that leaves the module passes here.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The arithmetic mean; `None` if there are no values.
pub(super) fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let n = values.len();
    if n == 0 { None } else { finite(values.sum::<f64>() / n as f64) }
}
