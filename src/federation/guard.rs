//! The server's rules against faults, and what it remembers of its clients: their conduct, and which visits counted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::combine::{Norms, Robust};
use super::quarantine::Quarantine;
use crate::protocol::{ClientId, Request};

/// When a round closes, who is asked again, and how replies are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Seconds after which a round takes no more replies; `None` waits for all.
    pub deadline: Option<f64>,
    /// Fewest usable replies that close a round, or all of the selection where that is fewer.
    pub min_replies: usize,
    /// How often a round with fewer is repeated before the run fails.
    pub repeats: usize,
    /// Rounds that a client sits out after its second bad reply in a row; see [`Quarantine`].
    pub backoff: usize,
    /// What replies are put through before the algorithm sees them.
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
pub struct Conduct {
    /// Who sits out.
    pub quarantine: Quarantine,
    /// How far replies moved, for the bound of `norm-clip`.
    pub norms: Norms,
    /// The last round in which a training reply was aggregated, by client.
    pub counted: BTreeMap<ClientId, usize>,
    /// What tells this run from another one of the same configuration; no result depends on it.
    pub nonce: u64,
}

/// Rules and memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    /// The rules.
    pub rules: Rules,
    /// The number of the configuration; see [`Self::number`].
    pub run: u64,
    pub(super) conduct: Conduct,
}

impl Guard {
    /// A guard without memory.
    pub fn new(rules: Rules, run: u64) -> Self {
        Self { rules, run, conduct: Conduct::default() }
    }

    /// Makes the run another one than all others of its configuration.
    pub fn with_nonce(mut self, nonce: u64) -> Self {
        self.conduct.nonce = nonce;
        self
    }

    /// The number of the run, which every request and reply carries.
    pub fn number(&self) -> u64 {
        self.run ^ self.conduct.nonce
    }

    /// The last round in which a training reply of this client was aggregated; 0 where none was.
    pub fn counted(&self, client: ClientId) -> usize {
        self.conduct.counted.get(&client).copied().unwrap_or(0)
    }

    /// The request with the number of the run and what its client has to know of its last visit.
    pub fn stamped(&self, request: Request) -> Request {
        Request { run: self.number(), counted: self.counted(request.client), ..request }
    }

    /// What a checkpoint has to hold.
    pub fn save(&self) -> Conduct {
        self.conduct.clone()
    }

    /// Goes on from a checkpoint.
    pub fn restore(&mut self, conduct: Conduct) {
        self.conduct = conduct;
    }
}
