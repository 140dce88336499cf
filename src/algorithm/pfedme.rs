//! pFedMe: personal parameters p tied to a shared centre w, which moves along the gradient of their Moreau envelope.
//!
//! Client, from p = w as sent: L times draw a minibatch; R times p ← p − η_p(∇L̄(p) + λ(p − w)) on it; then
//! w ← w − ηλ(w − p). The client keeps p, with which it predicts, and sends its w_k. Server:
//! w ← (1−β)w + β·mean_{k ∈ S} w_k, with equal weights. Source: Dinh, Tran & Nguyen 2020 (Algorithm 1, with R gradient
//! steps for its inner problem). w is sent to the clients, w_k to the server.

use fedstein_schema::Literal::{Float as F, Int as I};
use fedstein_schema::{COUNT, Kind, key};
use serde::{Deserialize, Serialize};

use super::fedavg::{AveragingWeights, Server};
use super::keys::{
    BATCH_OF_TEN, INNER_LR, LOCAL_EPOCHS, LOCAL_STEPS, LocalConfig, MEAN_LOSS, MINIBATCH, PROXIMAL, SERVER_MIX,
};
use super::kind::{Algorithm, Capabilities, UnusedKeys, VisitCost};
use super::local::{LocalLoop, LocalSteps, pull};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, Predictor, Request, Setup, Watch};
use crate::stein::{Optimizer, OptimizerState, Score, Svgd};

/// `[algorithm] kind = "pfedme"`; η is the step size of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PFedMeConfig {
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The weight λ > 0 of the proximal term.
    pub proximal: f64,
    /// The step size η_p of the personal parameters.
    pub inner_lr: f64,
    /// The number R of steps on p in a local step.
    pub inner_steps: usize,
    /// The weight β ∈ (0, 1] of the clients' mean at the server.
    pub server_mix: f64,
}

impl PFedMeConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pfedme",
        about: "Personal parameters around a shared centre (Dinh et al. 2020).",
        keys: &[
            LOCAL_STEPS,
            LOCAL_EPOCHS,
            BATCH_OF_TEN,
            MINIBATCH,
            MEAN_LOSS,
            PROXIMAL.default(F(15.0)).doc("λ: weight of the distance from the shared parameters."),
            INNER_LR.doc("Step size of the personal parameters; `optimizer.lr` is that of the shared parameters."),
            key("inner_steps", COUNT, I(5), "Number of personal steps on one minibatch."),
            SERVER_MIX,
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities =
        Capabilities { personal: true, plain_gradient_steps: true, ..Capabilities::FEDERATED };
}

/// The name under which p is kept.
const PERSONAL: &str = "personal";

struct Client {
    config: PFedMeConfig,
    local: LocalSteps,
    /// The personal parameters p; `None` until the first visit.
    personal: Option<Particles>,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let PFedMeConfig { inner_steps, inner_lr, proximal, .. } = self.config;
        let sent = self.local.sent(request)?;
        let inner = Svgd { optimizer: Optimizer::Sgd { lr: inner_lr }, ..self.local.svgd };
        let mut personal = sent.clone();
        let score = |likelihood: &mut Likelihood, w: &Particles| {
            let batch = likelihood.draw();
            let score =
                |p: &Particles| Ok(Score::dense(likelihood.gradient_on(&batch, p, 0.0)).plus(pull(p, w, proximal)));
            let state = &mut OptimizerState::default();
            personal = inner.run::<RunError>(personal.clone(), inner_steps, state, score, |_| {})?;
            Ok(pull(w, &personal, proximal))
        };
        let moved = self.local.run(sent, request, watch, score)?;
        let reply = self.local.reply(&moved)?;
        self.personal = Some(personal);
        Ok(reply)
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor, RunError> {
        Ok(self.personal.clone().map_or(Predictor::Published, Predictor::Own))
    }

    fn state_bytes(&self) -> u64 {
        self.personal.as_ref().map_or(0, Particles::bytes)
    }

    fn save(&self) -> Result<State, RunError> {
        let state = self.local.save()?;
        match &self.personal {
            Some(personal) => Ok(state.with_particles(PERSONAL, personal)?),
            None => Ok(state),
        }
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)?;
        self.personal = state.has(PERSONAL).then(|| self.local.particles_in(state, PERSONAL)).transpose()?;
        Ok(())
    }
}

impl Algorithm for PFedMeConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        VisitCost { steps: self.local.steps(rows).saturating_mul(self.inner_steps), draws: 0 }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.local.unused_keys()
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // FedAvg's server with equal weights, over clients with personal parameters.
        let visit = LocalLoop { local: self.local, reset_optimizer: setup.reset_optimizer };
        let client = |(id, local)| (id, Box::new(Client { config: *self, local, personal: None }) as _);
        let clients = LocalSteps::of_shards(&mut setup, self.local.data(1.0), visit).map(client).collect();
        Ok(Halves { server: Box::new(Server::new(&setup, AveragingWeights::Equal(self.server_mix))), clients })
    }
}
