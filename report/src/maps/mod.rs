//! Maps of probabilities that are learned from calibration rows: a temperature, vector scaling, isotonic regression.
//!
//! Each is fitted from sums or counts over rows, so that rows in several places give the map of all of them together:
//! [`crate::metrics::TemperatureSearch`], [`VectorSearch`], and [`IsotonicMap::fit`] from [`isotonic_counts`].
//!
//! ```
//! use fedstein_report::maps::{ProbabilityMap, VectorMap};
//! use fedstein_report::metrics::ClassPredictions;
//!
//! let predictions = ClassPredictions::new(vec![0], 2, vec![0.8, 0.2])?;
//! // Twice the odds of the first class.
//! let map = ProbabilityMap::Vector(VectorMap { scale: vec![1.0, 1.0], bias: vec![2.0_f64.ln(), 0.0] });
//! let mapped = map.apply(&predictions)?;
//! assert!((mapped.probabilities()[0] - 8.0 / 9.0).abs() < 1e-12);
//! # Ok::<(), fedstein_report::metrics::MetricError>(())
//! ```

mod isotonic;
mod newton;
#[cfg(test)]
mod tests;
mod vector;
mod vector_search;

pub use isotonic::{GRID, IsotonicMap, grid_point, isotonic_counts, isotonic_functions};
pub use vector::{VectorMap, vector_sums, vector_sums_len};
pub use vector_search::{PENALTY, VectorSearch};

use serde::{Deserialize, Serialize};

use crate::metrics::{ClassPredictions, MetricError, apply_temperature, logits_of};

/// The largest number of classes for which vector scaling and isotonic regression are fitted: the sums of vector scaling are
/// about 2 C².
pub const MOST_CLASSES: usize = 100;

/// The number of calibration rows of which each number of vector scaling needs one in ten: 20 for each class.
const VECTOR_ROWS_A_CLASS: usize = 20;
/// The number of calibration rows that isotonic regression needs for each class.
const ISOTONIC_ROWS_A_CLASS: usize = 100;

/// A map from probabilities to probabilities.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbabilityMap {
    /// softmax(ln p / T).
    Temperature(f64),
    /// Vector scaling.
    Vector(VectorMap),
    /// Isotonic regression.
    Isotonic(IsotonicMap),
}

/// The kind of a map that has more numbers than a temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapKind {
    /// Vector scaling.
    Vector,
    /// Isotonic regression.
    Isotonic,
}

impl ProbabilityMap {
    /// Whether every probability stays as it is: the temperature is 1.
    pub fn is_identity(&self) -> bool {
        *self == Self::Temperature(1.0)
    }

    /// The kind of the map; `None` for a temperature.
    pub fn kind(&self) -> Option<MapKind> {
        match self {
            Self::Temperature(_) => None,
            Self::Vector(_) => Some(MapKind::Vector),
            Self::Isotonic(_) => Some(MapKind::Isotonic),
        }
    }

    /// The predictions with the map applied.
    ///
    /// # Errors
    /// A temperature that is not finite and positive, or a map of another number of classes.
    pub fn apply(&self, predictions: &ClassPredictions<'_>) -> Result<ClassPredictions<'static>, MetricError> {
        match self {
            Self::Temperature(temperature) => apply_temperature(predictions, *temperature),
            Self::Vector(map) => map.apply(predictions),
            Self::Isotonic(map) => map.apply(predictions),
        }
    }
}

impl MapKind {
    /// The map of this kind of rows in one place.
    ///
    /// # Errors
    /// A sum over the rows is not finite, which no checked predictions give.
    pub fn fit(self, predictions: &ClassPredictions<'_>) -> Result<ProbabilityMap, MetricError> {
        let classes = predictions.classes();
        if self == Self::Isotonic {
            return IsotonicMap::fit(&isotonic_counts(predictions), classes).map(ProbabilityMap::Isotonic);
        }
        let (logits, mut search) = (logits_of(predictions), VectorSearch::new(predictions.len(), classes));
        while let Some(numbers) = search.question() {
            let sums = vector_sums(&logits, predictions.labels(), &VectorMap::of(numbers, classes)?)?;
            search.answer(&sums);
        }
        Ok(ProbabilityMap::Vector(search.map()))
    }

    /// The name of the kind in a config and in `model.json`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Isotonic => "isotonic",
        }
    }

    /// The name of the method, as a sentence begins with it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Vector => "Vector scaling",
            Self::Isotonic => "Isotonic regression",
        }
    }

    /// The smallest number of calibration rows of each class with which the map is fitted: ten for each of the two numbers that
    /// a class has in vector scaling, 100 for isotonic regression.
    pub fn fewest_rows_a_class(self) -> usize {
        match self {
            Self::Vector => VECTOR_ROWS_A_CLASS,
            Self::Isotonic => ISOTONIC_ROWS_A_CLASS,
        }
    }
}
