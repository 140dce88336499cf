//! FedProx, SCAFFOLD, FedPer, Per-FedAvg and pFedMe: recursions implemented independently on the host, with the
//! model's own gradient and the same minibatches; fixed points in closed form; and the messages, states and
//! predictions.

use std::sync::Arc;

use crate::common::{bits, data, experiment, outcome, values};
use burn::tensor::Tensor;
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::Targets;
use fedstein::error::RunError;
use fedstein::experiment::{Config, Experiment};
use fedstein::federation::validate::validate;
use fedstein::models::{Batch, Layout, Model, Prior, Task};
use fedstein::particles::Particles;
use fedstein::protocol::{Ask, Halves, Message, Predictor, Reply, Request, STEP_FACTOR, Scoring, Setup, all_here};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Minibatches, Order, Shard, Table};
use rand::Rng;

const SEED: u64 = 11;
/// Rows of the clients: the first has fewer than a minibatch.
const ROWS: [usize; 3] = [5, 12, 20];
const BATCH: usize = 8;
const LR: f64 = 0.3;
/// Sums of some hundred terms of order 1 in f64, in another order.
const CLOSE: f64 = 1e-12;

/// Every method, with constants for which each of its terms matters.
const METHODS: [(&str, &str); 5] = [
    ("fedprox", "proximal = 0.7"),
    ("scaffold", "server_lr = 0.6"),
    ("fedper", "personal_layers = 1"),
    ("per-fedavg", "inner_lr = 0.4"),
    ("pfedme", "inner_steps = 3\ninner_lr = 0.2\nproximal = 1.5\nserver_mix = 0.6"),
];

/// `[algorithm]` of a method with L steps.
fn algorithm((kind, keys): (&str, &str), steps: usize) -> String {
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
fn digits(algorithm: &str) -> String {
    text("digits", "kind = \"bnn\"\nhidden = [4]", algorithm)
}

/// The server and the clients of a configuration, driven by the test, which chooses the clients of each round.
struct Federation {
    model: Arc<dyn Model>,
    table: Table,
    session: Session,
    start: Vec<f64>,
    halves: Halves,
}

impl Federation {
    fn of(algorithm: &str) -> Self {
        Self::on(&digits(algorithm), None)
    }

    /// The same with the caller's model instead of the configuration's.
    fn on(text: &str, model: Option<Arc<dyn Model>>) -> Self {
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
    fn request(&self, round: usize, client: usize) -> Request {
        Request::new(round, client, Ask::Train, self.halves.server.configure(round).unwrap())
    }

    /// A round with these clients; their replies as the server sees them.
    fn round(&mut self, round: usize, clients: &[usize]) -> Vec<Message> {
        self.scaled_round(round, clients, 1.0)
    }

    /// The same with a factor on the step size of the round.
    fn scaled_round(&mut self, round: usize, clients: &[usize], factor: f64) -> Vec<Message> {
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
    fn theta(&self) -> Vec<f64> {
        values(self.halves.server.particles())
    }

    /// The parameters with which a client predicts; `None` where they are those that the server published.
    fn predictor(&mut self, client: usize) -> Option<Vec<f64>> {
        let message = self.halves.server.publish().unwrap();
        let request = Request::new(1, client, Ask::Score(Scoring::default()), message);
        match self.halves.clients[client].1.predictor(&request).unwrap() {
            Predictor::Published => None,
            Predictor::Own(particles) => Some(values(&particles)),
            Predictor::Rows(_) => panic!("none of these methods predicts so"),
        }
    }

    /// ∇L̄(θ) over some rows of a client, by their positions at it.
    fn gradient(&self, client: usize, positions: &[usize], theta: &[f64]) -> Vec<f64> {
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
    fn base_dim(&self) -> usize {
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

/// The minibatches that every client will read, from its first visit on.
fn minibatches() -> Vec<Minibatches> {
    let of = |client: usize| Minibatches::new(Order::EpochPermutation, ROWS[client], BATCH, Streams::new(SEED), client);
    (0..ROWS.len()).map(of).collect()
}

/// Σ_i c_i·x_i.
fn sum(terms: &[(f64, &[f64])]) -> Vec<f64> {
    let d = terms[0].1.len();
    (0..d).map(|j| terms.iter().map(|(c, x)| c * x[j]).sum()).collect()
}

/// The mean of some θ_k by rows, as FedAvg's.
fn mean_by_rows(moved: &[(usize, Vec<f64>)]) -> Vec<f64> {
    let total: usize = moved.iter().map(|(client, _)| ROWS[*client]).sum();
    let weighted = |(client, theta): &(usize, Vec<f64>)| (ROWS[*client] as f64 / total as f64, theta.clone());
    let weighted: Vec<(f64, Vec<f64>)> = moved.iter().map(weighted).collect();
    sum(&weighted.iter().map(|(w, theta)| (*w, theta.as_slice())).collect::<Vec<_>>())
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn assert_near(got: &[f64], want: &[f64], what: &str) {
    let off = distance(got, want);
    assert!(off < CLOSE, "{what}: off by {off:e}");
}

fn array(message: &Message, name: &str) -> Vec<f64> {
    message.array(name).unwrap().values.to_f64()
}

/// The participants of three rounds; every client is absent once and returns.
const VISITS: [&[usize]; 3] = [&[0, 2], &[1, 2], &[2, 0, 1]];

// -------------------------------------------------------------------------------------------------------- recursions

#[test]
fn fedprox_is_its_recursion() {
    let (mu, steps) = (0.7, 4);
    let mut fed = Federation::of(&algorithm(METHODS[0], steps));
    let (mut reading, mut theta) = (minibatches(), fed.start.clone());
    for (round, clients) in VISITS.iter().enumerate() {
        let visit = |client: &usize| {
            let mut own = theta.clone();
            for _ in 0..steps {
                let gradient = fed.gradient(*client, reading[*client].next_batch(), &own);
                own = sum(&[(1.0, &own), (-LR, &gradient), (LR * mu, &theta), (-LR * mu, &own)]);
            }
            (*client, own)
        };
        let moved: Vec<(usize, Vec<f64>)> = clients.iter().map(visit).collect();
        theta = mean_by_rows(&moved);
        fed.round(round + 1, clients);
        assert_near(&fed.theta(), &theta, &format!("round {}", round + 1));
    }
    assert!(distance(&theta, &fed.start) > 0.05, "nothing has moved");
}

#[test]
fn scaffold_is_its_recursion() {
    let (server_lr, steps) = (0.6, 4);
    let mut fed = Federation::of(&algorithm(METHODS[1], steps));
    let zero = vec![0.0; fed.start.len()];
    let (mut reading, mut theta) = (minibatches(), fed.start.clone());
    let (mut c, mut c_k) = (zero.clone(), vec![zero; ROWS.len()]);
    // The second round has half the step size, of which the control variates are independent.
    for (round, (clients, factor)) in VISITS.iter().zip([1.0, 0.5, 1.0]).enumerate() {
        let lr = LR * factor;
        let (start, control) = (theta.clone(), c.clone());
        for client in *clients {
            let (mut own, own_control) = (start.clone(), c_k[*client].clone());
            for _ in 0..steps {
                let gradient = fed.gradient(*client, reading[*client].next_batch(), &own);
                own = sum(&[(1.0, &own), (-lr, &gradient), (-lr, &control), (lr, &own_control)]);
            }
            let pace = 1.0 / (steps as f64 * lr);
            let after = sum(&[(1.0, &own_control), (-1.0, &control), (pace, &start), (-pace, &own)]);
            let share = server_lr / clients.len() as f64;
            theta = sum(&[(1.0, &theta), (share, &own), (-share, &start)]);
            let of_all = 1.0 / ROWS.len() as f64;
            c = sum(&[(1.0, &c), (of_all, &after), (-of_all, &own_control)]);
            c_k[*client] = after;
        }
        fed.scaled_round(round + 1, clients, factor);
        assert_near(&fed.theta(), &theta, &format!("θ, round {}", round + 1));
        assert_near(&array(&fed.request(9, 0).message, "control"), &c, &format!("c, round {}", round + 1));
    }
    assert!(distance(&c, &fed.start.iter().map(|_| 0.0).collect::<Vec<_>>()) > 0.01, "no client was corrected");
}

#[test]
fn fedper_is_its_recursion() {
    let steps = 4;
    let mut fed = Federation::of(&algorithm(METHODS[2], steps));
    let cut = fed.base_dim();
    let (mut reading, mut base) = (minibatches(), fed.start[..cut].to_vec());
    let mut heads = vec![fed.start[cut..].to_vec(); ROWS.len()];
    for (round, clients) in VISITS.iter().enumerate() {
        let mut moved = Vec::new();
        for client in *clients {
            let mut own = [base.as_slice(), &heads[*client]].concat();
            for _ in 0..steps {
                let gradient = fed.gradient(*client, reading[*client].next_batch(), &own);
                own = sum(&[(1.0, &own), (-LR, &gradient)]);
            }
            heads[*client] = own[cut..].to_vec();
            moved.push((*client, own[..cut].to_vec()));
        }
        base = mean_by_rows(&moved);
        fed.round(round + 1, clients);
        // Client 1 is absent from the first round: then its head is still the initial one, under the new base.
        for (client, head) in heads.iter().enumerate() {
            let want = [base.as_slice(), head].concat();
            let got = fed.predictor(client).unwrap();
            assert_near(&got, &want, &format!("round {}, client {client}", round + 1));
        }
        let published = [base.as_slice(), &fed.start[cut..]].concat();
        assert_near(&fed.theta(), &published, "the server's base under the initial head");
    }
    for other in [1, 2] {
        assert!(distance(&heads[0], &heads[other]) > 0.05, "heads 0 and {other} are alike");
    }
}

#[test]
fn per_fedavg_is_its_recursion() {
    let (alpha, steps) = (0.4, 4);
    let mut fed = Federation::of(&algorithm(METHODS[3], steps));
    let (mut reading, mut theta) = (minibatches(), fed.start.clone());
    for (round, clients) in VISITS.iter().enumerate() {
        let visit = |client: &usize| {
            let mut own = theta.clone();
            for _ in 0..steps {
                let first = fed.gradient(*client, reading[*client].next_batch(), &own);
                let adapted = sum(&[(1.0, &own), (-alpha, &first)]);
                let second = fed.gradient(*client, reading[*client].next_batch(), &adapted);
                own = sum(&[(1.0, &own), (-LR, &second)]);
            }
            (*client, own)
        };
        let moved: Vec<(usize, Vec<f64>)> = clients.iter().map(visit).collect();
        theta = mean_by_rows(&moved);
        fed.round(round + 1, clients);
        assert_near(&fed.theta(), &theta, &format!("round {}", round + 1));
        // One step along the gradient over all rows of the client, whether it took part or not.
        for (client, rows) in ROWS.iter().enumerate() {
            let all: Vec<usize> = (0..*rows).collect();
            let want = sum(&[(1.0, &theta), (-alpha, &fed.gradient(client, &all, &theta))]);
            assert_near(&fed.predictor(client).unwrap(), &want, &format!("client {client} predicts"));
        }
    }
}

#[test]
fn pfedme_is_its_recursion() {
    let (inner_steps, inner_lr, lambda, beta, steps) = (3, 0.2, 1.5, 0.6, 4);
    let mut fed = Federation::of(&algorithm(METHODS[4], steps));
    let (mut reading, mut w) = (minibatches(), fed.start.clone());
    let mut personal: Vec<Option<Vec<f64>>> = vec![None; ROWS.len()];
    for (round, clients) in VISITS.iter().enumerate() {
        let mut moved = Vec::new();
        for client in *clients {
            let (mut own, mut p) = (w.clone(), w.clone());
            for _ in 0..steps {
                let batch = reading[*client].next_batch().to_vec();
                for _ in 0..inner_steps {
                    let gradient = fed.gradient(*client, &batch, &p);
                    let tie = inner_lr * lambda;
                    p = sum(&[(1.0 - tie, &p), (-inner_lr, &gradient), (tie, &own)]);
                }
                own = sum(&[(1.0 - LR * lambda, &own), (LR * lambda, &p)]);
            }
            personal[*client] = Some(p);
            moved.push(own);
        }
        // The plain mean, although the clients' rows differ.
        let share = beta / moved.len() as f64;
        let mut terms = vec![(1.0 - beta, w.as_slice())];
        terms.extend(moved.iter().map(|own| (share, own.as_slice())));
        w = sum(&terms);
        fed.round(round + 1, clients);
        assert_near(&fed.theta(), &w, &format!("round {}", round + 1));
        for (client, p) in personal.iter().enumerate() {
            match (fed.predictor(client), p) {
                (Some(got), Some(want)) => assert_near(&got, want, &format!("client {client} predicts")),
                (got, want) => assert_eq!(got, *want, "client {client}: own parameters from the first visit on"),
            }
        }
    }
}

// ------------------------------------------------------------------------------------------------ limits and
// identities

/// θ after the rounds of [`VISITS`].
fn after_visits(algorithm: &str) -> Vec<f64> {
    let mut fed = Federation::of(algorithm);
    VISITS.iter().enumerate().for_each(|(round, clients)| drop(fed.round(round + 1, clients)));
    fed.theta()
}

#[test]
fn fedprox_whose_mu_vanishes_is_fedavg_to_the_bit() {
    let fedavg = after_visits(&algorithm(("fedavg", ""), 4));
    let fedprox = |mu: &str| after_visits(&algorithm(("fedprox", &format!("proximal = {mu}")), 4));
    assert!(fedprox("1e-300") == fedavg);
    assert!(distance(&fedprox("0.7"), &fedavg) > 1e-3);
}

#[test]
fn per_fedavg_whose_inner_step_vanishes_is_fedavg() {
    // With all rows in every minibatch; Per-FedAvg reads twice as many, in other orders.
    let all = |kind, keys| algorithm((kind, keys), 4).replace(&format!("batch = {BATCH}"), "batch = 100");
    let fedavg = after_visits(&all("fedavg", ""));
    assert_near(&after_visits(&all("per-fedavg", "inner_lr = 1e-300")), &fedavg, "α = 1e-300");
    assert!(distance(&after_visits(&all("per-fedavg", "inner_lr = 0.4")), &fedavg) > 1e-3);
}

#[test]
fn a_first_step_of_scaffold_is_one_of_fedavg_with_equal_weights() {
    let scaffold = algorithm(("scaffold", "server_lr = 1.0"), 1);
    let mut fed = Federation::of(&scaffold);
    let replies = fed.round(1, &[0, 1, 2]);
    let moved: Vec<Vec<f64>> = replies.iter().map(|reply| array(reply, "particles")).collect();

    let mut fedavg = Federation::of(&algorithm(("fedavg", ""), 1));
    let replies = fedavg.round(1, &[0, 1, 2]);
    for (moved, reply) in moved.iter().zip(&replies) {
        assert_eq!(*moved, array(reply, "particles"), "c = c_k = 0 corrects nothing");
    }
    let mean = sum(&moved.iter().map(|moved| (1.0 / 3.0, moved.as_slice())).collect::<Vec<_>>());
    assert_near(&fed.theta(), &mean, "the plain mean");
    assert!(distance(&fedavg.theta(), &mean) > 1e-4, "FedAvg weighs 5, 12 and 20 rows");
}

#[test]
fn the_clients_control_variates_sum_to_k_times_the_servers() {
    let mut fed = Federation::of(&algorithm(METHODS[1], 3));
    // c_k is the sum of the changes that client k has reported.
    let mut total = vec![0.0; fed.start.len()];
    for (round, clients) in [[0, 1, 2].as_slice(), &[2, 1, 0], &[1], &[0, 2]].into_iter().enumerate() {
        for reply in fed.round(round + 1, clients) {
            total = sum(&[(1.0, &total), (1.0, &array(&reply, "control"))]);
        }
        let c = array(&fed.request(9, 0).message, "control");
        assert_near(&sum(&[(ROWS.len() as f64, &c)]), &total, &format!("round {}", round + 1));
        assert!(c.iter().any(|c| c.abs() > 1e-3));
    }
}

/// L̄_k(θ) = ½‖θ − m_k‖², m_k the mean of three of the client's features.
#[derive(Debug)]
struct Bowl {
    layout: Arc<Layout>,
    prior: Prior,
}

impl Bowl {
    fn new() -> Self {
        let layout = Arc::new(Layout::new([("theta", [3].as_slice())]));
        Self { prior: Prior::normal(&layout, 1.0), layout }
    }

    fn mean(batch: &Batch) -> (Tensor<2>, f64) {
        // Digits are dark at the left edge: three columns in the middle.
        (batch.inputs.clone().narrow(1, 26, 3).mean_dim(0), batch.inputs.dims()[0] as f64)
    }
}

impl Model for Bowl {
    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn task(&self) -> Task {
        Task::Density
    }

    fn prior(&self) -> &Prior {
        &self.prior
    }

    fn initial(&self, _rng: &mut dyn Rng) -> Vec<f64> {
        vec![2.0, -1.0, 0.5]
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        let (mean, rows) = Self::mean(batch);
        vec![(mean - particles[0].clone()).mul_scalar(scale * rows)]
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        let (mean, rows) = Self::mean(batch);
        (particles[0].clone() - mean).square().sum_dim(1).squeeze_dim::<1>(1).mul_scalar(-0.5 * rows)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        Tensor::zeros([particles[0].dims()[0], inputs.dims()[0], 1], &inputs.device())
    }

    fn log_noise_precision(&self) -> Option<usize> {
        None
    }
}

/// A federation over bowls, with all rows in every minibatch, and m_k of every client.
fn bowls(method: (&str, &str), steps: usize) -> (Federation, Vec<Vec<f64>>) {
    let text = algorithm(method, steps).replace(&format!("batch = {BATCH}"), "batch = 100");
    let fed = Federation::on(&digits(&text), Some(Arc::new(Bowl::new())));
    let mean = |client: usize| {
        let all: Vec<usize> = (0..ROWS[client]).collect();
        sum(&[(-1.0, &fed.gradient(client, &all, &[0.0; 3]))])
    };
    let means = (0..ROWS.len()).map(mean).collect();
    (fed, means)
}

#[test]
fn fedprox_converges_between_a_clients_optimum_and_the_sent_parameters() {
    // argmin ½‖θ − m‖² + (μ/2)‖θ − θ_0‖² = (m + μθ_0)/(1 + μ); 200 steps leave (1 − .3·1.7)^200 of the way.
    let (mut fed, means) = bowls(METHODS[0], 200);
    let mu = 0.7;
    let replies = fed.round(1, &[0, 1, 2]);
    for (reply, m) in replies.iter().zip(&means) {
        let want = sum(&[(1.0 / (1.0 + mu), m), (mu / (1.0 + mu), &fed.start)]);
        assert_near(&array(reply, "particles"), &want, "θ_k");
    }
}

#[test]
fn pfedme_personal_parameters_converge_to_the_moreau_envelopes_minimiser() {
    // In a bowl, p = (m_k + λw_k)/(1 + λ) at the solved inner problem, and w_k falls to m_k by the factor
    // 1 − ηλ/(1 + λ) per step: 200 inner steps of .2 solve it.
    let (eta, lambda, steps) = (LR, 1.5, 5);
    let keys = "inner_steps = 200\ninner_lr = 0.2\nproximal = 1.5\nserver_mix = 1.0";
    let (mut fed, means) = bowls(("pfedme", keys), steps);
    let replies = fed.round(1, &[0, 1, 2]);
    for (client, (reply, m)) in replies.iter().zip(&means).enumerate() {
        let left = |steps: usize| f64::powi(1.0 - eta * lambda / (1.0 + lambda), steps as i32);
        let after = |steps: usize| sum(&[(1.0 - left(steps), m), (left(steps), &fed.start)]);
        assert_near(&array(reply, "particles"), &after(steps), "w_k");
        // p belongs to the w_k before its last step.
        let p = sum(&[(1.0 / (1.0 + lambda), m), (lambda / (1.0 + lambda), &after(steps - 1))]);
        assert_near(&fed.predictor(client).unwrap(), &p, "p");
    }
}

#[test]
fn scaffold_finds_the_mean_of_unlike_clients_optima() {
    // With exact control variates every client steps along the mean gradient: the fixed point is the mean of all m_k,
    // however many local steps.
    let (mut fed, means) = bowls(("scaffold", "server_lr = 1.0"), 10);
    (1..=200).for_each(|round| drop(fed.round(round, &[0, 1, 2])));
    let mean = sum(&means.iter().map(|m| (1.0 / 3.0, m.as_slice())).collect::<Vec<_>>());
    assert_near(&fed.theta(), &mean, "θ");
}

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
