//! Fleets, which execute the server's requests, and the fleet of clients in this process.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::client_evaluator::ClientEvaluator;
use super::event::Event;
use super::parked::{Parking, Slot};
use crate::backend::AnyBackend;
use crate::checkpoint::State;
use crate::error::{RunError, words_of_panic};
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
pub struct InProcess<'a> {
    /// Whether several clients may compute at the same time.
    parallel: bool,
    clients: BTreeMap<ClientId, Mutex<Slot>>,
    /// Where clients are beyond a memory budget; `None` without a budget.
    parking: Option<Parking<'a>>,
    evaluator: Option<ClientEvaluator>,
    /// The round in which a client's computation panicked, and what the panic said.
    panics: Mutex<BTreeMap<ClientId, (usize, String)>>,
}

impl<'a> InProcess<'a> {
    /// A fleet of these clients on a backend, which all stay in memory.
    pub fn new(clients: ClientHalves, backend: AnyBackend) -> Self {
        let slot = |(id, half)| (id, Mutex::new(Slot::here(half)));
        Self {
            parallel: backend.has_parallel_clients(),
            clients: clients.into_iter().map(slot).collect(),
            parking: None,
            evaluator: None,
            panics: Mutex::default(),
        }
    }

    /// A fleet of clients 0 to K − 1 that are built when they are asked for the first time. Between the rounds those that
    /// were asked last stay in memory, as many as fit the budget of the parking; the states of the others are on the disk.
    pub fn parked(clients: usize, parking: Parking<'a>, backend: AnyBackend) -> Self {
        let slots = (0..clients).map(|id| (id, Mutex::new(Slot::default())));
        Self { clients: slots.collect(), parking: Some(parking), ..Self::new(Vec::new(), backend) }
    }

    /// Sets the evaluator, for clients that hold out rows and score their personal predictors on them.
    pub fn with_evaluator(mut self, evaluator: ClientEvaluator) -> Self {
        self.evaluator = Some(evaluator);
        self
    }

    fn slot(&self, id: ClientId) -> Result<&Mutex<Slot>, RunError> {
        self.clients.get(&id).ok_or(RunError::NoClient(id))
    }

    /// Notes that a client was asked, and makes room.
    ///
    /// # Errors
    /// Those of [`Self::make_room`].
    fn park(&self, asked: ClientId) -> Result<(), RunError> {
        let Some(parking) = &self.parking else { return Ok(()) };
        if let Some(Ok(slot)) = self.clients.get(&asked).map(Mutex::try_lock)
            && let Some(bytes) = slot.bytes()
        {
            parking.note(asked, bytes);
        }
        self.make_room()
    }

    /// Moves clients to the disk, those first that were asked longest ago, until the others fit the budget. One with an
    /// open visit stays, and does not count until the end of the round. One that answers at this moment stays and counts.
    ///
    /// # Errors
    /// A state cannot be written; its client stays and counts.
    fn make_room(&self) -> Result<(), RunError> {
        let Some(parking) = &self.parking else { return Ok(()) };
        let mut from = 0;
        while let Some((question, client)) = parking.excess(from) {
            from = question + 1;
            if let Some(Ok(mut slot)) = self.clients.get(&client).map(Mutex::try_lock) {
                slot.park(client, parking)?;
                parking.forget(client);
            }
        }
        Ok(())
    }

    /// The answer to a request. A client that panics fails; what it has left is undefined, so that its lock, poisoned by
    /// the panic, keeps it from answering again.
    ///
    /// # Errors
    /// The client fails; or the run does, where the disk or the device has failed.
    fn answer_or_failure(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(request, watch)));
        answered.unwrap_or_else(|panic| {
            let said = words_of_panic(&*panic).unwrap_or("without a message");
            // A thread that panics with this lock has written nothing, or all.
            let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
            panics.entry(client).or_insert_with(|| (round, said.to_owned()));
            Err(RunError::Client { round, client, reason: format!("its computation panicked: {said}") })
        })
    }

    /// The error of a client that gives no replies any more.
    fn lost(&self, client: ClientId) -> RunError {
        RunError::Stopped { client, reason: self.stopped(client) }
    }

    /// Why a client gives no replies any more.
    fn stopped(&self, client: ClientId) -> String {
        let panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        match panics.get(&client) {
            Some((round, said)) => {
                format!("the client stopped in an earlier attempt: in round {round} its computation panicked: {said}")
            }
            None => "the client stopped in an earlier attempt".into(),
        }
    }

    fn answer(&self, request: &Request, watch: Watch) -> Result<Reply, RunError> {
        let (round, client) = (request.round, request.client);
        let failed = |reason: String| RunError::Client { round, client, reason };
        let slot = self.clients.get(&client).ok_or_else(|| failed("there is no such client".into()))?;
        let mut slot = slot.lock().map_err(|_| failed(self.stopped(client)))?;
        // Neither a state that cannot be read from the disk nor a device that fails is the client's failure: both end the run.
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
                    own.and_then(|own| evaluator.score(request, *wanted, own.as_ref()))
                        .map(|message| request.reply(message))
                }
                None => Err(RunError::Config("no client holds rows out: evaluation.personal is false".into())),
            },
            Ask::Calibrate(what) => match &self.evaluator {
                Some(evaluator) => evaluator.calibrate(request, what).map(|message| request.reply(message)),
                None => Err(RunError::Config("no client holds rows out: partition.calibration is 0".into())),
            },
        };
        reply.map_err(|error| match error.is_of_device() {
            true => error,
            false => failed(error.to_string()),
        })
    }
}

impl Fleet for InProcess<'_> {
    fn dispatch(&self, requests: &[Request], watch: Watch) -> Vec<Result<Reply, RunError>> {
        let answer = |request: &Request| {
            let reply = self.answer_or_failure(request, watch);
            // Scores and questions of one call can be to all clients: none is kept longer than needed.
            self.park(request.client).and(reply)
        };
        if self.parallel && requests.len() > 1 {
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
        // A client whose state cannot be written stays in memory and counts; the next request meets the same error.
        let _ = self.make_room();
    }

    fn save(&self, client: ClientId) -> Result<State, RunError> {
        let mut slot = self.slot(client)?.lock().map_err(|_| self.lost(client))?;
        slot.save(client, self.parking.as_ref())
    }

    fn restore(&self, client: ClientId, state: &State) -> Result<(), RunError> {
        let mut slot = self.slot(client)?.lock().map_err(|_| self.lost(client))?;
        slot.restore(client, state, self.parking.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::backend::Flex;
    use crate::protocol::{ClientHalf, Message};

    /// Counts its visits; that of client 1 panics in round 2, and the device fails in round 3.
    struct Counter(usize);

    impl ClientHalf for Counter {
        fn handle(&mut self, request: &Request, _: Watch) -> Result<Message, RunError> {
            self.0 += 1;
            assert!((request.round, request.client) != (2, 1), "visit {} is one too many", self.0);
            match request.round {
                3 => Err(RunError::Device("it is lost".into())),
                _ => Ok(Message::default()),
            }
        }

        fn save(&self) -> Result<State, RunError> {
            Ok(State::default().with_count("visits", self.0))
        }

        fn restore(&mut self, state: &State) -> Result<(), RunError> {
            self.0 = state.count("visits")?;
            Ok(())
        }
    }

    fn trains(fleet: &InProcess<'_>, round: usize, clients: &[ClientId]) -> Vec<Result<Reply, RunError>> {
        let request = |client: &ClientId| Request::new(round, *client, Ask::Train, Message::default());
        fleet.dispatch(&clients.iter().map(request).collect::<Vec<_>>(), &|_, _| {})
    }

    #[test]
    fn a_client_that_panics_is_a_failure_of_its_own_and_gives_no_further_replies() {
        let half = |client| (client, Box::new(Counter(0)) as Box<dyn ClientHalf>);
        let fleet = InProcess::new((0..3).map(half).collect(), AnyBackend::of::<Flex>());
        let reason = |answers: &[Result<Reply, RunError>]| match &answers[1] {
            Err(RunError::Client { client: 1, reason, .. }) => reason.clone(),
            other => panic!("{other:?}"),
        };
        let answers = trains(&fleet, 2, &[0, 1, 2]);
        assert!(answers[0].is_ok() && answers[2].is_ok());
        assert_eq!(reason(&answers), "its computation panicked: visit 1 is one too many");
        fleet.settle(2, &[0, 2]);
        let answers = trains(&fleet, 4, &[0, 1]);
        let again =
            "the client stopped in an earlier attempt: in round 2 its computation panicked: visit 1 is one too many";
        assert_eq!((answers[0].is_ok(), reason(&answers).as_str()), (true, again));
        let lost = fleet.save(1).unwrap_err();
        assert!(
            matches!(lost, RunError::Stopped { client: 1, .. }) && lost.to_string().contains("one too many"),
            "{lost}"
        );
    }

    #[test]
    fn a_device_that_fails_is_no_failure_of_the_client() {
        let fleet = InProcess::new(vec![(0, Box::new(Counter(0)) as Box<dyn ClientHalf>)], AnyBackend::of::<Flex>());
        assert!(matches!(&trains(&fleet, 3, &[0])[..], [Err(RunError::Device(_))]));
    }

    #[test]
    fn a_client_that_cannot_be_moved_to_the_disk_stays_and_is_moved_later() {
        let dir = tempfile::tempdir().unwrap();
        let states = dir.path().join("states");
        let build = |_| Ok(Box::new(Counter(0)) as Box<dyn ClientHalf>);
        // No client may stay in memory.
        let fleet = InProcess::parked(2, Parking::new(build, states.clone(), 0).unwrap(), AnyBackend::of::<Flex>());
        let is_moved = |client: ClientId| states.join(format!("{client}.safetensors")).exists();
        trains(&fleet, 1, &[0])[0].as_ref().unwrap();
        fs::remove_dir_all(&states).unwrap();
        fleet.settle(1, &[0]);
        assert!(matches!(&trains(&fleet, 4, &[1])[..], [Err(RunError::Checkpoint(_))]), "client 0 is still there");
        fs::create_dir(&states).unwrap();
        let answers = fleet.clients[&0].lock().unwrap();
        fleet.make_room().unwrap();
        assert!(!is_moved(0));
        drop(answers);
        fleet.make_room().unwrap();
        assert!(is_moved(0));
        // Its visit was open; it ends with its round.
        assert!(!is_moved(1));
        fleet.settle(4, &[1]);
        assert!(is_moved(1));
        assert_eq!(fleet.save(0).unwrap().count("visits").unwrap(), 1);
    }
}
