//! The files that a command is told to write: nothing that exists is replaced unless the user says so, and no link is
//! followed.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::cli::{CliError, print_text};
use crate::experiment::artifact::write_text;

/// Writes a text: to standard output for `-`, into a pipe or a device as it is, otherwise to a file that does not exist yet,
/// or with `force` in the place of a regular file.
///
/// # Errors
/// Something else is there, or it cannot be written.
pub(super) fn write(path: &Path, text: &str, force: bool) -> Result<(), CliError> {
    if path == Path::new("-") {
        return print_text(text);
    }
    check(path, force)?;
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => {
            let mut stream = OpenOptions::new().write(true).open(path)?;
            Ok(stream.write_all(text.as_bytes())?)
        }
        _ => Ok(write_text(path, text)?),
    }
}

/// Checks that [`write`] may write there, before the work whose result is written.
///
/// # Errors
/// A file is there without `force`, or a link or a directory.
pub(super) fn check(path: &Path, force: bool) -> Result<(), CliError> {
    check_as("--out", path, force)
}

/// As [`check`], for the file of another option.
///
/// # Errors
/// As [`check`].
pub(super) fn check_as(option: &str, path: &Path, force: bool) -> Result<(), CliError> {
    let refuse = |reason: &str| Err(CliError::Usage(format!("{option} `{}` {reason}", path.display())));
    if path == Path::new("-") {
        return Ok(());
    }
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_symlink() => refuse("is a link, which is not followed; name the file itself"),
        Ok(there) if there.is_dir() => refuse("is a directory; name a file"),
        Ok(there) if there.is_file() && !force => refuse("exists; choose another file, or replace it with --force"),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => refuse(&format!("cannot be used: {error}")),
    }
}

/// Checks that a directory of files may be written: a new or an empty one, or with `force` one that exists.
///
/// # Errors
/// A link or something else than a directory is there, or a directory with files without `force`.
pub(super) fn check_directory(path: &Path, force: bool) -> Result<(), CliError> {
    let refuse = |reason: &str| Err(CliError::Usage(format!("`{}` {reason}", path.display())));
    if path.is_symlink() {
        return refuse("is a link; name where the report goes with --out");
    }
    if path.exists() && !path.is_dir() {
        return refuse("exists and is not a directory; choose another with --out");
    }
    if !force && path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return refuse("exists and is not empty; choose another with --out or replace it with --force");
    }
    Ok(())
}
