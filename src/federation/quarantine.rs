//! The quarantine of clients whose replies could not be used, with exponential backoff.
//!
//! A client that gives a bad reply takes no further part in its round and can be selected again in the next one. From
//! the second bad reply in a row on, it is quarantined for `backoff`, 2·`backoff`, 4·`backoff`, ... rounds; one usable
//! reply resets the count. All rounds of the federation count, whichever clients they select: under a round-robin of K
//! clients one at a time, only a quarantine of K rounds or more makes a client miss its turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::ClientId;

/// The largest number of rounds of one quarantine.
pub const LONGEST: usize = 64;

/// The latest bad replies of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    /// The number of bad replies in a row.
    in_a_row: u32,
    /// The round of the last bad reply.
    last: usize,
    /// The last round of the quarantine.
    until: usize,
}

/// The clients whose last reply was bad.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    records: BTreeMap<ClientId, Record>,
}

impl Quarantine {
    /// Whether a client is quarantined in this round.
    pub fn contains(&self, client: ClientId, round: usize) -> bool {
        self.until(client) >= round
    }

    /// The last round of a client's quarantine; 0 for clients that are not quarantined.
    pub fn until(&self, client: ClientId) -> usize {
        self.records.get(&client).map_or(0, |record| record.until)
    }

    /// Records a bad reply, at most one per round. Returns the number of rounds of quarantine after this one.
    pub fn record_bad_reply(&mut self, client: ClientId, round: usize, backoff: usize) -> usize {
        let record = self.records.entry(client).or_default();
        if record.last < round {
            record.in_a_row += 1;
            let rounds = match record.in_a_row {
                1 => 0,
                // A shift of more than 16 would exceed the longest quarantine with any backoff.
                more => backoff.saturating_mul(1 << (more - 2).min(16)).min(LONGEST),
            };
            (record.last, record.until) = (round, round + rounds);
        }
        record.until - round
    }

    /// Records a usable reply.
    pub fn record_usable_reply(&mut self, client: ClientId) {
        self.records.remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantine_doubles_with_every_bad_reply_and_ends_with_a_usable_one() {
        let mut quarantine = Quarantine::default();
        let rounds: Vec<usize> = [1, 2, 4, 7, 12].map(|round| quarantine.record_bad_reply(3, round, 1)).to_vec();
        assert_eq!(rounds, [0, 1, 2, 4, 8]);
        assert!(quarantine.contains(3, 20) && !quarantine.contains(3, 21) && !quarantine.contains(0, 13));
        quarantine.record_usable_reply(3);
        assert!(!quarantine.contains(3, 13));
        assert_eq!(quarantine.record_bad_reply(3, 13, 1), 0);
    }

    #[test]
    fn two_bad_replies_in_one_round_count_once_and_a_quarantine_has_a_longest_duration() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.record_bad_reply(0, 5, 3), 0);
        assert_eq!(quarantine.record_bad_reply(0, 5, 3), 0);
        assert_eq!(quarantine.record_bad_reply(0, 6, 3), 3);
        for round in 1..100 {
            assert!(quarantine.record_bad_reply(1, 100 * round, 1_000_000_000) <= LONGEST);
        }
        assert_eq!(quarantine.record_bad_reply(2, 1, 0), 0);
        assert_eq!(quarantine.record_bad_reply(2, 2, 0), 0, "with a backoff of 0 there is no quarantine");
    }
}
