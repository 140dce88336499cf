//! Split conformal prediction: sets of classes and intervals that hold the truth at a chosen level, from the scores of rows
//! that no training has seen.
//!
//! A [`Score`] says how badly a label fits a prediction. Of n calibration rows the ⌈(n + 1)·level⌉-th smallest score is the
//! [`threshold()`], and the set of a new row holds every label whose score does not exceed it. Where calibration rows and new
//! rows are exchangeable, the set holds the true label with at least this probability, whatever the model (Vovk, Gammerman
//! and Shafer 2005; Lei et al. 2018). The probability is over calibration rows and new row together, and over all rows: the
//! coverage of a class, or of the rows of one client, may lie below.
//!
//! ```
//! use fedstein_report::conformal::{Score, class_scores, class_set, threshold};
//! use fedstein_report::metrics::ClassPredictions;
//!
//! // Nine calibration rows, whose true class is always the first.
//! let of_first = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.4];
//! let probabilities: Vec<f64> = of_first.iter().flat_map(|p| [*p, 1.0 - p]).collect();
//! let calibration = ClassPredictions::new(vec![0; 9], 2, probabilities)?;
//! let scores = class_scores(Score::Lac, &calibration, None)?;
//! // ⌈(9 + 1)·0.8⌉ = 8: the eighth of nine scores.
//! let limit = threshold(&scores, 0.8)?;
//! assert_eq!(limit, Some(1.0 - 0.6));
//! assert_eq!(class_set(Score::Lac, &[0.7, 0.3], limit, None), [true, false]);
//! // Nine rows are too few for a level of 0.95: every set is all classes.
//! assert_eq!(threshold(&scores, 0.95)?, None);
//! # Ok::<(), fedstein_report::metrics::MetricError>(())
//! ```

mod classes;
mod counts;
mod score;
mod search;
mod targets;
#[cfg(test)]
mod tests;
mod threshold;

pub use classes::{class_scores, class_set, draws, draws_of};
pub use counts::SetCounts;
pub use score::Score;
pub use search::{QuantileSearch, counts_up_to};
pub use targets::{TargetInterval, intervals, target_scores};
pub use threshold::{LEVELS, expected_coverage, expected_share, fewest_rows, levels_with, rank, threshold};
