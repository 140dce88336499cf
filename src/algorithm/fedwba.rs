//! FedWBA: personal particles, and a Wasserstein barycenter of them as everybody's prior.

use serde::{Deserialize, Serialize};

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::density::kde::KdeConfig;
use crate::error::RunError;

/// Where a client's particles start in its round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// At the global particles.
    #[default]
    Global,
    /// Where the client left its own.
    Own,
}

/// Whose particles the barycenter is taken over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// The clients of the round.
    #[default]
    Sampled,
    /// All clients.
    All,
}

/// Weights ω_k of the barycenter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All the same.
    #[default]
    Uniform,
    /// In proportion to the clients' rows.
    DataSize,
}

/// How often assignment and average alternate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Iterate {
    /// Until they agree.
    #[default]
    FixedPoint,
    /// Once.
    OneStep,
}

/// The factor of equation (5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eq5 {
    /// N.
    #[default]
    N,
    /// 1/N, as printed.
    Paper,
}

/// Constants of FedWBA.
#[derive(Clone, Debug)]
pub struct FedWbaConfig {
    /// N.
    pub particles: usize,
    /// L.
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// How the global particles become a prior density.
    pub kde: KdeConfig,
    /// Multiplies the prior's score.
    pub damping: f64,
    /// Clips the norm of every row of the prior's score at c·√d/λ.
    pub clip: Option<f64>,
    /// Where a client starts.
    pub start: Start,
    /// Over whom the barycenter is taken.
    pub over: Over,
    /// With which weights.
    pub weights: Weights,
    /// How often it iterates.
    pub iterate: Iterate,
    /// The factor of equation (5).
    pub eq5: Eq5,
    /// Layers, from 1, that carry one value for all particles.
    pub shared_layers: Vec<usize>,
}

pub(super) fn build<B: Backend>(_config: FedWbaConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `fedwba` is not built yet".into()))
}
