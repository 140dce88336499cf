//! The fields of the lines of a predictions file, and what is said of a line that is refused.

use std::path::Path;

use crate::error::ReportError;
use crate::files::{line_of, quoted};

/// The error about a line of a predictions file.
pub(super) fn input(path: &Path, line: usize, column: Option<&str>, problem: String) -> ReportError {
    ReportError::Input { path: path.to_path_buf(), line, column: column.map(quoted), problem }
}

/// The text of a file, or an error with the first line that is not UTF-8.
pub(super) fn utf8<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, ReportError> {
    std::str::from_utf8(bytes).map_err(|error| ReportError::Input {
        path: path.to_path_buf(),
        line: line_of(bytes, error.valid_up_to()),
        column: None,
        problem: "not UTF-8 text; a predictions file is a CSV".into(),
    })
}

/// No field of a predictions file contains a comma, so that a line can be cut without a CSV state
/// machine and its number is exact.
pub(super) fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(unquote).collect()
}

/// A field without spaces around it and without quotes.
pub(super) fn unquote(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|f| f.strip_suffix('"')).unwrap_or(field)
}
