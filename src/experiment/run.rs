//! The whole data path on one page: data → clients → rounds → metrics → files.

use std::path::PathBuf;

use crate::backend::{AnyBackend, Backend};
use crate::datasets::{ModelCard, Partition, features_together};
use crate::error::RunError;
use crate::federation::fleet::InProcess;
use crate::federation::parked::Parking;
use crate::protocol::{ClientId, all_here};
use crate::random::{self, Streams};
use crate::report::ClientNames;
use crate::rows::{Shard, Table};

use super::artifact::Artifacts;
use super::assemble::{check_size, first_particles};
use super::assigned::{Assigned, assigned};
use super::calibrate::{Plan, rows_of_clients};
use super::client_feature;
use super::config::Config;
use super::description::Experiment;
use super::drive::{Prepared, counted, headline, on_correlation};
use super::evaluate::Evaluator;
use super::outcome::Outcome;
use super::own_model;
use super::personal::{HeldOutRows, note_on_published};
use super::prior_correction;
use super::progress::Observer;
use super::round_evaluator::{RoundEvaluator, RowsAt};
use super::rows_of_run::RowsOfRun;

/// Runs an experiment on backend B, which the run's files name in the place of the config's `backend`. Files go to
/// `artifacts`, if given, as soon as their content exists.
///
/// # Errors
/// Data or configuration are invalid, or the configuration is not the one that `artifacts` describes, which is found before
/// the first round and before a file is written; a round fails; or a file cannot be written.
pub fn run<B: Backend>(
    experiment: &Experiment,
    observer: &dyn Observer,
    artifacts: Option<&mut Artifacts>,
) -> Result<Outcome, RunError> {
    run_on(AnyBackend::of::<B>(), experiment, observer, artifacts)
}

/// As [`run`], on a backend that is chosen at run time, such as the config's: `AnyBackend::named(&config.backend)?`.
///
/// # Errors
/// As [`run`].
pub fn run_on(
    backend: AnyBackend,
    experiment: &Experiment,
    observer: &dyn Observer,
    mut artifacts: Option<&mut Artifacts>,
) -> Result<Outcome, RunError> {
    // The backend that was chosen counts, whatever the key says.
    let config = &Config { backend: backend.name().to_owned(), ..experiment.config.clone() };
    let algorithm = experiment.algorithm();
    let streams = Streams::new(config.seed);
    let can = algorithm.capabilities();
    experiment.check()?;
    artifacts.as_deref().map_or(Ok(()), |artifacts| artifacts.must_be_of(&experiment.config, backend.name()))?;

    // The data, assigned to the clients.
    let Assigned { data, partition, rotation, class_weights, corrections, notes } =
        assigned(config, experiment.data.as_ref(), &experiment.data_dir, streams)?;
    let uncorrected = {
        let counts = partition.counts(&data.train.targets);
        prior_correction::uncorrected(config, can, &counts, client_feature::column(config)?.is_some())
    };
    let card = ModelCard::of(&data.train, data.normalisation.clone());
    let of_event = config.note_on_event(&card).filter(|_| experiment.data.is_none());
    let notes = notes.into_iter().chain(of_event).chain(uncorrected).chain(note_on_published(config, can));
    let notes: Vec<String> = notes.chain(config.own_without_effect(algorithm)).collect();
    notes.iter().for_each(|note| observer.note(note));
    let shards = if can.centralised { vec![partition.pooled(data.train.rows())] } else { partition.clients().to_vec() };

    // The model and its initial particles.
    let session = backend.open(config.precision)?;
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
    let validation_rows = config.validation_rows(&data.train, &partition)?;
    if observer.gives_up() {
        return Err(RunError::Interrupted { round: 0, rounds: config.rounds });
    }
    if let Some(artifacts) = artifacts.as_deref_mut() {
        let rows = RowsOfRun::here(config, &data, &partition, notes).brought_by(experiment, &*model, &session);
        artifacts.open(config, algorithm, rows, rotation.as_ref(), &*model, &session)?;
        artifacts.warning().iter().for_each(|warning| observer.note(warning));
    }
    let (train_targets, train_groups) = (data.train.targets.clone(), data.train.groups.clone());
    let train = Table::new(data.train, &data.normalisation).weighted(class_weights.as_deref());
    let clients = shards.len();
    let initial = first_particles(&*model, algorithm.particles(), (&train, &shards), streams, &session)?;

    // The algorithm's halves, over a fleet of clients.
    let (roster, here) = all_here(shards.into_iter().map(|rows| Shard::new(train.clone(), rows, session.clone())));
    let build = |here| algorithm.build(config.setup(&model, (&roster, here), train.width(), initial.clone(), &session));
    let (server, mut fleet) = match config.state_budget(can) {
        None => {
            let halves = build(here)?.of_each(clients)?;
            (halves.server, InProcess::new(halves.clients, backend))
        }
        Some(bytes) => {
            let one = |client: ClientId| build(vec![here[client].clone()])?.into_client(client);
            let dir = artifacts.as_deref().map_or_else(client_states, Artifacts::client_states);
            (build(Vec::new())?.server, InProcess::parked(clients, Parking::new(one, dir, bytes)?, backend))
        }
    };

    // The rounds.
    let scoring = config.scoring(algorithm);
    if config.evaluation.personal || calibration.is_some() {
        let train = (train.clone(), train_targets, train_groups);
        let held_out = HeldOutRows::new(train, data.test.clone(), &data.normalisation);
        let rows = rows_of_clients(&partition, can.centralised);
        let (model, scale) = (model.clone(), &data.normalisation);
        fleet =
            fleet.with_evaluator(held_out.evaluator(&partition, (rows, corrections), model, &session, scale, scoring));
    }
    let on_rows = |rows| Evaluator::new(model.clone(), session.clone(), rows, &data.normalisation, scoring);
    let (test, validation) = (on_rows(data.test)?, validation_rows.map(on_rows).transpose()?);
    if !backend.has_parallel_clients() {
        observer.note("the first round on a GPU also compiles and tunes kernels; later rounds are faster");
    }
    let fleet = config.fleet(can, fleet, clients, streams);
    on_correlation(&*server, config, || Some(features_together(train.features())))?
        .iter()
        .for_each(|note| observer.note(note));
    observer.started(config.rounds, &headline(config, algorithm, &in_words(experiment, &partition, clients)));
    let policy = config.fault_policy(can, random::nonce());
    let evaluator = RoundEvaluator::new(RowsAt::Here(&test), validation.as_ref().map(RowsAt::Here));
    let names = ClientNames::new(if can.centralised { Vec::new() } else { partition.names().to_vec() });
    let prepared = Prepared {
        config,
        algorithm,
        schedule,
        server,
        fleet: &*fleet,
        roster: &roster,
        names,
        evaluator,
        calibration,
        policy,
        session: session.clone(),
    };
    let outcome = prepared.run(observer, artifacts)?;
    observer.finished();
    Ok(outcome)
}

/// The directory of the clients' states of a run without files.
fn client_states() -> PathBuf {
    std::env::temp_dir().join(format!("fedstein-{:016x}", random::nonce()))
}

/// The numbers of rows and of clients.
fn in_words(experiment: &Experiment, partition: &Partition, clients: usize) -> String {
    let Experiment { config, data, .. } = experiment;
    let rows: usize = partition.clients().iter().map(Vec::len).sum();
    let name = data.as_ref().map_or(config.data_kind(), |data| data.train.name.as_str());
    format!("{rows} rows of {name} at {} ({})", counted(clients, "client"), config.partition_kind())
}
