//! FedProx.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct FedProxConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub proximal: f64,
}

pub(super) fn build<B: Backend>(_config: FedProxConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `fedprox` is not built yet".into()))
}
