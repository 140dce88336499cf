//! Federations that run in a few milliseconds and record every round.

use std::collections::BTreeMap;
use std::sync::Arc;

use fedstein::array::{Array, Values};
use fedstein::backend::{AnyBackend, Flex, Precision, Session};
use fedstein::checkpoint::codec;
use fedstein::error::RunError;
use fedstein::experiment::Config;
use fedstein::federation::event::{Event, EventKind};
use fedstein::federation::faults::Fault;
use fedstein::federation::fleet::{Fleet, InProcess};
use fedstein::federation::server::{Federation, Round, RoundObserver};
use fedstein::models::Model;
use fedstein::particles::Particles;
use fedstein::protocol::{ClientId, Halves, ServerHalf, Setup};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Shard, Table};
use fedstein::schedule::{Indicators, Schedule, Selection};

use crate::common::{algorithms_that, data, experiment, has_key, needs_plain_steps, partition_of, values};
/// The algorithms whose rows lie at several clients.
pub fn federated() -> Vec<&'static str> {
    algorithms_that(|can| !can.centralised)
}

/// The algorithms whose rows are in one place.
pub fn centralised() -> Vec<&'static str> {
    algorithms_that(|can| can.centralised)
}

/// The algorithms for which a round that loses a client equals one that did not choose it. DSGLD differs: its chains are
/// assigned before a client is lost.
pub fn comparable() -> impl Iterator<Item = &'static str> {
    federated().into_iter().filter(|kind| *kind != "dsgld")
}

pub const K: usize = 10;

/// Sizes at which a run takes milliseconds.
pub const SMALL: [(&str, &str); 5] =
    [("particles", "4"), ("local_steps", "3"), ("distill_steps", "2"), ("server_steps", "2"), ("batch", "8")];

/// A config of ten clients with eight rows each of two classes.
pub fn text(kind: &str, more: &str) -> String {
    let of_kind = |name: &str| has_key(kind, name);
    let keys: String =
        SMALL.iter().filter(|(name, _)| of_kind(name)).map(|(name, value)| format!("{name} = {value}\n")).collect();
    let optimizer = if needs_plain_steps(kind) { "kind = \"sgd\"\nlr = 0.05" } else { "lr = 0.01" };
    let (rounds, clients) =
        if algorithms_that(|can| can.one_client_per_round).contains(&kind) { (2 * K + 1, 1) } else { (5, 5) };
    format!(
        r#"
        name = "faults"
        seed = 5
        rounds = {rounds}
        data = {{ kind = "twonorm", rows = 120, test_fraction = 0.33333 }}
        partition = {{ clients = {K} }}
        model = {{ kind = "bnn", hidden = [3] }}
        schedule = {{ clients = {clients} }}
        [algorithm]
        kind = "{kind}"
        {keys}
        [optimizer]
        {optimizer}
        {more}
        "#
    )
}

pub fn faults(kind: Fault, rest: &str) -> String {
    format!("[faults]\nkinds = [\"{}\"]\n{rest}\n[federation]\ndeadline = 30\n", kind.word())
}

/// A schedule that chooses the clients of a script.
pub struct Script(pub Vec<Vec<ClientId>>);

impl Schedule for Script {
    fn select(&mut self, round: usize, _: Option<&Indicators>) -> Result<Selection, RunError> {
        Ok(self.0[round - 1].clone().into())
    }
}

/// Every round, and the bits of everything that the server would send after it.
#[derive(Default)]
pub struct Log {
    pub rounds: Vec<Round>,
    pub states: Vec<BTreeMap<String, Vec<u64>>>,
    /// What every client keeps after the last round, as the bytes of a checkpoint.
    pub clients: Vec<Vec<u8>>,
    pub failed: Vec<Event>,
}

impl RoundObserver for Log {
    fn round_started(&mut self, _: usize, _: &[usize]) {}

    fn round_ended(&mut self, round: Round, server: &dyn ServerHalf, _: &dyn Schedule) -> Result<(), RunError> {
        self.states.push(state(server));
        self.rounds.push(round);
        Ok(())
    }

    fn run_failed(&mut self, events: &[Event]) -> Result<(), RunError> {
        self.failed = events.to_vec();
        Ok(())
    }
}

/// What the server publishes, and its particles, to the bit.
pub fn state(server: &dyn ServerHalf) -> BTreeMap<String, Vec<u64>> {
    let to_bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<u64>>();
    let message = server.publish().unwrap();
    let arrays = message.arrays.into_iter().map(|(name, array)| (name, to_bits(array.values.to_f64())));
    let mut state: BTreeMap<_, _> = arrays.collect();
    state.insert("predicts with".into(), to_bits(values(server.particles())));
    state
}

impl Log {
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.rounds.iter().flat_map(|round| &round.events)
    }

    pub fn count(&self, what: EventKind) -> usize {
        self.events().filter(|event| event.kind == what).count()
    }

    pub fn used(&self) -> Vec<Vec<ClientId>> {
        self.rounds.iter().map(|round| round.used.clone()).collect()
    }

    pub fn last(&self) -> Vec<f64> {
        self.states.last().unwrap()["predicts with"].iter().map(|bits| f64::from_bits(*bits)).collect()
    }

    pub fn assert_finite(&self, what: &str) {
        let numbers = self.states.iter().flat_map(BTreeMap::values).flatten();
        assert!(numbers.map(|bits| f64::from_bits(*bits)).all(f64::is_finite), "{what}");
    }
}

/// The fleet of a config, with its faults.
pub type Inside = dyn Fleet;

/// A fleet around that of the config.
pub type Around = dyn for<'a> Fn(&'a Inside) -> Box<dyn Fleet + 'a>;

/// Both sides of a config's algorithm.
pub fn halves(text: &str) -> Halves {
    halves_of(text, |_| true)
}

/// The halves of a process in which these clients live. It holds no rows of other clients.
pub fn halves_of(text: &str, is_here: impl Fn(ClientId) -> bool) -> Halves {
    let config = experiment(text).config;
    let (streams, session) = (Streams::new(config.seed), Session::open::<Flex>(Precision::F32).unwrap());
    let all = data(&config);
    let model: Arc<dyn Model> = config.model(&all.train).unwrap();
    let algorithm = config.algorithm.clone();
    let rows = rows(&config);
    let held = rows.iter().enumerate().filter(|(client, _)| is_here(*client));
    let train: Vec<usize> = held.clone().flat_map(|(_, rows)| rows.iter().copied()).collect();
    let train = Table::new(all.train.select(&train), &all.normalisation);
    let mut end = 0;
    let here = held.map(|(client, rows)| {
        let own = end..end + rows.len();
        end = own.end;
        (client, Shard::new(train.clone(), own.collect(), session.clone()))
    });
    let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
    let count = algorithm.particles();
    let initial: Vec<f64> = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    let initial = Array { shape: vec![count, model.layout().dim()], values: Values::F64(initial) };
    algorithm
        .build(Setup {
            model: model.clone(),
            roster: rows.iter().map(Vec::len).collect(),
            here: here.collect(),
            width: train.width(),
            initial: Particles::from_array(&initial, model.layout(), &session).unwrap(),
            session: session.clone(),
            streams,
            svgd: config.svgd(),
            reset_optimizer: config.reset_optimizer(),
            personal: config.evaluation.personal,
            robust: config.robust_barycenter(),
        })
        .unwrap()
}

/// The rows of every client.
pub fn rows(config: &Config) -> Vec<Vec<usize>> {
    match config.algorithm.capabilities().centralised {
        true => vec![partition_of(config).pooled(data(config).train.rows())],
        false => partition_of(config).clients().to_vec(),
    }
}

/// Runs a config to its end, or to its failure; a script takes the schedule's place.
pub fn serve(text: &str, script: Option<Vec<Vec<ClientId>>>) -> (Log, Result<(), RunError>) {
    serve_over(text, script, None)
}

/// The same, over a fleet around that of the config.
pub fn serve_over(
    text: &str,
    script: Option<Vec<Vec<ClientId>>>,
    around: Option<&Around>,
) -> (Log, Result<(), RunError>) {
    serve_halves(text, halves(text), script, around)
}

/// The same, with these halves of the config's algorithm.
pub fn serve_halves(
    text: &str,
    halves: Halves,
    script: Option<Vec<Vec<ClientId>>>,
    around: Option<&Around>,
) -> (Log, Result<(), RunError>) {
    serve_fleet(text, (halves.server, InProcess::new(halves.clients, AnyBackend::of::<Flex>())), script, around)
}

/// The same, with this server and this fleet.
pub fn serve_fleet(
    text: &str,
    (mut server, fleet): (Box<dyn ServerHalf>, InProcess<'static>),
    script: Option<Vec<Vec<ClientId>>>,
    around: Option<&Around>,
) -> (Log, Result<(), RunError>) {
    let config = experiment(text).config;
    let (streams, session) = (Streams::new(config.seed), Session::open::<Flex>(Precision::F32).unwrap());
    let counts: Vec<usize> = rows(&config).iter().map(Vec::len).collect();
    let clients = counts.len();
    let mut schedule = config.schedule(&*config.algorithm, clients, streams);
    if let Some(script) = script {
        schedule = Box::new(Script(script));
    }
    let fleet = config.fleet(config.algorithm.capabilities(), fleet, clients, streams);
    let (server, schedule, policy) =
        (&mut *server, &mut *schedule, &mut config.fault_policy(config.algorithm.capabilities(), 1));
    let mut log = Log::default();
    let outside = around.map(|around| around(&*fleet));
    let fleet_outside: &dyn Fleet = outside.as_deref().unwrap_or(&*fleet);
    let (diagnosis, rows) = (config.diagnosis(), &*counts);
    let mut federation = Federation { server, schedule, fleet: fleet_outside, rows, diagnosis, policy, session };
    let end = federation.serve(1..=config.rounds, &|_, _| {}, &mut log);
    log.clients = (0..clients).map(|client| codec::encode(&fleet.save(client).unwrap()).unwrap()).collect();
    (log, end)
}

pub fn works(text: &str) -> Log {
    let (log, end) = serve(text, None);
    end.unwrap();
    log
}
