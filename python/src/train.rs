//! Resolves an experiment and runs it.

use std::path::PathBuf;

use fedstein::backend::{Backend, OnBackend, dispatch};
use fedstein::cli::load_built_in;
use fedstein::error::RunError;
use fedstein::experiment::schema::Resolved;
use fedstein::experiment::{Config, ConfigLoader, Experiment, Overrides, Source, run};
use pyo3::prelude::*;

use crate::data::Rows;
use crate::errors::{ConfigError, of_config};
use crate::watched::{Files, NoCourier, Told, watch};

/// A resolved experiment.
#[pyclass(module = "fedstein._fedstein", frozen)]
pub struct Plan {
    pub config: Config,
    pub resolved: Resolved,
}

#[pymethods]
impl Plan {
    /// Resolves a config: the TOML text of `source` with its name in messages, or the built-in experiment; `set` are
    /// assignments `key=value` in TOML.
    ///
    /// # Errors
    /// A key or a value is invalid.
    #[new]
    fn new(source: Option<(String, String)>, mut set: Vec<String>, data: Option<&Rows>) -> PyResult<Self> {
        if let Some(Rows(data)) = data {
            let is_set = |set: &String| set.split('=').next().is_some_and(|key| key.trim() == "partition.kind");
            let table = source.as_ref().and_then(|(_, text)| text.parse::<toml::Table>().ok());
            let in_file =
                table.is_some_and(|table| table.get("partition").and_then(|section| section.get("kind")).is_some());
            // Rows with clients of their own go to these, unless the user wants something else.
            if data.train.clients.is_some() && !in_file && !set.iter().any(is_set) {
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
        Ok(Self { config, resolved })
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

/// The message about a keyword without the name of the command's option.
fn of_config_text(text: &str) -> Option<String> {
    text.strip_prefix("--set: ").map(ToOwned::to_owned)
}

/// All that the run's own thread needs.
struct Job {
    experiment: Experiment,
    files: Files,
    told: Told,
}

impl OnBackend for Job {
    type Output = Result<(), RunError>;

    fn run<B: Backend>(self) -> Self::Output {
        let Self { experiment, files, told } = self;
        files.with(&told, |artifacts| run::<B>(&experiment, &told, Some(artifacts)))
    }
}

/// Runs an experiment into the directory `out`; [`watch`] says how it is watched.
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
    report: bool,
    bar: bool,
    tell: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut experiment = Experiment::new(plan.config.clone(), data_dir);
    if let Some(Rows(data)) = data {
        experiment = experiment.with_data(data.clone());
    }
    let backend = experiment.config.backend.clone();
    let files = Files { resolved: plan.resolved.clone(), out: out.clone(), force, resume, report };
    watch(py, &out, bar, tell, &mut NoCourier, move |told| dispatch(&backend, Job { experiment, files, told })?)
}
