//! YearPredictionMSD: the year of a song from 90 numbers about its sound (T. Bertin-Mahieux, UCI 203, 2011).

use super::files::find_file;
use super::kind::{Rows, Source};
use super::{DataFile, DataSet, Origin};
use crate::format::table::{self, TargetColumn};
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, Normalise, Targets};
use fedstein_schema::Kind;
use ndarray::Axis;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

const WIDTH: usize = 90;
/// The number of training rows, which come first; no producer is in both parts.
const TRAIN: usize = 463_715;
const TEST: usize = 51_630;

/// YearPredictionMSD: the year of a song from 90 numbers, 463,715 + 51,630 rows, the publisher's split. Manual
/// download.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct YearPrediction {
    /// The scale of the features; `auto` is `standard`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for YearPrediction {
    const KIND: Kind = Kind {
        name: "year-prediction",
        about: "The year of a song from its sound: 463,715 + 51,630 rows of 90 features, regression, in the publisher's split; manual download. Scale `auto`: `standard`.",
        keys: &[NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "year of a song from its sound: 463,715 + 51,630 rows of 90 features, regression",
        source: "T. Bertin-Mahieux, YearPredictionMSD, UCI Machine Learning Repository, 2011",
        licence: "CC BY 4.0 at UCI (not checked)",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        DataProperties::REGRESSION
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Standard
    }

    fn read(&self, data_dir: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        read(data_dir).map(Rows::from)
    }
}

/// The training and test rows of the publisher's split, which is by position.
fn read(data_dir: &Path) -> Result<(Dataset, Dataset), DataError> {
    let others = ["YearPredictionMSD.txt.gz", "YearPredictionMSD.csv", "YearPredictionMSD.csv.gz"];
    let path = find_file(data_dir, "year-prediction", "YearPredictionMSD.txt", &others)?;
    split_by_position(&path, TRAIN, TEST)
}

fn split_by_position(path: &Path, train: usize, test: usize) -> Result<(Dataset, Dataset), DataError> {
    let (features, mut years) = table::read_regression(path, WIDTH, TargetColumn::First)?;
    let (rows, expected) = (years.len(), train + test);
    if rows != expected {
        let problem = format!(
            "{rows} rows, expected {expected}: the publisher's split is by position, the first {train} rows for \
             training and the last {test} for testing"
        );
        return Err(DataError::Columns { path: path.to_path_buf(), problem });
    }
    let test_years = years.split_off(train);
    let (first, last) = features.view().split_at(Axis(0), train);
    let half = |features: ndarray::ArrayView2<f32>, values| Dataset {
        name: "year-prediction".to_owned(),
        features: features.to_owned(),
        feature_shape: vec![WIDTH],
        feature_names: None,
        targets: Targets::Real { values },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    };
    Ok((half(first, years), half(last, test_years)))
}

const HOW: &str = "\
     get YearPredictionMSD.txt.zip from https://archive.ics.uci.edu/dataset/203/yearpredictionmsd and unpack it to \
     year-prediction/YearPredictionMSD.txt below the data directory; fedstein does not know its checksum and therefore \
     does not fetch it";

const FILES: &[DataFile] = &[DataFile {
    path: "year-prediction/YearPredictionMSD.txt",
    bytes: 0,
    sha256: "",
    mirrors: &[],
    alternatives: &[
        "year-prediction/YearPredictionMSD.txt.gz",
        "year-prediction/YearPredictionMSD.csv",
        "year-prediction/YearPredictionMSD.csv.gz",
    ],
    part: &[],
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rows_train_and_the_last_ones_test() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |row: usize| {
            let features: Vec<String> = (0..90).map(|column| format!("{}.5", row * 100 + column)).collect();
            format!("{},{}\n", 1990 + row, features.join(","))
        };
        std::fs::write(file.path(), (0..5).map(line).collect::<String>()).unwrap();
        let (train, test) = split_by_position(file.path(), 3, 2).unwrap();
        assert_eq!(train.targets, Targets::Real { values: vec![1990.0, 1991.0, 1992.0] });
        assert_eq!(test.targets, Targets::Real { values: vec![1993.0, 1994.0] });
        assert_eq!((train.features.dim(), test.features.dim()), ((3, 90), (2, 90)));
        assert_eq!((train.features[[2, 89]], test.features[[0, 0]]), (289.5, 300.5));

        let message = split_by_position(file.path(), 4, 2).unwrap_err().to_string();
        assert!(message.contains("5 rows, expected 6: the publisher's split is by position"), "{message}");
        assert!(message.contains("the first 4 rows for training and the last 2 for testing"), "{message}");
    }
}
