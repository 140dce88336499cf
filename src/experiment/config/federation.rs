//! `[federation]`: the server's rules for clients that fail.

use fedstein_schema::Accepts::{Bool, Choice, Float};
use fedstein_schema::Literal::{Bool as B, Float as F, Int as I, Text as T};
use fedstein_schema::{COUNT, COUNT_OR_ZERO, Interval, Key, POSITIVE, Section, key};
use serde::{Deserialize, Serialize};

/// The keys of `[federation]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FederationConfig {
    /// The deadline of a request in seconds; 0 for none.
    pub deadline: f64,
    /// The minimum number of usable replies.
    pub min_replies: usize,
    /// The number of repetitions of a round before the run fails.
    pub repeats: usize,
    /// The number of rounds for which a client that failed is not asked.
    pub backoff: usize,
    /// The rule by which replies are combined.
    pub robust: RobustRule,
    /// The largest change that is not clipped, as a multiple of the median length.
    pub robust_clip: f64,
    /// The share of values that is trimmed at either end.
    pub robust_trim: f64,
    /// Whether replies get outlier scores.
    pub outlier_scores: bool,
}

/// The rule that bounds the influence of a few poisoned replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RobustRule {
    /// No rule: replies are used unchanged.
    None,
    /// Long changes are clipped.
    NormClip,
    /// The coordinatewise median, or the median in Wasserstein space where the server has one.
    Median,
    /// The mean of the values without the extreme ones at either end.
    Trimmed,
}

const KEYS: &[Key] = &[
    key(
        "deadline",
        Float(Interval::NOT_NEGATIVE),
        F(0.0),
        "Seconds after which a round takes no more replies, nor answers to questions, nor scores; 0: it waits for all. Clients in this process answer at once, but for injected stragglers: nobody waits.",
    ),
    key(
        "min_replies",
        COUNT,
        I(1),
        "Fewest usable replies that close a round, at most `schedule.clients`. With fewer the server keeps its state, and the round repeats with others in the place of those that failed.",
    ),
    key("repeats", COUNT_OR_ZERO, I(5), "How often a round is repeated before the run fails."),
    key(
        "backoff",
        COUNT_OR_ZERO,
        I(1),
        "Rounds that a client sits out after its second bad reply in a row, twice as many after every further one, at most 64; a usable reply ends it. 0: none. Silence is no bad reply.",
    ),
    key(
        "robust",
        Choice(&["none", "norm-clip", "median", "trimmed"]),
        T("none"),
        "What a few poisoned replies are kept from doing: `norm-clip` shortens changes to `robust_clip` times their median length; `median` and `trimmed` take coordinate-wise medians and trimmed means in the place of means, with `fedwba` the Wasserstein median and the barycenter without the outermost sets. The last two need three clients a round or more, and are refused where replies are no estimates of one thing: `dsvgd`, `u-dsvgd`, `p-dsvgd`, `pvi`, `dsgld`.",
    ),
    key(
        "robust_clip",
        POSITIVE,
        F(1.0),
        "Longest change, in median lengths of the round's changes; in a round of one or two replies, of the latest 50 accepted ones, once there are three.",
    ),
    key(
        "robust_trim",
        Float(Interval::HALF),
        F(0.3),
        "Share of the replies that is left out at either end (`fedwba`: that is farthest from the median set).",
    ),
    key(
        "outlier_scores",
        Bool,
        B(false),
        "Whether every reply gets an outlier score, its Stein discrepancy from a robust Gaussian of the round: a column of rounds.csv (the largest), and events.jsonl. It decides nothing.",
    ),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "federation",
        "The server's rules against clients that fail: when a round closes, who is asked again, how replies are combined.",
        KEYS,
    )
}
