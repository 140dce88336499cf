//! Requests out, whatever arrives in: each request gets the one answer that counts, the rest becomes events.
//!
//! In the order of arrival: what answers no request of these (another run, round or state) is ignored, so is what comes
//! after the deadline, and what comes a second time. The first answer in time is looked at ([`validate`]) and counts,
//! good or bad. All that arrives has travelled, and counts as traffic.

use std::collections::BTreeMap;

use super::event::{Event, Happening};
use super::fleet::Fleet;
use super::validate::{answers, validate};
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Question, Reply, Request, RequestKind, Watch};

/// What became of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A valid reply.
    Usable(Reply),
    /// A reply that cannot be used.
    Refused(String),
    /// The client could not do its part.
    Failed(String),
    /// No reply that counts.
    Silent(String),
}

impl Outcome {
    /// The reply that can be used, if there is one.
    pub fn usable(self) -> Option<Reply> {
        match self {
            Self::Usable(reply) => Some(reply),
            Self::Refused(_) | Self::Failed(_) | Self::Silent(_) => None,
        }
    }
}

/// Bytes of arrays and indicators.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// From the server to the clients, one copy for each.
    pub down: u64,
    /// From the clients to the server.
    pub up: u64,
}

/// Size of an indicator on the wire: one 32-bit float.
const NUMBER_BYTES: u64 = 4;

/// One outcome a request, in the order of the requests; no two of them go to one client, and all are of one kind.
///
/// # Errors
/// Anything but the failure of a client.
pub(super) fn exchange(
    fleet: &dyn Fleet,
    requests: &[Request],
    deadline: Option<f64>,
    watch: Watch,
    traffic: &mut Traffic,
    events: &mut Vec<Event>,
) -> Result<Vec<Outcome>, RunError> {
    traffic.down += requests.iter().map(|request| request.message.bytes()).sum::<u64>();
    let places: BTreeMap<ClientId, usize> =
        requests.iter().enumerate().map(|(place, request)| (request.client, place)).collect();
    let mut outcomes: Vec<Option<Outcome>> = requests.iter().map(|_| None).collect();
    // Why what came does not count, for those from whom nothing else comes.
    let mut ignored: Vec<Option<String>> = requests.iter().map(|_| None).collect();
    let first = requests.first().map(|request| (request.round, request.attempt, request.ask.kind()));
    let (round, attempt, kind) = first.unwrap_or((0, 1, RequestKind::Training));
    let event = |client, what| Event::new(round, attempt, client, what).on(kind);

    let arrived = fleet.dispatch(requests, watch);
    events.extend(fleet.events());
    for answer in arrived {
        let reply = match answer {
            Ok(reply) => reply,
            Err(RunError::Client { client, reason, .. }) => {
                if let Some(slot) = places.get(&client).map(|place| &mut outcomes[*place])
                    && slot.is_none()
                {
                    events.push(event(client, Happening::Failed).because(&reason));
                    *slot = Some(Outcome::Failed(reason));
                }
                continue;
            }
            Err(other) => return Err(other),
        };
        let client = reply.client;
        let place = places.get(&client).copied();
        traffic.up += reply.message.bytes() + place.map_or(0, |place| number_bytes(&requests[place].ask));
        let Some(place) = place else {
            events.push(event(client, Happening::Stale).because("this client was not asked"));
            continue;
        };
        if let Err(reason) = answers(&requests[place], &reply) {
            events.push(event(client, Happening::Stale).because(&reason));
            ignored[place] = Some(reason);
        } else if let Some(deadline) = deadline.filter(|deadline| reply.seconds > *deadline) {
            let reason = format!("the reply came after {} s; the round was closed at {deadline} s", reply.seconds);
            events.push(event(client, Happening::Late).because(&reason));
            ignored[place] = Some(reason);
        } else if outcomes[place].is_some() {
            events.push(event(client, Happening::Duplicate));
        } else {
            outcomes[place] = Some(match validate(&requests[place], reply) {
                Ok(reply) => Outcome::Usable(reply),
                Err(RunError::Client { reason, .. }) => {
                    events.push(event(client, Happening::Refused).because(&reason));
                    Outcome::Refused(reason)
                }
                Err(other) => return Err(other),
            });
        }
    }
    let settle = |((outcome, ignored), request): ((Option<Outcome>, Option<String>), &Request)| {
        outcome.unwrap_or_else(|| {
            if ignored.is_none() {
                events.push(event(request.client, Happening::Unanswered));
            }
            Outcome::Silent(ignored.unwrap_or_else(|| "no reply came".into()))
        })
    };
    Ok(outcomes.into_iter().zip(ignored).zip(requests).map(settle).collect())
}

/// A discrepancy is a number, and all that its client sends.
fn number_bytes(ask: &Ask) -> u64 {
    if matches!(ask, Ask::Answer(Question::Discrepancy { .. })) { NUMBER_BYTES } else { 0 }
}
