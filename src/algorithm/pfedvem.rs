//! PFedVem.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PFedVemConfig {
    pub particles: usize,
    pub local_steps: usize,
    pub data: LocalData,
    pub personal_layers: usize,
    pub head_steps: usize,
    pub head_lr: f64,
    pub head_momentum: f64,
    pub samples: usize,
}

pub(super) fn build<B: Backend>(_config: PFedVemConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `pfedvem` is not built yet".into()))
}
