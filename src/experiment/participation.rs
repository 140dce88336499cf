//! How often each client took part, and notes on clients that never trained and on visits that did not count.

use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::federation::event::EventKind;
use crate::federation::server::Round;
use crate::protocol::ClientId;
use crate::report::ClientNames;

/// The number of clients that a note names.
const NAMED: usize = 10;

/// How often each of K clients took part.
#[derive(Clone, Debug)]
pub(super) struct Participation {
    /// The rounds in which the schedule selected the client, `[K]`.
    pub selected: Vec<usize>,
    /// Those in which its reply was used.
    pub used: Vec<usize>,
    /// Those in which it was to train and its reply was not used: it did not answer in time, was refused or was in quarantine.
    left_out: Vec<usize>,
}

impl Participation {
    /// No round yet.
    pub fn new(clients: usize) -> Self {
        Self { selected: vec![0; clients], used: vec![0; clients], left_out: vec![0; clients] }
    }

    /// The number of clients K.
    pub fn clients(&self) -> usize {
        self.selected.len()
    }

    /// Counts a round.
    pub fn add(&mut self, round: &Round) {
        round.selection.clients.iter().for_each(|client| self.selected[*client] += 1);
        round.used.iter().for_each(|client| self.used[*client] += 1);
        let skipped = round.events.iter().filter(|event| event.kind == EventKind::Skipped);
        let mut absent: Vec<ClientId> =
            round.rejected.iter().map(|(client, _)| *client).chain(skipped.map(|event| event.client)).collect();
        absent.sort_unstable();
        absent.dedup();
        absent.retain(|client| !round.used.contains(client));
        absent.into_iter().for_each(|client| self.left_out[client] += 1);
    }

    /// The state for a checkpoint.
    pub fn save(&self) -> State {
        State::default()
            .with_counts("selected", self.selected.iter().copied())
            .with_counts("used", self.used.iter().copied())
            .with_counts("left_out", self.left_out.iter().copied())
    }

    /// Takes over the counts of a checkpoint.
    ///
    /// # Errors
    /// They are missing, or of another number of clients.
    pub fn restore(&mut self, state: &State) -> Result<(), RunError> {
        let clients = self.clients();
        for (name, counts) in
            [("selected", &mut self.selected), ("used", &mut self.used), ("left_out", &mut self.left_out)]
        {
            let saved = state.counts(name)?;
            if saved.len() != clients {
                let reason = format!("the visits are those of {} clients, not of {clients}", saved.len());
                return Err(CheckpointError::Content(reason).into());
            }
            *counts = saved;
        }
        Ok(())
    }

    /// What is known after the last round: the clients that never trained, and those of which visits did not count.
    ///
    /// # Arguments
    /// * `rows`: the number of each client's training rows, `[K]`
    pub fn notes(&self, rows: &[usize], names: &ClientNames) -> Vec<String> {
        never_trained(&self.used, rows, names).into_iter().chain(self.lost_visits(names)).collect()
    }

    fn lost_visits(&self, names: &ClientNames) -> Option<String> {
        let visits = |client: usize| self.used[client] + self.left_out[client];
        let mut clients: Vec<ClientId> =
            (0..self.clients()).filter(|client| self.left_out[*client] > 0 && self.used[*client] > 0).collect();
        if clients.is_empty() {
            return None;
        }
        clients.sort_by_key(|client| std::cmp::Reverse(self.left_out[*client]));
        let told = |client: &ClientId| {
            format!("client {}: {} of {}", names.of(*client), self.left_out[*client], visits(*client))
        };
        let first: Vec<String> = clients.iter().take(NAMED).map(told).collect();
        let more = if clients.len() > NAMED { ", \u{2026}" } else { "" };
        let first = first.join(", ");
        Some(format!("visits that did not count, because no usable reply came (events.jsonl): {first}{more}"))
    }
}

/// What is known before the first round: a round is to have more clients than there are, or there are fewer visits than
/// clients. A config that says how many clients there are is refused in the first case; a column or a list of files says
/// it too late.
///
/// # Arguments
/// * `rounds`, `per_round`: the number of rounds, and of clients in each
/// * `clients`: the number of clients K
pub(super) fn planned(rounds: usize, per_round: usize, clients: usize) -> Option<String> {
    if per_round > clients {
        let there_are =
            if clients == 1 { "is only 1 client".to_owned() } else { format!("are only {clients} clients") };
        return Some(format!("`schedule.clients` is {per_round}, but there {there_are}: every round has all of them"));
    }
    let visits = rounds.saturating_mul(per_round);
    (visits < clients).then(|| {
        let planned = match (rounds, visits) {
            (1, 1) => "1 round of 1 is 1 visit".to_owned(),
            (1, _) => format!("1 round of {per_round} is {visits} visits"),
            _ => format!("{rounds} rounds of {per_round} are {visits} visits"),
        };
        format!(
            "{planned}, so that at least {} of {clients} clients never train; \
             raise `rounds` or `schedule.clients`",
            clients - visits
        )
    })
}

/// The clients whose replies were never used.
fn never_trained(visits: &[usize], rows: &[usize], names: &ClientNames) -> Option<String> {
    let never: Vec<ClientId> = (0..visits.len()).filter(|client| visits[*client] == 0).collect();
    if never.is_empty() {
        return None;
    }
    let unused: usize = never.iter().map(|client| rows[*client]).sum();
    let all: usize = rows.iter().sum();
    Some(format!(
        "{} of {} clients never trained ({}): {unused} of {all} training rows were not used",
        never.len(),
        visits.len(),
        names.first(&never, NAMED)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_visits_than_clients_are_noted_before_the_first_round() {
        assert_eq!(planned(10, 1, 10), None);
        assert_eq!(planned(usize::MAX, 2, 50), None);
        let note = planned(4, 9, 3).unwrap();
        assert_eq!(note, "`schedule.clients` is 9, but there are only 3 clients: every round has all of them");
        let note = planned(10, 2, 50).unwrap();
        assert!(note.contains("20 visits") && note.contains("at least 30 of 50 clients"), "{note}");
    }

    #[test]
    fn clients_without_a_visit_are_noted_with_their_rows() {
        let numbers = ClientNames::default();
        assert_eq!(never_trained(&[1, 2], &[5, 5], &numbers), None);
        let note = never_trained(&[0, 2, 0], &[5, 7, 1], &numbers).unwrap();
        assert!(note.starts_with("2 of 3 clients never trained (0, 2): 6 of 13 training rows"), "{note}");
        let names = ClientNames::new(vec!["north".into(), "east".into(), "south".into()]);
        assert!(never_trained(&[0, 2, 0], &[5, 7, 1], &names).unwrap().contains("(north, south)"));
        let note = never_trained(&[0; 12], &[1; 12], &numbers).unwrap();
        assert!(note.contains("8, 9, \u{2026})"), "{note}");
    }
}
