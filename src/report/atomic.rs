use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ReportError;

/// Writes a file so that its name holds either the old content or all of the new one: the bytes go
/// to a temporary name in the same directory, to the disk, and only then take the name. A failure
/// leaves no temporary file behind.
///
/// # Errors
/// The directory is missing or the file cannot be written.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path
        .file_name()
        .ok_or_else(|| ReportError::io(path, io::Error::new(io::ErrorKind::InvalidInput, "this path names no file")))?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}-{number}.tmp", std::process::id()));
    let temporary = path.with_file_name(hidden);
    let written = fill(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|source| {
        // The first error is the one to report; a temporary file that cannot be removed changes
        // nothing about it.
        let _ = fs::remove_file(&temporary);
        ReportError::io(path, source)
    })
}

fn fill(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_atomic(&path, b"old").unwrap();
        write_atomic(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        // A directory cannot be replaced by a file, so the rename fails after the bytes were
        // written.
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("inside"), b"x").unwrap();
        assert!(matches!(write_atomic(&path, b"new"), Err(ReportError::Io { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
