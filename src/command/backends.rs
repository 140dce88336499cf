//! `fedstein backends`: lists the compiled backends, whether each opens on this machine, and its adapter.

use crate::backend::{BackendError, KNOWN, Precision, Session};
use crate::cli::{CliError, print_text};

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn backends() -> Result<(), CliError> {
    let line = |name: &&str| match Session::named(name, Precision::F32) {
        Ok(session) => format!("{name:<10}opens: {}\n", session.hardware()),
        Err(BackendError::NotCompiled { .. }) => {
            format!("{name:<10}not compiled in (cargo build --release --features {name})\n")
        }
        Err(BackendError::NoDevice { reason, .. }) => format!("{name:<10}does not open: {reason}\n"),
        Err(error) => format!("{name:<10}does not open: {error}\n"),
    };
    print_text(&KNOWN.iter().map(line).collect::<String>())
}
