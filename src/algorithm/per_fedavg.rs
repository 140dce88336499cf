//! PerFedAvg.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PerFedAvgConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub inner_lr: f64,
}

pub(super) fn build<B: Backend>(_config: PerFedAvgConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `per_fedavg` is not built yet".into()))
}
