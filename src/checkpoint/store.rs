//! The directory of a run's checkpoints: it writes generations atomically, and reads the newest intact one or that of a
//! round.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::manifest::Entry;
use super::{CheckpointError, Identity, Manifest, State, codec, digest};
use crate::report::files::{close_to_others, create_private, read_text, read_whole, replace, sync_directory};

/// The number of generations that are kept: if the newest is damaged, the one before can be used.
const KEPT: usize = 2;

/// The position and identity of a checkpoint, besides the states.
#[derive(Clone, Debug)]
pub struct Position {
    /// The last round that the checkpoint contains.
    pub round: usize,
    /// The identity of the run.
    pub identity: Identity,
    /// Length in bytes of the run's files to which every round appends.
    pub logs: BTreeMap<String, u64>,
}

/// The checkpoints of one run.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    /// The generations, the newest last; all intact as far as is known.
    generations: Vec<Manifest>,
    /// The oldest round whose generation is kept; `None` keeps [`KEPT`] generations.
    from: Option<usize>,
}

impl Store {
    /// A directory without checkpoints; it need not exist.
    pub fn new(dir: PathBuf) -> Self {
        Self { dir, generations: Vec::new(), from: None }
    }

    /// Opens the checkpoints in a directory; also returns a note on each damaged one. Every byte of the generation that
    /// is used has been checked.
    ///
    /// # Errors
    /// There is no checkpoint, none is intact, or the newest has another format.
    pub fn open(dir: &Path) -> Result<(Self, Vec<String>), CheckpointError> {
        let mut tried = Vec::new();
        for round in rounds(dir)?.into_iter().rev() {
            match whole(dir, round) {
                Ok(manifest) => {
                    return Ok((Self { generations: vec![manifest], ..Self::new(dir.to_path_buf()) }, tried));
                }
                Err(error @ CheckpointError::Format { .. }) => return Err(error),
                Err(error) => tried.push(error.to_string()),
            }
        }
        Err(match tried.is_empty() {
            true => CheckpointError::Missing(dir.parent().unwrap_or(dir).to_path_buf()),
            false => CheckpointError::Damaged(tried),
        })
    }

    /// The generation of a round and those before it; `None` where this round has none. Generations after it are
    /// removed with the next write. Every byte of the round's generation has been checked.
    ///
    /// # Errors
    /// The generation is damaged or has another format, or a file cannot be read.
    pub fn open_at(dir: &Path, round: usize) -> Result<Option<Self>, CheckpointError> {
        let mut generations = Vec::new();
        for earlier in rounds(dir)?.into_iter().take_while(|earlier| *earlier <= round) {
            generations.push(if earlier == round { whole(dir, round)? } else { manifest(dir, earlier)? });
        }
        let is_there = generations.last().is_some_and(|generation| generation.round == round);
        Ok(is_there.then(|| Self { generations, ..Self::new(dir.to_path_buf()) }))
    }

    /// The generation of a round alone, for reading: a part is checked when it is read. `None` where this round has none.
    ///
    /// # Errors
    /// The manifest is damaged or has another format, or a file cannot be read.
    pub fn to_read(dir: &Path, round: usize) -> Result<Option<Self>, CheckpointError> {
        if !rounds(dir)?.contains(&round) {
            return Ok(None);
        }
        Ok(Some(Self { generations: vec![manifest(dir, round)?], ..Self::new(dir.to_path_buf()) }))
    }

    /// Keeps every generation from this round on, in the place of the newest two.
    pub fn keep_from(&mut self, round: usize) {
        self.from = Some(round);
    }

    /// The newest generation.
    pub fn newest(&self) -> Option<&Manifest> {
        self.generations.last()
    }

    /// The parts with a state in the newest generation.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.newest().into_iter().flat_map(|manifest| manifest.files.keys().map(String::as_str))
    }

    /// The state of a part in the newest generation; an empty state where the part has none.
    ///
    /// # Errors
    /// The file cannot be read, or differs from what was written.
    pub fn read(&self, part: &str) -> Result<State, CheckpointError> {
        let Some(entry) = self.newest().and_then(|manifest| manifest.files.get(part)) else {
            return Ok(State::default());
        };
        let path = self.dir.join(&entry.file);
        codec::decode(&bytes_of(&self.dir, entry)?).map_err(|reason| content(&path, &reason))
    }

    /// Writes a generation: `parts` are written, all others are those of the generation before. When the call returns,
    /// it is on the disk.
    ///
    /// # Errors
    /// A state cannot be read, or a file cannot be written or removed; earlier generations stay unchanged.
    pub fn write<E: From<CheckpointError>>(
        &mut self,
        position: Position,
        parts: impl Iterator<Item = Result<(String, State), E>>,
    ) -> Result<(), E> {
        let Position { round, identity, logs } = position;
        self.discard_from(round)?;
        let mut manifest = Manifest::new(round, identity, logs);
        manifest.files = self.newest().map(|newest| newest.files.clone()).unwrap_or_default();
        let written = self.write_files(&mut manifest, parts);
        if written.is_err() {
            // The files of the failed generation are removed, for they may be what fills the disk.
            let _ = self.prune();
            return written;
        }
        self.generations.retain(|generation| generation.round != round);
        self.generations.push(manifest);
        match self.from {
            Some(from) => self.generations.retain(|generation| generation.round >= from),
            None => drop(self.generations.drain(..self.generations.len().saturating_sub(KEPT))),
        }
        Ok(self.prune()?)
    }

    /// Removes the manifests of this round and of later ones that are no generations of this store: a file that they list
    /// may be about to be replaced.
    fn discard_from(&self, round: usize) -> Result<(), CheckpointError> {
        let is_ours = |other: &usize| self.generations.iter().any(|generation| generation.round == *other);
        let discarded: Vec<usize> =
            rounds(&self.dir)?.into_iter().filter(|other| *other >= round && !is_ours(other)).collect();
        for other in &discarded {
            let path = self.dir.join(Manifest::name(*other));
            fs::remove_file(&path).map_err(CheckpointError::io("remove", &path))?;
        }
        // Their names must be off the disk before a file changes.
        if discarded.is_empty() { Ok(()) } else { sync(&self.dir) }
    }

    fn write_files<E: From<CheckpointError>>(
        &self,
        manifest: &mut Manifest,
        parts: impl Iterator<Item = Result<(String, State), E>>,
    ) -> Result<(), E> {
        match self.dir.is_dir() {
            false => create_private(&self.dir).map_err(CheckpointError::io("create", &self.dir))?,
            // The permissions of a directory that is there are its owner's choice, except that a copy may have lost them.
            true => close_to_others(&self.dir),
        }
        for part in parts {
            let (part, state) = part?;
            if state.is_empty() {
                manifest.files.remove(&part);
                continue;
            }
            let bytes = codec::encode(&state)?;
            let entry = Entry {
                file: format!("{part}-{}.safetensors", manifest.round),
                bytes: bytes.len() as u64,
                sha256: digest::of_bytes(&bytes),
            };
            put(&self.dir.join(&entry.file), &bytes)?;
            manifest.files.insert(part, entry);
        }
        // The names of the files must be on the disk before a manifest lists them.
        sync(&self.dir)?;
        put(&self.dir.join(Manifest::name(manifest.round)), manifest.to_text()?.as_bytes())?;
        Ok(sync(&self.dir)?)
    }

    /// Drops all generations but the newest.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn keep_newest(&mut self) -> Result<(), CheckpointError> {
        let spare = self.generations.len().saturating_sub(1);
        self.generations.drain(..spare);
        self.prune()
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// The directory cannot be removed.
    pub fn remove(&mut self) -> Result<(), CheckpointError> {
        self.generations.clear();
        if !self.dir.exists() {
            return Ok(());
        }
        fs::remove_dir_all(&self.dir).map_err(CheckpointError::io("remove", &self.dir))
    }

    /// Removes the checkpoint files that no generation lists. Files that were not written by a checkpoint are kept.
    fn prune(&self) -> Result<(), CheckpointError> {
        let mut used = BTreeSet::new();
        for generation in &self.generations {
            used.insert(Manifest::name(generation.round));
            used.extend(generation.files.values().map(|entry| entry.file.clone()));
        }
        for name in names(&self.dir)? {
            if is_of_store(&name) && !used.contains(&name) {
                let path = self.dir.join(name);
                fs::remove_file(&path).map_err(CheckpointError::io("remove", &path))?;
            }
        }
        Ok(())
    }
}

/// Whether this is a name that a store gives to a file: `PART-ROUND.safetensors` or `round-ROUND.json`, or a temporary one of
/// these.
pub fn is_of_store(name: &str) -> bool {
    let of_part = |name: &str| {
        let (part, round) = name.strip_suffix(".safetensors")?.rsplit_once('-')?;
        (!part.is_empty() && round.parse::<usize>().is_ok()).then_some(())
    };
    let file = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")).and_then(|name| name.rsplit_once('.'));
    let file = file.map_or(name, |(file, _)| file);
    of_part(file).is_some() || Manifest::round_of(file).is_some()
}

/// The rounds of the generations in a directory, ascending; none where there is no directory.
///
/// # Errors
/// The directory cannot be read.
pub fn rounds(dir: &Path) -> Result<Vec<usize>, CheckpointError> {
    let names = match names(dir) {
        Ok(names) => names,
        Err(CheckpointError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut rounds: Vec<usize> = names.iter().filter_map(|name| Manifest::round_of(name)).collect();
    rounds.sort_unstable();
    Ok(rounds)
}

/// Reads the manifest of a round.
fn manifest(dir: &Path, round: usize) -> Result<Manifest, CheckpointError> {
    let path = dir.join(Manifest::name(round));
    let text = read_text(&path).map_err(CheckpointError::io("read", &path))?;
    let manifest = Manifest::from_text(&path, &text)?;
    if manifest.round != round {
        return Err(content(&path, &format!("it is the manifest of round {}", manifest.round)));
    }
    Ok(manifest)
}

/// Reads the manifest of a round and checks that every listed file is there, intact and a valid state.
fn whole(dir: &Path, round: usize) -> Result<Manifest, CheckpointError> {
    let manifest = manifest(dir, round)?;
    for entry in manifest.files.values() {
        let path = dir.join(&entry.file);
        codec::decode(&bytes_of(dir, entry)?).map_err(|reason| content(&path, &reason))?;
    }
    Ok(manifest)
}

/// Reads a file and checks that its bytes are those that were written.
fn bytes_of(dir: &Path, entry: &Entry) -> Result<Vec<u8>, CheckpointError> {
    let path = dir.join(&entry.file);
    // A name with a directory in it would lead outside this directory.
    if Path::new(&entry.file).components().count() != 1 || entry.file.starts_with('.') {
        return Err(content(&path, "this is not a file of a checkpoint"));
    }
    let length = fs::metadata(&path).map_err(CheckpointError::io("read", &path))?.len();
    if length != entry.bytes {
        return Err(content(&path, &format!("it has {length} bytes, not the {} that were written", entry.bytes)));
    }
    let bytes = read_whole(&path).map_err(CheckpointError::io("read", &path))?;
    match digest::of_bytes(&bytes) == entry.sha256 {
        true => Ok(bytes),
        false => Err(content(&path, "it does not have the sha256 of what was written")),
    }
}

fn content(path: &Path, reason: &str) -> CheckpointError {
    CheckpointError::Content(format!("{}: {reason}", path.display()))
}

fn names(dir: &Path) -> Result<Vec<String>, CheckpointError> {
    let entries = fs::read_dir(dir).map_err(CheckpointError::io("read", dir))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<std::io::Result<_>>().map_err(CheckpointError::io("read", dir))
}

/// Writes a file atomically and flushes its content to the disk, but not its name ([`sync`]).
fn put(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    replace(path, bytes).map_err(|error| CheckpointError::Write(error.to_string()))
}

/// Flushes the names in a directory to the disk.
fn sync(dir: &Path) -> Result<(), CheckpointError> {
    sync_directory(dir).map_err(CheckpointError::io("sync", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn at(round: usize) -> Position {
        Position { round, identity: Identity::default(), logs: BTreeMap::new() }
    }

    fn part(name: &str, value: f64) -> Result<(String, State), CheckpointError> {
        Ok((name.to_owned(), State::default().with_numbers("theta", [value])))
    }

    /// Three generations, of which two are kept; client 1 trained in the first alone.
    fn store(dir: &TempDir) -> Store {
        let mut store = Store::new(dir.path().join("checkpoint"));
        store.write(at(1), [part("server", 1.0), part("client-1", 0.5)].into_iter()).unwrap();
        store.write(at(2), [part("server", 2.0)].into_iter()).unwrap();
        store.write(at(3), [part("server", 3.0)].into_iter()).unwrap();
        store
    }

    fn theta(store: &Store, part: &str) -> f64 {
        store.read(part).unwrap().number("theta").unwrap()
    }

    #[test]
    fn two_generations_are_kept_and_unchanged_parts_are_not_written_again() {
        let dir = TempDir::new().unwrap();
        let store = store(&dir);
        let mut names = names(&store.dir).unwrap();
        names.sort();
        let want =
            ["client-1-1.safetensors", "round-2.json", "round-3.json", "server-2.safetensors", "server-3.safetensors"];
        assert_eq!(names, want);
        let (opened, notes) = Store::open(&store.dir).unwrap();
        assert!(notes.is_empty());
        assert_eq!((theta(&opened, "server"), theta(&opened, "client-1")), (3.0, 0.5));
        assert!(opened.read("client-7").unwrap().is_empty());
    }

    #[test]
    fn if_the_newest_is_damaged_the_one_before_is_used_and_the_damage_named() {
        type Damage = fn(&Path);
        let damages: [(&str, Damage); 5] = [
            ("round-3.json", |path| fs::write(path, "{").unwrap()),
            ("round-3.json", |path| fs::write(path, b"\xff\xfe").unwrap()),
            ("server-3.safetensors", |path| fs::remove_file(path).unwrap()),
            ("server-3.safetensors", |path| {
                fs::File::options().write(true).open(path).unwrap().set_len(9).unwrap();
            }),
            ("server-3.safetensors", |path| {
                let mut bytes = fs::read(path).unwrap();
                *bytes.last_mut().unwrap() ^= 1;
                fs::write(path, bytes).unwrap();
            }),
        ];
        for (name, damage) in damages {
            let dir = TempDir::new().unwrap();
            let path = store(&dir).dir;
            damage(&path.join(name));
            let (opened, notes) = Store::open(&path).unwrap();
            assert_eq!(theta(&opened, "server"), 2.0, "{name}");
            assert!(notes.len() == 1 && notes[0].contains(name), "{notes:?}");
        }
    }

    #[test]
    fn if_both_are_damaged_both_are_named() {
        let dir = TempDir::new().unwrap();
        let path = store(&dir).dir;
        fs::remove_file(path.join("client-1-1.safetensors")).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(&error, CheckpointError::Damaged(tried) if tried.len() == 2), "{error}");
        assert!(!error.is_usage());
    }

    #[test]
    fn the_generation_of_a_round_is_opened_and_later_ones_go_with_the_next_write() {
        let dir = TempDir::new().unwrap();
        let mut store = Store::new(dir.path().join("checkpoint"));
        store.keep_from(2);
        for round in [1, 2, 3, 5, 8] {
            store.write(at(round), [part("half", round as f64)].into_iter()).unwrap();
        }
        let path = store.dir;
        assert_eq!(rounds(&path).unwrap(), [2, 3, 5, 8], "those from round 2 on are kept");
        assert!(Store::open_at(&path, 4).unwrap().is_none() && Store::open_at(&path, 1).unwrap().is_none());
        let mut store = Store::open_at(&path, 3).unwrap().unwrap();
        assert_eq!(theta(&store, "half"), 3.0);
        assert_eq!(rounds(&path).unwrap(), [2, 3, 5, 8], "opening removes nothing");
        store.keep_from(3);
        store.write(at(9), [part("half", 9.0)].into_iter()).unwrap();
        assert_eq!(rounds(&path).unwrap(), [3, 9]);
        fs::write(path.join("half-3.safetensors"), "damaged").unwrap();
        assert!(Store::open_at(&path, 3).unwrap_err().to_string().contains("half-3"));
        assert!(rounds(Path::new("/nowhere")).unwrap().is_empty());
    }

    #[test]
    fn a_process_that_ends_while_it_replaces_a_later_generation_leaves_no_damaged_one() {
        let dir = TempDir::new().unwrap();
        let mut store = Store::new(dir.path().join("checkpoint"));
        store.keep_from(1);
        for round in [1, 2, 3] {
            let parts = [part("half", round as f64), part("reply", round as f64)];
            store.write(at(round), parts.into_iter()).unwrap();
        }
        let path = store.dir;
        let mut store = Store::open_at(&path, 1).unwrap().unwrap();
        // The process ends after the first of two parts.
        let parts = (0..2).map(|number| if number == 0 { part("half", 7.0) } else { panic!("the process ends") });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| store.write(at(2), parts)));
        assert!(ended.is_err());
        assert_eq!(rounds(&path).unwrap(), [1]);
        let store = Store::open_at(&path, 1).unwrap().unwrap();
        assert_eq!((theta(&store, "half"), theta(&store, "reply")), (1.0, 1.0));
        assert!(Store::open_at(&path, 2).unwrap().is_none());
    }

    #[test]
    fn a_generation_is_read_whatever_became_of_parts_that_are_not() {
        let dir = TempDir::new().unwrap();
        let path = store(&dir).dir;
        fs::write(path.join("client-1-1.safetensors"), "damaged").unwrap();
        let store = Store::to_read(&path, 3).unwrap().unwrap();
        assert_eq!(theta(&store, "server"), 3.0);
        assert!(store.read("client-1").unwrap_err().to_string().contains("client-1-1"));
        assert!(
            Store::to_read(&path, 4).unwrap().is_none() && Store::to_read(Path::new("/nowhere"), 1).unwrap().is_none()
        );
    }

    #[test]
    fn a_missing_checkpoint_is_an_error() {
        let dir = TempDir::new().unwrap();
        let error = Store::open(&dir.path().join("checkpoint")).unwrap_err();
        assert!(matches!(error, CheckpointError::Missing(_)) && error.is_usage(), "{error}");
    }

    #[test]
    fn a_generation_that_fails_leaves_the_earlier_ones_and_no_file_of_its_own() {
        let dir = TempDir::new().unwrap();
        let mut store = store(&dir);
        let before = names(&store.dir).unwrap().len();
        let fails = || Err(CheckpointError::Device("gone".into()));
        assert!(store.write(at(4), [part("server", 4.0), fails()].into_iter()).is_err());
        assert_eq!(names(&store.dir).unwrap().len(), before);
        assert_eq!(theta(&Store::open(&store.dir).unwrap().0, "server"), 3.0);
    }

    #[test]
    fn a_manifest_that_names_a_file_elsewhere_is_damaged() {
        let dir = TempDir::new().unwrap();
        let store = store(&dir);
        let mut manifest = store.newest().unwrap().clone();
        manifest.files.get_mut("server").unwrap().file = "../server.safetensors".into();
        fs::write(store.dir.join("round-3.json"), manifest.to_text().unwrap()).unwrap();
        let (_, notes) = Store::open(&store.dir).unwrap();
        assert!(notes[0].contains("not a file of a checkpoint"), "{notes:?}");
    }

    #[test]
    fn other_files_in_the_directory_are_kept() {
        let dir = TempDir::new().unwrap();
        let mut store = store(&dir);
        fs::write(store.dir.join("notes.txt"), "mine").unwrap();
        fs::write(store.dir.join(".server-4.safetensors.1-0.tmp"), "half").unwrap();
        store.keep_newest().unwrap();
        let names = names(&store.dir).unwrap();
        assert!(names.contains(&"notes.txt".to_owned()), "{names:?}");
        assert!(!names.iter().any(|name| name.ends_with(".tmp") || name == "round-2.json"), "{names:?}");
    }
}
