//! SVGD with all rows in one place: the baseline that federation is measured against.
//!
//! Θ ~ p0; I·L times: S = ∇ log p0 + (1/α)(n/B) Σ_{i ∈ batch} ∇ log p(y_i | x_i, θ); Θ ← step(Θ, φ(Θ, S)).
//! Source: Liu & Wang 2016; Kassab & Simeone section 6 compares at the same total I·L.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, VisitCost};
use super::local::{self, LocalLoop};
use super::relay::Relay;
use crate::error::RunError;
use crate::protocol::{Halves, Setup};

/// `[algorithm] kind = "svgd"`; L steps between two evaluations ("rounds").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SvgdConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
}

impl SvgdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "svgd",
        about: "Stein variational gradient descent on all rows in one place (Liu and Wang 2016).",
        keys: &[PARTICLE_COUNT, LOCAL_STEPS, BATCH, MINIBATCH, LIKELIHOOD_SCALE, TEMPERATURE],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities::CENTRALISED;
}

impl Algorithm for SvgdConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn temperature(&self) -> f64 {
        self.temperature
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // One client that holds every row; its optimiser runs on through all rounds.
        let visit = LocalLoop { local: self.local, reset_optimizer: false };
        let clients = local::clients(&mut setup, self.local.data(self.temperature), visit, 1.0);
        Ok(Halves { server: Box::new(Relay::new(setup.initial, setup.session)), clients })
    }
}
