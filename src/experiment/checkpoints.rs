//! The checkpoints of a run: the run's identity, when a checkpoint is due, which parts it contains, and how each part
//! is restored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use toml::{Table, Value};

use crate::backend::Backend;
use crate::checkpoint::{CheckpointError, Identity, Position, State, Store, digest};
use crate::error::RunError;
use crate::federation::fault_policy::{ClientReliability, FaultPolicy};
use crate::federation::fleet::Fleet;
use crate::protocol::{ClientId, ServerHalf};
use crate::schedule::Schedule;

use super::schema::Resolved;

/// Keys that do not change what rounds compute, besides the whole sections `[checkpoint]` and `[calibration]`.
const FREE: &[&str] = &["name", "rounds"];

/// The names of a checkpoint's parts; each client that has ever trained is a further part.
const SERVER: &str = "server";
const SCHEDULE: &str = "schedule";
const CONDUCT: &str = "conduct";
const FAULTS: &str = "faults";
const HISTORY: &str = "diary";

/// References to every part of the run, at the end of a round.
#[allow(missing_debug_implementations)] // Halves and schedules are trait objects.
pub(super) struct Snapshot<'a, B: Backend> {
    pub round: usize,
    pub server: &'a dyn ServerHalf<B>,
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
    pub fn new(dir: PathBuf, resolved: &Resolved, Digests { data, partition }: Digests) -> Self {
        let config = flat(&resolved.table);
        let identity = Identity { config_sha256: config_digest(&config), config, data, partition };
        Self { store: Store::new(dir), identity, is_resumed: false, changed: BTreeSet::new(), last: Instant::now() }
    }

    /// The checkpoints of a resumed run, and a note on each damaged one.
    ///
    /// # Errors
    /// There is no checkpoint, none is intact, or a key that changes the result differs.
    pub fn open(dir: &Path, resolved: &Resolved) -> Result<(Self, Vec<String>), CheckpointError> {
        let (store, damaged) = Store::open(dir)?;
        let old = store.newest().map(|manifest| manifest.identity.clone()).unwrap_or_default();
        let config = flat(&resolved.table);
        let differences = differences(&old.config, &config);
        if !differences.is_empty() {
            return Err(CheckpointError::Config(differences));
        }
        let identity = Identity { config_sha256: config_digest(&config), config, ..old };
        Ok((Self { store, identity, is_resumed: true, changed: BTreeSet::new(), last: Instant::now() }, damaged))
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

    /// Checks that the newest checkpoint fits this run.
    ///
    /// # Errors
    /// The newest checkpoint was made from other data, or lies beyond the last round.
    pub fn must_be_of(&self, digests: &Digests, rounds: usize) -> Result<(), CheckpointError> {
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
    pub fn write<B: Backend>(
        &mut self,
        snapshot: &Snapshot<'_, B>,
        logs: BTreeMap<String, u64>,
    ) -> Result<(), RunError> {
        let Snapshot { round, server, schedule, policy, fleet, history } = snapshot;
        let common = [SERVER, SCHEDULE, CONDUCT, FAULTS, HISTORY].into_iter().map(|part| {
            let state = match part {
                SERVER => server.save()?,
                SCHEDULE => schedule.save(),
                CONDUCT => policy.save().to_state()?,
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
        ClientReliability::from_state(&self.store.read(CONDUCT)?)
    }

    /// Restores server, schedule, policy, injector and clients, and returns the recorder's state.
    ///
    /// # Errors
    /// A file cannot be read, or a state does not fit its part.
    pub fn restore<B: Backend>(
        &self,
        server: &mut dyn ServerHalf<B>,
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

fn part_of(client: ClientId) -> String {
    format!("client-{client}")
}

fn client_of(part: &str) -> Option<ClientId> {
    part.strip_prefix("client-")?.parse().ok()
}

/// Flattens a table to pairs of `section.key` and its value as TOML.
fn flat(table: &Table) -> BTreeMap<String, String> {
    let mut keys = BTreeMap::new();
    for (name, value) in table {
        match value {
            Value::Table(section) => {
                keys.extend(section.iter().map(|(key, value)| (format!("{name}.{key}"), value.to_string())));
            }
            value => drop(keys.insert(name.clone(), value.to_string())),
        }
    }
    keys
}

/// The digest of the keys that change the result.
fn config_digest(config: &BTreeMap<String, String>) -> String {
    let bound = config.iter().filter(|(key, _)| !is_free(key));
    digest::of_bytes(bound.map(|(key, value)| format!("{key} = {value}\n")).collect::<String>().as_bytes())
}

fn is_free(key: &str) -> bool {
    FREE.contains(&key) || key.starts_with("checkpoint.") || key.starts_with("calibration.")
}

/// Describes each key that changes the result and differs, in one sentence per key.
fn differences(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Vec<String> {
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).filter(|key| !is_free(key)).collect();
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
