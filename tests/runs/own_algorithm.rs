//! A program's own algorithm: its config and the algorithm are of one kind, and its columns are in `rounds.csv`.

use std::path::Path;
use std::sync::Mutex;

use fedstein::algorithm::fedavg::FedAvgConfig;
use fedstein::algorithm::keys::PARTICLE_COUNT;
use fedstein::algorithm::{Algorithm, Capabilities, UnusedKeys};
use fedstein::backend::Flex;
use fedstein::checkpoint::State;
use fedstein::datasets::{Dataset, Normalise, Targets, TrainTest};
use fedstein::error::RunError;
use fedstein::experiment::schema::Kind;
use fedstein::experiment::{
    Artifacts, Config, ConfigLoader, Experiment, Finished, Observer, Overrides, Quiet, Source, run, write_report,
};
use fedstein::particles::Particles;
use fedstein::protocol::{ClientHalf, Halves, Message, Predictor, Reply, Request, ServerHalf, Setup, Watch};
use ndarray::Array2;
use serde::Deserialize;

/// Federated averaging that counts its rounds, and may fail.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(transparent)]
struct Counting(FedAvgConfig);

const KIND: Kind = Kind { name: "counting", about: "Averaging that counts.", keys: FedAvgConfig::KIND.keys };

impl Algorithm for Counting {
    fn kind(&self) -> Kind {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { columns: &["counted"], ..Capabilities::FEDERATED }
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.0.unused_keys()
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        let Halves { server, clients } = self.0.build(setup)?;
        Ok(Halves { server: Box::new(Server { inner: server, counted: 0 }), clients })
    }
}

struct Server {
    inner: Box<dyn ServerHalf>,
    counted: usize,
}

impl ServerHalf for Server {
    fn configure(&self, round: usize) -> Result<Message, RunError> {
        self.inner.configure(round)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        self.counted += 1;
        if self.counted == 3 {
            return Err(RunError::Algorithm("three is enough".into()));
        }
        self.inner.aggregate(replies)
    }

    fn particles(&self) -> &Particles {
        self.inner.particles()
    }

    fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![("counted", self.counted as f64)]
    }

    fn save(&self) -> Result<State, RunError> {
        self.inner.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.inner.restore(state)
    }
}

fn text(kind: &str, rounds: usize) -> String {
    format!(
        "rounds = {rounds}\ndata = {{ kind = \"digits\", train_limit = 100 }}\npartition.clients = 2\n\
         algorithm.kind = \"{kind}\"\nalgorithm.local_steps = 2\nalgorithm.batch = 10"
    )
}

fn experiment(rounds: usize) -> Experiment {
    let loader = ConfigLoader::default().with_algorithm(KIND);
    let source = Source { name: "own", text: &text("counting", rounds) };
    let config = loader.load(source, &Overrides::default()).unwrap().0;
    let algorithm: Counting = config.own_algorithm(KIND).unwrap();
    Experiment::new(config, "data").with_algorithm(algorithm)
}

#[test]
fn nothing_is_said_of_the_kernel_and_the_steps_of_an_own_algorithm() {
    let text = text("counting", 1) + "\nkernel.bandwidth = 0.7\noptimizer.lr = 0.3\nfederation.robust_clip = 2.0";
    let loader = ConfigLoader::default().with_algorithm(KIND);
    let (_, resolved) = loader.load(Source { name: "own", text: &text }, &Overrides::default()).unwrap();
    let [note] = &resolved.notes[..] else { panic!("{:?}", resolved.notes) };
    assert!(note.starts_with("`federation.robust_clip` has no effect"), "{note}");
}

#[test]
fn keys_that_an_own_algorithm_calls_unused_are_told_where_they_were_changed() {
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);
    impl Observer for Notes {
        fn note(&self, note: &str) {
            self.0.lock().unwrap().push(note.to_owned());
        }
    }
    let notes_with = |epochs: &str| {
        let text = text("counting", 1) + epochs;
        let loader = ConfigLoader::default().with_algorithm(KIND);
        let config = loader.load(Source { name: "own", text: &text }, &Overrides::default()).unwrap().0;
        let algorithm: Counting = config.own_algorithm(KIND).unwrap();
        let notes = Notes::default();
        run::<Flex>(&Experiment::new(config, "data").with_algorithm(algorithm), &notes, None).unwrap();
        notes.0.into_inner().unwrap()
    };
    let of_steps =
        |notes: Vec<String>| notes.into_iter().filter(|note| note.contains("local_steps")).collect::<Vec<_>>();
    let [note] = &of_steps(notes_with("\nalgorithm.local_epochs = 1"))[..] else { panic!("not one note") };
    assert!(note.starts_with("`algorithm.local_steps` has no effect: ") && note.contains("local_epochs"), "{note}");
    assert!(of_steps(notes_with("")).is_empty());
}

#[test]
fn the_columns_of_an_own_algorithm_are_in_every_round() {
    let outcome = run::<Flex>(&experiment(2), &Quiet, None).unwrap();
    let counted: Vec<Option<f64>> = outcome.rounds.iter().map(|round| round.metric("counted")).collect();
    assert_eq!(counted, [Some(1.0), Some(2.0)]);
}

#[test]
fn the_error_of_an_own_algorithm_is_in_its_own_words() {
    /// An observer that implements what it needs.
    struct Few;
    impl Observer for Few {}
    let error = run::<Flex>(&experiment(3), &Few, None).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.exit_code()), ("three is enough", 1));
}

#[test]
fn an_algorithm_of_another_kind_than_the_config_says_is_refused() {
    let source = Source { name: "own", text: &text("fedavg", 1) };
    let config = Config::load(source, &Overrides::default()).unwrap().0;
    let error = run::<Flex>(&Experiment { config, ..experiment(1) }, &Quiet, None).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    for words in ["\"fedavg\"", "\"counting\"", "`ConfigLoader::with_algorithm`"] {
        assert!(message.contains(words), "no {words} in {message}");
    }
}

#[test]
fn the_files_of_a_run_name_the_backend_of_its_type_parameter() {
    let text =
        "backend = \"ndarray\"\nrounds = 1\n[data]\ntrain_limit = 60\n[algorithm]\nkind = \"fedavg\"\nlocal_steps = 1";
    let (config, resolved) = Config::load(Source { name: "own", text }, &Overrides::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut artifacts = Artifacts::new(dir.path().join("run"), false, resolved);
    run::<Flex>(&Experiment::new(config, "data"), &Quiet, Some(&mut artifacts)).unwrap();
    let written = std::fs::read_to_string(dir.path().join("run/config.toml")).unwrap();
    assert!(written.contains("backend = \"flex\""), "{written}");
}

#[test]
fn a_client_of_an_own_algorithm_has_no_predictor_outside_the_run() {
    let source = Source { name: "own", text: &text("counting", 2) };
    let (config, resolved) = ConfigLoader::default().with_algorithm(KIND).load(source, &Overrides::default()).unwrap();
    let algorithm: Counting = config.own_algorithm(KIND).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut artifacts = Artifacts::new(dir.path().join("run"), false, resolved);
    let experiment = Experiment::new(config, "data").with_algorithm(algorithm);
    run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    let finished = Finished::open(&dir.path().join("run")).unwrap();
    let error = finished.check_clients(&finished.config().unwrap()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    for words in ["an algorithm of a program's own, `counting`", "`evaluation.personal`", "`Outcome::personal`"] {
        assert!(message.contains(words), "no {words} in {message}");
    }
}

/// A client whose predictor panics.
struct Panicking(Box<dyn ClientHalf>);

impl ClientHalf for Panicking {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        self.0.handle(request, watch)
    }

    fn predictor(&mut self, _: &Request) -> Result<Predictor, RunError> {
        panic!("no predictor for this client")
    }

    fn save(&self) -> Result<State, RunError> {
        self.0.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.0.restore(state)
    }
}

/// Federated averaging with such clients.
#[derive(Clone, Copy, Debug)]
struct WithoutPredictors(Counting);

impl Algorithm for WithoutPredictors {
    fn kind(&self) -> Kind {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { personal: true, ..Capabilities::FEDERATED }
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        let Halves { server, clients } = self.0.0.build(setup)?;
        let panicking = |(id, half)| (id, Box::new(Panicking(half)) as Box<dyn ClientHalf>);
        Ok(Halves { server, clients: clients.into_iter().map(panicking).collect() })
    }
}

#[test]
fn the_words_of_a_predictor_that_panics_are_in_the_error_of_the_run() {
    let text = text("counting", 2) + "\nevaluation.personal = true";
    let source = Source { name: "own", text: &text };
    let config = ConfigLoader::default().with_algorithm(KIND).load(source, &Overrides::default()).unwrap().0;
    let algorithm = WithoutPredictors(config.own_algorithm(KIND).unwrap());
    let error = run::<Flex>(&Experiment::new(config, "data").with_algorithm(algorithm), &Quiet, None).unwrap_err();
    assert!(error.to_string().contains("its computation panicked: no predictor for this client"), "{error}");
}

/// Federated averaging that says something of itself, and whose server may lose its parameters.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    inner: FedAvgConfig,
    columns: &'static [&'static str],
    particles: usize,
    loses: bool,
    /// A number to which the half of client 1 is given.
    second: usize,
    untrained: bool,
}

const WRONG: Kind = Kind { name: "wrong", about: "Averaging with a mistake.", keys: &[PARTICLE_COUNT] };

struct Losing {
    inner: Box<dyn ServerHalf>,
    theta: Particles,
}

impl Algorithm for Wrong {
    fn kind(&self) -> Kind {
        WRONG
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { columns: self.columns, untrained_part: self.untrained, ..Capabilities::FEDERATED }
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        let theta = setup.initial.clone();
        let Halves { server, clients } = self.inner.build(setup)?;
        let clients = clients.into_iter().map(|(id, half)| (if id == 1 { self.second } else { id }, half)).collect();
        match self.loses {
            true => Ok(Halves { server: Box::new(Losing { inner: server, theta }), clients }),
            false => Ok(Halves { server, clients }),
        }
    }
}

impl ServerHalf for Losing {
    fn configure(&self, round: usize) -> Result<Message, RunError> {
        self.inner.configure(round)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        self.inner.aggregate(replies)?;
        self.theta = self.inner.particles().map(|block| block.mul_scalar(f64::NAN));
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.theta
    }

    fn save(&self) -> Result<State, RunError> {
        self.inner.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.inner.restore(state)
    }
}

#[test]
fn what_an_own_algorithm_says_wrongly_of_itself_is_refused_and_lost_parameters_are_an_error_of_their_round() {
    let inner = experiment(1).config.own_algorithm::<Counting>(KIND).unwrap().0;
    let right = Wrong { inner, columns: &["mine"], particles: 1, loses: false, second: 1, untrained: false };
    let error = |wrong: Wrong, keys: &str| {
        let text = "rounds = 2\nevaluation.every = 2\ndata = { kind = \"digits\", train_limit = 100 }\npartition.clients = 2\n\
                    algorithm = { kind = \"wrong\", particles = 1 }\n";
        let loader = ConfigLoader::default().with_algorithm(WRONG);
        let text = &format!("{text}{keys}");
        let config = loader.load(Source { name: "own", text }, &Overrides::default()).unwrap().0;
        let outcome = run::<Flex>(&Experiment::new(config, "data").with_algorithm(wrong), &Quiet, None);
        outcome.err().map(|error| (error.exit_code(), error.to_string()))
    };
    assert_eq!(error(right, ""), None);
    assert_eq!(error(right, "partition.calibration = 0.3"), None);
    let (_, message) = error(Wrong { untrained: true, ..right }, "partition.calibration = 0.3").unwrap();
    assert!(message.contains("of which algorithm kind `wrong` leaves a part untrained"), "{message}");
    for (wrong, code, words) in [
        (Wrong { particles: 2, ..right }, 2, "`algorithm.particles` is 1, and `Algorithm::particles` returns 2"),
        (
            Wrong { columns: &["mine", "nll"], ..right },
            2,
            "`Capabilities::columns` has `nll`, which `rounds.csv` has already",
        ),
        (Wrong { columns: &["round"], ..right }, 2, "has `round`, which"),
        (Wrong { columns: &["evaluation_seconds"], ..right }, 2, "has `evaluation_seconds`, which"),
        (Wrong { columns: &["lr_factor"], ..right }, 2, "has `lr_factor`, which"),
        (Wrong { columns: &["validation_brier"], ..right }, 2, "has `validation_brier`, which"),
        (Wrong { columns: &["rejected"], ..right }, 2, "has `rejected`, which"),
        (Wrong { columns: &["spread"], ..right }, 2, "has `spread`, which"),
        (Wrong { columns: &["mine", "mine"], ..right }, 2, "has `mine`, which"),
        (Wrong { columns: &["mine,too"], ..right }, 2, "the name `mine,too` must be of small letters"),
        (Wrong { columns: &[""], ..right }, 2, "the name `` must be of small letters"),
        (Wrong { second: 0, ..right }, 2, "`Algorithm::build` returned two halves of client 0"),
        (Wrong { second: 2, ..right }, 2, "`Algorithm::build` returned no half of client 1"),
        (Wrong { loses: true, ..right }, 1, "round 1: the server's particle 0 is not finite after the replies"),
    ] {
        let (found, message) = error(wrong, "").unwrap();
        assert!(found == code && message.contains(words), "{found}: {message}");
    }
}

/// Rows of two classes, which a feature tells apart.
fn own_rows() -> TrainTest {
    let features = Array2::from_shape_fn((60, 2), |(row, column)| ((row * (3 + column)) % 7) as f32);
    let labels = (0..60).map(|row| usize::from(features[[row, 0]] > 3.0)).collect();
    let targets = Targets::Classes { labels, names: vec!["no".into(), "yes".into()] };
    let rows = Dataset::new("own", features, targets).unwrap();
    TrainTest::from_rows(rows.clone(), rows, Normalise::Auto).unwrap()
}

/// A finished run of a round on [`own_rows`] in `dir/run`, and its report as JSON.
fn reported(dir: &Path, algorithm: impl Algorithm + 'static) -> (Finished, serde_json::Value) {
    let (data, kind) = (own_rows(), algorithm.kind());
    let text = format!(
        "rounds = 1\npartition.clients = 2\nalgorithm = {{ kind = \"{}\", local_steps = 2, batch = 10 }}",
        kind.name
    );
    let loader = ConfigLoader::default().with_algorithm(kind).with_data(&data);
    let (config, resolved) = loader.load(Source { name: "own", text: &text }, &Overrides::default()).unwrap();
    let path = dir.join("run");
    let mut artifacts = Artifacts::new(path.clone(), false, resolved);
    let experiment = Experiment::new(config, "data").with_data(data).with_algorithm(algorithm);
    run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    write_report(&path, &dir.join("report")).unwrap();
    let report = std::fs::read_to_string(dir.join("report/report.json")).unwrap();
    (Finished::open(&path).unwrap(), serde_json::from_str(&report).unwrap())
}

/// The keys of [`Counting`] as the config has them.
fn averaging() -> FedAvgConfig {
    let text = text("counting", 1);
    let loader = ConfigLoader::default().with_algorithm(KIND);
    let (config, _) = loader.load(Source { name: "own", text: &text }, &Overrides::default()).unwrap();
    config.own_algorithm::<Counting>(KIND).unwrap().0
}

#[test]
fn a_run_with_an_own_algorithm_on_own_rows_has_a_report_and_the_range_of_its_features() {
    let dir = tempfile::tempdir().unwrap();
    let (finished, report) = reported(dir.path(), Counting(averaging()));
    assert!(finished.training_range().is_some());
    assert_ne!(report["verdict"]["kind"], "not judged");
}

/// Federated averaging of which a part is each client's own.
#[derive(Clone, Copy, Debug)]
struct Headless(FedAvgConfig);

impl Algorithm for Headless {
    fn kind(&self) -> Kind {
        Kind { name: "headless", ..KIND }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { personal: true, untrained_part: true, ..Capabilities::FEDERATED }
    }

    fn build(&self, setup: Setup) -> Result<Halves, RunError> {
        self.0.build(setup)
    }
}

#[test]
fn parameters_that_an_own_algorithm_leaves_untrained_are_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    let (finished, report) = reported(dir.path(), Headless(averaging()));
    assert_eq!(report["verdict"]["kind"], "not judged");
    let config = finished.config().unwrap();
    let notes = finished.notes_on_predictions(&config, false);
    assert!(notes.iter().any(|note| note.contains("a part stays untrained")), "{notes:?}");
}
