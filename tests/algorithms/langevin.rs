//! The baselines SGLD and DSGLD, Langevin chains in one place and travelling ones: a toy's posterior, the steps, and
//! which chains move. FedSGD against steps on all rows.

use crate::common::{Tolerance, assert_close, bits, data, moments, outcome, partition_of, values};
use crate::driven::equal_clients;
use crate::one_particle::{pull, start};
use crate::variants::{D, Toy, digits, toy};
use fedstein::experiment::Outcome;

/// SGLD with constant steps of 0.05 over a time of 30.
fn sgld(chains: usize, noise: &str) -> Outcome {
    let algorithm = format!(
        "kind = \"sgld\"\nparticles = {chains}\nlocal_steps = 600\nstep_size = 0.05\nstep_power = 0.0\nnoise = \"{noise}\""
    );
    outcome(&toy(Toy::Gaussian1d, &algorithm, 2, 1, ""))
}

#[test]
fn langevin_chains_sample_the_posterior() {
    // tests/golden/toy_posteriors.json. The chains are independent: a mean has a standard error of 0.019, a variance
    // of about 2 %; steps of 0.05 cost the variance another percent or two.
    let run = sgld(4000, "correct");
    let (mean, variance) = moments(&values(&run.particles));
    println!(
        "SGLD: mean {mean:.3} (.495), variance {variance:.3} (1.410), KL {:.4} (.034)",
        run.evaluation.kl.unwrap()
    );
    assert!((mean - 0.49485).abs() < 0.05, "mean {mean}");
    assert!((variance / 1.40994 - 1.0).abs() < 0.05, "variance {variance}");
    // An exact sample smoothed by the kernel is at 0.034.
    assert!((run.evaluation.kl.unwrap() / 0.03403 - 1.0).abs() < 0.15, "{:?}", run.evaluation.kl);
    // The public code's noise lets every chain fall into the next mode.
    let frozen = sgld(50, "reference");
    for chain in values(&frozen.particles) {
        let mode =
            [-1.1263716864684026, 0.9962520873407733].map(|mode| (chain - mode).abs()).into_iter().fold(1.0, f64::min);
        assert!(mode < 0.01, "{chain}");
    }
}

#[test]
fn langevin_steps_decay_as_in_the_paper() {
    // θ_{t+1} = θ_t + (ε_t/2)·score + ε_t²·z with the public code's noise, ε_t = a0 (½ + t)^(−0.55).
    const A0: f64 = 1e-3;
    let after = |rounds: usize, steps: usize| {
        let algorithm =
            format!("kind = \"sgld\"\nparticles = 1\nlocal_steps = {steps}\nstep_size = {A0}\nnoise = \"reference\"");
        values(&outcome(&toy(Toy::Gaussian1d, &algorithm, 4, rounds, "")).particles)[0]
    };
    let mut theta = start();
    for t in 0..6 {
        let epsilon = A0 * (0.5 + t as f64).powf(-0.55);
        let drift = 0.5 * epsilon * (pull(0, theta) + pull(1, theta) - theta);
        let got = after(1, t + 1);
        // |z| < 4, so that mostly the drift is visible.
        let noise = 4.0 * epsilon * epsilon;
        assert!((got - theta - drift).abs() < noise && noise < 0.1 * drift.abs(), "step {t}: {got}, {theta} + {drift}");
        theta = got;
        // The step counter continues from round to round.
        assert_eq!(after(t + 1, 1), got);
    }
}

/// DSGLD on digits, or its relative on all rows; the public code's noise, which is the same for all chains.
fn dsgld(kind: &str, keys: &str, clients: i64) -> Outcome {
    let keys = format!("kind = \"{kind}\"\nparticles = 5\nlocal_steps = 3\nbatch = 200\nstep_size = 1e-3\n{keys}");
    let mut experiment = digits(&keys, "f64", 3, "");
    experiment.config.partition.insert("clients".into(), clients.into());
    outcome(&experiment)
}

#[test]
fn travelling_chains_with_one_worker_do_not_travel() {
    let noise = "noise = \"reference\"";
    let (home, away) = (dsgld("sgld", noise, 1), dsgld("dsgld", noise, 1));
    // The order of the chains in a product is another.
    assert_close(&values(&away.particles), &values(&home.particles), Tolerance { rtol: 1e-9, atol: 1e-12 }, "chains");
}

/// Chains over two clients with the same rows.
fn twins(kind: &str, keys: &str) -> Vec<f64> {
    let (mut experiment, _files) = equal_clients(format!(
        "kind = \"{kind}\"\nparticles = 4\nlocal_steps = 3\nbatch = 100\nnoise = \"reference\"\nstep_size = 1e-3\n\
         {keys}\n[model]\nkind = \"bnn\"\nhidden = [3]"
    ));
    experiment.config.rounds = 4;
    assert_eq!(partition_of(&experiment.config).clients().len(), 2);
    assert_eq!(data(&experiment.config).train.rows(), 24);
    values(&outcome(&experiment).particles)
}

#[test]
fn a_workers_gradient_represents_the_rows_of_all() {
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4);
    // The reference noise is a number of size ε²/n ~ 1e-6 per step for the chains of a worker; it is the only
    // difference here.
    let sgld = twins("sgld", "");
    assert!(close(&twins("dsgld", "gradient_scale = \"corrected\""), &sgld));
    assert!(!close(&twins("dsgld", "gradient_scale = \"reference\""), &sgld));
}

#[test]
fn every_chain_moves_every_round_unless_shares_are_rounded_down() {
    let still = "step_size = 1e-300";
    let run = |chains: &str, clients: i64, more: &str| {
        let keys =
            format!("kind = \"dsgld\"\nparticles = 7\nlocal_steps = 2\nbatch = 20\nchains = \"{chains}\"\n{more}");
        let mut experiment = digits(&keys, "f64", 1, "");
        experiment.config.partition.insert("clients".into(), clients.into());
        outcome(&experiment)
    };
    // 7 chains at 3 workers: 3 + 3 + 1, or 2 + 2 + 2 and one that does not move. At 10 workers 7 have one each.
    for (chains, clients, moving, workers) in [
        ("ceil", 3, 7, 3),
        ("floor", 3, 6, 3),
        ("ceil", 5, 7, 4),
        ("floor", 5, 5, 5),
        ("ceil", 10, 7, 7),
        ("floor", 10, 7, 7),
    ] {
        let (from, to) = (run(chains, clients, still), run(chains, clients, ""));
        let d = D as usize;
        let pairs = values(&from.particles).into_iter().zip(values(&to.particles)).collect::<Vec<_>>();
        let moved = pairs.chunks_exact(d).filter(|chain| chain.iter().any(|(a, b)| a != b)).count();
        assert_eq!(moved, moving, "{chains}, {clients} workers");
        assert_eq!(to.rounds[0].clients.len(), workers, "{chains}, {clients} workers");
        // Nd numbers down and up in total: only chains that move are sent.
        let bytes = moving as u64 * D * 8;
        assert_eq!((to.rounds[0].downlink_bytes, to.rounds[0].uplink_bytes), (bytes, bytes));
    }
}

#[test]
fn chains_are_the_same_to_the_bit_with_any_number_of_threads() {
    for kind in ["sgld", "dsgld"] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&dsgld(kind, "", 3)))
        };
        let once = with(1);
        assert!(once == with(2) && once == with(5), "{kind}");
    }
}

// --------------------------------------------------------------------------------------------------------- FedSGD

#[test]
fn federated_gradient_steps_of_all_clients_are_steps_on_all_rows() {
    let optimizer = "[optimizer]\nkind = \"sgd\"\nlr = 0.5";
    let federated = outcome(&digits("kind = \"fedsgd\"", "f64", 4, &format!("{optimizer}\n[schedule]\nclients = 3")));
    // One client with all rows, one step per round along the mean over its rows.
    let keys = "kind = \"fedavg\"\nlocal_steps = 1\nbatch = 1000\nlikelihood_scale = \"mean\"";
    let mut central = digits(keys, "f64", 4, optimizer);
    central.config.partition.insert("clients".into(), 1.into());
    let central = outcome(&central);
    let close = Tolerance { rtol: 1e-10, atol: 1e-13 };
    assert_close(&values(&federated.particles), &values(&central.particles), close, "θ");
    // 103 rows: shares of 34, 34 and 35.
    let rows: Vec<usize> =
        partition_of(&digits("kind = \"fedsgd\"", "f64", 1, "").config).clients().iter().map(Vec::len).collect();
    assert_eq!(rows.iter().sum::<usize>(), 103);
    assert!(rows.iter().any(|count| *count != rows[0]), "{rows:?}");
    for round in &federated.rounds {
        assert_eq!((round.downlink_bytes, round.uplink_bytes), (3 * D * 8, 3 * D * 8));
    }
}
