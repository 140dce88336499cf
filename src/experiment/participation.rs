//! Notes on clients that never train: their rows are not used.

use crate::protocol::ClientId;

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
pub(super) fn found(visits: &[usize], rows: &[usize]) -> Option<String> {
    let never: Vec<ClientId> = (0..visits.len()).filter(|client| visits[*client] == 0).collect();
    if never.is_empty() {
        return None;
    }
    let unused: usize = never.iter().map(|client| rows[*client]).sum();
    let all: usize = rows.iter().sum();
    let names: Vec<String> = never.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if never.len() > NAMED { ", \u{2026}" } else { "" };
    Some(format!(
        "{} of {} clients never trained ({}{more}): {unused} of {all} training rows were not used",
        never.len(),
        visits.len(),
        names.join(", ")
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
        assert_eq!(found(&[1, 2], &[5, 5]), None);
        let note = found(&[0, 2, 0], &[5, 7, 1]).unwrap();
        assert!(note.starts_with("2 of 3 clients never trained (0, 2): 6 of 13 training rows"), "{note}");
        let note = found(&[0; 12], &[1; 12]).unwrap();
        assert!(note.contains("8, 9, \u{2026})"), "{note}");
    }
}
