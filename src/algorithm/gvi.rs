//! GVI, Gaussian variational inference with all rows in one place: the baseline that PVI is measured against.
//!
//! argmin over Gaussians q of KL(q ‖ p0·exp(−Σ_k L_k/α)), by the steps of [`super::gaussian`] with the prior as cavity:
//! η ← (1 − ρ)η + ρ(η_0 + g(η)). PVI has the same fixed points. Source: Bui et al. 2018, Property 4; ALGORITHMS 4.5.

use super::gaussian::natural::Natural;
use super::gaussian::{Fitter, GaussianConfig, Parts};
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{ClientHalf, Halves, LocalData, Message, Request, Setup, Watch};

/// Constants of GVI.
#[derive(Clone, Copy, Debug)]
pub struct GviConfig {
    /// Draws from q that predictions are made with.
    pub particles: usize,
    /// L steps between two evaluations ("rounds").
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// The family and its optimisation.
    pub gaussian: GaussianConfig,
}

struct Client<B: Backend> {
    fitter: Fitter<B>,
    prior: Natural,
}

impl<B: Backend> ClientHalf<B> for Client<B> {
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

/// One client that holds every row.
///
/// # Errors
/// See [`Parts::new`].
pub(super) fn build<B: Backend>(config: GviConfig, setup: Setup<B>) -> Result<Halves<B>, RunError> {
    let Parts { server, fitters, prior, .. } = Parts::new(config.gaussian, config.local_steps, config.data, setup)?;
    let client = |fitter| Box::new(Client { fitter, prior: prior.clone() }) as _;
    Ok(Halves { server: Box::new(server), clients: fitters.into_iter().map(client).collect() })
}
