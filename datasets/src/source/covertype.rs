//! Covertype (J. A. Blackard, 1998): forest cover, lodgepole pine against the rest.

use super::kind::{Rows, Source};
use super::{DataFile, DataSet, Origin};
use crate::format::{first_file, libsvm, table};
use crate::prepare::{NORMALISE, TEST_FRACTION, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets, split};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The names of the classes; the index is the class.
const CLASSES: [&str; 2] = ["-1 (lodgepole pine)", "+1 (other cover types)"];
const WIDTH: usize = 54;

/// Covertype in two classes: 581,012 rows of 54 numbers. Class 0 (−1 in the papers) is lodgepole pine (UCI's
/// class 2, LIBSVM's label 2), class 1 (+1) the other six (LIBSVM's label 1).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Covertype {
    /// The scale of the features; `auto` is `minmax`.
    pub normalise: Normalise,
    /// The share of the rows for testing.
    pub test_fraction: f64,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Covertype {
    const KIND: Kind = Kind {
        name: "covertype",
        about: "Forest cover, lodgepole pine against the rest: 581,012 rows of 54 features, 2 classes. Scale `auto`: `minmax`.",
        keys: &[NORMALISE, TEST_FRACTION, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "forest cover, lodgepole pine against the rest: 581,012 rows of 54 features, 2 classes",
        source: "J. A. Blackard, Colorado State University, Covertype, UCI Machine Learning Repository, 1998",
        licence: "CC BY 4.0; copyright Jock A. Blackard and Colorado State University",
        origin: Origin::Download,
        files: &[DataFile {
            path: "covertype/covtype.data.gz",
            bytes: 11240707,
            sha256: "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            mirrors: &[
                "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
                // scikit-learn's copy (fetch_covtype), with the same checksum
                "https://ndownloader.figshare.com/files/5976039",
            ],
            alternatives: &[
                "covertype/covtype.data",
                "covertype/covtype.binary.csv.gz",
                "covertype/covtype.binary.csv",
                "covertype/covtype.libsvm.binary",
                "covertype/covtype.libsvm.binary.gz",
            ],
            part: &[],
        }],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        DataProperties::classes(2)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Minmax
    }

    fn read(&self, data_dir: &Path, rng: &mut impl Rng) -> Result<Rows, DataError> {
        split::train_test(&covertype(data_dir)?, self.test_fraction, rng).map(Rows::from)
    }
}

/// Reads Covertype in any of its published forms in `<data_dir>/covertype/`.
fn covertype(data_dir: &Path) -> Result<Dataset, DataError> {
    const TWO_CLASSES: [&str; 2] = ["covtype.binary.csv.gz", "covtype.binary.csv"];
    const SEVEN_CLASSES: [&str; 2] = ["covtype.data.gz", "covtype.data"];
    let directory = data_dir.join("covertype");
    let binary = |label: i64| match label {
        1 => Some(1),
        2 | -1 => Some(0),
        _ => None,
    };
    let seven = |label: i64| (1..=7).contains(&label).then_some(usize::from(label != 2));
    let (features, labels) = if let Some(path) = first_file(&directory, &TWO_CLASSES) {
        table::read(&path, WIDTH, "1 and 2", binary)?
    } else if let Some(path) = first_file(&directory, &SEVEN_CLASSES) {
        table::read(&path, WIDTH, "1 to 7", seven)?
    } else if let Some(path) = libsvm_file(&directory) {
        libsvm::read(&path, WIDTH, "1 and 2, or +1 and -1", binary)?
    } else {
        return Err(DataError::Missing { set: "covertype".to_owned(), path: directory.join(SEVEN_CLASSES[0]) });
    };
    Ok(Dataset {
        name: "covertype".to_owned(),
        features,
        feature_shape: vec![WIDTH],
        feature_names: None,
        targets: Targets::Classes { labels, names: CLASSES.map(str::to_owned).to_vec() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    })
}

/// The first file, by name, with `libsvm` as a part of its name between dots (`covtype.libsvm.binary`, `x.libsvm.gz`).
fn libsvm_file(directory: &Path) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let unfinished = name.ends_with(".part") || name.ends_with(".bz2") || name.ends_with(".xz");
            name.split('.').any(|part| part == "libsvm") && !unfinished && path.is_file()
        })
        .collect();
    found.sort();
    found.into_iter().next()
}
