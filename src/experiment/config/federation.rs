//! `[federation]`: what is sent in which precision, and the server's rules for clients that fail.

use fedstein_schema::Accepts::{Bool, Choice, Float};
use fedstein_schema::Literal::{Bool as B, Float as F, Int as I, Text as T};
use fedstein_schema::{COUNT, COUNT_OR_ZERO, Interval, Key, POSITIVE, Section, UnusedKeys, key};
use serde::{Deserialize, Serialize};

use crate::protocol::Wire;

/// The keys of `[federation]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FederationConfig {
    /// The precision in which arrays are sent.
    pub wire: Wire,
    /// The deadline of a request in seconds; 0 for none.
    pub deadline: f64,
    /// The minimum number of usable replies.
    pub min_replies: usize,
    /// The number of repetitions of a round before the run fails.
    pub repeats: usize,
    /// The number of rounds of quarantine after a second bad reply in a row.
    pub backoff: usize,
    /// The rule by which replies are combined.
    pub robust: RobustRule,
    /// The largest change that is not clipped, as a multiple of the median length.
    pub robust_clip: f64,
    /// The share of values that is trimmed at either end.
    pub robust_trim: f64,
    /// Whether replies get outlier scores.
    pub outlier_scores: bool,
    /// The MiB that the states of the clients of this process may take between rounds; 0 for any number.
    #[serde(default)]
    pub memory_mib: usize,
}

fedstein_schema::words! {
    /// The rule that bounds the influence of a few poisoned replies.
    pub enum RobustRule {
        /// No rule: replies are used unchanged.
        None = "none",
        /// Long changes are clipped.
        NormClip = "norm-clip",
        /// The coordinatewise median, or the median in Wasserstein space where the server has one.
        Median = "median",
        /// The mean of the values without the extreme ones at either end.
        Trimmed = "trimmed",
    }
}

impl FederationConfig {
    /// The keys that have no effect, because of what others say.
    pub(super) fn unused_keys(&self) -> Vec<UnusedKeys> {
        let of_rule = |rule: RobustRule, keys: &'static [&'static str]| {
            let why = format!("`federation.robust` is not \"{}\"", rule.word());
            (self.robust != rule).then_some(UnusedKeys { keys, why })
        };
        let unused = [of_rule(RobustRule::NormClip, &["robust_clip"]), of_rule(RobustRule::Trimmed, &["robust_trim"])];
        unused.into_iter().flatten().collect()
    }
}

const KEYS: &[Key] = &[
    key(
        "wire",
        Choice(Wire::WORDS),
        T(Wire::Full.word()),
        "Precision in which arrays are sent in both directions and their bytes are counted: `full`, that of the run (f64 for `pvi`); `f32`; `f16`, to 2⁻¹¹ of an element, with a power of two for each array, so that nothing overflows; `bf16`, to 2⁻⁸. Both sides compute with the rounded values in `precision`. Numbers and sums of scores are not rounded. `pvi` takes `full` and `f32`; with all rows in one place nothing is sent.",
    ),
    key(
        "deadline",
        Float(Interval::NOT_NEGATIVE),
        F(0.0),
        "Seconds after which replies, answers to questions and scores are ignored; 0: the server waits for all. Before round 1, where all sites must answer and read their files, they have at least 60 s. After the last round they have the longest of the deadline, 60 s and three times the longest wait of the run for answers about their calibration rows, and the longer of the deadline and 60 s to be told the calibration, even with 0. Clients in this process answer at once; the delay of injected stragglers is simulated.",
    ),
    key(
        "min_replies",
        COUNT,
        I(1),
        "Usable replies that a round needs, at most `schedule.clients`. With fewer, the server's state does not change, and the round is repeated with other clients in the place of those that failed.",
    ),
    key("repeats", COUNT_OR_ZERO, I(5), "How often a round is repeated before the run fails."),
    key(
        "backoff",
        COUNT_OR_ZERO,
        I(1),
        "Rounds of quarantine after a client's second bad reply in a row, twice as many after every further one, at most 64; a usable reply resets the count. 0: no quarantine. A missing reply is not a bad one.",
    ),
    key(
        "robust",
        Choice(RobustRule::WORDS),
        T(RobustRule::None.word()),
        "Rule that bounds the influence of a few poisoned replies: `norm-clip` shortens changes to `robust_clip` times their median length; `median` and `trimmed` replace means by coordinate-wise medians and trimmed means, with `fedwba` by the Wasserstein median and the barycenter without the outermost sets. The last two need at least three clients per round, and are refused where replies do not estimate the same quantity: `dsvgd`, `u-dsvgd`, `p-dsvgd`, `newton-dsvgd`, `local-svgd`, `pvi`, `dsgld`. `local-svgd` and `pvi` refuse every rule.",
    ),
    key(
        "robust_clip",
        POSITIVE,
        F(1.0),
        "Largest length of a change, in median lengths of the round's changes (3 where honest clients differ much: docs/reliability.md); in a round of one or two replies, of the latest 50 accepted changes, once there are three.",
    ),
    key(
        "robust_trim",
        Float(Interval::HALF),
        F(0.3),
        "Share of the replies that is left out at either end, their number rounded down (`fedwba`: the share that is farthest from the median set).",
    ),
    key(
        "outlier_scores",
        Bool,
        B(false),
        "Whether every reply gets an outlier score, its Stein discrepancy from a robust Gaussian of the round: a column of rounds.csv (the largest), and events.jsonl. It has no effect on the run.",
    ),
    key(
        "memory_mib",
        COUNT_OR_ZERO,
        I(0),
        "MiB that the states of the clients of this process may take between rounds; those of the clients that were asked longest ago are files in the run's directory (without one, in the system's directory of temporary files). It changes no result. 0: all states stay in memory. Those of a round's own clients, and the server's, are in memory in any case.",
    ),
];

/// The schema of the section.
pub(super) fn section() -> Section {
    Section::plain(
        "federation",
        "The precision of what is sent, and the server's rules against failing clients: when a round closes, which clients are asked again, and how replies are combined.",
        KEYS,
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::algorithm::{Capabilities, Replies, kinds_that};
    use crate::schedule::SCHEDULE_KINDS;

    /// The algorithms of a federation that are so.
    fn kinds(are: impl Fn(&Capabilities) -> bool) -> BTreeSet<&'static str> {
        kinds_that(|can| !can.centralised && are(can)).into_iter().collect()
    }

    /// The names between backticks.
    fn named(text: &'static str) -> BTreeSet<&'static str> {
        text.split('`').skip(1).step_by(2).collect()
    }

    #[test]
    fn the_texts_of_wire_and_clients_name_the_algorithms_that_differ() {
        let wire = KEYS.iter().find(|key| key.name == "wire").unwrap();
        let (_, refused) = wire.doc.split_once("sums of scores are not rounded. ").unwrap();
        let (refused, _) = refused.split_once(" takes ").unwrap();
        assert_eq!(named(refused), kinds(|can| can.natural_parameters));

        for kind in SCHEDULE_KINDS {
            let clients = kind.key("clients").unwrap();
            let (one, ignored) = clients.doc.split_once(" defined for one; ").unwrap();
            assert_eq!(named(one), kinds(|can| can.one_client_per_round), "{}", kind.name);
            assert_eq!(named(ignored), kinds(|can| can.chooses_clients), "{}", kind.name);
        }
    }

    #[test]
    fn the_text_of_robust_names_the_algorithms_that_refuse_it() {
        let robust = KEYS.iter().find(|key| key.name == "robust").unwrap();
        let (_, refused) = robust.doc.split_once("the same quantity: ").unwrap();
        let (list, all) = refused.split_once(". ").unwrap();
        assert_eq!(named(list), kinds(|can| matches!(can.replies, Replies::Different(_))));
        assert_eq!(named(all), kinds(|can| can.unclipped.is_some()));
    }
}
