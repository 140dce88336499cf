//! The rows that each client holds out from its training for validation: for a share v, ⌊nv + ½⌋ of a client's n rows,
//! but never its last one.
//!
//! A client's classes are held out in the same share, to within one row each: its rows are listed class by class,
//! shuffled within a class, and the rows i at which ⌊iv + ½⌋ increases are held out. Clients with the same rows
//! (`fedwba-reference`) hold out the same ones, so that no client trains on validation rows of another one.

use super::Partition;
use crate::{DataError, Targets};
use rand::Rng;
use rand::seq::SliceRandom;

/// Holds out a share of each client's rows.
///
/// # Errors
/// The share is not at least 0 and less than 1.
pub(super) fn hold_out(
    mut partition: Partition,
    share: f64,
    targets: &Targets,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    if !(0.0..1.0).contains(&share) {
        let problem = "must be at least 0 and less than 1, e.g. 0.1";
        return Err(DataError::config("partition.validation", share, problem));
    }
    if share == 0.0 {
        return Ok(partition);
    }
    let before = std::mem::take(&mut partition.clients);
    for (client, rows) in before.iter().enumerate() {
        let (kept, out) = match before[..client].iter().position(|earlier| earlier == rows) {
            Some(same) => (partition.clients[same].clone(), partition.validation[same].clone()),
            None => split(rows, |place| (place as f64 * share + 0.5) as usize, targets, rng),
        };
        partition.clients.push(kept);
        partition.validation[client] = out;
    }
    let without = partition.validation.iter().filter(|rows| rows.is_empty()).count();
    if without > 0 {
        partition.notes.push(format!("{without} clients have too few rows to hold one out for validation"));
    }
    Ok(partition)
}

/// The rows `(kept, held out)`, both ascending. `until` is the number of rows to hold out of the first ones.
pub(super) fn split(
    rows: &[usize],
    until: impl Fn(usize) -> usize,
    targets: &Targets,
    rng: &mut impl Rng,
) -> (Vec<usize>, Vec<usize>) {
    let mut line = rows.to_vec();
    line.shuffle(rng);
    if let Targets::Classes { labels, .. } = targets {
        line.sort_by_key(|&row| labels[row]);
    }
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    for (place, row) in line.into_iter().enumerate() {
        let last = kept.is_empty() && place + 1 == rows.len();
        if until(place + 1) > until(place) && !last { out.push(row) } else { kept.push(row) }
    }
    kept.sort_unstable();
    out.sort_unstable();
    (kept, out)
}
