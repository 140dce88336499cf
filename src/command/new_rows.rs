//! The run's configuration for new rows: the backend that predicts them, and how their file is written.

use toml::Value;

use crate::backend::AnyBackend;
use crate::cli::{CliError, MissingCells, Written};
use crate::experiment::Config;
use crate::experiment::config::schema;
use crate::experiment::finished::Finished;
use crate::experiment::forecast::listed;
use crate::experiment::schema::did_you_mean;
use crate::report::quoted;

/// The run's configuration on the backend that is asked for, if one is.
///
/// # Errors
/// There is no such backend, or it is not compiled in.
pub(super) fn on_backend(mut config: Config, asked: Option<&str>) -> Result<Config, CliError> {
    config.backend = asked.map_or(config.backend, str::to_owned);
    AnyBackend::named(&config.backend)?;
    Ok(config)
}

/// The run's configuration, with the cells of its table written as those of a file of new rows.
///
/// # Arguments
/// - `beside`: the columns that are read besides those of the run.
///
/// # Errors
/// The run was not trained on a table, or a value is not one of its key.
pub(super) fn config_of_rows(
    run: &Finished,
    config: &Config,
    written: &Written,
    beside: &[&str],
) -> Result<Config, CliError> {
    let Written { delimiter, decimal, date_format, missing_values } = written;
    let mut config = config.clone();
    check_columns(run, &config, missing_values, beside)?;
    let text = |text: &Option<String>| text.clone().map(Value::String);
    for (option, key, value) in [
        ("--delimiter", "delimiter", text(delimiter)),
        ("--decimal", "decimal", text(decimal)),
        ("--date-format", "date_format", text(date_format)),
        ("--missing-values", "missing_values", missing_values.value()?),
    ] {
        let Some(value) = value else { continue };
        let kind = config.data_kind().to_owned();
        let known = schema().section("data").and_then(|section| section.key(&kind, key)).ok_or_else(|| {
            CliError::Usage(format!(
                "{option}: the run's data are `{}`, whose new rows are plain numbers with commas between them",
                run.data_name(&config)
            ))
        })?;
        let checked = known.accepts.check(&value);
        let checked = checked.map_err(|valid| CliError::Usage(format!("{option} {value}: it must be {valid}")))?;
        config.data.insert(key.to_owned(), checked);
    }
    Ok(config)
}

/// Checks that --missing-values names columns that the run knows, or that are read beside them.
///
/// # Errors
/// A usage error about the first that it does not.
fn check_columns(
    run: &Finished,
    config: &Config,
    missing_values: &MissingCells,
    beside: &[&str],
) -> Result<(), CliError> {
    let values = missing_values.read()?;
    let Some(features) = run.card.column_names() else {
        return match values.columns().next() {
            None => Ok(()),
            Some(column) => Err(CliError::Usage(format!(
                "--missing-values names the column `{}`, and the run's columns have no names; a list, such as [999], holds \
                 for all columns",
                quoted(column)
            ))),
        };
    };
    let target = config.data()?.target_column().to_owned();
    let known = || features.iter().map(String::as_str).chain([target.as_str()]).chain(beside.iter().copied());
    match values.columns().find(|column| !known().any(|known| known == column.as_str())) {
        None => Ok(()),
        Some(column) => Err(CliError::Usage(format!(
            "--missing-values: `{}` is no column of the run, {}{}",
            quoted(column),
            listed(&features),
            did_you_mean(column, known())
        ))),
    }
}
