//! TOML text and command-line overrides in, a table with every key of the experiment written out.
//!
//! The keys are a table ([`KEYS`]); what may be written, in which kinds, with which default, follows from it.
//! Precedence, lowest first: defaults, preset, file, `--set`, `--seed` and `--backend`.

mod error;
mod keys;
mod layer;
mod reference;
mod suggest;
mod value;

use toml::{Table, Value};

pub use error::ConfigError;
pub use keys::{BACKENDS, KEYS, Key, SECTIONS};
pub use reference::reference;
pub use suggest::{list, nearest};
pub use value::{Accepts, Interval, Literal};

use layer::{Entry, Layer};

impl Key {
    /// Its section; `""` is the top of the file.
    pub fn section(&self) -> &'static str {
        split(self.path).0
    }

    /// Its name within its section.
    pub fn name(&self) -> &'static str {
        split(self.path).1
    }

    /// Whether the kind `kind` of its section uses it.
    pub fn used_by(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Its default under a kind of its section and a preset.
    pub fn default_for(&self, kind: &str, preset: &str) -> Option<Value> {
        let of_kind =
            |values: &[(&str, Literal)]| values.iter().find(|(name, _)| *name == kind).map(|(_, value)| *value);
        let switched = match preset {
            "paper" => self.paper,
            "reference" => of_kind(self.reference_by_kind).or(self.reference),
            _ => None,
        };
        switched.or_else(|| of_kind(self.by_kind)).or(self.default).map(Literal::to_value)
    }
}

/// A config file: the name that messages give it, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// As messages name it.
    pub name: &'a str,
    /// TOML.
    pub text: &'a str,
}

/// What the command line changes in a config.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `key=value` of each `--set`, in order; the last of equal keys wins.
    pub set: Vec<String>,
    /// `--seed`
    pub seed: Option<u64>,
    /// `--backend`
    pub backend: Option<String>,
}

/// A config with nothing left implicit.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Top-level keys, then sections, in the order of [`KEYS`]; each key that the chosen kinds use, and no other.
    pub table: Table,
    /// What the user should know about how it came to be.
    pub notes: Vec<String>,
}

/// Merges a config file and overrides over the defaults, checking every key on the way.
///
/// # Errors
/// The first key that is unknown, not used by the chosen kind, of the wrong type, out of range or missing.
pub fn resolve(source: Source<'_>, overrides: &Overrides) -> Result<Resolved, ConfigError> {
    let mut file = Layer::from_file(source)?;
    let typed = Layer::from_overrides(overrides)?;
    let mut notes = Vec::new();
    drop_keys_of_former_kinds(&mut file, &typed, &mut notes);

    let given = |path: &str| typed.get(path).or_else(|| file.get(path));
    let word = |path: &str| match given(path) {
        Some(entry) => entry.value.as_str().unwrap_or_default().to_string(),
        None => default_word(path),
    };
    let preset = word("preset");
    note_shadowed_preset(&file, &typed, &preset, &mut notes);

    let mut table = Table::new();
    for (section, _) in SECTIONS {
        let kind = word(&join(section, "kind"));
        for layer in [&file, &typed] {
            layer.refuse_unused(section, &kind)?;
        }
        let mut keys = Table::new();
        for key in KEYS.iter().filter(|key| key.section() == *section && key.used_by(&kind)) {
            let value = match given(key.path) {
                Some(entry) => entry.value.clone(),
                None => key.default_for(&kind, &preset).ok_or_else(|| ConfigError::Missing {
                    at: source.name.to_string(),
                    path: key.path.to_string(),
                    section: (*section).to_string(),
                    kind: kind.clone(),
                    allowed: key.accepts.describe(),
                })?,
            };
            keys.insert(key.name().to_string(), value);
        }
        if section.is_empty() {
            table.extend(keys);
        } else {
            table.insert((*section).to_string(), Value::Table(keys));
        }
    }
    Ok(Resolved { table, notes })
}

impl Resolved {
    /// The config as a file that resolves to itself.
    pub fn to_toml(&self) -> String {
        let mut text = String::from("# The experiment with every default written out.\n");
        for (key, value) in self.table.iter().filter(|(_, value)| !value.is_table()) {
            text += &format!("{key} = {value}\n");
        }
        for (section, keys) in &self.table {
            let Value::Table(keys) = keys else { continue };
            text += &format!("\n[{section}]\n");
            for (key, value) in keys {
                text += &format!("{key} = {value}\n");
            }
        }
        text
    }
}

/// Checks the word after a `--backend` that comes without a config.
///
/// # Errors
/// The word is no backend; the message lists those that there are.
pub fn check_backend(word: &str) -> Result<(), ConfigError> {
    let overrides = Overrides { backend: Some(word.to_string()), ..Overrides::default() };
    Layer::from_overrides(&overrides).map(|_| ())
}

/// When an override changes a section's kind, keys that the file wrote for its own kind have lost their meaning.
fn drop_keys_of_former_kinds(file: &mut Layer, typed: &Layer, notes: &mut Vec<String>) {
    for (section, _) in SECTIONS {
        let path = join(section, "kind");
        let Some(new) = typed.get(&path).and_then(|entry| entry.value.as_str()) else { continue };
        let old = match file.get(&path) {
            Some(entry) => entry.value.as_str().unwrap_or_default().to_string(),
            None => default_word(&path),
        };
        let dropped =
            file.remove(|entry| entry.key.section() == *section && entry.key.used_by(&old) && !entry.key.used_by(new));
        if !dropped.is_empty() {
            notes.push(format!("{path} is now `{new}`, which does not use the file's {}", list(&dropped)));
        }
    }
}

/// A preset given on the command line changes defaults only: says so where the file's own words stand against it.
fn note_shadowed_preset(file: &Layer, typed: &Layer, preset: &str, notes: &mut Vec<String>) {
    if typed.get("preset").is_none() {
        return;
    }
    let shadowed: Vec<&str> = file
        .entries()
        .filter(|Entry { key, value, .. }| {
            let differs = key.paper.is_some() || key.reference.is_some();
            differs && typed.get(key.path).is_none() && key.default_for("", preset).as_ref() != Some(value)
        })
        .map(|entry| entry.key.path)
        .collect();
    if !shadowed.is_empty() {
        notes.push(format!("preset `{preset}` leaves {} as the file has it", list(&shadowed)));
    }
}

/// The default of a key that is a word, `""` where it has none.
fn default_word(path: &str) -> String {
    let default = KEYS.iter().find(|key| key.path == path).and_then(|key| key.default);
    match default {
        Some(Literal::Text(word)) => word.to_string(),
        _ => String::new(),
    }
}

/// `section.key` into its halves; the section of a top-level key is `""`.
fn split(path: &str) -> (&str, &str) {
    path.split_once('.').unwrap_or(("", path))
}

/// The path of a section's key.
fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_string() } else { format!("{section}.{name}") }
}

#[cfg(test)]
mod tests;
