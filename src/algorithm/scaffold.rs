//! Scaffold.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ScaffoldConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub server_lr: f64,
}

pub(super) fn build<B: Backend>(_config: ScaffoldConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `scaffold` is not built yet".into()))
}
