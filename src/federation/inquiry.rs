//! What clients are asked beside training: questions before a selection, and scores. Their states stay as they are.
//!
//! A client that does not answer, or not in time, or nothing that can be used, ends nothing: the others go on without it,
//! and an event says why. Only training replies count for the quarantine.

use super::event::Event;
use super::exchange::{Outcome, Traffic, exchange};
use super::fleet::Fleet;
use super::guard::Guard;
use crate::backend::Backend;
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Reply, Request, ServerHalf};

/// Asks clients in turns of as many as the fleet takes at once; one answer for each client, `None` for an absent one.
///
/// # Errors
/// Anything but the failure of a client.
pub(super) fn inquire(
    fleet: &dyn Fleet,
    guard: &Guard,
    clients: &[ClientId],
    request: impl Fn(ClientId) -> Result<Request, RunError>,
    (traffic, events): (&mut Traffic, &mut Vec<Event>),
) -> Result<Vec<Option<Reply>>, RunError> {
    let mut replies = Vec::with_capacity(clients.len());
    for some in clients.chunks(fleet.at_once().max(1)) {
        let requests = some.iter().map(|client| Ok(guard.stamped(request(*client)?)));
        let requests = requests.collect::<Result<Vec<_>, RunError>>()?;
        let outcomes = exchange(fleet, &requests, guard.rules.deadline, &|_, _| {}, traffic, events)?;
        replies.extend(outcomes.into_iter().map(Outcome::usable));
    }
    Ok(replies)
}

/// What clients say about their own predictors.
#[derive(Debug)]
pub struct Scores {
    /// One answer for each client, `None` for an absent one.
    pub replies: Vec<Option<Reply>>,
    /// What happened to requests and replies.
    pub events: Vec<Event>,
}

/// Asks clients how well their own predictors do, given what the server publishes.
///
/// This is no part of the training, so its traffic is not counted.
///
/// # Errors
/// Anything but the failure of a client.
pub fn ask_for_scores<B: Backend>(
    fleet: &dyn Fleet,
    guard: &Guard,
    server: &dyn ServerHalf<B>,
    round: usize,
    clients: &[ClientId],
) -> Result<Scores, RunError> {
    let message = server.publish()?;
    let request = |client| Ok(Request::new(round, client, Ask::Score, message.clone()));
    let mut events = Vec::new();
    let replies = inquire(fleet, guard, clients, request, (&mut Traffic::default(), &mut events))?;
    Ok(Scores { replies, events })
}
