//! `fedstein init` and `fedstein site init`: look at the columns of a table, and write a config or a site's own file with
//! comments for it, or beside the config studies of models and of clients that take no part.

mod cells;
mod choice;
mod config;
mod document;
mod left_out;
mod length;
mod models;
mod names;
mod site;
mod suspects;
mod text;
mod uses;

use std::path::{Path, PathBuf};

use fedstein_schema::Accepts;

use super::output;
use crate::cli::{CliError, Init, SiteInit, print_text};
use crate::datasets::{Survey, SurveyColumn, survey};
use crate::error::RunError;
use crate::shell;
use crate::site::MOST_INDEX;
use choice::{Choice, Whose};
use suspects::Suspects;

/// Runs the command.
///
/// # Errors
/// The table cannot be read or has no column to predict, or the config or its studies cannot be written.
pub(super) fn init(typed: &Init) -> Result<(), CliError> {
    let Init { table, target, force, .. } = typed;
    let out = &typed.out();
    // A config that is there may have been edited since; studies are for it as it is, and those that are there stay too.
    let stays = typed.study && !force && out.is_file();
    check_out(out, table, *force || stays)?;
    let to_screen = out == Path::new("-");
    let base = typed.study.then(|| name_in_studies(out)).transpose()?;
    let declared = typed.missing_values.read()?;
    let found = survey(table, target.as_deref(), &declared).map_err(RunError::from)?;
    let choice =
        Choice::of(&found, target.as_deref(), Whose::ManyClients).map_err(|problem| refused(table, &problem))?;
    let name = config::run_name(if to_screen { table } else { out });
    let text = config::of_run((in_utf8(table)?, &name), &found, &choice)?;
    let studies: Vec<Study> = base.iter().flat_map(|base| Study::all((out, base), &choice)).collect();
    let (there, studies): (Vec<Study>, Vec<Study>) =
        studies.into_iter().partition(|study| stays && study.path.is_file());
    studies.iter().try_for_each(|study| output::check_as("--study", &study.path, *force))?;
    if !stays {
        output::write(out, &text, *force)?;
    }
    if to_screen {
        return Ok(());
    }
    let (mut files, mut next) = (Vec::new(), vec![shell::line(&["fedstein", "train", &shell::path(out)])]);
    let untouched = there.iter().map(|study| study.path.as_path());
    for file in stays.then_some(out.as_path()).into_iter().chain(untouched) {
        files.push(format!("{} was there and stays as it is; --force replaces it", file.display()));
    }
    for Study { path, text, about } in &studies {
        output::write(path, text, *force)?;
        files.push(format!("{}: {about}", path.display()));
        next.push(shell::line(&["fedstein", "study", &shell::path(path), "--jobs", "2"]));
    }
    let next = if choice.untrainable().is_some() { Vec::new() } else { next };
    print_text(&said(out, (&found, &choice), &[files, next].concat()))
}

/// Runs `fedstein site init`.
///
/// # Errors
/// The table cannot be read or has no column to predict, or the site's file cannot be written.
pub(super) fn site_init(typed: &SiteInit) -> Result<(), CliError> {
    let SiteInit { table, index, target, out, force, .. } = typed;
    check_out(out, table, *force)?;
    check_site(&typed.name(), *index)?;
    let declared = typed.missing_values.read()?;
    let found = survey(table, target.as_deref(), &declared).map_err(RunError::from)?;
    let choice = Choice::of(&found, target.as_deref(), Whose::OneSite).map_err(|problem| refused(table, &problem))?;
    let path = site::path_of(table, out).map_err(|error| refused(table, &error.to_string()))?;
    let text = site::of_site((in_utf8(&path)?, &typed.name(), *index), &found, &choice)?;
    output::write(out, &text, *force)?;
    if out == Path::new("-") {
        return Ok(());
    }
    // A site's own file is checked in any case.
    let next = shell::line(&["fedstein", "site", "check", &shell::path(out)]);
    print_text(&said(out, (&found, &choice), &[next]))
}

/// A study beside a config.
struct Study {
    path: PathBuf,
    text: String,
    /// What it asks, for the list of files.
    about: &'static str,
}

impl Study {
    /// The studies of a config, which are beside it: `cases-models.toml` and `cases-left-out.toml` for `cases.toml`.
    fn all((config, base): (&Path, &str), choice: &Choice<'_>) -> Vec<Self> {
        let stem = config.file_stem().unwrap_or_default().to_string_lossy();
        let beside = |ending: &str| config.with_file_name(format!("{stem}-{ending}.toml"));
        let models = Self {
            path: beside("models"),
            text: models::of_config(base, choice),
            about: "a study that compares models",
        };
        let left_out = left_out::of_config(base, choice).map(|text| Self {
            path: beside("left-out"),
            text,
            about: "a study that leaves out each client in turn",
        });
        std::iter::once(models).chain(left_out).collect()
    }
}

/// The name of a config's file, as studies in the same directory name it.
fn name_in_studies(config: &Path) -> Result<String, CliError> {
    if config == Path::new("-") {
        return Err(CliError::Usage("--study: the study names the config's file; leave out `--out -`".into()));
    }
    Ok(in_utf8(Path::new(config.file_name().unwrap_or_default()))?.to_owned())
}

/// Checks that a file can be written, which is not the table itself.
fn check_out(out: &Path, table: &Path, force: bool) -> Result<(), CliError> {
    let found = |path: &Path| path.canonicalize().ok();
    if found(out).is_some_and(|out| Some(out) == found(table)) {
        return Err(CliError::Usage(format!("--out `{}` is the table; name another file", out.display())));
    }
    output::check(out, force)
}

/// Checks that a site's file can have this name and index.
fn check_site(name: &str, index: usize) -> Result<(), CliError> {
    let value = toml::Value::String(name.to_owned());
    Accepts::Name.check(&value).map_err(|valid| CliError::Usage(format!("--name `{name}`: it must be {valid}")))?;
    match index <= MOST_INDEX {
        true => Ok(()),
        false => Err(CliError::Usage(format!("--index {index}: it must be a whole number from 0 to {MOST_INDEX}"))),
    }
}

fn refused(table: &Path, problem: &str) -> CliError {
    CliError::Usage(format!("{}: {problem}", table.display()))
}

/// A path as a file of keys can have it.
fn in_utf8(path: &Path) -> Result<&str, CliError> {
    path.to_str().ok_or_else(|| {
        CliError::Usage(format!("`{}` is not UTF-8, as a config must be; rename the file", path.display()))
    })
}

/// What a command prints when it has written a file; the last lines are other files and the commands that come next.
fn said(out: &Path, (survey, choice): (&Survey, &Choice<'_>), last: &[String]) -> String {
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
    let suspects = Suspects::all(survey, choice).map(|Suspects { found, value }| {
        let again = shell::line(&["--missing-values", &value.to_string(), "--force"]);
        format!("cells that may stand for missing values: {found}; if they do, repeat the command with {again}")
    });
    let notes = choice
        .about_constant_outcomes()
        .into_iter()
        .chain(choice.about_unlikely_target())
        .chain(choice.about_incomplete_client())
        .chain(cells::about_incomplete_group(choice))
        .chain(choice.about_persons_as_clients())
        .chain(choice.about_repeated_texts())
        .chain(suspects)
        .chain(choice.about_count())
        .chain(choice.about_alike())
        .chain(choice.untrainable());
    let notes: String = notes.map(|about| format!("note: {about}\n")).collect();
    let last: String = last.iter().map(|line| format!("{line}\n")).collect();
    format!("{out}: {}\n{notes}{left_out}{last}", choice.summary())
}
