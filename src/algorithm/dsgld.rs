//! DSGLD, distributed SGLD: chains travel between workers, and each makes L steps on the rows of its current worker.
//!
//! In a round the N chains are assigned to the K workers by a fresh permutation; a worker's gradient counts 1/v_k
//! times, v_k = 1/K the probability that a chain is there, so that it estimates that of all rows. Source: Ahn et al.
//! 2014; Kassab & Simeone section 6.

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Kind, key};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::keys::{BATCH, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, Replies, VisitCost};
use super::langevin::Langevin;
use super::langevin::{CHAINS, NOISE, STEP_POWER, STEP_SIZE};
use super::sgld::Walker;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientId, Halves, Message, PARTICLES, Reply, ServerHalf, Setup, message_of, particles_of};
use crate::random::{Purpose, Streams};

fedstein_schema::words! {
    /// The weight of a worker's likelihood, which represents the rows of the other workers.
    #[derive(Default)]
    pub enum GradientScale {
        /// A worker's likelihood counts 1/v_k = K times.
        #[default]
        Corrected = "corrected",
        /// A worker's likelihood counts once, as in the DSVGD code.
        Reference = "reference",
    }
}

fedstein_schema::words! {
    /// The number of chains at a worker.
    #[derive(Default)]
    pub enum ChainShare {
        /// ⌈N/K⌉: every chain moves in every round.
        #[default]
        Ceil = "ceil",
        /// ⌊N/K⌋, at least 1, as in the DSVGD code: with K ∤ N some chains rest in a round.
        Floor = "floor",
    }
}

/// `[algorithm] kind = "dsgld"`; L is the length of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DsgldConfig {
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
    /// The weight of a worker's likelihood, which represents the rows of the other workers.
    pub gradient_scale: GradientScale,
    /// The number of chains at a worker.
    pub chains: ChainShare,
}

impl DsgldConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "dsgld",
        about: "Langevin chains that travel between clients (Ahn et al. 2014).",
        keys: &[
            CHAINS,
            LOCAL_STEPS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            STEP_SIZE,
            STEP_POWER,
            NOISE,
            key(
                "gradient_scale",
                Choice(GradientScale::WORDS),
                T(GradientScale::Corrected.word()),
                "Factor on a worker's likelihood: K, which stands for the rows of the other workers; or 1, as in the \
                 public code.",
            )
            .reference(T(GradientScale::Reference.word())),
            key(
                "chains",
                Choice(ChainShare::WORDS),
                T(ChainShare::Ceil.word()),
                "Chains per worker: ⌈N/K⌉ (the text), or ⌊N/K⌋ and at least 1 (the public code: the rest do not \
                 move).",
            )
            .reference(T(ChainShare::Floor.word())),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities {
        model_prior: true,
        scheduled_steps: false,
        chooses_clients: true,
        pairs: false,
        replies: Replies::Different("every reply is other chains"),
        ..Capabilities::FEDERATED
    };
}

impl DsgldConfig {
    /// The number of chains at one of K workers.
    fn share(&self, workers: usize) -> usize {
        match self.chains {
            ChainShare::Ceil => self.particles.div_ceil(workers),
            ChainShare::Floor => (self.particles / workers).max(1),
        }
    }
}

struct Server {
    chains: Particles,
    share: usize,
    streams: Streams,
    /// The chains at each worker in this round.
    assigned: Vec<(ClientId, Vec<usize>)>,
    session: Session,
}

impl Server {
    fn at(&self, worker: ClientId) -> Result<&[usize], RunError> {
        let assigned = self.assigned.iter().find(|(client, _)| *client == worker);
        let nobody = || RunError::NotSelected(worker);
        assigned.map(|(_, chains)| chains.as_slice()).ok_or_else(nobody)
    }
}

impl ServerHalf for Server {
    fn begin(&mut self, round: usize, clients: &[ClientId]) -> Result<(), RunError> {
        let mut chains: Vec<usize> = (0..self.chains.count()).collect();
        chains.shuffle(&mut self.streams.rng(Purpose::Chains, round, 0));
        self.assigned = clients.iter().copied().zip(chains.chunks(self.share).map(<[usize]>::to_vec)).collect();
        Ok(())
    }

    fn substitute(&mut self, absent: ClientId, by: ClientId) {
        let assigned = self.assigned.iter_mut().filter(|(client, _)| *client == absent);
        assigned.for_each(|(client, _)| *client = by);
    }

    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        message_of(&self.chains)
    }

    fn configure_for(&self, _round: usize, client: ClientId) -> Result<Option<Message>, RunError> {
        message_of(&self.chains.rows(self.at(client)?)).map(Some)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let mut rows: Vec<Particles> = (0..self.chains.count()).map(|n| self.chains.rows(&[n])).collect();
        for reply in replies {
            let moved = particles_of(&reply.message, &self.chains, &self.session)?;
            for (place, &chain) in self.at(reply.client)?.iter().enumerate() {
                rows[chain] = moved.rows(&[place]);
            }
        }
        self.chains = Particles::stack(&rows);
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.chains
    }

    /// The assignment of chains is not saved: [`ServerHalf::begin`] draws it anew in every round.
    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.chains)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.chains = state.particles(PARTICLES, self.chains.layout(), &self.session)?;
        Ok(())
    }
}

impl Algorithm for DsgldConfig {
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

    fn clients_per_round(&self, clients: usize) -> Option<usize> {
        Some(self.particles.div_ceil(self.share(clients)).min(clients))
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // A server that assigns chains, and workers that move them.
        let workers = setup.roster.len();
        let count = match self.gradient_scale {
            GradientScale::Corrected => workers as f64,
            GradientScale::Reference => 1.0,
        };
        let likelihoods = setup.likelihoods(self.local.data(self.temperature / count));
        let walker = |(client, likelihood)| {
            let walker = Walker {
                likelihood,
                local_steps: self.local.local_steps,
                langevin: self.langevin,
                streams: setup.streams,
                stream: client,
                stride: workers,
                like: setup.initial.clone(),
                session: setup.session.clone(),
            };
            (client, Box::new(walker) as _)
        };
        let clients = likelihoods.into_iter().map(walker).collect();
        let server = Server {
            share: self.share(workers),
            chains: setup.initial.clone(),
            streams: setup.streams,
            assigned: Vec::new(),
            session: setup.session.clone(),
        };
        Ok(Halves { server: Box::new(server), clients })
    }
}
