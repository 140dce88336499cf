//! The new rows of a file for a finished run.

use std::path::Path;

use crate::datasets::{BesideColumn, DataConfig, NewRows, delimiter, read_new_rows};
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::finished::Finished;

/// Reads new rows as the run's training rows were read.
///
/// # Arguments
/// * `beside`: columns whose cells are given back as texts
///
/// # Errors
/// The file cannot be read, lacks a column, or has a cell that does not fit its column.
pub(super) fn read(
    run: &Finished,
    config: &Config,
    input: &Path,
    beside: &[BesideColumn],
) -> Result<NewRows, RunError> {
    // The new file may also contain the columns of the training file that are not features.
    let (mark, ignore) = match config.data()? {
        DataConfig::Csv(csv) => (csv.delimiter, vec![csv.target, csv.client_column]),
        _ => (",".to_owned(), Vec::new()),
    };
    let ignore: Vec<&str> = ignore.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let card = &run.card;
    let model = (card.features, card.feature_names.as_deref());
    Ok(read_new_rows(input, model, delimiter(&mark)?, &ignore, beside)?)
}
