//! The clients of a round: which clients get a request, and which ones replace them if too few replies can be used.
//!
//! The first attempt goes to the selected clients that are not quarantined. If these are fewer than needed, and
//! whenever a round is repeated, other clients take their places, in this order: clients without a request in this
//! round, by number from the first selected one on, cyclically; clients that did not reply; clients quarantined in
//! earlier rounds, those released soonest first; clients whose reply of this round was refused, since the reply may
//! have been damaged in transit. A client whose own computation failed gets no second request in a round.

use std::collections::BTreeMap;

use super::quarantine::Quarantine;
use crate::protocol::ClientId;

/// The status of a client's reply in this round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyStatus {
    /// The reply can be used.
    Usable,
    /// There was no reply in time.
    Missing,
    /// The reply cannot be used.
    Refused,
    /// The client could not handle the request.
    Failed,
}

/// Which clients were asked in a round, and how they replied.
#[derive(Debug)]
pub(super) struct Attendance<'a> {
    round: usize,
    selected: &'a [ClientId],
    /// The number of clients K.
    clients: usize,
    status: BTreeMap<ClientId, ReplyStatus>,
}

/// The clients of one attempt at a round.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Attempt {
    /// The clients that get a request, in the order of the requests.
    pub asked: Vec<ClientId>,
    /// The clients that the schedule selected and that are quarantined.
    pub skipped: Vec<ClientId>,
}

impl<'a> Attendance<'a> {
    /// Before the first request of a round, of the clients that the schedule selected out of K.
    pub fn new(round: usize, selected: &'a [ClientId], clients: usize) -> Self {
        Self { round, selected, clients, status: BTreeMap::new() }
    }

    /// Records the status of a reply.
    pub fn note(&mut self, client: ClientId, status: ReplyStatus) {
        self.status.insert(client, status);
    }

    /// The number of usable replies so far.
    pub fn usable(&self) -> usize {
        self.status.values().filter(|status| **status == ReplyStatus::Usable).count()
    }

    /// The first attempt, where `need` replies are needed.
    pub fn first(&self, quarantine: &Quarantine, need: usize) -> Attempt {
        let quarantined = |client: &&ClientId| quarantine.contains(**client, self.round);
        let (skipped, mut asked): (Vec<ClientId>, Vec<ClientId>) = self.selected.iter().partition(quarantined);
        if asked.len() < need {
            let missing = need - asked.len();
            let others: Vec<ClientId> = self.candidates(quarantine).filter(|other| !asked.contains(other)).collect();
            asked.extend(others.into_iter().take(missing));
        }
        Attempt { asked, skipped }
    }

    /// The clients of a repeated attempt, where `missing` more replies are needed; empty if no client is left.
    pub fn again(&self, quarantine: &Quarantine, missing: usize) -> Vec<ClientId> {
        self.candidates(quarantine).take(missing).collect()
    }

    fn candidates(&self, quarantine: &Quarantine) -> impl Iterator<Item = ClientId> {
        let first = self.selected.first().copied().unwrap_or(0);
        let all: Vec<ClientId> = (0..self.clients).map(|turn| (first + turn) % self.clients).collect();
        let status = |client: &ClientId| self.status.get(client).copied();
        let is_quarantined = |client: &ClientId| quarantine.contains(*client, self.round);
        let of = |keep: &dyn Fn(&ClientId) -> bool| all.iter().copied().filter(keep).collect::<Vec<_>>();
        let fresh = of(&|client| status(client).is_none() && !is_quarantined(client));
        let missing = of(&|client| status(client) == Some(ReplyStatus::Missing));
        let mut quarantined = of(&|client| status(client).is_none() && is_quarantined(client));
        quarantined.sort_by_key(|client| quarantine.until(*client));
        let refused = of(&|client| status(client) == Some(ReplyStatus::Refused));
        [fresh, missing, quarantined, refused].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarantined_clients_are_skipped_and_replaced_only_if_too_few_are_left() {
        let mut quarantine = Quarantine::default();
        quarantine.record_bad_reply(1, 1, 4);
        quarantine.record_bad_reply(1, 2, 4);
        let attempt = |selected: &[ClientId], need| Attendance::new(3, selected, 4).first(&quarantine, need);
        assert_eq!(attempt(&[0, 1, 2], 2), Attempt { asked: vec![0, 2], skipped: vec![1] });
        assert_eq!(attempt(&[0, 1, 2], 3), Attempt { asked: vec![0, 2, 3], skipped: vec![1] });
        assert_eq!(attempt(&[1], 1), Attempt { asked: vec![2], skipped: vec![1] });
        assert_eq!(Attendance::new(7, &[1], 4).first(&quarantine, 1).asked, [1], "the quarantine is over");
        assert_eq!(Attendance::new(3, &[1], 2).first(&quarantine, 1).asked, [0]);
        let alone = Quarantine::default();
        assert_eq!(Attendance::new(3, &[0], 1).first(&alone, 1), Attempt { asked: vec![0], skipped: vec![] });
    }

    #[test]
    fn a_repeated_round_asks_new_clients_then_those_that_did_not_reply_then_the_quarantined_then_the_refused() {
        let mut quarantine = Quarantine::default();
        for round in [1, 2] {
            quarantine.record_bad_reply(3, round, 8);
        }
        let mut attendance = Attendance::new(3, &[4, 0, 1], 6);
        for (client, status) in [(4, ReplyStatus::Usable), (0, ReplyStatus::Missing), (1, ReplyStatus::Refused)] {
            attendance.note(client, status);
        }
        assert_eq!(attendance.usable(), 1);
        assert_eq!(attendance.again(&quarantine, 2), [5, 2]);
        assert_eq!(attendance.again(&quarantine, 9), [5, 2, 0, 3, 1]);
        attendance.note(1, ReplyStatus::Failed);
        assert_eq!(attendance.again(&quarantine, 9), [5, 2, 0, 3]);
    }
}
