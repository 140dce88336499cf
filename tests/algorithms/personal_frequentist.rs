//! FedProx, SCAFFOLD, FedPer, Per-FedAvg and pFedMe: their messages, states and predictions, and that they learn other
//! models too.

use std::sync::Arc;

use crate::common::{bits, data, experiment, outcome, values};
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::Targets;
use fedstein::error::RunError;
use fedstein::experiment::{Config, Experiment};
use fedstein::federation::validate::validate;
use fedstein::models::{Layout, Model};
use fedstein::particles::Particles;
use fedstein::protocol::{Ask, Halves, Message, Predictor, Reply, Request, STEP_FACTOR, Scoring, Setup, all_here};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Shard, Table};

pub(crate) const SEED: u64 = 11;
/// Rows of the clients: the first has fewer than a minibatch.
pub(crate) const ROWS: [usize; 3] = [5, 12, 20];
pub(crate) const BATCH: usize = 8;
pub(crate) const LR: f64 = 0.3;

/// Every method, with constants for which each of its terms matters.
pub(crate) const METHODS: [(&str, &str); 5] = [
    ("fedprox", "proximal = 0.7"),
    ("scaffold", "server_lr = 0.6"),
    ("fedper", "personal_layers = 1"),
    ("per-fedavg", "inner_lr = 0.4"),
    ("pfedme", "inner_steps = 3\ninner_lr = 0.2\nproximal = 1.5\nserver_mix = 0.6"),
];

/// `[algorithm]` of a method with L steps.
pub(crate) fn algorithm((kind, keys): (&str, &str), steps: usize) -> String {
    format!("kind = \"{kind}\"\nlocal_steps = {steps}\nbatch = {BATCH}\nlikelihood_scale = \"mean\"\n{keys}")
}

/// A config on 37 rows, in f64.
fn text(data: &str, model: &str, algorithm: &str) -> String {
    format!(
        r#"
        name = "few-rows"
        seed = {SEED}
        rounds = 3
        precision = "f64"
        [data]
        kind = "{data}"
        train_limit = 37
        test_limit = 20
        [partition]
        clients = 3
        [model]
        {model}
        [algorithm]
        {algorithm}
        [schedule]
        kind = "random"
        clients = 2
        [optimizer]
        kind = "sgd"
        lr = {LR}
        "#
    )
}

/// Digits and a network 64-4-10.
pub(crate) fn digits(algorithm: &str) -> String {
    text("digits", "kind = \"bnn\"\nhidden = [4]", algorithm)
}

/// The server and the clients of a configuration, driven by the test, which chooses the clients of each round.
pub(crate) struct Federation {
    model: Arc<dyn Model>,
    table: Table,
    session: Session,
    pub(crate) start: Vec<f64>,
    halves: Halves,
}

impl Federation {
    pub(crate) fn of(algorithm: &str) -> Self {
        Self::on(&digits(algorithm), None)
    }

    /// The same with the caller's model instead of the configuration's.
    pub(crate) fn on(text: &str, model: Option<Arc<dyn Model>>) -> Self {
        Self::try_new(experiment(text).config, model, |targets| targets).unwrap()
    }

    /// `targets` may change what is to be learnt.
    fn try_new(
        config: Config,
        model: Option<Arc<dyn Model>>,
        targets: impl Fn(Targets) -> Targets,
    ) -> Result<Self, RunError> {
        let mut data = data(&config);
        data.train.targets = targets(data.train.targets);
        let model = model.unwrap_or_else(|| config.model(&data.train).unwrap());
        let table = Table::new(data.train, &data.normalisation);
        let session = Session::open::<Flex>(Precision::F64).unwrap();
        let streams = Streams::new(SEED);
        let start = model.initial(&mut streams.rng(Purpose::InitialParticles, 0, 0));
        let shard = |client| Shard::new(table.clone(), rows_of(client).collect(), session.clone());
        let (roster, here) = all_here((0..ROWS.len()).map(shard));
        let halves = config.algorithm.build(Setup {
            model: model.clone(),
            roster,
            here,
            width: table.width(),
            initial: upload(&start, model.layout(), &session),
            session: session.clone(),
            streams,
            svgd: config.svgd(),
            reset_optimizer: config.reset_optimizer(),
            personal: config.evaluation.personal,
            robust: config.robust_barycenter(),
        })?;
        Ok(Self { model, table, session, start, halves })
    }

    /// The request to a client.
    pub(crate) fn request(&self, round: usize, client: usize) -> Request {
        Request::new(round, client, Ask::Train, self.halves.server.configure(round).unwrap())
    }

    /// A round with these clients; their replies as the server sees them.
    pub(crate) fn round(&mut self, round: usize, clients: &[usize]) -> Vec<Message> {
        self.scaled_round(round, clients, 1.0)
    }

    /// The same with a factor on the step size of the round.
    pub(crate) fn scaled_round(&mut self, round: usize, clients: &[usize], factor: f64) -> Vec<Message> {
        self.halves.server.set_step_factor(factor);
        self.halves.server.begin(round, clients).unwrap();
        let request = |client: &usize| {
            let message = self.halves.server.configure(round).unwrap();
            let message = if factor == 1.0 { message } else { message.with_scalar(STEP_FACTOR, factor) };
            Request::new(round, *client, Ask::Train, message)
        };
        let requests: Vec<Request> = clients.iter().map(request).collect();
        let answer = |request: &Request| {
            let message = self.halves.clients[request.client].1.handle(request, &|_, _| {}).unwrap();
            validate(request, request.reply(message)).unwrap()
        };
        let replies: Vec<Reply> = requests.iter().map(answer).collect();
        let messages = replies.iter().map(|reply| reply.message.clone()).collect();
        self.halves.server.aggregate(replies).unwrap();
        messages
    }

    /// The parameters Θ at the server.
    pub(crate) fn theta(&self) -> Vec<f64> {
        values(self.halves.server.particles())
    }

    /// The parameters with which a client predicts; `None` where they are those that the server published.
    pub(crate) fn predictor(&mut self, client: usize) -> Option<Vec<f64>> {
        let message = self.halves.server.publish().unwrap();
        let request = Request::new(1, client, Ask::Score(Scoring::default()), message);
        match self.halves.clients[client].1.predictor(&request).unwrap() {
            Predictor::Published => None,
            Predictor::Own(particles) => Some(values(&particles)),
            Predictor::Rows(_) => panic!("none of these methods predicts so"),
        }
    }

    /// ∇L̄(θ) over some rows of a client, by their positions at it.
    pub(crate) fn gradient(&self, client: usize, positions: &[usize], theta: &[f64]) -> Vec<f64> {
        let rows = rows_of(client);
        let batch = self.table.batch(positions.iter().map(|position| rows.start + position), &self.session);
        let at = upload(theta, self.model.layout(), &self.session);
        let blocks = self.model.likelihood_score(at.blocks(), &batch, -1.0 / positions.len() as f64);
        blocks.into_iter().flat_map(|block| block.try_into_vec_as::<f64>().unwrap()).collect()
    }

    /// L̄(θ) over all rows of a client.
    fn loss(&self, client: usize, theta: &[f64]) -> f64 {
        let at = upload(theta, self.model.layout(), &self.session);
        let batch = self.table.batch(rows_of(client), &self.session);
        let sum = self.model.log_likelihood(at.blocks(), &batch).try_into_vec_as::<f64>().unwrap();
        -sum[0] / ROWS[client] as f64
    }

    /// Coordinates of the layers below the last.
    pub(crate) fn base_dim(&self) -> usize {
        let last = self.model.layout().blocks().iter().rev().find(|block| block.name.ends_with("weight"));
        last.unwrap().offset
    }
}

/// The rows of the table that a client holds.
fn rows_of(client: usize) -> std::ops::Range<usize> {
    let before: usize = ROWS[..client].iter().sum();
    before..before + ROWS[client]
}

fn upload(theta: &[f64], layout: &Arc<Layout>, session: &Session) -> Particles {
    let array = Array { shape: vec![1, theta.len()], values: Values::F64(theta.to_vec()) };
    Particles::from_array(&array, layout, session).unwrap()
}

pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The participants of three rounds; every client is absent once and returns.
pub(crate) const VISITS: [&[usize]; 3] = [&[0, 2], &[1, 2], &[2, 0, 1]];

// --------------------------------------------------------------------------------------------- messages and states

#[test]
fn the_bytes_of_a_visit_are_those_of_the_table() {
    // Arrays per client and way; f64.
    for (method, factor) in METHODS.into_iter().zip([1, 2, 0, 1, 1]) {
        let mut fed = Federation::of(&algorithm(method, 1));
        let numbers = if method.0 == "fedper" { fed.base_dim() } else { factor * fed.start.len() };
        assert_eq!(fed.request(1, 0).message.bytes(), 8 * numbers as u64, "{} down", method.0);
        assert_eq!(fed.round(1, &[0])[0].bytes(), 8 * numbers as u64, "{} up", method.0);
    }
}

#[test]
fn before_its_first_visit_a_client_predicts_with_the_shared_parameters() {
    for method in METHODS {
        let mut fed = Federation::of(&algorithm(method, 1));
        let start = fed.start.clone();
        let got = fed.predictor(1);
        match method.0 {
            "fedper" => assert_eq!(got, Some(start), "the published base under the initial head"),
            "per-fedavg" => assert!(distance(&got.unwrap(), &start) > 1e-3, "one step is due without training"),
            kind => assert_eq!(got, None, "{kind}"),
        }
    }
}

#[test]
fn building_a_predictor_changes_nothing() {
    for method in METHODS {
        let after = |asked: usize| {
            let mut fed = Federation::of(&algorithm(method, 3));
            for (round, clients) in VISITS.iter().enumerate() {
                (0..asked).for_each(|_| (0..ROWS.len()).for_each(|client| drop(fed.predictor(client))));
                fed.round(round + 1, clients);
            }
            (fed.theta(), fed.predictor(0), fed.predictor(1))
        };
        assert!(after(0) == after(2), "{}: the question has left a trace", method.0);
    }
}

#[test]
fn a_visit_that_fails_leaves_client_and_server_as_they_were() {
    // Every visit reads from the first row on, so that the failed one does not shift the reading either.
    let restart = |method| digits(&format!("{}\nminibatch = \"sequential-restart\"", algorithm(method, 3)));
    let adagrad = restart(("fedavg", "")).replace("kind = \"sgd\"", "kind = \"adagrad\"\nreset = \"never\"");
    for text in METHODS.map(restart).into_iter().chain([adagrad]) {
        let kind = experiment(&text).config.algorithm.name().to_owned();
        let after = |fails: bool| {
            let mut fed = Federation::on(&text, None);
            fed.round(1, &[0, 1, 2]);
            if fails {
                let mut request = fed.request(2, 1);
                for array in Arc::make_mut(&mut request.message).arrays.values_mut() {
                    let Values::F64(values) = &mut array.values else { panic!("f64 was asked for") };
                    values[0] = f64::NAN;
                }
                assert!(fed.halves.clients[1].1.handle(&request, &|_, _| {}).is_err(), "{kind}: NaN went through");
            }
            // The server continues with those that answered.
            fed.round(2, &[0, 2]);
            fed.round(3, &[1, 2]);
            (fed.theta(), fed.predictor(1))
        };
        assert!(after(true) == after(false), "{kind}: something has stayed of the failed visit");
    }
}

#[test]
fn a_step_size_too_small_for_a_control_variate_is_refused_by_the_client() {
    // 1/(Lη) overflows: c_k would change at the client, and the server would refuse the reply.
    let text = digits(&algorithm(METHODS[1], 2)).replace("lr = 0.3", "lr = 1e-320");
    let mut fed = Federation::on(&text, None);
    let request = fed.request(1, 0);
    let error = fed.halves.clients[0].1.handle(&request, &|_, _| {}).unwrap_err().to_string();
    assert!(error.contains("control variate") && error.contains("optimizer.lr"), "{error}");
}

#[test]
fn the_same_seed_gives_the_same_bits_with_one_thread_and_two() {
    for method in METHODS {
        let mut experiment = experiment(&digits(&algorithm(method, 3)));
        let run = |experiment: &Experiment, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&outcome(experiment)))
        };
        let once = run(&experiment, 1);
        assert!(once == run(&experiment, 2), "{}: one thread and two differ", method.0);
        experiment.config.seed += 1;
        assert!(once != run(&experiment, 1), "{}: another seed changes nothing", method.0);
    }
}

// ------------------------------------------------------------------------------------------------------- other models

/// Constants small enough for a noise precision of order 10.
const SLOW: [(&str, &str); 5] = [
    ("fedprox", "proximal = 0.1"),
    ("scaffold", "server_lr = 1.0"),
    ("fedper", "personal_layers = 1"),
    ("per-fedavg", "inner_lr = 0.01"),
    ("pfedme", "inner_steps = 3\ninner_lr = 0.01\nproximal = 15.0\nserver_mix = 1.0"),
];

/// The loss of client 2 with its personal predictor, at the start and after 40 rounds.
fn losses(mut fed: Federation) -> (f64, f64) {
    let before = fed.loss(2, &fed.start);
    (1..=40).for_each(|round| drop(fed.round(round, &[0, 1, 2])));
    let own = fed.predictor(2).unwrap_or_else(|| fed.theta());
    (before, fed.loss(2, &own))
}

#[test]
fn regression_is_learnt_too() {
    let digits_as_numbers = |targets: Targets| {
        let Targets::Classes { labels, .. } = targets else { panic!("digits have labels") };
        Targets::Real { values: labels.iter().map(|label| (*label as f64 - 4.5) / 3.0).collect() }
    };
    for method in SLOW {
        let text = digits(&algorithm(method, 5)).replace("lr = 0.3", "lr = 0.01");
        let fed = Federation::try_new(experiment(&text).config, None, digits_as_numbers).unwrap();
        let (before, after) = losses(fed);
        println!("{}: loss {before:.3} → {after:.3}", method.0);
        assert!(after < before - 0.1, "{}: loss {before} → {after}", method.0);
    }
}

#[test]
fn logistic_regression_is_learnt_too() {
    for method in SLOW {
        let text = text("twonorm", "kind = \"blr\"", &algorithm(method, 5)).replace("lr = 0.3", "lr = 0.01");
        let fed = Federation::try_new(experiment(&text).config, None, |targets| targets);
        if method.0 == "fedper" {
            // There is one layer: were it the head, no base would be left to send.
            let error = fed.err().unwrap().to_string();
            assert!(error.contains("personal_layers = 1") && error.contains("the model has 1"), "{error}");
            continue;
        }
        let (before, after) = losses(fed.unwrap());
        println!("{}: loss {before:.3} → {after:.3}", method.0);
        assert!(after < before - 0.1, "{}: loss {before} → {after}", method.0);
    }
}
