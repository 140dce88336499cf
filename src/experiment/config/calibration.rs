//! `[calibration]`: what is learned, after the last round, from the rows that clients hold out for calibration.

use fedstein_schema::Accepts::{Bool, Choice, Float};
use fedstein_schema::Literal::{Bool as B, Float as F, Int as I, Text as T};
use fedstein_schema::{COUNT_OR_ZERO, Interval, Key, Section, key};
use serde::{Deserialize, Serialize};

use crate::datasets::DataProperties;
use crate::models::Task;
use crate::report::conformal::Score;
use crate::report::maps::MapKind;

/// The keys of `[calibration]`. A run of an earlier version has none of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationConfig {
    /// Whether the map of a classification is fitted.
    pub temperature: bool,
    /// The map of the probabilities of a classification.
    pub map: MapChoice,
    /// The score of prediction sets.
    pub conformal: Conformal,
    /// The level of the sets.
    pub level: f64,
    /// Whether the scores have their random form.
    pub randomised: bool,
    /// Parameter λ of RAPS.
    pub raps_penalty: f64,
    /// Parameter k of RAPS.
    pub raps_free: usize,
}

fedstein_schema::words! {
    /// The map of the probabilities.
    pub enum MapChoice {
        /// One temperature.
        Temperature = "temperature",
        /// [`MapKind::Vector`].
        Vector = "vector",
        /// [`MapKind::Isotonic`].
        Isotonic = "isotonic",
    }
}

impl MapChoice {
    /// The kind of the map; `None` for a temperature.
    pub fn kind(self) -> Option<MapKind> {
        match self {
            Self::Temperature => None,
            Self::Vector => Some(MapKind::Vector),
            Self::Isotonic => Some(MapKind::Isotonic),
        }
    }
}

fedstein_schema::words! {
    /// The score of prediction sets.
    pub enum Conformal {
        /// No sets.
        None = "none",
        /// `lac` for classes, `normalised` for real targets.
        Auto = "auto",
        /// [`Score::Lac`].
        Lac = "lac",
        /// [`Score::Aps`].
        Aps = "aps",
        /// [`Score::Raps`].
        Raps = "raps",
        /// [`Score::Normalised`].
        Normalised = "normalised",
        /// [`Score::Cqr`].
        Cqr = "cqr",
    }
}

impl Default for CalibrationConfig {
    /// The defaults of the keys.
    fn default() -> Self {
        Self {
            temperature: true,
            map: MapChoice::Temperature,
            conformal: Conformal::Auto,
            level: 0.9,
            randomised: false,
            raps_penalty: 0.01,
            raps_free: 1,
        }
    }
}

impl CalibrationConfig {
    /// The score for a model of this task; `None` for no sets.
    pub fn score(&self, task: Task) -> Option<Score> {
        let raps = Score::Raps { penalty: self.raps_penalty, free: self.raps_free };
        match (self.conformal, task) {
            (Conformal::None, _) | (_, Task::Density) => None,
            (Conformal::Auto, Task::Classification { .. }) | (Conformal::Lac, _) => Some(Score::Lac),
            (Conformal::Auto, Task::Regression) | (Conformal::Normalised, _) => Some(Score::Normalised),
            (Conformal::Aps, _) => Some(Score::Aps),
            (Conformal::Raps, _) => Some(raps),
            (Conformal::Cqr, _) => Some(Score::Cqr),
        }
    }

    /// Whether a map is fitted for a model of this task.
    pub fn fits_map(&self, task: Task) -> bool {
        self.temperature && matches!(task, Task::Classification { .. })
    }

    /// Finds keys that do not fit the targets, or each other.
    pub(super) fn conflict(&self, data: DataProperties, has_rows: bool) -> Option<String> {
        self.map_conflict(data, has_rows).or_else(|| self.score_conflict(data, has_rows))
    }

    fn map_conflict(&self, data: DataProperties, has_rows: bool) -> Option<String> {
        let key = format!("`calibration.map` = \"{}\"", self.map.kind()?.word());
        let reason = match (data.is_regression(), self.temperature, has_rows) {
            (true, _, _) => "maps probabilities of classes, but data task `regression` has none; leave the key out",
            (_, false, _) => {
                "is fitted in the place of a temperature, but `calibration.temperature` = false fits nothing; leave one of the \
                 two keys out"
            }
            (_, _, false) => {
                "needs rows that clients hold out; set `partition.calibration` to their share, such as 0.2"
            }
            _ => return None,
        };
        Some(format!("{key} {reason}"))
    }

    fn score_conflict(&self, data: DataProperties, has_rows: bool) -> Option<String> {
        let for_classes = match self.conformal {
            Conformal::None | Conformal::Auto => return None,
            Conformal::Lac | Conformal::Aps | Conformal::Raps => true,
            Conformal::Normalised | Conformal::Cqr => false,
        };
        let word = self.conformal.word();
        if for_classes && data.is_regression() {
            return Some(format!(
                "`calibration.conformal` = \"{word}\" makes sets of classes, but data task `regression` has none; use \
                 \"normalised\", \"cqr\" or \"auto\""
            ));
        }
        if !for_classes && data.is_classification() {
            return Some(format!(
                "`calibration.conformal` = \"{word}\" makes intervals of numbers, but the target is a class; use \"lac\", \
                 \"aps\", \"raps\" or \"auto\""
            ));
        }
        (!has_rows).then(|| {
            format!(
                "`calibration.conformal` = \"{word}\" needs rows that clients hold out; set `partition.calibration` to their \
                 share, such as 0.2"
            )
        })
    }
}

const KEYS: &[Key] = &[
    key(
        "temperature",
        Bool,
        B(true),
        "Whether one temperature T is fitted on the calibration rows of all clients; `fedstein predict` then gives softmax(ln p / T). For classes only.",
    ),
    key(
        "map",
        Choice(MapChoice::WORDS),
        T(MapChoice::Temperature.word()),
        "What is fitted in its place: `vector` (a factor and an offset for each ln p, from 20 rows of each class) or `isotonic` (a function of p that does not fall, for each class, from 100 rows of each class); with fewer rows of one class, a temperature and a note. Up to 100 classes.",
    ),
    key(
        "conformal",
        Choice(Conformal::WORDS),
        T(Conformal::Auto.word()),
        "Score of the prediction sets: `lac`, `aps` or `raps` for classes, `normalised` (residuals by the predictive standard deviation) or `cqr` (the predictive interval, corrected) for numbers; `auto`: `lac` or `normalised`.",
    ),
    key(
        "level",
        Float(Interval::INSIDE_UNIT),
        F(0.9),
        "Share of new rows whose set is to hold the truth. Thresholds of 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98 and 0.99 are kept as well, for `fedstein predict --level`.",
    ),
    key(
        "randomised",
        Bool,
        B(false),
        "Whether `aps` and `raps` have their random form, seeded by `seed`: coverage is then the level and no more, and a set may be empty.",
    ),
    key(
        "raps_penalty",
        Float(Interval::NOT_NEGATIVE),
        F(0.01),
        "Penalty λ of `raps` for each rank beyond `raps_free`.",
    ),
    key("raps_free", COUNT_OR_ZERO, I(1), "Number of classes that a set of `raps` may have without a penalty."),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "calibration",
        "What is learned after the last round from the rows that `partition.calibration` (at a site, `data.calibration_fraction` or `data.calibration_path`) holds out; without such rows, nothing (docs/conformal.md). These keys change no round, and `--resume` may change them.",
        KEYS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::{Table, Value};

    #[test]
    fn the_default_is_that_of_the_keys() {
        let keys = KEYS.iter().filter_map(|key| Some((key.name.to_owned(), key.default?.to_value())));
        let table = Table::from_iter(keys);
        assert_eq!(table.clone().try_into::<CalibrationConfig>().unwrap(), CalibrationConfig::default());
        assert_eq!(Value::try_from(CalibrationConfig::default()).unwrap(), Value::Table(table));
    }
}
