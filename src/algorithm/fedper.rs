//! FedPer: federated averaging of a network's base, under a head that stays with each client.
//!
//! θ_k = (base, head_k); the head is the last layers. Client: L steps on L̄ in all layers, from the server's base and
//! its own head. Server: base ← Σ_{k ∈ S} N_k base_k / Σ_{k ∈ S} N_k. Source: Arivazhagan et al. 2019.
//! Only the bases are exchanged, d_b numbers each way.
//!
//! The server's particles are its base under the *initial* head, which is never trained: their predictions, and with
//! them the global columns of `rounds.csv`, have little meaning. The personal columns are those of the method.

use fedstein_schema::Kind;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH_OF_TEN, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH, PERSONAL_LAYERS};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps};
use super::split::{BaseServer, Split};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, PARTICLES, Predictor, ROWS, Request, Setup, Watch};

/// `[algorithm] kind = "fedper"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FedPerConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The number of layers of the head.
    pub personal_layers: usize,
}

impl FedPerConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "fedper",
        about: "Averaging of the base layers; the last layers are personal (Arivazhagan et al. 2019).",
        keys: &[LOCAL_STEPS, LOCAL_EPOCHS, BATCH_OF_TEN, MINIBATCH, MEAN_LOSS, PERSONAL_LAYERS],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { untrained_part: true, personal: true, ..Capabilities::FEDERATED };
}

struct Client {
    local: LocalSteps,
    split: Split,
    /// The client's last network, of which only the head is used; the initial network until the first visit.
    own: Particles,
    session: Session,
}

impl Client {
    /// The base of a request under the client's own head.
    fn under_own_head(&self, request: &Request) -> Result<Particles, RunError> {
        Ok(self.split.joined(&self.split.base_in(&request.message, &self.session)?, &self.own))
    }
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let start = self.under_own_head(request)?;
        let score = |likelihood: &mut Likelihood, at: &Particles| Ok(likelihood.next_score(at, 0.0));
        let moved = self.local.run(start, request, watch, score)?;
        let reply = self.split.message_of(&moved)?.with_scalar(ROWS, self.local.likelihood.rows() as f64);
        self.own = moved;
        Ok(reply)
    }

    fn predictor(&mut self, published: &Request) -> Result<Predictor, RunError> {
        Ok(Predictor::Own(self.under_own_head(published)?))
    }

    fn state_bytes(&self) -> u64 {
        self.own.bytes()
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.local.save()?.with_particles(PARTICLES, &self.own)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.own = self.local.particles_in(state, PARTICLES)?;
        Ok(())
    }
}

impl Algorithm for FedPerConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server of bases, and clients with the initial head.
        let split = Split::of(setup.initial.layout(), self.personal_layers)?;
        let (initial, session) = (setup.initial.clone(), setup.session.clone());
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local)| {
            let (split, own, session) = (split.clone(), initial.clone(), session.clone());
            (id, Box::new(Client { local, split, own, session }) as _)
        };
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(1.0), visit).map(client).collect();
        Ok(Halves { server: Box::new(BaseServer::new(initial.clone(), split.clone(), setup.session)), clients })
    }
}
