//! SVGD with all rows in one place: the baseline that federation is measured against.
//!
//! Θ ~ p0; I·L times: S = ∇ log p0 + (1/α)(n/B) Σ_{i ∈ batch} ∇ log p(y_i | x_i, θ); Θ ← step(Θ, φ(Θ, S)).
//! Source: Liu & Wang 2016; Kassab & Simeone section 6 compares at the same total I·L. ALGORITHMS 4.1.

use super::local::{self, Visit};
use super::relay::Relay;
use crate::backend::Backend;
use crate::protocol::{Halves, LocalData, Setup};

/// Constants of SVGD.
#[derive(Clone, Copy, Debug)]
pub struct SvgdConfig {
    /// N.
    pub particles: usize,
    /// L steps between two evaluations ("rounds").
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
}

/// One client that holds every row; its optimiser runs on through all rounds.
pub(super) fn build<B: Backend>(config: SvgdConfig, mut setup: Setup<B>) -> Halves<B> {
    let visit = Visit { steps: config.local_steps, reset_optimizer: false };
    let clients = local::clients(&mut setup, config.data, visit, 1.0);
    Halves { server: Box::new(Relay::new(setup.initial, setup.session)), clients }
}
