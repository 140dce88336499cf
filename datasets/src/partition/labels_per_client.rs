//! `labels-per-client`: every client gets c distinct classes, drawn from shuffled lists of all classes; a class's rows,
//! shuffled, are shared by its holders. (FedWBA's partition.) The shares are
//! equal or, as in pFedVEM, random.

use super::Partition;
use super::classes::Classes;
use super::holders::{self, Shares};
use super::kind::{CALIBRATION, CLIENTS, LABELS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::Text;
use fedstein_schema::{Accepts, Key, Kind, key};
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Every client holds a few classes; a class's rows are shared by its holders.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct LabelsPerClient {
    /// The number of clients K.
    pub clients: usize,
    /// The number of distinct classes per client.
    pub labels: usize,
    /// The shares of the clients that hold a class.
    pub cut: Cut,
}

fedstein_schema::words! {
    /// The shares in which the holders of a class divide its rows.
    pub enum Cut {
        /// Equal shares, up to one row.
        Equal = "equal",
        /// Shares between random boundaries, all of which are equally likely; every holder gets a row.
        Random = "random",
    }
}

const CUT: Key = key(
    "cut",
    Accepts::Choice(Cut::WORDS),
    Text(Cut::Equal.word()),
    "How the clients that hold a label share its rows: equally, or cut at random places (pFedVEM).",
);

impl Scheme for LabelsPerClient {
    const KIND: Kind = Kind {
        name: "labels-per-client",
        about: "Each client holds a few labels ([W]: 5).",
        keys: &[CLIENTS, LABELS, CUT, VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties::BY_CLASS;
    const TEST_ROWS: TestRows = TestRows::OfHeldClasses;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let classes = Classes::of(Self::KIND.name, &train.targets)?;
        let present = holders::present(&classes, self.labels)?;
        let held = holders::draw(&present, self.clients, self.labels, rng);
        let shares = match self.cut {
            Cut::Equal => Shares::Equal,
            Cut::Random => Shares::Random,
        };
        holders::share(Self::KIND.name, classes, &held, shares, rng)
    }
}
