//! Resolves an experiment and runs it.

use std::path::PathBuf;

use fedstein::algorithm::{ALGORITHM_CAPABILITIES, ALGORITHM_KINDS};
use fedstein::backend::AnyBackend;
use fedstein::cli::load_built_in;
use fedstein::experiment::config::{is_of_data_set, schema};
use fedstein::experiment::length::Length;
use fedstein::experiment::schema::{Resolved, list};
use fedstein::experiment::{Config, ConfigLoader, Experiment, Overrides, Source, run_on};
use pyo3::prelude::*;

use crate::data::Rows;
use crate::errors::{ConfigError, of_config, with_arguments};
use crate::watched::{Files, NoCourier, watch};

/// A resolved experiment.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Plan {
    pub config: Config,
    pub resolved: Resolved,
}

#[pymethods]
impl Plan {
    /// Resolves a config: the TOML text of `source` with its name in messages, or the built-in experiment; `set` are
    /// assignments `key=value` in TOML. A run that `resumes` may have been given keys that have no effect.
    ///
    /// # Errors
    /// A key or a value is invalid, or has no effect beside `data`.
    #[new]
    #[pyo3(signature = (source, set, data, resumes=false))]
    fn new(
        source: Option<(String, String)>,
        mut set: Vec<String>,
        data: Option<&Rows>,
        resumes: bool,
    ) -> PyResult<Self> {
        if let Some(Rows(data)) = data {
            let table = source.as_ref().and_then(|(_, text)| text.parse::<toml::Table>().ok()).unwrap_or_default();
            let kind_of = |section: &str| {
                let key = format!("{section}.kind");
                let typed = set.iter().filter_map(|set| set.split_once('=')).find(|(name, _)| name.trim() == key);
                let in_file = || table.get(section)?.get("kind").map(ToString::to_string);
                typed.map(|(_, value)| value.trim().to_owned()).or_else(in_file)
            };
            // Found before the keys of this kind, which may be missing, and keys of other kinds, which may be there.
            let default = schema().section("data").and_then(|section| section.default_kind).unwrap_or_default();
            let names = set.iter().filter_map(|set| Some(set.split_once('=')?.0.trim()));
            let unused: Vec<&str> = names.filter(|key| *key != "data.kind" && is_of_data_set(key)).collect();
            if !resumes && !unused.is_empty() {
                return Err(without_effect(&unused));
            }
            if !resumes && kind_of("data").is_some_and(|kind| kind.trim_matches(['"', '\'']) != default) {
                return Err(without_effect(&["data.kind"]));
            }
            // Rows with clients of their own go to these, unless the user wants something else.
            if data.train.clients.is_some() && kind_of("partition").is_none() {
                set.push("partition.kind=\"by-column\"".into());
            }
        }
        let overrides = Overrides { set, ..Overrides::default() };
        let loaded = match (&source, data) {
            (None, None) => load_built_in(&overrides),
            (Some((name, text)), None) => Config::load(Source { name, text }, &overrides),
            (source, Some(Rows(data))) => {
                let (name, text) = source.as_ref().map_or(("the defaults", ""), |(name, text)| (name, text));
                ConfigLoader::default().with_data(data).load(Source { name, text }, &overrides)
            }
        };
        // The option of the command has no name here: keys are keywords or entries of a dict.
        let (config, resolved) = loaded.map_err(|error| match of_config_text(&error.to_string()) {
            Some(text) => ConfigError::new_err(text),
            None => of_config(error),
        })?;
        let unused: Vec<&str> = match data.is_some() && !resumes {
            true => resolved.changed.iter().map(String::as_str).filter(|key| is_of_data_set(key)).collect(),
            false => Vec::new(),
        };
        match unused.is_empty() {
            true => Ok(Self { config, resolved }),
            false => Err(without_effect(&unused)),
        }
    }

    /// The resolved config as TOML.
    fn to_toml(&self) -> String {
        self.resolved.to_toml()
    }

    /// The run's name.
    fn name(&self) -> &str {
        &self.config.name
    }

    /// Notes for the user.
    fn notes(&self) -> Vec<String> {
        self.resolved.notes.clone()
    }
}

/// The exception of keys of `[data]` that have no effect beside `data`.
fn without_effect(keys: &[&str]) -> PyErr {
    let (verb, them) = if keys.len() == 1 { ("has", "it") } else { ("have", "them") };
    ConfigError::new_err(format!(
        "{} {verb} no effect beside rows of your own; leave {them} out, and prepare the rows before fedstein.Data, which \
         has `test` and `normalise`",
        list(keys)
    ))
}

/// The message about a keyword without the name of the command's option.
fn of_config_text(text: &str) -> Option<String> {
    text.strip_prefix("--set: ").map(with_arguments)
}

/// The rounds of a run of so many rows at so many clients, where nobody says them; and the share of validation rows and the
/// patience that end them earlier, or None for both: so it is too where they would judge nothing of the method, because the
/// clients' personal predictors are the result (`personal`), or complete what an algorithm of this kind publishes.
#[pyfunction]
pub fn length(rows: usize, clients: usize, algorithm: &str, personal: bool) -> (usize, Option<f64>, Option<usize>) {
    let kinds = ALGORITHM_KINDS.iter().zip(ALGORITHM_CAPABILITIES);
    let has_part = kinds.filter(|(kind, _)| kind.name == algorithm).any(|(_, can)| can.untrained_part);
    let Length { rounds, stop } =
        if personal || has_part { Length::without_stop(clients) } else { Length::of(rows, clients) };
    (rounds, stop.map(|stop| stop.share), stop.map(|stop| stop.patience))
}

/// Runs an experiment into the directory `out`, of which `temporary` may be the parent; [`watch`] says how it is watched.
///
/// # Errors
/// Config or data are unusable, the run fails, or what was raised meanwhile.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "one for each argument of Python's function")]
pub fn train(
    py: Python<'_>,
    plan: &Plan,
    data: Option<&Rows>,
    data_dir: PathBuf,
    out: PathBuf,
    force: bool,
    resume: bool,
    temporary: Option<PathBuf>,
    bar: bool,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut experiment = Experiment::new(plan.config.clone(), data_dir);
    if let Some(Rows(data)) = data {
        experiment = experiment.with_data(data.clone());
    }
    let files = Files { resolved: plan.resolved.clone(), out: out.clone(), force, resume, temporary };
    watch(py, &out, bar, tell, &mut NoCourier, move |told| {
        let backend = AnyBackend::named(&experiment.config.backend)?;
        files.with(&told, |artifacts| run_on(backend, &experiment, &told, Some(artifacts)))
    })
}
