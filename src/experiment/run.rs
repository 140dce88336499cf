//! The whole data path on one page: data → clients → rounds → metrics → files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::algorithm::{Posterior, ServerHalf, Setup};
use crate::backend::{Backend, Session};
use crate::datasets::{self, Partition};
use crate::error::RunError;
use crate::federation::event::Event;
use crate::federation::fleet::{Fleet, InProcess};
use crate::federation::message::ClientId;
use crate::federation::server::{Federation, Round, Told};
use crate::federation::shard::{Shard, Table};
use crate::metrics::{Evaluation, PersonalScores};
use crate::models::Model;
use crate::particles::Particles;
use crate::random::{Purpose, Streams};

use super::artifact::Artifacts;
use super::assemble::initial_particles;
use super::config::Config;
use super::diagnosis::{self, Advice};
use super::evaluate::{Evaluator, EvaluatorConfig, Predicted};
use super::personal::{HeldOutRows, Personal, PersonalResults};
use super::progress::Observer;
use super::record::RoundRecord;

/// What is to be run.
#[derive(Debug)]
pub struct Experiment {
    /// The resolved configuration.
    pub config: Config,
    /// Where data sets lie.
    pub data_dir: PathBuf,
    /// One's own model; `None` builds the one that `[model]` names.
    pub model: Option<Arc<dyn Model>>,
}

/// What came out.
#[derive(Debug)]
pub struct Outcome<B: Backend> {
    /// The global particles after the last round.
    pub particles: Particles<B>,
    /// q, where it is more than these particles.
    pub posterior: Posterior,
    /// What they say about the test rows.
    pub predicted: Predicted,
    /// Their numbers after the last round.
    pub evaluation: Evaluation,
    /// Every client's own predictor, with `evaluation.personal`.
    pub personal: Option<(PersonalResults, PersonalScores)>,
    /// Every round.
    pub rounds: Vec<RoundRecord>,
    /// Seconds from the first round to the last.
    pub seconds: f64,
}

/// Runs an experiment on backend B; files go to `artifacts`, if given, as soon as they exist.
///
/// # Errors
/// Whatever is wrong with data or configuration is found before the first round and before a file is written.
pub fn run<B: Backend>(
    experiment: &Experiment,
    observer: &dyn Observer,
    mut artifacts: Option<&mut Artifacts>,
) -> Result<Outcome<B>, RunError> {
    let config = &experiment.config;
    let streams = Streams::new(config.seed);
    let algorithm = config.algorithm();

    // Data, dealt to the clients.
    let data = datasets::load(&config.data()?, &experiment.data_dir, &mut streams.rng(Purpose::Data, 0, 0))?;
    let dealing = config.partition()?;
    let partition = datasets::partition(&dealing, &data.train, &mut streams.rng(Purpose::Partition, 0, 0))?;
    // A stream of their own: the test rows do not depend on how many numbers the deal took.
    let mut rng = streams.rng(Purpose::Partition, 1, 0);
    let partition = partition.with_tests(&dealing, &data.train, &data.test, &mut rng)?;
    data.notes.iter().for_each(|note| observer.note(note));
    partition.notes.iter().for_each(|note| observer.note(note));
    let shards = if algorithm.is_centralised() {
        vec![partition.pooled(data.train.rows())]
    } else {
        partition.clients().to_vec()
    };

    // A model, and its first particles.
    let model = match &experiment.model {
        Some(model) => model.clone(),
        None => config.model(&data.train)?,
    };
    let session = Session::<B>::open(config.precision)?;
    if let Some(artifacts) = artifacts.as_deref_mut() {
        artifacts.open(config, &data, &partition, &*model, &session)?;
    }
    let train_targets = data.train.targets.clone();
    let train = Table::new(data.train, &data.normalisation);
    let initial = initial_particles(&*model, algorithm.particles(), &train, streams, &session)?;

    // The algorithm's halves over a fleet of clients.
    let clients = shards.len();
    let halves = algorithm.build(Setup {
        model: model.clone(),
        shards: shards.into_iter().map(|rows| Shard::new(train.clone(), rows, session.clone())).collect(),
        initial,
        session: session.clone(),
        streams,
        svgd: config.svgd(),
        reset_optimizer: config.reset_optimizer(),
    })?;
    let mut server = halves.server;
    let mut fleet = InProcess::new(halves.clients);
    let mut schedule = config.schedule(clients, streams);

    // Rounds.
    let scoring = EvaluatorConfig {
        chunk: config.evaluation.chunk,
        bins: config.evaluation.bins,
        kde: config.evaluation_kde(),
        temperature: config.algorithm.temperature(),
    };
    let personal = config.evaluation.personal && !algorithm.is_centralised();
    if personal {
        let held_out = HeldOutRows::new(&train, train_targets, data.test.clone(), &data.normalisation);
        fleet = fleet.with_exam(held_out.exam(&partition, model.clone(), &session, &data.normalisation, scoring));
    }
    let evaluator = Evaluator::new(model, session.clone(), data.test, &data.normalisation, scoring)?;
    if !B::PARALLEL_CLIENTS {
        observer.note("the first round on a GPU also compiles and tunes kernels; later rounds are faster");
    }
    let fleet = config.faulty(fleet, clients, streams);
    observer.started(config.rounds, &headline(config, &partition, clients));
    let start = Instant::now();
    let mut diary = Diary {
        config,
        evaluator: &evaluator,
        fleet: &fleet,
        personal: personal.then(|| Personal::new(clients)),
        observer,
        artifacts,
        start,
        last: 0.0,
        rounds: Vec::new(),
        latest: None,
        visits: vec![0; clients],
        advice: Advice::default(),
    };
    let watch = |done, total| observer.step(done, total);
    let diagnosis = config.diagnosis();
    let (server_half, schedule) = (&mut *server, &mut *schedule);
    let guard = &mut config.guard();
    let mut federation =
        Federation { server: server_half, schedule, fleet: &fleet, clients, diagnosis, guard, session };
    federation.serve(config.rounds, &watch, &mut diary)?;

    // What remains.
    let Diary { rounds, latest, personal, artifacts, .. } = diary;
    let (predicted, evaluation) = latest.ok_or_else(|| RunError::Config("rounds must be at least 1".into()))?;
    let seconds = start.elapsed().as_secs_f64();
    let (particles, posterior) = (server.particles().clone(), server.posterior());
    let personal = personal.and_then(Personal::finish);
    let outcome = Outcome { particles, posterior, predicted, evaluation, personal, rounds, seconds };
    if let Some(artifacts) = artifacts {
        artifacts.finish(&outcome)?;
    }
    observer.finished();
    Ok(outcome)
}

fn headline(config: &Config, partition: &Partition, clients: usize) -> String {
    let rows: usize = partition.clients().iter().map(Vec::len).sum();
    let (algorithm, particles) = (config.algorithm.kind(), config.algorithm.particles());
    let plural = if particles == 1 { "" } else { "s" };
    format!(
        "{}: {algorithm}, {particles} particle{plural}, {rows} rows of {} at {clients} clients ({}), backend {}, seed {}",
        config.name,
        config.data_kind(),
        config.partition_kind(),
        config.backend,
        config.seed
    )
}

/// Evaluates and writes down what the loop over rounds tells.
struct Diary<'a, B: Backend> {
    config: &'a Config,
    evaluator: &'a Evaluator<B>,
    fleet: &'a dyn Fleet,
    personal: Option<Personal>,
    observer: &'a dyn Observer,
    artifacts: Option<&'a mut Artifacts>,
    start: Instant,
    last: f64,
    rounds: Vec<RoundRecord>,
    latest: Option<(Predicted, Evaluation)>,
    /// How often each client took part.
    visits: Vec<usize>,
    advice: Advice,
}

impl<B: Backend> Told<B> for Diary<'_, B> {
    fn begins(&mut self, round: usize, clients: &[ClientId]) {
        self.observer.round(round, clients);
    }

    fn ended(&mut self, round: Round, server: &dyn ServerHalf<B>) -> Result<(), RunError> {
        let due = round.round.is_multiple_of(self.config.evaluation.every) || round.round == self.config.rounds;
        let (mut metrics, mut spread) = (Evaluation::default().columns(), None);
        let mut personal = self.personal.as_ref().map(|_| Personal::blank());
        if due {
            let predicted = self.evaluator.predict(server.particles(), &server.posterior())?;
            let evaluation = self.evaluator.evaluate(&predicted)?;
            metrics = evaluation.columns();
            spread = Some(server.particles().spread()?);
            self.latest = Some((predicted, evaluation));
            if let Some(clients) = &mut self.personal {
                personal = Some(clients.score(round.round, self.fleet, server)?);
            }
        }
        metrics.extend(personal.into_iter().flatten());
        metrics.extend(diagnosis::columns(&round, spread));
        self.advice.on(&round, server.particles().count()).iter().for_each(|note| self.observer.note(note));
        for (client, reason) in &round.rejected {
            self.observer.note(&format!("round {}: client {client} was left out: {reason}", round.round));
        }
        if let Some(artifacts) = self.artifacts.as_deref_mut() {
            artifacts.events(&round.events)?;
        }
        round.selection.clients.iter().for_each(|client| self.visits[*client] += 1);
        if let (Some(artifacts), Some(line)) =
            (self.artifacts.as_deref_mut(), diagnosis::selection_line(&round, &self.visits))
        {
            artifacts.selection(&line)?;
        }
        let seconds = self.start.elapsed().as_secs_f64();
        let record = RoundRecord {
            round: round.round,
            clients: round.selection.clients,
            metrics,
            uplink_bytes: round.uplink_bytes,
            downlink_bytes: round.downlink_bytes,
            seconds,
            round_seconds: seconds - self.last,
        };
        self.last = seconds;
        if let Some(artifacts) = self.artifacts.as_deref_mut() {
            artifacts.round(&record)?;
        }
        self.observer.finished_round(&record);
        self.rounds.push(record);
        Ok(())
    }

    fn failed(&mut self, events: &[Event]) -> Result<(), RunError> {
        match self.artifacts.as_deref_mut() {
            Some(artifacts) if !self.rounds.is_empty() => artifacts.events(events),
            _ => Ok(()),
        }
    }
}
