//! The whole data path on one page: data → clients → rounds → metrics → files.

use std::path::PathBuf;
use std::sync::Arc;

use crate::algorithm::{Algorithm, AlgorithmConfig};
use crate::backend::{Backend, Session};
use crate::datasets::{DataProperties, ModelCard, Partition, TrainTest, features_together};
use crate::error::RunError;
use crate::federation::fleet::InProcess;
use crate::federation::parked::Parking;
use crate::metrics::Evaluation;
use crate::models::Model;
use crate::protocol::{ClientId, all_here};
use crate::random::{self, Streams};
use crate::report::ClientNames;
use crate::rows::{Shard, Table};
use crate::schedule::OwnSelection;

use super::artifact::{Artifacts, RowsOfRun};
use super::assemble::{check_size, first_particles};
use super::assigned::{Assigned, assigned};
use super::calibrate::{Plan, rows_of_clients};
use super::config::{Config, Own};
use super::drive::{Prepared, on_correlation};
use super::evaluate::Evaluator;
use super::judge::{Judge, Place};
use super::outcome::Outcome;
use super::own_model;
use super::personal::{HeldOutRows, note_on_published};
use super::prior_correction;
use super::progress::Observer;

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
pub struct Experiment<A: Algorithm = AlgorithmConfig> {
    /// The resolved configuration.
    pub config: Config,
    /// The directory of the data sets.
    pub data_dir: PathBuf,
    /// A model that replaces the one of `[model]`, if given.
    pub model: Option<Arc<dyn Model>>,
    /// Rows that replace the data set of `[data]`, if given.
    pub data: Option<TrainTest>,
    /// An algorithm that replaces the one of `[algorithm]`, if given.
    pub algorithm: Option<A>,
    /// A client selection that replaces the one of `[schedule]`, if given.
    pub selection: Option<OwnSelection>,
}

impl Experiment {
    /// The experiment of a config; `data_dir` is the directory of the data sets.
    pub fn new(config: Config, data_dir: impl Into<PathBuf>) -> Self {
        Self { config, data_dir: data_dir.into(), model: None, data: None, algorithm: None, selection: None }
    }
}

impl<A: Algorithm> Experiment<A> {
    /// Checks that the config is that of what the program brings.
    ///
    /// # Errors
    /// The kind of the algorithm is another one, a value is not one of its key, the rows do not fit together, or keys
    /// conflict.
    fn check(&self, algorithm: &impl Algorithm) -> Result<(), RunError> {
        let Self { config, model, data, .. } = self;
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
        data.as_ref().map_or(Ok(()), TrainTest::check)?;
        let own = Own { data: data.as_ref().map(|data| DataProperties::of(&data.train)), model: model.is_some() };
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
    pub fn with_algorithm<O: Algorithm>(self, algorithm: O) -> Experiment<O> {
        let Self { config, data_dir, model, data, selection, .. } = self;
        Experiment { config, data_dir, model, data, algorithm: Some(algorithm), selection }
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

/// Runs an experiment on backend B, which the run's files name in the place of the config's `backend`. Files go to
/// `artifacts`, if given, as soon as their content exists.
///
/// # Errors
/// Data or configuration are invalid, or the configuration is not the one that `artifacts` describes, which is found before
/// the first round and before a file is written; a round fails; or a file cannot be written.
pub fn run<B: Backend>(
    experiment: &Experiment<impl Algorithm>,
    observer: &dyn Observer,
    artifacts: Option<&mut Artifacts>,
) -> Result<Outcome<B>, RunError> {
    match &experiment.algorithm {
        Some(algorithm) => run_with(experiment, algorithm, observer, artifacts),
        None => run_with(experiment, &experiment.config.algorithm, observer, artifacts),
    }
}

fn run_with<B: Backend>(
    experiment: &Experiment<impl Algorithm>,
    algorithm: &impl Algorithm,
    observer: &dyn Observer,
    mut artifacts: Option<&mut Artifacts>,
) -> Result<Outcome<B>, RunError> {
    // The type parameter chooses the backend, whatever the key says.
    let config = &Config { backend: B::NAME.to_owned(), ..experiment.config.clone() };
    let streams = Streams::new(config.seed);
    let can = algorithm.capabilities();
    experiment.check(algorithm)?;
    artifacts.as_deref().map_or(Ok(()), |artifacts| artifacts.must_be_of(&experiment.config, B::NAME))?;

    // The data, assigned to the clients.
    let Assigned { data, partition, rotation, class_weights, corrections, notes } =
        assigned(config, experiment.data.as_ref(), &experiment.data_dir, streams)?;
    let uncorrected = prior_correction::uncorrected(config, can, &partition.counts(&data.train.targets));
    let notes: Vec<String> = notes.into_iter().chain(uncorrected).chain(note_on_published(config, can)).collect();
    notes.iter().for_each(|note| observer.note(note));
    let shards = if can.centralised { vec![partition.pooled(data.train.rows())] } else { partition.clients().to_vec() };

    // The model and its initial particles.
    let card = ModelCard::of(&data.train, data.normalisation.clone());
    let session = Session::<B>::open(config.precision)?;
    let model = match &experiment.model {
        Some(model) => own_model::checked(model, &data, (config.algorithm.name(), can), &session)?,
        None => config.model(&data.train)?,
    };
    check_size(algorithm, &*model)?;
    let schedule = match &experiment.selection {
        Some(own) => config.own_schedule(own, algorithm, shards.len(), streams)?,
        None => config.schedule(algorithm, shards.len(), streams),
    };
    let calibration = Plan::here(config, model.task(), &card, &partition, can.centralised)?;
    if observer.gives_up() {
        return Err(RunError::Interrupted { round: 0, rounds: config.rounds });
    }
    if let Some(artifacts) = artifacts.as_deref_mut() {
        let mut rows = RowsOfRun::here(config, &data, &partition, notes);
        (rows.card.own_model, rows.card.own_data) = (experiment.model.is_some(), experiment.data.is_some());
        rows.own_selection = experiment.selection.as_ref().map(|own| own.name().to_owned());
        artifacts.open(config, algorithm.particles(), rows, rotation.as_ref(), &*model, &session)?;
        artifacts.warning().iter().for_each(|warning| observer.note(warning));
    }
    let name = match &experiment.data {
        Some(data) => data.train.name.clone(),
        None => config.data_kind().to_string(),
    };
    let validation_rows = config.validation_rows(&data.train, &partition)?;
    let train_targets = data.train.targets.clone();
    let train = Table::new(data.train, &data.normalisation).weighted(class_weights.as_deref());
    let clients = shards.len();
    let initial = first_particles(&*model, algorithm.particles(), (&train, &shards), streams, &session)?;

    // The algorithm's halves, over a fleet of clients.
    let (roster, here) = all_here(shards.into_iter().map(|rows| Shard::new(train.clone(), rows, session.clone())));
    let build = |here| algorithm.build(config.setup(&model, (&roster, here), train.width(), initial.clone(), &session));
    let (server, mut fleet) = match config.state_budget(can) {
        None => {
            let halves = build(here)?;
            (halves.server, InProcess::new(halves.clients))
        }
        Some(bytes) => {
            let one = |client: ClientId| build(vec![here[client].clone()])?.into_client(client);
            let dir = artifacts.as_deref().map_or_else(client_states, Artifacts::client_states);
            (build(Vec::new())?.server, InProcess::parked(clients, Parking::new(one, dir, bytes)?))
        }
    };

    // The rounds.
    let scoring = config.scoring(algorithm);
    if config.evaluation.personal || calibration.is_some() {
        let held_out = HeldOutRows::new(&train, train_targets, data.test.clone(), &data.normalisation);
        let rows = rows_of_clients(&partition, can.centralised);
        let (model, scale) = (model.clone(), &data.normalisation);
        fleet =
            fleet.with_evaluator(held_out.evaluator(&partition, (rows, corrections), model, &session, scale, scoring));
    }
    let on_rows = |rows| Evaluator::new(model.clone(), session.clone(), rows, &data.normalisation, scoring);
    let (evaluator, validation) = (on_rows(data.test)?, validation_rows.map(on_rows).transpose()?);
    if !B::PARALLEL_CLIENTS {
        observer.note("the first round on a GPU also compiles and tunes kernels; later rounds are faster");
    }
    let fleet = config.fleet(can, fleet, clients, streams);
    on_correlation(&*server, config, || Some(features_together(train.features())))?
        .iter()
        .for_each(|note| observer.note(note));
    observer.started(config.rounds, &headline(config, &name, algorithm.particles(), &partition, clients));
    let policy = config.fault_policy(can).with_nonce(random::nonce());
    let (fleet, judge) = (&*fleet, Judge::new(Place::Here(&evaluator), validation.as_ref().map(Place::Here)));
    let names = ClientNames::new(if can.centralised { Vec::new() } else { partition.names().to_vec() });
    let prepared = Prepared {
        config,
        algorithm,
        schedule,
        server,
        fleet,
        roster: &roster,
        names,
        judge,
        personal: config.evaluation.personal,
        calibration,
        policy,
        session: session.clone(),
    };
    let outcome = prepared.run(observer, artifacts)?;
    observer.finished();
    Ok(outcome)
}

/// Checks what an algorithm of a program's own says of itself.
fn check_own(config: &Config, algorithm: &impl Algorithm) -> Result<(), RunError> {
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
    let metrics = Evaluation::default().columns();
    match algorithm.capabilities().columns.iter().find(|own| metrics.iter().any(|(name, _)| name == *own)) {
        Some(name) => Err(RunError::Config(format!(
            "`Capabilities::columns` has `{name}`, which is a metric in `rounds.csv`; give the column another name"
        ))),
        None => Ok(()),
    }
}

/// The directory of the clients' states of a run without files.
fn client_states() -> PathBuf {
    std::env::temp_dir().join(format!("fedstein-{:016x}", random::nonce()))
}

fn headline(config: &Config, data: &str, particles: usize, partition: &Partition, clients: usize) -> String {
    let rows: usize = partition.clients().iter().map(Vec::len).sum();
    let algorithm = config.algorithm.name();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{}: {algorithm}, {particles} particle{}, {rows} rows of {data} at {clients} client{} ({}), backend {}, seed {}",
        config.name,
        plural(particles),
        plural(clients),
        config.partition_kind(),
        config.backend,
        config.seed
    )
}
