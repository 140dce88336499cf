//! Sends requests and collects replies: one outcome per request, and an event for every reply that is not used.
//!
//! Replies are taken in the order of arrival. Three kinds are ignored: replies to another run, round or state, replies
//! after the deadline, and second replies to one request. The first reply in time is validated ([`validate`]) and
//! decides the outcome, whether it is usable or not. Every reply that arrives counts as traffic.

use std::collections::BTreeMap;

use super::event::{Event, EventKind};
use super::fleet::Fleet;
use super::validate::{answers, validate};
use crate::error::RunError;
use crate::protocol::{Ask, ClientId, Question, Reply, Request, RequestKind, Watch};

/// The outcome of a request, with the reason where there is no usable reply.
#[derive(Debug)]
pub(super) enum RequestOutcome {
    /// A valid reply.
    Usable(Reply),
    /// A reply that cannot be used.
    Refused(String),
    /// The client could not handle the request.
    Failed(String),
    /// There is no reply, or it was ignored.
    Missing(String),
}

impl RequestOutcome {
    /// The reply that can be used, if there is one.
    pub fn usable(self) -> Option<Reply> {
        match self {
            Self::Usable(reply) => Some(reply),
            Self::Refused(_) | Self::Failed(_) | Self::Missing(_) => None,
        }
    }
}

/// The bytes of arrays and indicators.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    /// From the server to the clients, one copy for each.
    pub down: u64,
    /// From the clients to the server.
    pub up: u64,
}

/// The size of an indicator in bytes: one 32-bit float.
const NUMBER_BYTES: u64 = 4;

/// One outcome per request, in the order of the requests. The requests are of one kind and go to different clients.
///
/// # Errors
/// Any error other than the failure of a client.
pub(super) fn exchange(
    fleet: &dyn Fleet,
    requests: &[Request],
    deadline: Option<f64>,
    watch: Watch,
    traffic: &mut Traffic,
    events: &mut Vec<Event>,
) -> Result<Vec<RequestOutcome>, RunError> {
    traffic.down += requests.iter().map(|request| request.message.sent_bytes(request.wire)).sum::<u64>();
    let up = requests.first().map(Request::reply_wire).unwrap_or_default();
    let places: BTreeMap<ClientId, usize> =
        requests.iter().enumerate().map(|(place, request)| (request.client, place)).collect();
    let mut outcomes: Vec<Option<RequestOutcome>> = requests.iter().map(|_| None).collect();
    // The reason why a reply was ignored, for clients without another reply.
    let mut ignored: Vec<Option<String>> = requests.iter().map(|_| None).collect();
    let first = requests.first().map(|request| (request.round, request.attempt, request.ask.kind()));
    let (round, attempt, kind) = first.unwrap_or((0, 1, RequestKind::Training));
    let event = |client, what| Event::new(round, attempt, client, what).of_request(kind);

    let arrived = fleet.dispatch(requests, watch);
    events.extend(fleet.events());
    for answer in arrived {
        let reply = match answer {
            Ok(reply) => reply,
            Err(RunError::Client { client, reason, .. }) => {
                if let Some(slot) = places.get(&client).map(|place| &mut outcomes[*place])
                    && slot.is_none()
                {
                    events.push(event(client, EventKind::Failed).with_detail(&reason));
                    *slot = Some(RequestOutcome::Failed(reason));
                }
                continue;
            }
            Err(other) => return Err(other),
        };
        let client = reply.client;
        let place = places.get(&client).copied();
        traffic.up += reply.message.sent_bytes(up) + place.map_or(0, |place| number_bytes(&requests[place].ask));
        let Some(place) = place else {
            events.push(event(client, EventKind::Stale).with_detail("this client was not asked"));
            continue;
        };
        if let Err(reason) = answers(&requests[place], &reply) {
            events.push(event(client, EventKind::Stale).with_detail(&reason));
            ignored[place] = Some(reason);
        } else if let Some(deadline) = deadline.filter(|deadline| reply.seconds > *deadline) {
            let reason = format!("the reply came after {:.1} s; the round was closed at {deadline} s", reply.seconds);
            events.push(event(client, EventKind::Late).with_detail(&reason));
            ignored[place] = Some(reason);
        } else if outcomes[place].is_some() {
            events.push(event(client, EventKind::Duplicate));
        } else {
            outcomes[place] = Some(match validate(&requests[place], reply) {
                Ok(reply) => RequestOutcome::Usable(reply),
                Err(RunError::Client { reason, .. }) => {
                    events.push(event(client, EventKind::Refused).with_detail(&reason));
                    RequestOutcome::Refused(reason)
                }
                Err(other) => return Err(other),
            });
        }
    }
    let of_request = |((outcome, ignored), request): ((Option<RequestOutcome>, Option<String>), &Request)| {
        outcome.unwrap_or_else(|| {
            if ignored.is_none() {
                events.push(event(request.client, EventKind::Unanswered));
            }
            RequestOutcome::Missing(ignored.unwrap_or_else(|| "no reply came".into()))
        })
    };
    Ok(outcomes.into_iter().zip(ignored).zip(requests).map(of_request).collect())
}

/// The bytes of a reply's number: a discrepancy is the only content of its reply.
fn number_bytes(ask: &Ask) -> u64 {
    if matches!(ask, Ask::Answer(Question::Discrepancy { .. })) { NUMBER_BYTES } else { 0 }
}
