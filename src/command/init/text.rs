//! Texts of comments and messages: cells and values as a line of a config can have them.

/// The number of distinct values that a comment lists.
pub const LISTED: usize = 6;

/// The first values of a column with their numbers of rows.
pub fn listed<'a>(values: impl ExactSizeIterator<Item = (&'a String, &'a usize)>) -> String {
    let count = values.len();
    let first: Vec<String> = values
        .take(LISTED)
        .map(|(value, rows)| format!("{} ({rows} row{})", one_line(value), if *rows == 1 { "" } else { "s" }))
        .collect();
    let more = if count > LISTED { ", …" } else { "" };
    let plural = if count == 1 { "value" } else { "values" };
    format!("{count} {plural}: {}{more}", first.join(", "))
}

/// A text on one line, with control characters escaped, cut after 40 characters.
pub fn one_line(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    let more = if text.chars().nth(40).is_some() { "…" } else { "" };
    format!("{}{more}", shown.escape_debug())
}
