//! The options of Breiman's three generators: the number of rows, and their split.

use super::kind::Rows;
use crate::{DataError, Dataset, split};
use fedstein_schema::Literal::Int;
use fedstein_schema::{Key, key, whole};
use rand::Rng;

/// The publications to cite.
pub(super) const BREIMAN: &str =
    "L. Breiman, Bias, variance, and arcing classifiers, 1996; Classification and regression trees, 1984";

/// The key `rows`.
pub(super) const ROWS: Key = key(
    "rows",
    whole(2, 1_000_000_000),
    Int(7400),
    "Rows to generate, training and test together (default: Rätsch's sizes).",
);

/// Draws this number of rows and splits them at random.
///
/// # Errors
/// There are fewer than two rows or more than 20 million; or the error is one of [`split::train_test`].
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
