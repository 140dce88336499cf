//! The families of Gaussians.

use serde::{Deserialize, Serialize};

/// The family of Gaussians in which q is sought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Gaussians with independent coordinates.
    #[default]
    MeanField,
    /// Gaussians with any covariance, for a few dimensions.
    Full,
}
