//! What Breiman's three generators have in common: the number of rows, and their split.

use super::Rows;
use crate::{DataError, Dataset, split};
use fedstein_schema::Literal::Int;
use fedstein_schema::{Key, key, whole};
use rand::Rng;

/// The publications to cite.
pub(super) const BREIMAN: &str =
    "L. Breiman, Bias, variance, and arcing classifiers, 1996; Classification and regression trees, 1984";

/// `rows`
pub(super) const ROWS: Key = key(
    "rows",
    whole(2, 1_000_000_000),
    Int(7400),
    "Rows to generate, training and test together (default: Rätsch's sizes).",
);

/// Draws so many rows and splits them at random.
///
/// # Errors
/// Fewer than two rows or more than most machines hold; what [`split::train_test`] refuses.
pub(super) fn split<R: Rng>(
    draw: impl Fn(usize, &mut R) -> Dataset,
    rows: usize,
    test_fraction: f64,
    rng: &mut R,
) -> Result<Rows, DataError> {
    const MOST: usize = 20_000_000;
    if !(2..=MOST).contains(&rows) {
        return Err(DataError::config("data.rows", rows, format!("must be from 2 to {MOST}")));
    }
    split::train_test(&draw(rows, rng), test_fraction, rng).map(Rows::from)
}
