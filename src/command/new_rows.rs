//! The new rows of a file for a finished run, and the columns that are passed through to what is written about them.

use std::borrow::Cow;
use std::path::Path;

use crate::datasets::{Beside, DataConfig, NewRows, NewRowsOptions, Reading, delimiter, read_new_rows};
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::finished::Finished;

/// Reads new rows as the run's training rows were read, with the columns of `data.id` beside them.
///
/// # Arguments
/// * `beside`: further columns whose cells are given back as texts after those of `data.id`, each with what names it
///
/// # Errors
/// The file cannot be read, lacks a column, or has a cell that does not fit its column.
pub(super) fn read(
    run: &Finished,
    config: &Config,
    input: &Path,
    beside: &[(&str, &str)],
) -> Result<NewRows, RunError> {
    let (mark, reading, others) = match config.data()? {
        DataConfig::Csv(csv) => (csv.delimiter, csv.reading, vec![csv.target, csv.client_column]),
        DataConfig::Sites(sites) => (sites.delimiter, sites.reading, vec![sites.target]),
        _ => (",".to_owned(), Reading::default(), Vec::new()),
    };
    // The file may also contain the columns of the training file that are not features.
    let ignore: Vec<&str> = others.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let ids = reading.id.iter().map(|column| ("data.id", column.as_str()));
    let options = NewRowsOptions {
        delimiter: delimiter(&mark)?,
        reading: &reading,
        ignore: &ignore,
        beside: &ids.chain(beside.iter().copied()).collect::<Vec<_>>(),
    };
    Ok(read_new_rows(input, &run.card, &options)?)
}

/// Columns that are written before others, each cell followed by a comma.
pub(super) struct Before<'a>(pub &'a [Beside]);

impl Before<'_> {
    /// Their names; without a header `id`, `id_1` and so on.
    pub fn header(&self) -> String {
        let name = |(at, column): (usize, &Beside)| match &column.name {
            Some(name) => format!("{},", cell(name)),
            None if at == 0 => "id,".to_owned(),
            None => format!("id_{at},"),
        };
        self.0.iter().enumerate().map(name).collect()
    }

    /// Their cells of a row.
    pub fn row(&self, row: usize) -> String {
        self.0.iter().map(|column| format!("{},", cell(&column.cells[row]))).collect()
    }
}

/// A cell of a CSV file, quoted where it needs it.
pub(super) fn cell(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}
