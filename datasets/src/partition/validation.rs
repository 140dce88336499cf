//! The rows that each client holds out from its training for validation: for a share v, ⌊nv + ½⌋ of a client's n rows,
//! but never its last one. Where the rows have groups, n is the number of the client's groups, and a group is held out
//! whole; its class is the rarest of its rows' among the client's.
//!
//! A client's classes are held out in the same share, to within one row each: its rows are listed class by class,
//! shuffled within a class, and the rows i at which ⌊iv + ½⌋ increases are held out. Clients with the same rows
//! (`fedwba-reference`) hold out the same ones, so that no client trains on validation rows of another one.

use super::Partition;
use crate::units::{Units, rarest, rows_of};
use crate::{DataError, Dataset, Targets};
use rand::Rng;
use rand::seq::SliceRandom;

/// Holds out a share of each client's rows.
///
/// # Errors
/// The share is not at least 0 and less than 1.
pub(super) fn hold_out(
    mut partition: Partition,
    share: f64,
    train: &Dataset,
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
            None => split(rows, |place| (place as f64 * share + 0.5) as usize, train, rng),
        };
        partition.clients.push(kept);
        partition.validation[client] = out;
    }
    let without = partition.validation.iter().filter(|rows| rows.is_empty()).count();
    if without > 0 {
        let have = if without == 1 { "client has" } else { "clients have" };
        partition.notes.push(format!("{without} {have} too few rows to hold one out for validation"));
    }
    Ok(partition)
}

/// The rows `(kept, held out)`, both ascending. `until` is the number of rows, or groups, to hold out of the first ones.
pub(super) fn split(
    rows: &[usize],
    until: impl Fn(usize) -> usize,
    train: &Dataset,
    rng: &mut impl Rng,
) -> (Vec<usize>, Vec<usize>) {
    let all = Units::of(train, rows.iter().copied());
    let mut line = all.list();
    line.shuffle(rng);
    if let Targets::Classes { labels, .. } = &train.targets {
        let counts = train.targets.counts(rows.iter().copied());
        line.sort_by_key(|unit| rarest(labels, &counts, unit));
    }
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    let units = line.len();
    for (place, unit) in line.into_iter().enumerate() {
        let last = kept.is_empty() && place + 1 == units;
        if until(place + 1) > until(place) && !last { out.push(unit) } else { kept.push(unit) }
    }
    (rows_of(&kept), rows_of(&out))
}
