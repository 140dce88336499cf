//! `fedstein site split`: the rows of an experiment as files of sites.

use super::output;
use crate::cli::{CliError, SiteSplit, print_text, printable};
use crate::experiment::progress::to_stderr;
use crate::experiment::split;
use crate::shell;

/// Runs the command.
///
/// # Errors
/// The experiment's rows cannot be read or assigned, or a file cannot be written.
pub(super) fn split(typed: &SiteSplit) -> Result<(), CliError> {
    output::check_new_place("--out", &typed.out)?;
    let split::Split { files, notes } = split::split(&typed.config, &typed.data_dir, &typed.out)?;
    notes.iter().for_each(|note| to_stderr(note));
    let files: Vec<String> = files.iter().map(|file| shell::path(file)).collect();
    let run = typed.out.join(split::RUN);
    let text = format!(
        "{} sites in {}. To train with them:\n\n{}\n",
        files.len(),
        typed.out.display(),
        shell::line(&["fedstein", "train", &shell::path(&run), "--sites", &files.join(",")])
    );
    print_text(&printable(&text))
}
