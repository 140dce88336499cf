//! The table of a site of a federation, and the keys by which its own file describes it.

use super::csv::{Cells, Csv, DELIMITER, Extent, HEADER, HeldOutFiles, PATH, TARGET, TASK, TEST_PATH, TestSplit};
use crate::columns::{CellKind, READING_AT_SITE, is_missing};
use crate::prepare::TEST_FRACTION;
use crate::{DataError, Dataset};
use fedstein_schema::Literal::{Float, Text};
use fedstein_schema::{Accepts, Interval, Key, joined, key};
use ndarray::Array2;
use rand::Rng;
use std::path::Path;

/// The keys of a file that a site of a federation holds alone: without natural clients, scale and limits, which concern
/// all sites.
pub const SITE_KEYS: &[Key] = &joined::<24>(&[&SITE_FILE, &READING_AT_SITE, &SITE_SPLIT]);

const SITE_FILE: [Key; 9] = [
    PATH.doc("The CSV file, relative to the directory of the site's own file; may be compressed with gzip."),
    TARGET,
    TASK,
    HEADER,
    DELIMITER,
    key(
        "name_column",
        Accepts::Text { may_be_empty: true },
        Text(""),
        "The name of a further column, in which every row of this site has the site's `name`: a feature that says at which site a row is. All sites of a run have it, or none. `\"\"`: none.",
    ),
    TEST_PATH.doc(
        "A second CSV file with the test rows, relative as `path`; `test_fraction` is then ignored. `\"\"`: none.",
    ),
    key(
        "validation_path",
        Accepts::Text { may_be_empty: true },
        Text(""),
        "A CSV file with the validation rows, relative as `path`; `validation_fraction` is then ignored. `\"\"`: none.",
    ),
    key(
        "calibration_path",
        Accepts::Text { may_be_empty: true },
        Text(""),
        "A CSV file with the calibration rows, relative as `path`; `calibration_fraction` is then ignored. `\"\"`: none.",
    ),
];

const SITE_SPLIT: [Key; 4] = [
    Key {
        accepts: Accepts::Float(Interval::DECAY),
        ..TEST_FRACTION.doc(
            "Share of the rows held out for the test; the same rows every time, drawn by the site's `index`. 0: none, and no \
             server gets scores of test rows.",
        )
    },
    key(
        "split",
        Accepts::Choice(&[TestSplit::Random.word(), TestSplit::ByClass.word()]),
        Text(TestSplit::Random.word()),
        "How the test rows are drawn: from all rows, or the same share of each class (stratified). Not used with `test_path`.",
    ),
    key(
        "validation_fraction",
        Accepts::Float(Interval::DECAY),
        Float(0.0),
        "Share of the training rows held out to choose settings with (`evaluation.rows = \"validation\"`, the best round of a run \
         with `stop.patience`, and that of the clients' personal predictors); drawn by the site's `index`. 0: none.",
    ),
    key(
        "calibration_fraction",
        Accepts::Float(Interval::DECAY),
        Float(0.0),
        "Share of the training rows held out for `[calibration]`, beside those for validation; drawn by the site's `index`. 0: \
         none.",
    ),
];

impl Csv {
    /// The rows as cells, for a site of a federation: unlike a whole run, it may have rows of one class only. Scale and limits
    /// are not used.
    ///
    /// # Errors
    /// A file is missing or damaged, has no such column, or does not fit the task.
    pub fn site_rows(&self, held_out: HeldOutFiles<'_>, rng: &mut impl Rng) -> Result<Cells, DataError> {
        self.cells(Extent::Part, held_out, rng)
    }
}

impl Cells {
    /// The same rows with a further column of categories, after the others, in which every row has the site's name.
    ///
    /// # Errors
    /// The columns of `file` have no names, or one has this name, or the site's name stands for a missing cell.
    pub fn with_name(mut self, file: &Path, column: &str, name: &str) -> Result<Self, DataError> {
        let refuse = |problem: &str| {
            Err(DataError::Columns { path: file.to_path_buf(), problem: format!("data.name_column: {problem}") })
        };
        if is_missing(name.as_bytes()) {
            return refuse(&format!(
                "the site's name, `{name}`, stands for a missing cell; give the site another name"
            ));
        }
        match &self.train.feature_names {
            None => return refuse("its columns have no names; give the file a header"),
            Some(names) if names.iter().any(|known| known == column) => {
                return refuse(&format!(
                    "it has a column `{column}` already; name that one in data.categorical instead"
                ));
            }
            Some(_) => {}
        }
        let held_out = [Some(&mut self.test), self.validation.as_mut(), self.calibration.as_mut()];
        for rows in held_out.into_iter().flatten().chain([&mut self.train]) {
            add_first_category(rows, column);
        }
        self.columns.texts.insert(self.columns.kinds.len(), vec![name.to_owned()]);
        self.columns.kinds.push(CellKind::Category);
        Ok(self)
    }
}

/// Adds a column in which every cell is the first text of a category.
fn add_first_category(rows: &mut Dataset, name: &str) {
    let (height, width) = rows.features.dim();
    let cell = |(row, at)| if at < width { rows.features[[row, at]] } else { 0.0 };
    rows.features = Array2::from_shape_fn((height, width + 1), cell);
    rows.feature_shape = vec![width + 1];
    rows.feature_names.iter_mut().for_each(|names| names.push(name.to_owned()));
}
