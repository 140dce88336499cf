//! GVI, Gaussian variational inference with all rows in one place: the baseline that PVI is measured against.
//!
//! argmin over Gaussians q of KL(q ‖ p0·exp(−Σ_k L_k/α)), by the steps of [`super::gaussian`] with the prior as cavity:
//! η ← (1 − ρ)η + ρ(η_0 + g(η)). PVI has the same fixed points. Source: Bui et al. 2018, Property 4.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::gaussian::natural::Natural;
use super::gaussian::{DAMPING, DRAWS, EXPECTATION_SAMPLES, FAMILY};
use super::gaussian::{Fitter, GaussianConfig, GaussianHalves};
use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, VisitCost};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{ClientHalf, Halves, Message, Request, Setup, Watch};

/// `[algorithm] kind = "gvi"`; L steps between two evaluations ("rounds").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GviConfig {
    /// The number of draws from q that predictions are made with.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The family of Gaussians and its optimisation.
    #[serde(flatten)]
    pub gaussian: GaussianConfig,
}

impl GviConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "gvi",
        about: "Gaussian variational inference on all rows in one place.",
        keys: &[
            DRAWS,
            LOCAL_STEPS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            FAMILY,
            DAMPING,
            EXPECTATION_SAMPLES,
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { own_start: true, scheduled_steps: false, pairs: false, ..Capabilities::CENTRALISED };
}

struct Client {
    fitter: Fitter,
    prior: Natural,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let q = self.fitter.read(&request.message)?;
        let moved = self.fitter.fit(&q, &self.prior, request.round, watch)?;
        Ok(moved.natural().to_message())
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.fitter.save())
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.fitter.restore(state)
    }
}

impl Algorithm for GviConfig {
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
        VisitCost { draws: self.gaussian.samples, ..self.local.cost(rows) }
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        // One client that holds every row.
        let data = self.local.data(self.temperature);
        let GaussianHalves { server, fitters, prior, .. } =
            GaussianHalves::new(self.gaussian, self.local, data, setup)?;
        let client = |(id, fitter)| (id, Box::new(Client { fitter, prior: prior.clone() }) as _);
        Ok(Halves { server: Box::new(server), clients: fitters.into_iter().map(client).collect() })
    }
}
