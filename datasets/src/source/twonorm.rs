//! Breiman's twonorm, drawn.

use super::DataSet;
use super::drawn::{BREIMAN, ROWS, split};
use super::kind::{Rows, Source};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::synthetic::breiman;
use crate::{DataError, DataProperties, Normalise};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Breiman's twonorm, drawn ([`breiman::twonorm`]).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Twonorm {
    /// The number of rows to draw, training and test together.
    pub rows: usize,
    /// The scale of the features; `auto` is `none`.
    pub normalise: Normalise,
    /// The share of the rows for testing.
    pub test_fraction: f64,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Twonorm {
    const KIND: Kind = Kind {
        name: "twonorm",
        about: "Two 20-d unit Gaussians, 2 classes; generated; Bayes error 2.275 %. Scale `auto`: `none`.",
        keys: &[ROWS, NORMALISE, TEST_FRACTION, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet =
        DataSet::generated(Self::KIND.name, "two 20-d unit Gaussians, 2 classes; Bayes error 2.275 %", BREIMAN);

    fn properties(&self) -> DataProperties {
        DataProperties::classes(2)
    }

    fn read(&self, _: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        split(breiman::twonorm, self.rows, self.test_fraction, rng)
    }
}
