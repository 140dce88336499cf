//! `fedstein backends`: lists the compiled backends, whether each opens on this machine, and its adapter.

use crate::backend::{Backend, BackendError, KNOWN, OnBackend, Precision, Session, dispatch};
use crate::cli::{CliError, print_text};

/// Runs the command.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn backends() -> Result<(), CliError> {
    let line = |name: &&str| match dispatch(name, Open) {
        Ok(state) => format!("{name:<10}{state}\n"),
        Err(_) => format!("{name:<10}not compiled in (cargo build --release --features {name})\n"),
    };
    print_text(&KNOWN.iter().map(line).collect::<String>())
}

struct Open;

impl OnBackend for Open {
    type Output = String;

    fn run<B: Backend>(self) -> String {
        match Session::<B>::open(Precision::F32) {
            Ok(session) => format!("opens: {}", session.hardware()),
            Err(BackendError::NoDevice { reason, .. }) => format!("does not open: {reason}"),
            Err(error) => format!("does not open: {error}"),
        }
    }
}
