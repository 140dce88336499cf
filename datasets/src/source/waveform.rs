//! Breiman's waveform, drawn.

use super::DataSet;
use super::drawn::{BREIMAN, ROWS, split};
use super::kind::{Rows, Source};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::synthetic::breiman;
use crate::{DataError, DataProperties, Normalise};
use fedstein_schema::Kind;
use fedstein_schema::Literal::Int;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Breiman's waveform, drawn ([`breiman::waveform`]).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Waveform {
    /// The number of rows to draw, training and test together.
    pub rows: usize,
    /// The scale of the features; `auto` is `standard`.
    pub normalise: Normalise,
    /// The share of the rows for testing.
    pub test_fraction: f64,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Waveform {
    const KIND: Kind = Kind {
        name: "waveform",
        about: "Noisy mixtures of triangular waves, 21 features, 3 classes; generated; Bayes error 13.2 %. Scale `auto`: `standard`.",
        keys: &[ROWS.default(Int(5000)), NORMALISE, TEST_FRACTION, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet::generated(
        Self::KIND.name,
        "noisy mixtures of triangular waves, 21 features, 3 classes; Bayes error 13.2 %",
        BREIMAN,
    );

    fn properties(&self) -> DataProperties {
        DataProperties::classes(3)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, _: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        split(breiman::waveform, self.rows, self.test_fraction, rng)
    }
}
