//! `iid`: shuffled, contiguous blocks; client k of K gets ⌊n(k+1)/K⌋ − ⌊nk/K⌋ of n rows, or of n groups of rows.

use super::Partition;
use super::kind::{CALIBRATION, CLIENTS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::units::Units;
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// Shuffled blocks whose sizes differ by at most one row, or one group of rows.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Iid {
    /// The number of clients K.
    pub clients: usize,
}

impl Scheme for Iid {
    const KIND: Kind =
        Kind { name: "iid", about: "Shuffled, equal shares.", keys: &[CLIENTS, VALIDATION, CALIBRATION] };
    const PROPERTIES: SchemeProperties = SchemeProperties::PLAIN;
    const TEST_ROWS: TestRows = TestRows::All;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let (all, clients) = (Units::of(train, 0..train.rows()), self.clients);
        let mut order = all.list();
        order.shuffle(rng);
        let units = order.len();
        let blocks = (0..clients).map(|k| order[units * k / clients..units * (k + 1) / clients].concat());
        Ok(Partition::new(blocks.collect(), Vec::new()))
    }
}
