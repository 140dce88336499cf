//! FedWBA: the server's barycenter, its effect on a client, and shared layers.

use std::sync::Arc;

use crate::common::{Tolerance, assert_close, bits, data, experiment, outcome, partition_of, try_run, values};
use burn::tensor::Tensor;
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Session};
use fedstein::experiment::config::AlgorithmConfig;
use fedstein::experiment::{Config, Experiment};
use fedstein::federation::validate::validate;
use fedstein::models::{Batch, Layout, Model, Prior, Task};
use fedstein::particles::Particles;
use fedstein::protocol::{Ask, ClientHalves, Message, Predictor, Reply, Request, Scoring, ServerHalf, Setup, all_here};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Shard, Table};
use fedstein::stein::{Score, direction};
use rand::Rng;

/// Digits in a network of 64-8-10, four clients that hold different numbers of rows.
pub(crate) fn digits(algorithm: &str, more: &str) -> Experiment {
    experiment(&format!(
        r#"
        seed = 3
        rounds = 2
        precision = "f64"
        [data]
        kind = "digits"
        train_limit = 211
        test_limit = 50
        [partition]
        kind = "dirichlet"
        clients = 4
        [model]
        hidden = [8]
        [algorithm]
        kind = "fedwba"
        particles = 3
        local_steps = 4
        batch = 20
        {algorithm}
        {more}
        "#
    ))
}

/// The same with N, L and B.
fn sized(mut experiment: Experiment, particles: usize, local_steps: usize, batch: usize) -> Experiment {
    let AlgorithmConfig::Fedwba(config) = &mut experiment.config.algorithm else { panic!("not FedWBA") };
    (config.particles, config.local.local_steps, config.local.batch) = (particles, local_steps, batch);
    experiment
}

/// d of that network, and of its two layers.
pub(crate) const D: usize = 64 * 8 + 8 + 8 * 10 + 10;
pub(crate) const FIRST: usize = 64 * 8 + 8;

/// Sums of some dozen terms of order 1 in f64.
const EXACT: Tolerance = Tolerance { rtol: 1e-11, atol: 1e-12 };

/// Both halves of an experiment, driven by a test.
pub(crate) struct Site {
    pub(crate) server: Box<dyn ServerHalf>,
    clients: ClientHalves,
    model: Arc<dyn Model>,
    initial: Particles,
    shards: Vec<Shard>,
    session: Session,
}

impl Site {
    pub(crate) fn new(experiment: &Experiment) -> Self {
        Self::of(&experiment.config, experiment.model.clone(), |_| true)
    }

    /// The same experiment with these clients only.
    fn of(config: &Config, model: Option<Arc<dyn Model>>, is_there: impl Fn(usize) -> bool) -> Self {
        let (streams, session) = (Streams::new(config.seed), Session::open::<Flex>(config.precision).unwrap());
        let all = data(config);
        let model = model.unwrap_or_else(|| config.model(&all.train).unwrap());
        let table = Table::new(all.train, &all.normalisation);
        let partition = partition_of(config);
        let shards = partition.clients().iter().enumerate().filter(|(client, _)| is_there(*client));
        let shards: Vec<_> = shards.map(|(_, rows)| Shard::new(table.clone(), rows.clone(), session.clone())).collect();
        let (count, d) = (config.algorithm.particles(), model.layout().dim());
        let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
        let rows: Vec<f64> = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
        let array = Array { shape: vec![count, d], values: Values::F64(rows) };
        let initial = Particles::from_array(&array, model.layout(), &session).unwrap();
        let (roster, here) = all_here(shards.clone());
        let setup = Setup {
            model: model.clone(),
            roster,
            here,
            width: table.width(),
            initial: initial.clone(),
            session: session.clone(),
            streams,
            svgd: config.svgd(),
            reset_optimizer: config.reset_optimizer(),
            personal: config.evaluation.personal,
            robust: config.robust_barycenter(),
        };
        let halves = config.algorithm.build(setup).unwrap();
        Self { server: halves.server, clients: halves.clients, model, initial, shards, session }
    }

    fn request(&self, round: usize, client: usize) -> Request {
        Request::new(round, client, Ask::Train, self.server.configure(round).unwrap())
    }

    /// The reply of a client.
    fn visit(&mut self, round: usize, client: usize) -> Reply {
        let request = self.request(round, client);
        let message = self.clients[client].1.handle(&request, &|_, _| {}).unwrap();
        validate(&request, request.reply(message)).unwrap()
    }

    /// A whole round of these clients; their replies.
    fn round(&mut self, round: usize, clients: &[usize]) -> Vec<Reply> {
        let replies: Vec<Reply> = clients.iter().map(|client| self.visit(round, *client)).collect();
        self.server.aggregate(replies.clone()).unwrap();
        replies
    }

    pub(crate) fn global(&self) -> Vec<f64> {
        values(self.server.particles())
    }

    fn rows(&self, client: usize) -> f64 {
        self.shards[client].rows() as f64
    }

    /// ∇ log p of all rows of a client at flat particles.
    fn score(&self, client: usize, at: &[f64]) -> Vec<f64> {
        let shard = &self.shards[client];
        let batch = shard.batch(&(0..shard.rows()).collect::<Vec<_>>());
        let at = self.flat(at, self.model.layout());
        let blocks = self.model.likelihood_score(at.blocks(), &batch, 1.0);
        let score = blocks.into_iter().map(|block| block.try_into_vec_as::<f64>().unwrap());
        // Block by block `[N, size]` into particle by particle.
        let score: Vec<Vec<f64>> = score.collect();
        let count = at.count();
        (0..count)
            .flat_map(|n| score.iter().flat_map(move |block| chunk(block, n, count).to_vec()).collect::<Vec<_>>())
            .collect()
    }

    fn flat(&self, rows: &[f64], layout: &Arc<Layout>) -> Particles {
        let shape = vec![rows.len() / layout.dim(), layout.dim()];
        Particles::from_array(&Array { shape, values: Values::F64(rows.to_vec()) }, layout, &self.session).unwrap()
    }
}

/// Row n of a block `[count, size]`.
fn chunk(block: &[f64], n: usize, count: usize) -> &[f64] {
    let size = block.len() / count;
    &block[n * size..(n + 1) * size]
}

fn sent(reply: &Reply) -> Vec<f64> {
    reply.message.arrays["particles"].values.to_f64()
}

/// The mean particle of a set, `[d]`.
fn mean(set: &[f64], d: usize) -> Vec<f64> {
    let count = (set.len() / d) as f64;
    (0..d).map(|at| set.iter().skip(at).step_by(d).sum::<f64>() / count).collect()
}

fn to_bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

// ------------------------------------------------------------------------------------------------------- the server

#[test]
fn the_barycenter_keeps_the_weighted_mean_of_the_clients_particles() {
    for (over, weights) in [("sampled", "uniform"), ("sampled", "data-size"), ("all", "uniform"), ("all", "data-size")]
    {
        let what = format!("{over}, {weights}");
        let mut site = Site::new(&digits(&format!("over = \"{over}\"\nweights = \"{weights}\""), ""));
        // Those who never trained count with Θ^(0) where the barycenter is over all.
        let mut latest = vec![values(&site.initial); 4];
        for (round, clients) in [(1, &[2, 0][..]), (2, &[1, 2])] {
            for reply in site.round(round, clients) {
                assert_eq!(reply.message.scalars["rows"], site.rows(reply.client));
                latest[reply.client] = sent(&reply);
            }
            let everybody: Vec<usize> = if over == "all" { vec![0, 1, 2, 3] } else { clients.to_vec() };
            let weight = |client: usize| if weights == "uniform" { 1.0 } else { site.rows(client) };
            let total: f64 = everybody.iter().map(|client| weight(*client)).sum();
            let mut want = vec![0.0; D];
            for client in everybody {
                let of_client = mean(&latest[client], D);
                want.iter_mut().zip(of_client).for_each(|(sum, value)| *sum += weight(client) / total * value);
            }
            assert_close(&mean(&site.global(), D), &want, EXACT, &format!("{what}, round {round}"));
        }
    }
    let rows: Vec<f64> = (0..4).map(|client| Site::new(&digits("", "")).rows(client)).collect();
    assert!(rows.iter().any(|count| *count != rows[0]), "equal clients test no weights: {rows:?}");
}

/// The same reply from every client.
fn echoes(site: &Site, particles: &[f64]) -> Vec<Reply> {
    let array = Array { shape: vec![particles.len() / D, D], values: Values::F64(particles.to_vec()) };
    let message = Message::default().with_array("particles", array).with_scalar("rows", 10.0);
    let reply = |client| Request::new(1, client, Ask::Train, Message::default()).reply(message.clone());
    (0..site.clients.len()).map(reply).collect()
}

#[test]
fn equal_replies_are_their_own_barycenter_and_eq_5_as_printed_shrinks_it() {
    let set: Vec<f64> = (0..3 * D).map(|i| (i as f64).sin()).collect();
    for (eq5, factor) in [("N", 1.0), ("paper", 1.0 / 9.0)] {
        for weights in ["uniform", "data-size"] {
            let keys = format!("eq5 = \"{eq5}\"\niterate = \"one-step\"\nweights = \"{weights}\"");
            let mut site = Site::new(&digits(&keys, ""));
            site.server.aggregate(echoes(&site, &set)).unwrap();
            let want: Vec<f64> = set.iter().map(|value| factor * value).collect();
            assert_close(&site.global(), &want, EXACT, eq5);
        }
    }
}

#[test]
fn a_permuted_set_is_matched_and_the_round_reports_it() {
    let mut site = Site::new(&digits("", ""));
    let set: Vec<f64> = (0..3 * D).map(|i| (i as f64).sin()).collect();
    let turned = [&set[D..], &set[..D]].concat();
    let mut replies = echoes(&site, &set);
    replies[3] = echoes(&site, &turned).remove(3);
    site.server.aggregate(replies).unwrap();
    // Three of four clients agree, so that their mean by index is nearest to their order.
    assert_close(&site.global(), &set, EXACT, "barycenter");
    let numbers: std::collections::BTreeMap<_, _> = site.server.numbers().into_iter().collect();
    assert_eq!(numbers["matches_identity"], 0.75);
    assert!(numbers["barycenter_objective"].abs() < 1e-9, "{numbers:?}");
    assert!(numbers["cost_contrast"] > 0.1 && numbers["barycenter_steps"] >= 1.0, "{numbers:?}");
}

#[test]
fn a_round_records_the_servers_diagnostics_and_the_traffic() {
    let run = outcome(&digits("", "[schedule]\nkind = \"random\"\nclients = 2"));
    let bytes = (2 * 3 * D * 8) as u64;
    for round in &run.rounds {
        assert_eq!((round.downlink_bytes, round.uplink_bytes), (bytes, bytes));
        for column in ["matches_identity", "cost_contrast", "barycenter_steps", "barycenter_objective", "kde_ess"] {
            assert!(round.metric(column).is_some_and(|value| value > 0.0), "{column}: {:?}", round.metric(column));
        }
    }
    let single = outcome(&experiment(
        "precision = \"f32\"\ndata = { kind = \"digits\" }\npartition = { clients = 5 }\nrounds = 1\n\
         model = { hidden = [8] }\nschedule = { clients = 3 }\n\
         algorithm = { kind = \"fedwba\", particles = 7, local_steps = 1 }",
    ));
    assert_eq!(single.rounds[0].downlink_bytes, (3 * 7 * D * 4) as u64);
    // Another algorithm has no such numbers.
    let fedavg = outcome(&experiment("rounds = 1\nalgorithm = { kind = \"fedavg\", local_steps = 1 }"));
    assert_eq!(fedavg.rounds[0].metric("cost_contrast"), None);
}

#[test]
fn the_servers_state_grows_only_if_the_barycenter_is_over_all_clients() {
    let set = (3 * D * 8) as u64;
    for (over, kept) in [("sampled", [1, 1, 1]), ("all", [2, 4, 5])] {
        let mut site = Site::new(&digits(&format!("over = \"{over}\""), ""));
        let mut got = vec![site.server.state_bytes() / set];
        for (round, clients) in [(1, &[2, 0][..]), (2, &[1, 3])] {
            site.round(round, clients);
            got.push(site.server.state_bytes() / set);
        }
        assert_eq!(got, kept, "{over}");
    }
}

#[test]
fn a_reply_with_another_number_of_particles_is_refused() {
    let mut site = Site::new(&digits("", ""));
    let (request, mut reply) = (site.request(1, 0), site.visit(1, 0));
    let array = reply.message.arrays.get_mut("particles").unwrap();
    *array = Array { shape: vec![2, D], values: Values::F64(vec![0.0; 2 * D]) };
    let error = validate(&request, reply).unwrap_err().to_string();
    assert!(error.contains("round 1, client 0") && error.contains("[2, 610], not [3, 610]"), "{error}");
}

// ------------------------------------------------------------------------------------------------------- the client

#[test]
fn a_single_particle_maximises_its_likelihood_and_the_global_density() {
    // N = 1: θ ← θ + ε (∇ log p(D_k | θ)/α + clip(ρ (θ̄ − θ)/λ²)), and nothing of p0.
    let (lr, lambda, damping) = (1e-3, 0.4, 0.5);
    for (start, clip, temperature) in [("global", 0.0, 1.0), ("own", 0.0, 2.5), ("own", 1e-4, 1.0)] {
        let keys = format!(
            "start = \"{start}\"\nkde_bandwidth = {lambda}\nkde_damping = {damping}\nkde_clip = {clip:?}\n\
             temperature = {temperature:?}"
        );
        let optimizer = format!("[optimizer]\nkind = \"sgd\"\nlr = {lr}");
        let mut site = Site::new(&sized(digits(&keys, &optimizer), 1, 2, 1000));
        let longest = if clip == 0.0 { f64::INFINITY } else { clip * (D as f64).sqrt() / lambda };
        let mut is_clipped = false;
        let mut own = values(&site.initial);
        for (round, clients) in [(1, &[1, 2][..]), (2, &[0, 1]), (3, &[1, 3])] {
            let global = site.global();
            let replies = site.round(round, clients);
            let mut theta = if start == "global" { global.clone() } else { own };
            for _ in 0..2 {
                let score = site.score(1, &theta);
                let pull: Vec<f64> = (0..D).map(|at| damping * (global[at] - theta[at]) / (lambda * lambda)).collect();
                let length = pull.iter().map(|value| value * value).sum::<f64>().sqrt();
                is_clipped |= length > longest;
                let shrink = if length > longest { longest / length } else { 1.0 };
                theta = (0..D).map(|at| theta[at] + lr * (score[at] / temperature + shrink * pull[at])).collect();
            }
            let reply = replies.iter().find(|reply| reply.client == 1).unwrap();
            assert_close(&sent(reply), &theta, EXACT, &format!("{start}, {clip}, round {round}"));
            own = theta;
        }
        assert_eq!(is_clipped, clip > 0.0);
    }
}

/// A model without a prior of its own.
#[derive(Debug)]
struct Flat {
    inner: Arc<dyn Model>,
    prior: Prior,
}

impl Model for Flat {
    fn layout(&self) -> &Arc<Layout> {
        self.inner.layout()
    }

    fn task(&self) -> Task {
        self.inner.task()
    }

    fn prior(&self) -> &Prior {
        &self.prior
    }

    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64> {
        self.inner.initial(rng)
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        self.inner.likelihood_score(particles, batch, scale)
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        self.inner.log_likelihood(particles, batch)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        self.inner.predict(particles, inputs)
    }

    fn log_noise_precision(&self) -> Option<usize> {
        self.inner.log_noise_precision()
    }
}

#[test]
fn without_density_and_from_its_own_particles_a_client_is_svgd_on_its_rows_to_the_bit() {
    let own = digits("start = \"own\"\nkde = \"off\"", "[optimizer]\nreset = \"never\"");
    let mut federated = Site::new(&own);
    // SVGD on the rows of client 0 in one place; it has p0 in its score, which is taken out of the model here.
    let mut central = digits("", "");
    central.config.algorithm = experiment(
        "algorithm = { kind = \"svgd\", particles = 3, local_steps = 4, batch = 20 }\nmodel = { hidden = [8] }",
    )
    .config
    .algorithm;
    let inner = central.config.model(&data(&central.config).train).unwrap();
    let flat: Arc<dyn Model> = Arc::new(Flat { inner, prior: Prior::default() });
    let mut alone = Site::of(&central.config, Some(flat), |client| client == 0);
    for (round, clients) in [(1, &[0, 1, 2][..]), (2, &[3, 0]), (3, &[2, 0, 1])] {
        let replies = federated.round(round, clients);
        let reply = replies.iter().find(|reply| reply.client == 0).unwrap();
        alone.round(round, &[0]);
        assert!(to_bits(&sent(reply)) == to_bits(&alone.global()), "round {round}");
    }
}

#[test]
fn the_public_codes_density_has_no_effect_on_a_network() {
    // Its factor is 0 beyond some 500 dimensions, so that the barycenter never reaches a client.
    let run = |kde: &str| bits(&outcome(&digits(&format!("start = \"own\"\nkde = \"{kde}\""), "")));
    assert!(run("reference") == run("off"));
    assert!(run("exact") != run("off"));
    // With a start at the global particles it does reach it.
    let starting = |start: &str| bits(&outcome(&digits(&format!("start = \"{start}\"\nkde = \"off\""), "")));
    assert!(starting("global") != starting("own"));
}

#[test]
fn a_client_predicts_with_its_own_particles_once_it_has_trained() {
    let mut site = Site::new(&digits("", ""));
    let replies = site.round(1, &[1, 2]);
    let message = site.server.publish().unwrap();
    assert_eq!(message.arrays["particles"].values.to_f64(), site.global());
    let request = |client| Request::new(1, client, Ask::Score(Scoring::default()), message.clone());
    for client in 0..4 {
        let predictor = site.clients[client].1.predictor(&request(client)).unwrap();
        match (replies.iter().find(|reply| reply.client == client), predictor) {
            (Some(reply), Predictor::Own(own)) => assert!(to_bits(&values(&own)) == to_bits(&sent(reply))),
            (None, Predictor::Published) => {}
            _ => panic!("client {client} predicts with something else"),
        }
    }
}

#[test]
fn a_visit_that_fails_leaves_the_client_as_it_was() {
    let keys = "start = \"own\"\nminibatch = \"sequential-restart\"";
    for reset in ["never", "per-visit"] {
        let of = || Site::new(&digits(keys, &format!("[optimizer]\nreset = \"{reset}\"")));
        let (mut hurt, mut unhurt) = (of(), of());
        let first = sent(&hurt.visit(1, 0));
        unhurt.visit(1, 0);
        let mut request = hurt.request(2, 0);
        for array in Arc::make_mut(&mut request.message).arrays.values_mut() {
            array.values = Values::F64(vec![1e300; array.values.len()]);
        }
        let error = hurt.clients[0].1.handle(&request, &|_, _| {}).unwrap_err().to_string();
        assert!(error.contains("the score of particle 0 has norm"), "{error}");
        let Predictor::Own(own) = hurt.clients[0].1.predictor(&request).unwrap() else { panic!("it has trained") };
        assert!(to_bits(&values(&own)) == to_bits(&first));
        assert!(to_bits(&sent(&hurt.visit(3, 0))) == to_bits(&sent(&unhurt.visit(3, 0))), "{reset}");
    }
}

#[test]
fn a_client_that_diverges_is_left_out_and_the_round_continues() {
    let dir = tempfile::tempdir().unwrap();
    let run = |scheduled: usize| {
        // Client 2 holds features beyond what a network in f32 can square.
        let scale = |client: usize| if client == 2 { 1e30 } else { 1.0 };
        let row = |i: usize| {
            let (client, x) = (i % 3, (i as f64).sin());
            format!("{client},{:e},{:e},{}\n", scale(client) * x, scale(client) * x * x, ["no", "yes"][(i / 3) % 2])
        };
        let path = dir.path().join("rows.csv");
        std::fs::write(&path, format!("client,a,b,label\n{}", (0..60).map(row).collect::<String>())).unwrap();
        let text = format!(
            "rounds = 1\ndata = {{ kind = \"csv\", path = {path:?}, target = \"label\", client_column = \"client\", \
             normalise = \"none\" }}\npartition = {{ kind = \"by-column\" }}\nmodel = {{ hidden = [3] }}\n\
             algorithm = {{ kind = \"fedwba\", particles = 3, local_steps = 3 }}\n\
             schedule = {{ kind = \"round-robin\", clients = {scheduled} }}"
        );
        outcome(&experiment(&text))
    };
    let (with, without) = (run(3), run(2));
    // A round names the clients whose replies counted.
    assert_eq!(with.rounds[0].clients, [0, 1]);
    assert!(bits(&with) == bits(&without));
    // The request to client 2 counts as traffic.
    assert!(with.rounds[0].downlink_bytes > without.rounds[0].downlink_bytes);
    assert_eq!(with.rounds[0].uplink_bytes, without.rounds[0].uplink_bytes);
}

// ---------------------------------------------------------------------------------------------------- shared layers

#[test]
fn shared_layers_move_along_the_mean_score_and_bayesian_ones_by_svgd_among_themselves() {
    let lr = 1e-3;
    let optimizer = format!("[optimizer]\nkind = \"sgd\"\nlr = {lr}");
    let experiment = sized(digits("shared_layers = [1]\nkde = \"off\"", &optimizer), 3, 1, 1000);
    let svgd = experiment.config.svgd();
    let mut site = Site::new(&experiment);
    // Θ^(0): the first particle's layer 1 for all, every particle's own layer 2.
    let drawn = values(&site.initial);
    let start: Vec<f64> = (0..3).flat_map(|n| [&drawn[..FIRST], &drawn[n * D + FIRST..(n + 1) * D]].concat()).collect();
    assert_eq!(site.global(), start);
    let replies = site.round(1, &[0, 1, 3]);
    for reply in &replies {
        let score = site.score(reply.client, &start);
        let mean_score = mean(&score, D);
        let shared: Vec<f64> = (0..FIRST).map(|at| start[at] + lr * mean_score[at]).collect();
        assert_close(&reply.message.arrays["shared"].values.to_f64(), &shared, EXACT, "shared layer");

        let head = Arc::new(Layout::new([("weight", &[8, 10][..]), ("bias", &[10])]));
        let second = |all: &[f64]| -> Vec<f64> { all.chunks_exact(D).flat_map(|one| one[FIRST..].to_vec()).collect() };
        let theta = site.flat(&second(&start), &head);
        let phi = direction(&svgd.kernel, &theta, Score::dense(site.flat(&second(&score), &head))).unwrap();
        let phi = phi.evaluate(&theta);
        let moved: Vec<f64> = second(&start).iter().zip(values(&phi)).map(|(at, phi)| at + lr * phi).collect();
        assert_close(&sent(reply), &moved, EXACT, "Bayesian layer");
        assert_eq!(reply.message.bytes(), (8 * (3 * (D - FIRST) + FIRST)) as u64);
    }
    // The server averages the shared layer; every particle holds it.
    let global = site.global();
    let shared: Vec<Vec<f64>> = replies.iter().map(|reply| reply.message.arrays["shared"].values.to_f64()).collect();
    let want: Vec<f64> = (0..FIRST).map(|at| shared.iter().map(|one| one[at]).sum::<f64>() / 3.0).collect();
    for particle in global.chunks_exact(D) {
        assert_close(&particle[..FIRST], &want, EXACT, "mean of the shared layer");
    }
    // A client's predictor holds it, too.
    let published = Request::new(1, 3, Ask::Score(Scoring::default()), site.server.publish().unwrap());
    let Predictor::Own(own) = site.clients[3].1.predictor(&published).unwrap() else { panic!("it has trained") };
    for (n, particle) in values(&own).chunks_exact(D).enumerate() {
        assert_eq!(particle[..FIRST], shared[2]);
        assert_eq!(particle[FIRST..], sent(&replies[2])[n * (D - FIRST)..(n + 1) * (D - FIRST)]);
    }
}

#[test]
fn a_shared_layer_is_averaged_with_the_clients_weights_and_sent_once() {
    let mut site = Site::new(&digits("shared_layers = [2]\nweights = \"data-size\"\nover = \"all\"", ""));
    let shared_of = |reply: &Reply| reply.message.arrays["shared"].values.to_f64();
    let replies = site.round(1, &[3, 1]);
    let (mut total, mut want) = (0.0, vec![0.0; D - FIRST]);
    for client in 0..4 {
        let shared = match replies.iter().find(|reply| reply.client == client) {
            Some(reply) => shared_of(reply),
            None => values(&site.initial)[FIRST..D].to_vec(),
        };
        total += site.rows(client);
        want.iter_mut().zip(shared).for_each(|(sum, value)| *sum += site.rows(client) * value);
    }
    want.iter_mut().for_each(|sum| *sum /= total);
    assert_close(&site.global()[FIRST..D], &want, EXACT, "weighted mean");
    let run = outcome(&digits("shared_layers = [2]", "[schedule]\nclients = 3"));
    assert_eq!(run.rounds[0].uplink_bytes, (3 * 8 * (3 * FIRST + D - FIRST)) as u64);
    assert_eq!(run.rounds[0].downlink_bytes, run.rounds[0].uplink_bytes);
    assert!(run.rounds[1].metric("kde_ess").is_some());
}

#[test]
fn with_all_layers_shared_there_is_one_network_without_a_density() {
    let shared = outcome(&digits("shared_layers = [1, 2]", "[schedule]\nclients = 3"));
    let one = outcome(&sized(digits("kde = \"off\"", "[schedule]\nclients = 3"), 1, 4, 20));
    assert!(bits(&shared) == bits(&one));
    assert_eq!(shared.rounds[0].uplink_bytes, (3 * 8 * D) as u64);
    assert_eq!(shared.rounds[0].metric("kde_ess"), None);
}

#[test]
fn a_layer_that_does_not_exist_is_refused() {
    let error = try_run(&digits("shared_layers = [1, 3]", "")).unwrap_err();
    assert!(error.to_string().contains("algorithm.shared_layers names layer 3"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

// ------------------------------------------------------------------------------------------------------ the whole run

#[test]
fn runs_are_the_same_to_the_bit_with_any_number_of_threads() {
    for keys in ["", "over = \"all\"\nstart = \"own\"", "shared_layers = [1]"] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&outcome(&digits(keys, "[schedule]\nkind = \"random\"\nclients = 3"))))
        };
        assert!(with(1) == with(2), "{keys}");
    }
}

#[test]
fn other_seeds_give_other_runs() {
    let with = |seed: u64| {
        let mut experiment = digits("", "");
        experiment.config.seed = seed;
        bits(&outcome(&experiment))
    };
    assert!(with(3) == with(3));
    assert!(with(3) != with(4));
}
