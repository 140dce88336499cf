//! The lines of a file's keys, for messages.

use std::collections::BTreeMap;

use toml::Table;
use toml::de::{DeTable, Error};

use super::error::ConfigError;
use super::given::Source;
use super::key::join;

/// The text of a file as a table.
///
/// # Errors
/// [`ConfigError::Syntax`] where it is not TOML.
pub fn parse(source: Source<'_>) -> Result<Table, ConfigError> {
    source.text.parse().map_err(|error| syntax(source, &error))
}

fn syntax(source: Source<'_>, error: &Error) -> ConfigError {
    let span = error.span().unwrap_or_default();
    let start = span.start.min(source.text.len());
    let before = source.text.get(..start).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = match (error.message(), source.text.get(span)) {
        ("duplicate key", Some(name)) if !name.is_empty() => format!("`{name}` is there already, on a line above"),
        // TOML's whole numbers have 64 bits, of which one is the sign.
        (message, _) if message.starts_with("invalid type: integer `") || message == "u64 value was too large" => {
            format!("a whole number is at most {}", i64::MAX)
        }
        (message, _) => message.replace('\n', "; "),
    };
    ConfigError::Syntax { at: format!("{}{LINE}{}", source.name, line_of(source.text, start)), column, message }
}

/// The line, from 1, of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Between a file and the number of a line.
pub(super) const LINE: &str = ", line ";

/// The line numbers of a file's keys.
#[derive(Clone, Debug)]
pub struct Lines {
    file: String,
    lines: BTreeMap<String, usize>,
}

impl Lines {
    /// The lines of all keys, in tables of any depth; none where the text is not TOML.
    pub fn new(source: Source<'_>) -> Self {
        let mut lines = BTreeMap::new();
        if let Ok(table) = DeTable::parse(source.text) {
            add(&mut lines, source.text, "", table.get_ref());
        }
        Self { file: source.name.to_owned(), lines }
    }

    /// File and line of a key, given with the names of the tables that it is in, such as `model.hidden`; the file alone
    /// where it has no such key.
    pub fn at(&self, path: &str) -> String {
        match self.lines.get(path) {
            Some(line) => format!("{}{LINE}{line}", self.file),
            None => self.file.clone(),
        }
    }
}

fn add(lines: &mut BTreeMap<String, usize>, text: &str, above: &str, table: &DeTable<'_>) {
    for (name, value) in table {
        let path = join(above, name.get_ref());
        if let Some(below) = value.get_ref().as_table() {
            add(lines, text, &path, below);
        }
        lines.insert(path, line_of(text, name.span().start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_depth_have_their_line() {
        let text = "a = 1\n\n[b.c]\nd = 2\ne.f = 3\n";
        let lines = Lines::new(Source { name: "x.toml", text });
        assert_eq!(lines.at("a"), "x.toml, line 1");
        assert_eq!(lines.at("b.c.d"), "x.toml, line 4");
        assert_eq!(lines.at("b.c.e.f"), "x.toml, line 5");
        assert_eq!(lines.at("b.c"), "x.toml, line 3");
        assert_eq!(lines.at("nothing"), "x.toml");
        let wrong = parse(Source { name: "x.toml", text: "a = 1\nb = = 2\n" }).unwrap_err().to_string();
        assert!(wrong.starts_with("x.toml, line 2, column "), "{wrong}");
    }
}
