//! The nonconformity scores by name.

use serde::{Deserialize, Serialize};

/// How badly a label fits a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Score {
    /// 1 − p_y (Sadinle, Lei and Wasserman 2019): the smallest sets on average. A row in doubt may have an empty set.
    Lac,
    /// The probabilities of the classes from the most probable one to y, added up (Romano, Sesia and Candès 2020).
    Aps,
    /// The same with `penalty` for each rank of y beyond `free` (Angelopoulos et al. 2021): smaller sets with many classes.
    Raps {
        /// λ, at least 0.
        penalty: f64,
        /// k_reg, the ranks without a penalty.
        free: usize,
    },
    /// |y − mean| / sd of the predictive mixture (Lei et al. 2018).
    Normalised,
    /// max(lo − y, y − hi) for the central interval [lo, hi] of the predictive mixture at the level (Romano, Patterson and
    /// Candès 2019).
    Cqr,
}

impl Score {
    /// Its name in configurations and files.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lac => "lac",
            Self::Aps => "aps",
            Self::Raps { .. } => "raps",
            Self::Normalised => "normalised",
            Self::Cqr => "cqr",
        }
    }

    /// Whether the label is a class; otherwise it is a number.
    pub fn is_of_classes(self) -> bool {
        matches!(self, Self::Lac | Self::Aps | Self::Raps { .. })
    }

    /// Whether the scores of rows depend on the level for which they are made.
    pub fn depends_on_level(self) -> bool {
        self == Self::Cqr
    }

    /// Whether it has a random form.
    pub fn can_be_random(self) -> bool {
        matches!(self, Self::Aps | Self::Raps { .. })
    }
}
