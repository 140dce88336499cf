//! `[faults]`: faults that are injected between server and clients.

use fedstein_schema::Accepts::{Float, TextList};
use fedstein_schema::Literal::{Float as F, Texts};
use fedstein_schema::{Interval, Key, POSITIVE, Section, key};
use serde::{Deserialize, Serialize};

use crate::protocol::RequestKind;

/// The keys of `[faults]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultsConfig {
    /// The names of the faults: values of [`Fault`](crate::federation::faults::Fault).
    pub kinds: Vec<String>,
    /// The names of the requests that are disturbed: values of `RequestKind`.
    pub requests: Vec<String>,
    /// The share of the clients that are ever disturbed.
    pub share: f64,
    /// The probability that a request to one of these clients is disturbed.
    pub probability: f64,
    /// The factor by which a `huge-norm` change is multiplied.
    pub factor: f64,
    /// The delay of a straggler in seconds.
    pub delay: f64,
}

const KEYS: &[Key] = &[
    key(
        "kinds",
        TextList { example: r#"["dropout", "nan"]"# },
        Texts(&[]),
        "The injected faults, each equally likely: `dropout` (the request is lost), `straggler`, `duplicate`, `reordered`, `stale` (of the round before), `nan`, `inf`, `wrong-shape`, `wrong-dtype`, `wrong-n` (a row too many), `huge-norm` (the change times `factor`), `sign-flip` (of the change), `replay` (an old reply with the numbers of this round), `lost-reply` (the client trains, but its reply does not arrive). `[]`: none.",
    ),
    key(
        "requests",
        TextList { example: r#"["training", "question"]"# },
        Texts(&[RequestKind::Training.word()]),
        "The requests that are disturbed: `training`, `question` (before a selection, or `evaluation.discrepancy`), `scores` (`evaluation.personal`). The last two take `dropout`, `lost-reply`, `straggler`, `duplicate`, `reordered`, `stale`, `nan` and `inf`; the other kinds do not affect them.",
    ),
    key(
        "share",
        Float(Interval::FRACTION),
        F(0.3),
        "Share of the clients whose requests are disturbed; their number is rounded up, and they are drawn with `seed`.",
    ),
    key(
        "probability",
        Float(Interval::FRACTION),
        F(1.0),
        "Probability that a request to one of these clients is disturbed, drawn with `seed` by kind of request, round, client and attempt.",
    ),
    key("factor", POSITIVE, F(100.0), "Factor by which `huge-norm` multiplies a change."),
    key("delay", POSITIVE, F(60.0), "Delay of a `straggler` in seconds of simulated time."),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "faults",
        "Faults that are injected between server and clients, to study their effects; none by default.",
        KEYS,
    )
}
