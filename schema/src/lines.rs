//! The places of keys, for messages: the lines of a file's keys, and those that a message names.

use std::collections::BTreeMap;

use toml::de::{DeTable, Error};
use toml::{Table, Value};

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
const LINE: &str = ", line ";

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

/// A key that the file or an override gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// `section.key`
    pub path: String,
    /// Its value, as the key accepts it.
    pub value: Value,
    /// File and line, or the option.
    pub at: String,
}

/// Where the keys stand that come first in a message, two at most; `None` where it names none of them. Of equal keys the first
/// counts. A message names a key as `section.key`, in backquotes or brackets or with its value at the start, or by its value,
/// such as "algorithm kind `dsvgd`".
pub fn places<'a>(message: &str, given: impl IntoIterator<Item = &'a Given>) -> Option<String> {
    let named = given.into_iter().filter_map(|given| Some((given.position(message)?, given.at.as_str())));
    let mut named: Vec<(usize, &str)> = named.collect();
    named.sort_by_key(|(position, _)| *position);
    let (position, first) = *named.first()?;
    Some(match named.iter().find(|(other, at)| *other != position && *at != first) {
        None => first.to_owned(),
        Some((_, second)) => match (first.split_once(LINE), second.split_once(LINE)) {
            (Some((file, line)), Some((other, further))) if file == other => {
                format!("{file}, lines {line} and {further}")
            }
            _ => format!("{first} and {second}"),
        },
    })
}

impl Given {
    /// Where a message names the key.
    fn position(&self, message: &str) -> Option<usize> {
        let Self { path, value, .. } = self;
        let by_value = path.split_once('.').zip(value.as_str());
        let forms = [
            Some(format!("`{path}`")),
            Some(format!("({path})")),
            by_value.map(|((section, name), word)| format!("{section} {name} `{word}`")),
        ];
        let at_start = message.starts_with(&format!("{path} = ")).then_some(0);
        forms.into_iter().flatten().filter_map(|form| message.find(&form)).chain(at_start).min()
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
