//! A file of keys with comments: what the schema says of each, and what was found in the table.

use std::fmt::Write as _;

use fedstein_schema::Schema;
use toml::Value;

use super::choice::Choice;
use super::text::one_line;
use super::uses::{Use, has_thousands};
use crate::cli::CliError;
use crate::datasets::{Survey, SurveyColumn};

/// The width of a comment, in characters.
const WIDTH: usize = 110;

/// The number of columns that a comment describes one by one.
const DESCRIBED: usize = 40;

/// A key with its value, and what was found.
pub struct Line {
    /// The section; empty for the top of the file.
    pub section: &'static str,
    /// The kind of the section; empty where it has none.
    pub kind: &'static str,
    /// The key.
    pub key: &'static str,
    /// Its value.
    pub value: Value,
    /// What was found.
    pub found: String,
}

/// A text value.
pub fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// The text of a file with these keys, in their order; `about` are the first comments, above the table's columns.
///
/// # Errors
/// [`CliError::Failed`] where a key is not in the schema, which no table causes.
pub fn document(
    schema: &Schema,
    about: &[String],
    (survey, choice): (&Survey, &Choice<'_>),
    lines: Vec<Line>,
) -> Result<String, CliError> {
    let mut text = String::new();
    about.iter().for_each(|about| comment(&mut text, about));
    columns(&mut text, survey, choice);
    let mut section = None;
    for line in lines {
        if section != Some(line.section) {
            section = Some(line.section);
            text.push('\n');
            if !line.section.is_empty() {
                let _ = writeln!(text, "[{}]", line.section);
            }
        }
        let known = schema.section(line.section).and_then(|section| {
            let about = if line.key == "kind" {
                section.about
            } else {
                section.keys_of(line.kind).find(|key| key.name == line.key)?.doc
            };
            Some(about)
        });
        let about = known.ok_or_else(|| CliError::Failed(format!("there is no key {}.{}", line.section, line.key)))?;
        comment(&mut text, about);
        if !line.found.is_empty() {
            comment(&mut text, &line.found);
        }
        let _ = writeln!(text, "{} = {}", line.key, line.value);
    }
    Ok(text)
}

/// A table of the columns, as a comment.
fn columns(text: &mut String, survey: &Survey, choice: &Choice<'_>) {
    text.push_str("#\n");
    let name = |column: &SurveyColumn| column.name.as_deref().map_or_else(|| column.index.to_string(), one_line);
    let described = survey.columns.iter().take(DESCRIBED);
    let width = described.clone().map(|column| name(column).chars().count()).max().unwrap_or(0);
    for column in described {
        let of = choice.uses.iter().find(|(other, _)| other.index == column.index).map(|(_, of)| of);
        let role = match of {
            Some(Use::Id) => ", no feature",
            Some(Use::Nothing(_)) => ", left out",
            Some(_) => "",
            None if column.index == choice.target.index => ", the target",
            None => ", the client",
        };
        let _ = writeln!(text, "#   {:width$}  {}{role}", name(column), described_as(column));
    }
    if survey.columns.len() > DESCRIBED {
        let _ = writeln!(text, "#   and {} more", survey.columns.len() - DESCRIBED);
    }
}

fn described_as(column: &SurveyColumn) -> String {
    let kind = match () {
        () if column.present() == 0 => "nothing",
        () if column.are_all(column.numbers) => {
            if column.whole {
                "whole numbers"
            } else {
                "numbers"
            }
        }
        () if column.are_all(column.booleans) => "yes or no",
        () if column.are_all(column.dates) || column.are_all(column.other_dates) => "dates",
        () if column.are_all(column.numbers + column.other_mark) => "numbers with two decimal marks",
        () if has_thousands(column) => "numbers with thousands separators",
        () if column.numbers == 0 => "text",
        () => "numbers and other cells",
    };
    let distinct = column.distinct().map_or_else(|| "more than a thousand".into(), |count| count.to_string());
    let missing = match column.missing {
        0 => String::new(),
        1 => ", 1 missing".into(),
        count => format!(", {count} missing"),
    };
    format!("{kind}, {distinct} distinct{missing}")
}

/// Adds lines of a comment; every line but the first is indented as the first.
fn comment(text: &mut String, what: &str) {
    let indent: String = what.chars().take_while(|c| *c == ' ').collect();
    let mut line = format!("#{indent}");
    for word in what.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = format!("#{indent}");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}
