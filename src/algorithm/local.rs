//! The training loop of a client on its own rows, for all methods whose clients keep no density.

use std::sync::Arc;

use fedstein_models::Layout;

use super::keys::LocalConfig;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::Likelihood;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    BATCHES, ClientHalf, ClientHalves, ClientId, LocalData, Message, OPTIMIZER, ROWS, Request, Setup, Watch,
    message_of, particles_of,
};
use crate::stein::{OptimizerState, Score, Svgd};

/// The loop of a client in one visit.
#[derive(Clone, Copy, Debug)]
pub struct LocalLoop {
    /// The keys that say how many steps L a visit has.
    pub local: LocalConfig,
    /// Whether the state of the optimiser is new in each visit.
    pub reset_optimizer: bool,
}

/// The rows of a client, and the steps along their scores.
pub struct LocalSteps {
    /// The kernel and the optimiser.
    pub svgd: Svgd,
    /// The client's rows.
    pub likelihood: Likelihood,
    visit: LocalLoop,
    state: OptimizerState,
    like: Particles,
    session: Session,
}

impl LocalSteps {
    /// The training loops of the clients in this process, one per shard.
    pub fn of_shards(setup: &mut Setup, data: LocalData, visit: LocalLoop) -> impl Iterator<Item = (ClientId, Self)> {
        let (svgd, like, session) = (setup.svgd, setup.initial.clone(), setup.session.clone());
        let steps = move |(id, likelihood)| {
            let (like, session) = (like.clone(), session.clone());
            (id, Self { svgd, likelihood, visit, state: OptimizerState::default(), like, session })
        };
        setup.likelihoods(data).into_iter().map(steps)
    }

    /// Moves `start` `[N, d]` by L steps along `score`, which draws its own minibatches, with the step size of the request's
    /// round. A visit that fails leaves the optimiser as it was.
    ///
    /// # Errors
    /// `score` fails, a step is not finite, or the device does not answer.
    pub fn run(
        &mut self,
        start: Particles,
        request: &Request,
        watch: Watch,
        mut score: impl FnMut(&mut Likelihood, &Particles) -> Result<Score, RunError>,
    ) -> Result<Particles, RunError> {
        let LocalLoop { local, reset_optimizer } = self.visit;
        let steps = local.steps(self.likelihood.rows());
        let mut state = if reset_optimizer { OptimizerState::default() } else { self.state.clone() };
        let likelihood = &mut self.likelihood;
        likelihood.start_visit(request.round);
        let score = |at: &Particles| score(likelihood, at);
        let svgd = self.svgd.scaled(request.step_factor());
        let moved = svgd.run(start, steps, &mut state, score, |done| watch(done, steps))?;
        if !reset_optimizer {
            self.state = state;
        }
        Ok(moved)
    }

    /// The state: the position in the order of the rows, and the optimiser's state where it is kept between visits.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_part(BATCHES, self.likelihood.save());
        match self.visit.reset_optimizer {
            true => Ok(state),
            false => Ok(state.with_optimizer(OPTIMIZER, &self.state)?),
        }
    }

    /// Restores the state that [`Self::save`] has returned.
    ///
    /// # Errors
    /// The state is not one of this client.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.likelihood.restore(&state.part(BATCHES))?;
        if !self.visit.reset_optimizer {
            self.state = state.optimizer(OPTIMIZER, &self.session)?;
        }
        Ok(())
    }

    /// The blocks of the parameters.
    pub fn layout(&self) -> &Arc<Layout> {
        self.like.layout()
    }

    /// Reads the parameters `[N, d]` that the client has saved under this name.
    ///
    /// # Errors
    /// The parameters are missing or have another shape.
    pub fn particles_in(&self, state: &State, name: &str) -> Result<Particles, RunError> {
        Ok(state.particles(name, self.like.layout(), &self.session)?)
    }

    /// The parameters Θ `[N, d]` of a request.
    ///
    /// # Errors
    /// The parameters are missing or have another shape.
    pub fn sent(&self, request: &Request) -> Result<Particles, RunError> {
        particles_of(&request.message, &self.like, &self.session)
    }

    /// The reply with the moved Θ `[N, d]` and the number of rows N_k.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn reply(&self, moved: &Particles) -> Result<Message, RunError> {
        Ok(message_of(moved)?.with_scalar(ROWS, self.likelihood.rows() as f64))
    }
}

/// One client per shard in this process that moves the particles that it receives and does not keep them. `prior_weight`
/// is the weight of ∇ log p0 in the score.
pub fn clients(setup: &mut Setup, data: LocalData, visit: LocalLoop, prior_weight: f64) -> ClientHalves {
    let client = |(id, local)| (id, Box::new(Client { local, prior_weight }) as _);
    LocalSteps::of_shards(setup, data, visit).map(client).collect()
}

struct Client {
    local: LocalSteps,
    prior_weight: f64,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let (sent, prior_weight) = (self.local.sent(request)?, self.prior_weight);
        let score = |likelihood: &mut Likelihood, at: &Particles| Ok(likelihood.next_score(at, prior_weight));
        let moved = self.local.run(sent, request, watch, score)?;
        self.local.reply(&moved)
    }

    fn save(&self) -> Result<State, RunError> {
        self.local.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.local.restore(state)
    }
}

/// The proximal term `weight`·(centre − θ), the score of −(weight/2)·‖θ − centre‖².
pub fn pull(at: &Particles, centre: &Particles, weight: f64) -> Score {
    Score::dense(centre.clone().zip(at.clone(), |centre, theta| (centre - theta).mul_scalar(weight)))
}
