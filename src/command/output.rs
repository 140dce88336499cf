//! The files that a command is told to write: nothing that exists is replaced unless the user says so, and no link is
//! followed.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::cli::{CliError, print_text};
use crate::experiment::artifact::write_text;
use crate::experiment::created::Created;
use crate::experiment::inventory::{self, is_run};
use crate::experiment::run_dir;
use crate::report::files::{STAGING, can_be_written, directory_of, names_in};
use crate::report::takes_report;

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
            let stream = OpenOptions::new().write(true).open(path);
            stream.and_then(|mut stream| stream.write_all(text.as_bytes())).map_err(|error| {
                match CliError::from(error) {
                    CliError::Failed(problem) => {
                        CliError::Failed(format!("cannot write {}: {problem}", path.display()))
                    }
                    closed => closed,
                }
            })
        }
        _ => Ok(write_text(path, text)?),
    }
}

/// Checks that [`write`] may write there, before the work whose result is written.
///
/// # Errors
/// A file is there without `force`, or a link or a directory; its own directory is not there, or no file can be written in it.
pub(super) fn check(path: &Path, force: bool) -> Result<(), CliError> {
    check_as("--out", path, force)?;
    check_writable("--out", path)
}

/// Checks that the directory of a file is there, and that a file can be written in it; a pipe or a device is taken as it is.
///
/// # Errors
/// It is not, or none can.
pub(super) fn check_writable(option: &str, path: &Path) -> Result<(), CliError> {
    check_parent(option, path)?;
    let is_stream = path == Path::new("-") || fs::metadata(path).is_ok_and(|there| !there.is_file());
    let can = if is_stream { Ok(()) } else { can_be_written(path) };
    can.map_err(|error| {
        CliError::Usage(format!("{option} `{}` cannot be written: {error}; choose another file", path.display()))
    })
}

/// Checks that the directory of a file is there.
///
/// # Errors
/// It is not.
pub(super) fn check_parent(option: &str, path: &Path) -> Result<(), CliError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => Err(CliError::Usage(format!(
            "{option} `{}`: there is no directory `{}`; create it, or name another file",
            path.display(),
            parent.display()
        ))),
        _ => Ok(()),
    }
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
    if inventory::is_file_of_run(path) {
        return refuse("is a file of a run, which nothing but the run writes; choose another file");
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

/// Checks that a directory can be at a path: that neither it nor one above it is a file.
///
/// # Errors
/// There is a file.
pub(super) fn check_place(path: &Path) -> Result<(), CliError> {
    let is_file = |there: &&Path| there.exists() && !there.is_dir();
    match path.ancestors().find(is_file) {
        Some(there) if there == path => Err(CliError::Usage(format!(
            "`{}` exists and is not a directory; choose another with --out",
            path.display()
        ))),
        Some(there) => Err(CliError::Usage(format!(
            "`{}`: `{}` is not a directory; choose another with --out",
            path.display(),
            there.display()
        ))),
        None => Ok(()),
    }
}

/// Checks that a new directory can be made at a path, before the work whose files it gets.
///
/// # Errors
/// A link is there, or nothing can be written where the directory would be.
pub(super) fn check_new_place(option: &str, path: &Path) -> Result<(), CliError> {
    let refuse = |reason: String| Err(CliError::Usage(format!("{option} `{}` {reason}", path.display())));
    if path.is_symlink() {
        return refuse("is a link, which is not followed; name a new directory".to_owned());
    }
    let above = path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("."));
    can_be_written(&above.join(STAGING))
        .or_else(|error| refuse(format!("cannot be written: {}: {error}; choose another directory", above.display())))
}

/// The error about a directory that cannot be made.
pub(super) fn not_created(path: &Path, error: &io::Error) -> CliError {
    CliError::Usage(format!("`{}` cannot be created: {error}; choose another with --out", path.display()))
}

/// Checks that a directory of files may be written: a new or an empty one, or with `force` one that exists.
///
/// # Errors
/// A link or something else than a directory is there, a directory with files without `force`, or one in which no file can be
/// written.
pub(super) fn check_directory(path: &Path, force: bool) -> Result<(), CliError> {
    let refuse = |reason: &str| Err(CliError::Usage(format!("`{}` {reason}", path.display())));
    if path.is_symlink() {
        return refuse("is a link; name where the report goes with --out");
    }
    check_place(path)?;
    if !force && !names_in(path).unwrap_or_default().is_empty() {
        return refuse("exists and is not empty; choose another with --out or replace it with --force");
    }
    match path.is_dir() {
        true => can_be_written(&path.join(STAGING))
            .or_else(|error| refuse(&format!("cannot be written: {error}; choose another with --out"))),
        false => Ok(()),
    }
}

/// Checks that a report may be written into a directory: as [`check_directory`], and with `force` only in the place of a
/// report, or in the directory of a run's own.
///
/// # Errors
/// It may not.
pub(super) fn check_report(path: &Path, force: bool) -> Result<(), CliError> {
    check_directory(path, force)?;
    let is_of_run = || path.file_name().is_some_and(|name| name == run_dir::REPORT) && is_run(directory_of(path));
    if !path.is_dir() || takes_report(path) || is_of_run() {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "--force replaces only a report; `{}` holds other files and no report of fedstein; choose another directory with --out",
        path.display()
    )))
}

/// Checks that a directory with this content may be written: a new or an empty one, or with `force` one that holds nothing
/// else.
///
/// # Arguments
/// * `mark`: a file of the content that is always there
///
/// # Errors
/// As [`check_directory`]; or with `force` the directory holds something that is not of this content.
pub(super) fn check_new_directory(path: &Path, contents: &[&str], mark: &Path, force: bool) -> Result<(), CliError> {
    check_directory(path, force)?;
    let names = names_in(path).unwrap_or_default();
    let found = match names.iter().find(|name| !contents.contains(&name.as_str())) {
        Some(stranger) => format!("holds `{stranger}`"),
        None if !names.is_empty() && !path.join(mark).is_file() => format!("holds no `{}`", mark.display()),
        None => return Ok(()),
    };
    let message = "--force replaces only what this command has written";
    Err(CliError::Usage(format!("{message}; `{}` {found}", path.display())))
}

/// A directory whose content appears when all of it has been written. If it is dropped before [`NewDirectory::keep`], what
/// was there stays as it was.
#[derive(Debug)]
pub(super) struct NewDirectory {
    path: PathBuf,
    staging: PathBuf,
    created: Created,
}

impl NewDirectory {
    /// Makes the directory, and the place where its content is written first.
    ///
    /// # Errors
    /// A directory cannot be made: the message has the path as it is given.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let created = Created::with(path);
        let staging = path.join(format!("{STAGING}{}", std::process::id()));
        let new = Self { path: path.to_owned(), staging, created };
        fs::create_dir_all(&new.staging).map_err(|error| not_created(path, &error))?;
        Ok(new)
    }

    /// Where the content is written.
    pub fn staging(&self) -> &Path {
        &self.staging
    }

    /// Puts the content in its place; what was there of it before is removed.
    ///
    /// # Errors
    /// A file cannot be removed or moved.
    pub fn keep(mut self, contents: &[&str]) -> Result<(), CliError> {
        for name in contents {
            let (from, to) = (self.staging.join(name), self.path.join(name));
            remove(&to).map_err(|error| failed(&to, &error))?;
            if from.exists() {
                fs::rename(&from, &to).map_err(|error| failed(&to, &error))?;
            }
        }
        self.created.keep();
        Ok(())
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // This cleans up after what is reported already.
        let _ = fs::remove_dir_all(&self.staging);
    }
}

/// Removes a file or a directory, if it is there; of a link the link.
fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn failed(path: &Path, error: &io::Error) -> CliError {
    CliError::Failed(format!("{}: {error}", path.display()))
}
