//! The server's rules against faults, and its record of the clients: quarantines, and which replies were aggregated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::quarantine::Quarantine;
use super::robust::{Norms, Robust};
use crate::protocol::{ClientId, Request, Wire};

/// The rules by which a round closes, clients are asked again, replies are combined, and messages are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The number of seconds after which replies to a request are ignored; `None` waits for all.
    pub deadline: Option<f64>,
    /// The number of usable replies that a round needs. If fewer clients are selected, all of them are needed.
    pub min_replies: usize,
    /// How often a round with fewer usable replies is repeated before the run fails.
    pub repeats: usize,
    /// The number of rounds of quarantine after a second bad reply in a row; see [`Quarantine`].
    pub backoff: usize,
    /// The robust rule that is applied to the replies before the algorithm sees them.
    pub robust: Robust,
    /// The names of the arrays of a reply that are changes, rather than new values of the arrays that were sent.
    pub changes: &'static [&'static str],
    /// Those of them that are sums over the client's rows.
    pub row_sums: &'static [&'static str],
    /// Whether every reply gets an outlier score.
    pub outlier_scores: bool,
    /// The precision in which arrays are sent in both directions.
    pub wire: Wire,
    /// Whether messages are sent at all, so that their bytes count: not where all rows are in one place.
    pub sends: bool,
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
            row_sums: &[],
            outlier_scores: false,
            wire: Wire::Full,
            sends: true,
        }
    }
}

/// The server's record of its clients and its run: a part of its state, which is saved and restored with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReliability {
    /// The quarantined clients.
    pub quarantine: Quarantine,
    /// The lengths of earlier changes, for the bound of `norm-clip`.
    pub norms: Norms,
    /// The last round in which a training reply was aggregated, by client.
    pub counted: BTreeMap<ClientId, usize>,
    /// The number of the run, drawn at its start, by which clients tell its requests from those of other runs. No result
    /// depends on it.
    pub number: u64,
}

/// The rules and the record of the clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPolicy {
    /// The rules.
    pub rules: Rules,
    pub(super) reliability: ClientReliability,
}

impl FaultPolicy {
    /// The rules at the start of a run with this number.
    pub fn new(rules: Rules, number: u64) -> Self {
        Self { rules, reliability: ClientReliability { number, ..ClientReliability::default() } }
    }

    /// The number of the run, which every request and reply contains.
    pub fn number(&self) -> u64 {
        self.reliability.number
    }

    /// The last round in which a training reply of this client was aggregated; 0 where none was.
    pub fn counted(&self, client: ClientId) -> usize {
        self.reliability.counted.get(&client).copied().unwrap_or(0)
    }

    /// The request with the number of the run and the last round in which the client's reply was aggregated.
    pub fn stamped(&self, request: Request) -> Request {
        Request { run: self.number(), counted: self.counted(request.client), ..request }
    }

    /// The record of the clients, for a checkpoint.
    pub fn save(&self) -> ClientReliability {
        self.reliability.clone()
    }

    /// Restores the record of a checkpoint.
    pub fn restore(&mut self, reliability: ClientReliability) {
        self.reliability = reliability;
    }
}
