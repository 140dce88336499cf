//! DSGLD, distributed SGLD: chains travel between workers, each walks L steps on the rows of the worker it is at.
//!
//! In a round the N chains are dealt to the K workers by a fresh permutation; a worker's gradient counts 1/v_k times,
//! v_k = 1/K the probability that a chain is there, so that it estimates that of all rows. Source: Ahn et al. 2014;
//! Kassab & Simeone section 6; ALGORITHMS 4.6.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::langevin::Langevin;
use super::sgld::Walker;
use crate::backend::{Backend, Session};
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientId, Halves, LocalData, Message, PARTICLES, Reply, ServerHalf, Setup, message_of, particles_of,
};
use crate::random::{Purpose, Streams};

/// What stands for the rows of the other workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GradientScale {
    /// A worker's likelihood counts 1/v_k = K times.
    #[default]
    Corrected,
    /// It counts once, as in the DSVGD code.
    Reference,
}

/// Chains a worker gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainShare {
    /// ⌈N/K⌉: every chain moves in every round.
    #[default]
    Ceil,
    /// ⌊N/K⌋, at least 1, as in the DSVGD code: with K ∤ N some chains rest in a round.
    Floor,
}

/// Constants of DSGLD.
#[derive(Clone, Copy, Debug)]
pub struct DsgldConfig {
    /// N chains.
    pub particles: usize,
    /// L, the length of a trajectory.
    pub local_steps: usize,
    /// How rows become scores.
    pub data: LocalData,
    /// Steps and noise.
    pub langevin: Langevin,
    /// What stands for the rows of the other workers.
    pub gradient_scale: GradientScale,
    /// Chains a worker gets.
    pub chains: ChainShare,
}

impl DsgldConfig {
    /// Chains a worker gets of K workers.
    fn share(&self, workers: usize) -> usize {
        match self.chains {
            ChainShare::Ceil => self.particles.div_ceil(workers),
            ChainShare::Floor => (self.particles / workers).max(1),
        }
    }

    /// How many of K workers get chains in a round.
    pub fn workers(&self, workers: usize) -> usize {
        self.particles.div_ceil(self.share(workers)).min(workers)
    }
}

struct Server<B: Backend> {
    chains: Particles<B>,
    share: usize,
    streams: Streams,
    /// This round: which chains are at which worker.
    dealt: Vec<(ClientId, Vec<usize>)>,
    session: Session<B>,
}

impl<B: Backend> Server<B> {
    fn at(&self, worker: ClientId) -> Result<&[usize], RunError> {
        let dealt = self.dealt.iter().find(|(client, _)| *client == worker);
        let nobody = || RunError::Device(format!("no chain was dealt to client {worker}"));
        dealt.map(|(_, chains)| chains.as_slice()).ok_or_else(nobody)
    }
}

impl<B: Backend> ServerHalf<B> for Server<B> {
    fn begin(&mut self, round: usize, clients: &[ClientId]) -> Result<(), RunError> {
        let mut chains: Vec<usize> = (0..self.chains.count()).collect();
        chains.shuffle(&mut self.streams.rng(Purpose::Chains, round, 0));
        self.dealt = clients.iter().copied().zip(chains.chunks(self.share).map(<[usize]>::to_vec)).collect();
        Ok(())
    }

    fn substitute(&mut self, absent: ClientId, by: ClientId) {
        let dealt = self.dealt.iter_mut().filter(|(client, _)| *client == absent);
        dealt.for_each(|(client, _)| *client = by);
    }

    fn configure(&self, _round: usize, client: ClientId) -> Result<Message, RunError> {
        message_of(&self.chains.rows(self.at(client)?))
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        let mut rows: Vec<Particles<B>> = (0..self.chains.count()).map(|n| self.chains.rows(&[n])).collect();
        for reply in replies {
            let moved = particles_of(&reply.message, &self.chains, &self.session)?;
            for (place, &chain) in self.at(reply.client)?.iter().enumerate() {
                rows[chain] = moved.rows(&[place]);
            }
        }
        self.chains = Particles::stack(&rows);
        Ok(())
    }

    fn particles(&self) -> &Particles<B> {
        &self.chains
    }

    /// Who is dealt which chain is settled when a round begins.
    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_particles(PARTICLES, &self.chains)?)
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.chains = state.particles(PARTICLES, self.chains.layout(), &self.session)?;
        Ok(())
    }
}

/// A server that deals chains, and workers that walk them.
pub(super) fn build<B: Backend>(config: DsgldConfig, mut setup: Setup<B>) -> Halves<B> {
    let workers = setup.shards.len();
    let count = match config.gradient_scale {
        GradientScale::Corrected => workers as f64,
        GradientScale::Reference => 1.0,
    };
    let data = LocalData { temperature: config.data.temperature / count, ..config.data };
    let likelihoods = setup.likelihoods(data);
    let walker = |(client, likelihood)| {
        let walker = Walker {
            likelihood,
            local_steps: config.local_steps,
            langevin: config.langevin,
            streams: setup.streams,
            stream: client,
            stride: workers,
            like: setup.initial.clone(),
            session: setup.session.clone(),
        };
        Box::new(walker) as _
    };
    let clients = likelihoods.into_iter().enumerate().map(walker).collect();
    let server = Server {
        share: config.share(workers),
        chains: setup.initial.clone(),
        streams: setup.streams,
        dealt: Vec::new(),
        session: setup.session.clone(),
    };
    Halves { server: Box::new(server), clients }
}
