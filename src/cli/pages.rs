//! Texts that follow from the arguments of the program alone: the completions of shells, and the pages of the manual.

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::CliError;
use super::args::Args;
use crate::experiment::schema::{list, nearest};

/// The program's name.
const NAME: &str = "fedstein";

/// The completions of a shell.
pub(super) fn completions(shell: Shell) -> String {
    let mut text = Vec::new();
    generate(shell, &mut Args::command(), NAME, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The page of the manual about a command, given by its words; about the program where there are none.
///
/// # Errors
/// [`CliError::Usage`] where there is no such command.
pub(super) fn manual(words: &[String]) -> Result<String, CliError> {
    let mut program = Args::command();
    // Gives every command its full name.
    program.build();
    let mut of = &program;
    for word in words {
        of = of.find_subcommand(word).ok_or_else(|| no_command(of, word))?;
    }
    let mut text = Vec::new();
    Man::new(of.clone()).manual(NAME).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn no_command(of: &Command, word: &str) -> CliError {
    let names: Vec<&str> = of.get_subcommands().map(Command::get_name).collect();
    let of = of.get_bin_name().unwrap_or(NAME);
    if names.is_empty() {
        return CliError::Usage(format!("`{of}` has no commands of its own, and none is named `{word}`"));
    }
    let hint = nearest(word, names.iter().copied());
    let hint = hint.map_or_else(String::new, |name| format!("; did you mean `{name}`?"));
    CliError::Usage(format!("`{of}` has no command `{word}`{hint}; it has {}", list(&names)))
}
