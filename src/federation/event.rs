//! Events of requests and replies; each is a line of `events.jsonl`.

use serde::Serialize;

use crate::protocol::{ClientId, RequestKind};

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The fault injector disturbed a request, which the server does not know. The detail is the fault.
    Injected,
    /// There was no reply.
    Unanswered,
    /// The reply came after the deadline; it is ignored.
    Late,
    /// A second reply to one request; it is ignored.
    Duplicate,
    /// A reply of another run, round or state, or of a client that was not asked; it is ignored.
    Stale,
    /// The reply answers its request, and cannot be used.
    Refused,
    /// The client could not do its part.
    Failed,
    /// The client is quarantined; the value is for how many rounds after this one.
    Quarantined,
    /// The schedule selected a client that is quarantined; it was not asked.
    Skipped,
    /// The client was asked in the place of others.
    Substitute,
    /// The reply's change was shortened by `norm-clip`; the value is the factor, the smallest one over its arrays.
    Clipped,
    /// How far the reply lies from the others: the value is its outlier score.
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
    /// What the client was asked for; left out of `events.jsonl` where it was asked to train.
    #[serde(skip_serializing_if = "is_training")]
    pub request: RequestKind,
    /// Its kind.
    #[serde(rename = "event")]
    pub kind: EventKind,
    /// The reason, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The size, if the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

impl Event {
    /// An event of a training request, without detail or value.
    pub fn new(round: usize, attempt: usize, client: ClientId, kind: EventKind) -> Self {
        Self { round, attempt, client, request: RequestKind::Training, kind, detail: None, value: None }
    }

    /// The same event of a request of this kind.
    pub fn of_request(mut self, request: RequestKind) -> Self {
        self.request = request;
        self
    }

    /// Whether it is of a training request, rather than of a question or of scores.
    pub fn is_of_training(&self) -> bool {
        is_training(&self.request)
    }

    /// The event with its reason.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The event with its size; a value that is NaN or infinite is left out.
    pub fn with_value(mut self, value: f64) -> Self {
        self.value = value.is_finite().then_some(value);
        self
    }
}

fn is_training(kind: &RequestKind) -> bool {
    *kind == RequestKind::Training
}
