//! PFedBayes.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PFedBayesConfig {
    pub particles: usize,
    pub local_steps: usize,
    pub data: LocalData,
    pub samples: usize,
    pub kl_weight: f64,
    pub initial_rho: f64,
    pub initial_sd: f64,
    pub noise_variance: f64,
    pub server_mix: f64,
}

pub(super) fn build<B: Backend>(_config: PFedBayesConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `pfedbayes` is not built yet".into()))
}
