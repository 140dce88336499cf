//! Texts that follow from the arguments of the program alone: the completions of shells, and the pages of the manual.

use clap::{Args, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::CliError;
use crate::experiment::schema::{did_you_mean, list};

/// The program's name.
const NAME: &str = "fedstein";

/// Print the completions of a shell, for its startup files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fedstein completions bash > ~/.local/share/bash-completion/completions/fedstein
  fedstein completions zsh > ~/.zfunc/_fedstein        a directory of $fpath
  fedstein completions fish > ~/.config/fish/completions/fedstein.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: Shell,
}

/// Print a page of the manual, in the format of man.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fedstein man | man -l -
  fedstein man train > ~/.local/share/man/man1/fedstein-train.1")]
pub struct ManArgs {
    /// The command that the page is about, such as `train` or `site check` [default: fedstein as a whole]
    #[arg(value_name = "COMMAND")]
    pub of: Vec<String>,
}

/// The completions of a shell for the program.
pub(super) fn completions(shell: Shell, mut program: Command) -> String {
    let mut text = Vec::new();
    generate(shell, &mut program, NAME, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The page of the manual about a command, given by its words; about the program where there are none.
///
/// # Errors
/// [`CliError::Usage`] where there is no such command.
pub(super) fn manual(words: &[String], mut program: Command) -> Result<String, CliError> {
    // Gives every command its full name.
    program.build();
    let mut of = &program;
    for word in words {
        let found = of.find_subcommand(word).filter(|of| !of.is_hide_set());
        of = found.ok_or_else(|| no_command(of, word))?;
    }
    let mut text = Vec::new();
    Man::new(of.clone()).manual(NAME).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn no_command(of: &Command, word: &str) -> CliError {
    let names: Vec<&str> = of.get_subcommands().filter(|of| !of.is_hide_set()).map(Command::get_name).collect();
    let of = of.get_bin_name().unwrap_or(NAME);
    if names.is_empty() {
        return CliError::Usage(format!("`{of}` has no commands of its own, and none is named `{word}`"));
    }
    let hint = did_you_mean(word, names.iter().copied());
    CliError::Usage(format!("`{of}` has no command `{word}`{hint}; it has {}", list(&names)))
}
