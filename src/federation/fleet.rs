//! Who executes the server's requests.

use std::sync::{Mutex, MutexGuard};

use rayon::prelude::*;

use super::event::Event;
use super::exam::Exam;
use super::message::{Ask, ClientId, Reply, Request};
use crate::algorithm::ClientHalf;
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;

/// Told by a client how many of how many steps of its visit are done.
pub type Watch<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The name under which a reply tells how much its client keeps.
pub const CLIENT_BYTES: &str = "client_bytes";

/// Carries requests to clients and brings what comes back.
pub trait Fleet {
    /// What arrives, in any order: replies, late, twice or of former rounds, and the failures of clients
    /// ([`RunError::Client`]); a request may stay without an answer. Any other error ends the run.
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>>;

    /// What the fleet itself has done to requests and replies since it was last asked.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }
}

/// All clients in this process: in parallel on a CPU, one after the other on a GPU.
pub struct InProcess<B: Backend> {
    clients: Vec<Mutex<Box<dyn ClientHalf<B>>>>,
    exam: Option<Exam<B>>,
}

impl<B: Backend> InProcess<B> {
    /// A fleet of these clients; a client's id is its index.
    pub fn new(clients: Vec<Box<dyn ClientHalf<B>>>) -> Self {
        Self { clients: clients.into_iter().map(Mutex::new).collect(), exam: None }
    }

    /// The same fleet, whose clients hold rows out to score themselves on.
    pub fn with_exam(mut self, exam: Exam<B>) -> Self {
        self.exam = Some(exam);
        self
    }

    /// What a client keeps between rounds.
    pub fn save(&self, client: ClientId) -> Result<State, RunError> {
        self.half(client)?.save()
    }

    /// Gives a client what it kept.
    pub fn restore(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        self.half(client)?.restore(state)
    }

    fn half(&self, client: ClientId) -> Result<MutexGuard<'_, Box<dyn ClientHalf<B>>>, RunError> {
        let half = self.clients.get(client).ok_or_else(|| RunError::Device(format!("there is no client {client}")))?;
        half.lock().map_err(|_| RunError::Device(format!("client {client} stopped in an earlier round")))
    }

    fn answer(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let failed = |reason: String| RunError::Client { round, client, reason };
        let half = self.clients.get(client).ok_or_else(|| failed("there is no such client".into()))?;
        // A client that panicked in an earlier round left its state half-changed: it does not answer again.
        let mut half = half.lock().map_err(|_| failed("the client stopped in an earlier round".into()))?;
        let answer = match &request.ask {
            Ask::Train => {
                half.handle(request, watch).map(|reply| reply.with_scalar(CLIENT_BYTES, half.state_bytes() as f64))
            }
            Ask::Answer(question) => half.answer(request, question),
            Ask::Score => match &self.exam {
                Some(exam) => half.predictor(request).and_then(|predictor| exam.take(request, predictor)),
                None => Err(RunError::Config("no client holds rows out: evaluation.personal is false".into())),
            },
        };
        let message = answer.map_err(|error| failed(error.to_string()))?;
        Ok(request.reply(message))
    }
}

impl<B: Backend> Fleet for InProcess<B> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        if B::PARALLEL_CLIENTS && requests.len() > 1 {
            requests.par_iter().map(|request| self.answer(request, watch)).collect()
        } else {
            requests.iter().map(|request| self.answer(request, watch)).collect()
        }
    }
}
