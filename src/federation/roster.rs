//! Who is asked in a round, and who next where too few can be used.
//!
//! At first those whom the schedule chose, but for those that sit out. Where that is fewer than are needed, and whenever
//! a round repeats, others take their places, in this order: clients not asked yet, by number from the first chosen one
//! on, round and round; those that kept silent; those that sit out from former rounds, the nearest to their end first;
//! those whose reply of this round was refused, as damage may have been done on the way. A client whose own computation
//! failed is not asked twice in a round.

use std::collections::BTreeMap;

use super::quarantine::Quarantine;
use crate::protocol::ClientId;

/// What a client's answer in this round was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It counts.
    Usable,
    /// There was none in time.
    Silent,
    /// It was none that can be used.
    Refused,
    /// The client could not do its part.
    Failed,
}

/// The clients of one round.
#[derive(Debug)]
pub(super) struct Roster<'a> {
    round: usize,
    selected: &'a [ClientId],
    /// K.
    clients: usize,
    standing: BTreeMap<ClientId, Standing>,
}

/// Who is asked in an attempt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// In the order of the requests.
    pub asked: Vec<ClientId>,
    /// Chosen by the schedule, and sitting out.
    pub skipped: Vec<ClientId>,
}

impl<'a> Roster<'a> {
    /// The clients that the schedule chose of K.
    pub fn new(round: usize, selected: &'a [ClientId], clients: usize) -> Self {
        Self { round, selected, clients, standing: BTreeMap::new() }
    }

    /// Notes what an answer was worth.
    pub fn note(&mut self, client: ClientId, standing: Standing) {
        self.standing.insert(client, standing);
    }

    /// Number of usable replies so far.
    pub fn usable(&self) -> usize {
        self.standing.values().filter(|standing| **standing == Standing::Usable).count()
    }

    /// Who is asked first, where `need` replies are needed.
    pub fn first(&self, quarantine: &Quarantine, need: usize) -> Call {
        let sits_out = |client: &&ClientId| quarantine.holds(**client, self.round);
        let (skipped, mut asked): (Vec<ClientId>, Vec<ClientId>) = self.selected.iter().partition(sits_out);
        if asked.len() < need {
            let missing = need - asked.len();
            let others: Vec<ClientId> = self.candidates(quarantine).filter(|other| !asked.contains(other)).collect();
            asked.extend(others.into_iter().take(missing));
        }
        Call { asked, skipped }
    }

    /// Who is asked when the round repeats, where `missing` more replies are needed; nobody where nobody is left.
    pub fn again(&self, quarantine: &Quarantine, missing: usize) -> Vec<ClientId> {
        self.candidates(quarantine).take(missing).collect()
    }

    fn candidates(&self, quarantine: &Quarantine) -> impl Iterator<Item = ClientId> {
        let first = self.selected.first().copied().unwrap_or(0);
        let all: Vec<ClientId> = (0..self.clients).map(|turn| (first + turn) % self.clients).collect();
        let standing = |client: &ClientId| self.standing.get(client).copied();
        let sits_out = |client: &ClientId| quarantine.holds(*client, self.round);
        let of = |keep: &dyn Fn(&ClientId) -> bool| all.iter().copied().filter(keep).collect::<Vec<_>>();
        let fresh = of(&|client| standing(client).is_none() && !sits_out(client));
        let silent = of(&|client| standing(client) == Some(Standing::Silent));
        let mut resting = of(&|client| standing(client).is_none() && sits_out(client));
        resting.sort_by_key(|client| quarantine.until(*client));
        let refused = of(&|client| standing(client) == Some(Standing::Refused));
        [fresh, silent, resting, refused].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_sits_out_is_skipped_and_replaced_only_where_too_few_are_left() {
        let mut quarantine = Quarantine::default();
        quarantine.offend(1, 1, 4);
        quarantine.offend(1, 2, 4);
        let call = |selected: &[ClientId], need| Roster::new(3, selected, 4).first(&quarantine, need);
        assert_eq!(call(&[0, 1, 2], 2), Call { asked: vec![0, 2], skipped: vec![1] });
        assert_eq!(call(&[0, 1, 2], 3), Call { asked: vec![0, 2, 3], skipped: vec![1] });
        assert_eq!(call(&[1], 1), Call { asked: vec![2], skipped: vec![1] });
        assert_eq!(Roster::new(7, &[1], 4).first(&quarantine, 1).asked, [1], "its time is over");
        assert_eq!(Roster::new(3, &[1], 2).first(&quarantine, 1).asked, [0]);
        let alone = Quarantine::default();
        assert_eq!(Roster::new(3, &[0], 1).first(&alone, 1), Call { asked: vec![0], skipped: vec![] });
    }

    #[test]
    fn a_repeated_round_asks_the_fresh_then_the_silent_then_the_resting_then_the_refused() {
        let mut quarantine = Quarantine::default();
        for round in [1, 2] {
            quarantine.offend(3, round, 8);
        }
        let mut roster = Roster::new(3, &[4, 0, 1], 6);
        for (client, standing) in [(4, Standing::Usable), (0, Standing::Silent), (1, Standing::Refused)] {
            roster.note(client, standing);
        }
        assert_eq!(roster.usable(), 1);
        assert_eq!(roster.again(&quarantine, 2), [5, 2]);
        assert_eq!(roster.again(&quarantine, 9), [5, 2, 0, 3, 1]);
        roster.note(1, Standing::Failed);
        assert_eq!(roster.again(&quarantine, 9), [5, 2, 0, 3]);
    }
}
