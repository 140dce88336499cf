//! `[stop]`: when a run ends before its last round, and which round its results are those of.

use fedstein_schema::Accepts::{Choice, Float};
use fedstein_schema::Literal::{Float as F, Int as I, Text as T};
use fedstein_schema::{COUNT_OR_ZERO, Interval, Key, Section, key};
use serde::{Deserialize, Serialize};

use crate::metrics::{Direction, Evaluation, Metric};

/// The keys of `[stop]`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StopConfig {
    /// Number of rounds without a better value after which the run ends; 0 for none.
    pub patience: usize,
    /// The metric of the validation rows by which a round is better.
    pub metric: StopMetric,
    /// MiB from the clients to the server after which the run ends; 0 for no limit.
    pub uplink_mib: f64,
    /// Seconds after which the run ends; 0 for no limit.
    pub seconds: f64,
}

fedstein_schema::words! {
    /// A metric by which a round is better than another, by its key in the table of metrics.
    #[derive(Default)]
    pub enum StopMetric {
        /// Negative log-likelihood.
        #[default]
        Nll = "nll",
        /// Accuracy.
        Accuracy = "accuracy",
        /// Brier score.
        Brier = "brier",
        /// Root mean squared error.
        Rmse = "rmse",
    }
}

impl StopMetric {
    fn metric(self) -> &'static Metric {
        Metric::of_key(self.word()).expect("a key of the table of metrics")
    }

    /// Its value among the metrics of some rows; `None` where it is undefined or not finite.
    pub fn value(self, of: &Evaluation) -> Option<f64> {
        of.value(self.metric()).filter(|value| value.is_finite())
    }

    /// Whether `value` is better than `best`.
    pub fn is_better(self, value: f64, best: f64) -> bool {
        match self.metric().better {
            Some(Direction::HigherIsBetter) => value > best,
            _ => value < best,
        }
    }

    /// Its column in `rounds.csv`, on validation rows.
    pub fn column(self) -> &'static str {
        match self {
            Self::Nll => "validation_nll",
            Self::Accuracy => "validation_accuracy",
            Self::Brier => "validation_brier",
            Self::Rmse => "validation_rmse",
        }
    }

    /// Whether it is one of class probabilities, or one of real targets; `None` for one of both.
    pub fn of_classes(self) -> Option<bool> {
        let Metric { classes, targets, .. } = self.metric();
        (classes.is_some() != targets.is_some()).then_some(classes.is_some())
    }
}

const KEYS: &[Key] = &[
    key(
        "patience",
        COUNT_OR_ZERO,
        I(0),
        "Rounds without a better `metric` of the validation rows, after which the run ends. Particles, predictions and report are then those of the best round, which is looked for once every client could have had a turn: from the round on in which as many were selected as there are clients. It needs `partition.validation`, or in a federation `data.validation_fraction` or `data.validation_path` of some sites. 0: the run goes on to `rounds`, and its results are those of its last round.",
    ),
    key(
        "metric",
        Choice(StopMetric::WORDS),
        T(StopMetric::Nll.word()),
        "By which a round is better, with `patience` and `lr_schedule.kind = \"plateau\"`: the column `validation_<metric>` of rounds.csv, or with `evaluation.rows = \"validation\"` the column `<metric>`.",
    ),
    key(
        "uplink_mib",
        Float(Interval::NOT_NEGATIVE),
        F(0.0),
        "MiB of messages from the clients to the server: the run ends after the round in which as many have been sent. 0: no limit.",
    ),
    key(
        "seconds",
        Float(Interval::NOT_NEGATIVE),
        F(0.0),
        "Seconds from the first round on: the run ends after the round in which they are over. Such an end cannot be repeated to the bit. 0: no limit.",
    ),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "stop",
        "When a run ends before `rounds`. `fedstein train --resume RUN_DIR --set stop.…` continues it with another limit.",
        KEYS,
    )
}
