//! The one loop over rounds: ask → select → configure → (fleet) → validate → aggregate → tell.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use super::fleet::{Fleet, Watch};
use super::message::{Ask, ClientId, Question, Reply, Request};
use super::validate::validate;
use crate::algorithm::ServerHalf;
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::schedule::{Indicators, Schedule, Selection};

/// What happened in a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Round, from 1.
    pub round: usize,
    /// Who was asked to train, and why.
    pub selection: Selection,
    /// Whose reply could not be used, and why; the round went on without them.
    pub rejected: Vec<(ClientId, String)>,
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
}

/// What an observer of the loop is told.
pub trait Told<B: Backend> {
    /// A round begins with these clients.
    fn begins(&mut self, round: usize, clients: &[ClientId]);
    /// A round ended; `server` has its results. Nothing changes until this returns.
    fn ended(&mut self, round: Round, server: &dyn ServerHalf<B>, schedule: &dyn Schedule) -> Result<(), RunError>;
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
    /// Number of clients K.
    pub clients: usize,
    /// Asked for diagnosis where the schedule has no question of its own.
    pub diagnosis: Option<Question>,
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
            let mut traffic = Traffic::default();
            let indicators = match self.schedule.question().or(self.diagnosis) {
                Some(question) => Some(self.ask(round, question, &mut traffic)?),
                None => None,
            };
            let selection = self.schedule.select(round, indicators.as_ref());
            let selection_seconds = start.elapsed().as_secs_f64();
            told.begins(round, &selection.clients);

            self.server.begin(round, &selection.clients)?;
            let request = |client: &ClientId| {
                let message = self.server.configure(round, *client)?;
                Ok(Request { round, client: *client, ask: Ask::Train, message })
            };
            let requests = selection.clients.iter().map(request).collect::<Result<Vec<_>, RunError>>()?;
            let (replies, rejected) = usable(exchange(self.fleet, &requests, watch, &mut traffic))?;
            let mut numbers = mean_numbers(&replies);
            self.server.aggregate(replies).map_err(|error| match error {
                RunError::Svgd(error) => RunError::Server { round, error },
                other => other,
            })?;
            numbers.extend(self.server.numbers().into_iter().map(|(name, value)| (name.to_owned(), value)));
            let Traffic { down: downlink_bytes, up: uplink_bytes } = traffic;
            let server_bytes = self.server.state_bytes();
            let round = Round {
                round,
                selection,
                rejected,
                indicators,
                selection_seconds,
                numbers,
                downlink_bytes,
                uplink_bytes,
                server_bytes,
            };
            told.ended(round, &*self.server, &*self.schedule)?;
        }
        Ok(())
    }

    /// Broadcasts Θ and asks every client.
    fn ask(&self, round: usize, question: Question, traffic: &mut Traffic) -> Result<Indicators, RunError> {
        let request = |client| {
            Ok(Request { round, client, ask: Ask::Answer(question), message: self.server.configure(round, client)? })
        };
        let mut replies = Vec::with_capacity(self.clients);
        for first in (0..self.clients).step_by(ASKED_AT_ONCE) {
            let some = first..(first + ASKED_AT_ONCE).min(self.clients);
            let requests = some.map(request).collect::<Result<Vec<_>, RunError>>()?;
            for answer in exchange(self.fleet, &requests, &|_, _| {}, traffic) {
                replies.push(answer?);
            }
        }
        Indicators::of(&question, self.server.particles(), &replies, &self.session)
    }
}

#[derive(Default)]
struct Traffic {
    down: u64,
    up: u64,
}

/// Requests out, validated replies in, in the same order; what is refused has travelled all the same.
fn exchange(
    fleet: &dyn Fleet,
    requests: &[Request],
    watch: Watch,
    traffic: &mut Traffic,
) -> Vec<Result<Reply, RunError>> {
    traffic.down += requests.iter().map(|request| request.message.bytes()).sum::<u64>();
    let checked = |(request, answer): (&Request, Result<Reply, RunError>)| {
        let reply = answer?;
        // A discrepancy is a number, and all that its client sends.
        let number = matches!(request.ask, Ask::Answer(Question::Discrepancy { .. }));
        traffic.up += reply.message.bytes() + if number { NUMBER_BYTES } else { 0 };
        validate(request, reply)
    };
    requests.iter().zip(fleet.dispatch(requests, watch)).map(checked).collect()
}

/// The replies that can be used, and whose could not be.
///
/// # Errors
/// Not one can be used: the first one's reason.
#[allow(clippy::type_complexity)] // Replies and rejections, told apart.
fn usable(answers: Vec<Result<Reply, RunError>>) -> Result<(Vec<Reply>, Vec<(ClientId, String)>), RunError> {
    let (mut replies, mut rejected, mut first) = (Vec::new(), Vec::new(), None);
    for answer in answers {
        match answer {
            Ok(reply) => replies.push(reply),
            Err(RunError::Client { round, client, reason }) => {
                rejected.push((client, reason.clone()));
                first.get_or_insert(RunError::Client { round, client, reason });
            }
            Err(other) => return Err(other),
        }
    }
    match first {
        Some(error) if replies.is_empty() => Err(error),
        _ => Ok((replies, rejected)),
    }
}

/// Asks clients how well their own predictors do, given what the server publishes; one answer for each client.
///
/// This is no part of the training, so its traffic is not counted.
///
/// # Errors
/// A client cannot answer.
pub fn ask_for_scores<B: Backend>(
    fleet: &dyn Fleet,
    server: &dyn ServerHalf<B>,
    round: usize,
    clients: &[ClientId],
) -> Result<Vec<Reply>, RunError> {
    let message = server.publish()?;
    let request = |client: &ClientId| Request { round, client: *client, ask: Ask::Score, message: message.clone() };
    let mut replies = Vec::with_capacity(clients.len());
    for some in clients.chunks(ASKED_AT_ONCE) {
        let requests: Vec<Request> = some.iter().map(request).collect();
        for answer in exchange(fleet, &requests, &|_, _| {}, &mut Traffic::default()) {
            replies.push(answer?);
        }
    }
    Ok(replies)
}

/// Clients to which Θ is on its way at once: K copies of a large Θ would need more memory than everything else.
const ASKED_AT_ONCE: usize = 16;

/// Size of an indicator on the wire: one 32-bit float.
const NUMBER_BYTES: u64 = 4;

fn mean_numbers(replies: &[Reply]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, value) in replies.iter().flat_map(|reply| &reply.message.scalars) {
        let (sum, count) = sums.entry(name.clone()).or_default();
        (*sum, *count) = (*sum + value, *count + 1.0);
    }
    sums.into_iter().map(|(name, (sum, count))| (name, sum / count)).collect()
}
