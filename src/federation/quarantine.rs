//! Who sits out: clients whose replies could not be used, for longer each time.
//!
//! A client that gives a bad reply is out for the rest of its round and asked again in the next. From the second bad reply
//! in a row on it also sits out whole rounds, `backoff`, 2·`backoff`, 4·`backoff`, ... of them; one usable reply wipes the
//! slate. Time is counted in rounds of the federation, whoever's turn they are: under a round-robin of K clients one at a
//! time, a client is only missed where it sits out K rounds or more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::protocol::ClientId;

/// Most rounds that a client sits out at a time.
pub const LONGEST: usize = 64;

/// A client's bad replies in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    in_a_row: u32,
    /// The round of the last one.
    last: usize,
    /// The last round that it sits out.
    until: usize,
}

/// The clients with bad replies behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    records: BTreeMap<ClientId, Record>,
}

impl Quarantine {
    /// Whether a client sits this round out.
    pub fn holds(&self, client: ClientId, round: usize) -> bool {
        self.until(client) >= round
    }

    /// The last round that a client sits out; 0 for those that do not.
    pub fn until(&self, client: ClientId) -> usize {
        self.records.get(&client).map_or(0, |record| record.until)
    }

    /// Notes a bad reply, at most one per round. Returns the number of rounds after this one of quarantine.
    pub fn offend(&mut self, client: ClientId, round: usize, backoff: usize) -> usize {
        let record = self.records.entry(client).or_default();
        if record.last < round {
            record.in_a_row += 1;
            let rest = match record.in_a_row {
                1 => 0,
                // Beyond a shift of 16 every backoff is past the longest.
                more => backoff.saturating_mul(1 << (more - 2).min(16)).min(LONGEST),
            };
            (record.last, record.until) = (round, round + rest);
        }
        record.until - round
    }

    /// Notes a usable reply.
    pub fn clear(&mut self, client: ClientId) {
        self.records.remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_reply_costs_its_round_and_later_ones_twice_as_many_each() {
        let mut quarantine = Quarantine::default();
        let rests: Vec<usize> = [1, 2, 4, 7, 12].map(|round| quarantine.offend(3, round, 1)).to_vec();
        assert_eq!(rests, [0, 1, 2, 4, 8]);
        assert!(quarantine.holds(3, 20) && !quarantine.holds(3, 21) && !quarantine.holds(0, 13));
        quarantine.clear(3);
        assert!(!quarantine.holds(3, 13));
        assert_eq!(quarantine.offend(3, 13, 1), 0);
    }

    #[test]
    fn two_bad_replies_in_one_round_count_once_and_nobody_sits_out_for_ever() {
        let mut quarantine = Quarantine::default();
        assert_eq!(quarantine.offend(0, 5, 3), 0);
        assert_eq!(quarantine.offend(0, 5, 3), 0);
        assert_eq!(quarantine.offend(0, 6, 3), 3);
        for round in 1..100 {
            assert!(quarantine.offend(1, 100 * round, 1_000_000_000) <= LONGEST);
        }
        assert_eq!(quarantine.offend(2, 1, 0), 0);
        assert_eq!(quarantine.offend(2, 2, 0), 0, "a backoff of 0 is none");
    }
}
