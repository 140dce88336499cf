//! A run that is stopped or killed or that fails, and is then resumed, has the same result, bit for bit, as one that
//! was not stopped.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::place::cells;
use crate::common::{algorithms, algorithms_that, bits, has_clients, has_key, needs_plain_steps};
use fedstein::backend::Flex;
use fedstein::checkpoint::codec;
use fedstein::error::RunError;
use fedstein::experiment::artifact::Artifacts;
use fedstein::experiment::progress::{Observer, Quiet};
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, Outcome, RoundRecord, run};
use fedstein::federation::fault_policy::ClientReliability;
use tempfile::TempDir;

// -------------------------------------------------------------------------------------------- every algorithm

const ROUNDS: usize = 6;

/// Six rounds of three clients, so that each is visited before a stop and after it; minibatches that divide no client.
fn small(kind: &str, more: &[&str]) -> Overrides {
    let optimizer = if needs_plain_steps(kind) { "sgd" } else { "adagrad" };
    let several = !algorithms_that(|can| can.one_client_per_round).contains(&kind);
    let mut set = vec![
        format!("rounds={ROUNDS}"),
        format!("algorithm.kind={kind}"),
        format!("optimizer.kind={optimizer}"),
        "optimizer.reset=never".into(),
        "data.train_limit=130".into(),
        "data.test_limit=40".into(),
        "partition.clients=3".into(),
        "partition.validation=0.2".into(),
        format!("schedule.clients={}", if several { 2 } else { 1 }),
        "evaluation.every=2".into(),
        format!("evaluation.personal={}", has_clients(kind)),
        "checkpoint.every_seconds=0".into(),
    ];
    for (key, value) in [
        ("particles", 3),
        ("local_steps", 3),
        ("distill_steps", 3),
        ("server_steps", 3),
        ("batch", 7),
        ("samples", 2),
        ("head_steps", 2),
        ("inner_steps", 2),
        ("inducing_rows", 20),
    ] {
        if has_key(kind, key) {
            set.push(format!("algorithm.{key}={value}"));
        }
    }
    if !more.iter().any(|more| more.starts_with("model.kind=")) {
        set.push("model.hidden=[6]".into());
    }
    set.extend(more.iter().map(|more| (*more).to_owned()));
    Overrides { set, ..Overrides::default() }
}

/// The experiment, with its files at `path`: new ones, or those of a stopped run.
fn on(overrides: &Overrides, path: &Path, resumes: bool) -> (Experiment, Artifacts) {
    let (config, resolved) = Config::load(Source { name: "test", text: "" }, overrides).unwrap();
    let experiment = Experiment::new(config, "data");
    let path = path.to_path_buf();
    let artifacts = match resumes {
        true => Artifacts::resume(path, resolved, &mut |note| panic!("{note}")).unwrap(),
        false => Artifacts::new(path, false, resolved),
    };
    (experiment, artifacts)
}

/// Ends a run after its first round, or before it; if patient, it lets it go on.
#[derive(Default)]
struct Impatient {
    rounds: AtomicUsize,
    is_patient: bool,
    /// The round after which the run went on; 0 where it began anew.
    after: AtomicUsize,
}

impl Observer for Impatient {
    fn started(&self, _: usize, _: &str) {}
    fn round(&self, _: usize, _: &[usize]) {}
    fn step(&self, _: usize, _: usize) {}
    fn finished_round(&self, _: &RoundRecord) {
        self.rounds.fetch_add(1, Relaxed);
    }
    fn finished(&self) {}
    fn note(&self, _: &str) {}
    fn continued(&self, round: usize, _: usize) {
        self.after.store(round, Relaxed);
    }
    fn wants_to_stop(&self) -> bool {
        !self.is_patient
    }
}

/// Nobody waits for the run any more once so many rounds have ended.
struct Gone {
    after: usize,
    rounds: AtomicUsize,
}

impl Observer for Gone {
    fn finished_round(&self, _: &RoundRecord) {
        self.rounds.fetch_add(1, Relaxed);
    }
    fn gives_up(&self) -> bool {
        self.rounds.load(Relaxed) >= self.after
    }
}

#[test]
fn a_run_that_nobody_waits_for_writes_nothing() {
    let overrides = small("fedavg", &[]);
    for after in [0, 2] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("run");
        let (experiment, mut artifacts) = on(&overrides, &path, false);
        let gone = Gone { after, rounds: AtomicUsize::new(0) };
        let ended = run::<Flex>(&experiment, &gone, Some(&mut artifacts)).unwrap_err();
        assert!(matches!(ended, RunError::Interrupted { round, rounds: ROUNDS } if round == after), "{ended}");
        assert_eq!(gone.rounds.into_inner(), after);
        drop(artifacts);
        match after {
            0 => assert!(!path.exists()),
            _ => {
                let rounds = fs::read_to_string(path.join("rounds.csv")).unwrap();
                assert_eq!(rounds.lines().count(), 1 + after, "{rounds}");
                assert!(!path.join("summary.json").exists() && path.join("checkpoint/round-2.json").exists());
            }
        }
    }
}

/// A run that is stopped after every round, each time by another process as far as its state is concerned.
fn stopped_after_every_round(overrides: &Overrides, path: &Path) -> Outcome {
    for round in 1..ROUNDS {
        let (experiment, mut artifacts) = on(overrides, path, round > 1);
        let observer = Impatient::default();
        let stopped = run::<Flex>(&experiment, &observer, Some(&mut artifacts)).unwrap_err();
        assert!(matches!(stopped, RunError::Interrupted { round: last, rounds: ROUNDS } if last == round), "{stopped}");
        assert_eq!(observer.rounds.into_inner(), 1);
    }
    let (experiment, mut artifacts) = on(overrides, path, true);
    run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap()
}

/// As [`stopped_after_every_round`], for a run that may end before its last round.
fn stopped_until_it_ends(overrides: &Overrides, path: &Path) -> Outcome {
    for round in 1.. {
        let (experiment, mut artifacts) = on(overrides, path, round > 1);
        match run::<Flex>(&experiment, &Impatient::default(), Some(&mut artifacts)) {
            Ok(outcome) => return outcome,
            Err(stopped) => {
                assert!(matches!(stopped, RunError::Interrupted { round: last, .. } if last == round), "{stopped}")
            }
        }
    }
    unreachable!("a run ends after its last round")
}

/// The records without the times.
fn timeless(outcome: &Outcome) -> Vec<String> {
    let record = |record: &RoundRecord| {
        let mut record = RoundRecord { seconds: 0.0, round_seconds: 0.0, evaluation_seconds: 0.0, ..record.clone() };
        record.metrics.retain(|(name, _)| !name.ends_with("seconds"));
        format!("{record:?}")
    };
    outcome.rounds.iter().map(record).collect()
}

/// `rounds.csv` without the columns that a clock fills.
pub(crate) fn csv(path: &Path) -> Vec<Vec<String>> {
    let rows = cells(&fs::read_to_string(path.join("rounds.csv")).unwrap());
    let timed: Vec<bool> = rows[0].iter().map(|name| name.ends_with("seconds")).collect();
    let kept = |row: Vec<String>| row.into_iter().zip(&timed).filter(|(_, timed)| !**timed).map(|(cell, _)| cell);
    rows.into_iter().map(|row| kept(row).collect()).collect()
}

/// The differences between a run that is stopped after every round and one that is not.
fn differences(kind: &str, more: &[&str]) -> Vec<String> {
    differences_in(TempDir::new().unwrap().path(), kind, more)
}

/// The same, with the files of the one run in `stopped` and those of the other in `straight`.
fn differences_in(dir: &Path, kind: &str, more: &[&str]) -> Vec<String> {
    let overrides = small(kind, more);
    let (straight, stopped) = (dir.join("straight"), dir.join("stopped"));
    let (experiment, mut artifacts) = on(&overrides, &straight, false);
    let want = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    let got = stopped_after_every_round(&overrides, &stopped);
    let file = |path: &Path, name: &str| fs::read(path.join(name)).unwrap_or_default();
    let same_file = |name: &str| file(&stopped, name) == file(&straight, name);
    let compared = [
        ("particles", bits(&got) == bits(&want)),
        ("posterior", got.posterior == want.posterior),
        ("records", timeless(&got) == timeless(&want)),
        ("evaluation", got.evaluation == want.evaluation),
        ("personal scores", format!("{:?}", got.personal) == format!("{:?}", want.personal)),
        ("rounds.csv", csv(&stopped) == csv(&straight)),
        ("particles.safetensors", same_file("particles.safetensors")),
        ("predictions.csv", same_file("predictions.csv")),
        ("selection.jsonl", same_file("selection.jsonl")),
        ("events.jsonl", same_file("events.jsonl")),
        ("config.toml", same_file("config.toml")),
    ];
    let differ = compared.iter().filter(|(_, same)| !same);
    differ.map(|(what, _)| format!("{what} of {kind} {more:?}")).collect()
}

#[test]
fn every_algorithm_ends_as_if_it_had_not_been_stopped_after_every_round() {
    assert!(algorithms().len() > 20);
    let differ: Vec<String> = algorithms().into_iter().flat_map(|kind| differences(kind, &[])).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn the_variants_of_algorithms_end_as_if_they_had_not_been_stopped() {
    let variants: &[(&str, &[&str])] = &[
        ("dsvgd", &["precision=f64", "optimizer.kind=adam"]),
        ("dsvgd", &["schedule.kind=hip", "schedule.rows=minibatch"]),
        ("dsvgd", &["optimizer.reset=per-visit", "algorithm.minibatch=iid", "algorithm.factors=paper"]),
        ("u-dsvgd", &["precision=f64", "schedule.kind=ksd", "schedule.clients=1"]),
        ("p-dsvgd", &["precision=f64", "evaluation.discrepancy=true"]),
        ("pvi", &["precision=f64", "algorithm.minibatch=sequential-restart"]),
        ("fedavg", &["optimizer.kind=adam", "precision=f64"]),
        ("fedavg", &["schedule.kind=random", "algorithm.mix=reference"]),
        ("fedsgd", &["optimizer.kind=adam"]),
        // On digits the default's three particles converge to one point, for every order of the rows.
        ("pmd", &["data.kind=twonorm", "model.kind=blr", "algorithm.particles=12"]),
        ("fedwba", &["algorithm.over=all", "algorithm.start=own", "algorithm.shared_layers=[1]"]),
        ("fedwba", &["precision=f64", "optimizer.kind=adam"]),
        ("pfedbayes", &["optimizer.kind=adam", "precision=f64"]),
        ("pfedvem", &["optimizer.reset=per-visit", "algorithm.particles=1"]),
        ("dsvgd", &["federation.wire=bf16", "precision=f64"]),
        ("newton-dsvgd", &["federation.wire=f16"]),
        ("scaffold", &["federation.wire=f16", "precision=f64"]),
        ("pvi", &["federation.wire=f32"]),
    ];
    let differ: Vec<String> = variants.iter().flat_map(|(kind, more)| differences(kind, more)).collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Clients with occasional faults, which are skipped for long after two faults in a row.
const DISTURBED: [&str; 4] = [
    "faults.kinds=[\"dropout\", \"nan\", \"replay\", \"huge-norm\", \"duplicate\"]",
    "faults.share=0.6",
    "faults.probability=0.7",
    "federation.backoff=4",
];

/// The lines of `events.jsonl` that have all these words.
fn events(path: &Path, words: &[&str]) -> usize {
    let text = fs::read_to_string(path.join("events.jsonl")).unwrap_or_default();
    text.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
}

#[test]
fn runs_with_faults_end_as_if_they_had_not_been_stopped() {
    let lone = ["schedule.clients=1", "federation.robust=norm-clip"];
    let variants: &[(&str, &[&str])] = &[
        // A single reply is clipped to the usual norm of earlier rounds, which the checkpoint contains.
        ("dsvgd", &lone),
        ("dsvgd", &["schedule.clients=1", "federation.min_replies=1", "precision=f64"]),
        ("fedavg", &["partition.clients=5", "schedule.clients=3", "federation.min_replies=2"]),
        ("scaffold", &["partition.clients=5", "schedule.clients=3", "federation.robust=norm-clip", "precision=f64"]),
        ("fedwba", &["partition.clients=5", "schedule.clients=4", "federation.robust=median"]),
        // Two faults in a row without an unanswered request in between: these clients are skipped.
        ("dsvgd", &["schedule.clients=1", "partition.clients=2", "faults.share=0.5", "faults.kinds=[\"nan\"]"]),
        ("fedavg", &["partition.clients=4", "schedule.clients=3", "faults.kinds=[\"nan\", \"inf\"]"]),
        ("dsgld", &["partition.clients=4", "algorithm.particles=2", "federation.min_replies=2"]),
        // A replay repeats a message that was rounded before a stop.
        (
            "fedavg",
            &["partition.clients=5", "schedule.clients=3", "federation.wire=bf16", "federation.robust=norm-clip"],
        ),
    ];
    let (mut differ, mut counts) = (Vec::new(), [0; 6]);
    for (kind, more) in variants {
        for seed in ["seed=1", "seed=2", "seed=3"] {
            let dir = TempDir::new().unwrap();
            let more: Vec<&str> = DISTURBED.iter().chain(*more).copied().chain([seed]).collect();
            differ.extend(differences_in(dir.path(), kind, &more));
            let of = |words: &[&str]| events(&dir.path().join("stopped"), words);
            // A replay repeats a message, and a client is skipped for a reply, of a round before: of another process.
            let words: [&[&str]; 6] = [
                &["injected", "replay"],
                &["injected", "dropout"],
                &["skipped"],
                &["substitute"],
                &["clipped"],
                &["quarantined"],
            ];
            counts.iter_mut().zip(words).for_each(|(count, words)| *count += of(words));
        }
    }
    println!("replays, dropouts, skipped, substitutes, clipped, quarantined: {counts:?}");
    assert!(differ.is_empty(), "{differ:#?}");
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_round_that_fails_again_after_a_stop_has_the_same_events() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let strict = ["schedule.clients=3", "faults.kinds=[\"nan\"]", "faults.probability=0.2", "faults.share=1", "seed=5"];
    let strict = [&strict[..], &["federation.min_replies=3", "federation.repeats=0"]].concat();
    let fails = |resumes: bool| {
        let (experiment, mut artifacts) = on(&small("fedavg", &strict), &path, resumes);
        let error = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap_err().to_string();
        (error, fs::read(path.join("events.jsonl")).unwrap(), csv(&path))
    };
    let first = fails(false);
    assert!(first.2.len() > 2 && first.0.contains("federation.min_replies"), "{} after {}", first.0, first.2.len());
    assert!(String::from_utf8_lossy(&first.1).contains("refused"));
    assert_eq!(fails(true), first);
}

#[test]
fn a_toy_with_a_posterior_density_ends_as_if_it_had_not_been_stopped() {
    let toy = |kind: &str| {
        let mut overrides = small(kind, &["data.kind=mixture-1d", "model.kind=mixture"]);
        let dropped = ["data.train", "data.test", "partition.", "schedule.", "evaluation."];
        overrides.set.retain(|set| !dropped.iter().any(|key| set.starts_with(key)));
        overrides.set.push("partition.clients=2".into());
        if kind == "npv" {
            overrides.set.push("algorithm.local_steps=100".into());
        }
        overrides
    };
    for kind in ["gvi", "npv", "pmd", "sgld", "pvi"] {
        let dir = TempDir::new().unwrap();
        let (experiment, mut artifacts) = on(&toy(kind), &dir.path().join("straight"), false);
        let want = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
        // NPV has converged after the fifth sweep; only its saved flag keeps it from another sweep.
        assert!(kind != "npv" || want.rounds[4].metric("kl") == want.rounds[5].metric("kl"));
        let got = stopped_after_every_round(&toy(kind), &dir.path().join("stopped"));
        assert_eq!(
            (bits(&got), got.posterior, got.evaluation),
            (bits(&want), want.posterior, want.evaluation),
            "{kind}"
        );
    }
}

#[test]
fn a_finished_run_continues_to_more_rounds_as_if_it_had_not_ended() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("run");
    let rounds = |rounds: &str| small("fedavg", &[rounds, "evaluation.every=1"]);
    let (experiment, mut artifacts) = on(&rounds("rounds=4"), &path, false);
    run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    // Another process can continue once this one has released the directory.
    drop(artifacts);
    let (experiment, mut artifacts) = on(&rounds("rounds=6"), &path, true);
    let got = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    drop(artifacts);
    let (experiment, mut artifacts) = on(&rounds("rounds=6"), &dir.path().join("straight"), false);
    let want = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    assert_eq!((bits(&got), timeless(&got)), (bits(&want), timeless(&want)));
    // Resumed once more with no rounds left, it writes the results again.
    let (experiment, mut artifacts) = on(&rounds("rounds=6"), &path, true);
    let again = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    assert_eq!((bits(&again), again.evaluation), (bits(&want), want.evaluation));
    assert_eq!(format!("{:?}", again.personal), format!("{:?}", want.personal));
}

#[test]
fn a_step_size_that_falls_on_plateaus_falls_in_a_continued_run_where_it_does_in_a_single_one() {
    // The step size is too small to change a bit, so that no evaluation is better than the first: the factor falls after each.
    let plateau = |rounds: &str| {
        let keys = [
            "evaluation.every=3",
            "optimizer.lr=1e-30",
            "lr_schedule.kind=plateau",
            "lr_schedule.rounds=1",
            "evaluation.personal=false",
        ];
        small("fedavg", &[&[rounds, "lr_schedule.factor=0.5", "partition.validation=0.2"], &keys[..]].concat())
    };
    let dir = TempDir::new().unwrap();
    let factors = |rounds: &str, name: &str, resumes: bool| {
        let path = dir.path().join(name);
        let (experiment, mut artifacts) = on(&plateau(rounds), &path, resumes);
        run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
        drop(artifacts);
        let lines = csv(&path);
        let column = lines[0].iter().position(|name| name == "lr_factor").unwrap();
        lines[1..].iter().map(|line| line[column].clone()).collect::<Vec<_>>()
    };
    let whole = factors("rounds=11", "whole", false);
    factors("rounds=7", "part", false);
    assert_eq!(factors("rounds=11", "part", true), whole);
    assert!(whole[2] != whole[6] && whole[6] != whole[9], "{whole:?}");
}

/// The number of the run in the newest checkpoint of a directory.
fn number(path: &Path) -> u64 {
    let names = fs::read_dir(path.join("checkpoint")).unwrap().flatten();
    let is_saved = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("reliability-");
    let saved = names.filter(is_saved).map(|entry| entry.path()).max();
    let state = codec::decode(&fs::read(saved.unwrap()).unwrap()).unwrap();
    ClientReliability::from_state(&state).unwrap().number
}

#[test]
fn two_runs_of_one_config_have_different_numbers_and_a_resumed_run_keeps_its_own() {
    let dir = TempDir::new().unwrap();
    let run_at = |name: &str, rounds: &str, resumes: bool| {
        let (experiment, mut artifacts) = on(&small("fedavg", &[rounds]), &dir.path().join(name), resumes);
        let outcome = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
        (bits(&outcome), number(&dir.path().join(name)))
    };
    let (one, other) = (run_at("one", "rounds=4", false), run_at("other", "rounds=4", false));
    assert_eq!(one.0, other.0);
    assert!(one.1 != other.1 && one.1 != 0 && other.1 != 0, "{} {}", one.1, other.1);
    let on = run_at("one", "rounds=6", true);
    assert_eq!(on.1, one.1);
}

#[test]
fn of_many_clients_only_those_that_trained_are_written() {
    let dir = TempDir::new().unwrap();
    let more = ["data.train_limit=0", "partition.clients=600", "partition.validation=0", "rounds=3"];
    let overrides = small("fedper", &more);
    let (experiment, mut artifacts) = on(&overrides, dir.path(), false);
    run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    let names = fs::read_dir(dir.path().join("checkpoint")).unwrap();
    let names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    // Two clients per round, three rounds.
    assert_eq!(names.iter().filter(|name| name.starts_with("client-")).count(), 6, "{names:?}");
}

#[test]
fn a_run_with_checkpoints_alone_goes_on_to_the_same_bits_and_writes_nothing_else() {
    // No checkpoint is due by its time: those of stops are written all the same.
    let overrides = small("scaffold", &["checkpoint.every_seconds=1000"]);
    let (config, resolved) = Config::load(Source { name: "test", text: "" }, &overrides).unwrap();
    let experiment = Experiment::new(config, "data");
    let whole = run::<Flex>(&experiment, &Quiet, None).unwrap();
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("under-way");
    let begin = || Artifacts::checkpoints(path.clone(), resolved.clone()).unwrap();
    for round in 1..ROUNDS {
        let mut artifacts = begin().unwrap();
        assert!(begin().is_none(), "a second process would write into the same files");
        let observer = Impatient::default();
        let stopped = run::<Flex>(&experiment, &observer, Some(&mut artifacts)).unwrap_err();
        assert!(matches!(stopped, RunError::Interrupted { round: last, .. } if last == round), "{stopped}");
        assert_eq!(observer.after.into_inner(), round - 1);
        drop(artifacts);
        let names = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let others: Vec<String> =
            names.filter(|name| !name.ends_with(".safetensors") && !name.starts_with("round-")).collect();
        assert!(others.is_empty(), "{others:?}");
    }
    let ends_as_whole = |after: usize| {
        let observer = Impatient { is_patient: true, ..Impatient::default() };
        let ended = run::<Flex>(&experiment, &observer, begin().as_mut()).unwrap();
        assert!(bits(&ended) == bits(&whole) && timeless(&ended) == timeless(&whole));
        assert_eq!(observer.after.into_inner(), after);
    };
    let is_there = |round: usize| path.join(format!("round-{round}.json")).exists();
    ends_as_whole(ROUNDS - 1);
    assert!(!is_there(ROUNDS), "it has no use");

    // From the checkpoint before a damaged one, and from the beginning where none is intact.
    let damage = |round: usize| fs::write(path.join(format!("round-{round}.json")), "{").unwrap();
    damage(ROUNDS - 1);
    ends_as_whole(ROUNDS - 2);
    damage(ROUNDS - 2);
    ends_as_whole(0);
}

#[test]
fn if_the_newest_checkpoint_is_damaged_a_run_resumes_from_the_one_before() {
    let (dir, overrides) = (TempDir::new().unwrap(), small("scaffold", &[]));
    let path = dir.path().join("run");
    for resumes in [false, true, true] {
        let (experiment, mut artifacts) = on(&overrides, &path, resumes);
        let observer = Impatient::default();
        run::<Flex>(&experiment, &observer, Some(&mut artifacts)).unwrap_err();
    }
    fs::write(path.join("checkpoint/server-3.safetensors"), "no tensors").unwrap();
    let (config, resolved) = Config::load(Source { name: "test", text: "" }, &overrides).unwrap();
    let mut notes = Vec::new();
    let mut artifacts = Artifacts::resume(path, resolved, &mut |note| notes.push(note.to_owned())).unwrap();
    assert!(notes[0].contains("server-3.safetensors") && notes[1].contains("round 2"), "{notes:?}");
    let experiment = Experiment::new(config, "data");
    let got = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    let (experiment, mut artifacts) = on(&overrides, &dir.path().join("straight"), false);
    let want = run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap();
    assert_eq!((bits(&got), timeless(&got)), (bits(&want), timeless(&want)));
}

#[test]
fn a_run_that_ends_early_ends_with_the_same_bits_when_it_is_stopped_after_every_round() {
    for (kind, stop) in [
        ("dsvgd", "stop.patience=2"),
        ("pvi", "stop.patience=1"),
        ("gvi", "stop.patience=1"),
        ("npv", "stop.patience=1"),
        ("fedavg", "stop.uplink_mib=0.004"),
        ("dsvgd", "stop.uplink_mib=0.004"),
    ] {
        let mut overrides =
            small(kind, &[stop, "evaluation.personal=false", "evaluation.every=1", "optimizer.lr=0.05"]);
        overrides.set.retain(|set| set != "evaluation.personal=true" && set != "evaluation.every=2");
        let root = TempDir::new().unwrap();
        let whole = || {
            let (experiment, mut artifacts) = on(&overrides, &root.path().join("whole"), false);
            run::<Flex>(&experiment, &Quiet, Some(&mut artifacts)).unwrap()
        };
        let (whole, resumed) = (whole(), stopped_until_it_ends(&overrides, &root.path().join("resumed")));
        assert_eq!(bits(&whole), bits(&resumed), "{kind} {stop}");
        assert_eq!(whole.posterior, resumed.posterior, "{kind} {stop}");
        assert_eq!((whole.best, timeless(&whole)), (resumed.best, timeless(&resumed)), "{kind} {stop}");
        assert_eq!(whole.evaluation, resumed.evaluation, "{kind} {stop}");
    }
}
