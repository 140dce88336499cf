//! stub
use super::gaussian::GaussianConfig;
use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::error::RunError;

/// Constants of GVI.
#[derive(Clone, Copy, Debug)]
pub struct GviConfig {
    /// Draws from q that predictions are made with.
    pub particles: usize,
    /// L.
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// The family and its optimisation.
    pub gaussian: GaussianConfig,
}

pub(super) fn build<B: Backend>(_config: GviConfig, _setup: Setup<B>) -> Result<Halves<B>, RunError> {
    todo!()
}
