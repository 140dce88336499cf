//! FedProx, SCAFFOLD, FedPer, Per-FedAvg and pFedMe: recursions implemented independently on the host, with the
//! model's own gradient and the same minibatches; equalities with FedAvg, and fixed points in closed form.

use std::sync::Arc;

use crate::personal_frequentist::{BATCH, Federation, LR, METHODS, ROWS, SEED, VISITS, algorithm, digits, distance};
use burn::tensor::Tensor;
use fedstein::models::{Batch, Layout, Model, Prior, Task};
use fedstein::protocol::Message;
use fedstein::random::Streams;
use fedstein::rows::{Minibatches, Order};
use rand::Rng;

/// Sums of some hundred terms of order 1 in f64, in another order.
const CLOSE: f64 = 1e-12;

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

fn assert_near(got: &[f64], want: &[f64], what: &str) {
    let off = distance(got, want);
    assert!(off < CLOSE, "{what}: off by {off:e}");
}

fn array(message: &Message, name: &str) -> Vec<f64> {
    message.array(name).unwrap().values.to_f64()
}

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

// --------------------------------------------------------------------------------------------- limits and identities

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
