//! The server's rules against faults, and what it remembers of its clients: bad replies, and which visits counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::combine::{Norms, Robust};
use super::quarantine::Quarantine;
use crate::protocol::{ClientId, Request};

/// When a round closes, which clients are asked again, and how replies are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Seconds after which a round takes no more replies; `None` waits for all.
    pub deadline: Option<f64>,
    /// Fewest usable replies that close a round, or all of the selection where that is fewer.
    pub min_replies: usize,
    /// How often a round with fewer is repeated before the run fails.
    pub repeats: usize,
    /// Rounds of quarantine after a second bad reply in a row; see [`Quarantine`].
    pub backoff: usize,
    /// The robust rule that is applied to the replies before the algorithm sees them.
    pub robust: Robust,
    /// Arrays of a reply that are changes already, not new values of what was sent.
    pub changes: &'static [&'static str],
    /// Whether every reply gets an outlier score.
    pub outlier_scores: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            deadline: None,
            min_replies: 1,
            repeats: 5,
            backoff: 1,
            robust: Robust::None,
            changes: &[],
            outlier_scores: false,
        }
    }
}

/// What the server remembers of its clients and its run: a part of its state, saved and restored with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReliability {
    /// The quarantined clients.
    pub quarantine: Quarantine,
    /// Lengths of earlier changes, for the bound of `norm-clip`.
    pub norms: Norms,
    /// The last round in which a training reply was aggregated, by client.
    pub counted: BTreeMap<ClientId, usize>,
    /// A number that distinguishes this run from others of the same configuration; no result depends on it.
    pub nonce: u64,
}

/// The rules, and what is remembered of the clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPolicy {
    /// The rules.
    pub rules: Rules,
    /// The number of the configuration; see [`Self::number`].
    pub run: u64,
    pub(super) reliability: ClientReliability,
}

impl FaultPolicy {
    /// The rules at the start of a run.
    pub fn new(rules: Rules, run: u64) -> Self {
        Self { rules, run, reliability: ClientReliability::default() }
    }

    /// The policy of a run that is distinguished by this number from others of the same configuration.
    pub fn with_nonce(mut self, nonce: u64) -> Self {
        self.reliability.nonce = nonce;
        self
    }

    /// The number of the run, which every request and reply carries.
    pub fn number(&self) -> u64 {
        self.run ^ self.reliability.nonce
    }

    /// The last round in which a training reply of this client was aggregated; 0 where none was.
    pub fn counted(&self, client: ClientId) -> usize {
        self.reliability.counted.get(&client).copied().unwrap_or(0)
    }

    /// The request with the number of the run and what its client has to know of its last visit.
    pub fn stamped(&self, request: Request) -> Request {
        Request { run: self.number(), counted: self.counted(request.client), ..request }
    }

    /// What a checkpoint has to hold.
    pub fn save(&self) -> ClientReliability {
        self.reliability.clone()
    }

    /// Goes on from a checkpoint.
    pub fn restore(&mut self, conduct: ClientReliability) {
        self.reliability = conduct;
    }
}
