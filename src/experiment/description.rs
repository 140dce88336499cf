//! The description of a run, with what a program brings in the place of sections of its config.

use std::path::PathBuf;
use std::sync::Arc;

use crate::algorithm::{Algorithm, AlgorithmConfig};
use crate::datasets::{DataProperties, TrainTest};
use crate::error::RunError;
use crate::models::Model;
use crate::schedule::{OwnSelection, SCHEDULE_KINDS};

use super::config::{Config, Own, is_name_of_kind};
use super::recorder;

/// The description of a run.
///
/// ```no_run
/// use fedstein::backend::Flex;
/// use fedstein::experiment::{Config, Experiment, Overrides, Quiet, Source, run};
///
/// let text = "rounds = 5\n[algorithm]\nkind = \"fedavg\"";
/// let (config, _) = Config::load(Source { name: "example", text }, &Overrides::default())?;
/// let outcome = run::<Flex>(&Experiment::new(config, "data"), &Quiet, None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Experiment {
    /// The resolved configuration.
    pub config: Config,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// A model that replaces the one of `[model]`, if given.
    pub model: Option<Arc<dyn Model>>,
    /// Rows that replace the data set of `[data]`, if given.
    pub data: Option<TrainTest>,
    /// An algorithm that replaces the one of `[algorithm]`, if given.
    pub algorithm: Option<Arc<dyn Algorithm>>,
    /// A client selection that replaces the one of `[schedule]`, if given.
    pub selection: Option<OwnSelection>,
}

impl Experiment {
    /// The experiment of a config; `data_dir` is the directory of the data sets.
    pub fn new(config: Config, data_dir: impl Into<PathBuf>) -> Self {
        Self { config, data_dir: data_dir.into(), model: None, data: None, algorithm: None, selection: None }
    }

    /// The algorithm: that of the program where it has brought one, else that of the config.
    pub(super) fn algorithm(&self) -> &dyn Algorithm {
        self.algorithm.as_deref().unwrap_or(&*self.config.algorithm)
    }

    /// Checks that the config is that of what the program brings.
    ///
    /// # Errors
    /// The kind of the algorithm is another one, a value is not one of its key, the rows do not fit together, or keys
    /// conflict.
    pub(super) fn check(&self) -> Result<(), RunError> {
        let Self { config, model, data, .. } = self;
        let algorithm = self.algorithm();
        let (named, kind) = (config.algorithm.name(), algorithm.kind().name);
        if self.algorithm.is_some() && named != kind {
            return Err(RunError::Config(format!(
                "`algorithm.kind` is \"{named}\", and the algorithm of Experiment::with_algorithm is \"{kind}\"; set the key to \
                 it, and load the config with `ConfigLoader::with_algorithm`"
            )));
        }
        config.check_values()?;
        if self.algorithm.is_some() {
            check_own(config, algorithm)?;
        }
        if let Some(selection) = &self.selection {
            let in_words = |problem| RunError::Config(format!("Experiment::with_selection: {problem}"));
            is_name_of_kind(selection.name()).map_err(in_words)?;
            if SCHEDULE_KINDS.iter().any(|kind| kind.name == selection.name()) {
                return Err(in_words(format!(
                    "there is a schedule kind `{}` already; give yours a name of its own",
                    selection.name()
                )));
            }
        }
        data.as_ref().map_or(Ok(()), TrainTest::check)?;
        let own = Own {
            data: data.as_ref().map(|data| DataProperties::of(&data.train)),
            model: model.is_some(),
            selection: self.selection.is_some(),
        };
        match self.algorithm.is_some() || own != Own::default() {
            true => Ok(config.check_for(algorithm, own)?),
            false => Ok(()),
        }
    }

    /// The same experiment with a model in place of `[model]`. The run's `config.toml` cannot describe such a model:
    /// predictions ([`Finished::with_model`](super::finished::Finished::with_model)) and `Artifacts::resume` need a program
    /// that provides it again.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn Model>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// The same experiment with rows in place of `[data]`; `[partition]` assigns them to clients. The run's
    /// `config.toml` cannot describe such rows: `Artifacts::resume` needs a program that provides them again.
    #[must_use]
    pub fn with_data(self, data: TrainTest) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The same experiment with an algorithm in place of `[algorithm]`.
    #[must_use]
    pub fn with_algorithm(self, algorithm: impl Algorithm + 'static) -> Self {
        Self { algorithm: Some(Arc::new(algorithm)), ..self }
    }

    /// The same experiment with a client selection in place of the kind of `[schedule]`, whose `clients` remains the largest
    /// number of clients in a round. The run's files call it by its name; `Artifacts::resume` needs a program that provides
    /// it again.
    ///
    /// ```no_run
    /// # use fedstein::{backend::Flex, error::RunError, experiment::{Config, Experiment, Quiet, run}};
    /// use fedstein::schedule::{Indicators, OwnSelection, Schedule, Selection};
    ///
    /// /// The first clients of each round, in the order of their numbers.
    /// struct Lowest {
    ///     per_round: usize,
    /// }
    ///
    /// impl Schedule for Lowest {
    ///     fn select(&mut self, _round: usize, _: Option<&Indicators>) -> Result<Selection, RunError> {
    ///         Ok((0..self.per_round).collect::<Vec<_>>().into())
    ///     }
    /// }
    /// # fn f(config: Config) -> Result<(), RunError> {
    /// let lowest = OwnSelection::new("lowest", |setup| Box::new(Lowest { per_round: setup.per_round }));
    /// run::<Flex>(&Experiment::new(config, "data").with_selection(lowest), &Quiet, None)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_selection(self, selection: OwnSelection) -> Self {
        Self { selection: Some(selection), ..self }
    }
}

/// Checks what an algorithm of a program's own says of itself.
fn check_own(config: &Config, algorithm: &dyn Algorithm) -> Result<(), RunError> {
    let key = match &config.algorithm {
        AlgorithmConfig::Own(own) => own.keys.get("particles").and_then(toml::Value::as_integer),
        _ => None,
    };
    let particles = algorithm.particles();
    if let Some(asked) = key.filter(|asked| usize::try_from(*asked) != Ok(particles)) {
        return Err(RunError::Config(format!(
            "`algorithm.particles` is {asked}, and `Algorithm::particles` returns {particles}; it must return the key's value"
        )));
    }
    let columns = algorithm.capabilities().columns;
    let mut taken: Vec<&str> = recorder::column_names().collect();
    for name in columns {
        is_name_of_kind(name).map_err(|problem| {
            RunError::Config(format!("`Capabilities::columns`, a column of `rounds.csv`: {problem}"))
        })?;
        if taken.contains(name) {
            return Err(RunError::Config(format!(
                "`Capabilities::columns` has `{name}`, which `rounds.csv` has already; give the column another name"
            )));
        }
        taken.push(name);
    }
    Ok(())
}
