//! `data.class_weights`: how often a row of each class counts.

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Key, key};
use serde::{Deserialize, Serialize};

/// The key of `[data]`.
///
/// A run of an earlier version lacks it: its rows all count once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ClassWeightsConfig {
    /// The weights.
    pub class_weights: ClassWeights,
}

fedstein_schema::words! {
    /// How often a training row of each class counts in the likelihood.
    #[derive(Default)]
    pub enum ClassWeights {
        /// Once.
        #[default]
        None = "none",
        /// n/(C·n_c) times, with n_c of all n training rows in class c: each class has the same sum.
        Balanced = "balanced",
    }
}

pub(super) const CLASS_WEIGHTS: Key = key(
    "class_weights",
    Choice(ClassWeights::WORDS),
    T(ClassWeights::None.word()),
    "How often a training row counts in the likelihood: `none`: once; `balanced`: n/(C·n_c) times a row of class c, with n_c of all clients' n rows in it, so that each of the C classes has the same weight. The predicted probabilities are then those of classes that are equally frequent. Validation and test rows count once, also where `stop.patience` chooses the best round by the former. Needs `tell.class_counts` of every site.",
);
