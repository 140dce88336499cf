//! `pfedgp`: pFedGP's partition. As in `labels-per-client`, every client gets c distinct classes. The holders of a
//! class share its rows in proportions drawn from U(0.4, 0.6), and its test rows in the same proportions.

use super::Partition;
use super::classes::Classes;
use super::holders::{self, Shares};
use super::kind::{CALIBRATION, CLIENTS, LABELS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use fedstein_schema::Literal::Int;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// As [`LabelsPerClient`](super::LabelsPerClient), but the rows of a class are shared in parts proportional to draws
/// from U(0.4, 0.6), and its test rows in the same parts (pFedGP).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Pfedgp {
    /// The number of clients K.
    pub clients: usize,
    /// The number of distinct classes per client.
    pub labels: usize,
}

impl Scheme for Pfedgp {
    const KIND: Kind = Kind {
        name: "pfedgp",
        about: "A few labels per client; the clients with a label share its rows in parts that vary by U(0.4, 0.6), in training and test.",
        keys: &[CLIENTS, LABELS.default(Int(5)), VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties::BY_CLASS;
    const TEST_ROWS: TestRows = TestRows::InSharesOfClasses;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let classes = Classes::of(Self::KIND.name, &train.targets)?;
        let present = holders::present(&classes, self.labels)?;
        let held = holders::draw(&present, self.clients, self.labels, rng);
        holders::share(Self::KIND.name, classes, &held, Shares::Uniform { low: 0.4, high: 0.6 }, rng)
    }
}
