//! The interface of data sources.

use super::set::DataSet;
use crate::prepare::Normalise;
use crate::{DataError, DataProperties, Dataset, Encoding, FeatureScale, NumberedColumns, split};
use fedstein_schema::Literal::Ints;
use fedstein_schema::{Accepts, Key, Kind, key};
use rand::Rng;
use std::path::Path;

/// A data source: its description, and the code that reads its rows.
pub(crate) trait Source {
    /// The value of `kind` and the config keys, in the order of a resolved config.
    const KIND: Kind;
    /// The description for `fedstein data`: the authors and the files.
    const SET: DataSet;

    /// The properties of the rows, which are known before they are read.
    fn properties(&self) -> DataProperties;

    /// The scale for `auto`.
    fn auto_scale(&self) -> Normalise {
        Normalise::None
    }

    /// The largest value of a pixel, for scale `unit`; `None` if the rows are not images.
    fn largest_value(&self) -> Option<f64> {
        None
    }

    /// The scale by the published mean and standard deviation of the pixels; `None` if there are none.
    fn published_scale(&self) -> Option<FeatureScale> {
        None
    }

    /// The training and test rows, before limits and scale.
    ///
    /// # Errors
    /// A file is missing or damaged, or a value of the configuration is invalid.
    fn read(&self, data_dir: &Path, rng: &mut impl Rng) -> Result<Rows, DataError>;
}

/// Training and test rows before scaling.
pub(crate) struct Rows {
    pub train: Dataset,
    pub test: Dataset,
    /// Notes for the reader of results, one sentence each.
    pub notes: Vec<String>,
    /// How the columns of a table became the features.
    pub encoding: Option<Encoding>,
    /// The names of the columns beside the features that the configuration gives by their numbers.
    pub numbered_columns: NumberedColumns,
}

impl From<(Dataset, Dataset)> for Rows {
    fn from((train, test): (Dataset, Dataset)) -> Self {
        Self { train, test, notes: Vec::new(), encoding: None, numbered_columns: NumberedColumns::default() }
    }
}

impl Rows {
    /// Keeps the rows of some classes; an empty list keeps all.
    pub fn of_classes(self, classes: &[usize]) -> Result<Self, DataError> {
        let train = split::only_classes(self.train, classes)?;
        let test = split::only_classes(self.test, classes)?;
        Ok(Self { train, test, ..self })
    }
}

/// The key `classes`.
pub(super) const CLASSES: Key = key(
    "classes",
    Accepts::IntList { min: 0 },
    Ints(&[]),
    "Classes to keep in training and test, not renumbered ([C]: 0 to 8); `[]`: all.",
);
