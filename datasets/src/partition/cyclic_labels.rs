//! `cyclic-labels`: the classes with training rows are assigned cyclically, in their order, c to each client: client k
//! of K holds the classes at ck, ck + 1, ..., ck + c - 1, modulo their number C; a class's rows, shuffled, are shared
//! equally by the clients that hold it. (The client-selection paper's MNIST.)
//!
//! If c divides C, there are only C / c different sets of classes: for digits 0 to 8 with c = 3 these are {0,1,2},
//! {3,4,5}, {6,7,8}.

use super::Partition;
use super::classes::Classes;
use super::holders::{self, Shares};
use super::kind::{CALIBRATION, CLIENTS, LABELS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// As [`LabelsPerClient`](super::LabelsPerClient), but the classes are assigned cyclically in their order, and not from
/// shuffled lists: client k holds c consecutive classes from the ck-th on. The client-selection paper's MNIST:
/// digits 0 to 8, three per client, 27 or 120 clients.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct CyclicLabels {
    /// The number of clients K.
    pub clients: usize,
    /// The number of distinct classes per client.
    pub labels: usize,
}

impl Scheme for CyclicLabels {
    const KIND: Kind = Kind {
        name: "cyclic-labels",
        about: "As `labels-per-client`, but the labels are assigned in their order, cyclically ([C]).",
        keys: &[CLIENTS, LABELS, VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties::BY_CLASS;
    const TEST_ROWS: TestRows = TestRows::OfHeldClasses;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let classes = Classes::of(Self::KIND.name, &train.targets)?;
        let present = holders::present(&classes, self.labels)?;
        let mut cycle = present.iter().copied().cycle();
        let held: Vec<Vec<usize>> = (0..self.clients).map(|_| cycle.by_ref().take(self.labels).collect()).collect();
        holders::share(Self::KIND.name, classes, &held, Shares::Equal, rng)
    }
}
