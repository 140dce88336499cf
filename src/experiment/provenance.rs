//! Where the results of a run come from: its rows, its program, and who ran it when on which machine. None of it has an
//! effect on the results, and all of it may differ between two runs with the same ones.

use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::checkpoints::Digests;
use crate::machine;
use crate::report::files::read_regular;

/// Version of the layout of `provenance.json`.
const SCHEMA_VERSION: u32 = 1;

/// The content of `provenance.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    schema_version: u32,
    /// sha256 of all training and test rows, as the model sees them; of a federation, of the prints of its files, which are
    /// others in every run.
    pub data_sha256: String,
    /// sha256 of the assignment of rows to clients.
    pub partition_sha256: String,
    /// The processes that have worked on the run, one after the other.
    pub sessions: Vec<Session>,
    /// What the processes have said about the config, one sentence each. A resumed run reads a config in which every key is
    /// written, and no longer knows which ones its user had given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A process that has worked on a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The version of fedstein.
    pub version: String,
    /// The command line; that of the interpreter where a script has started the run.
    pub command: Vec<String>,
    /// The machine.
    pub host: Host,
    /// When it began, in UTC, such as `2026-11-21T14:05:09Z`.
    pub started: String,
    /// When it ended; `None` where it ended within a round, or still works.
    pub ended: Option<String>,
    /// The last round that was done before.
    pub after_round: usize,
    /// The last round that it has done, where it has ended.
    pub round: Option<usize>,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name in its network.
    pub name: Option<String>,
    /// Its operating system, such as `linux`.
    pub system: String,
    /// Its kind of processor, such as `x86_64`.
    pub architecture: String,
    /// The name of its processor.
    pub processor: Option<String>,
    /// The number of threads that the run uses at most.
    pub threads: usize,
}

impl Host {
    fn here() -> Self {
        Self {
            name: machine::name(),
            system: std::env::consts::OS.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            processor: machine::processor(),
            threads: rayon::current_num_threads(),
        }
    }
}

impl Provenance {
    /// Reads the file of a run; `None` where there is none that can be read, as in a run of an earlier version.
    pub fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&read_regular(path).ok()?).ok()
    }

    /// Adds this process, which goes on after a round and has these notes on the config, to those of an earlier file.
    pub(super) fn begun(earlier: Option<Self>, digests: &Digests, after_round: usize, of_config: &[String]) -> Self {
        let Self { mut sessions, mut notes, .. } = earlier.unwrap_or_default();
        let new: Vec<String> = of_config.iter().filter(|note| !notes.contains(note)).cloned().collect();
        notes.extend(new);
        sessions.push(Session {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line(),
            host: Host::here(),
            started: now(),
            ended: None,
            after_round,
            round: None,
        });
        Self {
            schema_version: SCHEMA_VERSION,
            data_sha256: digests.data.clone(),
            partition_sha256: digests.partition.clone(),
            sessions,
            notes,
        }
    }

    /// Notes that this process ends, after a round.
    pub(super) fn end(&mut self, round: usize) {
        if let Some(session) = self.sessions.last_mut() {
            (session.ended, session.round) = (Some(now()), Some(round));
        }
    }

    /// When the first process began.
    pub fn started(&self) -> Option<&str> {
        self.sessions.first().map(|session| session.started.as_str())
    }

    /// Whether the first process began before a time, to the second.
    pub(super) fn began_before(&self, time: SystemTime) -> bool {
        self.started().is_some_and(|began| *began < *in_utc(time))
    }
}

/// The words of the command line of this process, without the values of options that have a secret.
pub fn command_line() -> Vec<String> {
    without_secrets(std::env::args_os().map(|word| word.to_string_lossy().into_owned()))
}

/// What stands for a value that is not kept.
const SECRET: &str = "(not kept)";
/// Parts of the names of options whose value is a secret, such as Flower's `--token`.
const SECRETS: [&str; 8] = ["token", "password", "passwd", "passphrase", "secret", "credential", "api-key", "apikey"];

fn without_secrets(words: impl Iterator<Item = String>) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_lowercase().replace('_', "-");
        SECRETS.iter().any(|secret| name.contains(secret))
    };
    let mut is_value = false;
    let kept = |word: String| {
        let (value_of_last, option) = (std::mem::take(&mut is_value), word.strip_prefix("--"));
        match option {
            Some(option) => match option.split_once('=') {
                Some((name, _)) if is_secret(name) => format!("--{name}={SECRET}"),
                Some(_) => word,
                None => {
                    is_value = is_secret(option);
                    word
                }
            },
            None if value_of_last => SECRET.to_owned(),
            None => word,
        }
    };
    words.map(kept).collect()
}

/// The present time in UTC, in the form of RFC 3339.
fn now() -> String {
    in_utc(SystemTime::now())
}

/// A time in UTC, in the form of RFC 3339.
fn in_utc(time: SystemTime) -> String {
    machine::timestamp_of(time).replace(' ', "T") + "Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_options_with_a_secret_are_not_kept() {
        let kept = |line: &str| without_secrets(line.split(' ').map(str::to_owned)).join(" ");
        for (line, expected) in [
            ("flwr-serverapp --token 1b47 --run-id 3", "flwr-serverapp --token (not kept) --run-id 3"),
            ("app --TOKEN=1b47 --out a", "app --TOKEN=(not kept) --out a"),
            (
                "app --api_key k --x-password p --resume run",
                "app --api_key (not kept) --x-password (not kept) --resume run",
            ),
            ("app --token --out a", "app --token --out a"),
            ("fedstein train my-token.toml --set seed=3", "fedstein train my-token.toml --set seed=3"),
        ] {
            assert_eq!(kept(line), expected);
        }
    }

    #[test]
    fn a_run_began_before_what_was_written_a_second_later() {
        let session = Session { started: "2026-11-21T14:05:09Z".into(), ..Session::default() };
        let run = Provenance { sessions: vec![session], ..Provenance::default() };
        // `date -u -d "2026-11-21 14:05:09" +%s`
        let at = |later: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_795_269_909 + later);
        assert_eq!([0, 1, 86_400].map(|later| run.began_before(at(later))), [false, true, true]);
        assert!(!run.began_before(at(0) - std::time::Duration::from_secs(14 * 3600)), "in the night of the same day");
        assert!(!Provenance::default().began_before(at(0)), "a run that does not say it");
    }
}
