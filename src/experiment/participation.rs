//! Notes on clients that never train: their rows are not used.

use crate::protocol::ClientId;
use crate::report::ClientNames;

/// The number of clients that a note names.
const NAMED: usize = 10;

/// What is known before the first round: there are fewer visits than clients.
///
/// # Arguments
/// * `rounds`, `per_round`: the number of rounds, and of clients in each
/// * `clients`: the number of clients K
pub(super) fn planned(rounds: usize, per_round: usize, clients: usize) -> Option<String> {
    let visits = rounds.saturating_mul(per_round);
    (visits < clients).then(|| {
        format!(
            "{rounds} rounds of {per_round} are {visits} visits, so that at least {} of {clients} clients never train; \
             raise `rounds` or `schedule.clients`",
            clients - visits
        )
    })
}

/// What is known after the last round.
///
/// # Arguments
/// * `visits`: the number of rounds in which each client took part, `[K]`
/// * `rows`: the number of its training rows, `[K]`
pub(super) fn found(visits: &[usize], rows: &[usize], names: &ClientNames) -> Option<String> {
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
        let note = planned(10, 2, 50).unwrap();
        assert!(note.contains("20 visits") && note.contains("at least 30 of 50 clients"), "{note}");
    }

    #[test]
    fn clients_without_a_visit_are_noted_with_their_rows() {
        let numbers = ClientNames::default();
        assert_eq!(found(&[1, 2], &[5, 5], &numbers), None);
        let note = found(&[0, 2, 0], &[5, 7, 1], &numbers).unwrap();
        assert!(note.starts_with("2 of 3 clients never trained (0, 2): 6 of 13 training rows"), "{note}");
        let names = ClientNames::new(vec!["north".into(), "east".into(), "south".into()]);
        assert!(found(&[0, 2, 0], &[5, 7, 1], &names).unwrap().contains("(north, south)"));
        let note = found(&[0; 12], &[1; 12], &numbers).unwrap();
        assert!(note.contains("8, 9, \u{2026})"), "{note}");
    }
}
