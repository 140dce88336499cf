//! The `fedstein` command: parses, calls, maps an error to an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fedstein::cli::run(std::env::args_os(), fedstein::command::execute)
}
