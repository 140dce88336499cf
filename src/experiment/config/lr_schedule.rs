//! `[lr_schedule]`: how the step size changes over the rounds.

use fedstein_schema::Accepts::{self, Float};
use fedstein_schema::Literal::{Float as F, Int as I};
use fedstein_schema::{COUNT, Interval, Key, Kind, Section, key};
use serde::{Deserialize, Serialize};

/// The keys of `[lr_schedule]`: the factor of `optimizer.lr` in each round.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LrScheduleConfig {
    /// 1 in every round.
    #[default]
    Constant,
    /// From 1 to `end` along half a cosine.
    Cosine {
        /// The number of rounds from 1 to `end`.
        rounds: usize,
        /// The factor after these rounds.
        end: f64,
    },
    /// Times `factor` every so many rounds.
    Step {
        /// The number of rounds with the same factor.
        rounds: usize,
        /// What the factor is multiplied by.
        factor: f64,
    },
    /// Times `factor` when the validation rows have not become better.
    Plateau {
        /// The number of evaluations without a better value.
        rounds: usize,
        /// What the factor is multiplied by.
        factor: f64,
    },
}

impl LrScheduleConfig {
    /// The key that needs a value of the validation rows in every evaluated round, if it does.
    pub(super) fn validation_key(&self) -> Option<&'static str> {
        match self {
            Self::Constant | Self::Cosine { .. } | Self::Step { .. } => None,
            Self::Plateau { .. } => Some("lr_schedule.kind = \"plateau\""),
        }
    }
}

const SHARE: Accepts = Float(Interval::INSIDE_UNIT);

const FACTOR: Key = key("factor", SHARE, F(0.5), "What the step size is multiplied by.");

/// The schema of the section and its kinds.
pub(super) fn section() -> Section {
    const KINDS: &[Kind] = &[
        Kind { name: "constant", about: "`optimizer.lr` in every round.", keys: &[] },
        Kind {
            name: "cosine",
            about: "From `optimizer.lr` down along half a cosine (Loshchilov and Hutter 2017, without restarts).",
            keys: &[
                key("rounds", COUNT, I(10), "Rounds from the first step size to the last; it stays there."),
                key("end", SHARE, F(0.01), "The last step size as a share of `optimizer.lr`."),
            ],
        },
        Kind {
            name: "step",
            about: "Smaller every so many rounds.",
            keys: &[key("rounds", COUNT, I(10), "Rounds with the same step size."), FACTOR],
        },
        Kind {
            name: "plateau",
            about: "Smaller when `stop.metric` of the validation rows has not become better.",
            keys: &[key("rounds", COUNT, I(10), "Evaluations in a row without a better value."), FACTOR],
        },
    ];
    Section::of_kinds(
        "lr_schedule",
        "How the step size `optimizer.lr` changes over the rounds, for clients and server. Step sizes in `[algorithm]` stay as they are. `rounds.csv` then has the column `lr_factor`.",
        "constant",
        KINDS.iter().copied(),
    )
}
