//! The files of manually downloaded data sets.

use crate::DataError;
use crate::format::first_file;
use std::path::{Path, PathBuf};

/// The path of a file in `<data_dir>/<set>/` with this name or one of the others.
///
/// # Errors
/// [`DataError::NoDownload`] where there is no such file.
pub(super) fn find_file(data_dir: &Path, set: &str, name: &str, others: &[&str]) -> Result<PathBuf, DataError> {
    let directory = data_dir.join(set);
    first_file(&directory, &[&[name], others].concat())
        .ok_or_else(|| DataError::NoDownload { set: set.to_owned(), path: directory.join(name) })
}

/// [`find_file`] for a file that may be gzipped or not.
///
/// # Errors
/// [`DataError::NoDownload`] where there is no such file.
pub(super) fn find_gzipped_file(data_dir: &Path, set: &str, name: &str) -> Result<PathBuf, DataError> {
    find_file(data_dir, set, &format!("{name}.gz"), &[name])
}
