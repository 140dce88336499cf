//! Who executes the server's requests.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use rayon::prelude::*;

use super::client_evaluator::ClientEvaluator;
use super::event::Event;
use super::visit::Client;
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{Ask, ClientHalf, ClientId, Reply, Request, Watch};

/// Carries requests to clients and brings what comes back: the boundary between a server and wherever clients live.
///
/// A server knows its clients by this trait alone. A fleet around a fleet passes on every method.
pub trait Fleet {
    /// What arrives, in any order: replies, late, twice or of former rounds, and the failures of clients
    /// ([`RunError::Client`]); a request may stay without an answer. Any other error ends the run.
    ///
    /// Requests to several clients mostly share one message ([`Request::message`]): a fleet that sends bytes may encode
    /// it once for all requests of the same [`Request::state`].
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>>;

    /// What the fleet itself has done to requests and replies since it was last asked.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// Most questions, or requests for scores, that are sent at once: their answers are in memory together.
    fn at_once(&self) -> usize {
        usize::MAX
    }

    /// A round is over, and the training replies of these clients were aggregated. A client that is not told learns it
    /// with its next request ([`Request::counted`]).
    fn settle(&self, _round: usize, _counted: &[ClientId]) {}

    /// What a client keeps between rounds, for a checkpoint; of a visit that is not settled nothing. A client that
    /// outlives the server and keeps its state itself has none to give, as in this default.
    ///
    /// # Errors
    /// There is no such client, or it does not answer.
    fn save(&self, _client: ClientId) -> Result<State, RunError> {
        Ok(State::default())
    }

    /// Gives a client what [`Self::save`] has returned.
    ///
    /// # Errors
    /// There is no such client, it does not answer, or the state is not one of its kind.
    fn restore(&self, _client: ClientId, _state: &State) -> Result<(), RunError> {
        Ok(())
    }

    /// What the fleet itself remembers, apart from its clients.
    fn save_own(&self) -> State {
        State::default()
    }

    /// Takes over what [`Self::save_own`] has returned.
    ///
    /// # Errors
    /// The state is not one of this fleet.
    fn restore_own(&self, _state: &State) -> Result<(), RunError> {
        Ok(())
    }
}

/// Clients of this process that are asked at once: the scores with which all of K clients answer a question would need
/// more memory than everything else. The same at any number of threads, for events to have the same order.
const ASKED_AT_ONCE: usize = 16;

/// All clients in this process: in parallel on a CPU, one after the other on a GPU.
pub struct InProcess<B: Backend> {
    clients: Vec<Mutex<Client<B>>>,
    evaluator: Option<ClientEvaluator<B>>,
}

impl<B: Backend> InProcess<B> {
    /// A fleet of these clients; a client's id is its index.
    pub fn new(clients: Vec<Box<dyn ClientHalf<B>>>) -> Self {
        Self { clients: clients.into_iter().map(|half| Mutex::new(Client::new(half))).collect(), evaluator: None }
    }

    /// The same fleet, whose clients hold rows out to score themselves on.
    pub fn with_evaluator(mut self, evaluator: ClientEvaluator<B>) -> Self {
        self.evaluator = Some(evaluator);
        self
    }

    fn client(&self, id: ClientId) -> Result<MutexGuard<'_, Client<B>>, RunError> {
        let client = self.clients.get(id).ok_or(RunError::NoClient(id))?;
        client.lock().map_err(|_| RunError::Stopped(id))
    }

    fn answer(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let failed = |reason: String| RunError::Client { round, client, reason };
        let asked = self.clients.get(client).ok_or_else(|| failed("there is no such client".into()))?;
        // A client that panicked in an earlier round left its state half-changed: it does not answer again.
        let mut asked = asked.lock().map_err(|_| failed("the client stopped in an earlier round".into()))?;
        let reply = match &request.ask {
            Ask::Train => asked.train(request, watch),
            Ask::Answer(question) => asked
                .half(request)
                .and_then(|half| half.answer(request, question))
                .map(|message| request.reply(message)),
            Ask::Score => match &self.evaluator {
                Some(evaluator) => {
                    let predictor = asked.half(request).and_then(|half| half.predictor(request));
                    predictor
                        .and_then(|predictor| evaluator.score(request, predictor))
                        .map(|message| request.reply(message))
                }
                None => Err(RunError::Config("no client holds rows out: evaluation.personal is false".into())),
            },
        };
        reply.map_err(|error| failed(error.to_string()))
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

    fn at_once(&self) -> usize {
        ASKED_AT_ONCE
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        let counted: BTreeSet<ClientId> = counted.iter().copied().collect();
        for (id, client) in self.clients.iter().enumerate() {
            // A client that panicked does not answer again, and one whose visit stays open says why when it is asked.
            if let Ok(mut client) = client.lock() {
                let _ = client.settle(round, counted.contains(&id));
            }
        }
    }

    fn save(&self, client: ClientId) -> Result<State, RunError> {
        self.client(client)?.save()
    }

    fn restore(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        self.client(client)?.restore(state)
    }
}
