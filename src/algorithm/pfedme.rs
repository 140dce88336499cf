//! PFedMe.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PFedMeConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub inner_steps: usize,
    pub inner_lr: f64,
    pub proximal: f64,
    pub server_mix: f64,
}

pub(super) fn build<B: Backend>(_config: PFedMeConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `pfedme` is not built yet".into()))
}
