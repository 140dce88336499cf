//! Parquet and Arrow files are the same table as the CSV file with their rows.
//!
//! `clinic.csv` was written by pandas 3 from a table of 40 rows, `clinic.parquet` (Snappy, in groups of 16 rows) and
//! `clinic.arrow` (LZ4) by pyarrow 26.0.1, and `clinic-zstd.parquet` by polars 2.1.0, all from the same table.

use std::path::{Path, PathBuf};

use fedstein_datasets::columns::{Categorical, Missing, Rule};
use fedstein_datasets::source::{Csv, TestSplit};
use fedstein_datasets::{DataConfig, DataError, Normalise, Reading, TrainTest, load};
use rand::{SeedableRng, rngs::ChaCha8Rng};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn loaded(path: &Path) -> Result<TrainTest, DataError> {
    loaded_with(path, ",")
}

fn loaded_with(path: &Path, delimiter: &str) -> Result<TrainTest, DataError> {
    let texts = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let reading = Reading {
        id: texts(&["id"]),
        categorical: Categorical::Rule(Rule::Auto),
        boolean: texts(&["smoker"]),
        date: texts(&["seen"]),
        missing: Missing::Indicator,
        ..Reading::default()
    };
    let csv = Csv {
        path: path.to_path_buf(),
        test_path: String::new(),
        target: "sick".into(),
        header: fedstein_datasets::Header::Auto,
        task: fedstein_datasets::Task::Classification,
        positive: String::new(),
        delimiter: delimiter.into(),
        client_column: String::new(),
        reading,
        normalise: Normalise::None,
        test_fraction: 0.25,
        split: TestSplit::Random,
        leave_out: vec![],
        train_limit: 0,
        test_limit: 0,
    };
    load(&DataConfig::from(csv), Path::new(""), &mut ChaCha8Rng::seed_from_u64(1))
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_and_arrow_files_are_the_table_of_the_csv_file() {
    let csv = loaded(&golden("clinic.csv")).unwrap();
    assert_eq!(csv.train.features.dim().0 + csv.test.features.dim().0, 40);
    for name in ["clinic.parquet", "clinic-zstd.parquet", "clinic.arrow"] {
        let found = loaded_with(&golden(name), "tab").unwrap();
        assert_eq!(found.train.feature_names, csv.train.feature_names, "{name}");
        for (found, want) in [(&found.train, &csv.train), (&found.test, &csv.test)] {
            assert_eq!(found.features, want.features, "{name}");
            assert_eq!(found.targets, want.targets, "{name}");
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn a_damaged_file_and_columns_of_lists_are_refused_with_their_names() {
    let message = loaded(&golden("lists.parquet")).unwrap_err().to_string();
    assert!(message.contains("lists.parquet") && message.contains("column \"b\" holds lists"), "{message}");
    let dir = tempfile::tempdir().unwrap();
    for name in ["clinic.parquet", "clinic.arrow"] {
        let whole = std::fs::read(golden(name)).unwrap();
        // Of any length, and with any byte changed: read or refused, and no panic.
        for length in (8..whole.len()).step_by(97) {
            let path = dir.path().join(name);
            std::fs::write(&path, &whole[..length]).unwrap();
            let message = loaded(&path).unwrap_err().to_string();
            assert!(message.contains(name), "{message}");
            let mut changed = whole.clone();
            changed[length] ^= 0x55;
            std::fs::write(&path, &changed).unwrap();
            drop(loaded(&path));
        }
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_the_feature_such_files_are_refused_with_what_would_read_them() {
    for (name, what) in [("clinic.parquet", "a Parquet file"), ("clinic.arrow", "an Arrow file")] {
        let message = loaded(&golden(name)).unwrap_err().to_string();
        assert!(
            message.contains(what) && message.contains("--features parquet") && message.contains("CSV"),
            "{message}"
        );
    }
}
