//! stub
use super::{Halves, Setup};
use crate::backend::Backend;

/// Constants of NPV.
#[derive(Clone, Copy, Debug)]
pub struct NpvConfig {
    /// N components.
    pub particles: usize,
    /// Most iterations of L-BFGS in a sweep; a round is a sweep.
    pub local_steps: usize,
    /// α.
    pub temperature: f64,
}

pub(super) fn build<B: Backend>(_config: NpvConfig, _setup: Setup<B>) -> Halves<B> {
    todo!()
}
