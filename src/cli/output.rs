//! Text for standard output and standard error.

use std::io::{self, Write};

use super::CliError;

/// Makes a message safe for a terminal, for it may quote files: control characters except line ends and tabs are
/// escaped.
pub(crate) fn printable(message: &str) -> String {
    let plain = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        _ if c.is_control() => c.escape_debug().to_string(),
        _ => c.to_string(),
    };
    message.chars().map(plain).collect()
}

/// Writes a text to standard output.
///
/// # Errors
/// [`CliError::Closed`] where the reader has closed the output, [`CliError::Failed`] for any other failed write.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| match CliError::from(error) {
        CliError::Failed(problem) => CliError::Failed(format!("cannot write to standard output: {problem}")),
        closed => closed,
    })
}

/// Writes a note to standard error. A note that cannot be written is lost.
pub(crate) fn print_note(note: &str) {
    let _ = writeln!(io::stderr(), "note: {}", printable(note));
}

/// Writes one line to standard output.
///
/// # Errors
/// [`CliError::Closed`] where the reader has closed the output, [`CliError::Failed`] for any other failed write.
pub(crate) fn print_line(line: &str) -> Result<(), CliError> {
    print_text(&format!("{line}\n"))
}
