//! New rows of a finished run, from a file.

use std::path::Path;

use super::config::Config;
use super::finished::Finished;
use crate::datasets::{AskedColumn, DataConfig, NewRows, NewRowsOptions, Reading, delimiter, read_new_rows};
use crate::error::RunError;

/// Columns besides the features.
#[derive(Clone, Copy, Debug)]
pub enum Besides<'a> {
    /// None.
    Nothing,
    /// Those of `data.id`.
    Ids,
    /// Those that were asked for.
    Asked(&'a [AskedColumn<'a>]),
}

impl Finished {
    /// Reads new rows from a file as the run's training rows were read, with columns besides the features.
    ///
    /// # Errors
    /// The file cannot be read, lacks a column, or has a cell that does not fit its column.
    pub fn new_rows(&self, config: &Config, input: &Path, besides: Besides<'_>) -> Result<NewRows, RunError> {
        let (mark, reading, others) = match config.data()? {
            DataConfig::Csv(csv) => {
                let is_feature = csv.reading.categorical.named().contains(&csv.client_column);
                let client = Some(csv.client_column).filter(|_| !is_feature);
                (csv.delimiter, csv.reading, [Some(csv.target), client].into_iter().flatten().collect())
            }
            DataConfig::Sites(sites) => (sites.delimiter, sites.reading, vec![sites.target]),
            _ => (",".to_owned(), Reading::default(), Vec::new()),
        };
        // The file may also contain the columns of the training file that are not features.
        let ignore: Vec<&str> = others.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let ids = || reading.id.iter().map(|column| ("data.id", column.as_str())).collect();
        let (ids, asked): (Vec<(&str, &str)>, &[AskedColumn]) = match besides {
            Besides::Nothing => (Vec::new(), &[]),
            Besides::Ids => (ids(), &[]),
            Besides::Asked(asked) => (Vec::new(), asked),
        };
        let options =
            NewRowsOptions { delimiter: delimiter(&mark)?, reading: &reading, ignore: &ignore, beside: &ids, asked };
        Ok(read_new_rows(input, &self.card, &options)?)
    }
}
