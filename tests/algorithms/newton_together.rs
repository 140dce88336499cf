//! Newton factors of several clients at once: the recursion of the documentation, where second moments move.

use std::collections::BTreeMap;

use fedstein::protocol::{Ask, Message};
use ndarray::{Array1, Array2};

use crate::common::{bits, experiment, outcome, partition_of};
use crate::driven::{Driven, rows_of};

/// Outputs and inputs of the layers of a network 64-6-10.
const LAYERS: [(usize, usize); 2] = [(6, 64), (10, 6)];

/// Matrices of each layer, of one particle after the other.
#[derive(Clone)]
struct Layered(Vec<Array2<f64>>);

impl Layered {
    /// The weights of every layer with the biases beside them, `[out, in + 1]`, of rows `[N, d]`.
    fn weights(rows: &[f64]) -> Self {
        let d: usize = LAYERS.iter().map(|(outputs, inputs)| outputs * (inputs + 1)).sum();
        let of_particle = |row: &[f64]| {
            let mut start = 0;
            LAYERS.map(|(outputs, inputs)| {
                let (bias, end) = (start + outputs * inputs, start + outputs * (inputs + 1));
                let of = |(o, i): (usize, usize)| row[if i == inputs { bias + o } else { start + o * inputs + i }];
                let matrix = Array2::from_shape_fn((outputs, inputs + 1), of);
                start = end;
                matrix
            })
        };
        Self(rows.chunks_exact(d).flat_map(of_particle).collect())
    }

    /// The second moments Ā of the layers' inputs in a message: a diagonal that all particles share, and matrices.
    fn moments(message: &Message, particles: usize) -> Self {
        let first = Array2::from_diag(&Array1::from(rows_of(message, "input_moments")));
        let own = rows_of(message, "hidden_moments");
        let own = |n: usize| Array2::from_shape_vec((7, 7), own[n * 49..(n + 1) * 49].to_vec()).unwrap();
        Self((0..particles).flat_map(|n| [first.clone(), own(n)]).collect())
    }

    /// The factors of the layers' outputs in a message: diagonals, or with `kfac` matrices.
    fn outputs(message: &Message, form: &str) -> Self {
        let (numbers, is_diagonal) = (rows_of(message, "curvature"), form == "kronecker");
        let mut rest = numbers.as_slice();
        let mut all = Vec::new();
        while !rest.is_empty() {
            for (size, _) in LAYERS {
                let (now, later) = rest.split_at(if is_diagonal { size } else { size * size });
                rest = later;
                all.push(match is_diagonal {
                    true => Array2::from_diag(&Array1::from(now.to_vec())),
                    false => Array2::from_shape_vec((size, size), now.to_vec()).unwrap(),
                });
            }
        }
        Self(all)
    }

    fn with(&self, other: &Self, f: impl Fn(&Array2<f64>, &Array2<f64>) -> Array2<f64>) -> Self {
        assert_eq!(self.0.len(), other.0.len());
        Self(self.0.iter().zip(&other.0).map(|(a, b)| f(a, b)).collect())
    }

    /// self + by·other.
    fn plus(&self, by: f64, other: &Self) -> Self {
        self.with(other, |a, b| a + &(b * by))
    }

    fn dot(&self, other: &Self) -> Self {
        self.with(other, |a, b| a.dot(b))
    }

    fn mean(of: &[Self]) -> Self {
        let sum = of[1..].iter().fold(of[0].clone(), |sum, other| sum.plus(1.0, other));
        Self(sum.0.iter().map(|matrix| matrix / of.len() as f64).collect())
    }

    fn largest(&self) -> f64 {
        self.0.iter().flatten().fold(0.0, |most, value| most.max(value.abs()))
    }

    fn assert_near(&self, want: &Self, what: &str) {
        // Sums of some dozen terms in f64.
        let (gap, size) = (self.plus(-1.0, want).largest(), want.largest());
        assert!(gap < 1e-11 * size && size > 0.0, "{what}: off by {gap:e} of {size:e}");
    }
}

#[test]
fn factors_of_several_clients_at_once_are_the_recursion_of_the_documentation() {
    // docs/algorithms.md, "Second moments that move": Ā ← 0.9^|R| Ā + (1 − 0.9^|R|) mean Ā_k, U ← U + ΔV Ā,
    // U_k = U − (Θ̄ − Θ_k) Ā, ∇ log t_k = G_k − b_k (U − U_k), b_k = c·(what the client sent)/tr Ā.
    const C: f64 = 2.0;
    for form in ["kronecker", "kfac"] {
        let experiment = experiment(&format!(
            "name = \"together\"\nprecision = \"f64\"\nseed = 3\n[data]\nkind = \"digits\"\ntrain_limit = 90\n\
             test_limit = 20\n[model]\nkind = \"bnn\"\nhidden = [6]\nactivation = \"tanh\"\n[partition]\nclients = 4\n\
             [algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\nlocal_steps = 5\nbatch = 20\n\
             curvature = \"{form}\"\ncurvature_scale = {C:?}\n[optimizer]\nkind = \"sgd\"\nlr = 1e-2\n\
             [schedule]\nclients = 2"
        ));
        let mut driven = Driven::new(&experiment);
        let theta = |driven: &Driven| Layered::weights(&driven.theta().iter().copied().collect::<Vec<_>>());
        let mut at = theta(&driven);
        let mut transport = at.plus(-1.0, &at);
        let mut moments: Option<Layered> = None;
        // G_k, U_k and b_k.
        let mut sites: BTreeMap<usize, [Layered; 3]> = BTreeMap::new();
        // Clients 0 and 1, 2 and 3, and 0 and 1 again.
        for round in 1..=3 {
            let visits = driven.round(round);
            let moved: Vec<_> = visits.iter().map(|(_, sent)| Layered::weights(&rows_of(sent, "particles"))).collect();
            let mean = Layered::mean(&moved);
            if let Some(moments) = &moments {
                transport = transport.plus(1.0, &mean.plus(-1.0, &at).dot(moments));
            }
            let sent = Layered::mean(&visits.iter().map(|(_, sent)| Layered::moments(sent, 3)).collect::<Vec<_>>());
            let now = match &moments {
                None => sent,
                Some(old) => old.with(&sent, |old, sent| old * 0.81 + sent * 0.19),
            };
            for ((client, sent), moved) in visits.iter().zip(&moved) {
                let then = transport.plus(-1.0, &mean.plus(-1.0, moved).dot(&now));
                let b = Layered::outputs(sent, form).with(&now, |factor, moment| factor * (C / moment.diag().sum()));
                sites.insert(*client, [Layered::weights(&rows_of(sent, "gradient")), then, b]);
            }
            // The server's own steps.
            at = theta(&driven);
            transport = transport.plus(1.0, &at.plus(-1.0, &mean).dot(&now));

            for client in 0..4 {
                let what = format!("{form}, round {round}, client {client}");
                let others = || sites.iter().filter(|(other, _)| **other != client).map(|(_, site)| site);
                let score = others().map(|[g, then, b]| g.plus(-1.0, &b.dot(&transport.plus(-1.0, then))));
                let sum = |of: Vec<Layered>| of[1..].iter().fold(of[0].clone(), |sum, of| sum.plus(1.0, of));
                let message = driven.request(round + 1, client, Ask::Train).message;
                let got = Layered::weights(&rows_of(&message, "gradient"));
                got.assert_near(&sum(score.collect()), &format!("A, {what}"));
                let b = sum(others().map(|[_, _, b]| b.clone()).collect());
                Layered::outputs(&message, form).assert_near(&b, &format!("Λ, {what}"));
                Layered::moments(&message, 3).assert_near(&now, &format!("Ā, {what}"));
            }
            moments = Some(now);
        }
    }
}

#[test]
fn the_server_takes_as_many_steps_as_a_client_with_the_mean_number_of_rows() {
    let with = |keys: &str| {
        let experiment = experiment(&format!(
            "name = \"epochs\"\nprecision = \"f64\"\nseed = 3\nrounds = 2\n[data]\nkind = \"digits\"\n\
             train_limit = 20\ntest_limit = 20\n[model]\nkind = \"bnn\"\nhidden = [6]\nactivation = \"tanh\"\n\
             [partition]\nkind = \"iid\"\nclients = 2\n[algorithm]\nkind = \"newton-dsvgd\"\nparticles = 3\n\
             batch = 4\n{keys}\n[optimizer]\nkind = \"sgd\"\nlr = 1e-2\n[schedule]\nclients = 2"
        ));
        let rows: Vec<usize> = partition_of(&experiment.config).clients().iter().map(Vec::len).collect();
        assert_eq!(rows, [10, 10]);
        bits(&outcome(&experiment))
    };
    // Two passes over ten rows in minibatches of four, at each client and at the server; over all twenty rows the server
    // would take ten.
    let epochs = with("local_epochs = 2\nlocal_steps = 3");
    assert!(epochs == with("local_steps = 5"));
    assert!(epochs != with("local_steps = 10"));
}
