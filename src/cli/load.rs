//! The experiment that a command line means: that of a file, or the built-in one.

use std::path::Path;

use toml::Table;

use crate::algorithm::kinds_that;
use crate::experiment::config::Config;
use crate::experiment::schema::{ConfigError, Overrides, Resolved, Source};
use crate::report::files::read_text;
use crate::study::is_study;

/// The experiment that `fedstein train` runs without a config.
const DEFAULT_CONFIG: Source<'static> = Source {
    name: "the built-in configs/digits/newton-bnn.toml",
    text: include_str!("../../configs/digits/newton-bnn.toml"),
};

/// The experiment of a file, or the built-in one.
///
/// # Errors
/// The file cannot be read, or it or an override is invalid.
pub(super) fn load(path: Option<&Path>, overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
    match path {
        Some(path) => load_file(path, overrides),
        None => load_built_in(overrides),
    }
}

/// The built-in experiment. It is on digits: with other data all keys that are not set begin at their defaults.
///
/// # Errors
/// An override is invalid.
pub fn load_built_in(overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
    let data_kind = typed(overrides, "data.kind");
    if data_kind.is_none_or(|kind| kind == "digits") {
        return match plain_steps(overrides) {
            Some(kind) => load_with_plain_steps(kind, overrides),
            None => Config::load(DEFAULT_CONFIG, overrides),
        };
    }
    let (config, mut resolved) = Config::load(Source { name: "the defaults", text: "" }, overrides)?;
    resolved.notes.push(
        "the built-in experiment is on `digits`; with another `data.kind` all keys that are not set have the defaults of \
         docs/configuration.md"
            .into(),
    );
    Ok((config, resolved))
}

/// The last value of a key on the command line.
fn typed<'a>(overrides: &'a Overrides, path: &str) -> Option<&'a str> {
    overrides.set.iter().rev().find_map(|set| {
        let (key, value) = set.split_once('=')?;
        (key.trim() == path).then(|| value.trim().trim_matches('"'))
    })
}

/// The kind of algorithm on the command line, where it is defined by plain gradient steps and the command line has no
/// optimiser.
fn plain_steps(overrides: &Overrides) -> Option<&'static str> {
    let kind = typed(overrides, "algorithm.kind")?;
    let known = kinds_that(|can| can.plain_gradient_steps).into_iter().find(|known| *known == kind)?;
    typed(overrides, "optimizer.kind").is_none().then_some(known)
}

/// The built-in experiment without its optimiser, which is not one of plain gradient steps.
fn load_with_plain_steps(kind: &str, overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
    let text = match DEFAULT_CONFIG.text.parse::<Table>() {
        Ok(mut table) => {
            table.remove("optimizer");
            table.to_string()
        }
        Err(error) => return Err(ConfigError::Internal(error.to_string())),
    };
    let mut overrides = overrides.clone();
    overrides.set.push("optimizer.kind=sgd".into());
    let (config, mut resolved) = Config::load(Source { text: &text, ..DEFAULT_CONFIG }, &overrides)?;
    resolved.notes.push(format!(
        "algorithm kind `{kind}` is defined by plain gradient steps: optimizer.kind is `sgd`, with its default keys, in the \
         place of the built-in experiment's `adagrad`"
    ));
    Ok((config, resolved))
}

/// The endings of tables' names, before that of gzip.
const TABLES: [&str; 5] = ["csv", "tsv", "parquet", "arrow", "feather"];

fn load_file(path: &Path, overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
    let is_table = |path: &Path| {
        path.extension().is_some_and(|ending| TABLES.iter().any(|table| ending.eq_ignore_ascii_case(table)))
    };
    let unpacked =
        path.extension().filter(|ending| *ending == "gz").map_or_else(|| path.to_owned(), |_| path.with_extension(""));
    if path.is_file() && is_table(&unpacked) {
        let path = path.display();
        return Err(ConfigError::conflict(format!(
            "{path} is a table, where a config is expected; `fedstein init {path}` writes one for it"
        )));
    }
    let text = read_text(path).map_err(|source| ConfigError::Read { path: path.to_path_buf(), source })?;
    Config::load(Source { name: &path.display().to_string(), text: &text }, overrides).map_err(|error| {
        let path = path.display();
        match is_study(&text) {
            true => ConfigError::conflict(format!("{path} is a study; `fedstein study {path}` runs it")),
            false => error,
        }
    })
}
