//! SGLD, stochastic gradient Langevin dynamics: N chains with all rows in one place, the Monte Carlo baseline.
//!
//! Source: Welling & Teh 2011; Kassab & Simeone section 6 and Table 3.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, VisitCost};
use super::langevin::{CHAINS, NOISE, STEP_POWER, STEP_SIZE};
use super::langevin::{Langevin, check_finite};
use super::relay::Relay;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, Request, Setup, Watch, message_of, particles_of};
use crate::random::Streams;

/// `[algorithm] kind = "sgld"`; L steps between two evaluations ("rounds").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SgldConfig {
    /// The number of chains N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The step sizes and the noise.
    #[serde(flatten)]
    pub langevin: Langevin,
}

impl SgldConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "sgld",
        about: "Stochastic gradient Langevin dynamics on all rows in one place (Welling and Teh 2011).",
        keys: &[CHAINS, LOCAL_STEPS, BATCH, MINIBATCH, LIKELIHOOD_SCALE, TEMPERATURE, STEP_SIZE, STEP_POWER, NOISE],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { scheduled_steps: false, pairs: false, ..Capabilities::CENTRALISED };
}

/// The client that moves the chains that the server sends: SGLD's only client, or a worker of DSGLD.
pub(super) struct Walker {
    /// The likelihood of the worker's rows.
    pub likelihood: Likelihood,
    /// The number of local steps L.
    pub local_steps: usize,
    /// The step sizes and the noise.
    pub langevin: Langevin,
    /// The random streams of the run.
    pub streams: Streams,
    /// The stream of chain n is `stream + n·stride`, so that no two chains of a federation share one.
    pub stream: usize,
    /// The stride of the streams; see `stream`.
    pub stride: usize,
    /// Particles with the layout and the shape `[n, d]` of the chains.
    pub like: Particles,
    /// The device session.
    pub session: Session,
}

impl ClientHalf for Walker {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let mut chains = particles_of(&request.message, &self.like, &self.session)?;
        self.likelihood.start_visit(request.round);
        let (steps, stream, stride) = (self.local_steps, self.stream, self.stride);
        for step in 0..steps {
            let t = (request.round - 1) * steps + step;
            let score = self.likelihood.next_gradient(&chains, 1.0);
            let of = |chain: usize| stream + chain * stride;
            chains = self.langevin.step(chains, &score, t, self.streams, of, &self.session)?;
            watch(step + 1, steps);
        }
        check_finite(&chains, request.round * steps)?;
        message_of(&chains)
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.likelihood.save())
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        Ok(self.likelihood.restore(state)?)
    }
}

impl Algorithm for SgldConfig {
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
        // One client that holds every row.
        let likelihoods = setup.likelihoods(self.local.data(self.temperature));
        let walker = |(id, likelihood)| {
            let walker = Walker {
                likelihood,
                local_steps: self.local.local_steps,
                langevin: self.langevin,
                streams: setup.streams,
                stream: 0,
                stride: 1,
                like: setup.initial.clone(),
                session: setup.session.clone(),
            };
            (id, Box::new(walker) as _)
        };
        let clients = likelihoods.into_iter().map(walker).collect();
        Ok(Halves { server: Box::new(Relay::new(setup.initial.clone(), setup.session.clone())), clients })
    }
}
