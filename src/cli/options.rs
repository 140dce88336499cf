//! Options that several commands have.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use fedstein_schema::Accepts;
use toml::Value;

use super::CliError;
use crate::datasets::columns::MissingValues;

/// The data directory where neither the option nor the variable names one.
const DATA: &str = "data";

/// The directory of the data sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct DataDir {
    /// Directory of the data sets [default: $FEDSTEIN_DATA, else data]
    #[arg(long = "data-dir", value_name = "DIR")]
    path: Option<PathBuf>,
}

impl DataDir {
    /// Without the option, the directory is the value of [`DATA_VARIABLE`](super::DATA_VARIABLE).
    pub(super) fn set_default(&mut self, variable: Option<OsString>) {
        self.path = self.path.take().or_else(|| named(variable));
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(DATA))
    }
}

/// A client's personal predictor in the place of the global particles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct OwnPredictor {
    /// Use the personal predictor of this client, by its name as in clients.csv (its number where clients have none); of a
    /// personalised method. Where the client is a feature of the run, all rows are its own, and the file need not say so
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,

    /// With --client: directory of the data sets, if the run was trained on one [default: $FEDSTEIN_DATA, else data]
    #[arg(long, value_name = "DIR", requires = "client")]
    data_dir: Option<PathBuf>,
}

impl OwnPredictor {
    /// As [`DataDir::set_default`].
    pub(super) fn set_default(&mut self, variable: Option<OsString>) {
        self.data_dir = self.data_dir.take().or_else(|| named(variable));
    }

    /// The directory of the data sets.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.as_deref().unwrap_or(Path::new(DATA))
    }
}

/// The directory that the variable names.
fn named(variable: Option<OsString>) -> Option<PathBuf> {
    variable.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The option that declares missing cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct MissingCells {
    /// Cells that stand for missing values, separated by commas; or these for each column, such as '{ age = 999 }'
    #[arg(long = "missing-values", value_name = "CELLS", allow_hyphen_values = true)]
    given: Option<String>,
}

impl MissingCells {
    /// The cells; none where the option is not given.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn read(&self) -> Result<MissingValues, CliError> {
        let Some(value) = self.value()? else { return Ok(MissingValues::default()) };
        value.try_into().map_err(|error: toml::de::Error| CliError::Usage(format!("--missing-values: {error}")))
    }

    /// The value of `data.missing_values`: a list of cells, or such lists by the names of columns; `None` where the option
    /// is not given.
    ///
    /// # Errors
    /// [`CliError::Usage`] where it is neither, or a cell is empty.
    pub fn value(&self) -> Result<Option<Value>, CliError> {
        let Some(given) = &self.given else { return Ok(None) };
        let in_toml =
            format!("cells = {given}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("cells"));
        let value = match in_toml {
            Some(value @ (Value::Array(_) | Value::Table(_))) => value,
            _ if given.trim_start().starts_with(['[', '{']) => {
                return Err(CliError::Usage(format!(
                    "--missing-values `{given}`: a list is written '[999, \"unknown\"]', and cells of single columns \
                     '{{ age = 999, ward = \"unknown\" }}'"
                )));
            }
            _ => Value::Array(given.split(',').map(|cell| Value::String(cell.trim().to_owned())).collect()),
        };
        let refused = |valid| CliError::Usage(format!("--missing-values `{given}`: it must be {valid}"));
        Accepts::Cells.check(&value).map(Some).map_err(refused)
    }
}

/// How the cells of a file of new rows are written, where not as in the run's table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Written {
    /// The separator of the cells of --input, such as `;` or `tab` [default: the run's `data.delimiter`]
    #[arg(long, value_name = "CHAR")]
    pub delimiter: Option<String>,

    /// The decimal mark of the numbers of --input, `.` or `,` [default: the run's `data.decimal`]
    #[arg(long, value_name = "MARK")]
    pub decimal: Option<String>,

    /// How the dates of --input are written, such as DD.MM.YYYY [default: the run's `data.date_format`]
    #[arg(long, value_name = "FORMAT")]
    pub date_format: Option<String>,

    /// The cells of --input that stand for missing values, in the place of the run's [default: its `data.missing_values`].
    #[command(flatten)]
    pub missing_values: MissingCells,
}

/// How the runs of a study or a figure are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub struct Pace {
    /// Number of runs at once; more need more memory and, for small models, less time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: u16,

    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
}

/// The level of prediction sets that a word means.
///
/// # Errors
/// It is not a number between 0 and 1: a sentence.
pub(super) fn level(word: &str) -> Result<f64, String> {
    match word.parse::<f64>() {
        Ok(level) if level > 0.0 && level < 1.0 => Ok(level),
        _ => Err("must be a number between 0 and 1, such as 0.9".into()),
    }
}
