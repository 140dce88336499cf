//! Requests other than training: questions before a selection, and scores. They do not change the clients' states.
//!
//! A client without a usable answer in time is left out, and an event records the reason; the run continues. Only
//! training replies count for the quarantine.

use super::event::Event;
use super::exchange::{RequestOutcome, Traffic, exchange};
use super::fault_policy::FaultPolicy;
use super::fleet::Fleet;
use crate::error::RunError;
use crate::protocol::{Ask, Calibrating, ClientId, Message, Reply, Request, Scoring, SharedMessage};

/// Sends a request to each of the clients, in batches of the fleet's size ([`Fleet::at_once`]). Returns one reply for
/// each client, `None` for a client without a usable reply.
///
/// # Errors
/// Any error other than the failure of a client.
pub(super) fn ask_clients(
    fleet: &dyn Fleet,
    policy: &FaultPolicy,
    clients: &[ClientId],
    request: impl Fn(ClientId) -> Result<Request, RunError>,
    (traffic, events): (&mut Traffic, &mut Vec<Event>),
) -> Result<Vec<Option<Reply>>, RunError> {
    let mut replies = Vec::with_capacity(clients.len());
    for some in clients.chunks(fleet.at_once().max(1)) {
        let requests = some.iter().map(|client| Ok(policy.stamped(request(*client)?)));
        let requests = requests.collect::<Result<Vec<_>, RunError>>()?;
        let outcomes = exchange(fleet, &requests, policy.rules.deadline, &|_, _| {}, traffic, events)?;
        replies.extend(outcomes.into_iter().map(RequestOutcome::usable));
    }
    Ok(replies)
}

/// Asks clients about their calibration rows in a round. The traffic is not counted: it is not part of the training.
///
/// # Errors
/// Any error other than the failure of a client.
pub fn ask_to_calibrate(
    fleet: &dyn Fleet,
    policy: &FaultPolicy,
    (round, clients): (usize, &[ClientId]),
    what: Calibrating,
    message: &SharedMessage,
) -> Result<Scores, RunError> {
    let request = |client| Ok(Request::new(round, client, Ask::Calibrate(what), message.clone()));
    let mut events = Vec::new();
    let replies = ask_clients(fleet, policy, clients, request, (&mut Traffic::default(), &mut events))?;
    Ok(Scores { replies, events })
}

/// What clients answered about their own rows.
#[derive(Debug)]
pub struct Scores {
    /// One reply for each client, `None` for a client without a usable reply.
    pub replies: Vec<Option<Reply>>,
    /// The events of requests and replies.
    pub events: Vec<Event>,
}

/// Asks clients for the scores that are wanted, given a message with what is scored.
///
/// The scores are not part of the training, so their traffic is not counted.
///
/// # Errors
/// Any error other than the failure of a client.
pub fn ask_for_scores(
    fleet: &dyn Fleet,
    policy: &FaultPolicy,
    message: Message,
    round: usize,
    clients: &[ClientId],
    wanted: Scoring,
) -> Result<Scores, RunError> {
    let message = SharedMessage::sent(message, policy.rules.wire);
    let request = |client| Ok(Request::new(round, client, Ask::Score(wanted), message.clone()));
    let mut events = Vec::new();
    let replies = ask_clients(fleet, policy, clients, request, (&mut Traffic::default(), &mut events))?;
    Ok(Scores { replies, events })
}
