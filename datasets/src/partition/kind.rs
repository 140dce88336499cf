//! The interface of partition schemes, and the keys that several of them have.

use super::rows::Partition;
use super::test_rows::TestRows;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::{Float, Int};
use fedstein_schema::{Accepts, COUNT, Interval, Key, Kind, key};
use rand::Rng;

/// The key `validation` of every kind.
pub(super) const VALIDATION: Key = key(
    "validation",
    Accepts::Float(Interval::DECAY),
    Float(0.0),
    "Share of each client's rows, label by label, that is held out from its training; 0: none. In one process `rounds.csv` then has their scores, `validation_nll` and `validation_accuracy` or `validation_rmse`.",
);

/// The key `calibration`, the last key of every kind.
pub(super) const CALIBRATION: Key = key(
    "calibration",
    Accepts::Float(Interval::DECAY),
    Float(0.0),
    "Share of each client's rows, label by label, that is held out from its training and its validation for `[calibration]`; 0: none.",
);

/// The key `clients`.
pub(super) const CLIENTS: Key = key("clients", COUNT, Int(10), "Number of clients K.");

/// The key `labels`.
pub(super) const LABELS: Key = key("labels", COUNT, Int(3), "Number of distinct labels per client.");

/// The requirements of a partition scheme, and the properties of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeProperties {
    /// Whether the scheme assigns rows by their class, so that the targets must be classes.
    pub by_class: bool,
    /// Whether the clients are the natural clients of the data.
    pub natural_clients: bool,
    /// Whether the classes must belong to superclasses.
    pub superclasses: bool,
    /// Whether no two clients hold the same row.
    pub disjoint: bool,
}

impl SchemeProperties {
    /// The properties of schemes for any rows with disjoint shares.
    pub(super) const PLAIN: Self =
        Self { by_class: false, natural_clients: false, superclasses: false, disjoint: true };
    /// The properties of schemes for rows with classes, with disjoint shares.
    pub(super) const BY_CLASS: Self = Self { by_class: true, ..Self::PLAIN };
}

/// A scheme by which rows are assigned to clients.
pub(crate) trait Scheme {
    /// The value of `kind` and the config keys, in the order of a resolved config.
    const KIND: Kind;
    /// The requirements of the scheme.
    const PROPERTIES: SchemeProperties;
    /// The rule for the test rows of the clients.
    const TEST_ROWS: TestRows;

    /// The configured number of clients; `None` where it depends on the data.
    fn clients(&self) -> Option<usize>;

    /// Assigns the training rows; `clients` is at least 1 and at most the number of rows where the shares are disjoint.
    ///
    /// # Errors
    /// The scheme cannot use these targets, or a parameter is out of range.
    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError>;
}
