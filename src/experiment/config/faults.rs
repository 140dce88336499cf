//! `[faults]`: faults that are injected between server and clients.

use fedstein_schema::Accepts::{Float, TextList};
use fedstein_schema::Literal::{Float as F, Texts};
use fedstein_schema::{Interval, Key, POSITIVE, Section, key};
use serde::{Deserialize, Serialize};

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
        "What goes wrong with a visit, each as likely: `dropout` (the request is lost), `straggler`, `duplicate`, `reordered`, `stale` (of the round before), `nan`, `inf`, `wrong-shape`, `wrong-dtype`, `wrong-n` (a row too many), `huge-norm` (the change times `factor`), `sign-flip` (of the change), `replay` (an old reply under new stamps), `lost-reply` (the client trains, and the reply does not arrive). `[]`: nothing.",
    ),
    key(
        "requests",
        TextList { example: r#"["training", "question"]"# },
        Texts(&["training"]),
        "Which requests are disturbed: `training`, `question` (before a selection, or `evaluation.discrepancy`), `scores` (`evaluation.personal`). The last two take `dropout`, `lost-reply`, `straggler`, `duplicate`, `reordered`, `stale`, `nan` and `inf`; the other kinds leave them as they are.",
    ),
    key(
        "share",
        Float(Interval::FRACTION),
        F(0.3),
        "Share of the clients that are ever disturbed, rounded up, drawn with `seed`.",
    ),
    key(
        "probability",
        Float(Interval::FRACTION),
        F(1.0),
        "Probability that a request to one of them is, drawn with `seed` by kind of request, round, client and attempt.",
    ),
    key("factor", POSITIVE, F(100.0), "What a `huge-norm` change is multiplied with."),
    key("delay", POSITIVE, F(60.0), "Seconds by which a `straggler` is late, in simulated time."),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "faults",
        "Faults that are injected between server and clients, to study what they do; none by default.",
        KEYS,
    )
}
