//! YearPredictionMSD: the year of a song from 90 numbers about its sound (T. Bertin-Mahieux, UCI 203, 2011).

use super::put_there;
use crate::format::table::{self, TargetColumn};
use crate::{DataError, Dataset, Targets};
use ndarray::Axis;
use std::path::Path;

const WIDTH: usize = 90;
/// Training rows, which come first; no producer is in both parts.
const TRAIN: usize = 463_715;
const TEST: usize = 51_630;

/// Train and test as the publisher splits them, by position.
pub(crate) fn read(data_dir: &Path) -> Result<(Dataset, Dataset), DataError> {
    let others = ["YearPredictionMSD.txt.gz", "YearPredictionMSD.csv", "YearPredictionMSD.csv.gz"];
    let path = put_there(data_dir, "year-prediction", "YearPredictionMSD.txt", &others)?;
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
    };
    Ok((half(first, years), half(last, test_years)))
}

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
