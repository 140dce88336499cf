//! The new rows of a file for a finished run.

use std::path::Path;

use toml::Value;

use crate::cli::{CliError, Written};
use crate::datasets::{AskedColumn, DataConfig, NewRows, NewRowsOptions, Reading, delimiter, read_new_rows};
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::config::schema;
use crate::experiment::finished::Finished;

/// Columns besides the features.
#[derive(Clone, Copy, Debug)]
pub(super) enum Besides<'a> {
    /// Those of `data.id`.
    Ids,
    /// Those that were asked for.
    Asked(&'a [AskedColumn<'a>]),
}

/// Reads new rows as the run's training rows were read, with columns besides the features.
///
/// # Errors
/// The file cannot be read, lacks a column, or has a cell that does not fit its column.
pub(super) fn read(run: &Finished, config: &Config, input: &Path, besides: Besides<'_>) -> Result<NewRows, RunError> {
    let (mark, reading, others) = match config.data()? {
        DataConfig::Csv(csv) => (csv.delimiter, csv.reading, vec![csv.target, csv.client_column]),
        DataConfig::Sites(sites) => (sites.delimiter, sites.reading, vec![sites.target]),
        _ => (",".to_owned(), Reading::default(), Vec::new()),
    };
    // The file may also contain the columns of the training file that are not features.
    let ignore: Vec<&str> = others.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let ids = || reading.id.iter().map(|column| ("data.id", column.as_str())).collect();
    let (ids, asked): (Vec<(&str, &str)>, &[AskedColumn]) = match besides {
        Besides::Ids => (ids(), &[]),
        Besides::Asked(asked) => (Vec::new(), asked),
    };
    let options =
        NewRowsOptions { delimiter: delimiter(&mark)?, reading: &reading, ignore: &ignore, beside: &ids, asked };
    Ok(read_new_rows(input, &run.card, &options)?)
}

/// The run's configuration, with the cells of its table written as those of a file of new rows.
///
/// # Errors
/// The run was not trained on a table, or a value is not one of its key.
pub(super) fn config_of_rows(run: &Finished, config: &Config, written: &Written) -> Result<Config, CliError> {
    let Written { delimiter, decimal, date_format } = written;
    let mut config = config.clone();
    for (option, key, value) in [
        ("--delimiter", "delimiter", delimiter),
        ("--decimal", "decimal", decimal),
        ("--date-format", "date_format", date_format),
    ] {
        let Some(value) = value else { continue };
        let kind = config.data_kind().to_owned();
        let known = schema().section("data").and_then(|section| section.key(&kind, key)).ok_or_else(|| {
            CliError::Usage(format!(
                "{option}: the run's data are `{}`, whose new rows are plain numbers with commas between them",
                run.data_name(&config)
            ))
        })?;
        let checked = known.accepts.check(&Value::String(value.clone()));
        let checked = checked.map_err(|valid| CliError::Usage(format!("{option} {value:?}: it must be {valid}")))?;
        config.data.insert(key.to_owned(), checked);
    }
    Ok(config)
}
