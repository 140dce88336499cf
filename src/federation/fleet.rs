//! Fleets, which execute the server's requests, and the fleet of clients in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use rayon::prelude::*;

use super::client_evaluator::ClientEvaluator;
use super::event::Event;
use super::visit::Client;
use crate::backend::Backend;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::protocol::{Ask, ClientHalves, ClientId, Reply, Request, Watch};

/// Delivers requests to clients and returns their replies. It is the server's only connection to its clients, in this
/// process or elsewhere.
///
/// A fleet that wraps another fleet forwards every method.
pub trait Fleet {
    /// Sends the requests and returns what arrives, in any order: replies, which may be late, duplicates or of earlier
    /// rounds, and the failures of clients. A request may have no reply.
    ///
    /// Requests to several clients mostly share one message ([`Request::message`]): a fleet that sends bytes may encode
    /// it once for all requests of the same [`Request::state`]. Its arrays have been rounded to [`Request::wire`], so that
    /// sending them in this precision changes nothing more, and [`Request::reply`] does the same for a reply.
    ///
    /// # Errors
    /// The elements of the result are errors: [`RunError::Client`] for a client that fails. Any other error ends the
    /// run.
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>>;

    /// The events that the fleet itself has caused since the last call.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// The largest number of questions, or of requests for scores, in one call of [`Self::dispatch`]. Their replies are
    /// in memory at the same time.
    fn at_once(&self) -> usize {
        usize::MAX
    }

    /// Reports the end of a round in which the training replies of these clients were aggregated. A client that does
    /// not get this report learns the same from its next request ([`Request::counted`]).
    fn settle(&self, _round: usize, _counted: &[ClientId]) {}

    /// The state that a client keeps between rounds, for a checkpoint, without a visit that is not settled. The default
    /// is an empty state, for clients that keep their state themselves when the server stops.
    ///
    /// # Errors
    /// There is no such client, or it does not answer.
    fn save(&self, _client: ClientId) -> Result<State, RunError> {
        Ok(State::default())
    }

    /// Restores a client's state of [`Self::save`].
    ///
    /// # Errors
    /// There is no such client, it does not answer, or the state does not belong to its kind of client.
    fn restore(&self, _client: ClientId, _state: &State) -> Result<(), RunError> {
        Ok(())
    }

    /// The state of the fleet itself, without its clients.
    fn save_own(&self) -> State {
        State::default()
    }

    /// Restores the state of [`Self::save_own`].
    ///
    /// # Errors
    /// The state does not belong to this fleet.
    fn restore_own(&self, _state: &State) -> Result<(), RunError> {
        Ok(())
    }
}

/// The number of clients of this process that answer a question at once. The answers of all K clients would need more
/// memory than everything else. The number does not depend on the number of threads, nor does the order of events.
const ASKED_AT_ONCE: usize = 16;

/// A fleet of clients in this process. They run in parallel on a CPU and one after the other on a GPU.
pub struct InProcess<B: Backend> {
    clients: BTreeMap<ClientId, Mutex<Client<B>>>,
    evaluator: Option<ClientEvaluator<B>>,
}

impl<B: Backend> InProcess<B> {
    /// A fleet of these clients.
    pub fn new(clients: ClientHalves<B>) -> Self {
        let client = |(id, half)| (id, Mutex::new(Client::new(half)));
        Self { clients: clients.into_iter().map(client).collect(), evaluator: None }
    }

    /// Sets the evaluator, for clients that hold out rows and score their own predictors on them.
    pub fn with_evaluator(mut self, evaluator: ClientEvaluator<B>) -> Self {
        self.evaluator = Some(evaluator);
        self
    }

    fn client(&self, id: ClientId) -> Result<MutexGuard<'_, Client<B>>, RunError> {
        let client = self.clients.get(&id).ok_or(RunError::NoClient(id))?;
        client.lock().map_err(|_| RunError::Stopped(id))
    }

    fn answer(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let failed = |reason: String| RunError::Client { round, client, reason };
        let asked = self.clients.get(&client).ok_or_else(|| failed("there is no such client".into()))?;
        // The state of a client that panicked in an earlier round is undefined: such a client does not answer again.
        let mut asked = asked.lock().map_err(|_| failed("the client stopped in an earlier round".into()))?;
        let reply = match &request.ask {
            Ask::Train => asked.train(request, watch),
            Ask::Answer(question) => asked
                .half(request)
                .and_then(|half| half.answer(request, question))
                .map(|message| request.reply(message)),
            Ask::Score(wanted) => match &self.evaluator {
                Some(evaluator) => {
                    let own = wanted.own.then(|| asked.half(request)?.predictor(request)).transpose();
                    own.and_then(|own| evaluator.score(request, wanted.published, own))
                        .map(|message| request.reply(message))
                }
                None => Err(RunError::Config("no client holds rows out: evaluation.personal is false".into())),
            },
            Ask::Calibrate(what) => match &self.evaluator {
                Some(evaluator) => evaluator.calibrate(request, what).map(|message| request.reply(message)),
                None => Err(RunError::Config("no client holds rows out: partition.calibration is 0".into())),
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
        for (id, client) in &self.clients {
            // A client that panicked does not answer again. A visit that stays open is reported with the next request.
            if let Ok(mut client) = client.lock() {
                let _ = client.settle(round, counted.contains(id));
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
