//! PFedGp.

use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct PFedGpConfig {
    pub local_steps: usize,
    pub data: LocalData,
    pub personal_layers: usize,
    pub output_scale: f64,
    pub length_scale: f64,
    pub inference_steps: usize,
    pub inducing_rows: usize,
}

pub(super) fn build<B: Backend>(_config: PFedGpConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    Err(RunError::Config("algorithm kind `pfedgp` is not built yet".into()))
}
