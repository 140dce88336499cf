//! The header of a user's table.

use serde::{Deserialize, Serialize};

/// Whether the first line holds the column names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// The first line is a header if target or client are given by name, or if the first line's features contain no
    /// number and at least one name (marks for a missing value do not count: `NA`, `?`, `null`, `none`, `-`, empty).
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is data.
    No,
}
