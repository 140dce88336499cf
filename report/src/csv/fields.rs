//! The fields of the lines of a predictions file, and what is said of a line that is refused.

use std::path::Path;

use crate::error::ReportError;
use crate::files::{line_of, quoted};
use crate::metrics::Clusters;

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

/// The name of the last column of a file whose rows have clusters.
pub(super) const CLUSTER: &str = "cluster";

/// The names of the rows' clusters, where a file has that column.
pub(super) struct ClusterColumn<'t>(Option<Vec<&'t str>>);

impl<'t> ClusterColumn<'t> {
    /// Takes the column off the header, if it is there.
    pub fn new(header: &mut Vec<&str>) -> Self {
        Self(header.pop_if(|name| name.eq_ignore_ascii_case(CLUSTER)).map(|_| Vec::new()))
    }

    /// Takes the cell of the column off a line's fields.
    ///
    /// # Errors
    /// A sentence where it is missing.
    pub fn take(&mut self, fields: &mut Vec<&'t str>) -> Result<(), String> {
        let Some(names) = &mut self.0 else { return Ok(()) };
        let name = fields.pop().filter(|name| !name.is_empty());
        names.push(name.ok_or("the cluster of the row is missing; each row has one, such as a patient's number")?);
        Ok(())
    }

    /// The clusters; `None` without the column.
    pub fn clusters(self) -> Option<Clusters> {
        self.0.map(Clusters::new)
    }
}

/// A field without spaces around it and without quotes.
pub(super) fn unquote(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|f| f.strip_suffix('"')).unwrap_or(field)
}
