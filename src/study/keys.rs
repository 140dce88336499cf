//! Keys of configs, each with the file and the line that wrote it.

use fedstein_schema::{Given, flat};
use toml::{Table, Value};

use crate::experiment::config::schema;
use crate::experiment::schema::{ConfigError, Overrides};

/// Keys of a config.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Given>);

impl Keys {
    /// The keys in a table of sections; `at` says where a path within the table stands.
    pub fn of(table: &Table, at: &dyn Fn(&str) -> String) -> Self {
        let written = |(path, value): (String, &Value)| Given { at: at(&path), path, value: value.clone() };
        Self(flat(table).map(written).collect())
    }

    /// A single key.
    pub fn one(path: &str, value: Value, at: String) -> Self {
        Self(vec![Given { path: path.to_owned(), value, at }])
    }

    /// The keys in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Given> {
        self.0.iter()
    }

    /// Where a key stands.
    pub fn place(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|written| written.path == path).map(|written| written.at.as_str())
    }

    /// Checks that every key exists and accepts its value, and that a study may set it.
    ///
    /// # Errors
    /// The first key that does not, with its place.
    pub fn check(&self) -> Result<(), ConfigError> {
        for Given { path, value, at } in &self.0 {
            if let Some(instead) = not_of_a_run(path) {
                return Err(ConfigError::conflict(format!("{at}: `{path}` is not set in a study: {instead}")));
            }
            let set = vec![format!("{path}={value}")];
            let checked = schema().check_overrides(&Overrides { set, ..Overrides::default() });
            checked.map_err(|error| error.placed(at))?;
        }
        Ok(())
    }

    /// The keys as a table of sections.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        for Given { path, value, .. } in &self.0 {
            match path.split_once('.') {
                None => drop(table.insert(path.clone(), value.clone())),
                Some((section, key)) => {
                    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
                    if let Value::Table(keys) = section {
                        keys.insert(key.to_owned(), value.clone());
                    }
                }
            }
        }
        table
    }
}

/// What takes the place of a key that runs of a study do not have.
fn not_of_a_run(path: &str) -> Option<&'static str> {
    match path {
        "seed" => Some("every run is repeated with the seeds 1 to `seeds`, a key at the top of the file"),
        "name" => Some("runs have the names of their variants"),
        _ => None,
    }
}
