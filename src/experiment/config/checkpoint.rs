//! `[checkpoint]`: when a run saves the state from which it can resume.

use fedstein_schema::Accepts::{Bool, Float};
use fedstein_schema::Literal::{Bool as B, Float as F};
use fedstein_schema::{Interval, Key, Section, key};
use serde::{Deserialize, Serialize};

/// The keys of `[checkpoint]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CheckpointConfig {
    /// Whether checkpoints are written.
    pub enabled: bool,
    /// Minimum number of seconds between two checkpoints.
    pub every_seconds: f64,
    /// Whether the last checkpoint is kept after the run.
    pub keep: bool,
}

const KEYS: &[Key] = &[
    key(
        "enabled",
        Bool,
        B(true),
        "Whether checkpoints are written. Without them, a run that was stopped has to start again.",
    ),
    key(
        "every_seconds",
        Float(Interval::NOT_NEGATIVE),
        F(30.0),
        "Seconds between checkpoints: a round that ends this long after the last checkpoint, or later, is followed by one; 0: every round. The last round and Ctrl-C are always followed by one.",
    ),
    key(
        "keep",
        Bool,
        B(true),
        "Whether the last checkpoint is kept when the run has ended, so that `--resume` with more `rounds` can continue it.",
    ),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "checkpoint",
        "The checkpoints, from which `fedstein train --resume RUN_DIR` continues a run; these keys change no result, and `--resume` may change them.",
        KEYS,
    )
}
