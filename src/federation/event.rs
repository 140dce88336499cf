//! What happened to requests and replies: a line each of `events.jsonl`.

use serde::Serialize;

use crate::protocol::{ClientId, RequestKind};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Happening {
    /// The fault injector disturbed a visit: the truth, which the server does not know. The detail is the fault.
    Injected,
    /// No reply came.
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
    /// The client sits out; the value is for how many rounds after this one.
    Quarantined,
    /// The schedule chose a client that sits out; it was not asked.
    Skipped,
    /// The client was asked in the place of others.
    Substitute,
    /// The change that the reply brings was shortened; the value is the factor, of several arrays the smallest.
    Clipped,
    /// How far the reply lies from the others: the value is its outlier score.
    Scored,
}

/// Something that happened to one client in one attempt at a round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// Round, from 1.
    pub round: usize,
    /// Attempt at the round, from 1.
    pub attempt: usize,
    /// Whom it concerns.
    pub client: ClientId,
    /// What the client was asked for; left out of `events.jsonl` where it was asked to train.
    #[serde(skip_serializing_if = "is_training")]
    pub request: RequestKind,
    /// What happened.
    #[serde(rename = "event")]
    pub what: Happening,
    /// Why, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// How much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

impl Event {
    /// An event of a visit, without detail or value.
    pub fn new(round: usize, attempt: usize, client: ClientId, what: Happening) -> Self {
        Self { round, attempt, client, request: RequestKind::Training, what, detail: None, value: None }
    }

    /// The same event of a request of this kind.
    pub fn on(mut self, request: RequestKind) -> Self {
        self.request = request;
        self
    }

    /// Whether it is of a visit, rather than of a question or of scores.
    pub fn is_of_training(&self) -> bool {
        is_training(&self.request)
    }

    /// The event with its reason.
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The event with its size; a value that is no number is left out.
    pub fn of(mut self, value: f64) -> Self {
        self.value = value.is_finite().then_some(value);
        self
    }
}

fn is_training(kind: &RequestKind) -> bool {
    *kind == RequestKind::Training
}
