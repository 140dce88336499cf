//! The program by which this command starts itself again.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The program that answers `fedstein site FILE --stdio`, where it is not the one that runs.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the program by which this command starts itself again for sites; otherwise that is the running program, which in
/// a script is the interpreter. The first call counts.
pub fn set_program(path: PathBuf) {
    // A second call changes nothing.
    let _ = PROGRAM.set(path);
}

/// The program by which this command starts itself again.
///
/// # Errors
/// The running program has no path.
pub(super) fn program() -> io::Result<PathBuf> {
    PROGRAM.get().cloned().map_or_else(std::env::current_exe, Ok)
}
