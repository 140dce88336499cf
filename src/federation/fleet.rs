//! Fleets, which execute the server's requests, and the fleet of clients in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use rayon::prelude::*;

use super::client_evaluator::ClientEvaluator;
use super::event::Event;
use super::parked::{Parking, Slot};
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
pub struct InProcess<'a, B: Backend> {
    clients: BTreeMap<ClientId, Mutex<Slot<B>>>,
    /// Where clients are beyond a memory budget; `None` without a budget.
    parking: Option<Parking<'a, B>>,
    evaluator: Option<ClientEvaluator<B>>,
}

impl<'a, B: Backend> InProcess<'a, B> {
    /// A fleet of these clients, which all stay in memory.
    pub fn new(clients: ClientHalves<B>) -> Self {
        let slot = |(id, half)| (id, Mutex::new(Slot::here(half)));
        Self { clients: clients.into_iter().map(slot).collect(), parking: None, evaluator: None }
    }

    /// A fleet of clients 0 to K − 1 that are built when they are asked for the first time. Between the rounds those that
    /// were asked last stay in memory, as many as fit the budget of the parking; the states of the others are on the disk.
    pub fn parked(clients: usize, parking: Parking<'a, B>) -> Self {
        let slots = (0..clients).map(|id| (id, Mutex::new(Slot::default())));
        Self { clients: slots.collect(), parking: Some(parking), evaluator: None }
    }

    /// Sets the evaluator, for clients that hold out rows and score their own predictors on them.
    pub fn with_evaluator(mut self, evaluator: ClientEvaluator<B>) -> Self {
        self.evaluator = Some(evaluator);
        self
    }

    fn slot(&self, id: ClientId) -> Result<&Mutex<Slot<B>>, RunError> {
        self.clients.get(&id).ok_or(RunError::NoClient(id))
    }

    /// Moves clients to the disk, those first that were asked longest ago, until the others fit the budget. One with an
    /// open visit stays until the end of the round, and one that answers at this moment is left to its own thread.
    ///
    /// # Errors
    /// A state cannot be written.
    fn park(&self, asked: ClientId) -> Result<(), RunError> {
        let Some(parking) = &self.parking else { return Ok(()) };
        if let Some(Ok(slot)) = self.clients.get(&asked).map(Mutex::try_lock)
            && let Some(bytes) = slot.bytes()
        {
            parking.note(asked, bytes);
        }
        self.make_room()
    }

    fn make_room(&self) -> Result<(), RunError> {
        let Some(parking) = &self.parking else { return Ok(()) };
        while let Some(client) = parking.excess() {
            if let Some(Ok(mut slot)) = self.clients.get(&client).map(Mutex::try_lock) {
                slot.park(client, parking)?;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let failed = |reason: String| RunError::Client { round, client, reason };
        let slot = self.clients.get(&client).ok_or_else(|| failed("there is no such client".into()))?;
        // The state of a client that panicked in an earlier round is undefined: such a client does not answer again.
        let mut slot = slot.lock().map_err(|_| failed("the client stopped in an earlier round".into()))?;
        // A state that cannot be read from the disk is not the client's failure, and ends the run.
        let asked = slot.client(client, self.parking.as_ref())?;
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

impl<B: Backend> Fleet for InProcess<'_, B> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let answer = |request: &Request| {
            let reply = self.answer(request, watch);
            // Scores and questions of one call can be to all clients: none is kept longer than needed.
            self.park(request.client).and(reply)
        };
        if B::PARALLEL_CLIENTS && requests.len() > 1 {
            requests.par_iter().map(answer).collect()
        } else {
            requests.iter().map(answer).collect()
        }
    }

    fn at_once(&self) -> usize {
        ASKED_AT_ONCE
    }

    fn settle(&self, round: usize, counted: &[ClientId]) {
        let counted: BTreeSet<ClientId> = counted.iter().copied().collect();
        for (id, slot) in &self.clients {
            // A client that panicked does not answer again. A visit that stays open is reported with the next request.
            if let Ok(mut slot) = slot.lock() {
                slot.settle(round, counted.contains(id));
                if let (Some(parking), Some(bytes)) = (&self.parking, slot.bytes()) {
                    parking.note_again(*id, bytes);
                }
            }
        }
        // A state that cannot be written stays in memory; the next request meets the same error.
        let _ = self.make_room();
    }

    fn save(&self, client: ClientId) -> Result<State, RunError> {
        let mut slot = self.slot(client)?.lock().map_err(|_| RunError::Stopped(client))?;
        slot.save(client, self.parking.as_ref())
    }

    fn restore(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        let mut slot = self.slot(client)?.lock().map_err(|_| RunError::Stopped(client))?;
        slot.restore(client, state, self.parking.as_ref())
    }
}
