//! A lock that allows one process at a time in a directory. It is held on a file there, and the system releases
//! it when the process ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock file in a directory. Its text names the process that holds the lock.
pub const LOCK: &str = "run.lock";

/// Why a directory cannot be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock; the text describes that process.
    Held(String),
    /// The lock file cannot be opened or locked.
    Io(io::Error),
}

/// A lock on a directory, released when it is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
    /// The reason why nothing is locked, where the file system does not support locks.
    unsupported: Option<String>,
    /// After the file, which can be removed on Windows when it is closed.
    #[cfg(windows)]
    _unused: Unused,
}

impl Lock {
    /// Locks an existing directory.
    ///
    /// # Errors
    /// Another process holds the lock, or the lock file cannot be opened. A file system without locks is not an error:
    /// see [`Self::warning`].
    pub fn take(directory: &Path) -> Result<Self, LockError> {
        Self::take_where(directory, Self::is_there)
    }

    /// Locks an existing directory, where `is_there` says whether a lock holds.
    fn take_where(directory: &Path, is_there: impl Fn(&Self) -> io::Result<bool>) -> Result<Self, LockError> {
        let path = directory.join(LOCK);
        if path.is_symlink() {
            let reason = format!("`{LOCK}` is a link, which is not followed; remove it");
            return Err(LockError::Io(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        for attempt in 0..ATTEMPTS {
            let mut file = match File::options().read(true).write(true).create(true).truncate(false).open(&path) {
                Ok(file) => file,
                Err(error) if attempt < REMOVALS && is_being_removed(&error) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(error) => return Err(LockError::Io(error)),
            };
            let unsupported = match lock(&file) {
                Ok(()) => None,
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder(&mut file))),
                Err(TryLockError::Error(error)) => Some(error.to_string()),
            };
            let mut lock = Self {
                path: path.clone(),
                file,
                unsupported,
                #[cfg(windows)]
                _unused: Unused(path.clone()),
            };
            // The previous holder may have removed the file after we had opened it.
            if is_there(&lock).map_err(LockError::Io)? {
                // The text that names this process is only informative: the lock holds without it.
                let _ = lock.sign();
                return Ok(lock);
            }
        }
        let reason = format!("the file is gone after each of {ATTEMPTS} attempts to lock it");
        Err(LockError::Io(io::Error::new(io::ErrorKind::NotFound, reason)))
    }

    /// The process that holds the lock of a directory, if one does; nothing is written.
    pub fn holder_of(directory: &Path) -> Option<String> {
        let mut file = File::open(directory.join(LOCK)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder(&mut file)),
            // The lock goes with the file.
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }

    /// A warning for the user where the file system does not support locks.
    pub fn warning(&self) -> Option<String> {
        let error = self.unsupported.as_ref()?;
        Some(format!(
            "`{}` cannot be locked ({error}): nothing keeps a second process from writing into this directory",
            self.path.display()
        ))
    }

    /// Whether the path still leads to the file of this lock, the one that other processes would open.
    ///
    /// # Errors
    /// The system does not say.
    pub fn is_there(&self) -> io::Result<bool> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let ours = self.file.metadata()?;
            match fs::metadata(&self.path) {
                Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(error),
            }
        }
        // On other systems the file is never removed while a process has it open.
        #[cfg(not(unix))]
        Ok(true)
    }

    /// Whether the path leads to no lock of this process any more: to nothing, or to that of another one. What the system does
    /// not say is not lost. A network's file system may give one file several numbers; the name in it is then that of this
    /// process.
    pub fn is_lost(&self) -> bool {
        #[cfg(unix)]
        if self.file.metadata().is_ok_and(|ours| std::os::unix::fs::MetadataExt::nlink(&ours) == 0) {
            return true;
        }
        let is_ours = || File::open(&self.path).is_ok_and(|mut there| is_us(&holder(&mut there)));
        !self.is_there().unwrap_or(true) && !is_ours()
    }

    fn sign(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        write!(self.file, "{}", us())?;
        self.file.flush()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // On Unix the file is removed while it is still locked, so that no other process's file is removed.
        if cfg!(unix) && self.unsupported.is_none() && self.is_there().unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a lock, which is removed when this is dropped, unless a process has it open.
#[cfg(windows)]
#[derive(Debug)]
struct Unused(PathBuf);

#[cfg(windows)]
impl Drop for Unused {
    fn drop(&mut self) {
        use std::os::windows::fs::OpenOptionsExt;
        // Opened alone or not at all, so that no process loses the file of its lock.
        drop(File::options().access_mode(DELETE).share_mode(0).custom_flags(DELETE_ON_CLOSE).open(&self.0));
    }
}

/// The right to remove a file, of the Windows API.
#[cfg(windows)]
const DELETE: u32 = 0x0001_0000;
/// The flag of a file that is removed when it is closed, of the Windows API.
#[cfg(windows)]
const DELETE_ON_CLOSE: u32 = 0x0400_0000;

/// Whether a lock file cannot be opened because another process is removing it.
fn is_being_removed(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    cfg!(windows) && matches!(error.raw_os_error(), Some(ACCESS_DENIED | SHARING_VIOLATION))
}

/// Locks a file, in a second attempt where somebody only looks whether it is locked ([`Lock::holder_of`]).
fn lock(file: &File) -> Result<(), TryLockError> {
    file.try_lock().or_else(|error| match error {
        TryLockError::WouldBlock => {
            std::thread::sleep(LOOK);
            file.try_lock()
        }
        error => Err(error),
    })
}

/// How often a directory is locked anew, because its lock file was removed meanwhile.
const ATTEMPTS: usize = 1000;

/// How many of them wait for the end of a removal.
const REMOVALS: usize = 25;

/// A time in which a look at a lock has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a description of a process is that of this one.
pub fn is_us(holder: &str) -> bool {
    holder == us()
}

/// A description of this process.
fn us() -> String {
    let pid = std::process::id();
    crate::machine::name().map_or_else(|| format!("process {pid}"), |host| format!("process {pid} on {host}"))
}

/// The description of the holder in the lock file, which may not be written yet or not be readable.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(MOST_BYTES).read_to_string(&mut text);
    match read.is_ok() && !text.trim().is_empty() {
        true => crate::report::files::quoted(text.trim()),
        false => "another process".to_owned(),
    }
}

/// The number of bytes of the holder's description that are read, for the file may have any content.
const MOST_BYTES: u64 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    fn held(directory: &Path) -> String {
        match Lock::take(directory) {
            Err(LockError::Held(holder)) => holder,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_second_lock_is_refused_by_the_name_of_the_process_until_the_first_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        assert!(first.warning().is_none());
        let expected = format!("process {}", std::process::id());
        assert!(held(dir.path()).starts_with(&expected), "{}", held(dir.path()));
        assert_eq!(Lock::holder_of(dir.path()).as_deref(), Some(us().as_str()));
        drop(first);
        assert_eq!(Lock::holder_of(dir.path()), None);
        drop(Lock::take(dir.path()).unwrap());
    }

    #[test]
    fn the_file_of_a_killed_process_is_not_a_lock_and_a_dropped_lock_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(LOCK), "process 1 on elsewhere, a longer signature than ours").unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let text = fs::read_to_string(dir.path().join(LOCK)).unwrap();
        assert!(text == us() && held(dir.path()) == us(), "{text}");
        drop(lock);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_whose_file_was_replaced_does_not_remove_the_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let first = Lock::take(dir.path()).unwrap();
        fs::remove_file(dir.path().join(LOCK)).unwrap();
        let second = Lock::take(dir.path()).unwrap();
        drop(first);
        assert!(held(dir.path()).starts_with("process"));
        drop(second);
    }

    #[test]
    fn a_lock_of_which_the_system_never_says_that_it_holds_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |is_there: fn(&Lock) -> io::Result<bool>| match Lock::take_where(dir.path(), is_there) {
            Err(LockError::Io(error)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused(|_| Ok(false)).contains("gone after each of 1000 attempts"));
        assert_eq!(refused(|_| Err(io::Error::other("the disk does not answer"))), "the disk does not answer");
        drop(Lock::take(dir.path()).unwrap());
    }

    #[test]
    fn a_file_system_without_locks_causes_a_warning() {
        let dir = tempfile::tempdir().unwrap();
        let mut lock = Lock::take(dir.path()).unwrap();
        lock.unsupported = Some("not supported".into());
        assert!(lock.warning().unwrap().contains("cannot be locked (not supported)"));
    }
}
