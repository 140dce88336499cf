//! The loop over rounds: ask → select → configure → (fleet) → validate → combine → aggregate → settle → observe.
//!
//! The server's state changes in `aggregate` only, which is called once there are enough usable replies to the same
//! state: a round that cannot close does not change the server. [`Rules`] set how many replies are enough.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use super::attendance::{Attempt, Attendance, ReplyStatus};
use super::combine::combine;
use super::event::{Event, EventKind};
use super::exchange::{RequestOutcome, Traffic, exchange};
use super::fault_policy::{FaultPolicy, Rules};
use super::fleet::Fleet;
use super::inquiry::ask_clients;
use super::outlier::outlier_scores;
use crate::backend::Session;
use crate::error::RunError;
use crate::protocol::{
    Ask, ClientId, Message, Question, ROWS, Reply, Request, STEP_FACTOR, ServerHalf, SharedMessage, Watch, Wire,
};
use crate::schedule::{Indicators, Schedule, Selection};
use crate::stein::first_non_finite;

/// The record of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Round, from 1.
    pub round: usize,
    /// The clients that were selected to train, with the reasons.
    pub selection: Selection,
    /// The clients whose replies were aggregated, in this order. No other client has changed.
    pub used: Vec<ClientId>,
    /// The clients without a usable reply, each with the reason. The round was completed without them.
    pub rejected: Vec<(ClientId, String)>,
    /// The number of attempts at the round.
    pub attempts: usize,
    /// The events of the round's requests and replies.
    pub events: Vec<Event>,
    /// The selection indicators, if the clients were asked for them.
    pub indicators: Option<Indicators>,
    /// The seconds that the questions and the selection took.
    pub selection_seconds: f64,
    /// Numbers by name: the mean over the trained clients of the numbers in their replies, and the server's own.
    pub numbers: BTreeMap<String, f64>,
    /// The bytes of arrays and indicators from the server to the clients as they are sent, one copy for each client.
    pub downlink_bytes: u64,
    /// The bytes of arrays and indicators from the clients to the server as they are sent.
    pub uplink_bytes: u64,
    /// The bytes that the server half keeps between rounds.
    pub server_bytes: u64,
    /// The server's rules and its record of the clients after the round.
    pub policy: FaultPolicy,
}

/// An observer of the rounds, which is called as each round starts and ends.
pub trait RoundObserver {
    /// The factor of the step size in this round, which has not begun.
    fn step_factor(&self, _round: usize) -> f64 {
        1.0
    }
    /// Called when a round begins, with the selected clients.
    fn round_started(&mut self, round: usize, clients: &[ClientId]);
    /// Called when a round has ended. `server` is in the state after the round; nothing changes until this returns.
    ///
    /// # Errors
    /// The round cannot be evaluated or written, or the user wants the run to end.
    fn round_ended(&mut self, round: Round, server: &dyn ServerHalf, schedule: &dyn Schedule) -> Result<(), RunError>;
    /// Whether the run ends after the round that has ended last, before the last one of all.
    fn is_over(&self) -> bool {
        false
    }
    /// Called when the run fails within a round, with the events of that round.
    ///
    /// # Errors
    /// The events cannot be written.
    fn run_failed(&mut self, _events: &[Event]) -> Result<(), RunError> {
        Ok(())
    }
}

/// A federation: the server half of an algorithm, the schedule and the fleet of clients.
#[allow(missing_debug_implementations)] // Halves and schedules are trait objects.
pub struct Federation<'a> {
    /// The algorithm's server half.
    pub server: &'a mut dyn ServerHalf,
    /// The schedule, which selects the clients of a round.
    pub schedule: &'a mut dyn Schedule,
    /// The fleet, which delivers requests to clients.
    pub fleet: &'a dyn Fleet,
    /// The number of rows N_k of each of the K clients, by id.
    pub rows: &'a [usize],
    /// The question for diagnosis, which is asked if the schedule has no question of its own.
    pub diagnosis: Option<Question>,
    /// The rules against faults and the server's record of its clients.
    pub policy: &'a mut FaultPolicy,
    /// The server's device.
    pub session: Session,
}

impl Federation<'_> {
    /// Runs these rounds, where 1 is the first round of a run, or as many as the observer wants. `watch` is called at every local step.
    ///
    /// # Errors
    /// Too few clients give usable replies, the server half or the observer fails, or the device does not answer.
    pub fn serve(
        &mut self,
        rounds: RangeInclusive<usize>,
        watch: Watch,
        observer: &mut dyn RoundObserver,
    ) -> Result<(), RunError> {
        for round in rounds {
            let start = Instant::now();
            let (mut traffic, mut gathered) = (Traffic::default(), Gathered::default());
            let indicators = match self.schedule.question().or(self.diagnosis) {
                Some(question) => {
                    let asked = self.ask(round, question, &mut traffic, &mut gathered.events);
                    Some(asked.map_err(|error| failed(observer, &gathered.events, error))?)
                }
                None => None,
            };
            let selection = self.schedule.select(round, indicators.as_ref());
            let selection = selection.map_err(|error| failed(observer, &gathered.events, error))?;
            let selection_seconds = start.elapsed().as_secs_f64();
            observer.round_started(round, &selection.clients);
            let step_factor = observer.step_factor(round);
            self.server.set_step_factor(step_factor);

            let step = (round, step_factor);
            let numbers = self.advance(step, &selection.clients, watch, &mut traffic, &mut gathered);
            let mut numbers = numbers.map_err(|error| failed(observer, &gathered.events, error))?;
            let Gathered { used, rejected, attempts, events, .. } = gathered;
            self.policy.reliability.counted.extend(used.iter().map(|client| (*client, round)));
            self.fleet.settle(round, &used);
            numbers.extend(self.server.numbers().into_iter().map(|(name, value)| (name.to_owned(), value)));
            let traffic = if self.policy.rules.sends { traffic } else { Traffic::default() };
            let Traffic { down: downlink_bytes, up: uplink_bytes } = traffic;
            let server_bytes = self.server.state_bytes();
            let policy = self.policy.clone();
            let round = Round {
                round,
                selection,
                used,
                rejected,
                attempts,
                events,
                indicators,
                selection_seconds,
                numbers,
                downlink_bytes,
                uplink_bytes,
                server_bytes,
                policy,
            };
            observer.round_ended(round, &*self.server, &*self.schedule)?;
            if observer.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Trains the selected clients and takes their replies over into the server half.
    ///
    /// # Returns
    /// The means of the numbers that clients report.
    ///
    /// # Errors
    /// There are too few usable replies, or the server half fails.
    fn advance(
        &mut self,
        (round, step_factor): (usize, f64),
        selected: &[ClientId],
        watch: Watch,
        traffic: &mut Traffic,
        gathered: &mut Gathered,
    ) -> Result<BTreeMap<String, f64>, RunError> {
        self.gather((round, step_factor), selected, watch, traffic, gathered)?;
        let numbers = mean_numbers(&gathered.replies);
        self.apply_robust_rule(gathered)?;
        let mut replies = std::mem::take(&mut gathered.replies);
        // Many methods weigh a reply by its client's rows, whose number the server knows.
        for Reply { client, message, .. } in &mut replies {
            let rows = self.rows.get(*client).copied().unwrap_or_default();
            message.scalars.entry(ROWS.to_owned()).or_insert(rows as f64);
        }
        self.server.aggregate(replies).map_err(|error| match error {
            RunError::Svgd(error) => RunError::Server { round, error },
            other => other,
        })?;
        match first_non_finite(self.server.particles())? {
            Some(particle) => {
                let text = format!(
                    "round {round}: the server's particle {particle} is not finite after the replies were aggregated"
                );
                Err(RunError::Algorithm(text.into()))
            }
            None => Ok(numbers),
        }
    }

    /// Sends training requests until there are enough usable replies.
    ///
    /// # Errors
    /// There are too few usable replies after all attempts. The server has not changed.
    fn gather(
        &mut self,
        (round, step_factor): (usize, f64),
        selected: &[ClientId],
        watch: Watch,
        traffic: &mut Traffic,
        gathered: &mut Gathered,
    ) -> Result<(), RunError> {
        let Rules { deadline, min_replies, repeats, .. } = self.policy.rules;
        let needed = min_replies.min(selected.len()).max(1);
        let mut attendance = Attendance::new(round, selected, self.rows.len());
        let mut attempt = attendance.first(&self.policy.reliability.quarantine, needed);
        self.server.begin(round, &attempt.asked)?;
        loop {
            gathered.attempts += 1;
            gathered.note_attempt(round, &attempt, selected);
            let requests = self.requests((round, step_factor), gathered.attempts, &attempt.asked)?;
            let outcomes = exchange(self.fleet, &requests, deadline, watch, traffic, &mut gathered.events)?;
            for (request, outcome) in requests.into_iter().zip(outcomes) {
                let client = request.client;
                attendance.note(client, self.classify_reply(gathered, request, outcome));
            }
            let usable = attendance.usable();
            if usable >= needed {
                return Ok(());
            }
            let next = match gathered.attempts > repeats {
                true => Vec::new(),
                false => attendance.again(&self.policy.reliability.quarantine, needed - usable),
            };
            if next.is_empty() {
                return Err(gathered.failure(round, usable, needed));
            }
            // A client that is asked again takes no other client's place.
            let asked = &attempt.asked;
            let absent = asked.iter().filter(|client| !gathered.used.contains(client) && !next.contains(client));
            for (absent, by) in absent.zip(next.iter().filter(|client| !asked.contains(client))) {
                self.server.substitute(*absent, *by);
            }
            attempt = Attempt { asked: next, skipped: Vec::new() };
        }
    }

    fn requests(
        &self,
        (round, step_factor): (usize, f64),
        attempt: usize,
        clients: &[ClientId],
    ) -> Result<Vec<Request>, RunError> {
        let outgoing = Outgoing::new(self.server, (round, step_factor), self.policy.rules.wire);
        let request = |client: &ClientId| {
            let message = outgoing.to(*client)?;
            Ok(self.policy.stamped(Request { attempt, ..Request::new(round, *client, Ask::Train, message) }))
        };
        clients.iter().map(request).collect()
    }

    /// Adds a reply to the used or the rejected ones, with events.
    fn classify_reply(&mut self, gathered: &mut Gathered, request: Request, outcome: RequestOutcome) -> ReplyStatus {
        let (client, round) = (request.client, request.round);
        let event = |what| Event::new(round, request.attempt, client, what);
        let outcome = match outcome {
            RequestOutcome::Usable(reply) => match self.check(&reply) {
                Ok(()) => RequestOutcome::Usable(reply),
                Err(reason) => {
                    gathered.events.push(event(EventKind::Refused).with_detail(&reason));
                    RequestOutcome::Refused(reason)
                }
            },
            other => other,
        };
        let (status, reason) = match outcome {
            RequestOutcome::Usable(reply) => {
                self.policy.reliability.quarantine.record_usable_reply(client);
                gathered.rejected.retain(|(rejected, _)| *rejected != client);
                gathered.used.push(client);
                gathered.requests.push(request);
                gathered.replies.push(reply);
                return ReplyStatus::Usable;
            }
            RequestOutcome::Missing(reason) => (ReplyStatus::Missing, reason),
            RequestOutcome::Refused(reason) => (ReplyStatus::Refused, reason),
            RequestOutcome::Failed(reason) => (ReplyStatus::Failed, reason),
        };
        if status != ReplyStatus::Missing {
            let backoff = self.policy.rules.backoff;
            let rounds = self.policy.reliability.quarantine.record_bad_reply(client, round, backoff);
            gathered.events.extend((rounds > 0).then(|| event(EventKind::Quarantined).with_value(rounds as f64)));
        }
        gathered.first.get_or_insert_with(|| RunError::Client { round, client, reason: reason.clone() });
        gathered.rejected.retain(|(rejected, _)| *rejected != client);
        gathered.rejected.push((client, reason));
        status
    }

    /// Checks a valid reply: its number of rows is the client's, and the algorithm's own check accepts it.
    fn check(&self, reply: &Reply) -> Result<(), String> {
        let (claimed, rows) = (reply.message.scalars.get(ROWS), self.rows.get(reply.client));
        if let (Some(claimed), Some(rows)) = (claimed, rows)
            && *claimed != *rows as f64
        {
            return Err(format!("the reply claims {claimed} rows, and the client has {rows}"));
        }
        self.server.check(reply)
    }

    /// Computes outlier scores, if these are configured, and applies the robust rule to the replies.
    fn apply_robust_rule(&mut self, gathered: &mut Gathered) -> Result<(), RunError> {
        let FaultPolicy { rules, reliability, .. } = &mut *self.policy;
        let Gathered { requests, replies, events, .. } = gathered;
        if rules.outlier_scores {
            let scores = outlier_scores(requests, replies, &self.session)?;
            for (request, score) in requests.iter().zip(scores) {
                let event = Event::new(request.round, request.attempt, request.client, EventKind::Scored);
                events.extend(score.map(|score| event.with_value(score)));
            }
        }
        combine(rules, self.rows, requests, replies, &mut reliability.norms, events);
        Ok(())
    }

    /// Sends Θ and the question to every client. A client without a usable answer is absent from the indicators.
    fn ask(
        &self,
        round: usize,
        question: Question,
        traffic: &mut Traffic,
        events: &mut Vec<Event>,
    ) -> Result<Indicators, RunError> {
        let outgoing = Outgoing::new(self.server, (round, 1.0), self.policy.rules.wire);
        let message = |client| outgoing.sent(self.server.question_for(round, client, &question)?);
        let request = |client| Ok(Request::new(round, client, Ask::Answer(question), message(client)?));
        let clients: Vec<ClientId> = (0..self.rows.len()).collect();
        let replies = ask_clients(self.fleet, self.policy, &clients, request, (traffic, events))?;
        Indicators::of(&question, self.server.particles(), &replies, &self.session)
    }
}

/// The messages for the clients of a round, as they are sent. The message for all clients is built once, with the first
/// request.
struct Outgoing<'a> {
    server: &'a dyn ServerHalf,
    round: usize,
    /// The factor of the step size.
    step_factor: f64,
    wire: Wire,
    to_all: OnceCell<SharedMessage>,
}

impl<'a> Outgoing<'a> {
    fn new(server: &'a dyn ServerHalf, (round, step_factor): (usize, f64), wire: Wire) -> Self {
        Self { server, round, step_factor, wire, to_all: OnceCell::new() }
    }

    /// The message of a visit of this client.
    fn to(&self, client: ClientId) -> Result<SharedMessage, RunError> {
        self.sent(self.server.configure_for(self.round, client)?)
    }

    /// A client's own message as it is sent, or the one for all clients.
    fn sent(&self, own: Option<Message>) -> Result<SharedMessage, RunError> {
        if let Some(own) = own {
            return Ok(SharedMessage::sent(self.with_factor(own), self.wire));
        }
        if let Some(message) = self.to_all.get() {
            return Ok(message.clone());
        }
        let message = SharedMessage::sent(self.with_factor(self.server.configure(self.round)?), self.wire);
        Ok(self.to_all.get_or_init(|| message).clone())
    }

    fn with_factor(&self, message: Message) -> Message {
        match self.step_factor == 1.0 {
            true => message,
            false => message.with_scalar(STEP_FACTOR, self.step_factor),
        }
    }
}

/// The replies of a round that have been collected so far.
#[derive(Default)]
struct Gathered {
    /// The requests of the replies, in the same order.
    requests: Vec<Request>,
    replies: Vec<Reply>,
    used: Vec<ClientId>,
    rejected: Vec<(ClientId, String)>,
    attempts: usize,
    events: Vec<Event>,
    /// Why the first reply could not be used.
    first: Option<RunError>,
}

impl Gathered {
    fn note_attempt(&mut self, round: usize, attempt: &Attempt, selected: &[ClientId]) {
        let number = self.attempts;
        let event = |client: &ClientId, what| Event::new(round, number, *client, what);
        self.events.extend(attempt.skipped.iter().map(|client| event(client, EventKind::Skipped)));
        let others = attempt.asked.iter().filter(|client| !selected.contains(client));
        self.events.extend(others.map(|client| event(client, EventKind::Substitute)));
    }

    /// The error of a round that could not close: the first reason itself after a single attempt without usable
    /// replies.
    fn failure(&mut self, round: usize, usable: usize, needed: usize) -> RunError {
        let attempts = self.attempts;
        match self.first.take() {
            Some(first) if attempts > 1 || usable > 0 => {
                RunError::Quorum { round, attempts, usable, needed, first: Box::new(first) }
            }
            Some(first) => first,
            None => RunError::Config(format!("round {round}: the schedule chose no client")),
        }
    }
}

/// Writes the events of a round that has failed, and returns the reason why it has.
fn failed(observer: &mut dyn RoundObserver, events: &[Event], error: RunError) -> RunError {
    match observer.run_failed(events) {
        Ok(()) => error,
        Err(unwritten) => {
            RunError::Output(format!("{error}; and the events of the round are not written: {unwritten}"))
        }
    }
}

fn mean_numbers(replies: &[Reply]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, value) in replies.iter().flat_map(|reply| &reply.message.scalars) {
        let (sum, count) = sums.entry(name.clone()).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}
