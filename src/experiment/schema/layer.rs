//! One source of values in (a file, or the command line), its keys with checked values out.

use std::collections::BTreeMap;

use toml::de::DeTable;
use toml::{Table, Value};

use super::error::ConfigError;
use super::keys::{KEYS, Key, SECTIONS};
use super::suggest::{list, nearest, shorten};
use super::{Overrides, Source, join, split};

/// A key with the value that one source gives it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: &'static Key,
    /// In its final form: it satisfies `key.accepts`.
    pub value: Value,
    /// File and line, or the option.
    at: String,
}

/// The values of one source, each right on its own.
#[derive(Debug)]
pub(super) struct Layer(Vec<Entry>);

impl Layer {
    /// The keys of a config file.
    pub fn from_file(source: Source<'_>) -> Result<Self, ConfigError> {
        let table: Table = source.text.parse().map_err(|error| syntax(source, &error))?;
        let lines = Lines::new(source);
        let mut entries = Vec::new();
        for (name, value) in &table {
            match value {
                Value::Table(keys) if is_section(name) => {
                    for (key, value) in keys {
                        let path = join(name, key);
                        entries.push(entry(&path, value, || lines.at(&path))?);
                    }
                }
                // A quoted "a.b" is one key with a dot in it, not b of section a.
                _ if name.contains('.') => return Err(unknown_key(name, lines.at(name))),
                Value::Table(_) if find(name).is_none() => return Err(unknown_section(name, lines.at(name))),
                _ => entries.push(entry(name, value, || lines.at(name))?),
            }
        }
        Ok(Self(entries))
    }

    /// The keys given on the command line.
    pub fn from_overrides(overrides: &Overrides) -> Result<Self, ConfigError> {
        let mut entries = Vec::new();
        for given in &overrides.set {
            let Some((path, text)) = given.split_once('=') else {
                return Err(ConfigError::NotAnAssignment { given: shorten(given) });
            };
            let path = path.trim();
            entries.push(entry(path, &typed_value(path, text), || "--set".to_string())?);
        }
        if let Some(seed) = overrides.seed {
            // A seed beyond TOML's integers is out of the key's range in any case.
            let value = i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer);
            entries.push(entry("seed", &value, || "--seed".to_string())?);
        }
        if let Some(backend) = &overrides.backend {
            entries.push(entry("backend", &Value::String(backend.clone()), || "--backend".to_string())?);
        }
        Ok(Self(entries))
    }

    /// The value of a key; the last one where it was given more than once.
    pub fn get(&self, path: &str) -> Option<&Entry> {
        self.entries().filter(|entry| entry.key.path == path).last()
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// Takes out the entries that match and returns their paths.
    pub fn remove(&mut self, matches: impl Fn(&Entry) -> bool) -> Vec<&'static str> {
        self.0.extract_if(.., |entry| matches(entry)).map(|entry| entry.key.path).collect()
    }

    /// Refuses a key that the section's chosen kind does not use.
    pub fn refuse_unused(&self, section: &str, kind: &str) -> Result<(), ConfigError> {
        match self.entries().find(|entry| entry.key.section() == section && !entry.key.used_by(kind)) {
            None => Ok(()),
            Some(Entry { key, at, .. }) => Err(ConfigError::NotUsed {
                at: at.clone(),
                path: key.path.to_string(),
                section: section.to_string(),
                kind: kind.to_string(),
                kinds: list(key.kinds),
            }),
        }
    }
}

/// Looks a key up and checks its value.
fn entry(path: &str, value: &Value, at: impl Fn() -> String) -> Result<Entry, ConfigError> {
    let Some(key) = find(path) else { return Err(unknown_key(path, at())) };
    match key.accepts.check(value) {
        Ok(value) => Ok(Entry { key, value, at: at() }),
        Err(allowed) => {
            Err(ConfigError::Value { at: at(), path: path.to_string(), given: shorten(&value.to_string()), allowed })
        }
    }
}

fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

fn is_section(name: &str) -> bool {
    !name.is_empty() && SECTIONS.iter().any(|(section, _)| *section == name)
}

/// What `--set path=text` means: TOML where it is TOML and the key is no text, else the text itself.
fn typed_value(path: &str, text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
    match parsed.and_then(|mut table| table.remove("value")) {
        Some(value) if value.is_str() || !find(path).is_some_and(|key| key.accepts.takes_text()) => value,
        _ => Value::String(text.to_string()),
    }
}

fn unknown_section(section: &str, at: String) -> ConfigError {
    let sections: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
    let hint = nearest(section, sections.iter().copied());
    ConfigError::UnknownSection {
        at,
        section: shorten(section),
        hint: hint.map_or_else(String::new, |name| format!("; did you mean [{name}]?")),
        known: list(&sections),
    }
}

fn unknown_key(path: &str, at: String) -> ConfigError {
    let (section, name) = split(path);
    if is_section(path) {
        let first = KEYS.iter().find(|key| key.section() == path).map_or("", |key| key.path);
        return ConfigError::SectionAsKey { at, section: path.to_string(), example: format!("{first} = …") };
    }
    if !section.is_empty() && !is_section(section) {
        return unknown_section(section, at);
    }
    let siblings = || KEYS.iter().filter(|key| key.section() == section).map(Key::name);
    let elsewhere = KEYS.iter().find(|key| key.name() == name);
    let hint = match (nearest(name, siblings()), elsewhere) {
        (_, Some(key)) if key.section().is_empty() => {
            format!("; `{name}` stands at the top of the file, above the first section")
        }
        (Some(sibling), None) => format!("; did you mean `{}`?", join(section, sibling)),
        (_, Some(key)) => format!("; did you mean `{}`?", key.path),
        (None, None) => nearest(path, KEYS.iter().map(|key| key.path))
            .map_or_else(String::new, |path| format!("; did you mean `{path}`?")),
    };
    let names: Vec<&str> = siblings().collect();
    let place = if section.is_empty() { "the top of the file".to_string() } else { format!("[{section}]") };
    ConfigError::UnknownKey { at, path: shorten(path), hint, known: format!("{place} takes {}", list(&names)) }
}

fn syntax(source: Source<'_>, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start).min(source.text.len());
    let before = source.text.get(..start).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ConfigError::Syntax {
        at: format!("{}, line {}", source.name, line_of(source.text, start)),
        column,
        message: error.message().replace('\n', "; "),
    }
}

/// The line, from 1, of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// Where a file's keys stand.
struct Lines<'a> {
    file: &'a str,
    lines: BTreeMap<String, usize>,
}

impl<'a> Lines<'a> {
    fn new(source: Source<'a>) -> Self {
        let mut lines = BTreeMap::new();
        // The text has parsed already, so the empty map of the error case is never seen.
        if let Ok(table) = DeTable::parse(source.text) {
            for (name, value) in table.get_ref() {
                lines.insert(name.get_ref().to_string(), line_of(source.text, name.span().start));
                for (key, _) in value.get_ref().as_table().into_iter().flatten() {
                    let path = join(name.get_ref(), key.get_ref());
                    lines.insert(path, line_of(source.text, key.span().start));
                }
            }
        }
        Self { file: source.name, lines }
    }

    fn at(&self, path: &str) -> String {
        match self.lines.get(path) {
            Some(line) => format!("{}, line {line}", self.file),
            None => self.file.to_string(),
        }
    }
}
