//! Merges a file and overrides over the defaults.

use toml::{Table, Value};

use super::error::ConfigError;
use super::given::{Overrides, Source};
use super::key::{Key, Schema, Section};
use super::layer::{Entry, Layer};
use super::lines::{Given, places};
use super::suggest::list;

/// A config in which every key is written out.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Top-level keys, then sections, in the order of the schema: exactly the keys that the chosen kinds use.
    pub table: Table,
    /// The keys that do not have their default, as `section.key`.
    pub changed: Vec<String>,
    /// The keys that the file or the overrides give, whatever their values.
    pub given: Vec<Given>,
    /// Notes for the user, such as keys that were dropped.
    pub notes: Vec<String>,
}

impl Schema {
    /// Merges a config file and overrides over the defaults, checking every key on the way.
    ///
    /// # Errors
    /// The first key that is unknown, not used by the chosen kind, of the wrong type, out of range or missing.
    pub fn resolve(&self, source: Source<'_>, overrides: &Overrides) -> Result<Resolved, ConfigError> {
        let typed = Layer::from_overrides(self, overrides)?;
        let mut file = Layer::from_file(self, source, &typed)?;
        let mut notes = Vec::new();
        self.drop_keys_of_former_kinds(&mut file, &typed, &mut notes);

        let entry = |section: &str, name: &str| typed.get(section, name).or_else(|| file.get(section, name));
        let preset = entry("", "preset").and_then(|entry| entry.value.as_str()).unwrap_or("sound");
        note_shadowed_preset(&file, &typed, preset, &mut notes);
        notes.extend(self.notes_on_kept_keys(&file, &typed, preset));

        let (mut table, mut changed, mut given) = (Table::new(), Vec::new(), Vec::new());
        for section in &self.sections {
            let kind = typed.word(section.name).or_else(|| file.word(section.name)).or(section.default_kind);
            let kind = kind.unwrap_or_default();
            for layer in [&file, &typed] {
                layer.refuse_unused(section, kind)?;
            }
            let mut keys = Table::new();
            if let Some(default) = section.default_kind {
                if kind != default {
                    changed.push(section.path("kind"));
                }
                given.extend(entry(section.name, "kind").map(Entry::as_given));
                keys.insert("kind".to_string(), Value::String(kind.to_string()));
            }
            for key in section.keys_of(kind) {
                let value = match entry(section.name, key.name) {
                    Some(entry) => {
                        given.push(entry.as_given());
                        entry.checked_for(key)?
                    }
                    None => key.default_for(preset).ok_or_else(|| ConfigError::Missing {
                        at: source.name.to_string(),
                        path: section.path(key.name),
                        section: section.name.into(),
                        kind: kind.into(),
                        allowed: key.accepts.describe(),
                    })?,
                };
                if key.default_for(preset).as_ref() != Some(&value) {
                    changed.push(section.path(key.name));
                }
                keys.insert(key.name.to_string(), value);
            }
            if section.name.is_empty() {
                table.extend(keys);
            } else {
                table.insert(section.name.to_string(), Value::Table(keys));
            }
        }
        Ok(Resolved { table, changed, given, notes })
    }

    /// Checks the values of a command line that comes without a config.
    ///
    /// # Errors
    /// The first value that its key does not accept; the message says what would be right.
    pub fn check_overrides(&self, overrides: &Overrides) -> Result<(), ConfigError> {
        Layer::from_overrides(self, overrides).map(|_| ())
    }

    /// Drops the file's keys that have lost their meaning because an override changes their section's kind.
    fn drop_keys_of_former_kinds(&self, file: &mut Layer<'_>, typed: &Layer<'_>, notes: &mut Vec<String>) {
        for Section { name, default_kind, .. } in &self.sections {
            let (Some(default), Some(new)) = (default_kind, typed.word(name)) else { continue };
            let old = file.word(name).unwrap_or(default).to_string();
            let dropped =
                file.remove(|entry| entry.section.name == *name && entry.is_used_by(&old) && !entry.is_used_by(new));
            if !dropped.is_empty() {
                let dropped: Vec<&str> = dropped.iter().map(String::as_str).collect();
                notes.push(format!("{name}.kind is now `{new}`, which does not use the file's {}", list(&dropped)));
            }
        }
    }

    /// A note for each section whose kind an override changes, on keys that both kinds use: they keep the file's values, where the
    /// new kind would have another one by default than the former.
    fn notes_on_kept_keys(&self, file: &Layer<'_>, typed: &Layer<'_>, preset: &str) -> Vec<String> {
        let of_section = |section: &Section| {
            let (default, new) = (section.default_kind?, typed.word(section.name)?);
            let old = file.word(section.name).unwrap_or(default);
            let kept = |key: &'static Key| {
                let written =
                    file.get(section.name, key.name).filter(|_| typed.get(section.name, key.name).is_none())?;
                let former = section.keys_of(old).find(|other| other.name == key.name)?.default_for(preset);
                let own =
                    key.default_for(preset).filter(|own| Some(own) != former.as_ref() && *own != written.value)?;
                Some(format!("`{}` = {} (by default {own})", section.path(key.name), written.value))
            };
            let kept: Vec<String> = section.keys_of(new).filter_map(kept).collect();
            (!kept.is_empty())
                .then(|| format!("{}.kind is now `{new}`, and keeps the file's {}", section.name, kept.join(", ")))
        };
        self.sections.iter().filter_map(of_section).collect()
    }
}

impl Resolved {
    /// A conflict with the places of its keys ([`places`]), or with the file where none of them is given. Other errors have
    /// their place.
    #[must_use]
    pub fn located(&self, error: ConfigError, file: &str) -> ConfigError {
        let ConfigError::Conflict { problem, .. } = error else { return error };
        ConfigError::Conflict { at: places(&problem, &self.given).unwrap_or_else(|| file.to_owned()), problem }
    }

    /// The config as a file that resolves to itself.
    pub fn to_toml(&self) -> String {
        self.to_toml_with(&[])
    }

    /// The same with remarks of one line each at the heads of sections.
    pub fn to_toml_with(&self, remarks: &[(&str, String)]) -> String {
        let mut text = String::from("# The experiment with every default written out.\n");
        for (key, value) in self.table.iter().filter(|(_, value)| !value.is_table()) {
            text += &format!("{key} = {value}\n");
        }
        for (section, keys) in &self.table {
            let Value::Table(keys) = keys else { continue };
            text += &format!("\n[{section}]\n");
            for (_, remark) in remarks.iter().filter(|(remarked, _)| section == remarked) {
                text += &format!("# {remark}\n");
            }
            for (key, value) in keys {
                text += &format!("{key} = {value}\n");
            }
        }
        text
    }
}

/// Adds a note where a preset given on the command line has no effect, because the file writes the keys it would change.
fn note_shadowed_preset(file: &Layer<'_>, typed: &Layer<'_>, preset: &str, notes: &mut Vec<String>) {
    if typed.get("", "preset").is_none() {
        return;
    }
    let shadowed = file.entries().filter(|entry| {
        let key = entry.key.filter(|key| key.depends_on_preset());
        let is_overridden = typed.get(entry.section.name, entry.name).is_some();
        !is_overridden && key.is_some_and(|key| key.default_for(preset).as_ref() != Some(&entry.value))
    });
    let shadowed: Vec<String> = shadowed.map(|entry| entry.path()).collect();
    if !shadowed.is_empty() {
        let shadowed: Vec<&str> = shadowed.iter().map(String::as_str).collect();
        notes.push(format!("preset `{preset}` leaves {} as the file has it", list(&shadowed)));
    }
}
