//! The one loop over rounds: ask → select → configure → (fleet) → validate → combine → aggregate → settle → tell.
//!
//! The server's state changes in `aggregate` alone, and that sees either enough usable replies to one and the same state
//! or nothing: a round that cannot close leaves no trace in it. `rules` of [`Guard`] say what is enough.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use super::combine::combine;
use super::event::{Event, Happening};
use super::exchange::{Outcome, Traffic, exchange};
use super::fleet::Fleet;
use super::guard::{Guard, Rules};
use super::inquiry::inquire;
use super::outlier::outlier_scores;
use super::roster::{Call, Roster, Standing};
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Question, ROWS, Reply, Request, ServerHalf, Watch};
use crate::schedule::{Indicators, Schedule, Selection};

/// What happened in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Round, from 1.
    pub round: usize,
    /// Who was asked to train, and why.
    pub selection: Selection,
    /// Whose replies were aggregated, in this order: the clients that have changed.
    pub used: Vec<ClientId>,
    /// Whose reply could not be used, and why; the round went on without them.
    pub rejected: Vec<(ClientId, String)>,
    /// How often the round was tried.
    pub attempts: usize,
    /// What happened to its requests and replies.
    pub events: Vec<Event>,
    /// What the clients answered before, where they were asked.
    pub indicators: Option<Indicators>,
    /// Seconds that asking and choosing took.
    pub selection_seconds: f64,
    /// Numbers that the trained clients sent along, by name: the mean over them. And the server's own.
    pub numbers: BTreeMap<String, f64>,
    /// Bytes of arrays and indicators from the server to the clients, one copy for each.
    pub downlink_bytes: u64,
    /// Bytes of arrays and indicators from the clients to the server.
    pub uplink_bytes: u64,
    /// Bytes that the server's half keeps between rounds.
    pub server_bytes: u64,
    /// The server's rules, and what it remembers of its clients after the round.
    pub guard: Guard,
}

/// What an observer of the loop is told.
pub trait Told<B: Backend> {
    /// A round begins with these clients.
    fn begins(&mut self, round: usize, clients: &[ClientId]);
    /// A round ended; `server` has its results. Nothing changes until this returns.
    fn ended(&mut self, round: Round, server: &dyn ServerHalf<B>, schedule: &dyn Schedule) -> Result<(), RunError>;
    /// The run ends in the midst of a round, of which this is what happened.
    fn failed(&mut self, _events: &[Event]) -> Result<(), RunError> {
        Ok(())
    }
}

/// A federation: who decides, who chooses, who works.
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
    /// Asked for diagnosis where the schedule has no question of its own.
    pub diagnosis: Option<Question>,
    /// Rules against faults, and the memory that they need.
    pub guard: &'a mut Guard,
    /// The server's device.
    pub session: Session<B>,
}

impl<B: Backend> Federation<'_, B> {
    /// These rounds, of which 1 is the first of a run; `watch` counts the steps of the visits.
    pub fn serve(
        &mut self,
        rounds: RangeInclusive<usize>,
        watch: Watch,
        told: &mut dyn Told<B>,
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
            told.begins(round, &selection.clients);

            if let Err(error) = self.gather(round, &selection.clients, watch, &mut traffic, &mut gathered) {
                told.failed(&gathered.events)?;
                return Err(error);
            }
            let mut numbers = mean_numbers(&gathered.replies);
            self.temper(&mut gathered)?;
            let Gathered { replies, used, rejected, attempts, events, .. } = gathered;
            self.server.aggregate(replies).map_err(|error| match error {
                RunError::Svgd(error) => RunError::Server { round, error },
                other => other,
            })?;
            self.guard.conduct.counted.extend(used.iter().map(|client| (*client, round)));
            self.fleet.settle(round, &used);
            numbers.extend(self.server.numbers().into_iter().map(|(name, value)| (name.to_owned(), value)));
            let Traffic { down: downlink_bytes, up: uplink_bytes } = traffic;
            let server_bytes = self.server.state_bytes();
            let guard = self.guard.clone();
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
                guard,
            };
            told.ended(round, &*self.server, &*self.schedule)?;
        }
        Ok(())
    }

    /// Asks until enough usable replies have come.
    ///
    /// # Errors
    /// They do not come; the server is as it was.
    fn gather(
        &mut self,
        round: usize,
        selected: &[ClientId],
        watch: Watch,
        traffic: &mut Traffic,
        gathered: &mut Gathered,
    ) -> Result<(), RunError> {
        let Rules { deadline, min_replies, repeats, .. } = self.guard.rules;
        let needed = min_replies.min(selected.len()).max(1);
        let mut roster = Roster::new(round, selected, self.rows.len());
        let mut call = roster.first(&self.guard.conduct.quarantine, needed);
        self.server.begin(round, &call.asked)?;
        loop {
            gathered.attempts += 1;
            gathered.note_call(round, &call, selected);
            let requests = self.requests(round, gathered.attempts, &call.asked)?;
            let outcomes = exchange(self.fleet, &requests, deadline, watch, traffic, &mut gathered.events)?;
            for (request, outcome) in requests.into_iter().zip(outcomes) {
                let client = request.client;
                roster.note(client, self.judge(gathered, request, outcome));
            }
            let usable = roster.usable();
            if usable >= needed {
                return Ok(());
            }
            let next = match gathered.attempts > repeats {
                true => Vec::new(),
                false => roster.again(&self.guard.conduct.quarantine, needed - usable),
            };
            if next.is_empty() {
                return Err(gathered.failure(round, usable, needed));
            }
            // Those who are asked again take nobody's place.
            let absent = call.asked.iter().filter(|client| !gathered.used.contains(client) && !next.contains(client));
            for (absent, by) in absent.zip(next.iter().filter(|client| !call.asked.contains(client))) {
                self.server.substitute(*absent, *by);
            }
            call = Call { asked: next, skipped: Vec::new() };
        }
    }

    fn requests(&self, round: usize, attempt: usize, clients: &[ClientId]) -> Result<Vec<Request>, RunError> {
        let request = |client: &ClientId| {
            let message = self.server.configure(round, *client)?;
            Ok(self.guard.stamped(Request { attempt, ..Request::new(round, *client, Ask::Train, message) }))
        };
        clients.iter().map(request).collect()
    }

    /// Files an answer where it belongs.
    fn judge(&mut self, gathered: &mut Gathered, request: Request, outcome: Outcome) -> Standing {
        let (client, round) = (request.client, request.round);
        let event = |what| Event::new(round, request.attempt, client, what);
        let outcome = match outcome {
            Outcome::Usable(reply) => match self.check(&reply) {
                Ok(()) => Outcome::Usable(reply),
                Err(reason) => {
                    gathered.events.push(event(Happening::Refused).because(&reason));
                    Outcome::Refused(reason)
                }
            },
            other => other,
        };
        let (standing, reason) = match outcome {
            Outcome::Usable(reply) => {
                self.guard.conduct.quarantine.clear(client);
                gathered.rejected.retain(|(rejected, _)| *rejected != client);
                gathered.used.push(client);
                gathered.requests.push(request);
                gathered.replies.push(reply);
                return Standing::Usable;
            }
            Outcome::Silent(reason) => (Standing::Silent, reason),
            Outcome::Refused(reason) => (Standing::Refused, reason),
            Outcome::Failed(reason) => (Standing::Failed, reason),
        };
        if standing != Standing::Silent {
            let rest = self.guard.conduct.quarantine.offend(client, round, self.guard.rules.backoff);
            gathered.events.push(event(Happening::Quarantined).of(rest as f64));
        }
        gathered.first.get_or_insert_with(|| RunError::Client { round, client, reason: reason.clone() });
        gathered.rejected.retain(|(rejected, _)| *rejected != client);
        gathered.rejected.push((client, reason));
        standing
    }

    /// Whether the server can use a valid reply: its rows are those that the client has, and the algorithm agrees.
    fn check(&self, reply: &Reply) -> Result<(), String> {
        let (claimed, rows) = (reply.message.scalars.get(ROWS), self.rows.get(reply.client));
        if let (Some(claimed), Some(rows)) = (claimed, rows)
            && *claimed != *rows as f64
        {
            return Err(format!("the reply claims {claimed} rows, and the client has {rows}"));
        }
        self.server.check(reply)
    }

    /// Scores the replies and puts them through the robust rule.
    fn temper(&mut self, gathered: &mut Gathered) -> Result<(), RunError> {
        let Guard { rules, conduct, .. } = &mut *self.guard;
        let Gathered { requests, replies, events, .. } = gathered;
        if rules.outlier_scores {
            let scores = outlier_scores(requests, replies, &self.session)?;
            for (request, score) in requests.iter().zip(scores) {
                let event = Event::new(request.round, request.attempt, request.client, Happening::Scored);
                events.extend(score.map(|score| event.of(score)));
            }
        }
        combine(rules.robust, rules.changes, requests, replies, &mut conduct.norms, events);
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
        let request = |client| {
            let message = self.server.configure(round, client)?;
            Ok(Request::new(round, client, Ask::Answer(question), message))
        };
        let clients: Vec<ClientId> = (0..self.rows.len()).collect();
        let replies = inquire(self.fleet, self.guard, &clients, request, (traffic, events))?;
        Indicators::of(&question, self.server.particles(), &replies, &self.session)
    }
}

/// The replies of a round, and what happened to them.
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
    fn note_call(&mut self, round: usize, call: &Call, selected: &[ClientId]) {
        let attempt = self.attempts;
        let event = |client: &ClientId, what| Event::new(round, attempt, *client, what);
        self.events.extend(call.skipped.iter().map(|client| event(client, Happening::Skipped)));
        let others = call.asked.iter().filter(|client| !selected.contains(client));
        self.events.extend(others.map(|client| event(client, Happening::Substitute)));
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
