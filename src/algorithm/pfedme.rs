//! pFedMe: personal parameters p tied to a shared centre w, which moves along the gradient of their Moreau envelope.
//!
//! Client, from p = w as sent: L times draw a minibatch; R times p ← p − η_p(∇L̄(p) + λ(p − w)) on it; then
//! w ← w − ηλ(w − p). It keeps p, with which it predicts, and sends its w_k. Server: w ← (1−β)w + β·mean_{k ∈ S} w_k,
//! each client alike. Source: Dinh, Tran & Nguyen 2020 (Algorithm 1, with R gradient steps for its inner problem);
//! ALGORITHMS 4.9. w goes down, w_k comes up.

use super::fedavg::{Server, Weights};
use super::local::{LocalSteps, Visit, pull};
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, LocalData, Message, Predictor, Request, Setup, Watch};
use crate::stein::{Optimizer, OptimizerState, Score, Svgd};

/// Constants of pFedMe; η is the step size of the optimiser.
#[derive(Clone, Copy, Debug)]
pub struct PFedMeConfig {
    /// L.
    pub local_steps: usize,
    /// How rows become gradients.
    pub data: LocalData,
    /// R.
    pub inner_steps: usize,
    /// η_p.
    pub inner_lr: f64,
    /// λ > 0.
    pub proximal: f64,
    /// β ∈ (0, 1].
    pub server_mix: f64,
}

/// The name under which p is kept.
const PERSONAL: &str = "personal";

struct Client<B: Backend> {
    config: PFedMeConfig,
    local: LocalSteps<B>,
    /// p; `None` until the first visit.
    personal: Option<Particles<B>>,
}

impl<B: Backend> ClientHalf<B> for Client<B> {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let PFedMeConfig { inner_steps, inner_lr, proximal, .. } = self.config;
        let sent = self.local.sent(request)?;
        let inner = Svgd { optimizer: Optimizer::Sgd { lr: inner_lr }, ..self.local.svgd };
        let mut personal = sent.clone();
        let score = |likelihood: &mut Likelihood<B>, w: &Particles<B>| {
            let batch = likelihood.draw();
            let score =
                |p: &Particles<B>| Ok(Score::dense(likelihood.gradient_on(&batch, p, 0.0)).plus(pull(p, w, proximal)));
            let state = &mut OptimizerState::default();
            personal = inner.run::<_, RunError>(personal.clone(), inner_steps, state, score, |_| {})?;
            Ok(pull(w, &personal, proximal))
        };
        let moved = self.local.run(sent, request.round, watch, score)?;
        let reply = self.local.reply(&moved)?;
        self.personal = Some(personal);
        Ok(reply)
    }

    fn predictor(&mut self, _published: &Request) -> Result<Predictor<B>, RunError> {
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

/// FedAvg's server with equal weights, over clients with personal parameters.
pub(super) fn build<B: Backend>(config: PFedMeConfig, mut setup: Setup<B>) -> Result<Halves<B>, RunError> {
    let visit = Visit { steps: config.local_steps, reset_optimizer: setup.reset_optimizer };
    let client = |local| Box::new(Client { config, local, personal: None }) as _;
    let clients = LocalSteps::of_shards(&mut setup, config.data, visit).map(client).collect();
    Ok(Halves { server: Box::new(Server::new(&setup, Weights::Equal(config.server_mix))), clients })
}
