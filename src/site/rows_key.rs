//! What the rows of a site follow from: the contents of its files, and the keys by which they are read.

use std::path::{Path, PathBuf};

use super::config::{SiteConfig, SiteData};
use crate::checkpoint::digest;
use crate::datasets::DataError;

/// What the rows of a site follow from.
#[derive(Debug)]
pub(super) struct Key {
    /// The sha256 of the file `data.path`, in hexadecimal digits.
    pub sha256: String,
    /// The sha256 of all of it but the names of the files.
    pub fingerprint: String,
    /// All of it: the bytes of the files, and how they are read.
    pub text: String,
}

/// The key of the files as they are now.
pub(super) fn key(site: &SiteConfig) -> Result<Key, DataError> {
    let data = &site.data;
    let sha256 = |key: &str, path: &Path| {
        DataError::must_be_file(key, path)?;
        digest::of_file(path).map_err(|source| DataError::Io { path: path.to_path_buf(), source })
    };
    let train = sha256("data.path", &data.path)?;
    let mut held_out = String::new();
    for (key, path) in data.held_out_files() {
        let own = sha256(key, Path::new(path))?;
        if own == train {
            let problem = "has the content of the file of the training rows: nothing would be held out; name another, or leave it empty";
            return Err(DataError::Config { key: key.into(), value: path.into(), problem: problem.into() });
        }
        held_out += &format!(" {key} {own}");
    }
    let (index, few, version) = (site.index, site.tell.few(), env!("CARGO_PKG_VERSION"));
    // The site's name is in its rows where there is a column for it.
    let name = if data.name_column.is_empty() { "" } else { &site.name };
    let text = format!("{train}{held_out} {index} {data:?} {few} {version} {name:?}");
    let (path, none) = (PathBuf::new(), String::new);
    let (test_path, validation_path, calibration_path) = (none(), none(), none());
    let nameless = SiteData { path, test_path, validation_path, calibration_path, ..data.clone() };
    let read_as = format!("{train}{held_out} {index} {nameless:?} {few} {name:?}");
    let fingerprint = digest::of_bytes(read_as.as_bytes());
    Ok(Key { sha256: train, fingerprint, text })
}
