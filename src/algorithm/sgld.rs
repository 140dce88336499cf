//! SGLD, stochastic gradient Langevin dynamics: N chains with all rows in one place, the Monte Carlo baseline.
//!
//! Source: Welling & Teh 2011; Kassab & Simeone section 6 and Table 3; ALGORITHMS 4.6.

use super::langevin::{Langevin, check_finite};
use super::relay::Relay;
use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, LocalData, Message, Request, Setup, Watch, message_of, particles_of};
use crate::random::Streams;

/// Constants of SGLD.
#[derive(Clone, Copy, Debug)]
pub struct SgldConfig {
    /// N chains.
    pub particles: usize,
    /// L steps between two evaluations ("rounds").
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// Steps and noise.
    pub langevin: Langevin,
}

/// Who walks the chains that the server sends: SGLD's only client, or a worker of DSGLD.
pub(super) struct Walker<B: Backend> {
    pub likelihood: Likelihood<B>,
    pub local_steps: usize,
    pub langevin: Langevin,
    pub streams: Streams,
    /// Stream of chain n: `stream + n·stride`, so that no two chains of a federation share one.
    pub stream: usize,
    pub stride: usize,
    pub like: Particles<B>,
    pub session: Session<B>,
}

impl<B: Backend> ClientHalf<B> for Walker<B> {
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

/// One client that holds every row.
pub(super) fn build<B: Backend>(config: SgldConfig, mut setup: Setup<B>) -> Halves<B> {
    let likelihoods = setup.likelihoods(config.data);
    let walker = |likelihood| {
        let walker = Walker {
            likelihood,
            local_steps: config.local_steps,
            langevin: config.langevin,
            streams: setup.streams,
            stream: 0,
            stride: 1,
            like: setup.initial.clone(),
            session: setup.session.clone(),
        };
        Box::new(walker) as _
    };
    let clients = likelihoods.into_iter().map(walker).collect();
    Halves { server: Box::new(Relay::new(setup.initial.clone(), setup.session.clone())), clients }
}
