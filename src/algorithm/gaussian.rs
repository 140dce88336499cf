//! Gaussian posteriors in natural parameters: what PVI and GVI share.

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

/// Constants of the local optimisation.
#[derive(Clone, Copy, Debug)]
pub struct GaussianConfig {
    /// Which Gaussians.
    pub family: Family,
    /// ρ ∈ (0, 1].
    pub damping: f64,
    /// Draws behind an expectation, where there are more than two dimensions.
    pub samples: usize,
}
