//! pFedVEM: its visits against an independently implemented recursion, its server against numbers computed by hand.
//! Then its runs and those of pFedBayes: bytes, threads, and the accuracy of personal parameters.

use std::sync::Arc;

use crate::common::{bits, experiment, outcome, try_run, values};
use crate::personal_bayes::{Stage, altered, array, digits, f64_session, largest_gap, reply, sigmoid, softplus};
use fedstein::algorithm::mean_field::noise;
use fedstein::array::{Array, Values};
use fedstein::backend::Precision;
use fedstein::models::Layout;
use fedstein::protocol::{Ask, Request};
use fedstein::random::Purpose;
use fedstein::rows::{Minibatches, Order};

// -------------------------------------------------------------------------------------------------------- pFedVEM

#[test]
fn the_width_of_a_heads_prior_follows_the_formula() {
    // A head that does not move: σ = 1 and μ_k = μ at its first visit, so ρ² = 1; then μ is 2 away, so ρ² = 1 + 4.
    let algorithm = "kind = \"pfedvem\"\nlocal_steps = 1\nhead_steps = 1\nhead_lr = 1e-300\nsamples = 1";
    let mut stage = Stage::of(&digits(1, algorithm, "kind = \"sgd\"\nlr = 1e-3"));
    let first = array(&stage.visit(1, 0), "confidence");
    assert!(first.len() == 1 && (first[0] - 1.0).abs() < 1e-12, "{first:?}");
    let moved = altered(stage.halves.server.configure(2).unwrap(), "head", |head| head - 2.0);
    let second = array(&stage.visit_with(2, 0, moved), "confidence");
    assert!((second[0] - 0.2).abs() < 1e-12, "{second:?}");
}

#[test]
fn heads_are_averaged_by_confidence_and_bases_by_rows() {
    let mut stage = Stage::of(&digits(1, "kind = \"pfedvem\"", ""));
    let sent = stage.halves.server.configure(1).unwrap();
    let say = |base: f64, head: f64, confidence: f64, rows: f64| {
        let number = Array { shape: vec![1], values: Values::F64(vec![confidence]) };
        let message = altered(altered(sent.clone(), "base", |_| base), "head", |_| head);
        message.with_array("confidence", number).with_scalar("rows", rows)
    };
    let replies = vec![reply(0, say(1.0, 1.0, 1.0, 10.0)), reply(3, say(3.0, 4.0, 2.0, 30.0))];
    stage.halves.server.aggregate(replies).unwrap();
    let mixed = stage.halves.server.configure(2).unwrap();
    // (10·1 + 30·3)/40 and (1·1 + 2·4)/(1 + 2)
    assert!(array(&mixed, "base").iter().all(|base| (base - 2.5).abs() < 1e-14));
    assert!(array(&mixed, "head").iter().all(|head| (head - 3.0).abs() < 1e-14));
    assert_eq!(values(stage.halves.server.particles()), [array(&mixed, "base"), array(&mixed, "head")].concat());
    // One reply is enough, and it replaces both.
    stage.halves.server.aggregate(vec![reply(1, say(-1.0, 7.0, 0.5, 5.0))]).unwrap();
    let alone = stage.halves.server.configure(3).unwrap();
    assert!(array(&alone, "base").iter().all(|base| *base == -1.0) && array(&alone, "head").iter().all(|h| *h == 7.0));
    let error = stage.halves.server.aggregate(vec![reply(2, say(0.0, 0.0, 0.0, 5.0))]).unwrap_err().to_string();
    assert!(error.contains("client 2") && error.contains("confidence"), "{error}");
}

#[test]
fn two_visits_of_pfedvem_are_their_recursion_head_first_and_then_the_base() {
    let (head_lr, lr, momentum, samples, batch) = (1e-3, 0.05, 0.7, 2, 20);
    let algorithm = format!(
        "kind = \"pfedvem\"\nlocal_steps = 3\nbatch = {batch}\nhead_steps = 3\nhead_lr = {head_lr}\n\
         head_momentum = {momentum}\nsamples = {samples}"
    );
    let mut stage = Stage::of(&digits(1, &algorithm, &format!("kind = \"sgd\"\nlr = {lr}")));
    let rows = stage.rows[3].len();
    let mut minibatches = Minibatches::new(Order::EpochPermutation, rows, batch, stage.streams, 3);
    let sent = stage.halves.server.configure(1).unwrap();
    // The head of the first visit starts at N(μ, I), and the client keeps it for the second, at which μ has moved.
    let mut mean = array(&sent, "head");
    let (d_b, d_h) = (array(&sent, "base").len(), mean.len());
    assert_eq!((d_b, d_h), (64 * 6 + 6, 6 * 10 + 10));
    let d = d_b + d_h;
    let mut raw = vec![(1f64.exp() - 1.0).ln(); d_h];
    let shape = Arc::new(Layout::new([("head", [d_h].as_slice())]));

    for (round, shift) in [(1, 0.0), (2, 0.5)] {
        let sent = altered(stage.halves.server.configure(round).unwrap(), "head", |head| head + shift);
        let (mut base, centre) = (array(&sent, "base"), array(&sent, "head"));
        let got = stage.visit_with(round, 3, sent);
        let all = stage.batch(3, &(0..rows).collect::<Vec<_>>());
        let mut rng = stage.streams.rng(Purpose::Gaussian, round, 3);
        let mut draw = || values(&noise(&mut rng, 1.0, samples, &shape, &f64_session()).unwrap());
        let under = |base: &[f64], mean: &[f64], raw: &[f64], z: &[f64]| -> Vec<f64> {
            let head = |s: usize| (0..d_h).map(move |i| mean[i] + softplus(raw[i]) * z[s * d_h + i]);
            (0..samples).flat_map(|s| base.iter().copied().chain(head(s)).collect::<Vec<_>>()).collect()
        };

        // The prior N(centre, ρ²) around the head as it was kept; ρ² is 1 at the first visit.
        let squares = (0..d_h).map(|i| softplus(raw[i]).powi(2) + (mean[i] - centre[i]).powi(2));
        let width = squares.sum::<f64>() / d_h as f64;
        assert!((array(&got, "confidence")[0] * width - 1.0).abs() < 1e-12, "visit {round}");
        assert_eq!((width - 1.0).abs() > 0.1, round == 2, "visit {round}: {width}");

        // The head, on the sum over all rows. The momentum starts at 0 in every visit.
        let before = mean.clone();
        let (mut v_mean, mut v_raw) = (vec![0.0; d_h], vec![0.0; d_h]);
        for _ in 0..3 {
            let z = draw();
            let scores = stage.scores(&under(&base, &mean, &raw, &z), &all, 1.0);
            for i in 0..d_h {
                let of = |s: usize| scores[s * d + d_b + i];
                let likelihood = (0..samples).map(of).sum::<f64>() / samples as f64;
                let by_sd = (0..samples).map(|s| of(s) * z[s * d_h + i]).sum::<f64>() / samples as f64;
                let sd = softplus(raw[i]);
                v_mean[i] = momentum * v_mean[i] - (likelihood - (mean[i] - centre[i]) / width);
                v_raw[i] = momentum * v_raw[i] - (by_sd - (sd / width - 1.0 / sd)) * sigmoid(raw[i]);
            }
            (0..d_h).for_each(|i| (mean[i], raw[i]) = (mean[i] - head_lr * v_mean[i], raw[i] - head_lr * v_raw[i]));
        }
        let gap = largest_gap(&array(&got, "head"), &mean);
        assert!(gap < 1e-10, "visit {round}: {gap}");
        assert!(largest_gap(&mean, &before) > 1e-3, "visit {round}: the head has not moved");

        // The base, on the mean over a minibatch, under draws of the new head.
        for _ in 0..3 {
            let batch = stage.batch(3, minibatches.next_batch());
            let z = draw();
            let scores = stage.scores(&under(&base, &mean, &raw, &z), &batch, 1.0 / batch.inputs.dims()[0] as f64);
            for (i, base) in base.iter_mut().enumerate() {
                *base += lr * (0..samples).map(|s| scores[s * d + i]).sum::<f64>() / samples as f64;
            }
        }
        assert!(largest_gap(&array(&got, "base"), &base) < 1e-10, "visit {round}");
        assert_eq!(got.scalars["rows"], rows as f64);
    }
}

#[test]
fn a_client_of_pfedvem_puts_its_own_head_on_the_published_base() {
    for (particles, count) in [(1, 1), (5, 5)] {
        let algorithm = format!("kind = \"pfedvem\"\nlocal_steps = 2\nbatch = 20\nparticles = {particles}");
        let mut stage = Stage::of(&digits(1, &algorithm, "kind = \"sgd\"\nlr = 1e-2"));
        assert_eq!(stage.predictor(2), None);
        let sent = stage.visit(1, 2);
        let published = values(stage.halves.server.particles());
        let d = stage.model.layout().dim();
        assert_eq!(published.len(), d, "the server has one network");
        let own = stage.predictor(2).unwrap();
        assert_eq!(own.len(), count * d);
        let (head, d_b) = (array(&sent, "head"), array(&sent, "base").len());
        for theta in own.chunks_exact(d) {
            assert_eq!(theta[..d_b], published[..d_b]);
            assert_eq!(theta[d_b..] == head, count == 1, "the mean head, or draws around it");
        }
        assert_eq!(stage.predictor(2).unwrap(), own, "the same draws");
        // A visit that fails leaves the client as it was.
        let broken = altered(stage.halves.server.configure(2).unwrap(), "head", |_| 1e300);
        let request = Request::new(2, 2, Ask::Train, broken);
        let error = stage.client(2).handle(&request, &|_, _| {}).unwrap_err().to_string();
        assert!(error.contains("prior is inf"), "{error}");
        assert_eq!(stage.predictor(2).unwrap(), own);
    }
}

#[test]
fn a_head_that_diverges_is_an_error_that_names_its_step_size() {
    let algorithm = "kind = \"pfedvem\"\nlocal_steps = 1\nhead_lr = 1e300";
    let mut stage = Stage::of(&digits(1, algorithm, "kind = \"sgd\"\nlr = 1e-2"));
    let message = stage.halves.server.configure(1).unwrap();
    let request = Request::new(1, 0, Ask::Train, message);
    let error = stage.client(0).handle(&request, &|_, _| {}).unwrap_err().to_string();
    assert!(error.contains("not finite after 10 steps") && error.contains("algorithm.head_lr"), "{error}");
    assert_eq!(stage.predictor(0), None);
}

#[test]
fn models_without_a_layer_below_the_head_are_refused() {
    let text = |model: &str, layers: usize| {
        format!(
            "name = \"no-head\"\nrounds = 1\n[data]\nkind = \"twonorm\"\nrows = 200\n[partition]\nclients = 2\n\
             [model]\n{model}\n[algorithm]\nkind = \"pfedvem\"\nlocal_steps = 1\npersonal_layers = {layers}\n\
             [optimizer]\nkind = \"sgd\""
        )
    };
    for (model, layers) in [("kind = \"blr\"", 1), ("kind = \"bnn\"\nhidden = []", 1), ("kind = \"bnn\"", 2)] {
        let error = try_run(&experiment(&text(model, layers))).unwrap_err();
        assert!(error.to_string().contains("algorithm.personal_layers"), "{model}: {error}");
        assert_eq!(error.exit_code(), 2);
    }
}

// ----------------------------------------------------------------------------------------------------------- both

const BAYES: &str = "kind = \"pfedbayes\"\nlocal_steps = 5\nparticles = 3";
const VEM: &str = "kind = \"pfedvem\"\nlocal_steps = 5\nparticles = 3";

#[test]
fn messages_have_the_bytes_of_the_formulas() {
    let d = 64 * 6 + 6 + 60 + 10;
    for (algorithm, down, up) in [(BAYES, 2 * d, 2 * d), (VEM, d, d + 1)] {
        for (precision, width) in [("f32", 4), ("f64", 8)] {
            let mut experiment = digits(1, algorithm, "kind = \"sgd\"\nlr = 1e-3");
            experiment.config.precision = if width == 4 { Precision::F32 } else { Precision::F64 };
            let run = outcome(&experiment);
            let round = &run.rounds[0];
            // Two clients per round.
            let got = (round.downlink_bytes, round.uplink_bytes);
            assert_eq!(got, (2 * down * width, 2 * up * width), "{algorithm}, {precision}");
        }
    }
}

#[test]
fn runs_have_the_same_bits_on_one_thread_and_on_two() {
    for (algorithm, optimizer) in [(BAYES, "kind = \"adam\"\nlr = 1e-3"), (VEM, "kind = \"sgd\"\nlr = 1e-2")] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&outcome(&digits(3, algorithm, optimizer))))
        };
        assert_eq!(run(1), run(2), "{algorithm}");
    }
}

#[test]
fn clients_predict_their_own_labels_better_with_personal_parameters() {
    for (algorithm, optimizer) in [
        ("kind = \"pfedbayes\"\nlocal_steps = 50\nbatch = 50\nkl_weight = 1.0", "kind = \"adam\"\nlr = 1e-2"),
        ("kind = \"pfedvem\"\nlocal_steps = 100\nbatch = 10", "kind = \"sgd\"\nlr = 0.05"),
    ] {
        let mut experiment = digits(8, algorithm, optimizer);
        experiment.config.precision = Precision::F32;
        experiment.config.evaluation.personal = true;
        experiment.config.evaluation.every = 8;
        let run = outcome(&experiment);
        let last = run.rounds.last().unwrap();
        let (own, shared) = (last.metric("personal_accuracy").unwrap(), last.metric("accuracy").unwrap());
        assert!(own > 0.85 && own > shared + 0.2, "{algorithm}: personal {own}, shared {shared}");
    }
}
