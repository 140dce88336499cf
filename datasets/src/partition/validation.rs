//! The rows that each client holds out from its training for validation: for a share v, ⌊nv + ½⌋ of a client's n rows,
//! but never its last one. Where the rows have groups, n is the number of the client's groups, and a group is held out
//! whole; its class is the rarest of its rows' among the client's.
//!
//! A client's classes are held out in the same share, to within one row each: its rows are put on a circle class by class,
//! shuffled within a class, and rows at equal distances from a random one on are held out (systematic sampling with a random
//! start). So every row of a client is held out with the same probability, and of a class of which each client has a few
//! rows, about the share v of all. A row that an earlier client has too
//! (`fedwba-reference`) is held out where that one holds it out, and nowhere else, so that no client trains on validation
//! rows of another one; the share is then that of the client's other rows.

use super::Partition;
use crate::share::rounded;
use crate::units::{Units, rarest, rows_of};
use crate::{DataError, Dataset, Targets};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use std::collections::HashMap;

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
    let mut decided = Decided::default();
    for client in 0..partition.clients.len() {
        let split = |rows: &[usize], _| split(rows, |units| rounded(share, units), train, rng);
        let (kept, out) = decided.split(&partition.clients[client], split);
        partition.clients[client] = kept;
        partition.validation[client] = out;
    }
    let without = partition.validation.iter().filter(|rows| rows.is_empty()).count();
    if without > 0 {
        let have = if without == 1 { "client has" } else { "clients have" };
        partition.notes.push(format!("{without} {have} too few rows to hold one out for validation"));
    }
    Ok(partition)
}

/// What earlier clients have decided of rows that several clients have.
#[derive(Default)]
pub(super) struct Decided {
    /// Whether each row is held out.
    is_out: HashMap<usize, bool>,
}

impl Decided {
    /// The rows of the next client as `(kept, held out)`, both ascending.
    ///
    /// # Arguments
    /// - `split`: splits the rows of which nothing is decided yet, of which there is at least one; it is told how many of the
    ///   client's rows are held out already.
    pub fn split(
        &mut self,
        rows: &[usize],
        mut split: impl FnMut(&[usize], usize) -> (Vec<usize>, Vec<usize>),
    ) -> (Vec<usize>, Vec<usize>) {
        let (mut free, mut out, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            match self.is_out.get(row) {
                Some(true) => out.push(*row),
                Some(false) => kept.push(*row),
                None => free.push(*row),
            }
        }
        if !free.is_empty() {
            let (new, held) = split(&free, out.len());
            self.is_out.extend(new.iter().map(|row| (*row, false)).chain(held.iter().map(|row| (*row, true))));
            kept.extend(new);
            out.extend(held);
            kept.sort_unstable();
            out.sort_unstable();
        }
        (kept, out)
    }
}

/// The rows `(kept, held out)`, both ascending. `wanted` is the number to hold out of a number of rows, or groups.
pub(super) fn split(
    rows: &[usize],
    wanted: impl FnOnce(usize) -> usize,
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
    let wanted = wanted(units);
    if units > 0 {
        line.rotate_left(rng.random_range(0..units));
    }
    let until = |place: usize| (place as u128 * wanted as u128 + units as u128 / 2) / units.max(1) as u128;
    for (place, unit) in line.into_iter().enumerate() {
        let last = kept.is_empty() && place + 1 == units;
        if until(place + 1) > until(place) && !last { out.push(unit) } else { kept.push(unit) }
    }
    (rows_of(&kept), rows_of(&out))
}
