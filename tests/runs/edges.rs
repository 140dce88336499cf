//! The extremes of the allowed configs: every algorithm runs there with finite numbers, or names the wrong key.

use std::path::Path;
use std::sync::Arc;

use crate::common::{
    SILENT, algorithms, algorithms_that, bits, data, experiment, has_clients, has_key, needs_plain_steps, outcome,
    partition_of, small_digits, try_run, values,
};
use burn::tensor::Tensor;
use fedstein::datasets::Targets;
use fedstein::experiment::evaluate::Predicted;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, Outcome};
use fedstein::models::{Batch, Layout, Model, Prior, RowCurvature, Task};
use rand::Rng;

/// The algorithms that divide a network into two parts.
fn splits(kind: &str) -> bool {
    has_key(kind, "personal_layers")
}

/// The algorithms whose clients can be compared.
fn is_tilted(kind: &str) -> bool {
    algorithms_that(|can| can.tilted).contains(&kind)
}

/// The algorithms whose particles move without `[optimizer]`, or (`pfedgp`) only in part.
const NOT_OPTIMISED: [&str; 7] = ["sgld", "dsgld", "pvi", "gvi", "pmd", "npv", "pfedgp"];

/// The deviations from the default config.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge<'a> {
    /// Keys of `[algorithm]` and their values; those that a kind does not have are left out.
    pub(crate) algorithm: &'a [(&'a str, &'a str)],
    /// The section `[partition]`.
    pub(crate) partition: &'a str,
    /// Further sections.
    pub(crate) more: &'a str,
    /// Whether all rows have the same features.
    pub(crate) constant: bool,
}

pub(crate) const USUAL: Edge = Edge { algorithm: &[], partition: "clients = 3", more: "", constant: false };

/// Sizes at which a run takes a few milliseconds.
const SMALL: [(&str, &str); 5] =
    [("particles", "4"), ("local_steps", "3"), ("distill_steps", "2"), ("server_steps", "2"), ("batch", "4")];

/// Twenty-four training rows and eight of test, of two classes or with a number as target.
pub(crate) fn write_rows(dir: &Path, task: &str, constant: bool) {
    let row = |i: usize| {
        let (a, b) = if constant { (1.5, -0.5) } else { ((i as f64).sin(), (2.0 * i as f64).cos()) };
        let target = if task == "regression" { format!("{}", a + 0.1 * i as f64) } else { ["no", "yes"][i % 2].into() };
        format!("{a},{b},{target}\n")
    };
    for (name, rows) in [("train.csv", 0..24), ("test.csv", 24..32)] {
        std::fs::write(dir.join(name), format!("a,b,target\n{}", rows.map(row).collect::<String>())).unwrap();
    }
}

/// The config of an algorithm at an edge.
pub(crate) fn text(dir: &Path, kind: &str, task: &str, edge: &Edge) -> String {
    let mut keys = String::new();
    let of_kind = |name: &str| has_key(kind, name);
    let usual = SMALL.iter().filter(|(name, _)| !edge.algorithm.iter().any(|(other, _)| other == name));
    for (name, value) in usual.chain(edge.algorithm).filter(|(name, _)| of_kind(name)) {
        // Particle mirror descent chooses among its particles, of which one is no choice.
        let value = if (kind, *name, *value) == ("pmd", "particles", "1") { "2" } else { value };
        keys += &format!("{name} = {value}\n");
    }
    let (train, test) = (dir.join("train.csv"), dir.join("test.csv"));
    let Edge { partition, more, .. } = edge;
    let plain = needs_plain_steps(kind) && !more.contains("[optimizer]");
    let optimizer = if plain { "[optimizer]\nkind = \"sgd\"" } else { "" };
    let personal = has_clients(kind);
    format!(
        r#"
        name = "edge"
        rounds = 3
        precision = "f64"
        [data]
        kind = "csv"
        path = {train:?}
        test_path = {test:?}
        target = "target"
        task = "{task}"
        [partition]
        {partition}
        [model]
        kind = "bnn"
        hidden = [3]
        [algorithm]
        kind = "{kind}"
        {keys}
        [evaluation]
        personal = {personal}
        {optimizer}
        {more}
        "#
    )
}

/// Asserts that no number of an outcome is NaN or infinite, and that there is a metric.
fn check(what: &str, outcome: &Outcome) {
    let particles = values(&outcome.particles);
    assert!(particles.iter().all(|value| value.is_finite()), "{what}: particles {particles:?}");
    for round in &outcome.rounds {
        for (name, value) in &round.metrics {
            assert!(value.is_none_or(f64::is_finite), "{what}, round {}: {name} is {value:?}", round.round);
        }
        let score = round.metric("accuracy").or(round.metric("rmse"));
        assert!(score.is_some(), "{what}, round {}: no score", round.round);
    }
}

/// Runs every algorithm at an edge, those with tilted densities under every schedule; in the end, what was refused.
fn at_the_edge(task: &str, edge: Edge, change: impl Fn(&mut Experiment)) -> Vec<(String, String)> {
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), task, edge.constant);
    let mut refused = Vec::new();
    for kind in algorithms() {
        let schedules: &[&str] = if is_tilted(kind) { &["round-robin", "ksd", "hip"] } else { &["round-robin"] };
        for schedule in schedules {
            let what = format!("{kind}, {schedule}, {task}, {edge:?}");
            let more = format!("[schedule]\nkind = \"{schedule}\"\n{}", edge.more);
            let text = text(dir.path(), kind, task, &Edge { more: &more, ..edge });
            if task == "regression" && algorithms_that(|can| can.classifies).contains(&kind) {
                assert!(conflict(&text).contains("predicts classes"), "{what}");
                continue;
            }
            let mut experiment = experiment(&text);
            change(&mut experiment);
            match try_run(&experiment) {
                Ok(outcome) => check(&what, &outcome),
                Err(error) => refused.push((what, error.to_string())),
            }
        }
    }
    refused
}

fn runs(edge: Edge) {
    for task in ["classification", "regression"] {
        let refused = at_the_edge(task, edge, |_| {});
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn a_key_that_a_note_calls_without_effect_has_none_and_another_has_one() {
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), "classification", false);
    let mut wrong = Vec::new();
    for (particles, kind) in
        ["1", "4"].iter().flat_map(|count| algorithms().into_iter().map(move |kind| (*count, kind)))
    {
        if kind == SILENT {
            continue;
        }
        let algorithm = [("particles", particles)];
        let with = |more: &str, set: &[&str]| {
            let text = text(dir.path(), kind, "classification", &Edge { algorithm: &algorithm, more, ..USUAL });
            let overrides = Overrides { set: set.iter().map(ToString::to_string).collect(), ..Overrides::default() };
            let (config, resolved) = Config::load(Source { name: "e.toml", text: &text }, &overrides).unwrap();
            (bits(&outcome(&Experiment::new(config, "data"))), resolved.notes.join("\n"))
        };
        let run = |more: &str| with(more, &[]);
        let optimizer = if needs_plain_steps(kind) { "kind = \"sgd\"\n" } else { "" };
        let (usual, _) = run(&format!("[optimizer]\n{optimizer}lr = 0.01"));
        let (faster, of_optimizer) = run(&format!("[optimizer]\n{optimizer}lr = 0.02"));
        let (wider, of_kernel) = run(&format!("[optimizer]\n{optimizer}lr = 0.01\n[kernel]\nbandwidth = 0.7"));
        let usual_keys = format!("[optimizer]\n{optimizer}lr = 0.01");
        let (tighter, of_prior) = with(&usual_keys, &["model.weight_precision=9.0"]);
        let (elsewhere, of_start) = with(&usual_keys, &["model.init=kaiming-uniform"]);
        for (what, changed, notes) in [
            ("optimizer.lr", faster, of_optimizer),
            ("kernel.bandwidth", wider, of_kernel),
            ("model.weight_precision", tighter, of_prior),
            ("model.init", elsewhere, of_start),
        ] {
            // Of two particles `pmd` takes the same one under either prior.
            if (kind, particles, what) == ("pmd", "1", "model.weight_precision") {
                continue;
            }
            let is_noted = notes.contains(&format!("`{what}` has no effect"));
            if is_noted != (changed == usual) {
                wrong.push(format!("{kind}, {particles} particles, {what}: {notes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_client_takes_as_many_steps_as_its_epochs_have_minibatches() {
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), "classification", false);
    let kinds: Vec<&str> = algorithms().into_iter().filter(|kind| has_key(kind, "local_epochs")).collect();
    assert!(kinds.len() >= 16, "{kinds:?}");
    let mut sizes = std::collections::BTreeSet::new();
    for (kind, client) in kinds.iter().flat_map(|kind| [(*kind, 0), (*kind, 2)]) {
        let more = format!("[schedule]\nkind = \"round-robin\"\nfirst = {client}");
        let partition = "kind = \"dirichlet\"\nalpha = 1.0\nclients = 3";
        let with = |set: String| {
            let text = text(dir.path(), kind, "classification", &Edge { partition, more: &more, ..USUAL });
            let set = vec!["rounds=1".to_owned(), set];
            let overrides = Overrides { set, ..Overrides::default() };
            let (config, _) = Config::load(Source { name: "e.toml", text: &text }, &overrides).unwrap();
            let rows = partition_of(&config).clients()[client].len();
            (rows, bits(&outcome(&Experiment::new(config, "data"))))
        };
        let (rows, epochs) = with("algorithm.local_epochs=2".to_owned());
        // Minibatches of four rows, or of all where these are fewer.
        let (_, steps) = with(format!("algorithm.local_steps={}", (2 * rows).div_ceil(rows.min(4))));
        assert!(epochs == steps, "{kind}, client {client} with {rows} rows");
        sizes.insert(rows);
    }
    assert!(sizes.len() == 2, "{sizes:?}");
}

#[test]
fn the_control_variates_of_scaffold_divide_by_the_steps_that_its_epochs_have() {
    // A visit whose pace is another leaves the same θ and another control variate, which moves the next visits.
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), "classification", false);
    let partition = "kind = \"iid\"\nclients = 2";
    let with = |set: &str| {
        let text = text(dir.path(), "scaffold", "classification", &Edge { partition, ..USUAL });
        let overrides = Overrides { set: vec!["rounds=4".into(), set.into()], ..Overrides::default() };
        let (config, _) = Config::load(Source { name: "e.toml", text: &text }, &overrides).unwrap();
        assert_eq!(partition_of(&config).clients().iter().map(Vec::len).collect::<Vec<_>>(), [12, 12]);
        bits(&outcome(&Experiment::new(config, "data")))
    };
    // Two passes over twelve rows in minibatches of four.
    let epochs = with("algorithm.local_epochs=2");
    assert!(epochs == with("algorithm.local_steps=6"));
    assert!(epochs != with("algorithm.local_steps=3"));
}

#[test]
fn one_particle_two_and_three_run() {
    for particles in ["1", "2", "3"] {
        runs(Edge { algorithm: &[("particles", particles)], ..USUAL });
    }
}

#[test]
fn more_particles_than_rows_run() {
    runs(Edge { algorithm: &[("particles", "40")], ..USUAL });
}

#[test]
fn one_client_runs() {
    runs(Edge { partition: "clients = 1", ..USUAL });
}

#[test]
fn as_many_clients_as_rows_run_and_more_are_refused() {
    runs(Edge { partition: "clients = 24", ..USUAL });
    let refused = at_the_edge("classification", Edge { partition: "clients = 25", ..USUAL }, |_| {});
    assert!(refused.len() == algorithms().len() + 2 * algorithms_that(|can| can.tilted).len(), "{refused:?}");
    for (what, error) in refused {
        assert!(error.contains("clients") && error.contains("25") && error.contains("24"), "{what}: {error}");
    }
}

#[test]
fn clients_of_one_class_run() {
    let partition = "kind = \"labels-per-client\"\nclients = 4\nlabels = 1";
    let refused = at_the_edge("classification", Edge { partition, ..USUAL }, |_| {});
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_batch_larger_than_a_client_runs() {
    runs(Edge { algorithm: &[("batch", "1000")], ..USUAL });
    runs(Edge { algorithm: &[("batch", "1")], ..USUAL });
}

#[test]
fn features_that_never_change_run() {
    runs(Edge { constant: true, ..USUAL });
    runs(Edge { constant: true, algorithm: &[("particles", "1")], partition: "clients = 1", ..USUAL });
}

#[test]
fn no_distillation_runs() {
    runs(Edge { algorithm: &[("distill_steps", "0")], ..USUAL });
}

#[test]
fn densities_of_every_kind_run() {
    for density in [[("kde_bandwidth", "\"median\"")], [("kde_bandwidth", "\"scott\"")]] {
        runs(Edge { algorithm: &density, ..USUAL });
        runs(Edge { algorithm: &[density[0], ("particles", "1")], ..USUAL });
    }
    for factors in ["\"with-prior\"", "\"paper\""] {
        runs(Edge { algorithm: &[("factors", factors)], ..USUAL });
        runs(Edge { algorithm: &[("factors", factors), ("kde_clip", "1.0"), ("kde_damping", "0.5")], ..USUAL });
    }
}

/// A model whose particles all begin at the same place.
#[derive(Debug)]
struct Together(Arc<dyn Model>);

impl Model for Together {
    fn layout(&self) -> &Arc<Layout> {
        self.0.layout()
    }

    fn task(&self) -> Task {
        self.0.task()
    }

    fn prior(&self) -> &Prior {
        self.0.prior()
    }

    fn initial(&self, _rng: &mut dyn Rng) -> Vec<f64> {
        (0..self.layout().dim()).map(|j| 0.1 * (j as f64).sin()).collect()
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        self.0.likelihood_score(particles, batch, scale)
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        self.0.log_likelihood(particles, batch)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        self.0.predict(particles, inputs)
    }

    fn log_noise_precision(&self) -> Option<usize> {
        self.0.log_noise_precision()
    }

    fn row_curvature(&self, particles: &[Tensor<2>], inputs: Tensor<2>, uniforms: Tensor<2>) -> Option<RowCurvature> {
        self.0.row_curvature(particles, inputs, uniforms)
    }

    fn embed(&self, particles: &[Tensor<2>], inputs: Tensor<2>, head_layers: usize) -> Option<Tensor<3>> {
        self.0.embed(particles, inputs, head_layers)
    }

    fn embedding_score(
        &self,
        particles: &[Tensor<2>],
        inputs: Tensor<2>,
        head_layers: usize,
        cotangent: Tensor<3>,
    ) -> Option<Vec<Tensor<2>>> {
        self.0.embedding_score(particles, inputs, head_layers, cotangent)
    }
}

#[test]
fn particles_that_begin_at_one_place_run() {
    for task in ["classification", "regression"] {
        let refused = at_the_edge(task, USUAL, |experiment| {
            let data = crate::common::data(&experiment.config);
            experiment.model = Some(Arc::new(Together(experiment.config.model(&data.train).unwrap())));
        });
        assert!(refused.is_empty(), "{refused:#?}");
    }
}

#[test]
fn far_too_long_steps_fail_with_their_key_and_never_silently() {
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), "classification", false);
    for kind in algorithms() {
        let (key, edge) = match kind {
            kind if !NOT_OPTIMISED.contains(&kind) => {
                // Without repeats: another client in the first one's place may have no gradient, and get through.
                let more = "[optimizer]\nkind = \"sgd\"\nlr = 1e308\n[federation]\nrepeats = 0";
                ("optimizer.lr", Edge { more, ..USUAL })
            }
            "sgld" | "dsgld" => ("algorithm.step_size", Edge { algorithm: &[("step_size", "1e308")], ..USUAL }),
            _ => continue,
        };
        for rounds in [1, 3] {
            let mut experiment = experiment(&text(dir.path(), kind, "classification", &edge));
            experiment.config.rounds = rounds;
            match try_run(&experiment) {
                Ok(outcome) => panic!("{kind}: {:?}", outcome.evaluation),
                Err(error) => assert!(error.to_string().contains(key), "{kind}, {rounds} rounds: {error}"),
            }
        }
    }
}

#[test]
fn a_toy_runs_with_a_single_particle_and_under_every_schedule() {
    for kind in algorithms() {
        let schedules: &[&str] = if is_tilted(kind) { &["round-robin", "ksd", "hip"] } else { &["round-robin"] };
        for (schedule, prior) in schedules.iter().flat_map(|schedule| [(schedule, "gaussian"), (schedule, "uniform")]) {
            let particles = match kind {
                "pmd" => "particles = 2",
                _ if has_key(kind, "particles") => "particles = 1",
                _ => "",
            };
            let optimizer = if needs_plain_steps(kind) { "[optimizer]\nkind = \"sgd\"" } else { "" };
            let text = format!(
                "rounds = 2\nprecision = \"f64\"\n[data]\nkind = \"mixture-1d\"\n[partition]\nkind = \"by-column\"\n\
                 [model]\nkind = \"mixture\"\nprior = \"{prior}\"\n[algorithm]\nkind = \"{kind}\"\n{particles}\n\
                 [schedule]\nkind = \"{schedule}\"\n{optimizer}"
            );
            if algorithms_that(|can| can.curvature).contains(&kind) {
                assert!(conflict(&text).contains("curvature"), "{kind}");
                continue;
            }
            let experiment = experiment(&text);
            if splits(kind) {
                let error = try_run(&experiment).unwrap_err();
                assert_eq!(error.exit_code(), 2, "{kind}: {error}");
                continue;
            }
            let outcome = outcome(&experiment);
            assert!(values(&outcome.particles)[0].is_finite(), "{kind}");
            let kl = outcome.evaluation.kl.unwrap();
            assert!(kl.is_finite() && kl > -1e-6, "{kind}, {schedule}, {prior}: {kl}");
        }
    }
}

// -------------------------------------------------------------------------------------------- keys that contradict

fn conflict(text: &str) -> String {
    match Config::load(Source { name: "e.toml", text }, &Overrides::default()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("accepted: {text}"),
    }
}

#[test]
fn keys_that_contradict_each_other_are_refused_by_their_names() {
    for kind in algorithms().into_iter().filter(|kind| !is_tilted(kind)) {
        for schedule in ["ksd", "hip"] {
            let message = conflict(&format!("[algorithm]\nkind = \"{kind}\"\n[schedule]\nkind = \"{schedule}\""));
            for word in [format!("schedule kind `{schedule}`"), format!("algorithm kind `{kind}`"), "`dsvgd`".into()] {
                assert!(message.contains(&word), "{message}");
            }
        }
        let message = conflict(&format!("[algorithm]\nkind = \"{kind}\"\n[evaluation]\ndiscrepancy = true"));
        assert!(message.contains("`evaluation.discrepancy`") && message.contains(kind), "{message}");
    }
    for (text, words) in [
        ("[algorithm]\nkind = \"dsvgd\"\n[schedule]\nclients = 2", ["`dsvgd`", "`schedule.clients` is 2"]),
        (
            "[algorithm]\nkind = \"u-dsvgd\"\n[schedule]\nkind = \"ksd\"\nclients = 2",
            ["`u-dsvgd`", "`schedule.clients`"],
        ),
        (
            "[algorithm]\nkind = \"p-dsvgd\"\n[schedule]\nclients = 11",
            ["`schedule.clients` is 11", "`partition.clients`"],
        ),
        (
            "[data]\nkind = \"mixture-1d\"\n[model]\nkind = \"mixture\"\n[algorithm]\nkind = \"dsvgd\"\n[evaluation]\npersonal = true",
            ["`evaluation.personal`", "`mixture-1d`"],
        ),
        ("[algorithm]\nkind = \"p-dsvgd\"\nkde = \"off\"", ["`p-dsvgd`", "`algorithm.kde`"]),
        (
            "[data]\nkind = \"mixture-1d\"\ntest_limit = 1\n[model]\nkind = \"mixture\"\n[algorithm]\nkind = \"dsvgd\"",
            ["`mixture-1d`", "`data.test_limit` must be 0"],
        ),
        ("[schedule]\nkind = \"ksd\"\nfloor = 1.0", ["`schedule.floor`", "1"]),
        ("[schedule]\nkind = \"hip\"\nbandwidth = 0.0", ["`schedule.bandwidth`", "greater than 0"]),
        ("[schedule]\nkind = \"ksd\"\nnegative = \"clip\"", ["`schedule.negative`", "`hip`"]),
    ] {
        let message = conflict(text);
        assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
    }
    // Together the reference's choices are valid.
    experiment("preset = \"reference\"");
    experiment("preset = \"reference\"\n[algorithm]\nkind = \"u-dsvgd\"");
}

#[test]
fn p_dsvgd_refuses_densities_that_are_uninformative_in_so_many_dimensions() {
    let text = "preset = \"reference\"\nrounds = 1\n[algorithm]\nkind = \"p-dsvgd\"\nlocal_steps = 1";
    let error = try_run(&experiment(text)).unwrap_err().to_string();
    for word in ["p-dsvgd", "`algorithm.kde`", "d = 3760", "\"exact\""] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_schedule_of_all_clients_is_the_same_for_every_kind() {
    // Where all take part, only the order may differ, and P-DSVGD keeps its factors by client.
    let run = |schedule: &str| {
        let keys = "particles = 4\nlocal_steps = 2\ndistill_steps = 2\nserver_steps = 2\nbatch = 20";
        let text = format!(
            "rounds = 2\n[data]\nkind = \"digits\"\ntrain_limit = 60\ntest_limit = 40\n[partition]\nclients = 3\n\
             [model]\nhidden = [5]\n[algorithm]\nkind = \"p-dsvgd\"\n{keys}\n[schedule]\nclients = 3\nkind = \"{schedule}\""
        );
        bits(&outcome(&experiment(&text)))
    };
    let first = run("round-robin");
    for schedule in ["random", "ksd", "hip"] {
        assert!(first == run(schedule), "{schedule}");
    }
}

#[test]
fn validation_rows_are_scored_in_the_place_of_the_test_rows_and_change_no_particle() {
    let of = |rows: &str| {
        let partition = "[partition]\nkind = \"labels-per-client\"\nclients = 4\nlabels = 3\nvalidation = 0.2";
        let keys = "[algorithm]\nparticles = 3\nlocal_steps = 2";
        small_digits(3, &format!("{partition}\n{keys}\n[evaluation]\nrows = \"{rows}\""))
    };
    let (on_test, on_validation) = (of("test"), of("validation"));
    let (test, validation) = (outcome(&on_test), outcome(&on_validation));
    assert!(bits(&test) == bits(&validation));
    let labels = |of: Outcome| match of.predicted {
        Predicted::Classes { labels, .. } => labels,
        other => panic!("{other:?}"),
    };
    let partition = partition_of(&on_validation.config);
    let mut held: Vec<usize> = (0..4).flat_map(|client| partition.validation(client)).copied().collect();
    held.sort_unstable();
    let Targets::Classes { labels: train, .. } = data(&on_validation.config).train.targets else { panic!() };
    let expected: Vec<usize> = held.iter().map(|row| train[*row]).collect();
    assert!(expected.len() >= 36 && expected.len() <= 44, "about a fifth of 203 rows, and not {}", expected.len());
    assert_eq!(labels(validation), expected);
    assert_eq!(labels(test).len(), 100);
}
