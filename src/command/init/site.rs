//! The file that `fedstein site init` writes: a site's own file for a table.

use std::path::{Path, PathBuf};

use toml::Value;

use super::cells;
use super::choice::{Choice, shown};
use super::config::{of_file, of_test_rows};
use super::document::{Line, document, text};
use super::length::held_out;
use super::text::one_line;
use super::uses::Use;
use crate::cli::CliError;
use crate::datasets::{Survey, SurveyColumn};
use crate::site::schema;

/// The number of texts of a column that nobody takes for names of persons.
const FEW_TEXTS: usize = 50;

/// The text of the file of the site with this name and index, whose table has this path.
///
/// # Errors
/// [`CliError::Failed`] where a key is not in the schema, which no table causes.
pub fn of_site(
    (path, name, index): (&str, &str, usize),
    survey: &Survey,
    choice: &Choice<'_>,
) -> Result<String, CliError> {
    let about = [
        format!("{}: {}.", one_line(path), choice.summary()),
        "A server sets nothing in this file. All keys are in docs/federation.md; those that are not here have their \
         defaults. All sites need the same target, and the same names for the same columns."
            .to_owned(),
    ];
    document(schema(), &about, (survey, choice), lines((path, name, index), survey, choice))
}

/// All keys that a table can speak for, in the order of the file.
fn lines((path, name, index): (&str, &str, usize), survey: &Survey, choice: &Choice<'_>) -> Vec<Line> {
    let line = |section, key, value, found: String| Line { section, kind: "", key, value, found };
    let whole = |number: usize| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let mut lines = vec![line("", "name", text(name), String::new()), line("", "index", whole(index), String::new())];
    let data = [of_file(path, survey, choice, false), cells::lines(survey, choice), of_test_rows(choice)].concat();
    lines.extend(data.into_iter().map(|(key, value, found)| line("data", key, value, found)));
    if survey.header {
        let found = "The same at all sites, such as \"hospital\", where they differ in ways that no other column says.";
        lines.push(line("data", "name_column", text(""), found.into()));
    }
    if let Some((share, _)) = held_out(choice, 1) {
        let found = "With `stop.patience` at the server a tenth of the training rows tells when to stop.";
        lines.push(line("data", "validation_fraction", share, found.into()));
    }
    // What is told is for a person to decide: these keys have their defaults.
    let mut tell = |key: &'static str, found| {
        let known = schema().section("tell").and_then(|section| section.key("", key));
        lines.extend(known.and_then(|key| key.default_for("sound")).map(|value| line("tell", key, value, found)));
    };
    let texts = choice.used(&Use::Category);
    if !texts.is_empty() {
        tell("categories", about_texts(&texts));
    }
    tell("min_rows", String::new());
    lines
}

/// What the texts of columns of categories are needed for.
fn about_texts(columns: &[&SurveyColumn]) -> String {
    let names = |columns: &[&SurveyColumn]| columns.iter().map(|column| shown(column)).collect::<Vec<_>>().join(", ");
    let many: Vec<&SurveyColumn> =
        columns.iter().copied().filter(|column| column.distinct().is_none_or(|count| count > FEW_TEXTS)).collect();
    let doubt = match many.is_empty() {
        true => String::new(),
        false => {
            format!(" More than {FEW_TEXTS} texts would be told of {}: are they names, or free text?", names(&many))
        }
    };
    format!(
        "It decides over {}: no run can begin until it is `true`, or until all sites leave these columns out \
         (`data.ignore`).{doubt}",
        names(columns)
    )
}

/// The path of a table as the site's file has it: relative to the file's own directory, which it then may move with, where
/// the table is below it; else absolute.
///
/// # Errors
/// The table or the directory cannot be found.
pub fn path_of(table: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (table, directory) = (table.canonicalize()?, directory.canonicalize()?);
    Ok(table.strip_prefix(&directory).map(Path::to_path_buf).unwrap_or(table))
}
