//! Reads one source of values (a file or the command line) into keys with checked values.

use toml::{Table, Value};

use super::error::ConfigError;
use super::given::{Overrides, Source};
use super::key::{Key, Schema, Section, join, split};
use super::lines::{Given, Lines, parse};
use super::suggest::{by_kind, did_you_mean, list, nearest, shorten};
use super::value::{Accepts, not_one_of};

/// A key and the value that one source gives it.
#[derive(Debug, Clone)]
pub(super) struct Entry<'s> {
    pub section: &'s Section,
    /// Its name within its section.
    pub name: &'static str,
    /// As it was found; `None` for the section's `kind`.
    pub key: Option<&'static Key>,
    /// In its final form: the key accepts it.
    pub value: Value,
    /// As it was written.
    given: Value,
    /// File and line, or the option.
    at: String,
}

impl Entry<'_> {
    /// `section.key`.
    pub fn path(&self) -> String {
        self.section.path(self.name)
    }

    /// The key with its place, for messages.
    pub fn as_given(&self) -> Given {
        Given { path: self.path(), value: self.value.clone(), at: self.at.clone() }
    }

    /// Its value, checked by the key as the section's chosen kind describes it.
    ///
    /// # Errors
    /// The key does not accept the value.
    pub fn checked_for(&self, key: &Key) -> Result<Value, ConfigError> {
        key.accepts
            .check(&self.given)
            .map_err(|allowed| not_accepted(self.at.clone(), &self.path(), &self.given, allowed))
    }

    /// Whether this kind of its section uses it.
    pub fn is_used_by(&self, kind: &str) -> bool {
        self.key.is_none() || self.section.keys_of(kind).any(|key| key.name == self.name)
    }
}

/// The values of one source. Each is valid by itself.
#[derive(Debug)]
pub(super) struct Layer<'s> {
    schema: &'s Schema,
    entries: Vec<Entry<'s>>,
}

impl<'s> Layer<'s> {
    /// Reads the keys of a config file; `typed` are the values of the command line, which may choose another kind.
    ///
    /// # Errors
    /// The text is not TOML, a section or key is unknown, or its key does not accept a value.
    pub fn from_file(schema: &'s Schema, source: Source<'_>, typed: &Layer<'_>) -> Result<Self, ConfigError> {
        let table = parse(source)?;
        let lines = Lines::new(source);
        let mut layer = Self { schema, entries: Vec::new() };
        let written = |section: &str| {
            let kind = table.get(section).and_then(|keys| keys.get("kind")).and_then(Value::as_str);
            kind.or_else(|| typed.word(section)).map(ToString::to_string)
        };
        for (name, value) in &table {
            match value {
                Value::Table(keys) if layer.is_section(name) => {
                    let kind = written(name);
                    for (key, value) in keys {
                        let path = join(name, key);
                        layer.add(&path, kind.as_deref(), value, || lines.at(&path))?;
                    }
                }
                // A quoted "a.b" is one key with a dot in it, not b of section a.
                _ if name.contains('.') => return Err(layer.unknown_key(name, lines.at(name))),
                Value::Table(_) if layer.find(name, None).is_none() => {
                    return Err(layer.unknown_section(name, lines.at(name)));
                }
                _ => layer.add(name, None, value, || lines.at(name))?,
            }
        }
        Ok(layer)
    }

    /// Reads the keys given on the command line.
    ///
    /// # Errors
    /// An override has no `=`, its section or key is unknown, or its key does not accept the value.
    pub fn from_overrides(schema: &'s Schema, overrides: &Overrides) -> Result<Self, ConfigError> {
        let mut layer = Self { schema, entries: Vec::new() };
        for given in &overrides.set {
            let Some((path, text)) = given.split_once('=') else {
                return Err(ConfigError::NotAnAssignment { given: shorten(given) });
            };
            let path = path.trim();
            let at = || "--set".to_string();
            match layer.typed_value(path, text) {
                Value::Table(keys) if layer.is_section(path) => {
                    for (key, value) in &keys {
                        layer.add(&join(path, key), None, value, at)?;
                    }
                }
                Value::String(text) if layer.is_section(path) && text.trim_start().starts_with('{') => {
                    let allowed = "keys with values in TOML, such as { kind = \"…\" }, with 0.5 for .5".to_string();
                    return Err(not_accepted(at(), path, &Value::String(text), allowed));
                }
                Value::Table(_) if !path.contains('.') && layer.find(path, None).is_none() => {
                    return Err(layer.unknown_section(path, at()));
                }
                value => layer.add(path, None, &value, at)?,
            }
        }
        if let Some(seed) = overrides.seed {
            // A seed beyond TOML's integers is out of the key's range in any case.
            let value = i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer);
            layer.add("seed", None, &value, || "--seed".to_string())?;
        }
        if let Some(backend) = &overrides.backend {
            layer.add("backend", None, &Value::String(backend.clone()), || "--backend".to_string())?;
        }
        Ok(layer)
    }

    /// The value of a key; the last one where it was given more than once.
    pub fn get(&self, section: &str, name: &str) -> Option<&Entry<'s>> {
        self.entries.iter().rfind(|entry| entry.section.name == section && entry.name == name)
    }

    /// The kind that this source names for a section.
    pub fn word(&self, section: &str) -> Option<&str> {
        self.get(section, "kind")?.value.as_str()
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry<'s>> {
        self.entries.iter()
    }

    /// Takes out the entries that match and returns their paths.
    pub fn remove(&mut self, matches: impl Fn(&Entry<'s>) -> bool) -> Vec<String> {
        self.entries.extract_if(.., |entry| matches(entry)).map(|entry| entry.path()).collect()
    }

    /// Checks that the section's chosen kind uses every key of the section.
    ///
    /// # Errors
    /// [`ConfigError::NotUsed`] with the first key that the kind does not use.
    pub fn refuse_unused(&self, section: &Section, kind: &str) -> Result<(), ConfigError> {
        let unused = self.entries.iter().find(|entry| entry.section.name == section.name && !entry.is_used_by(kind));
        match unused {
            None => Ok(()),
            Some(entry) => Err(ConfigError::NotUsed {
                at: entry.at.clone(),
                path: entry.path(),
                section: section.name.into(),
                kind: kind.into(),
                kinds: list(&section.users(entry.name)),
            }),
        }
    }

    /// Looks a key up, checks its value and adds both. Without a `kind` it is enough that some kind's key accepts the value.
    fn add(
        &mut self,
        path: &str,
        kind: Option<&str>,
        value: &Value,
        at: impl Fn() -> String,
    ) -> Result<(), ConfigError> {
        let Some((section, found)) = self.find(path, kind) else { return Err(self.unknown_key(path, at())) };
        let (name, key, checked) = match found {
            Found::Kind => ("kind", None, one_of_the_kinds(section, value)),
            Found::Key(key) if kind.is_some() => (key.name, Some(key), key.accepts.check(value)),
            Found::Key(key) => (key.name, Some(key), accepted_by_a_kind(section, key.name, value)),
        };
        match checked {
            Ok(accepted) => {
                self.entries.push(Entry { section, name, key, value: accepted, given: value.clone(), at: at() });
                Ok(())
            }
            Err(allowed) => Err(not_accepted(at(), path, value, allowed)),
        }
    }

    /// A key by its path, as `kind` describes it.
    fn find(&self, path: &str, kind: Option<&str>) -> Option<(&'s Section, Found)> {
        let (section, name) = split(path);
        let section = self.schema.section(section)?;
        match section.default_kind {
            Some(_) if name == "kind" => Some((section, Found::Kind)),
            default => {
                let key = section.key(kind.or(default).unwrap_or_default(), name)?;
                Some((section, Found::Key(key)))
            }
        }
    }

    fn is_section(&self, name: &str) -> bool {
        !name.is_empty() && self.schema.section(name).is_some()
    }

    /// The value of `--set path=text`: parsed as TOML where possible, unless the key takes text; else a number, where the key
    /// takes one and TOML alone does not read it; else the text itself.
    fn typed_value(&self, path: &str, text: &str) -> Value {
        let parsed = format!("value = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
        let accepts = match self.find(path, None) {
            Some((_, Found::Key(key))) => Some(key.accepts),
            _ => None,
        };
        let takes_text = accepts.is_some_and(Accepts::takes_text);
        let value = parsed.and_then(|mut table| table.remove("value"));
        if let Some(value) = value.filter(|value| value.is_str() || !takes_text) {
            return value;
        }
        let read = match accepts {
            Some(accepts) if accepts.takes_real() => plain_number(text).map(Value::Float),
            Some(Accepts::FloatList { .. }) => plain_numbers(text).map(Value::Array),
            _ => None,
        };
        read.unwrap_or_else(|| Value::String(text.to_string()))
    }

    fn unknown_section(&self, section: &str, at: String) -> ConfigError {
        let names = self.schema.sections.iter().map(|section| section.name);
        let sections: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let hint = nearest(section, sections.iter().copied());
        ConfigError::UnknownSection {
            at,
            section: shorten(section),
            hint: hint.map_or_else(String::new, |name| format!("; did you mean [{name}]?")),
            known: list(&sections),
        }
    }

    fn unknown_key(&self, path: &str, at: String) -> ConfigError {
        if self.is_section(path) {
            let first = self.schema.section(path).and_then(|section| section.key_names().first().copied());
            let example = format!("{} = …", join(path, first.unwrap_or("kind")));
            return ConfigError::SectionAsKey { at, section: path.to_string(), example };
        }
        let (section_name, name) = split(path);
        let Some(section) = self.schema.section(section_name) else { return self.unknown_section(section_name, at) };
        let siblings = section.key_names();
        let everywhere = || {
            let sections = self.schema.sections.iter();
            sections.flat_map(|section| section.key_names().into_iter().map(move |name| (section, name)))
        };
        let elsewhere = everywhere().find(|(_, other)| *other == name);
        let hint = match (nearest(name, siblings.iter().copied()), elsewhere) {
            (_, Some((other, _))) if other.name.is_empty() => {
                format!("; `{name}` stands at the top of the file, above the first section")
            }
            (Some(sibling), None) => format!("; did you mean `{}`?", section.path(sibling)),
            (_, Some((other, name))) => format!("; did you mean `{}`?", other.path(name)),
            (None, None) => {
                let paths: Vec<String> = everywhere().map(|(section, name)| section.path(name)).collect();
                did_you_mean(path, paths.iter().map(String::as_str))
            }
        };
        let place =
            if section_name.is_empty() { "the top of the file".to_string() } else { format!("[{section_name}]") };
        ConfigError::UnknownKey { at, path: shorten(path), hint, known: format!("{place} takes {}", list(&siblings)) }
    }
}

/// The key that a path names.
enum Found {
    /// The section's `kind`.
    Kind,
    Key(&'static Key),
}

/// A finite number such as `.2` or `2.`, which TOML writes `0.2` and `2.0`.
fn plain_number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

/// A list of such numbers.
fn plain_numbers(text: &str) -> Option<Vec<Value>> {
    let numbers = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    numbers.split(',').map(|number| plain_number(number).map(Value::Float)).collect()
}

fn not_accepted(at: String, path: &str, value: &Value, allowed: String) -> ConfigError {
    ConfigError::Value { at, path: path.to_string(), given: shorten(&value.to_string()), allowed }
}

/// The value as the first kind takes it whose key of this name accepts it; otherwise what each kind allows.
fn accepted_by_a_kind(section: &Section, name: &str, value: &Value) -> Result<Value, String> {
    let mut refusals = Vec::new();
    for (kind, key) in section.versions(name) {
        match key.accepts.check(value) {
            Ok(value) => return Ok(value),
            Err(allowed) => refusals.push((kind, allowed)),
        }
    }
    Err(by_kind(refusals.into_iter(), "; "))
}

/// Returns `value` if it names a kind of the section; otherwise the allowed values.
fn one_of_the_kinds(section: &Section, value: &Value) -> Result<Value, String> {
    let names = section.kind_names();
    match value.as_str() {
        Some(word) if names.contains(&word) => Ok(value.clone()),
        word => Err(not_one_of(&names, word)),
    }
}
