//! Digits of 8×8 pixels (E. Alpaydin, C. Kaynak, 1998), as scikit-learn ships them; they are part of the program.

use super::kind::{CLASSES, Rows, Source};
use super::{DataSet, Origin};
use crate::format::table;
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets, split};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Licence and source are in `data/README.md` of the crate.
const DIGITS: &[u8] = include_bytes!("../../data/digits.csv.gz");

/// 8×8 digits, embedded in the crate: 1,797 rows of 64 pixels from 0 to 16.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Digits {
    /// Classes to keep; an empty list keeps all. Classes are not renumbered: there remain ten.
    pub classes: Vec<usize>,
    /// The scale of the pixels; `auto` is `unit`.
    pub normalise: Normalise,
    /// The share of the rows for testing.
    pub test_fraction: f64,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Digits {
    const KIND: Kind = Kind {
        name: "digits",
        about: "Handwritten digits, small: 1,797 images of 8x8, 10 classes; built in. Scale `auto`: `unit`.",
        keys: &[CLASSES, NORMALISE, TEST_FRACTION, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "handwritten digits, small: 1,797 images of 8x8, 10 classes",
        source: "E. Alpaydin, C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998; the copy of scikit-learn",
        licence: "CC BY 4.0 (data), BSD-3-Clause (scikit-learn's copy)",
        origin: Origin::Embedded,
        files: &[],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        DataProperties::classes(10)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Unit
    }

    fn largest_value(&self) -> Option<f64> {
        Some(16.0)
    }

    fn read(&self, _: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        split::train_test(&split::only_classes(digits()?, &self.classes)?, self.test_fraction, rng).map(Rows::from)
    }
}

/// The embedded digits, pixels 0 to 16.
fn digits() -> Result<Dataset, DataError> {
    use std::io::Read;
    let path = Path::new("digits.csv.gz (embedded)");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(DIGITS).read_to_end(&mut text).map_err(|e| DataError::io(path, e))?;
    let class_of = |label| usize::try_from(label).ok().filter(|&class| class < 10);
    let (features, labels) = table::parse(path, &text, 64, "0 to 9", class_of)?;
    Ok(Dataset {
        name: "digits".to_owned(),
        features,
        feature_shape: vec![8, 8],
        feature_names: None,
        targets: Targets::Classes { labels, names: (0..10).map(|d| d.to_string()).collect() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    })
}
