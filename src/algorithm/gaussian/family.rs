//! Families of Gaussians.

use serde::{Deserialize, Serialize};

/// Which Gaussians q is sought among.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Independent coordinates.
    #[default]
    MeanField,
    /// Any covariance; for a few dimensions.
    Full,
}
