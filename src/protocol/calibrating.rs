//! What a server asks a client about the rows that it holds out for calibration. The answers are counts and sums.

use serde::{Deserialize, Serialize};

use crate::report::conformal::Score;
use crate::report::maps::MapKind;

/// The name of temperatures in a request, ascending: `[m]`.
pub const TEMPERATURES: &str = "temperatures";
/// The name of the derivatives by 1/T of the sum of the NLLs in a reply, one for each temperature: `[m]`.
pub const SLOPES: &str = "slopes";
/// The name of the sums of the NLLs in a reply, one for each temperature: `[m]`.
pub const NLLS: &str = "nlls";
/// The name of the numbers of rows of each class in a reply: `[C]`.
pub const CLASSES: &str = "classes";
/// The name of the numbers of a vector scaling in a request: `[2, C]`, the factors first.
pub const NUMBERS: &str = "numbers";
/// The name of the sums at these numbers in a reply: those of [`vector_sums`](crate::report::maps::vector_sums).
pub const SUMS: &str = "sums";
/// The name of the counts of rows on the grid of isotonic regression in a reply: `[functions, points, 2]`, rows and outcomes.
pub const GRID_COUNTS: &str = "grid_counts";
/// The name of a fitted map in a request: `[2, C]` of a vector scaling, or `[m, 3]`, the function, the probability and the
/// value of each corner of an isotonic regression.
pub const MAP: &str = "map";
/// The name of levels in a request: `[L]`.
pub const LEVELS: &str = "levels";
/// The name of thresholds in a request, ascending for each level: `[L, m]`; of those that were found, `[L]`.
pub const THRESHOLDS: &str = "thresholds";
/// The name of the numbers of scores up to each threshold in a reply: `[L, m]`.
pub const COUNTS: &str = "counts";
/// The name of the counts over the sets of the test rows in a reply: `[1 + C, 6]`, of all rows and of each class.
pub const SETS: &str = "sets";
/// The name of sums of scores over the test rows in a reply, of the published probabilities.
pub const BEFORE: &str = "scores_before";
/// The same of the probabilities at the temperature, or after the map.
pub const AFTER: &str = "scores_after";

/// The largest number of points in a question, for each level: what a site answers at once.
pub const MOST_POINTS: usize = 1024;
/// The largest number of levels in a question.
pub const MOST_LEVELS: usize = 64;

/// What is asked. The global particles come with every question.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibrating {
    /// The number of calibration rows.
    Rows,
    /// Sums over the calibration rows at each of [`TEMPERATURES`].
    Temperatures,
    /// How many calibration rows each class has.
    Classes,
    /// Sums over the calibration rows at the [`NUMBERS`] of a vector scaling.
    Vector,
    /// Counts of the calibration rows on the grid of isotonic regression.
    Grid,
    /// The sums of the NLLs of the calibration rows without and with the [`MAP`] of this kind.
    Mapped(MapKind),
    /// How many scores of the calibration rows are up to each of [`THRESHOLDS`].
    Counts(ScoreForm),
    /// What the sets of the client's own test rows hold, and the scores of their probabilities.
    Test(TestForm),
}

/// How scores of rows are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreForm {
    /// The score.
    pub score: Score,
    /// The temperature of the probabilities; 1 leaves them as they are.
    pub temperature: f64,
    /// The seed of the score's random form; `None` for the form without chance.
    pub seed: Option<u64>,
}

/// What is found out on test rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestForm {
    /// The form of the sets; `None` where there are no sets.
    pub sets: Option<SetForm>,
    /// The temperature whose scores are compared with those at 1; `None` where none was fitted.
    pub temperature: Option<f64>,
    /// The kind of the [`MAP`] whose scores are compared instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapKind>,
}

/// How sets of rows are made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetForm {
    /// The form of the score.
    pub form: ScoreForm,
    /// The level.
    pub level: f64,
    /// The threshold of the level; `None` where the set is everything.
    pub threshold: Option<f64>,
}
