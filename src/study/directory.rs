//! The directory of a study: it says whose it is, so that no study writes into that of another.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::file::Study;
use crate::checkpoint::lock::{LOCK, Lock, LockError};
use crate::report::ReportError;
use crate::report::files::{is_temporary, write_atomic};

/// The file that says whose directory it is.
const ABOUT: &str = "study.json";

/// The copy of the study's file.
const COPY: &str = "study.toml";

/// The directory of the kept runs.
pub const RUNS: &str = "runs";

/// The version of the layout of the first file.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct About {
    schema_version: u32,
    /// The absolute path of the study's file.
    file: String,
    /// The version of fedstein that was there last.
    version: String,
}

impl About {
    fn of(study: &Study) -> Self {
        let file = std::path::absolute(&study.file).unwrap_or_else(|_| study.file.clone().into());
        Self {
            schema_version: SCHEMA_VERSION,
            file: file.display().to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Checks that a study may write there: a new or an empty directory, or its own, that is one of the same file or of a
/// file with the same text.
///
/// # Errors
/// Something else is there: a sentence.
pub fn check(directory: &Path, study: &Study) -> Result<(), String> {
    let shown = directory.display();
    let refuse = |reason: &str| Err(format!("`{shown}` {reason}; choose another directory with --out"));
    if directory.is_symlink() {
        return refuse("is a link, which is not followed");
    }
    if !directory.exists() {
        return Ok(());
    }
    let Ok(entries) = directory.read_dir() else { return refuse("is not a directory that can be read") };
    // What a process leaves that is killed at once is nobody's.
    let is_left = |name: &str| name == LOCK || is_temporary(name, &[ABOUT, COPY]);
    if entries.flatten().all(|entry| is_left(&entry.file_name().to_string_lossy())) {
        return Ok(());
    }
    let about = match fs::read_to_string(directory.join(ABOUT)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse("is not empty, and is not the directory of a study");
        }
        Err(error) => return refuse(&format!("has a `{ABOUT}` that cannot be read: {error}")),
    };
    let about = match serde_json::from_str::<About>(&about) {
        Ok(about) => about,
        Err(error) => return refuse(&format!("has a `{ABOUT}` that is not a study's: {error}")),
    };
    let same_text = || fs::read_to_string(directory.join(COPY)).is_ok_and(|text| text == study.text);
    if about.file == About::of(study).file || same_text() {
        return Ok(());
    }
    refuse(&format!("is the directory of another study, `{}`", crate::report::files::quoted(&about.file)))
}

/// Locks the directory of a study, so that one process at a time works in it.
///
/// # Errors
/// Another process has it, or the file of the lock cannot be used: a sentence.
pub fn lock(directory: &Path) -> Result<Lock, String> {
    let shown = directory.display();
    Lock::take(directory).map_err(|error| match error {
        LockError::Held(holder) => {
            format!("`{shown}` is in use by {holder}; wait for it to end, or choose another directory with --out")
        }
        LockError::Io(error) => format!("cannot lock `{shown}`: {error}; choose another directory with --out"),
    })
}

/// Says whose directory it is.
///
/// # Errors
/// It cannot be made or written.
pub fn open(directory: &Path, study: &Study) -> Result<(), ReportError> {
    write_atomic(&directory.join(ABOUT), (serde_json::to_string_pretty(&About::of(study))? + "\n").as_bytes())?;
    write_atomic(&directory.join(COPY), study.text.as_bytes())?;
    Ok(())
}
