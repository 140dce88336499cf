//! Atomic writing and bounded reading of files, and the quoting of foreign text in messages.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;

/// A file or directory that cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

impl FileError {
    /// The error about a path.
    pub fn new(path: &Path, source: io::Error) -> Self {
        Self { path: path.to_path_buf(), source }
    }
}

/// The largest number of bytes that are read from a file without a length, such as a pipe or a device.
const WITHOUT_LENGTH: u64 = 1 << 31;

/// Reads the whole of a file. A pipe is read too, but a device that never ends is refused after 2 GiB rather than read
/// until the memory is full.
///
/// # Errors
/// The file cannot be read, or does not end.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    // Windows would say that access is denied.
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let most = if meta.is_file() { meta.len().max(WITHOUT_LENGTH) } else { WITHOUT_LENGTH };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} bytes, and no end")));
    }
    Ok(bytes)
}

/// Reads a file of text.
///
/// # Errors
/// As [`read_whole`]; or the bytes are not UTF-8, with the line where they are not.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_whole(path)?).map_err(|error| {
        let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line}: not UTF-8 text"))
    })
}

/// As [`read_text`], of a file that this program has written: where a pipe has its name, nobody waits for its writer.
///
/// # Errors
/// As [`read_text`], or it is no regular file.
pub fn read_regular(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.is_file() {
        true => read_text(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The line, counted from 1, of the byte at a position.
pub(crate) fn line_of(bytes: &[u8], at: usize) -> usize {
    1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count()
}

/// Foreign text as a message quotes it: on one line, without control characters, cut after 60 characters.
pub fn quoted(text: &str) -> String {
    quoted_within(text, 60)
}

/// As [`quoted`], cut after another number of characters.
pub fn quoted_within(text: &str, length: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(length) {
        match c {
            '"' | '\'' => shown.push(c),
            _ => shown.extend(c.escape_debug()),
        }
    }
    if text.chars().nth(length).is_some() {
        shown.push('…');
    }
    shown
}

/// Writes a file so that its name holds either the old content or all of the new one: the bytes go
/// to a temporary name in the same directory, to the disk, and only then take the name, which is on the
/// disk when the call returns. A failure leaves no temporary file behind. A file that is replaced keeps its permissions.
///
/// # Errors
/// The directory is missing or the file cannot be written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes)?;
    let directory = directory_of(path);
    sync_directory(directory).map_err(|source| FileError::new(directory, source))
}

/// Creates a directory, with those above it, that only its owner can read, where the system has such permissions. One that
/// is there already gets them.
///
/// # Errors
/// It cannot be created, or one that is there belongs to somebody else or is on a file system without permissions.
pub fn create_private(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if directory.is_dir() {
        use std::os::unix::fs::PermissionsExt;
        return match fs::metadata(directory)?.permissions().mode() & 0o077 {
            0 => Ok(()),
            _ => fs::set_permissions(directory, fs::Permissions::from_mode(0o700)),
        };
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Takes a directory's permissions from all but its owner and its group, where the system has such permissions and this is the
/// owner. What cannot be changed stays.
pub fn close_to_others(directory: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let Ok(mode) = fs::metadata(directory).map(|of| of.permissions().mode()) else { return };
        if mode & 0o007 != 0 {
            let _ = fs::set_permissions(directory, fs::Permissions::from_mode(mode & 0o7770));
        }
    }
    #[cfg(not(unix))]
    let _ = directory;
}

/// The directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes the names in a directory to the disk, where the system can: only Unix opens directories, and not every file
/// system flushes them.
///
/// # Errors
/// The directory cannot be opened or flushed.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    File::open(directory)?.sync_all().or_else(|error| match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Ok(()),
        _ => Err(error),
    })
}

/// As [`write_atomic`], but after a loss of power the name may hold the old content until [`sync_directory`] is called: for
/// many files of one directory.
///
/// # Errors
/// Those of [`write_atomic`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let temporary = temporary_of(path).map_err(|source| FileError::new(path, source))?;
    let written = fill(&temporary, path, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // The first error is the one to report; a temporary file that cannot be removed changes
        // nothing about it.
        let _ = fs::remove_file(&temporary);
        FileError::new(path, source)
    })
}

/// Checks that [`write_atomic`] can make its temporary file, before the work whose result is written. None is left.
///
/// # Errors
/// It cannot.
pub fn can_be_written(path: &Path) -> io::Result<()> {
    let temporary = temporary_of(path)?;
    File::create_new(&temporary)?;
    fs::remove_file(&temporary)
}

/// A temporary name beside a file's, a new one at each call.
fn temporary_of(path: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nameless = || io::Error::new(io::ErrorKind::InvalidInput, "this path names no file");
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(path.file_name().ok_or_else(nameless)?);
    hidden.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(hidden))
}

/// The beginning of the name of a directory in which content is written before it takes its place; the number of the process
/// follows.
pub const STAGING: &str = ".fedstein-";

/// Whether this is the name of such a directory.
pub fn is_staging(name: &str) -> bool {
    name.strip_prefix(STAGING).is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// The names in a directory, without those of content that a process was writing.
///
/// # Errors
/// The directory cannot be read.
pub fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let names =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.filter(|name| !name.as_ref().is_ok_and(|name| is_staging(name))).collect()
}

/// Whether this is the name of a temporary file of one of these files, which a killed process has left; see [`write_atomic`].
pub fn is_temporary(name: &str, files: &[&str]) -> bool {
    let of = |file: &&str| {
        name.strip_prefix('.').and_then(|name| name.strip_prefix(*file)).is_some_and(|rest| rest.starts_with('.'))
    };
    name.ends_with(".tmp") && files.iter().any(of)
}

/// Writes a new file, which gets the permissions of the one that it is to replace, if there is one.
fn fill(new: &Path, former: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    let former = fs::symlink_metadata(former).ok().filter(fs::Metadata::is_file);
    #[cfg(unix)]
    if former.is_some() {
        // Nobody else reads it before it has them.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = former;
    let mut file = options.open(new)?;
    #[cfg(unix)]
    if let Some(former) = former {
        file.set_permissions(former.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Removes a file, if it is there.
///
/// # Errors
/// It is there and cannot be removed.
pub fn remove_if_there(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(FileError::new(path, source)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_about_bytes_that_are_not_text_names_the_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"a\nb\xff").unwrap();
        assert_eq!(read_text(file.path()).unwrap_err().to_string(), "line 2: not UTF-8 text");
        std::fs::write(file.path(), "ä\n").unwrap();
        assert_eq!(read_text(file.path()).unwrap(), "ä\n");
    }

    #[test]
    fn quoted_text_is_short_and_plain() {
        assert_eq!(quoted("p_0"), "p_0");
        assert_eq!(quoted("\u{1b}[2J\n"), r"\u{1b}[2J\n");
        assert_eq!(quoted(&"ä".repeat(1000)), format!("{}…", "ä".repeat(60)));
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(directory_of(&path), dir.path());
        // A name alone is in the directory of the process.
        assert_eq!(directory_of(Path::new("report.json")), Path::new("."));
        can_be_written(&path).unwrap();
        assert!(can_be_written(&dir.path().join("nowhere/report.json")).is_err());
        assert!(!cfg!(unix) || sync_directory(&dir.path().join("nowhere")).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("predictions.csv");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        write_atomic(&path, b"new").unwrap();
        let usual = mode(&path);
        for kept in [0o600, 0o640, 0o604] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            write_atomic(&path, b"newer").unwrap();
            assert_eq!((mode(&path), fs::read(&path).unwrap()), (kept, b"newer".to_vec()));
        }
        write_atomic(&dir.path().join("another.csv"), b"new").unwrap();
        assert_eq!(mode(&dir.path().join("another.csv")), usual);
        for (given, closed) in [(0o755, 0o750), (0o750, 0o750), (0o700, 0o700), (0o707, 0o700)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(given)).unwrap();
            close_to_others(dir.path());
            assert_eq!(mode(dir.path()), closed);
        }
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        // A directory cannot be replaced by a file, so the rename fails after the bytes were
        // written.
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        assert!(matches!(write_atomic(&path, b"new"), Err(FileError { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
