//! The checkpoints of a run: the run's identity, when a checkpoint is due, which parts it contains, and how each part
//! is restored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::checkpoint::{CheckpointError, Identity, Position, State, Store, digest};
use crate::datasets::{Partition, TrainTest};
use crate::error::RunError;
use crate::federation::fault_policy::{ClientReliability, FaultPolicy};
use crate::federation::fleet::Fleet;
use crate::models::Layout;
use crate::protocol::{ClientHalf, ClientId, ServerHalf};
use crate::schedule::Schedule;

use super::config::{BACKEND, flat, schema};
use super::schema::{Overrides, Resolved, Source};

/// Keys that do not change what rounds compute, besides the whole sections `[checkpoint]` and `[calibration]`.
const FREE: &[&str] = &["name", "rounds", "stop.uplink_mib", "stop.seconds", "federation.memory_mib"];

/// A key of which only it matters whether it is 0.
const PATIENCE: &str = "stop.patience";

/// The names of a checkpoint's parts; each client that has ever trained is a further part.
const SERVER: &str = "server";
const SCHEDULE: &str = "schedule";
const RELIABILITY: &str = "reliability";
const FAULTS: &str = "faults";
const HISTORY: &str = "history";

/// References to every part of the run, at the end of a round.
#[allow(missing_debug_implementations)] // Halves and schedules are trait objects.
pub(super) struct Snapshot<'a> {
    pub round: usize,
    pub server: &'a dyn ServerHalf,
    pub schedule: &'a dyn Schedule,
    /// The server's record of its clients' reliability.
    pub policy: &'a FaultPolicy,
    pub fleet: &'a dyn Fleet,
    /// The state of what the recorder collected over the rounds.
    pub history: &'a dyn Fn() -> State,
}

/// The digests of a run's rows.
#[derive(Clone, Debug)]
pub(super) struct Digests {
    /// Of all training and test rows.
    pub data: String,
    /// Of their assignment to clients.
    pub partition: String,
}

impl Digests {
    /// Those of some rows and their clients.
    pub fn of(data: &TrainTest, partition: &Partition) -> Self {
        Self { data: digest::of_data(data), partition: digest::of_partition(partition) }
    }
}

/// What a program brings in the place of its config's.
#[derive(Clone, Debug, Default)]
pub(super) struct Brought {
    /// The blocks of its model, from [`blocks_of`].
    pub model: Option<Vec<String>>,
    /// The name of its client selection.
    pub selection: Option<String>,
}

/// The checkpoints of one run.
#[derive(Debug)]
pub(super) struct Checkpoints {
    store: Store,
    identity: Identity,
    is_resumed: bool,
    /// The clients that have trained since the last checkpoint.
    changed: BTreeSet<ClientId>,
    last: Instant,
}

impl Checkpoints {
    /// The checkpoints of a new run; nothing is written yet.
    ///
    /// # Arguments
    /// * `brought`: what the program brings in the place of the config's
    pub fn new(
        dir: PathBuf,
        resolved: &Resolved,
        Digests { data, partition }: Digests,
        Brought { model: own_model, selection: own_selection }: Brought,
    ) -> Self {
        let config = flat(&resolved.table);
        let config_sha256 = config_digest(&config);
        let identity = Identity { config_sha256, config, data, partition, own_model, own_selection };
        Self { store: Store::new(dir), identity, is_resumed: false, changed: BTreeSet::new(), last: Instant::now() }
    }

    /// The checkpoints of a resumed run, and a note on each damaged one. The backend is not compared: that of the run is
    /// only known when it begins ([`Self::must_be_on`]).
    ///
    /// # Errors
    /// There is no checkpoint, none is intact, or a key that changes the result differs.
    pub fn open(dir: &Path, resolved: &Resolved) -> Result<(Self, Vec<String>), CheckpointError> {
        let (store, damaged) = Store::open(dir)?;
        Ok((Self::of_store(store, resolved)?, damaged))
    }

    /// The checkpoint of a round, for reading; `None` where there is none of this round.
    ///
    /// # Errors
    /// It cannot be read, or a key that changes the result differs.
    pub fn to_read(dir: &Path, round: usize, resolved: &Resolved) -> Result<Option<Self>, CheckpointError> {
        Store::to_read(dir, round)?.map(|store| Self::of_store(store, resolved)).transpose()
    }

    fn of_store(store: Store, resolved: &Resolved) -> Result<Self, CheckpointError> {
        let old = store.newest().map(|manifest| manifest.identity.clone()).unwrap_or_default();
        let mut config = flat(&resolved.table);
        if let Some(backend) = old.config.get(BACKEND) {
            config.insert(BACKEND.to_owned(), backend.clone());
        }
        let differences = differences(&completed(&old.config), &config);
        if !differences.is_empty() {
            return Err(CheckpointError::Config(differences));
        }
        let identity = Identity { config_sha256: config_digest(&config), config, ..old };
        Ok(Self { store, identity, is_resumed: true, changed: BTreeSet::new(), last: Instant::now() })
    }

    /// Whether the run resumes from one of them.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The last round of the newest checkpoint; 0 if there is none.
    pub fn round(&self) -> usize {
        self.store.newest().map_or(0, |manifest| manifest.round)
    }

    /// The length in bytes of a file of the run when the newest checkpoint was written, if the file existed then.
    pub fn log_length(&self, name: &str) -> Option<u64> {
        self.store.newest()?.logs.get(name).copied()
    }

    /// Checks that the newest checkpoint was written on this backend.
    ///
    /// # Errors
    /// It was written on another one.
    pub fn must_be_on(&self, backend: &str) -> Result<(), CheckpointError> {
        let new = toml::Value::from(backend).to_string();
        match self.identity.config.get(BACKEND).filter(|old| **old != new) {
            Some(old) => Err(CheckpointError::Config(vec![format!("{BACKEND}: {old} → {new}")])),
            None => Ok(()),
        }
    }

    /// Checks that the newest checkpoint fits this run.
    ///
    /// # Errors
    /// As [`Self::must_have`], or the newest checkpoint was made with another client selection.
    pub fn must_be_of(&self, digests: &Digests, brought: &Brought, rounds: usize) -> Result<(), CheckpointError> {
        let selections = [&self.identity.own_selection, &brought.selection].map(Option::as_deref);
        same_selection(selections).map_err(CheckpointError::Model)?;
        self.must_have(digests, brought.model.as_deref(), rounds)
    }

    /// Checks that the newest checkpoint is of these rows and this model.
    ///
    /// # Errors
    /// The newest checkpoint was made from other data or with another model, or lies beyond the last round.
    pub fn must_have(
        &self,
        digests: &Digests,
        own_model: Option<&[String]>,
        rounds: usize,
    ) -> Result<(), CheckpointError> {
        same_model(self.identity.own_model.as_deref(), own_model).map_err(CheckpointError::Model)?;
        let same = |what, expected: &str, found: &str| match found == expected {
            true => Ok(()),
            false => Err(CheckpointError::Data { what, found: found.to_owned(), expected: expected.to_owned() }),
        };
        same("training and test rows are", &self.identity.data, &digests.data)?;
        same("clients' rows are", &self.identity.partition, &digests.partition)?;
        let done = self.round();
        if done > rounds {
            return Err(CheckpointError::Rounds { done, asked: rounds });
        }
        Ok(())
    }

    /// Records that the replies of these clients were aggregated: no other client's state has changed.
    pub fn trained(&mut self, clients: &[ClientId]) {
        self.changed.extend(clients);
    }

    /// Whether at least `every_seconds` have passed since the last checkpoint.
    pub fn is_due(&self, every_seconds: f64) -> bool {
        self.last.elapsed().as_secs_f64() >= every_seconds
    }

    /// Writes a checkpoint. The states of clients that have not trained since the last one are not read again.
    ///
    /// # Errors
    /// A state cannot be read, or a file cannot be written; earlier checkpoints stay unchanged.
    pub fn write(&mut self, snapshot: &Snapshot<'_>, logs: BTreeMap<String, u64>) -> Result<(), RunError> {
        let Snapshot { round, server, schedule, policy, fleet, history } = snapshot;
        let common = [SERVER, SCHEDULE, RELIABILITY, FAULTS, HISTORY].into_iter().map(|part| {
            let state = match part {
                SERVER => server.save()?,
                SCHEDULE => schedule.save(),
                RELIABILITY => policy.save().to_state()?,
                FAULTS => fleet.save_own(),
                _ => history(),
            };
            Ok::<_, RunError>((part.to_owned(), state))
        });
        let trained = self.changed.iter().map(|client| Ok((part_of(*client), fleet.save(*client)?)));
        let position = Position { round: *round, identity: self.identity.clone(), logs };
        self.store.write(position, common.chain(trained))?;
        self.changed.clear();
        self.last = Instant::now();
        Ok(())
    }

    /// The server's record of its clients in the newest checkpoint.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn reliability(&self) -> Result<ClientReliability, CheckpointError> {
        ClientReliability::from_state(&self.store.read(RELIABILITY)?)
    }

    /// Restores server, schedule, policy, injector and clients, and returns the recorder's state.
    ///
    /// # Errors
    /// A file cannot be read, or a state does not fit its part.
    pub fn restore(
        &self,
        server: &mut dyn ServerHalf,
        schedule: &mut dyn Schedule,
        fleet: &dyn Fleet,
        policy: &mut FaultPolicy,
    ) -> Result<State, RunError> {
        server.restore(&self.store.read(SERVER)?)?;
        schedule.restore(&self.store.read(SCHEDULE)?)?;
        policy.restore(self.reliability()?);
        fleet.restore_own(&self.store.read(FAULTS)?)?;
        for part in self.store.parts() {
            if let Some(client) = client_of(part) {
                fleet.restore(client, &self.store.read(part)?)?;
            }
        }
        Ok(self.store.read(HISTORY)?)
    }

    /// Restores the server and one client alone, which stays as it was built where it has never trained.
    ///
    /// # Errors
    /// A file cannot be read, or a state does not fit its part.
    pub fn restore_one(
        &self,
        server: &mut dyn ServerHalf,
        (client, half): (ClientId, &mut dyn ClientHalf),
    ) -> Result<(), RunError> {
        server.restore(&self.store.read(SERVER)?)?;
        let part = part_of(client);
        if self.store.parts().any(|there| there == part) {
            half.restore(&self.store.read(&part)?)?;
        }
        Ok(())
    }

    /// Ends checkpointing: keeps only the newest checkpoint, or none.
    ///
    /// # Errors
    /// A file or the directory cannot be removed.
    pub fn finish(&mut self, keep: bool) -> Result<(), RunError> {
        if keep {
            self.store.keep_newest()?
        } else {
            self.store.remove()?
        }
        Ok(())
    }
}

/// The names and shapes of a model's blocks, as texts.
pub(super) fn blocks_of(layout: &Layout) -> Vec<String> {
    layout.blocks().iter().map(|block| format!("{} {:?}", block.name, block.shape)).collect()
}

/// Checks that a run resumes with its own client selection.
///
/// # Errors
/// A sentence that says which selection the run has.
fn same_selection([old, new]: [Option<&str>; 2]) -> Result<(), String> {
    match (old, new) {
        (old, new) if old == new => Ok(()),
        (Some(old), Some(new)) => {
            Err(format!("this run has the client selection `{old}`, and Experiment::with_selection brings `{new}`"))
        }
        (Some(old), None) => Err(format!(
            "this run has a client selection of its own, `{old}`, which no config describes; the program that made it resumes it \
             (`Artifacts::resume`, `Experiment::with_selection`)"
        )),
        _ => {
            Err("this run has the client selection of its config; resume it without `Experiment::with_selection`"
                .into())
        }
    }
}

/// Checks that a run resumes with its own model.
///
/// # Errors
/// A sentence that says which model the run has.
fn same_model(old: Option<&[String]>, new: Option<&[String]>) -> Result<(), String> {
    match (old, new) {
        (None, None) => Ok(()),
        (Some(_), None) => {
            Err("this run has a model of its own, which no config describes; the program that made it resumes \
             it (`Artifacts::resume`, `Experiment::with_model`)"
                .into())
        }
        (None, Some(_)) => {
            Err("this run has the model of its config; resume it without `Experiment::with_model`".into())
        }
        (Some(old), Some(new)) => {
            let block = |of: &[String], at: usize| of.get(at).map_or("none".to_owned(), |block| format!("`{block}`"));
            let differs = |at: &usize| old.get(*at) != new.get(*at);
            match (0..old.len().max(new.len())).find(differs) {
                None => Ok(()),
                Some(at) => Err(format!(
                    "parameter {at} of the model of Experiment::with_model is {}, and was {} when the checkpoint was written; \
                     a run resumes with its own model",
                    block(new, at),
                    block(old, at)
                )),
            }
        }
    }
}

fn part_of(client: ClientId) -> String {
    format!("client-{client}")
}

fn client_of(part: &str) -> Option<ClientId> {
    part.strip_prefix("client-")?.parse().ok()
}

/// The digest of the keys that change the result.
fn config_digest(config: &BTreeMap<String, String>) -> String {
    digest::of_bytes(
        bound(config).into_iter().map(|(key, value)| format!("{key} = {value}\n")).collect::<String>().as_bytes(),
    )
}

/// The keys that change the result, with what of their values changes it.
fn bound(config: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let value = |(key, value): (&String, &String)| match key == PATIENCE && value != "0" {
        true => "more than 0".to_owned(),
        false => value.clone(),
    };
    config.iter().filter(|(key, _)| !is_free(key)).map(|pair| (pair.0.clone(), value(pair))).collect()
}

/// A config of an earlier version, with the defaults of the keys that came after it.
fn completed(old: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let line = |path: &str, value: &str| format!("{} = {value}\n", path.rsplit('.').next().unwrap_or(path));
    let (tops, keys): (Vec<_>, Vec<_>) = old.iter().partition(|(path, _)| !path.contains('.'));
    let mut text: String = tops.into_iter().map(|(path, value)| line(path, value)).collect();
    let mut section = "";
    // The keys of a section stand together, for the map is sorted.
    for (path, value) in keys {
        let of = path.split('.').next().unwrap_or_default();
        if of != section {
            section = of;
            text += &format!("[{section}]\n");
        }
        text += &line(path, value);
    }
    let resolved = schema().resolve(Source { name: "the checkpoint", text: &text }, &Overrides::default());
    // The keys of an algorithm of the user's own are not in the schema.
    resolved.map_or_else(|_| old.clone(), |resolved| flat(&resolved.table))
}

fn is_free(key: &str) -> bool {
    FREE.contains(&key) || key.starts_with("checkpoint.") || key.starts_with("calibration.")
}

/// Describes each key that changes the result and differs, in one sentence per key.
fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let (old, new) = (bound(old), bound(new));
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let shown = |value: Option<&String>| value.map_or("not there", String::as_str).to_owned();
    let differ = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    differ.map(|key| format!("{key}: {} → {}", shown(old.get(key)), shown(new.get(key)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn keys_that_came_after_a_checkpoint_have_their_defaults() {
        let resolved = schema().resolve(Source { name: "test", text: "" }, &Overrides::default()).unwrap();
        let whole = flat(&resolved.table);
        let mut earlier = whole.clone();
        earlier.retain(|key, _| !key.starts_with("stop."));
        assert!(earlier.len() < whole.len());
        assert_eq!(completed(&earlier), whole);
        // The keys of an algorithm of the user's own are not known here.
        let own = keys(&[("algorithm.kind", "\"mine\""), ("algorithm.depth", "3")]);
        assert_eq!(completed(&own), own);
    }

    #[test]
    fn a_run_resumes_with_its_own_model_alone() {
        let blocks = |width: usize| {
            blocks_of(&Layout::new([("hidden.weight", [64, width].as_slice()), ("hidden.bias", [width].as_slice())]))
        };
        let (small, large) = (blocks(3), blocks(4));
        assert_eq!(same_model(None, None), Ok(()));
        assert_eq!(same_model(Some(&small), Some(&small)), Ok(()));
        assert!(same_model(Some(&small), None).unwrap_err().contains("has a model of its own"));
        assert!(same_model(None, Some(&small)).unwrap_err().contains("without `Experiment::with_model`"));
        let message = same_model(Some(&small), Some(&large)).unwrap_err();
        assert!(message.contains("is `hidden.weight [64, 4]`, and was `hidden.weight [64, 3]`"), "{message}");
        let message = same_model(Some(&small), Some(&small[..1])).unwrap_err();
        assert!(message.contains("parameter 1") && message.contains("is none"), "{message}");
    }

    #[test]
    fn patience_may_change_but_not_begin_or_end() {
        let with = |patience: &str| keys(&[("stop.patience", patience), ("stop.seconds", patience)]);
        assert!(differences(&with("3"), &with("9")).is_empty());
        assert_eq!(differences(&with("0"), &with("9")), ["stop.patience: 0 → more than 0"]);
    }

    #[test]
    fn only_keys_that_change_the_result_are_differences() {
        let old = keys(&[("rounds", "5"), ("seed", "1"), ("checkpoint.keep", "true"), ("optimizer.lr", "0.1")]);
        let new = keys(&[("rounds", "9"), ("seed", "2"), ("checkpoint.keep", "false"), ("kernel.kind", "\"rbf\"")]);
        let want = ["kernel.kind: not there → \"rbf\"", "optimizer.lr: 0.1 → not there", "seed: 1 → 2"];
        assert_eq!(differences(&old, &new), want);
        let free = keys(&[("rounds", "9"), ("seed", "1"), ("optimizer.lr", "0.1")]);
        assert_eq!(config_digest(&old), config_digest(&free));
        assert_ne!(config_digest(&old), config_digest(&new));
    }
}
