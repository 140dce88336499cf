//! The rows that each client holds out from its training and its validation, on which probabilities are calibrated: for a
//! share c, ⌊nc + ½⌋ of a client's n rows, but never its last training row.
//!
//! They are drawn as the [validation](super::validation) rows are, from the rows that those leave. Nothing
//! is drawn for a share of 0.

use super::Partition;
use super::validation::{Decided, split};
use crate::share::rounded;
use crate::units::Units;
use crate::{DataError, Dataset};
use rand::Rng;

/// Holds out a share of each client's rows from its training rows, beside the share for validation.
///
/// # Errors
/// The share is not at least 0, or it leaves no rows beside those for validation.
pub(super) fn hold_out(
    mut partition: Partition,
    (share, validation): (f64, f64),
    train: &Dataset,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    if !(0.0..1.0).contains(&share) || share + validation >= 1.0 {
        let problem = "must be at least 0, and less than 1 together with partition.validation, e.g. 0.1";
        return Err(DataError::config("partition.calibration", share, problem));
    }
    if share == 0.0 {
        return Ok(partition);
    }
    let mut decided = Decided::default();
    let count = |rows: &[usize]| Units::of(train, rows.iter().copied()).list().len();
    for client in 0..partition.clients.len() {
        let all = count(&partition.clients[client]) + count(&partition.validation[client]);
        let wanted = rounded(share, all);
        let split = |rows: &[usize], held: usize| split(rows, |_| wanted.saturating_sub(held), train, rng);
        let (kept, out) = decided.split(&partition.clients[client], split);
        partition.clients[client] = kept;
        partition.calibration[client] = out;
    }
    let without = partition.calibration.iter().filter(|rows| rows.is_empty()).count();
    if without > 0 {
        let have = if without == 1 { "client has" } else { "clients have" };
        partition.notes.push(format!("{without} {have} too few rows to hold one out for calibration"));
    }
    Ok(partition)
}
