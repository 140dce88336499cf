//! A user's table: the format of its file, the meaning of its columns, and its content.

use super::header::Header;
use crate::NumberedColumns;
use crate::columns::{CellKind, Names, Reading};
use ndarray::Array2;
use std::collections::BTreeMap;

fedstein_schema::words! {
    /// The type of the target column.
    pub enum Task {
        /// A label, any text.
        Classification = "classification",
        /// A finite number.
        Regression = "regression",
    }
}

/// The format of a file and the meaning of its columns.
#[derive(Clone, Debug)]
pub struct CsvOptions<'a> {
    /// The ASCII character between the fields.
    pub delimiter: u8,
    /// Whether the first line holds the column names.
    pub header: Header,
    /// The target column: its name, or its index from 0, negative from the end (`-1` is the last).
    pub target: &'a str,
    /// The column of the natural client, given in the same way; empty if there is none.
    pub client: &'a str,
    /// The type of the target column.
    pub task: Task,
    /// The meaning of the other columns, and how cells are written.
    pub reading: &'a Reading,
    /// Of a second file: the table of the first, which has the same features. Other columns may be missing from it.
    pub first: Option<&'a CsvTable>,
    /// Whether a row may lack the group that `reading` names a column of; then no row has one. Else it is refused.
    pub may_lack_groups: bool,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub struct CsvTable {
    /// The cells `[rows, p]` of the feature columns: see [`crate::columns`].
    pub features: Array2<f32>,
    /// The names of the feature columns, if there is a header.
    pub names: Option<Vec<String>>,
    /// The names of the columns of target and group, if there are such columns and a header.
    pub others: [Option<String>; 2],
    /// What the feature columns hold `[p]`.
    pub kinds: Vec<CellKind>,
    /// The places of the feature columns in the file `[p]`, from 0.
    pub places: Vec<usize>,
    /// The texts of each feature column that is a category, to which its cells refer.
    pub texts: BTreeMap<usize, Vec<String>>,
    /// The number of rows that `missing_target` left out.
    pub unlabelled: usize,
    /// The number of rows that `missing` left out because a cell is missing.
    pub dropped: usize,
    /// Regression: the targets. Empty for classification.
    pub values: Vec<f64>,
    /// Classification: an index into the [`Names`] of the classes. Empty for regression.
    pub labels: Vec<usize>,
    /// An index into the [`Names`] of the clients. Empty if there is no client column.
    pub clients: Vec<usize>,
    /// An index into the [`Names`] of the groups; `None` if there is no column of groups.
    pub groups: Option<Vec<usize>>,
    /// The line of each row, from 1.
    pub lines: Vec<u64>,
}

impl CsvTable {
    /// The names of the columns of target and group, where the options give their numbers.
    pub fn numbered_columns(&self, options: &CsvOptions) -> NumberedColumns {
        let [target, group] = self.others.clone();
        let by_number = |name: Option<String>, key: &str| name.filter(|name| name != key);
        NumberedColumns {
            target: by_number(target, options.target),
            group: by_number(group, &options.reading.group_column),
        }
    }
}

/// The texts of the columns that are numbered over all files of a data set.
#[derive(Clone, Debug, Default)]
pub struct Numbered {
    /// Those of the target.
    pub classes: Names,
    /// Those of the clients.
    pub clients: Names,
    /// Those of the groups.
    pub groups: Names,
}
