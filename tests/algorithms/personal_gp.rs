//! pFedGP in a federation: its clients, its server, and what it refuses.

use std::sync::Arc;

use crate::common::{data, experiment, outcome, partition_of, try_run, values};
use crate::gaussian_process::{accuracy, gp, largest};
use fedstein::algorithm::AlgorithmConfig;
use fedstein::algorithm::pfedgp::class_tree::class_tree;
use fedstein::algorithm::pfedgp::classifier::{held, objective};
use fedstein::algorithm::pfedgp::embedding::Embedding;
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::density::LikelihoodScale;
use fedstein::experiment::Experiment;
use fedstein::experiment::config::ModelConfig;
use fedstein::models::{Activation, BnnConfig, Model, Network};
use fedstein::protocol::{Ask, Halves, Message, Predictor, Request, Scoring, Setup, all_here};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Minibatches, Order, Shard, Table};
use ndarray::{Array1, Array2, Axis};

/// Digits at five clients of four classes each, a network 64-24-10.
fn digits(rounds: usize, rest: &str) -> Experiment {
    experiment(&format!(
        r#"
        name = "digits"
        seed = 2
        rounds = {rounds}
        [data]
        kind = "digits"
        [partition]
        kind = "labels-per-client"
        clients = 5
        labels = 4
        [model]
        kind = "bnn"
        hidden = [24]
        [algorithm]
        kind = "pfedgp"
        local_steps = 12
        batch = 60
        inducing_rows = 120
        {rest}
        [optimizer]
        kind = "sgd"
        lr = 0.5
        [schedule]
        kind = "random"
        clients = 3
        "#
    ))
}

/// Numbers of the base 64-24.
const BASE: usize = 64 * 24 + 24;

/// The halves that the run itself would build, and the table of test rows.
fn halves(experiment: &Experiment, rows: Option<Vec<Vec<usize>>>) -> (Halves, Table, Vec<usize>) {
    let config = &experiment.config;
    let (data, partition) = (data(config), partition_of(config));
    let answers = match &data.test.targets {
        fedstein::datasets::Targets::Classes { labels, .. } => labels.clone(),
        other => panic!("digits have classes, not {other:?}"),
    };
    let session = Session::open::<Flex>(config.precision).unwrap();
    let model: Arc<dyn Model> = config.model(&data.train).unwrap();
    let streams = Streams::new(config.seed);
    let flat = Array1::from(model.initial(&mut streams.rng(Purpose::InitialParticles, 0, 0)));
    let initial = crate::common::with_layout(&flat.insert_axis(Axis(0)), model.layout(), &session);
    let train = Table::new(data.train, &data.normalisation);
    let rows = rows.unwrap_or_else(|| partition.clients().to_vec());
    let (roster, here) = all_here(rows.into_iter().map(|rows| Shard::new(train.clone(), rows, session.clone())));
    let setup = Setup {
        model,
        roster,
        here,
        width: train.width(),
        initial,
        session: session.clone(),
        streams,
        svgd: config.svgd(),
        reset_optimizer: config.reset_optimizer(),
        personal: config.evaluation.personal,
        robust: config.robust_barycenter(),
    };
    let halves = config.algorithm.build(setup).unwrap();
    (halves, Table::new(data.test, &data.normalisation), answers)
}

fn request(message: Message, client: usize, ask: Ask) -> Request {
    Request::new(1, client, ask, message)
}

/// Accuracy of every client on the test rows of its own classes, with what the server publishes.
fn personal_accuracy(halves: &mut Halves, test: &Table, answers: &[usize], experiment: &Experiment) -> Vec<f64> {
    let config = &experiment.config;
    let session = Session::open::<Flex>(config.precision).unwrap();
    let train = data(config).train;
    let fedstein::datasets::Targets::Classes { labels, .. } = train.targets else { panic!("classes") };
    let partition = partition_of(config);
    let clients = halves.clients.iter_mut().zip(partition.clients());
    clients
        .map(|((id, client), rows)| {
            let own: Vec<usize> =
                (0..answers.len()).filter(|row| rows.iter().any(|train| labels[*train] == answers[*row])).collect();
            let published = request(halves.server.publish().unwrap(), *id, Ask::Score(Scoring::default()));
            let Predictor::Rows(predict) = client.predictor(&published).unwrap() else {
                panic!("pfedgp predicts rows")
            };
            let output = predict(test.batch(own.iter().copied(), &session).inputs).unwrap();
            assert_eq!(output.dims(), [1, own.len(), 10]);
            let log: Vec<f64> = output.try_into_vec_as::<f32>().unwrap().into_iter().map(f64::from).collect();
            let log = Array2::from_shape_vec((own.len(), 10), log).unwrap();
            for row in log.rows() {
                let total = row.mapv(f64::exp).sum();
                assert!((total - 1.0).abs() < 1e-5, "{total}");
            }
            accuracy(&log, &own.iter().map(|row| answers[*row]).collect::<Vec<_>>())
        })
        .collect()
}

#[test]
fn the_clients_learn_an_embedding_that_separates_their_digits() {
    // One round's accuracy depends on the last bits of the processor's arithmetic by a percent or two: the bound is on
    // the mean of four seeds and five rounds, with minibatches and inducing rows that are nearly all of a client's
    // rows.
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for seed in 1..=4 {
        let mut experiment = digits(1, "");
        experiment.config.seed = seed;
        let AlgorithmConfig::Pfedgp(config) = &mut experiment.config.algorithm else { panic!("pFedGP") };
        (config.local.batch, config.inducing_rows) = (240, 280);
        let (mut halves, test, answers) = halves(&experiment, None);
        first.extend(personal_accuracy(&mut halves, &test, &answers, &experiment));
        for round in 1..=8 {
            let reply = |client: usize, half: &mut Box<dyn fedstein::protocol::ClientHalf>| {
                let request = Request { round, ..request(halves.server.configure(round).unwrap(), client, Ask::Train) };
                request.reply(half.handle(&request, &|_, _| {}).unwrap())
            };
            let replies = halves.clients.iter_mut().map(|(id, half)| reply(*id, half)).collect();
            halves.server.aggregate(replies).unwrap();
            if round > 3 {
                last.extend(personal_accuracy(&mut halves, &test, &answers, &experiment));
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (before, after) = (mean(&first), mean(&last));
    println!("digits: {before:.3} before, {after:.3} in rounds 4 to 8");
    assert!(after > 0.95, "{after}: {last:?}");
    assert!(after > before, "{before}, {after}");
}

#[test]
fn a_step_of_a_client_is_the_slope_of_its_minibatchs_bound_times_the_scale() {
    const LR: f64 = 0.5;
    const BATCH: usize = 12;
    let mut experiment = digits(1, "");
    experiment.config.precision = Precision::F64;
    let ModelConfig::Bnn(network) = &mut experiment.config.model else { panic!("a network") };
    network.activation = Activation::Tanh;
    let rows: Vec<usize> = partition_of(&experiment.config).clients()[0].iter().step_by(9).copied().collect();
    let n = rows.len();
    assert!(n > 2 * BATCH, "{n} rows");

    // The bound of the first minibatch, as a function of the base; the tree is that of all rows at the start.
    let all = data(&experiment.config);
    let fedstein::datasets::Targets::Classes { labels, .. } = &all.train.targets else { panic!("classes") };
    let of_rows = |positions: &[usize]| -> Vec<usize> { positions.iter().map(|at| rows[*at]).collect() };
    let labels_of = |positions: &[usize]| of_rows(positions).iter().map(|row| labels[*row]).collect::<Vec<_>>();
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let model = experiment.config.model(&all.train).unwrap();
    let table = Table::new(all.train.clone(), &all.normalisation);
    let config = gp(8.0, 1.0, 400); // as many updates as the gradient's envelope argument needs
    let positions = {
        let streams = Streams::new(experiment.config.seed);
        Minibatches::new(Order::EpochPermutation, n, BATCH, streams, 0).next_batch().to_vec()
    };
    let unit = |theta: &[f64], positions: &[usize]| {
        let theta = Array2::from_shape_vec((1, theta.len()), theta.to_vec()).unwrap();
        let at = crate::common::with_layout(&theta, model.layout(), &session);
        let inputs = table.batch(of_rows(positions).into_iter(), &session).inputs;
        let activations = model.embed(at.blocks(), inputs, 1).unwrap().squeeze_dim::<2>(0);
        let values = activations.try_into_vec_as::<f64>().unwrap();
        Embedding::of(Array2::from_shape_vec((positions.len(), 24), values).unwrap()).unit().clone()
    };
    let whole: Vec<usize> = (0..n).collect();
    let (mut start, mut slopes) = (Vec::new(), Vec::new());
    for (scale, factor) in [
        (LikelihoodScale::Full, n as f64 / BATCH as f64),
        (LikelihoodScale::BatchSum, 1.0),
        (LikelihoodScale::Mean, 1.0 / BATCH as f64),
    ] {
        let AlgorithmConfig::Pfedgp(algorithm) = &mut experiment.config.algorithm else { panic!("pFedGP") };
        (algorithm.local.local_steps, algorithm.local.batch) = (1, BATCH);
        (algorithm.local.likelihood_scale, algorithm.inference_steps) = (scale, config.inference_steps);
        let (mut halves, ..) = halves(&experiment, Some(vec![rows.clone()]));
        if slopes.is_empty() {
            start = values(halves.server.particles());
            let forks = class_tree(&held(&labels_of(&whole)), &unit(&start, &whole), &labels_of(&whole));
            assert_eq!(forks.len(), 3, "four classes");
            let bound = |place: usize, by: f64| {
                let mut theta = start.clone();
                theta[place] += by;
                objective(config, &forks, &unit(&theta, &positions), &labels_of(&positions)).unwrap().0
            };
            slopes = (0..BASE)
                .step_by(61)
                .map(|place| (place, (bound(place, 1e-5) - bound(place, -1e-5)) / 2e-5))
                .collect::<Vec<_>>();
            assert!(largest(slopes.iter().map(|(_, slope)| *slope)) > 0.1, "there must be a slope");
        }
        let sent = halves.server.configure(1).unwrap();
        let reply = halves.clients[0].1.handle(&request(sent, 0, Ask::Train), &|_, _| {}).unwrap();
        let moved = reply.arrays["base"].values.to_f64();
        for (place, slope) in &slopes {
            let (got, want) = ((moved[*place] - start[*place]) / LR, factor * slope);
            // Differences of step h are off by h² = 1e-10 times a third derivative, and by 1e-15/h.
            assert!((got - want).abs() < 1e-6 * factor.max(1.0), "{scale:?}, {place}: {got}, not {want}");
        }
    }
}

#[test]
fn only_the_base_is_sent() {
    let run = outcome(&digits(2, ""));
    for round in &run.rounds {
        assert_eq!((round.downlink_bytes, round.uplink_bytes), (3 * BASE as u64 * 4, 3 * BASE as u64 * 4));
    }
}

#[test]
fn the_server_averages_by_rows() {
    let (mut halves, ..) = halves(&digits(1, ""), None);
    let head = values(halves.server.particles())[BASE..].to_vec();
    let reply = |client: usize, value: f32, rows: f64| {
        let array = Array { shape: vec![1, BASE], values: Values::F32(vec![value; BASE]) };
        request(Message::default(), client, Ask::Train)
            .reply(Message::default().with_array("base", array).with_scalar("rows", rows))
    };
    halves.server.aggregate(vec![reply(0, 1.0, 10.0), reply(1, 5.0, 30.0)]).unwrap();
    let got = values(halves.server.particles());
    // (10·1 + 30·5)/40
    assert!(got[..BASE].iter().all(|value| *value == 4.0));
    assert_eq!(got[BASE..], head, "the head stays");
}

#[test]
fn a_client_of_one_class_returns_the_parameters_unchanged() {
    let experiment = digits(1, "");
    let fedstein::datasets::Targets::Classes { labels, .. } = data(&experiment.config).train.targets else {
        panic!("classes")
    };
    let ones: Vec<usize> = (0..labels.len()).filter(|row| labels[*row] == 1).take(20).collect();
    let (mut halves, ..) = halves(&experiment, Some(vec![ones]));
    let sent = halves.server.configure(1).unwrap();
    let reply = halves.clients[0].1.handle(&request(sent.clone(), 0, Ask::Train), &|_, _| {}).unwrap();
    assert_eq!(reply.arrays, sent.arrays);
    assert_eq!(reply.scalars["rows"], 20.0);
}

#[test]
fn a_request_that_cannot_be_read_leaves_the_client_as_it_was() {
    let experiment = digits(1, "");
    let train = |broken: bool| {
        let (mut halves, ..) = halves(&experiment, None);
        let sent = halves.server.configure(1).unwrap();
        if broken {
            let error =
                halves.clients[0].1.handle(&request(Message::default(), 0, Ask::Train), &|_, _| {}).unwrap_err();
            assert!(error.to_string().contains("\"base\""), "{error}");
        }
        halves.clients[0].1.handle(&request(sent, 0, Ask::Train), &|_, _| {}).unwrap()
    };
    assert_eq!(train(true), train(false));
}

#[test]
fn the_bits_do_not_depend_on_the_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        crate::common::bits(&pool.install(|| outcome(&digits(3, ""))))
    };
    let one = run(1);
    assert!(one == run(2), "one thread and two differ");
    assert!(one != crate::common::bits(&outcome(&digits(1, ""))), "two more rounds change nothing");
}

#[test]
fn a_model_without_an_embedding_is_refused_in_words() {
    let without = |from: &str, to: &str| {
        let text = toml_of(from, to);
        try_run(&experiment(&text)).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let linear = without("hidden = [24]", "hidden = []");
    assert!(linear.contains("algorithm.personal_layers = 1"), "{linear}");
    let many = without("local_steps = 5", "local_steps = 5\npersonal_layers = 2");
    assert!(many.contains("algorithm.personal_layers = 2"), "{many}");
}

/// The config of [`digits`] with something replaced.
fn toml_of(from: &str, to: &str) -> String {
    let text = r#"
        name = "digits"
        [data]
        kind = "digits"
        [model]
        kind = "bnn"
        hidden = [24]
        [algorithm]
        kind = "pfedgp"
        local_steps = 5
    "#;
    assert!(text.contains(from));
    text.replace(from, to)
}

#[test]
fn regression_is_refused_in_words() {
    let text = r#"
        name = "regression"
        [data]
        kind = "twonorm"
        train_limit = 100
        test_limit = 10
        [model]
        kind = "blr"
        [algorithm]
        kind = "pfedgp"
    "#;
    let error = try_run(&experiment(text)).err().unwrap().to_string();
    assert!(error.contains("personal_layers") || error.contains("embedding"), "{error}");
    let real = BnnConfig {
        head: fedstein::models::Head::Real { gamma_shape: 1.0, gamma_rate: 1.0 },
        ..BnnConfig::classifier(20, &[4], 1)
    };
    let network = experiment(&text.replace("kind = \"blr\"", "kind = \"bnn\"\nhidden = [4]"));
    let mut rows = data(&network.config);
    for half in [&mut rows.train, &mut rows.test] {
        half.targets = fedstein::datasets::Targets::Real { values: vec![0.5; half.rows()] };
    }
    let error = try_run(&network.with_data(rows).with_model(Arc::new(Network::new(real)))).err().unwrap().to_string();
    assert!(error.contains("predicts classes"), "{error}");
}
