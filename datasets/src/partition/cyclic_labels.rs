//! `cyclic-labels`: the classes with training rows, in their order, are dealt round and round, c to each client:
//! client k of K holds the classes at ck, ck + 1, ..., ck + c - 1, modulo their number C; a class's rows, shuffled, are
//! shared equally by its holders. (The client-selection paper's MNIST; ALGORITHMS.md section 1.6, `digits(c)`.)
//!
//! Where c divides C there are only C / c different hands: digits 0 to 8 with c = 3 make {0,1,2}, {3,4,5}, {6,7,8}.

use super::holders::{self, Shares};
use super::{Classes, Partition};
use crate::DataError;
use rand::Rng;

const KIND: &str = "cyclic-labels";

pub(super) fn deal(
    classes: Classes,
    clients: usize,
    labels: usize,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    let present = holders::present(&classes, labels)?;
    let mut cycle = present.iter().copied().cycle();
    let held: Vec<Vec<usize>> = (0..clients).map(|_| cycle.by_ref().take(labels).collect()).collect();
    holders::share(KIND, classes, &held, Shares::Equal, rng)
}
