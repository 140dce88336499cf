//! stub
use super::{Halves, LocalData, Setup};
use crate::backend::Backend;
use crate::density::KdeBandwidth;

/// Constants of PMD.
#[derive(Clone, Copy, Debug)]
pub struct PmdConfig {
    /// N.
    pub particles: usize,
    /// T steps between two evaluations ("rounds").
    pub local_steps: usize,
    /// How rows become weights.
    pub data: LocalData,
    /// λ_t.
    pub bandwidth: KdeBandwidth,
    /// γ_max ∈ (0, 1].
    pub max_step: f64,
    /// c: γ_t = min(γ_max, c/t).
    pub step_decay: f64,
}

pub(super) fn build<B: Backend>(_config: PmdConfig, _setup: Setup<B>) -> Halves<B> {
    todo!()
}
