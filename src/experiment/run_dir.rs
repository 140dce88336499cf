//! The directory of a run. It is created once all input is validated, and removed again if the run fails before
//! [`RunDir::keep`].

mod contents;
mod error;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::created::Created;
use crate::checkpoint::lock::{LOCK, Lock, LockError};
use crate::report::files::{is_temporary, write_atomic};
use contents::{CONTENTS, stranger};

pub use contents::*;
pub use error::RunDirError;

/// The round after which the run in a directory was stopped; `None` where it has ended or has no checkpoint.
pub fn stopped(path: &Path) -> Option<usize> {
    let has_ended = path.join(SUMMARY).exists();
    crate::checkpoint::rounds(&path.join(CHECKPOINT)).ok()?.last().copied().filter(|_| !has_ended)
}

/// A run's directory. If it is dropped before [`RunDir::keep`], its earlier state is restored: absent, empty, or with
/// its former files.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    kept: bool,
    /// Whether the directory existed already. It is then never removed itself, for it may be the working directory.
    existed: bool,
    /// The directory next to it that holds the files which `--force` replaces.
    former: Option<PathBuf>,
    /// The lock. It is released when the directory is empty again.
    lock: Lock,
    /// After the lock, whose file is in the innermost one.
    created: Created,
}

impl RunDir {
    /// Creates the directory, and its parents where they are missing.
    ///
    /// # Errors
    /// The directory exists and is not empty (without `force`), it holds something that no run writes (with `force`), another
    /// process works in it, or a file-system operation fails.
    pub fn create(path: &Path, force: bool) -> Result<Self, RunDirError> {
        let existed = content(path)?.is_some();
        // A directory that is not a run's gets no lock: it is refused unchanged.
        if let Err(error) = replaceable(path, force) {
            // If another process works in it, that is the better reason to report.
            if matches!(error, RunDirError::Exists(_))
                && let Some(holder) = Lock::holder_of(path)
            {
                return Err(RunDirError::InUse { path: path.to_path_buf(), holder });
            }
            return Err(match stopped(path).filter(|_| matches!(error, RunDirError::Exists(_))) {
                Some(round) => RunDirError::Stopped { path: path.to_path_buf(), round },
                None => error,
            });
        }
        let not_writable = |source| RunDirError::NotWritable { path: path.to_path_buf(), source };
        let created = Created::with(path);
        fs::create_dir_all(path).map_err(not_writable)?;
        let lock = lock(path, not_writable)?;
        // Before the lock was acquired, another process may have replaced the content, so it is checked again.
        let former = replaceable(path, force)?.then(|| set_aside(path)).transpose()?;
        Ok(Self { path: path.to_path_buf(), kept: false, existed, former, lock, created })
    }

    /// Locks the directory of a run that is to be resumed.
    ///
    /// # Errors
    /// Another process works in the directory, it is not a run's, or a file-system operation fails.
    pub fn lock(path: &Path) -> Result<Lock, RunDirError> {
        must_have_begun(path)?;
        lock(path, unusable("lock", path))
    }

    /// Opens the directory of a run that is resumed. Temporary files that a killed process left are removed.
    ///
    /// # Errors
    /// The directory is not a run's, or a file-system operation fails.
    pub fn reopen(path: &Path, lock: Lock) -> Result<Self, RunDirError> {
        let names = must_have_begun(path)?;
        let of_run = names.iter().filter(|name| is_temporary(name, CONTENTS)).map(|name| path.join(name));
        let report = path.join(REPORT);
        let of_report = match report.is_dir() && !report.is_symlink() {
            true => content(&report)?.unwrap_or_default(),
            false => Vec::new(),
        };
        let of_report = of_report.iter().filter(|name| contents::is_of_unfinished_report(name));
        for file in of_run.chain(of_report.map(|name| report.join(name))) {
            fs::remove_file(&file).map_err(io_error("remove", &file))?;
        }
        let created = Created::default();
        Ok(Self { path: path.to_path_buf(), kept: true, existed: true, former: None, lock, created })
    }

    /// A warning for the user where the directory could not be locked.
    pub fn warning(&self) -> Option<String> {
        self.lock.warning()
    }

    /// Marks the directory as permanent, because the run has results, and removes the files that it replaced.
    ///
    /// # Errors
    /// The files that `--force` replaced cannot be removed.
    pub fn keep(&mut self) -> Result<(), RunDirError> {
        self.kept = true;
        self.created.keep();
        if let Some(former) = self.former.take() {
            fs::remove_dir_all(&former).map_err(io_error("remove", &former))?;
        }
        // Of this directory other processes may have set files aside too, and been killed before they removed them.
        for aside in set_aside_before(&self.path)? {
            fs::remove_dir_all(&aside).map_err(io_error("remove", &aside))?;
        }
        Ok(())
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in the directory, such as [`ROUNDS`].
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Checks that the path still leads to this directory, and not to nothing or to one of another run.
    ///
    /// # Errors
    /// It does not.
    pub fn must_be_there(&self) -> Result<(), RunDirError> {
        match self.lock.is_lost() {
            true => Err(RunDirError::Moved(self.path.clone())),
            false => Ok(()),
        }
    }

    /// Writes a file in the directory atomically.
    ///
    /// # Errors
    /// The directory is not there any more, or the file cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RunDirError> {
        self.must_be_there()?;
        Ok(write_atomic(&self.join(name), bytes)?)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // The directory may have been removed meanwhile, and another run's be in its place.
        if self.kept || !self.lock.is_there().unwrap_or(true) {
            return;
        }
        // This cleans up after an error that is being reported already; a second error would only hide it.
        let _ = if self.existed { clear(&self.path) } else { fs::remove_dir_all(&self.path) };
        if let Some(former) = &self.former {
            let _ = move_content(former, &self.path).and_then(|()| fs::remove_dir(former));
        }
    }
}

/// Locks an existing directory; `wrong` makes the error where its lock cannot be opened.
fn lock(path: &Path, wrong: impl FnOnce(io::Error) -> RunDirError) -> Result<Lock, RunDirError> {
    Lock::take(path).map_err(|error| match error {
        LockError::Held(holder) => RunDirError::InUse { path: path.to_path_buf(), holder },
        LockError::Io(source) => wrong(source),
    })
}

/// Whether the directory has content that is to be replaced, and may be.
fn replaceable(path: &Path, force: bool) -> Result<bool, RunDirError> {
    let names = content(path)?.unwrap_or_default();
    if names.is_empty() {
        return Ok(false);
    }
    if !force {
        return Err(RunDirError::Exists(path.to_path_buf()));
    }
    must_be_a_run(path, &names).map(|()| true)
}

/// The names in a run's directory.
fn must_have_begun(path: &Path) -> Result<Vec<String>, RunDirError> {
    let names = content(path)?.unwrap_or_default();
    match names.iter().any(|name| name == CONFIG) {
        true => Ok(names),
        false => Err(RunDirError::NothingToResume(path.to_path_buf())),
    }
}

/// The names in a directory except its lock; `None` if there is no directory.
fn content(path: &Path) -> Result<Option<Vec<String>>, RunDirError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        // The kind of the error is another one on each system.
        Err(_) if path.ancestors().any(|there| there.exists() && !there.is_dir()) => {
            return Err(RunDirError::NotADirectory(path.to_path_buf()));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable("read", path)(error)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    let names = names.filter(|name| !name.as_ref().is_ok_and(|name| name == LOCK));
    names.collect::<io::Result<_>>().map(Some).map_err(unusable("read", path))
}

/// Checks that a directory holds a run, or what a killed process has left of one.
fn must_be_a_run(path: &Path, names: &[String]) -> Result<(), RunDirError> {
    let found = match stranger(path, names).map_err(unusable("read all of", path))? {
        Some(name) => format!("`{name}`, which no run writes"),
        // The file with which a run locks its directory stays behind where its process is killed.
        None if !names.iter().any(|name| name == CONFIG) && !path.join(LOCK).exists() => format!("no `{CONFIG}`"),
        None => return Ok(()),
    };
    Err(RunDirError::NotARun { path: path.to_path_buf(), found })
}

/// Between the name of a directory and the number of the process that has moved its content aside.
const ASIDE: &str = ".former-";

/// The full path of a directory, which gives `.` and `..` a parent and a name too.
fn full(path: &Path) -> Result<PathBuf, RunDirError> {
    path.canonicalize().map_err(io_error("read", path))
}

/// The directory whose content a process with `force` has moved to this one; `None` for a directory with another name.
pub fn former_place(aside: &Path) -> Option<PathBuf> {
    let name = aside.file_name()?.to_string_lossy().into_owned();
    let (name, process) = name.strip_prefix('.')?.rsplit_once(ASIDE)?;
    process.parse::<u32>().ok().map(|_| aside.with_file_name(name))
}

/// The directories next to one to which processes have moved its content.
fn set_aside_before(path: &Path) -> Result<Vec<PathBuf>, RunDirError> {
    let full = full(path)?;
    let directory = full.parent().unwrap_or(&full);
    // Where files may be made in a directory that nobody may list, a run begins all the same.
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    // A place is known by the readable form of its name.
    let of_it =
        |aside: &PathBuf| former_place(aside).is_some_and(|place| place.to_string_lossy() == full.to_string_lossy());
    Ok(entries.map(|entry| entry.path()).filter(of_it).collect())
}

/// Moves the content of a directory into a new directory next to it, either completely or not at all.
fn set_aside(path: &Path) -> Result<PathBuf, RunDirError> {
    let full = full(path)?;
    let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let aside = full.with_file_name(format!(".{name}{ASIDE}{}", std::process::id()));
    fs::create_dir(&aside).map_err(io_error("set aside", path))?;
    if let Err(error) = move_content(&full, &aside) {
        let _ = move_content(&aside, &full).and_then(|()| fs::remove_dir(&aside));
        return Err(io_error("set aside", path)(error));
    }
    Ok(aside)
}

/// Removes all content except the lock, which this process holds.
fn clear(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name() == LOCK {
            continue;
        }
        if path.is_dir() { fs::remove_dir_all(&path)? } else { fs::remove_file(&path)? }
    }
    Ok(())
}

/// Moves all content except the lock.
fn move_content(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            fs::rename(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn unusable(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunDirError + use<> {
    let path = path.to_path_buf();
    move |source| RunDirError::NotUsable { action, path, source }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RunDirError + use<> {
    let path = path.to_path_buf();
    move |source| RunDirError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn temp() -> TempDir {
        TempDir::new().unwrap()
    }

    fn former_run(root: &TempDir) -> PathBuf {
        let path = root.path().join("run");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(CONFIG), "former").unwrap();
        fs::create_dir(path.join(REPORT)).unwrap();
        path
    }

    fn names(path: &Path) -> Vec<String> {
        content(path).unwrap().unwrap()
    }

    fn reopened(path: &Path) -> Result<RunDir, RunDirError> {
        RunDir::reopen(path, RunDir::lock(path)?)
    }

    #[test]
    fn a_directory_in_use_is_refused_and_not_changed() {
        let root = temp();
        let path = root.path().join("runs/run");
        let mut first = RunDir::create(&path, false).unwrap();
        let in_use = |result: Result<RunDir, RunDirError>| {
            let error = result.unwrap_err();
            assert!(matches!(error, RunDirError::InUse { .. }) && error.is_usage(), "{error}");
            let message = error.to_string();
            assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
        };
        // Checked before a file of the run exists, and again afterwards.
        in_use(RunDir::create(&path, false));
        in_use(RunDir::create(&path, true));
        first.write(CONFIG, b"x").unwrap();
        in_use(RunDir::create(&path, false));
        in_use(RunDir::create(&path, true));
        in_use(reopened(&path));
        assert_eq!(names(&path), [CONFIG]);
        first.keep().unwrap();
        drop(first);
        let second = reopened(&path).unwrap();
        in_use(RunDir::create(&path, true));
        drop(second);
        RunDir::create(&path, true).unwrap().keep().unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn a_run_whose_directory_was_replaced_writes_nothing_into_another_runs() {
        let root = temp();
        let path = root.path().join("run");
        let mut first = RunDir::create(&path, false).unwrap();
        first.write(CONFIG, b"first").unwrap();
        first.keep().unwrap();
        fs::remove_dir_all(&path).unwrap();
        let is_gone = |error: RunDirError| matches!(error, RunDirError::Moved(_)) && !error.is_usage();
        assert!(is_gone(first.write(SUMMARY, b"first").unwrap_err()));
        assert!(!path.exists());
        let second = RunDir::create(&path, false).unwrap();
        second.write(CONFIG, b"second").unwrap();
        assert!(is_gone(first.write(SUMMARY, b"first").unwrap_err()) && is_gone(first.must_be_there().unwrap_err()));
        second.must_be_there().unwrap();
        drop(first);
        assert_eq!((names(&path), fs::read(path.join(CONFIG)).unwrap()), (vec![CONFIG.to_owned()], b"second".to_vec()));
    }

    #[test]
    fn no_lock_file_is_left_in_a_directory_that_was_replaced_restored_or_only_locked() {
        let root = temp();
        let path = former_run(&root);
        fs::write(path.join(LOCK), "process 1").unwrap();
        drop(RunDir::create(&path, true).unwrap());
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2, "the former run is back, and only that");
        let empty = root.path().join("empty");
        fs::create_dir(&empty).unwrap();
        fs::write(empty.join(LOCK), "process 1").unwrap();
        drop(RunDir::create(&empty, false).unwrap());
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
    }

    #[test]
    fn a_refused_directory_keeps_the_lock_file_that_a_killed_process_has_left() {
        let root = temp();
        let path = root.path().join("run");
        fs::create_dir(&path).unwrap();
        fs::write(path.join(LOCK), "process 1").unwrap();
        fs::write(path.join(".config.toml.7-0.tmp"), "name").unwrap();
        assert!(matches!(RunDir::create(&path, false), Err(RunDirError::Exists(_))));
        assert_eq!(fs::read_to_string(path.join(LOCK)).unwrap(), "process 1");
        RunDir::create(&path, true).unwrap().keep().unwrap();
    }

    #[test]
    fn a_run_that_fails_early_leaves_nothing_behind_not_even_parents() {
        let root = temp();
        let dir = RunDir::create(&root.path().join("runs/a/b"), false).unwrap();
        dir.write(CONFIG, b"x").unwrap();
        drop(dir);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn a_run_that_is_kept_is_not_removed() {
        let root = temp();
        let path = root.path().join("runs/a");
        let mut dir = RunDir::create(&path, false).unwrap();
        dir.write(CONFIG, b"x").unwrap();
        dir.keep().unwrap();
        drop(dir);
        assert_eq!(fs::read(path.join(CONFIG)).unwrap(), b"x");
    }

    #[test]
    fn an_existing_run_is_refused_without_force_and_untouched() {
        let root = temp();
        let path = former_run(&root);
        let error = RunDir::create(&path, false).unwrap_err();
        assert!(matches!(error, RunDirError::Exists(_)) && error.is_usage());
        assert_eq!(names(&path).len(), 2);
    }

    #[test]
    fn force_replaces_a_run_when_the_new_one_has_results() {
        let root = temp();
        let path = former_run(&root);
        let mut dir = RunDir::create(&path, true).unwrap();
        assert!(names(&path).is_empty());
        dir.keep().unwrap();
        drop(dir);
        assert!(names(&path).is_empty());
        assert_eq!(names(root.path()), ["run"]);
    }

    #[test]
    fn force_restores_the_former_run_when_the_new_one_fails_early() {
        let root = temp();
        let path = former_run(&root);
        drop(RunDir::create(&path, true).unwrap());
        assert_eq!(fs::read(path.join(CONFIG)).unwrap(), b"former");
        assert_eq!(names(root.path()), ["run"]);
    }

    #[test]
    fn force_never_removes_what_no_run_has_written() {
        let root = temp();
        let path = former_run(&root);
        fs::write(path.join("thesis.tex"), "years").unwrap();
        let message = RunDir::create(&path, true).unwrap_err().to_string();
        assert!(message.contains("thesis.tex"), "{message}");
        fs::remove_file(path.join("thesis.tex")).unwrap();
        for (directory, name) in
            [(REPORT, "notes.md"), (CHECKPOINT, "old"), ("evaluate/north/report", "figures"), (EVALUATE, "notes.md")]
        {
            fs::create_dir_all(path.join(directory)).unwrap();
            let own = path.join(directory).join(name);
            fs::write(&own, "mine").unwrap();
            let message = RunDir::create(&path, true).unwrap_err().to_string();
            assert!(message.contains(&format!("`{directory}/{name}`, which no run writes")), "{message}");
            fs::remove_file(own).unwrap();
        }
        fs::remove_file(path.join(CONFIG)).unwrap();
        let message = RunDir::create(&path, true).unwrap_err().to_string();
        assert!(message.contains("no `config.toml`"), "{message}");
    }

    #[test]
    fn what_a_killed_run_has_left_is_replaced_with_force() {
        let root = temp();
        let path = root.path().join("run");
        fs::create_dir(&path).unwrap();
        for name in [".config.toml.4711-0.tmp", PARTITION, LOCK] {
            fs::write(path.join(name), "of process 4711").unwrap();
        }
        // Half of the files of the run before it, which it was to replace.
        fs::create_dir(root.path().join(".run.former-4711")).unwrap();
        fs::create_dir(root.path().join(".run.former-mine")).unwrap();
        let mut new = RunDir::create(&path, true).unwrap();
        assert!(names(&path).is_empty());
        new.keep().unwrap();
        drop(new);
        let mut left = names(root.path());
        left.sort();
        assert_eq!(left, [".run.former-mine", "run"]);
    }

    #[test]
    fn a_run_resumes_in_its_directory_without_partial_files() {
        let root = temp();
        let path = former_run(&root);
        fs::write(path.join(".summary.json.4711-0.tmp"), "{").unwrap();
        fs::write(path.join("report/.report.json.4711-1.tmp"), "{").unwrap();
        drop(reopened(&path).unwrap());
        assert_eq!((names(&path).len(), names(&path.join(REPORT)).len()), (2, 0));
        fs::write(path.join(".rounds.csv.4711-3.tmp"), "ro").unwrap();
        RunDir::create(&path, true).unwrap().keep().unwrap();
        assert!(reopened(&path).unwrap_err().is_usage());
        assert!(reopened(&root.path().join("none")).unwrap_err().is_usage());
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let root = temp();
        let path = root.path().join("run");
        fs::write(&path, "").unwrap();
        let error = RunDir::create(&path, true).unwrap_err();
        assert!(matches!(error, RunDirError::NotADirectory(_)));
    }

    #[test]
    fn an_empty_directory_is_taken_without_force_and_empty_again_after_a_failure() {
        let root = temp();
        let path = root.path().join("run");
        fs::create_dir(&path).unwrap();
        RunDir::create(&path, false).unwrap().write(CONFIG, b"x").unwrap();
        assert!(names(&path).is_empty());
        RunDir::create(&path, false).unwrap().keep().unwrap();
        assert_eq!(names(root.path()), ["run"]);
    }
}
