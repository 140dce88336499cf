//! FedPer.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct FedPerConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub personal_layers: usize,
}

pub(super) fn build<B: Backend>(_config: FedPerConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `fedper` is not built yet".into()))
}
