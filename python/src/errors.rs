//! Python's exceptions, with the texts of the command.

use fedstein::error::{RunError, without_functions};
use fedstein::experiment::schema;
use fedstein::metrics::MetricError;
use fedstein::report::ReportError;
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    fedstein,
    ConfigError,
    PyValueError,
    "A key, a value or a file that cannot be used; nothing was run."
);
create_exception!(fedstein, DataError, PyValueError, "Rows or predictions that cannot be used; nothing was run.");
create_exception!(fedstein, RunFailed, PyRuntimeError, "A run that began and could not be completed.");
create_exception!(
    fedstein,
    Interrupted,
    PyKeyboardInterrupt,
    "A run that Ctrl-C ended at a round's end. `resume` is the directory to resume from, or None without a checkpoint."
);

/// What messages call an option of the command, and the argument in its place.
const ARGUMENTS: [(&str, &str); 16] = [
    ("choose another with --out", "choose another `out`"),
    ("choose another directory with --out", "choose another `out`"),
    ("name a new directory with --out", "name a new directory"),
    ("replace it with --force", "replace it with force=True"),
    ("--force replaces only", "force=True replaces only"),
    ("--other-rows compares them", "other_rows=True compares them"),
    ("--compare `", "compare: `"),
    ("leave --bins out", "leave bins out"),
    ("with --data-dir", "with `data_dir`"),
    ("(data.delimiter, or --delimiter)", "(data.delimiter)"),
    ("--missing-values declares cells that stand for missing values", "a missing value is None or NaN"),
    (
        "build with `cargo build --release --features ",
        "build the wheel with `maturin build --release --features fedstein/",
    ),
    ("and predict with --client", "and `fedstein predict --client` predicts with them"),
    (
        "the `Artifacts` of a run keeps its directory until it is dropped",
        "another run of it has the directory until it ends",
    ),
    ("go on with `fedstein train", "go on with `fedstein.resume`, or with `fedstein train"),
    ("goes on with it", "or `fedstein.resume` goes on with it"),
];

/// The text with arguments in the place of options of the command.
pub fn with_arguments(text: &str) -> String {
    ARGUMENTS.iter().fold(text.to_owned(), |text, (option, argument)| text.replace(option, argument))
}

/// The exception of a run's error.
pub fn of_run(error: RunError) -> PyErr {
    let text = with_arguments(&without_functions(&error.to_string()));
    match error {
        RunError::Data(_) => DataError::new_err(text),
        error if error.exit_code() == 2 => ConfigError::new_err(text),
        _ => RunFailed::new_err(text),
    }
}

/// The exception of a config.
pub fn of_config(error: schema::ConfigError) -> PyErr {
    match error {
        schema::ConfigError::Internal(_) => RunFailed::new_err(error.to_string()),
        error => ConfigError::new_err(with_arguments(&error.to_string())),
    }
}

/// The exception of predictions that cannot be scored.
pub fn of_metric(error: MetricError) -> PyErr {
    DataError::new_err(error.to_string())
}

/// The exception of a report.
pub fn of_report(error: ReportError) -> PyErr {
    match error {
        ReportError::Metric(error) => of_metric(error),
        ReportError::Input { .. } => DataError::new_err(error.to_string()),
        error => RunFailed::new_err(error.to_string()),
    }
}
