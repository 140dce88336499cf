//! `[checkpoint]`: what a run leaves behind to go on from.

use fedstein_schema::Accepts::{Bool, Float};
use fedstein_schema::Literal::{Bool as B, Float as F};
use fedstein_schema::{Interval, Key, Section, key};
use serde::{Deserialize, Serialize};

/// `[checkpoint]`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// Whether there are any.
    pub enabled: bool,
    /// Least seconds between two.
    pub every_seconds: f64,
    /// Whether the last one stays.
    pub keep: bool,
}

const KEYS: &[Key] = &[
    key("enabled", Bool, B(true), "Whether there are any. Without them a run that stops starts again."),
    key(
        "every_seconds",
        Float(Interval::NOT_NEGATIVE),
        F(30.0),
        "A round that ends this many seconds after the last checkpoint, or later, is followed by one; 0: every round. So are the last round and a Ctrl-C.",
    ),
    key(
        "keep",
        Bool,
        B(true),
        "Whether the last one stays when the run has ended, so that `--resume` with more `rounds` can add to it.",
    ),
];

/// The section.
pub(super) fn section() -> Section {
    Section::plain(
        "checkpoint",
        "What a run leaves behind to go on from with `fedstein train --resume RUN_DIR`; these keys change no result, and `--resume` may change them.",
        KEYS,
    )
}
