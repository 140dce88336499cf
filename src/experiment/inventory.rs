//! The runs below a directory, read from the small files of each: what it is, how far it is, and how good.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::config::flat;
use super::provenance::Provenance;
use super::run_dir;
use crate::checkpoint::CheckpointError;
use crate::checkpoint::lock::Lock;
use crate::datasets::DataConfig;
use crate::machine;
use crate::report::HEADLINE;
use crate::report::files::{directory_of, read_regular};
use crate::shell;

/// The number of directories below the first one in which runs are looked for.
const DEPTH: usize = 6;

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It has ended with all its files.
    Finished,
    /// It was stopped, and `--resume` continues it.
    Stopped,
    /// A process works on it.
    Running {
        /// The process.
        holder: String,
    },
    /// It was stopped, and there is no checkpoint from which it could go on.
    Broken,
    /// A process with `--force` moved it aside and was killed before its own run had results.
    SetAside {
        /// The directory in which it was.
        place: PathBuf,
    },
}

impl RunState {
    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Running { .. } => "running",
            Self::Broken => "broken off",
            Self::SetAside { .. } => "set aside",
        }
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its directory.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// How far it is.
    pub state: RunState,
    /// The kind of its algorithm.
    pub algorithm: String,
    /// Its data: the kind, the file's name, or the name of the program's own rows.
    pub data: String,
    /// The rounds that are done.
    pub done: usize,
    /// The rounds of the whole run.
    pub rounds: usize,
    /// The values of [`HEADLINE`] after its last evaluation; `None` where undefined.
    pub metrics: [Option<f64>; HEADLINE.len()],
    /// When it began, in UTC, such as `2026-11-21 14:05`.
    pub started: Option<String>,
    /// Whether its rows or its model are those of the program that began it, which alone can resume it.
    pub is_of_program: bool,
}

/// The directories of runs in a directory and below it, in the order of their names. Links are not followed, and
/// directories that cannot be read are left out.
///
/// # Errors
/// The directory itself cannot be read.
pub fn find(dir: &Path) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(dir)?;
    let mut found = Vec::new();
    add(dir, DEPTH, &mut found);
    found.sort();
    Ok(found)
}

fn add(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if is_run(dir) {
        found.push(dir.to_path_buf());
        return;
    }
    let Some(depth) = depth.checked_sub(1) else { return };
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if !is_hidden || is_left_aside(&entry.path()) {
            add(&entry.path(), depth, found);
        }
    }
}

/// Whether `--force` moved a run here and nobody works on the one that was to replace it.
fn is_left_aside(path: &Path) -> bool {
    run_dir::former_place(path).is_some_and(|place| Lock::holder_of(&place).is_none())
}

/// Whether a directory is that of a run.
pub fn is_run(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).exists();
    dir.join(run_dir::CONFIG).is_file() && [run_dir::ROUNDS, run_dir::SUMMARY, run_dir::CHECKPOINT].into_iter().any(has)
}

/// Whether this has the name of a file that a run writes, in the directory of a run.
pub fn is_file_of_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(run_dir::is_of_run) && is_run(directory_of(path))
}

impl Entry {
    /// Reads a run's small files. What a file does not say, or says in a way that cannot be read, is left blank.
    pub fn read(path: &Path) -> Self {
        let config = config(path).unwrap_or_default();
        let summary: Json = read_regular(&path.join(run_dir::SUMMARY))
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let last = last_round(&path.join(run_dir::ROUNDS));
        let rounds = crate::checkpoint::rounds(&path.join(run_dir::CHECKPOINT));
        // The directory of checkpoints is its owner's alone: others see the rounds that are written.
        let is_closed = matches!(
            &rounds,
            Err(CheckpointError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied
        );
        let saved = rounds.ok().and_then(|rounds| rounds.last().copied());
        let ended = summary["rounds"]
            .as_array()
            .and_then(|rounds| rounds.last()?["round"].as_u64())
            .map(|round| round as usize);
        let is_whole = summary["evaluation"].is_object();
        let state = match Lock::holder_of(path) {
            Some(holder) => RunState::Running { holder },
            // A run that was continued beyond its end has a newer checkpoint.
            None if is_whole && saved.is_none_or(|saved| ended.is_none_or(|ended| saved <= ended)) => {
                RunState::Finished
            }
            None if saved.is_some() || is_closed => RunState::Stopped,
            None => RunState::Broken,
        };
        let written = last.get("round").and_then(|round| round.parse().ok());
        let done = match state {
            RunState::Finished => ended.or(written),
            RunState::Stopped => saved.or(written),
            _ => written,
        };
        let rounds = config.get("rounds").and_then(Value::as_integer).and_then(|rounds| usize::try_from(rounds).ok());
        let metric = |name: &str| match state {
            RunState::Finished => summary["evaluation"][name].as_f64(),
            _ => last.get(name)?.parse().ok(),
        };
        Self {
            path: path.to_path_buf(),
            name: text(&config, &["name"]),
            algorithm: text(&config, &["algorithm", "kind"]),
            data: own_data(path).unwrap_or_else(|| data(&config)),
            done: done.unwrap_or(0),
            rounds: rounds.or(done).unwrap_or(0),
            metrics: HEADLINE.map(metric),
            started: started(path),
            state: run_dir::former_place(path).map_or(state, |place| RunState::SetAside { place }),
            is_of_program: card(path).is_some_and(|card| is_own(&card, OWN_DATA) || is_own(&card, OWN_MODEL)),
        }
    }
}

/// Something in which runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, `section.key`.
    pub key: String,
    /// Its value in every run; `None` in a run without it.
    pub values: Vec<Option<String>>,
}

/// The keys in which configs differ, with their values as TOML.
///
/// # Errors
/// The `config.toml` of a run cannot be read; the message names it.
pub fn differences(runs: &[PathBuf]) -> Result<Vec<Difference>, String> {
    let configs = runs.iter().map(|run| Ok(flat(&config(run)?))).collect::<Result<Vec<_>, String>>()?;
    let keys: BTreeSet<&String> = configs.iter().flat_map(BTreeMap::keys).collect();
    let values = |key: &String| configs.iter().map(|config| config.get(key).cloned()).collect();
    let all = keys.into_iter().map(|key| Difference { key: key.clone(), values: values(key) });
    Ok(all.filter(|of| of.values.windows(2).any(|pair| pair[0] != pair[1])).collect())
}

/// The command that goes on with a stopped run, whose sites are not known here.
pub fn resume(run: &Path) -> String {
    let files = if is_federation(run) { " --sites …, with the files of its sites" } else { "" };
    shell::resume(run, &[]) + files
}

/// Whether the rows of a run were at the sites of a federation.
pub fn is_federation(run: &Path) -> bool {
    config(run).is_ok_and(|config| text(&config, &["data", "kind"]) == DataConfig::AT_SITES)
}

fn config(run: &Path) -> Result<Table, String> {
    let path = run.join(run_dir::CONFIG);
    let text =
        read_regular(&path).map_err(|error| format!("{}: {error}; is this the directory of a run?", path.display()))?;
    text.parse().map_err(|error: toml::de::Error| format!("{}: {}", path.display(), error.message()))
}

/// The text at a place in a config; blank where there is none.
fn text(config: &Table, place: &[&str]) -> String {
    let (last, sections) = match place.split_last() {
        Some(split) => split,
        None => return String::new(),
    };
    let table = sections.iter().try_fold(config, |table, section| table.get(*section)?.as_table());
    table.and_then(|table| table.get(*last)?.as_str()).unwrap_or_default().to_owned()
}

/// The name of rows that a run's program brought, of which the config knows nothing; `None` where it brought none.
pub fn own_data(run: &Path) -> Option<String> {
    let card = card(run).filter(|card| is_own(card, OWN_DATA))?;
    card["data"].as_str().map(str::to_owned)
}

/// The keys of `model.json` that mark rows and a model that the program brought.
const OWN_DATA: &str = "own_data";
const OWN_MODEL: &str = "own_model";

fn is_own(card: &Json, what: &str) -> bool {
    card[what].as_bool().unwrap_or(false)
}

/// The content of `model.json`; `None` where it cannot be read.
fn card(run: &Path) -> Option<Json> {
    serde_json::from_str(&read_regular(&run.join(run_dir::MODEL)).ok()?).ok()
}

/// The data in a word: the kind, or the name of a user's own file.
fn data(config: &Table) -> String {
    let (kind, path) = (text(config, &["data", "kind"]), text(config, &["data", "path"]));
    let file = Path::new(&path).file_name().map(|name| name.to_string_lossy().into_owned());
    file.unwrap_or(kind)
}

/// The last row of `rounds.csv` by the names of its columns; empty where there is none.
fn last_round(path: &Path) -> BTreeMap<String, String> {
    let reader = path.is_file().then(|| csv::ReaderBuilder::new().flexible(true).from_path(path));
    let Some(Ok(mut rows)) = reader else { return BTreeMap::new() };
    let Ok(names) = rows.headers().cloned() else { return BTreeMap::new() };
    // The last line may be in the middle of being written.
    let last = rows.records().map_while(Result::ok).filter(|row| row.len() == names.len()).last();
    let cells = last.iter().flat_map(|row| names.iter().zip(row.iter()));
    cells.map(|(name, cell)| (name.to_owned(), cell.to_owned())).collect()
}

/// When a run began: as it says itself, else the time of its config, to the minute.
fn started(run: &Path) -> Option<String> {
    let said = Provenance::read(&run.join(run_dir::PROVENANCE)).and_then(|of| Some(of.started()?.replace('T', " ")));
    let written = || fs::metadata(run.join(run_dir::CONFIG)).and_then(|file| file.modified()).ok();
    let time = said.or_else(|| written().map(|time: SystemTime| machine::timestamp_of(time)))?;
    Some(time.chars().take("2026-11-21 14:05".len()).collect())
}
