//! PVI, partitioned variational inference with Gaussians. Source: Bui et al. 2018; Kassab & Simeone Algorithm 2.
//!
//! q = p0·Π_k t_k, all of them Gaussians in natural parameters. In its round client k
//! 1. divides q by its factor: η_cav = η − η_k;
//! 2. finds the Gaussian q_new closest to cavity · exp(−L_k/α) ([`super::gaussian`]);
//! 3. updates its factor by the difference: η_k ← η_new − η_cav.
//!
//! η is sent to the client and back, 2d numbers each way in the mean field; η_k never leaves the client. A factor may
//! be improper.
//!
//! A mean field of a network needs many rows at a client: with few, the Gaussian closest to cavity · likelihood is the
//! cavity, and q stays the prior. (Built-in digits, 50 hidden units: accuracy .86 after 8 rounds of 2 clients with 718
//! rows each, .1 with 4 or 10 clients.)

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::gaussian::natural::Natural;
use super::gaussian::{DAMPING, DRAWS, EXPECTATION_SAMPLES, FAMILY};
use super::gaussian::{Fitter, GaussianConfig, GaussianHalves};
use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MINIBATCH, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, ONE_FACTOR_EACH, Replies, UnusedKeys, VisitCost};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{BATCHES, ClientHalf, Halves, Message, Request, Setup, Watch};

/// `[algorithm] kind = "pvi"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PviConfig {
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

impl PviConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pvi",
        about: "Partitioned variational inference with Gaussians (Bui et al. 2018).",
        keys: &[
            DRAWS,
            LOCAL_STEPS,
            LOCAL_EPOCHS,
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
    pub const CAPABILITIES: Capabilities = Capabilities {
        model_prior: true,
        own_start: true,
        scheduled_steps: false,
        pairs: false,
        natural_parameters: true,
        replies: Replies::Different(ONE_FACTOR_EACH),
        unclipped: Some(
            "a client keeps the factor that it sent; with a shortened one at the server, q is no longer the product of the factors",
        ),
        ..Capabilities::FEDERATED
    };
}

/// The name of the part of a client's state that holds t_k.
const FACTOR: &str = "factor";

struct Client {
    fitter: Fitter,
    /// The client's factor t_k.
    factor: Natural,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let q = self.fitter.read(&request.message)?;
        let cavity = q.minus(&self.factor);
        let moved = self.fitter.fit(&q, &cavity, request.round, watch)?;
        // The factor follows from what the server receives.
        let sent = moved.natural().to_message().rounded(request.wire);
        self.factor = self.fitter.read(&sent)?.minus(&cavity);
        Ok(sent)
    }

    fn state_bytes(&self) -> u64 {
        self.factor.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_part(BATCHES, self.fitter.save()).with_part(FACTOR, self.factor.save()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.fitter.restore(&state.part(BATCHES))?;
        self.factor = self.fitter.natural_in(&state.part(FACTOR))?;
        Ok(())
    }
}

impl Algorithm for PviConfig {
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

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        // A server that multiplies factors, and clients that keep theirs.
        let data = self.local.data(self.temperature);
        let GaussianHalves { server, fitters, factor, .. } =
            GaussianHalves::new(self.gaussian, self.local, data, setup)?;
        let client = |(id, fitter)| (id, Box::new(Client { fitter, factor: factor.clone() }) as _);
        Ok(Halves { server: Box::new(server), clients: fitters.into_iter().map(client).collect() })
    }
}
