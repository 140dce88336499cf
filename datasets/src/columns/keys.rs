//! The config keys that say how the cells of a user's table are read.

use crate::DataError;
use crate::columns::{DateFormat, Decimal, MissingCells, MissingValues, Notation};
use fedstein_schema::Literal::{Text, Texts};
use fedstein_schema::{Accepts, Key, joined, key};
use serde::{Deserialize, Serialize};

/// How the cells of a table are read. The default reads numbers, and refuses everything else.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Reading {
    /// Columns that are left out.
    pub ignore: Vec<String>,
    /// Columns that are no feature, and that predictions are written beside.
    pub id: Vec<String>,
    /// The column of each row's group, whose rows stay together; empty for none. It is no feature, and may be one of `id`.
    pub group_column: String,
    /// Columns of texts, which are one-hot encoded.
    pub categorical: Categorical,
    /// Columns of yes and no.
    pub boolean: Vec<String>,
    /// Columns of dates.
    pub date: Vec<String>,
    /// The format of the dates.
    pub date_format: DateFormat,
    /// The decimal mark.
    pub decimal: Decimal,
    /// Cells that stand for missing values, besides blank ones and the usual marks.
    pub missing_values: MissingValues,
    /// What becomes of missing cells of features.
    pub missing: Missing,
    /// What becomes of rows without a target.
    pub missing_target: MissingTarget,
}

/// The columns of texts: each by name or number, or all whose cells are not numbers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Categorical {
    /// These columns.
    Columns(Vec<String>),
    /// A rule.
    Rule(Rule),
}

fedstein_schema::words! {
    /// The rule that finds columns of texts.
    pub enum Rule {
        /// All columns with a cell that is neither a number nor missing.
        Auto = "auto",
    }
}

impl Default for Categorical {
    fn default() -> Self {
        Self::Columns(Vec::new())
    }
}

impl Categorical {
    /// The columns that are named.
    pub fn named(&self) -> &[String] {
        match self {
            Self::Columns(columns) => columns,
            Self::Rule(Rule::Auto) => &[],
        }
    }

    /// Whether the content of the file decides.
    pub fn is_automatic(&self) -> bool {
        *self == Self::Rule(Rule::Auto)
    }
}

fedstein_schema::words! {
    /// What becomes of missing cells.
    #[derive(Default)]
    pub enum Missing {
        /// They are refused.
        #[default]
        Error = "error",
        /// Their features have the means over the training rows.
        Mean = "mean",
        /// As `Mean`, and a further feature says that the cell is missing.
        Indicator = "indicator",
        /// Their rows are left out.
        Drop = "drop",
    }
}

impl Missing {
    /// Whether a missing cell gets features.
    pub fn is_filled(self) -> bool {
        matches!(self, Self::Mean | Self::Indicator)
    }
}

fedstein_schema::words! {
    /// What becomes of rows whose target is missing.
    #[derive(Default)]
    pub enum MissingTarget {
        /// They are refused.
        #[default]
        Error = "error",
        /// They are left out.
        Drop = "drop",
    }
}

impl Reading {
    /// Whether rows without a target are left out rather than refused.
    pub fn leaves_out_unlabelled(&self) -> bool {
        self.missing == Missing::Drop || self.missing_target == MissingTarget::Drop
    }

    /// How numbers and dates are written.
    pub fn notation(&self) -> Notation {
        Notation { decimal: self.decimal, date: self.date_format.clone() }
    }

    /// The cells that are missing in columns with these names, in their order; none where they have no names.
    pub(crate) fn missing_cells<'a>(&self, names: impl Iterator<Item = &'a str>) -> MissingCells {
        self.missing_values.cells(names, self.notation())
    }

    /// The key that names [`Self::missing_values`].
    pub(crate) const MISSING_VALUES: &'static str = "data.missing_values";

    /// The named columns of features that are no numbers, with their keys.
    pub(crate) fn named_features(&self) -> [(&'static str, &[String]); 3] {
        [("data.categorical", self.categorical.named()), ("data.boolean", &self.boolean), ("data.date", &self.date)]
    }

    /// The named columns that are no feature, with their keys.
    pub fn no_features(&self) -> [(&'static str, &[String]); 3] {
        [("data.ignore", &self.ignore), ("data.id", &self.id), (Self::GROUP, self.group())]
    }

    /// The key that names [`Self::group_column`].
    pub(crate) const GROUP: &'static str = "data.group_column";

    /// The column of each row's group, if there is one.
    pub(crate) fn group(&self) -> &[String] {
        match self.group_column.as_str() {
            "" => &[],
            _ => std::slice::from_ref(&self.group_column),
        }
    }

    /// Checks what a config's schema does not.
    ///
    /// # Errors
    /// The format of dates has not each of `YYYY`, `MM` and `DD` once.
    pub fn check(&self) -> Result<(), DataError> {
        let problem = |problem| DataError::config("data.date_format", self.date_format.as_str(), problem);
        self.date_format.check().map_err(problem)
    }
}

/// The keys of [`Reading`], in the order of a resolved config.
pub(crate) const READING: [Key; 11] = joined(&[&[IGNORE, ID, GROUP_COLUMN], &CELLS]);

/// [`READING`] of a site's own file, whose results have the predictions.
pub(crate) const READING_AT_SITE: [Key; 11] = joined(&[
    &[
        IGNORE,
        ID.doc(
            "Columns that are no feature, such as the number of a patient; `fedstein predict` on the site's own results writes them before its predictions.",
        ),
        GROUP_COLUMN,
    ],
    &CELLS,
]);

/// [`READING`] of a server, whose file of test rows and whose new rows may have the columns of the sites' files.
pub(crate) const READING_AT_SERVER: [Key; 11] = joined(&[
    &[
        IGNORE,
        ID,
        GROUP_COLUMN.doc(
            "A column that is no feature, such as the patient of a visit. The rows of a group stay together at a site whose own file names it, and the report on `test_path` counts groups where each of its rows has one. `\"\"`: none.",
        ),
    ],
    &CELLS,
]);

const IGNORE: Key =
    key("ignore", Accepts::Columns { words: &[] }, Texts(&[]), "Columns that are left out, by name or number.");

/// What cells hold and how they are written.
const CELLS: [Key; 8] = [
    key(
        "categorical",
        Accepts::Columns { words: Rule::WORDS },
        Texts(&[]),
        "Columns of texts: one feature for each text of the training rows, in sorted order, which is 1 where the cell has this text and else 0; all are 0 for a text that no training row has. `auto`: every column with a cell that is neither a number nor missing.",
    ),
    key(
        "boolean",
        Accepts::Columns { words: &[] },
        Texts(&[]),
        "Columns of `true` and `false`, `yes` and `no`, `t` and `f`, or `y` and `n`, in upper or lower case, or `1` and `0`, also as `1.0` and `0.0`; 1 and 0 as a feature.",
    ),
    key(
        "date",
        Accepts::Columns { words: &[] },
        Texts(&[]),
        "Columns of dates; the feature is the number of days since 1970-01-01. A time of day after it (`T13:45` or ` 13:45:30`) is a fraction of a day.",
    ),
    key(
        "date_format",
        Accepts::Text { may_be_empty: false },
        Text("YYYY-MM-DD"),
        "How the dates of `date` are written: `YYYY`, `MM` and `DD`, each once, such as `DD.MM.YYYY` or `MM/DD/YYYY`.",
    ),
    key(
        "decimal",
        Accepts::Choice(Decimal::WORDS),
        Text(Decimal::Point.word()),
        "The decimal mark of numbers, of features and target.",
    ),
    key(
        "missing_values",
        Accepts::Cells,
        Texts(&[]),
        "Cells that stand for missing values, of features and target, besides empty ones and `NA`, `N/A`, `NaN`, `null` and `?` in upper or lower case: numbers or texts in every column, or those of each column by its name in the header.",
    ),
    key(
        "missing",
        Accepts::Choice(Missing::WORDS),
        Text(Missing::Error.word()),
        "Missing cells of features (see `missing_values`): `error` refuses them, `mean` gives their features the means over the training rows, `indicator` does so and adds a feature that is 1 where the cell is missing (for columns in which training rows have such cells), `drop` leaves the row out, as one without a target.",
    ),
    key(
        "missing_target",
        Accepts::Choice(MissingTarget::WORDS),
        Text(MissingTarget::Error.word()),
        "Rows whose target is missing: `error` refuses them, `drop` leaves them out, whatever `missing` says of features; `fedstein evaluate` then leaves them out as well.",
    ),
];

/// The key `id`.
const ID: Key = key(
    "id",
    Accepts::Columns { words: &[] },
    Texts(&[]),
    "Columns that are no feature, such as the number of a patient; `fedstein predict` writes them before its predictions.",
);

/// The key `group_column`.
const GROUP_COLUMN: Key = key(
    "group_column",
    Accepts::Column { may_be_empty: true },
    Text(""),
    "The column of each row's group, such as the patient of a visit: rows with the same cell stay together where rows are drawn for testing, validation and calibration, whose shares are then those of groups, and intervals and verdict of the report count groups. It is no feature, and may be one of `id`. `\"\"`: none.",
);
