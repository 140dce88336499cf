//! From one visit to the next: whether an optimiser keeps its averages (`optimizer.reset`), and where a client begins to
//! read its rows.

use fedstein::experiment::Experiment;
use fedstein::protocol::{Ask, BATCHES};
use tempfile::TempDir;

use crate::common::{Tolerance, assert_close, has_key, outcome, values};
use crate::driven::{Driven, rows_of, sites_of};
use crate::variants::digits;

/// The step size of AdaGrad.
const LR: f64 = 0.3;

/// Twelve rows of two classes at each of some sites, and a network of three tanh units with one particle; `keys` are those
/// of `[algorithm]`.
fn network(kind: &str, sites: usize, keys: &str, reset: &str) -> (Experiment, TempDir) {
    let row = |i: usize| {
        let x = i as f64;
        format!("s{},{},{},{}\n", i / 12, x.sin(), (2.0 * x).cos(), ["no", "yes"][i % 2])
    };
    let rows: String = (0..12 * sites).map(row).collect();
    let particles = if has_key(kind, "particles") { "particles = 1" } else { "" };
    let keys = format!(
        "kind = \"{kind}\"\n{particles}\n{keys}\n[model]\nkind = \"bnn\"\nhidden = [3]\nactivation = \"tanh\"\n\
         [optimizer]\nkind = \"adagrad\"\nlr = {LR}\nepsilon = 1e-12\nreset = \"{reset}\""
    );
    sites_of("classification", "site,a,b,y", &rows, "s0,0.5,0.5,no\n", keys)
}

/// What the second visit of a single client, of one step on all rows, adds to the coordinates in this array.
fn second_visit(kind: &str, array: &str, reset: &str) -> Vec<f64> {
    let (experiment, _dir) = network(kind, 1, "local_steps = 1\nbatch = 100", reset);
    let mut driven = Driven::new(&experiment);
    driven.round(1);
    let sent = rows_of(&driven.request(2, 0, Ask::Train).message, array);
    let back = rows_of(&driven.round(2)[0].1, array);
    assert_eq!(back.len(), sent.len(), "{kind}");
    back.iter().zip(&sent).map(|(to, from)| to - from).collect()
}

#[test]
fn a_client_resets_the_averages_of_its_optimiser_at_every_visit_or_never() {
    for (kind, array) in [
        ("fedavg", "particles"),
        ("fedadam", "particles"),
        ("fedprox", "particles"),
        ("fedper", "base"),
        ("dsvgd", "particles"),
        ("u-dsvgd", "particles"),
        ("newton-dsvgd", "particles"),
        ("fedwba", "particles"),
        ("pfedbayes", "mean"),
        ("pfedvem", "base"),
        ("pfedgp", "base"),
    ] {
        // The first step of AdaGrad is ε·sign(φ).
        let fresh = second_visit(kind, array, "per-visit");
        assert!(fresh.iter().all(|by| *by == 0.0 || (by.abs() - LR).abs() < 1e-5), "{kind}: {fresh:?}");
        assert!(fresh.iter().any(|by| *by != 0.0), "{kind} does not move");
        // The second one is ε·φ_2/√(.9φ_1² + .1φ_2²).
        let kept = second_visit(kind, array, "never");
        let longest = LR / 0.1f64.sqrt();
        assert!(kept.iter().all(|by| by.abs() < longest + 1e-5), "{kind}: {kept:?}");
        assert!(kept.iter().any(|by| (by.abs() / LR - 1.0).abs() > 0.01), "{kind}: {kept:?}");
    }
}

#[test]
fn both_optimisers_of_a_client_of_dsvgd_count_on_over_its_visits() {
    let keys = "factors = \"paper\"\nlocal_steps = 2\ndistill_steps = 3\nbatch = 100";
    let steps = |reset: &str| {
        let (experiment, _dir) = network("dsvgd", 2, keys, reset);
        let mut driven = Driven::new(&experiment);
        (1..=3).for_each(|round| drop(driven.round(round)));
        // Client 0 was visited twice, client 1 once.
        [0, 1].map(|client: usize| {
            let state = driven.built.clients[client].1.save().unwrap();
            ["local_optimizer", "distill_optimizer"]
                .map(|name| state.has(name).then(|| state.optimizer(name, &driven.built.session).unwrap().steps))
        })
    };
    assert_eq!(steps("never"), [[Some(4), Some(6)], [Some(2), Some(3)]]);
    assert_eq!(steps("per-visit"), [[None; 2]; 2]);
}

#[test]
fn the_averages_of_fedsgd_at_the_server_run_on_over_its_rounds() {
    let adagrad =
        |reset: &str| format!("[optimizer]\nkind = \"adagrad\"\nlr = 0.01\nepsilon = 1e-3\nreset = \"{reset}\"");
    let more = format!("{}\n[schedule]\nclients = 3", adagrad("per-visit"));
    let federated = values(&outcome(&digits("kind = \"fedsgd\"", "f64", 4, &more)).particles);
    // One client with all rows, one step per round along the mean over its rows.
    let central = |reset: &str| {
        let keys = "kind = \"fedavg\"\nlocal_steps = 1\nbatch = 1000\nlikelihood_scale = \"mean\"";
        let mut central = digits(keys, "f64", 4, &adagrad(reset));
        central.config.partition.insert("clients".into(), 1.into());
        values(&outcome(&central).particles)
    };
    let never = central("never");
    assert_close(&federated, &never, Tolerance { rtol: 0.0, atol: 1e-9 }, "θ");
    let gap = central("per-visit").iter().zip(&never).fold(0.0f64, |gap, (a, b)| gap.max((a - b).abs()));
    assert!(gap > 1e-4, "averages that are reset make a difference of {gap:e} only");
}

#[test]
fn methods_that_read_all_rows_too_begin_their_minibatches_at_the_first_row_in_every_visit() {
    // tests/runs/row_order.rs has the others.
    for kind in ["pfedvem", "pfedgp"] {
        let keys = "local_steps = 1\nbatch = 4\nminibatch = \"sequential-restart\"";
        let (experiment, _dir) = network(kind, 1, keys, "per-visit");
        let mut driven = Driven::new(&experiment);
        for round in 1..=2 {
            driven.round(round);
            let batches = driven.built.clients[0].1.save().unwrap().part(BATCHES);
            assert_eq!(batches.count("position").unwrap(), 4, "{kind}, round {round}");
        }
    }
}
