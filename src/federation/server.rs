//! The loop over rounds: ask → select → configure → (fleet) → validate → combine → aggregate → settle → observe.
//!
//! The server's state changes in `aggregate` only, which is called with enough usable replies to one and the same state,
//! or not at all: a round that cannot close does not change the server. [`Rules`] say how many replies are enough.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use super::combine::combine;
use super::event::{Event, EventKind};
use super::exchange::{Outcome, Traffic, exchange};
use super::fault_policy::{FaultPolicy, Rules};
use super::fleet::Fleet;
use super::inquiry::ask_clients;
use super::outlier::outlier_scores;
use super::roster::{Attempt, ReplyStatus, Roster};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Question, ROWS, Reply, Request, ServerHalf, SharedMessage, Watch};
use crate::schedule::{Indicators, Schedule, Selection};

/// What happened in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Round, from 1.
    pub round: usize,
    /// Which clients were selected to train, and why.
    pub selection: Selection,
    /// The clients whose replies were aggregated, in this order. No other client has changed.
    pub used: Vec<ClientId>,
    /// The clients whose reply could not be used, each with the reason; the round went on without them.
    pub rejected: Vec<(ClientId, String)>,
    /// Number of attempts at the round.
    pub attempts: usize,
    /// Events of its requests and replies.
    pub events: Vec<Event>,
    /// The selection indicators, if the clients were asked for them.
    pub indicators: Option<Indicators>,
    /// Seconds that questions and selection took.
    pub selection_seconds: f64,
    /// Numbers by name: the mean over the trained clients of those that they sent, and the server's own.
    pub numbers: BTreeMap<String, f64>,
    /// Bytes of arrays and indicators from the server to the clients, one copy for each.
    pub downlink_bytes: u64,
    /// Bytes of arrays and indicators from the clients to the server.
    pub uplink_bytes: u64,
    /// Bytes that the server's half keeps between rounds.
    pub server_bytes: u64,
    /// The server's rules, and what it remembers of its clients after the round.
    pub policy: FaultPolicy,
}

/// Is told of every round as it starts and ends.
pub trait RoundObserver<B: Backend> {
    /// A round begins with these clients.
    fn round_started(&mut self, round: usize, clients: &[ClientId]);
    /// A round ended; `server` has its results. Nothing changes until this returns.
    ///
    /// # Errors
    /// The round cannot be evaluated or written down, or the user wants the run to end.
    fn round_ended(
        &mut self,
        round: Round,
        server: &dyn ServerHalf<B>,
        schedule: &dyn Schedule,
    ) -> Result<(), RunError>;
    /// The run ends in the middle of a round; these are the events of that round.
    ///
    /// # Errors
    /// The events cannot be written down.
    fn run_failed(&mut self, _events: &[Event]) -> Result<(), RunError> {
        Ok(())
    }
}

/// A federation: the server's half of an algorithm, the schedule and the fleet of clients.
#[allow(missing_debug_implementations)] // Halves and schedules are trait objects.
pub struct Federation<'a, B: Backend> {
    /// The algorithm's server half.
    pub server: &'a mut dyn ServerHalf<B>,
    /// Chooses the clients of a round.
    pub schedule: &'a mut dyn Schedule,
    /// Carries requests to clients.
    pub fleet: &'a dyn Fleet,
    /// Rows N_k of every client, by id: K of them.
    pub rows: &'a [usize],
    /// What clients are asked for diagnosis if the schedule has no question of its own.
    pub diagnosis: Option<Question>,
    /// The rules against faults, and what the server remembers of its clients.
    pub policy: &'a mut FaultPolicy,
    /// The server's device.
    pub session: Session<B>,
}

impl<B: Backend> Federation<'_, B> {
    /// Runs these rounds, of which 1 is the first of a run; `watch` is told of every local step.
    ///
    /// # Errors
    /// Too few clients give usable replies, the server's half or the observer fails, or the device does not answer.
    pub fn serve(
        &mut self,
        rounds: RangeInclusive<usize>,
        watch: Watch,
        observer: &mut dyn RoundObserver<B>,
    ) -> Result<(), RunError> {
        for round in rounds {
            let start = Instant::now();
            let (mut traffic, mut gathered) = (Traffic::default(), Gathered::default());
            let indicators = match self.schedule.question().or(self.diagnosis) {
                Some(question) => Some(self.ask(round, question, &mut traffic, &mut gathered.events)?),
                None => None,
            };
            let selection = self.schedule.select(round, indicators.as_ref());
            let selection_seconds = start.elapsed().as_secs_f64();
            observer.round_started(round, &selection.clients);

            if let Err(error) = self.gather(round, &selection.clients, watch, &mut traffic, &mut gathered) {
                observer.run_failed(&gathered.events)?;
                return Err(error);
            }
            let mut numbers = mean_numbers(&gathered.replies);
            self.apply_robust_rule(&mut gathered)?;
            let Gathered { replies, used, rejected, attempts, events, .. } = gathered;
            self.server.aggregate(replies).map_err(|error| match error {
                RunError::Svgd(error) => RunError::Server { round, error },
                other => other,
            })?;
            self.policy.reliability.counted.extend(used.iter().map(|client| (*client, round)));
            self.fleet.settle(round, &used);
            numbers.extend(self.server.numbers().into_iter().map(|(name, value)| (name.to_owned(), value)));
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
        }
        Ok(())
    }

    /// Asks clients until there are enough usable replies.
    ///
    /// # Errors
    /// There are too few after all attempts; the server has not changed.
    fn gather(
        &mut self,
        round: usize,
        selected: &[ClientId],
        watch: Watch,
        traffic: &mut Traffic,
        gathered: &mut Gathered,
    ) -> Result<(), RunError> {
        let Rules { deadline, min_replies, repeats, .. } = self.policy.rules;
        let needed = min_replies.min(selected.len()).max(1);
        let mut roster = Roster::new(round, selected, self.rows.len());
        let mut call = roster.first(&self.policy.reliability.quarantine, needed);
        self.server.begin(round, &call.asked)?;
        loop {
            gathered.attempts += 1;
            gathered.note_call(round, &call, selected);
            let requests = self.requests(round, gathered.attempts, &call.asked)?;
            let outcomes = exchange(self.fleet, &requests, deadline, watch, traffic, &mut gathered.events)?;
            for (request, outcome) in requests.into_iter().zip(outcomes) {
                let client = request.client;
                roster.note(client, self.classify_reply(gathered, request, outcome));
            }
            let usable = roster.usable();
            if usable >= needed {
                return Ok(());
            }
            let next = match gathered.attempts > repeats {
                true => Vec::new(),
                false => roster.again(&self.policy.reliability.quarantine, needed - usable),
            };
            if next.is_empty() {
                return Err(gathered.failure(round, usable, needed));
            }
            // A client that is asked again takes no other client's place.
            let absent = call.asked.iter().filter(|client| !gathered.used.contains(client) && !next.contains(client));
            for (absent, by) in absent.zip(next.iter().filter(|client| !call.asked.contains(client))) {
                self.server.substitute(*absent, *by);
            }
            call = Attempt { asked: next, skipped: Vec::new() };
        }
    }

    fn requests(&self, round: usize, attempt: usize, clients: &[ClientId]) -> Result<Vec<Request>, RunError> {
        let outgoing = Outgoing::new(self.server, round);
        let request = |client: &ClientId| {
            let message = outgoing.to(*client)?;
            Ok(self.policy.stamped(Request { attempt, ..Request::new(round, *client, Ask::Train, message) }))
        };
        clients.iter().map(request).collect()
    }

    /// Sorts a reply into used and rejected ones, and notes why.
    fn classify_reply(&mut self, gathered: &mut Gathered, request: Request, outcome: Outcome) -> ReplyStatus {
        let (client, round) = (request.client, request.round);
        let event = |what| Event::new(round, request.attempt, client, what);
        let outcome = match outcome {
            Outcome::Usable(reply) => match self.check(&reply) {
                Ok(()) => Outcome::Usable(reply),
                Err(reason) => {
                    gathered.events.push(event(EventKind::Refused).with_detail(&reason));
                    Outcome::Refused(reason)
                }
            },
            other => other,
        };
        let (status, reason) = match outcome {
            Outcome::Usable(reply) => {
                self.policy.reliability.quarantine.clear(client);
                gathered.rejected.retain(|(rejected, _)| *rejected != client);
                gathered.used.push(client);
                gathered.requests.push(request);
                gathered.replies.push(reply);
                return ReplyStatus::Usable;
            }
            Outcome::Missing(reason) => (ReplyStatus::Missing, reason),
            Outcome::Refused(reason) => (ReplyStatus::Refused, reason),
            Outcome::Failed(reason) => (ReplyStatus::Failed, reason),
        };
        if status != ReplyStatus::Missing {
            let rest = self.policy.reliability.quarantine.offend(client, round, self.policy.rules.backoff);
            gathered.events.push(event(EventKind::Quarantined).with_value(rest as f64));
        }
        gathered.first.get_or_insert_with(|| RunError::Client { round, client, reason: reason.clone() });
        gathered.rejected.retain(|(rejected, _)| *rejected != client);
        gathered.rejected.push((client, reason));
        status
    }

    /// Whether the server can use a valid reply: it claims the client's number of rows, and passes the algorithm's own check.
    fn check(&self, reply: &Reply) -> Result<(), String> {
        let (claimed, rows) = (reply.message.scalars.get(ROWS), self.rows.get(reply.client));
        if let (Some(claimed), Some(rows)) = (claimed, rows)
            && *claimed != *rows as f64
        {
            return Err(format!("the reply claims {claimed} rows, and the client has {rows}"));
        }
        self.server.check(reply)
    }

    /// Scores the replies as outliers, if wanted, and applies the robust rule to them.
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
        combine(rules.robust, rules.changes, requests, replies, &mut reliability.norms, events);
        Ok(())
    }

    /// Broadcasts Θ and asks every client; a client that gives no usable answer is absent from the indicators.
    fn ask(
        &self,
        round: usize,
        question: Question,
        traffic: &mut Traffic,
        events: &mut Vec<Event>,
    ) -> Result<Indicators, RunError> {
        let outgoing = Outgoing::new(self.server, round);
        let request = |client| Ok(Request::new(round, client, Ask::Answer(question), outgoing.to(client)?));
        let clients: Vec<ClientId> = (0..self.rows.len()).collect();
        let replies = ask_clients(self.fleet, self.policy, &clients, request, (traffic, events))?;
        Indicators::of(&question, self.server.particles(), &replies, &self.session)
    }
}

/// What the clients of a round are sent. What all are sent is encoded once, when the first of them is asked.
struct Outgoing<'a, B: Backend> {
    server: &'a dyn ServerHalf<B>,
    round: usize,
    to_all: OnceCell<SharedMessage>,
}

impl<'a, B: Backend> Outgoing<'a, B> {
    fn new(server: &'a dyn ServerHalf<B>, round: usize) -> Self {
        Self { server, round, to_all: OnceCell::new() }
    }

    fn to(&self, client: ClientId) -> Result<SharedMessage, RunError> {
        if let Some(own) = self.server.configure_for(self.round, client)? {
            return Ok(own.into());
        }
        if let Some(message) = self.to_all.get() {
            return Ok(message.clone());
        }
        let message = SharedMessage::from(self.server.configure(self.round)?);
        Ok(self.to_all.get_or_init(|| message).clone())
    }
}

/// The replies of a round that were collected so far.
#[derive(Default)]
struct Gathered {
    /// The requests that the replies answer.
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
    fn note_call(&mut self, round: usize, call: &Attempt, selected: &[ClientId]) {
        let attempt = self.attempts;
        let event = |client: &ClientId, what| Event::new(round, attempt, *client, what);
        self.events.extend(call.skipped.iter().map(|client| event(client, EventKind::Skipped)));
        let others = call.asked.iter().filter(|client| !selected.contains(client));
        self.events.extend(others.map(|client| event(client, EventKind::Substitute)));
    }

    /// Why the round could not close: a single attempt's own reason where nothing was usable.
    fn failure(&mut self, round: usize, usable: usize, needed: usize) -> RunError {
        let attempts = self.attempts;
        match self.first.take() {
            Some(first) if attempts > 1 || usable > 0 => {
                RunError::Quorum { round, attempts, usable, needed, first: first.to_string() }
            }
            Some(first) => first,
            None => RunError::Config(format!("round {round}: the schedule chose no client")),
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
