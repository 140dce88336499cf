//! Client selection in a run: its traffic, its effect on the bits, the indicators of a first round, and the records.
//! Source: Yang et al. eq. (13)-(25). The mathematics is in `selection.rs`.

use crate::common::{
    Tolerance, assert_close, bits, data, experiment, flat, moments, outcome, partition_of, small_digits, values,
};
use fedstein::backend::Flex;
use fedstein::datasets::Targets;
use fedstein::experiment::artifact::Artifacts;
use fedstein::experiment::progress::Quiet;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, Outcome, run};
use fedstein::random::Streams;
use fedstein::rows::{Minibatches, Order};
use fedstein::schedule::Negative;
use fedstein::schedule::weigh::probabilities;
use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// Digits in a network of 64-7-10, d = 535.
const D: u64 = 64 * 7 + 7 + 7 * 10 + 10;
const N: u64 = 5;

fn digits(algorithm: &str, clients: usize, rounds: usize, schedule: &str) -> Experiment {
    let distill = if ["dsvgd", "p-dsvgd"].contains(&algorithm) { "distill_steps = 4" } else { "" };
    small_digits(
        rounds,
        &format!(
            r#"
            [partition]
            clients = {clients}
            [algorithm]
            kind = "{algorithm}"
            particles = {N}
            local_steps = 6
            {distill}
            batch = 20
            {schedule}
            "#
        ),
    )
}

fn selected(outcome: &Outcome) -> Vec<usize> {
    outcome.rounds.iter().flat_map(|round| round.clients.clone()).collect()
}

#[test]
fn selection_costs_the_bytes_that_the_paper_counts() {
    // In f32. Θ goes to all K clients and to the winner once more.
    let (k, set) = (6, N * D * 4);
    for (schedule, down, up) in [
        ("[schedule]\nkind = \"round-robin\"", set, set),
        ("[schedule]\nkind = \"random\"", set, set),
        ("[schedule]\nkind = \"ksd\"", k * set + set, k * 4 + set),
        ("[schedule]\nkind = \"hip\"", k * set + set, k * set + set),
        ("[schedule]\nkind = \"round-robin\"\n[evaluation]\ndiscrepancy = true", k * set + set, k * 4 + set),
    ] {
        for algorithm in ["dsvgd", "u-dsvgd", "p-dsvgd"] {
            let outcome = outcome(&digits(algorithm, 6, 3, schedule));
            assert_eq!(outcome.rounds.len(), 3);
            for round in &outcome.rounds {
                let got = (round.downlink_bytes, round.uplink_bytes);
                assert_eq!(got, (down, up), "{algorithm}, {schedule}: round {}", round.round);
            }
        }
    }
    // Newton factors send A⁻ and Λ⁻ in a visit once another client has a site, and with a question of `ksd` A⁻ alone.
    for (schedule, questions) in [("hip", [k, k, k]), ("ksd", [k, 2 * k - 1, 2 * k])] {
        let text = format!("curvature = \"diagonal\"\n[schedule]\nkind = \"{schedule}\"");
        for round in &outcome(&digits("newton-dsvgd", 6, 5, &text)).rounds {
            let sets = round.downlink_bytes / set;
            let known = questions.iter().any(|questions| [1, 3].iter().any(|visit| questions + visit == sets));
            assert!(known && round.downlink_bytes % set == 0, "{schedule}: {sets} sets in round {}", round.round);
        }
    }
    // With all rows in one place nothing is sent.
    assert!(outcome(&digits("svgd", 6, 2, "")).rounds.iter().all(|of| of.downlink_bytes + of.uplink_bytes == 0));
    // A schedule's own question replaces that of the diagnosis: no client is asked twice.
    let both = outcome(&digits("dsvgd", 6, 1, "[schedule]\nkind = \"hip\"\n[evaluation]\ndiscrepancy = true"));
    assert_eq!((both.rounds[0].downlink_bytes, both.rounds[0].uplink_bytes), (k * set + set, k * set + set));
    // P-DSVGD with four clients per round: four copies down, four factors up.
    for (kind, asked_down, asked_up) in [("random", 0, 0), ("ksd", k * set, k * 4), ("hip", k * set, k * set)] {
        let schedule = format!("[schedule]\nkind = \"{kind}\"\nclients = 4");
        for round in &outcome(&digits("p-dsvgd", 6, 2, &schedule)).rounds {
            assert_eq!(round.clients.len(), 4);
            assert_eq!((round.downlink_bytes, round.uplink_bytes), (asked_down + 4 * set, asked_up + 4 * set));
        }
    }
}

#[test]
fn questions_do_not_change_the_clients() {
    for algorithm in ["dsvgd", "u-dsvgd", "p-dsvgd"] {
        for order in ["epoch-permutation", "iid", "sequential-restart"] {
            let run = |clients: usize, schedule: &str| {
                outcome(&digits(algorithm, clients, 4, &format!("minibatch = \"{order}\"\n{schedule}")))
            };
            // No client is asked; or all clients are asked, with a schedule that asks its own questions too.
            let silent = bits(&run(3, ""));
            assert!(silent == bits(&run(3, "[evaluation]\ndiscrepancy = true")), "{algorithm}, {order}: diagnosis");
            // With one client every schedule chooses it; the minibatches of answers are not those of training.
            let alone = bits(&run(1, ""));
            for kind in ["ksd", "hip"] {
                for rows in ["full", "minibatch"] {
                    let asked = run(1, &format!("[schedule]\nkind = \"{kind}\"\nrows = \"{rows}\""));
                    assert!(alone == bits(&asked), "{algorithm}, {order}: {kind} over {rows} rows");
                }
            }
        }
        // Almost uniform probabilities choose the same clients, for every indicator and for all rows or a minibatch.
        let floored = |kind: &str, rows: &str| {
            let schedule = format!("[schedule]\nkind = \"{kind}\"\nrows = \"{rows}\"\nfloor = 0.999999");
            let outcome = outcome(&digits(algorithm, 6, 4, &schedule));
            (selected(&outcome), bits(&outcome))
        };
        let first = floored("ksd", "full");
        for (kind, rows) in [("ksd", "minibatch"), ("hip", "full"), ("hip", "minibatch")] {
            assert!(first == floored(kind, rows), "{algorithm}: {kind} over {rows} rows");
        }
    }
}

#[test]
fn selection_is_the_same_to_the_bit_with_any_number_of_threads() {
    for (algorithm, schedule) in [("dsvgd", "kind = \"ksd\""), ("p-dsvgd", "kind = \"hip\"\nclients = 3")] {
        let experiment = digits(algorithm, 6, 3, &format!("[schedule]\n{schedule}"));
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let outcome = pool.install(|| outcome(&experiment));
            let columns = ["indicator_min", "indicator_max", "selection_entropy"];
            let numbers: Vec<u64> = outcome
                .rounds
                .iter()
                .flat_map(|round| columns.map(|name| round.metric(name).unwrap().to_bits()))
                .collect();
            (selected(&outcome), bits(&outcome), numbers)
        };
        let once = with(1);
        assert!(once == with(2), "{algorithm}: one thread and two differ");
        assert!(once == with(5), "{algorithm}: one thread and five differ");
    }
}

/// H of the RBF kernel, entry by entry.
fn slow_product(h: f64, x: &Array2<f64>, first: &Array2<f64>, second: &Array2<f64>) -> f64 {
    let d = x.ncols() as f64;
    let rbf = |r2: f64| {
        let k = (-r2 / h).exp();
        [k, 2.0 / h * k, k * (2.0 * d / h - 4.0 * r2 / (h * h))]
    };
    slow_product_of(rbf, x, first, second)
}

/// H of a kernel, entry by entry. `kernel` gives of r² = ‖x_i − x_j‖² the kernel k, the factor of x_i − x_j in
/// ∇_{x_j} k = −∇_{x_i} k, and tr ∇_{x_i}∇_{x_j} k.
fn slow_product_of(
    kernel: impl Fn(f64) -> [f64; 3],
    x: &Array2<f64>,
    first: &Array2<f64>,
    second: &Array2<f64>,
) -> f64 {
    let n = x.nrows();
    let mut total = 0.0;
    for i in 0..n {
        for j in 0..n {
            let offset = &x.row(i) - &x.row(j);
            let [k, slope, trace] = kernel(offset.dot(&offset));
            let to_j = &offset * slope;
            total += k * first.row(i).dot(&second.row(j)) + first.row(i).dot(&to_j) - to_j.dot(&second.row(j)) + trace;
        }
    }
    total / (n * n) as f64
}

/// Median of all N² squared distances over ln(N + 1).
fn slow_bandwidth(x: &Array2<f64>) -> f64 {
    let n = x.nrows();
    let r2 = |i: usize, j: usize| (&x.row(i) - &x.row(j)).mapv(|value| value * value).sum();
    let mut all: Vec<f64> = (0..n * n).map(|at| r2(at / n, at % n)).collect();
    all.sort_by(f64::total_cmp);
    0.5 * (all[(n * n - 1) / 2] + all[n * n / 2]) / ((n + 1) as f64).ln()
}

/// Logistic regression on three clients of unequal size, f64, with a step that even f64 rounds away: Θ stays Θ^(0).
fn logistic(algorithm: &str, schedule: &str) -> Experiment {
    logistic_in_batches(algorithm, 100, schedule)
}

fn logistic_in_batches(algorithm: &str, batch: usize, schedule: &str) -> Experiment {
    experiment(&format!(
        r#"
        name = "logistic"
        seed = 3
        rounds = 1
        precision = "f64"
        [data]
        kind = "twonorm"
        rows = 101
        [partition]
        clients = 3
        [model]
        kind = "blr"
        [algorithm]
        {algorithm}
        particles = 6
        local_steps = 2
        batch = {batch}
        temperature = 2.0
        [optimizer]
        kind = "sgd"
        lr = 1e-300
        [schedule]
        {schedule}
        "#
    ))
}

/// Θ^(0) and the scores −(1/α) ∇L_k of the clients there, from the closed form.
fn logistic_scores(algorithm: &str) -> (Array2<f64>, Vec<Array2<f64>>) {
    logistic_estimates(algorithm, |_, rows| (0..rows).collect())
}

/// The same, estimated from the rows at the positions that `read` gives for a client and its number of rows.
fn logistic_estimates(algorithm: &str, read: impl Fn(usize, usize) -> Vec<usize>) -> (Array2<f64>, Vec<Array2<f64>>) {
    let still = logistic(algorithm, "kind = \"round-robin\"");
    let theta = values(&outcome(&still).particles);
    let theta = Array2::from_shape_vec((6, 21), theta).unwrap();
    let (train, clients) = (data(&still.config).train, partition_of(&still.config));
    let Targets::Classes { labels, .. } = &train.targets else { panic!("twonorm has two classes") };
    let score = |(client, all): (usize, &Vec<usize>)| {
        let rows: Vec<usize> = read(client, all.len()).into_iter().map(|position| all[position]).collect();
        let scale = all.len() as f64 / rows.len() as f64;
        let mut score = Array2::zeros(theta.raw_dim());
        for (mut score, theta) in score.rows_mut().into_iter().zip(theta.rows()) {
            for row in &rows {
                let x = train.features.row(*row).mapv(f64::from);
                let z: f64 = x.iter().zip(&theta).map(|(x, w)| x * w).sum();
                let residual = labels[*row] as f64 - 1.0 / (1.0 + (-z).exp());
                score.iter_mut().zip(&x).for_each(|(score, x)| *score += residual * x / 2.0);
            }
        }
        score * scale
    };
    let scores = clients.clients().iter().enumerate().map(score).collect();
    (theta, scores)
}

/// ∇ log p0 of logistic regression: w | ξ ~ N(0, I/ξ), ξ ~ Gamma(1, rate 100), over log ξ.
fn logistic_prior(theta: &Array2<f64>) -> Array2<f64> {
    let mut score = theta.clone();
    for (mut score, theta) in score.rows_mut().into_iter().zip(theta.rows()) {
        let xi = theta[20].exp();
        let norm: f64 = theta.iter().take(20).map(|w| w * w).sum();
        score.iter_mut().zip(theta).for_each(|(score, w)| *score = -xi * w);
        score[20] = 10.0 - 0.5 * xi * norm + 1.0 - 100.0 * xi;
    }
    score
}

/// Smallest, middle and largest indicator of the only round.
fn three_indicators(experiment: &Experiment) -> (Vec<f64>, Outcome) {
    let outcome = outcome(experiment);
    let columns = ["indicator_min", "indicator_median", "indicator_max"];
    (columns.iter().map(|name| outcome.rounds[0].metric(name).unwrap()).collect(), outcome)
}

#[test]
fn the_first_rounds_discrepancies_are_those_of_the_tilted_densities() {
    // With the prior in every factor, the factors of the paper and without factors, q/t_k·p_k is p0·p_k at first.
    for algorithm in [
        "kind = \"dsvgd\"\nfactors = \"with-prior\"",
        "kind = \"dsvgd\"\nfactors = \"paper\"",
        "kind = \"p-dsvgd\"\nfactors = \"with-prior\"\nserver_steps = 2",
        "kind = \"u-dsvgd\"",
    ] {
        let (theta, scores) = logistic_scores(algorithm);
        let prior = logistic_prior(&theta);
        let close = Tolerance { rtol: 1e-9, atol: 0.0 };
        for (bandwidth, h) in [("\"median\"", slow_bandwidth(&theta)), ("2.0", 8.0)] {
            let mut want: Vec<f64> = scores
                .iter()
                .map(|score| {
                    let tilted = score + &prior;
                    slow_product(h, &theta, &tilted, &tilted)
                })
                .collect();
            want.sort_by(f64::total_cmp);
            let schedule = format!("kind = \"ksd\"\nbandwidth = {bandwidth}");
            let (got, outcome) = three_indicators(&logistic(algorithm, &schedule));
            assert_close(&got, &want, close, algorithm);
            // (18) in the column of the round.
            let (mean, variance) = moments(&want);
            let gain = outcome.rounds[0].metric("delta_ksd").unwrap();
            assert_close(&[gain], &[variance / mean], close, "Δ/ε");
            assert_eq!(outcome.rounds[0].metric("delta_hip"), None);
            let share = outcome.rounds[0].metric("constant_share").unwrap();
            assert_close(&[share], &[2.0 * 21.0 / h / 6.0 / mean], close, "constant share");
        }
        // A minibatch as large as the shard contains all rows.
        let minibatch = logistic(algorithm, "kind = \"ksd\"\nrows = \"minibatch\"");
        let full = logistic(algorithm, "kind = \"ksd\"\nrows = \"full\"");
        assert_close(&three_indicators(&minibatch).0, &three_indicators(&full).0, close, "minibatch");
        let diagnosis = "kind = \"round-robin\"\n[evaluation]\ndiscrepancy = true";
        let (got, outcome) = three_indicators(&logistic(algorithm, diagnosis));
        let h = slow_bandwidth(&theta);
        let mut want: Vec<f64> = scores.iter().map(|s| slow_product(h, &theta, &(s + &prior), &(s + &prior))).collect();
        want.sort_by(f64::total_cmp);
        assert_close(&got, &want, close, "evaluation.discrepancy");
        assert_eq!(outcome.rounds[0].metric("delta_ksd"), None, "nothing was gained where nothing was chosen");
    }
}

#[test]
fn the_first_rounds_inner_products_are_those_of_the_likelihoods() {
    for algorithm in ["kind = \"dsvgd\"", "kind = \"u-dsvgd\"", "kind = \"p-dsvgd\"\nserver_steps = 2"] {
        let (theta, scores) = logistic_scores(algorithm);
        let mean = scores.iter().fold(Array2::zeros(theta.raw_dim()), |sum, score| sum + score) / 3.0;
        let h = slow_bandwidth(&theta);
        let mut want: Vec<f64> = scores.iter().map(|score| slow_product(h, &theta, score, &mean)).collect();
        let (got, _) = three_indicators(&logistic(algorithm, "kind = \"hip\""));
        want.sort_by(f64::total_cmp);
        assert_close(&got, &want, Tolerance { rtol: 1e-9, atol: 1e-9 * want[2].abs() }, algorithm);
    }
}

#[test]
fn indicators_of_a_minibatch_are_those_of_its_rows_times_rows_over_batch() {
    const BATCH: usize = 7;
    for algorithm in ["kind = \"dsvgd\"\nfactors = \"with-prior\"", "kind = \"u-dsvgd\"", "kind = \"newton-dsvgd\""] {
        // The rows of the question of round 1, in a run with seed 3.
        let (theta, scores) = logistic_estimates(algorithm, |client, rows| {
            assert!(rows > 2 * BATCH, "{rows} rows");
            Minibatches::new(Order::EpochPermutation, rows, BATCH, Streams::new(3), client).question_batch(1)
        });
        let (h, prior) = (slow_bandwidth(&theta), logistic_prior(&theta));
        let mean = scores.iter().fold(Array2::zeros(theta.raw_dim()), |sum, score| sum + score) / 3.0;
        let tilted = |score: &Array2<f64>| slow_product(h, &theta, &(score + &prior), &(score + &prior));
        let ksd: Vec<f64> = scores.iter().map(tilted).collect();
        let hip: Vec<f64> = scores.iter().map(|score| slow_product(h, &theta, score, &mean)).collect();
        for (kind, mut want) in [("ksd", ksd), ("hip", hip)] {
            want.sort_by(f64::total_cmp);
            let schedule = format!("kind = \"{kind}\"\nrows = \"minibatch\"");
            let (got, _) = three_indicators(&logistic_in_batches(algorithm, BATCH, &schedule));
            let close = Tolerance { rtol: 1e-9, atol: 1e-9 * want[2].abs() };
            assert_close(&got, &want, close, &format!("{algorithm}, {kind}"));
        }
    }
}

#[test]
fn the_median_rule_of_selection_is_that_of_svgds_kernel() {
    let (theta, scores) = logistic_scores("kind = \"dsvgd\"\nfactors = \"with-prior\"");
    let prior = logistic_prior(&theta);
    // (median of the pair distances)² / ln N
    let r = |i: usize, j: usize| (&theta.row(i) - &theta.row(j)).mapv(|value| value * value).sum().sqrt();
    let mut pairs: Vec<f64> = (0..6).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| r(i, j)).collect();
    pairs.sort_by(f64::total_cmp);
    let h = pairs[7].powi(2) / 6f64.ln();
    let mut want: Vec<f64> = scores.iter().map(|s| slow_product(h, &theta, &(s + &prior), &(s + &prior))).collect();
    want.sort_by(f64::total_cmp);
    let schedule = "kind = \"ksd\"\n[kernel]\nbandwidth = \"paper\"";
    let (got, _) = three_indicators(&logistic("kind = \"dsvgd\"\nfactors = \"with-prior\"", schedule));
    assert_close(&got, &want, Tolerance { rtol: 1e-9, atol: 0.0 }, "paper rule");
}

#[test]
fn clients_are_compared_with_the_kernel_of_the_schedule_and_not_with_that_of_svgd() {
    let algorithm = "kind = \"dsvgd\"\nfactors = \"with-prior\"";
    let (theta, scores) = logistic_scores(algorithm);
    let prior = logistic_prior(&theta);
    let tilted: Vec<Array2<f64>> = scores.iter().map(|score| score + &prior).collect();
    let mean = scores.iter().fold(Array2::zeros(theta.raw_dim()), |sum, score| sum + score) / 3.0;
    // k = q^(−½) with q = 1 + r²/h and h = 2·2² in d = 21: ∇_{x_j} k = q^(−3/2)(x_i − x_j)/8, and the trace is
    // (21/8) q^(−3/2) − (3 r²/64) q^(−5/2).
    let imq = |r2: f64| {
        let q = 1.0 + r2 / 8.0;
        [q.powf(-0.5), q.powf(-1.5) / 8.0, 21.0 / 8.0 * q.powf(-1.5) - 3.0 * r2 / 64.0 * q.powf(-2.5)]
    };
    let of_ksd: Vec<f64> = tilted.iter().map(|score| slow_product_of(imq, &theta, score, score)).collect();
    let of_hip: Vec<f64> = scores.iter().map(|score| slow_product_of(imq, &theta, score, &mean)).collect();
    // A number is the bandwidth of SVGD's kernel alone: the median rule of the schedule stays.
    let h = slow_bandwidth(&theta);
    let by_median: Vec<f64> = tilted.iter().map(|score| slow_product(h, &theta, score, score)).collect();
    for (schedule, mut want) in [
        ("kind = \"ksd\"\nkernel = \"imq\"\nbandwidth = 2.0", of_ksd),
        ("kind = \"hip\"\nkernel = \"imq\"\nbandwidth = 2.0", of_hip),
        ("kind = \"ksd\"\n[kernel]\nbandwidth = 2.0", by_median),
    ] {
        want.sort_by(f64::total_cmp);
        let (got, _) = three_indicators(&logistic(algorithm, schedule));
        assert_close(&got, &want, Tolerance { rtol: 1e-9, atol: 1e-9 * want[2].abs() }, schedule);
    }
}

/// Five clients: client 0 holds `big` rows, the others 20 each whose features are `faint` times as large.
fn unequal(big: usize, faint: f64, schedule: &str) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clients.csv");
    let mut text = String::from("client,a,b,label\n");
    let mut rng = ChaCha12Rng::seed_from_u64(8);
    for client in 0..5 {
        let (rows, size) = if client == 0 { (big, 1.0) } else { (20, faint) };
        for row in 0..rows {
            let label = if row % 2 == 0 { 1.0 } else { -1.0 };
            let mut cell = || {
                let z: f64 = StandardNormal.sample(&mut rng);
                size * (label + z)
            };
            text += &format!("{client},{},{},{}\n", cell(), cell(), if label > 0.0 { "yes" } else { "no" });
        }
    }
    std::fs::write(&path, text).unwrap();
    let text = format!(
        r#"
        name = "unequal"
        rounds = 60
        precision = "f64"
        [data]
        kind = "csv"
        path = {path:?}
        target = "label"
        client_column = "client"
        normalise = "none"
        [partition]
        kind = "by-column"
        [model]
        kind = "blr"
        gamma_rate = 1.0
        [algorithm]
        kind = "dsvgd"
        particles = 4
        local_steps = 1
        distill_steps = 1
        batch = 10
        [optimizer]
        lr = 1e-3
        [schedule]
        {schedule}
        "#
    );
    outcome(&experiment(&text))
}

#[test]
fn a_client_with_a_far_larger_indicator_is_selected_more_often() {
    for (what, big, faint) in [("ten times the rows", 200, 1.0), ("features fifty times as large", 20, 0.02)] {
        for kind in ["ksd", "hip"] {
            let outcome = unequal(big, faint, &format!("kind = \"{kind}\""));
            let visits = selected(&outcome).iter().filter(|client| **client == 0).count();
            // A fifth of 60 rounds by chance: 12 ± 3.1. 30 would be six standard deviations.
            assert!(visits >= 30, "{kind}, {what}: {visits} of 60 rounds");
            assert!(outcome.rounds[0].metric("selection_entropy").unwrap() < 0.9);
        }
        let even = unequal(big, faint, "kind = \"random\"");
        let visits = selected(&even).iter().filter(|client| **client == 0).count();
        assert!((3..=22).contains(&visits), "random, {what}: {visits} of 60 rounds");
    }
}

#[test]
fn every_selection_is_written_with_its_reasons() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = digits("dsvgd", 4, 5, "[schedule]\nkind = \"hip\"\nnegative = \"softmax\"\nfloor = 0.1");
    let text = toml::to_string(&experiment.config).unwrap();
    let (config, resolved) = Config::load(Source { name: "t", text: &text }, &Overrides::default()).unwrap();
    let experiment = Experiment { config, ..experiment };
    let path = dir.path().join("run");
    let mut artifacts = Artifacts::new(path.clone(), false, resolved);
    let outcome = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    let lines = std::fs::read_to_string(path.join("selection.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5);
    let mut visits = [0; 4];
    for (line, record) in lines.iter().zip(&outcome.rounds) {
        assert_eq!(line["round"], record.round);
        assert_eq!((line["measure"].as_str(), line["action"].as_str()), (Some("hip"), Some("softmax")));
        assert_eq!(line["selected"], Value::from(record.clients.clone()));
        visits[record.clients[0]] += 1;
        assert_eq!(line["visits"], Value::from(visits.to_vec()));
        let (p, hip) = (flat(&line["probabilities"]), flat(&line["indicators"]));
        assert_eq!((p.len(), hip.len()), (4, 4));
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p.iter().all(|p| *p >= 0.025 * (1.0 - 1e-12)), "{p:?}");
        let plain = probabilities(&hip, Negative::Softmax { temperature: None }).0;
        let floored: Vec<f64> = plain.iter().map(|p| 0.025 + 0.9 * p).collect();
        assert_close(&p, &floored, Tolerance { rtol: 1e-9, atol: 0.0 }, "probabilities");
        let mean = hip.iter().sum::<f64>() / 4.0;
        let gain = p.iter().zip(&hip).map(|(p, hip)| p * hip).sum::<f64>() - mean;
        let close = Tolerance { rtol: 1e-9, atol: 1e-9 * mean.abs() };
        assert_close(&[line["gain"].as_f64().unwrap(), record.metric("delta_hip").unwrap()], &[gain; 2], close, "gain");
        assert!(line["bandwidth"].as_f64().unwrap() > 0.0);
    }
    // A run that asks no client has nothing to record.
    let quiet = dir.path().join("quiet");
    let (config, resolved) =
        Config::load(Source { name: "t", text: "rounds = 1\n[algorithm]\nlocal_steps = 1" }, &Overrides::default())
            .unwrap();
    run::<Flex>(
        &Experiment { config, ..experiment },
        &Quiet,
        Some(&mut Artifacts::new(quiet.clone(), false, resolved)),
    )
    .unwrap();
    assert!(quiet.join("rounds.csv").exists() && !quiet.join("selection.jsonl").exists());
}
