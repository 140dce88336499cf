//! New rows of a finished run, from a file.

use std::path::Path;

use super::config::Config;
use super::finished::Finished;
use crate::datasets::{
    AskedColumn, DataConfig, Header, NewRows, NewRowsOptions, Reading, RowsOfClient, delimiter, read_new_rows,
};
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
    /// # Arguments
    /// * `client`: whose rows they are, where [`Finished::rows_of_client`] has a column: the file need not have this column,
    ///   and may have no other client in it
    ///
    /// # Errors
    /// The file cannot be read, lacks a column, or has a cell that does not fit its column; there is no such client.
    pub fn new_rows(
        &self,
        config: &Config,
        input: &Path,
        besides: Besides<'_>,
        client: Option<&str>,
    ) -> Result<NewRows, RunError> {
        let column = client.map(|name| self.rows_of_client(config, name)).transpose()?.flatten();
        let client = column.zip(client).map(|(column, name)| RowsOfClient { key: "--client", column, name });
        let (mark, header, reading, others) = match config.data()? {
            DataConfig::Csv(csv) => {
                let is_feature = csv.client_is_feature();
                let client = Some(csv.client_column).filter(|_| !is_feature);
                (csv.delimiter, csv.header, csv.reading, [Some(csv.target), client].into_iter().flatten().collect())
            }
            DataConfig::Sites(sites) => (sites.delimiter, Header::Auto, sites.reading, vec![sites.target]),
            _ => (",".to_owned(), Header::Auto, Reading::default(), Vec::new()),
        };
        // The file may also contain the columns of the training file that are not features.
        let ignore: Vec<&str> = others.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let ids = || reading.id.iter().map(|column| ("data.id", column.as_str())).collect();
        let (ids, asked): (Vec<(&str, &str)>, &[AskedColumn]) = match besides {
            Besides::Nothing => (Vec::new(), &[]),
            Besides::Ids => (ids(), &[]),
            Besides::Asked(asked) => (Vec::new(), asked),
        };
        let delimiter = delimiter(&mark)?;
        let options =
            NewRowsOptions { delimiter, header, reading: &reading, ignore: &ignore, beside: &ids, asked, client };
        Ok(read_new_rows(input, &self.card, &options)?)
    }
}
