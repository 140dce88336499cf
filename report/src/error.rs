//! The error of this crate.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;
use crate::metrics::MetricError;

/// An error in writing a report or in reading a predictions file.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file or directory that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An invalid predictions file.
    #[error("{}, line {line}{}: {problem}", path.display(), column.as_ref().map_or(String::new(), |c| format!(", column {c}")))]
    Input {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1; the header is line 1.
        line: usize,
        /// The name of the column, if the error is in one.
        column: Option<String>,
        /// The problem and a remedy.
        problem: String,
    },
    /// Predictions that cannot be scored.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// A report that cannot be written as JSON.
    #[error("report.json: {0}")]
    Json(#[from] serde_json::Error),
}
