//! `[evaluation]`: when, how and on which rows the particles are evaluated.

use fedstein_schema::Accepts::{Bool, Choice, NumberOr as NumberOrWord};
use fedstein_schema::Literal::{Bool as B, Int as I, Text as T};
use fedstein_schema::{COUNT, Interval, Key, NumberOr, Section, key, whole};
use serde::{Deserialize, Serialize};

/// The keys of `[evaluation]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluationConfig {
    /// Number of rounds from one evaluation to the next.
    pub every: usize,
    /// Number of bins of confidence.
    pub bins: usize,
    /// Test rows evaluated at once.
    pub chunk: usize,
    /// Bandwidth λ of the density estimate whose divergence is reported.
    pub kde_bandwidth: NumberOr<SameKde>,
    /// Whether clients compute their Stein discrepancy each round.
    pub discrepancy: bool,
    /// Whether each client's predictor is scored on rows of its own.
    pub personal: bool,
    /// Whether the predictions of each client's predictor are corrected to its frequencies of classes; they are not in a run
    /// of an earlier version.
    #[serde(default)]
    pub prior_correction: bool,
    /// The rows on which metrics are computed; test rows in a run of an earlier version.
    #[serde(default)]
    pub rows: EvaluationRows,
}

fedstein_schema::words! {
    /// The rows on which metrics are computed.
    #[derive(Default)]
    pub enum EvaluationRows {
        /// The test rows.
        #[default]
        Test = "test",
        /// The rows that clients hold out from their training; the test rows are not used.
        Validation = "validation",
    }
}

impl EvaluationRows {
    /// That so many rows are scored in the place of the test rows, where they are.
    pub(in crate::experiment) fn note(self, rows: usize) -> Option<String> {
        (self == Self::Validation)
            .then(|| format!("metrics are of {rows} validation rows, not of the test rows (evaluation.rows)"))
    }
}

fedstein_schema::words! {
    /// The density estimate from which a toy's divergence is computed.
    pub enum SameKde {
        /// The density estimate that the algorithm itself uses.
        Same = "same",
    }
}

const KEYS: &[Key] = &[
    key("every", COUNT, I(1), "Rounds from one evaluation to the next; the last round is always evaluated."),
    key("bins", whole(1, 1000), I(15), "Bins of confidence in calibration errors and diagrams (15: Guo et al. 2017)."),
    key(
        "chunk",
        COUNT,
        I(1000),
        "Test rows evaluated at once; bounds memory, changes no result beyond its last digits.",
    ),
    key(
        "kde_bandwidth",
        NumberOrWord(Interval::POSITIVE, SameKde::WORDS),
        T(SameKde::Same.word()),
        "λ of the density whose divergence from a toy's posterior is reported; `same`: the algorithm's own, 0.55 where it has none.",
    ),
    key(
        "discrepancy",
        Bool,
        B(false),
        "Asks every client every round for the Stein discrepancy between Θ and its tilted density, over all its rows; the schedules `ksd` and `hip` have a question of their own, which takes precedence. The answers count as traffic.",
    ),
    key(
        "personal",
        Bool,
        B(false),
        "Also scores every client's personal predictor on that client's own test rows: columns `personal_*` of rounds.csv, and `clients.csv`. The clients send sums, never rows; this traffic is not counted.",
    ),
    key(
        "prior_correction",
        Bool,
        B(false),
        "With `personal`: multiplies a client's probability of each class by the class's share of the client's training rows over its share of all clients' rows, and normalises (Bayes' rule where classes are as frequent as at the client; Saerens et al. 2002). A client with few rows, or one of clients that hardly differ, has shares between its own and those of all rows (empirical Bayes). For classifications with methods whose posterior is that of all clients; personalised methods learn these shares. Needs `tell.class_counts` of every site.",
    ),
    key(
        "rows",
        Choice(EvaluationRows::WORDS),
        T(EvaluationRows::Test.word()),
        "Rows on which all metrics are computed: the test rows, or those that `partition.validation` holds out, all clients' together. Choose settings with `validation`, so that the test rows stay unseen until the final run.",
    ),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain("evaluation", "When, how and on which rows the particles are evaluated.", KEYS)
}
