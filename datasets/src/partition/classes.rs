//! Rows by class, and their division among clients in given shares.

use crate::{DataError, Targets};
use rand::Rng;

/// The rows of each class, and the classes' names.
pub(super) struct Classes<'a> {
    pub rows: Vec<Vec<usize>>,
    pub names: &'a [String],
}

impl<'a> Classes<'a> {
    /// The classes of the targets of the rows that `kind` assigns.
    ///
    /// # Errors
    /// [`DataError::Partition`] where the targets are not classes.
    pub fn of(kind: &'static str, targets: &'a Targets) -> Result<Self, DataError> {
        let Targets::Classes { labels, names } = targets else {
            let problem =
                "it assigns rows by class, and these targets are not classes; use iid or by-column".to_owned();
            return Err(DataError::Partition { kind, problem });
        };
        let mut rows = vec![Vec::new(); names.len()];
        for (row, &label) in labels.iter().enumerate() {
            rows[label].push(row);
        }
        Ok(Classes { rows, names })
    }
}

/// The boundaries `[K + 1]`, from 0 to n, by which n rows are divided among clients with these weights `[K]`: the
/// cumulative shares, rounded down.
pub(super) fn boundaries(n: usize, weights: &[f64]) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mut cuts = Vec::with_capacity(weights.len() + 1);
    cuts.push(0);
    let mut sum = 0.0;
    for weight in weights {
        sum += weight;
        // A cumulative share that is a whole number must not be rounded down because of a rounding error.
        let cut = (n as f64 * (sum / total) + 1e-9) as usize;
        cuts.push(cut.clamp(cuts[cuts.len() - 1], n));
    }
    cuts[weights.len()] = n;
    cuts
}

/// Moves one row from the client that currently holds the most to each empty client. There must be at least as many
/// rows as clients. Returns `(client, donor)` of each row moved.
pub(super) fn fill_empty(clients: &mut [Vec<usize>], rng: &mut impl Rng) -> Vec<(usize, usize)> {
    use rand::RngExt;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let mut largest: BinaryHeap<(usize, Reverse<usize>)> =
        clients.iter().enumerate().map(|(client, rows)| (rows.len(), Reverse(client))).collect();
    let mut moved = Vec::new();
    for client in 0..clients.len() {
        if !clients[client].is_empty() {
            continue;
        }
        let Some((count, Reverse(donor))) = largest.pop() else {
            break;
        };
        if count < 2 {
            break;
        }
        let row = clients[donor].swap_remove(rng.random_range(0..count));
        largest.push((count - 1, Reverse(donor)));
        clients[client].push(row);
        moved.push((client, donor));
    }
    moved
}

/// One sentence for each row that [`fill_empty`] moved, the first 20 of them.
pub(super) fn moved_notes(moved: &[(usize, usize)], why: &str) -> Vec<String> {
    let mut notes: Vec<String> = moved
        .iter()
        .take(20)
        .map(|(client, donor)| format!("client {client} had no rows ({why}): it got 1 row of client {donor}"))
        .collect();
    if moved.len() > 20 {
        notes.push(format!("{} more clients had no rows ({why}): each got 1 row of a large client", moved.len() - 20));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_the_rounded_down_shares() {
        assert_eq!(boundaries(10, &[1.0, 1.0, 1.0]), vec![0, 3, 6, 10]);
        assert_eq!(boundaries(100, &[40.0, 40.0, 10.0, 10.0]), vec![0, 40, 80, 90, 100]);
        assert_eq!(boundaries(7, &[0.0, 1.0, 0.0]), vec![0, 0, 7, 7]);
    }
}
