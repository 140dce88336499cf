//! Files that a user has put into the data directory.

use crate::DataError;
use crate::format::first_file;
use std::path::{Path, PathBuf};

/// The file that a user has put into `<data_dir>/<set>/`, under this name or one of the others.
///
/// # Errors
/// [`DataError::NoDownload`] where it is not there.
pub(super) fn put_there(data_dir: &Path, set: &str, name: &str, others: &[&str]) -> Result<PathBuf, DataError> {
    let directory = data_dir.join(set);
    first_file(&directory, &[&[name], others].concat())
        .ok_or_else(|| DataError::NoDownload { set: set.to_owned(), path: directory.join(name) })
}

/// [`put_there`] for a file that may be gzipped or not.
///
/// # Errors
/// [`DataError::NoDownload`] where it is not there.
pub(super) fn put_there_packed(data_dir: &Path, set: &str, name: &str) -> Result<PathBuf, DataError> {
    put_there(data_dir, set, &format!("{name}.gz"), &[name])
}
