//! Events of requests and replies; each is a line of `events.jsonl`.

use serde::Serialize;

use crate::protocol::{ClientId, RequestKind};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The fault injector disturbed a request. The server does not know of it. The detail is the name of the fault.
    Injected,
    /// There was no reply.
    Unanswered,
    /// The reply came after the deadline and is ignored.
    Late,
    /// A second reply to one request, which is ignored.
    Duplicate,
    /// A reply of another run, round or state, or of a client without a request. It is ignored.
    Stale,
    /// The reply answers its request, but it cannot be used.
    Refused,
    /// The client could not handle the request.
    Failed,
    /// The client is quarantined; the value is the number of rounds after this one, at least 1.
    Quarantined,
    /// The schedule selected a quarantined client, which received no request.
    Skipped,
    /// The client replaces a selected one.
    Substitute,
    /// The reply's change was shortened by `norm-clip`; the value is the factor, the smallest one over its arrays.
    Clipped,
    /// The reply got an outlier score, which is the value.
    Scored,
}

/// An event of one client in one attempt at a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Round, from 1.
    pub round: usize,
    /// Attempt at the round, from 1.
    pub attempt: usize,
    /// The client.
    pub client: ClientId,
    /// The kind of the request; left out of `events.jsonl` for training requests.
    #[serde(skip_serializing_if = "is_training")]
    pub request: RequestKind,
    /// The kind of the event.
    #[serde(rename = "event")]
    pub kind: EventKind,
    /// The reason in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The value, if the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

impl Event {
    /// An event of a training request, without detail or value.
    pub fn new(round: usize, attempt: usize, client: ClientId, kind: EventKind) -> Self {
        Self { round, attempt, client, request: RequestKind::Training, kind, detail: None, value: None }
    }

    /// Sets the kind of the request.
    pub fn of_request(mut self, request: RequestKind) -> Self {
        self.request = request;
        self
    }

    /// Whether the event belongs to a training request.
    pub fn is_of_training(&self) -> bool {
        is_training(&self.request)
    }

    /// Sets the reason.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the value; NaN and infinite values are left out.
    pub fn with_value(mut self, value: f64) -> Self {
        self.value = value.is_finite().then_some(value);
        self
    }
}

fn is_training(kind: &RequestKind) -> bool {
    *kind == RequestKind::Training
}
