//! `minibatch = "sequential-restart"` in whole runs: which rows a client reads, visit by visit.

use std::path::Path;

use crate::common::{SILENT, algorithms, bits, data, experiment, has_clients, has_key, outcome, partition_of};
use crate::edges::{Edge, USUAL, text, write_rows};
use fedstein::datasets::Targets;
use fedstein::experiment::Experiment;

/// The algorithms with minibatches that read all rows of a client as well.
const READ_ALL: [&str; 3] = ["newton-dsvgd", "pfedvem", "pfedgp"];

/// Gives these training rows the other one of the two classes.
fn flip(dir: &Path, rows: &[usize]) {
    let path = dir.join("train.csv");
    let content = std::fs::read_to_string(&path).unwrap();
    let flipped = |(line, content): (usize, &str)| match line.checked_sub(1).filter(|row| rows.contains(row)) {
        None => format!("{content}\n"),
        Some(_) => match content.strip_suffix(",no") {
            Some(features) => format!("{features},yes\n"),
            None => format!("{},no\n", content.strip_suffix(",yes").unwrap()),
        },
    };
    let content: String = content.lines().enumerate().map(flipped).collect();
    std::fs::write(path, content).unwrap();
}

fn labels(experiment: &Experiment) -> Vec<usize> {
    match data(&experiment.config).train.targets {
        Targets::Classes { labels, .. } => labels,
        other => panic!("{other:?}"),
    }
}

/// The last particles of two clients with twelve rows each, which have three visits of one minibatch of four; `flipped`:
/// the last row of each client has the other label. A method with all rows in one place has six such visits.
fn particles(kind: &str, minibatch: &str, flipped: bool) -> Vec<u64> {
    let dir = tempfile::tempdir().unwrap();
    write_rows(dir.path(), "classification", false);
    let minibatch = format!("\"{minibatch}\"");
    // So many that another weight of a few is another choice among them.
    let count = if kind == "pmd" { "40" } else { "4" };
    let algorithm = [("particles", count), ("local_steps", "1"), ("batch", "4"), ("minibatch", minibatch.as_str())];
    let edge = Edge { algorithm: &algorithm, partition: "clients = 2", ..USUAL };
    let mut experiment = experiment(&text(dir.path(), kind, "classification", &edge));
    experiment.config.rounds = 6;
    if flipped {
        let (partition, before) = (partition_of(&experiment.config), labels(&experiment));
        let last: Vec<usize> = match has_clients(kind) {
            true => partition.clients().iter().map(|rows| rows[rows.len() - 1]).collect(),
            false => vec![before.len() - 1],
        };
        flip(dir.path(), &last);
        let after = labels(&experiment);
        let changed = (0..before.len()).filter(|row| before[*row] != after[*row]);
        assert!(changed.eq((0..before.len()).filter(|row| last.contains(row))), "{kind}: {last:?}");
    }
    bits(&outcome(&experiment))
}

#[test]
fn rows_after_the_first_minibatches_are_never_read_where_every_visit_begins_anew() {
    let kinds: Vec<&str> = algorithms()
        .into_iter()
        .filter(|kind| has_key(kind, "minibatch") && *kind != SILENT && !READ_ALL.contains(kind))
        .collect();
    assert!(kinds.len() >= 18, "{kinds:?}");
    for kind in kinds {
        let is_the_same = |minibatch: &str| particles(kind, minibatch, false) == particles(kind, minibatch, true);
        assert!(is_the_same("sequential-restart"), "{kind} reads the last row");
        assert!(!is_the_same("epoch-permutation"), "{kind} does not read the last row of an epoch");
    }
}
