//! The ends of a command, each with its exit code.

use std::io;

use crate::experiment::schema::ConfigError;

/// An end of a command other than success.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The arguments, or a file they name, are wrong: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// The command failed: exit code 1.
    #[error("{0}")]
    Failed(String),
    /// The user ended the command: exit code 130.
    #[error("{0}")]
    Interrupted(String),
    /// Standard output was closed by its reader, as in `fedstein data list | head -1`: no failure, exit code 0.
    #[error("standard output is closed")]
    Closed,
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Internal(_) => Self::Failed(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(error.to_string()),
        }
    }
}
