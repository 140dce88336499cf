//! What a program may have written into the fields of a config after it was loaded.

use std::collections::BTreeMap;

use fedstein_schema::ConfigError;
use toml::{Table, Value};

use super::{Config, schema, word};

/// The key of the backend. Its value does not count: a run is told its backend by its caller.
pub(in crate::experiment) const BACKEND: &str = "backend";

impl Config {
    /// Checks that every value is one of its key, as [`Config::load`] has done for the text that it read.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`], which names the first key with another value and what it may be.
    pub(in crate::experiment) fn check_values(&self) -> Result<(), ConfigError> {
        let table = self.table()?;
        for section in &schema().sections {
            let keys = match section.name {
                "" => Some(&table),
                name => table.get(name).and_then(Value::as_table),
            };
            let Some(keys) = keys else { continue };
            // The keys of an algorithm of the program's own are not in the schema.
            for known in section.keys_of(word(keys, "kind")) {
                let Some(value) = keys.get(known.name) else { continue };
                known.accepts.check(value).map_err(|valid| {
                    let path = section.path(known.name);
                    ConfigError::conflict(format!("`{path}` cannot be {value}; it must be {valid}"))
                })?;
            }
        }
        Ok(())
    }

    /// The keys whose values differ from those of another config, `key: value → other value`; the backend is not compared.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] where a config cannot be written as a file.
    pub(in crate::experiment) fn differences(&self, other: &Self) -> Result<Vec<String>, ConfigError> {
        let (old, new) = (flat(&self.table()?), flat(&other.table()?));
        let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
        let differ = keys.filter(|key| *key != BACKEND && old.get(*key) != new.get(*key));
        let of = |value: Option<&String>| value.map_or("not there", String::as_str).to_owned();
        Ok(differ.map(|key| format!("{key}: {} → {}", of(old.get(key)), of(new.get(key)))).collect())
    }

    /// The config as a table of its keys.
    fn table(&self) -> Result<Table, ConfigError> {
        Table::try_from(self).map_err(|error| {
            ConfigError::conflict(format!(
                "a value of the config cannot be written as a file, where a run keeps it: {error}"
            ))
        })
    }
}

/// A table as pairs of `section.key` and its value as TOML.
pub(in crate::experiment) fn flat(table: &Table) -> BTreeMap<String, String> {
    fedstein_schema::flat(table).map(|(key, value)| (key, value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::schema::{Overrides, Source};

    fn default() -> Config {
        Config::load(Source { name: "test", text: "" }, &Overrides::default()).unwrap().0
    }

    #[test]
    fn a_value_that_no_file_may_have_is_named_with_its_key() {
        type Change = fn(&mut Config);
        let changes: [(Change, &str); 6] = [
            (|config| config.evaluation.chunk = 0, "`evaluation.chunk` cannot be 0; it must be a whole number from 1"),
            (
                |config| config.evaluation.bins = 0,
                "`evaluation.bins` cannot be 0; it must be a whole number from 1 to 1000",
            ),
            (|config| config.rounds = 0, "`rounds` cannot be 0"),
            (|config| config.federation.robust_clip = f64::NAN, "`federation.robust_clip` cannot be nan"),
            (
                |config| drop(config.partition.insert("validation".into(), 2.0.into())),
                "`partition.validation` cannot be 2",
            ),
            (|config| config.seed = u64::MAX, "cannot be written as a file"),
        ];
        for (change, words) in changes {
            let mut config = default();
            assert!(config.check_values().is_ok());
            change(&mut config);
            let message = config.check_values().unwrap_err().to_string();
            assert!(message.contains(words), "no {words:?} in {message}");
        }
    }

    #[test]
    fn every_config_of_the_repository_has_values_of_its_keys() {
        let mut directories = vec![std::path::PathBuf::from("configs")];
        let mut configs = 0;
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                // Figures and studies are files of another kind.
                let loaded = Config::load(Source { name: "test", text: &text }, &Overrides::default());
                let Ok((config, resolved)) = loaded else { continue };
                config.check_values().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                assert!(Config::from_resolved(&resolved).unwrap().differences(&config).unwrap().is_empty());
                configs += 1;
            }
        }
        assert!(configs > 30, "{configs}");
    }

    #[test]
    fn differences_are_those_of_the_keys_but_for_the_backend() {
        let mut config = default();
        config.backend = "ndarray".into();
        assert!(default().differences(&config).unwrap().is_empty());
        config.rounds = 77;
        config.data.insert("rotate".into(), "principal".into());
        config.data.remove("test_limit");
        let want = ["data.rotate: \"none\" → \"principal\"", "data.test_limit: 0 → not there", "rounds: 10 → 77"];
        assert_eq!(default().differences(&config).unwrap(), want);
    }
}
