//! Why a report cannot be made.

use std::path::PathBuf;

use thiserror::Error;

use crate::files::FileError;
use crate::metrics::MetricError;

/// Why a report could not be made or a predictions file cannot be read.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A file or directory that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A predictions file that is not what it should be.
    #[error("{}, line {line}{}: {problem}", path.display(), column.as_ref().map_or(String::new(), |c| format!(", column {c}")))]
    Input {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1; the header is line 1.
        line: usize,
        /// Name of the column, where one is to blame.
        column: Option<String>,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// Predictions that cannot be scored.
    #[error(transparent)]
    Metric(#[from] MetricError),
    /// A report that cannot be written as JSON.
    #[error("report.json: {0}")]
    Json(#[from] serde_json::Error),
}
