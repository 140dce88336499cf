//! The header of a user's table.

fedstein_schema::words! {
    /// Whether the first line holds the column names.
    pub enum Header {
        /// The first line is a header if target or client are given by name, or if the first line's features contain no
        /// number and at least one name (marks for a missing value do not count: `NA`, `?`, `null`, `none`, `-`,
        /// empty), or if its first cell is blank and the others count from 0, at least to 2, as pandas writes.
        Auto = "auto",
        /// The first line is a header.
        Yes = "yes",
        /// The first line is data.
        No = "no",
    }
}
