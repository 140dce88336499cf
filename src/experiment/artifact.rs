//! The files of a run, each written as soon as its content exists. [`super::finished`] reads them again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::algorithm::Algorithm;
use crate::backend::Session;
use crate::checkpoint::digest;
use crate::checkpoint::lock::{Lock, LockError};
use crate::datasets::{ModelCard, Rotation};
use crate::error::RunError;
use crate::federation::event::Event;
use crate::metrics::UncertaintySummary;
use crate::models::{Model, Task};
use crate::protocol::ClientId;
use crate::report::files::{FileError, read_text, write_atomic};
use crate::report::{ClientNames, PartitionTable, RoundRecord, csv};

use super::checkpoints::{Brought, Checkpoints, Snapshot, blocks_of};
use super::config::{BACKEND, Brings, CheckpointConfig, Config, to_toml};
use super::evaluate::Predicted;
use super::facts::{PARTICLES, facts};
use super::finished::{BEST_ROUND, OwnAlgorithm, SCHEMA_VERSION, Summary, to_safetensors};
use super::outcome::Outcome;
use super::own_model;
use super::personal;
use super::provenance::Provenance;
use super::rotation;
use super::rounds_csv::RoundsCsv;
use super::rows_of_run::RowsOfRun;
use super::run_dir::{self, RunDir, RunDirError};
use super::schema::Resolved;

/// What the files of a run call a model that the program brought.
const OWN_MODEL: &str = "own model";

/// The output files of a run in progress.
///
/// From [`Self::resume`], or from the beginning of a run with [`Self::new`], until it is dropped, this value holds a lock on
/// the directory: other processes, and a second `Artifacts` in this one, are refused with the name of the process that holds
/// it. Reading the directory, as [`Finished::open`](super::Finished::open) and [`write_report`](super::write_report) do, needs
/// no lock. A value serves one run.
#[derive(Debug)]
pub struct Artifacts {
    path: PathBuf,
    force: bool,
    /// Whether the directory holds checkpoints and none of a run's other files: `dir` is then `None`.
    only_checkpoints: bool,
    resolved: Resolved,
    rounds: Option<RoundsCsv<File>>,
    /// The files to which rounds append lines; each is created with its first line.
    logs: BTreeMap<&'static str, File>,
    /// `None` where the config disables checkpoints or the run has not begun.
    checkpoints: Option<Checkpoints>,
    facts: Vec<(String, String)>,
    partition: Option<PartitionTable>,
    own_algorithm: Option<OwnAlgorithm>,
    /// The content of `model.json` before the calibration rows are asked about.
    card: Option<ModelCard>,
    notes: Vec<String>,
    provenance: Provenance,
    /// sha256 of `config.toml` as the run has written it.
    config_sha256: Option<String>,
    name: String,
    /// After the files in it, which Windows may not remove while they are open.
    dir: Option<RunDir>,
    /// The lock on the directory of a resumed run, until the directory is open; with checkpoints alone, to the end.
    lock: Option<Lock>,
}

impl Artifacts {
    /// The files of a run at `path`; nothing is written yet.
    ///
    /// # Arguments
    /// * `force`: whether the files of an earlier run at `path` are replaced
    /// * `resolved`: what [`Config::load`] returned beside the config of the experiment; a run whose config was changed since
    ///   is refused
    pub fn new(path: PathBuf, force: bool, resolved: Resolved) -> Self {
        Self {
            path,
            force,
            only_checkpoints: false,
            resolved,
            dir: None,
            lock: None,
            rounds: None,
            logs: BTreeMap::new(),
            checkpoints: None,
            facts: Vec::new(),
            partition: None,
            own_algorithm: None,
            card: None,
            notes: Vec::new(),
            provenance: Provenance::default(),
            config_sha256: None,
            name: String::new(),
        }
    }

    /// The files of a run at `path` that resumes from its newest intact checkpoint; `note` receives a warning for each
    /// damaged one. Nothing is written yet except the lock, which keeps others out of the directory until this value is
    /// dropped.
    ///
    /// # Errors
    /// The directory is in use, by another process or another `Artifacts` of this one; there is no checkpoint, or none is
    /// intact; or the checkpoint belongs to another configuration. One of another backend is found when the run begins.
    pub fn resume(path: PathBuf, resolved: Resolved, note: &mut dyn FnMut(&str)) -> Result<Self, RunError> {
        let lock = RunDir::lock(&path).map_err(directory)?;
        let (checkpoints, damaged) = Checkpoints::open(&path.join(run_dir::CHECKPOINT), &resolved)?;
        let round = checkpoints.round();
        damaged.iter().for_each(|damage| note(&format!("a checkpoint cannot be used: {damage}")));
        if !damaged.is_empty() {
            note(&format!("going on from the checkpoint before it, of round {round}"));
        }
        Ok(Self { checkpoints: Some(checkpoints), lock: Some(lock), ..Self::new(path, false, resolved) })
    }

    /// The checkpoints of a run whose results are kept elsewhere, in a directory that holds nothing else of the run. The run
    /// goes on from the newest intact one, and starts anew where there is none. `None` where another process works in the
    /// directory.
    ///
    /// # Errors
    /// The directory cannot be created or locked.
    pub fn checkpoints(path: PathBuf, resolved: Resolved) -> Result<Option<Self>, RunError> {
        fs::create_dir_all(&path).map_err(|error| file(&path, &error))?;
        let lock = match Lock::take(&path) {
            Ok(lock) => Some(lock),
            Err(LockError::Held(_)) => return Ok(None),
            Err(LockError::Io(error)) => return Err(file(&path, &error)),
        };
        let checkpoints = Checkpoints::open(&path, &resolved).ok().map(|(checkpoints, _)| checkpoints);
        Ok(Some(Self { checkpoints, lock, only_checkpoints: true, ..Self::new(path, false, resolved) }))
    }

    /// Checks that the files are those of a run with this configuration on this backend.
    ///
    /// # Errors
    /// The configuration is not the one that the files describe, or the checkpoint is of another backend.
    pub(super) fn must_be_of(&self, config: &Config, backend: &str) -> Result<(), RunError> {
        let differences = Config::from_resolved(&self.resolved)?.differences(config)?;
        if !differences.is_empty() {
            return Err(RunError::Config(format!(
                "the config of the experiment is not the one that `Artifacts` has, which the run's files describe (in the \
                 files → in the experiment):\n  {}\nset keys with `Overrides`, or in the text, before the config is loaded, and \
                 not in the `Config` that was loaded",
                differences.join("\n  ")
            )));
        }
        // Checkpoints alone that are of another run begin anew.
        let past = self.past().filter(|_| !self.only_checkpoints);
        Ok(past.map_or(Ok(()), |past| past.must_be_on(backend))?)
    }

    /// Creates the directory; called once configuration and data are validated.
    ///
    /// # Errors
    /// The directory cannot be created or reopened, or one of the run's first files cannot be written.
    pub(super) fn open(
        &mut self,
        config: &Config,
        algorithm: &dyn Algorithm,
        rows: RowsOfRun,
        rotation: Option<&Rotation>,
        model: &dyn Model,
        session: &Session,
    ) -> Result<(), RunError> {
        let RowsOfRun { card, digests, listed, counts, about, clients, test_lines, train_lines, notes, own_selection } =
            rows;
        // The session has the backend that was chosen, whatever the key says.
        let backend = session.backend().name();
        self.resolved.table.insert(BACKEND.into(), backend.into());
        let brought = Brought { model: card.own_model.then(|| blocks_of(model.layout())), selection: own_selection };
        let kind = if card.own_model { OWN_MODEL } else { config.model.kind().name };
        if self.only_checkpoints {
            let is_of_these = |past: &Checkpoints| {
                past.must_be_on(backend).and(past.must_be_of(&digests, &brought, config.rounds)).is_ok()
            };
            if !self.checkpoints.as_ref().is_some_and(is_of_these) {
                let new = || Checkpoints::new(self.path.clone(), &self.resolved, digests, brought);
                self.checkpoints = config.checkpoint.enabled.then(new);
            }
            return Ok(());
        }
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.must_be_of(&digests, &brought, config.rounds)?;
            self.must_have(model, &card, session)?;
        }
        let dir = match self.lock.take() {
            Some(lock) => RunDir::reopen(&self.path, lock),
            None => RunDir::create(&self.path, self.force),
        };
        let dir = dir.map_err(directory)?;
        let earlier = Provenance::read(&dir.join(run_dir::PROVENANCE)).filter(|_| self.past().is_some());
        self.provenance =
            Provenance::begun(earlier, &digests, self.past().map_or(0, Checkpoints::round), &self.resolved.notes);
        if self.checkpoints.is_none() && config.checkpoint.enabled {
            let path = dir.join(run_dir::CHECKPOINT);
            self.checkpoints = Some(Checkpoints::new(path, &self.resolved, digests, brought.clone()));
        }
        let brings = Brings { rows: card.own_data, model: card.own_model, selection: brought.selection.as_deref() };
        let config_toml = to_toml(&self.resolved, brings);
        dir.write(run_dir::CONFIG, config_toml.as_bytes()).map_err(directory)?;
        self.config_sha256 = Some(digest::of_bytes(config_toml.as_bytes()));
        dir.write(run_dir::MODEL, &to_json(&card)?).map_err(directory)?;
        if let Some(rotation) = rotation {
            dir.write(run_dir::ROTATION, &rotation::to_safetensors(rotation)?).map_err(directory)?;
        }
        dir.write(run_dir::PARTITION, listed.as_bytes()).map_err(directory)?;
        if let Some(lines) = &test_lines {
            dir.write(run_dir::TEST_LINES, lines_csv(lines).as_bytes()).map_err(directory)?;
        }
        if let Some(lines) = &train_lines {
            dir.write(run_dir::TRAIN_LINES, lines.as_bytes()).map_err(directory)?;
        }
        dir.write(run_dir::PROVENANCE, &to_json(&self.provenance)?).map_err(directory)?;
        if self.past().is_none() {
            let rounds = dir.join(run_dir::ROUNDS);
            self.rounds = Some(RoundsCsv::create(&rounds).map_err(|error| file(&rounds, &error))?);
        }
        self.partition = match model.task() {
            Task::Classification { .. } => counts,
            Task::Regression | Task::Density => None,
        };
        self.card = Some(card);
        self.own_algorithm = OwnAlgorithm::of(config, algorithm.capabilities());
        self.name = config.name.clone();
        self.notes = self.provenance.notes.iter().cloned().chain(notes).collect();
        self.facts = facts(config, algorithm.particles(), (about, clients), (kind, model), session);
        let of_program = |name: &String| ("client selection".to_owned(), format!("{name}, of the program"));
        self.facts.extend(brought.selection.as_ref().map(of_program));
        self.dir = Some(dir);
        Ok(())
    }

    /// Checks that a run resumes with the model of its own that it began with.
    fn must_have(&self, model: &dyn Model, card: &ModelCard, session: &Session) -> Result<(), RunError> {
        let path = self.path.join(run_dir::MODEL);
        // A run that was stopped before it wrote the file has nothing to compare.
        let Some(kept) = read_text(&path).ok().and_then(|text| serde_json::from_str::<ModelCard>(&text).ok()) else {
            return Ok(());
        };
        match card.own_model {
            true => own_model::is_that_of(&kept.own_model_fingerprint, model, card.features, session)
                .map_err(|problem| RunError::Config(format!("Experiment::with_model: {problem}"))),
            false => Ok(()),
        }
    }

    /// The directory of the states of clients beyond the memory budget, which lies in the run's.
    pub(super) fn client_states(&self) -> PathBuf {
        self.path.join(run_dir::CLIENT_STATES)
    }

    /// A warning for the user where the directory could not be locked.
    pub(super) fn warning(&self) -> Option<String> {
        self.dir.as_ref().and_then(RunDir::warning)
    }

    /// Keeps a note for `summary.json`.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Appends a row to `rounds.csv`. The first call makes the directory permanent, whatever happens later.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn round(&mut self, record: &RoundRecord) -> Result<(), RunError> {
        let (Some(dir), Some(rounds)) = (&mut self.dir, &mut self.rounds) else { return Ok(()) };
        dir.must_be_there().map_err(directory)?;
        dir.keep().map_err(directory)?;
        rounds.append(record).map_err(|error| file(&dir.join(run_dir::ROUNDS), &error))
    }

    /// Appends a line to `selection.jsonl`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn selection(&mut self, line: &str) -> Result<(), RunError> {
        self.log(run_dir::SELECTION, line)
    }

    /// Appends one line per event to `events.jsonl`.
    ///
    /// # Errors
    /// An event cannot be serialised, or the file cannot be written.
    pub(super) fn events(&mut self, events: &[Event]) -> Result<(), RunError> {
        for event in events {
            let line = serde_json::to_string(event).map_err(|error| RunError::Output(error.to_string()))?;
            self.log(run_dir::EVENTS, &line)?;
        }
        Ok(())
    }

    /// Appends a line to one of [`run_dir::LOGS`].
    fn log(&mut self, name: &'static str, line: &str) -> Result<(), RunError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let path = dir.join(name);
        let out = match self.logs.entry(name) {
            Entry::Occupied(out) => out.into_mut(),
            Entry::Vacant(place) => place.insert(append(&path)?),
        };
        writeln!(out, "{line}").map_err(|error| file(&path, &error))
    }

    /// The checkpoint from which the run resumes, if it does.
    pub(super) fn past(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_ref().filter(|checkpoints| checkpoints.is_resumed())
    }

    /// Truncates the files of a resumed run to the rounds of its checkpoint.
    ///
    /// # Errors
    /// A file cannot be read, truncated or written.
    pub(super) fn cut(&mut self, records: impl Iterator<Item = RoundRecord>) -> Result<(), RunError> {
        let (Some(dir), Some(past)) = (&self.dir, self.past()) else { return Ok(()) };
        let mut logs = BTreeMap::new();
        for name in run_dir::LOGS.iter().copied() {
            let (path, length) = (dir.join(name), past.log_length(name));
            cut(&path, length)?;
            if length.is_some() {
                // The next checkpoint records the file's length even if no line is added before.
                logs.insert(name, append(&path)?);
            }
        }
        let path = dir.join(run_dir::ROUNDS);
        self.rounds = Some(RoundsCsv::continued(&path, records).map_err(|error| file(&path, &error))?);
        self.logs = logs;
        Ok(())
    }

    /// Whether a checkpoint has a use after the last round: the run can continue with more rounds.
    pub(super) fn outlives_the_run(&self) -> bool {
        !self.only_checkpoints
    }

    /// Records that the replies of these clients were aggregated.
    pub(super) fn trained(&mut self, clients: &[ClientId]) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.trained(clients);
        }
    }

    /// Writes a checkpoint if one is due, or unconditionally if that is asked; returns whether one was written.
    ///
    /// # Errors
    /// A state cannot be read, or a file cannot be written.
    pub(super) fn checkpoint(
        &mut self,
        config: &CheckpointConfig,
        in_any_case: bool,
        snapshot: &Snapshot<'_>,
    ) -> Result<bool, RunError> {
        let Some(checkpoints) = &mut self.checkpoints else { return Ok(false) };
        if !config.enabled || !(in_any_case || checkpoints.is_due(config.every_seconds)) {
            return Ok(false);
        }
        self.dir.as_ref().map_or(Ok(()), RunDir::must_be_there).map_err(directory)?;
        let mut lengths = BTreeMap::new();
        for (name, log) in &self.logs {
            // A line that the checkpoint counts must survive a power failure.
            let length = log.sync_data().and_then(|()| log.metadata());
            let length = length.map_err(|error| file(&self.path.join(name), &error))?.len();
            lengths.insert((*name).to_owned(), length);
        }
        checkpoints.write(snapshot, lengths)?;
        Ok(true)
    }

    /// What an error of the run comes from: where its directory is not there any more, that.
    pub(super) fn cause(&self, error: RunError) -> RunError {
        let moved = self.dir.as_ref().and_then(|dir| dir.must_be_there().err());
        moved.map_or(error, directory)
    }

    /// Notes in `provenance.json` that this process ends, after a round.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn end(&mut self, round: usize) -> Result<(), RunError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        self.provenance.end(round);
        dir.write(run_dir::PROVENANCE, &to_json(&self.provenance)?).map_err(directory)
    }

    /// Writes particles, the summary and, where the test rows are here, predictions. From then on the checkpoint serves only to continue the run with
    /// more rounds.
    ///
    /// # Errors
    /// A value cannot be read from the device, or a file cannot be written.
    pub(super) fn finish(
        &mut self,
        config: &CheckpointConfig,
        outcome: &Outcome,
        names: &ClientNames,
    ) -> Result<(), RunError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        dir.write(run_dir::PARTICLES, &to_safetensors(&outcome.particles)?).map_err(directory)?;
        if let (Some(card), Some(calibrated)) = (&self.card, &outcome.calibrated) {
            let mut card = card.clone();
            card.calibration = Some(calibrated.kept.clone());
            dir.write(run_dir::MODEL, &to_json(&card)?).map_err(directory)?;
        }
        let uncertainty = match &outcome.predicted {
            Predicted::Pooled { scores, .. } => UncertaintySummary::of_sums(scores.pooled(), outcome.particles.count()),
            predicted => write_predicted(&self.path, predicted)?,
        };
        if let Some((_, scores)) = &outcome.personal {
            dir.write(run_dir::CLIENTS, personal::clients_csv(scores, &outcome.visits, names).as_bytes())
                .map_err(directory)?;
            if scores.pooled().accuracy().is_some() {
                let bins = csv::bins_csv(&scores.pooled().bins());
                dir.write(run_dir::CLIENT_BINS, bins.as_bytes()).map_err(directory)?;
            }
        }
        let bytes = |of: fn(&RoundRecord) -> u64| outcome.rounds.iter().map(of).sum::<u64>().to_string();
        let mut facts = self.facts.clone();
        // N equal networks (`fedwba` with all layers shared) are one.
        if let Some((_, count)) = facts.iter_mut().find(|(name, _)| name == PARTICLES) {
            *count = outcome.particles.count().to_string();
        }
        facts.push(("rounds".into(), outcome.rounds.len().to_string()));
        facts.extend(outcome.best.map(|best| (BEST_ROUND.into(), best.to_string())));
        facts.push(("seconds".into(), format!("{:.1}", outcome.seconds)));
        facts.push(("seconds of evaluation".into(), format!("{:.1}", outcome.evaluation_seconds)));
        facts.push(("uplink bytes".into(), bytes(|round| round.uplink_bytes)));
        facts.push(("downlink bytes".into(), bytes(|round| round.downlink_bytes)));
        let summary = Summary {
            schema_version: SCHEMA_VERSION,
            name: self.name.clone(),
            at_site: false,
            evaluation: outcome.evaluation.clone(),
            uncertainty,
            personal: outcome.personal.as_ref().map(|(results, _)| results.clone()),
            facts,
            notes: self.notes.clone(),
            rounds: outcome.rounds.clone(),
            partition: self.partition.clone(),
            scores: outcome.pooled().cloned(),
            sites: outcome.sites(),
            clients: outcome.clients(names),
            calibration: outcome.calibrated.as_ref().map(|calibrated| calibrated.results.clone()),
            own_algorithm: self.own_algorithm,
            config_sha256: self.config_sha256.clone(),
        };
        dir.write(run_dir::SUMMARY, &to_json(&summary)?).map_err(directory)?;
        self.end(outcome.rounds.last().map_or(0, |round| round.round))?;
        match &mut self.checkpoints {
            Some(checkpoints) => checkpoints.finish(config.keep),
            None => Ok(()),
        }
    }
}

/// Writes the files of predictions on test rows into a directory: none for sums or a density. Returns the uncertainty of
/// classes.
///
/// # Errors
/// The predictions cannot be scored, or a file cannot be written.
pub(super) fn write_predicted(dir: &Path, predicted: &Predicted) -> Result<Option<UncertaintySummary>, RunError> {
    let path = dir.join(run_dir::PREDICTIONS);
    match predicted {
        Predicted::Classes { log_probs, labels, clusters } => {
            let predictions = log_probs.predictions(labels).and_then(|of| of.with_clusters(clusters.clone()));
            let predictions = predictions.map_err(|error| file(&path, &error))?;
            csv::write_predictions(&path, &predictions).map_err(output)?;
            let summary = UncertaintySummary::new(log_probs, labels).map_err(|error| file(&path, &error))?;
            let rows: String = summary.row_mutual_information.iter().map(|mi| format!("{mi}\n")).collect();
            write_bytes(&dir.join(run_dir::UNCERTAINTY), format!("mutual_information\n{rows}").as_bytes())?;
            Ok(Some(summary))
        }
        Predicted::Real(predictions) => {
            csv::write_regression(&path, predictions).map_err(output)?;
            Ok(None)
        }
        Predicted::Pooled { .. } | Predicted::Density { .. } => Ok(None),
    }
}

/// The content of [`run_dir::TEST_LINES`].
pub(super) fn lines_csv(lines: &[u64]) -> String {
    lines.iter().fold("line\n".to_owned(), |text, line| text + &format!("{line}\n"))
}

/// Opens a file for appending, and creates it if it is missing.
fn append(path: &Path) -> Result<File, RunError> {
    File::options().create(true).append(true).open(path).map_err(|error| file(path, &error))
}

/// Truncates a file to its first `length` bytes. `None` means that the file did not exist. A file that is shorter stays
/// as it is.
fn cut(path: &Path, length: Option<u64>) -> Result<(), RunError> {
    let cut = match length {
        None if !path.exists() => Ok(()),
        None => std::fs::remove_file(path),
        Some(length) => File::options().write(true).open(path).and_then(|file| match file.metadata()?.len() > length {
            true => file.set_len(length),
            false => Ok(()),
        }),
    };
    cut.map_err(|error| file(path, &error))
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, RunError> {
    let text = serde_json::to_string_pretty(&json!(value)).map_err(|error| RunError::Output(error.to_string()))?;
    Ok(format!("{text}\n").into_bytes())
}

fn directory(error: RunDirError) -> RunError {
    if let RunDirError::Moved(path) = error {
        return RunError::Moved(path);
    }
    if error.is_usage() {
        return RunError::Config(error.to_string());
    }
    RunError::Output(error.to_string())
}

fn file(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Output(format!("{}: {error}", path.display()))
}

/// Converts a file error of the report, whose message already names the file.
fn output(error: FileError) -> RunError {
    RunError::Output(error.to_string())
}

/// Writes a text file atomically: completely or not at all.
///
/// # Errors
/// The file cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), RunError> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file atomically: completely or not at all.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_atomic(path, bytes).map_err(output)
}
