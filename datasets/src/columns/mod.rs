//! The columns of a user's table as they are: texts, dates, missing cells and columns that are no feature.
//!
//! A table is read into *cells* `[rows, p]`, one for each feature column of the file: a number, NaN for a missing cell,
//! or the number of a text. [`Columns`] says what they hold. Rows are split and limited in this form. Then an
//! [`Encoding`] is learned from the training rows, and gives the features of any rows.

mod alike;
mod cell;
pub(crate) mod codes;
mod date;
mod encoding;
mod keys;
mod missing_values;
mod names;
mod spelling;
mod tally;
mod thousands;

pub use alike::{DIFFERENCE, alike, note_on_alike, note_on_alike_groups};
pub use cell::{CellKind, Decimal, Notation};
pub use codes::Codes;
pub use date::DateFormat;
pub use encoding::{Column, Encoded, Encoding, tallies};
pub use keys::{Categorical, Missing, MissingTarget, Reading, Rule};
pub use missing_values::MissingValues;
pub use names::{Names, Places, numbered, places};
pub use tally::Tally;

pub(crate) use cell::{Purpose, is_missing, text};
pub(crate) use keys::{READING, READING_AT_SERVER, READING_AT_SITE};
pub(crate) use missing_values::MissingCells;
pub(crate) use names::merged;
pub(crate) use spelling::spelt;
pub(crate) use thousands::{has_thousands, may_be_thousands, sign, unit};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest number of different texts in a column that is one-hot encoded.
pub const MOST_CATEGORIES: usize = 1_000;

/// The largest number of distinct whole numbers of a target that are taken for classes where nobody says so.
pub const MOST_NUMBERED_CLASSES: usize = 20;

/// What the columns of a table hold, before anything is learned from them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    /// The kind of each feature column `[p]`.
    pub kinds: Vec<CellKind>,
    /// The texts of each column that is a category: a cell is the place of its text.
    pub texts: BTreeMap<usize, Vec<String>>,
    /// What becomes of missing cells.
    pub missing: Missing,
    /// Whether the kinds were chosen by the content of the file.
    pub automatic: bool,
}

impl Columns {
    /// Columns of numbers without missing cells.
    pub fn of_numbers(width: usize) -> Self {
        Self { kinds: vec![CellKind::Number; width], ..Self::default() }
    }

    /// The texts of a column; none where it is no category.
    pub fn texts_of(&self, column: usize) -> &[String] {
        self.texts.get(&column).map_or(&[], Vec::as_slice)
    }

    /// Whether the cells are the features: there are numbers alone, and no cell may be missing.
    pub fn are_features(&self) -> bool {
        self.kinds.iter().all(|kind| *kind == CellKind::Number) && !self.missing.is_filled()
    }
}
