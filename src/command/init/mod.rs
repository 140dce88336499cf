//! `fedstein init`: looks at the columns of a table, and writes a config with comments for it.

mod cells;
mod choice;
mod config;
mod length;
mod names;
mod uses;

use std::path::Path;

use super::output;
use crate::cli::{CliError, Init, print_text};
use crate::datasets::{SurveyColumn, survey};
use crate::error::RunError;
use crate::shell;
use choice::Choice;

/// Runs the command.
///
/// # Errors
/// The table cannot be read or has no column to predict, or the config cannot be written.
pub(super) fn init(typed: &Init) -> Result<(), CliError> {
    let Init { table, target, force, .. } = typed;
    let out = &typed.out();
    output::check(out, *force)?;
    let found = survey(table, target.as_deref()).map_err(RunError::from)?;
    let choice = Choice::of(&found, target.as_deref())
        .map_err(|problem| CliError::Usage(format!("{}: {problem}", table.display())))?;
    let path = table.to_str().ok_or_else(|| {
        CliError::Usage(format!("`{}` is not UTF-8, as a config must be; rename the file", table.display()))
    })?;
    let to_screen = out == Path::new("-");
    let name = config::run_name(if to_screen { table } else { out });
    let text = config::text((path, &name), &found, &choice)?;
    output::write(out, &text, *force)?;
    match to_screen {
        true => Ok(()),
        false => print_text(&said(out, &choice)),
    }
}

/// What the command prints when it has written a file.
fn said(out: &Path, choice: &Choice<'_>) -> String {
    let out = out.display();
    let name = |(column, _): (&SurveyColumn, &str)| match uses::has_thousands(column) {
        true => format!("{} (thousands separators?)", choice::shown(column)),
        false => choice::shown(column),
    };
    let names: Vec<String> = choice.left_out().into_iter().map(name).collect();
    let left_out = match names.is_empty() {
        true => String::new(),
        false => format!("left out: {}; the file says why\n", names.join(", ")),
    };
    let constant: String = choice.about_constant_outcomes().iter().map(|about| format!("note: {about}\n")).collect();
    let train = shell::line(&["fedstein", "train", &out.to_string()]);
    format!("{out}: {}\n{constant}{left_out}{train}\n", choice.summary())
}
