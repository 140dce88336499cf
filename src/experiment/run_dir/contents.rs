//! The names of the files of a run, and what of a directory no run has written.

use std::fs;
use std::io;
use std::path::Path;

use crate::checkpoint::lock::LOCK;
use crate::federation::parked::Parking;
use crate::report;
use crate::report::files::{is_staging, is_temporary};

/// The resolved config.
pub const CONFIG: &str = "config.toml";
/// The records of the rounds, one row per round.
pub const ROUNDS: &str = "rounds.csv";
/// The final metrics and facts of the run.
pub const SUMMARY: &str = "summary.json";
/// The test rows' labels and predicted probabilities.
pub const PREDICTIONS: &str = "predictions.csv";
/// The lines of the user's file from which the rows of [`PREDICTIONS`] are, in its order.
pub const TEST_LINES: &str = "test_lines.csv";
/// The lines of the user's file from which the other rows are, with the client and the use of each.
pub const TRAIN_LINES: &str = "train_lines.csv";
/// The particles, block by block.
pub const PARTICLES: &str = "particles.safetensors";
/// The information that `fedstein predict` needs besides the particles.
pub const MODEL: &str = "model.json";
/// The basis of the features, of a run with `data.rotate`.
pub const ROTATION: &str = "rotation.safetensors";
/// Where the results come from: rows, program, machine, time.
pub const PROVENANCE: &str = "provenance.json";
/// The calibration report, a directory.
pub const REPORT: &str = "report";
/// The evaluations on other rows, a directory of directories.
pub const EVALUATE: &str = "evaluate";
/// The directory of the checkpoints.
pub const CHECKPOINT: &str = "checkpoint";
/// The number of rows of each kind at each client, as a readable table.
pub const PARTITION: &str = "partition.txt";
/// The mutual information of every test row.
pub const UNCERTAINTY: &str = "uncertainty.csv";

/// The metrics of every client's personal predictor on its own test rows, after the last round.
pub const CLIENTS: &str = "clients.csv";

/// The bins of confidence of the clients' personal predictors, pooled over all clients' rows, after the last round.
pub const CLIENT_BINS: &str = "clients_bins.csv";

/// The clients' answers before each selection, one JSON object per round.
pub const SELECTION: &str = "selection.jsonl";

/// The events of requests and replies, one JSON object per event.
pub const EVENTS: &str = "events.jsonl";

/// The states of clients beyond the memory budget, while the run goes on: a directory.
pub const CLIENT_STATES: &str = "client-states";

/// Files to which rounds append lines, and which a resumed run truncates.
pub(in crate::experiment) const LOGS: &[&str] = &[SELECTION, EVENTS];

/// The model card, beside the report.
pub const MODEL_CARD: &str = "MODEL_CARD.md";

/// What an evaluation on other rows writes into its directory.
pub const EVALUATION: &[&str] = &[PREDICTIONS, UNCERTAINTY, REPORT];

/// All names that a run writes. `--force` removes nothing else, so every file that a run writes must be listed here.
pub(super) const CONTENTS: &[&str] = &[
    CONFIG,
    ROUNDS,
    SUMMARY,
    PREDICTIONS,
    TEST_LINES,
    TRAIN_LINES,
    PARTICLES,
    MODEL,
    ROTATION,
    PROVENANCE,
    REPORT,
    EVALUATE,
    CHECKPOINT,
    UNCERTAINTY,
    SELECTION,
    EVENTS,
    CLIENTS,
    CLIENT_BINS,
    CLIENT_STATES,
    PARTITION,
    LOCK,
];

/// Whether this is the name of something that a run writes into its directory.
pub fn is_of_run(name: &str) -> bool {
    CONTENTS.contains(&name)
}

/// The first thing in a directory with these names that no run has written there, as a path in it; `None` where there is none.
///
/// # Errors
/// A directory cannot be read.
pub(super) fn stranger(path: &Path, names: &[String]) -> io::Result<Option<String>> {
    let is_ours = |name: &str| is_of_run(name) || is_temporary(name, CONTENTS);
    if let Some(name) = names.iter().find(|name| !is_ours(name)) {
        return Ok(Some(name.clone()));
    }
    let checkpoint = |name: &str| crate::checkpoint::is_of_store(name);
    for (name, is_ours) in
        [(REPORT, is_of_report as fn(&str) -> bool), (CHECKPOINT, checkpoint), (CLIENT_STATES, Parking::is_state)]
    {
        if let Some(found) = stranger_in(&path.join(name), is_ours)? {
            return Ok(Some(format!("{name}/{found}")));
        }
    }
    for evaluation in names_in(&path.join(EVALUATE))? {
        let directory = path.join(EVALUATE).join(&evaluation);
        if !directory.is_dir() && !directory.is_symlink() {
            return Ok(Some(format!("{EVALUATE}/{evaluation}")));
        }
        let is_of_evaluation = |name: &str| EVALUATION.contains(&name) || is_staging(name);
        let report = directory.join(REPORT);
        let found = match stranger_in(&directory, is_of_evaluation)? {
            None => stranger_in(&report, is_of_report)?.map(|found| format!("{REPORT}/{found}")),
            found => found,
        };
        if let Some(found) = found {
            return Ok(Some(format!("{EVALUATE}/{evaluation}/{found}")));
        }
    }
    Ok(None)
}

/// Whether this is the name of a file in the directory of a report.
fn is_of_report(name: &str) -> bool {
    report::FILES.contains(&name) || name == MODEL_CARD || is_of_unfinished_report(name) || is_staging(name)
}

/// Whether a killed process has left a file of this name in the directory of a report.
pub(super) fn is_of_unfinished_report(name: &str) -> bool {
    is_temporary(name, &report::FILES) || is_temporary(name, &[MODEL_CARD])
}

/// The first name in a directory that is none of ours.
fn stranger_in(directory: &Path, is_ours: impl Fn(&str) -> bool) -> io::Result<Option<String>> {
    Ok(names_in(directory)?.into_iter().find(|name| !is_ours(name)))
}

/// The names in a directory, sorted; none where there is no directory, or a link to one, of which only the link would be
/// removed.
fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    if directory.is_symlink() || !directory.is_dir() {
        return Ok(Vec::new());
    }
    let names = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}
