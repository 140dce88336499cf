//! Whether a user's table names its columns.

use serde::{Deserialize, Serialize};

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// A header where target or client are given by name, or where the first line's features have no number among
    /// them and at least one name (marks for a missing value do not count: `NA`, `?`, `null`, `none`, `-`, empty).
    Auto,
    /// The first line is a header.
    Yes,
    /// The first line is data.
    No,
}
