//! The config that `fedstein init` writes: each key with what the schema says of it, and what was found in the table.

use std::fmt::Write as _;
use std::path::Path;

use toml::Value;

use super::cells;
use super::choice::{Choice, key_of, shown};
use super::length::Length;
use super::uses::{Use, has_thousands};
use crate::cli::CliError;
use crate::datasets::{Survey, SurveyColumn, Task};
use crate::experiment::config::schema;

/// The width of a comment, in characters.
const WIDTH: usize = 110;

/// The number of distinct values that a comment lists.
pub const LISTED: usize = 6;

/// The number of columns that a comment describes one by one.
const DESCRIBED: usize = 40;

/// Below this number of rows a linear model is worth a try.
const FEW_ROWS: usize = 1000;

/// A key with its value, and what was found.
struct Line {
    section: &'static str,
    kind: &'static str,
    key: &'static str,
    value: Value,
    found: String,
}

/// The text of the config for the table at a path, with the name of the run.
///
/// # Errors
/// [`CliError::Failed`] where a key is not in the schema, which no table causes.
pub fn text((path, name): (&str, &str), survey: &Survey, choice: &Choice<'_>) -> Result<String, CliError> {
    let mut text = String::new();
    comment(&mut text, &format!("{}: {}.", one_line(path), choice.summary()));
    comment(&mut text, "All keys are in docs/configuration.md; those that are not here have their defaults.");
    columns(&mut text, survey, choice);
    let mut section = None;
    for line in lines((path, name), survey, choice) {
        if section != Some(line.section) {
            section = Some(line.section);
            text.push('\n');
            if !line.section.is_empty() {
                let _ = writeln!(text, "[{}]", line.section);
            }
        }
        let known = schema().section(line.section).and_then(|section| {
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

/// All keys that a table can speak for, in the order of the file.
fn lines((path, name): (&str, &str), survey: &Survey, choice: &Choice<'_>) -> Vec<Line> {
    let text = |text: &str| Value::String(text.to_owned());
    let line = |section, kind, key, value, found: String| Line { section, kind, key, value, found };
    let data = |key, value, found: String| line("data", "csv", key, value, found);
    let clients = clients(choice);
    let Length { rounds: (rounds, about_rounds), stop } = Length::of(choice, clients);
    let mut lines = vec![
        line("", "", "name", text(name), String::new()),
        line("", "", "rounds", rounds, about_rounds),
        data("kind", text("csv"), String::new()),
        data("path", text(path), String::new()),
        data("target", text(&choice.target_key), about_other_targets(choice)),
        data("task", text(task(choice.task)), about_target(choice)),
    ];
    if let Some((positive, other)) = choice.positive() {
        lines.push(data("positive", text(&positive), format!("The other class is `{}`.", one_line(&other))));
    }
    lines.extend([
        data("header", text(if survey.header { "yes" } else { "no" }), String::new()),
        data("delimiter", text(&delimiter(survey.delimiter)), String::new()),
    ]);
    if let Some(client) = choice.client {
        let key = key_of(client, survey.columns.len());
        lines.push(data("client_column", text(&key), others("could be the clients as well", &choice.other_clients)));
    } else if !choice.other_clients.is_empty() {
        let found = others("could be the clients (with `partition.kind = \"by-column\"`)", &choice.other_clients);
        lines.push(data("client_column", text(""), found));
    }
    let of_cells = cells::lines(survey, choice);
    lines.extend(of_cells.into_iter().map(|(key, value, found)| data(key, value, found)));
    lines.push(data("test_fraction", Value::Float(0.2), String::new()));
    if let Some((class, rows)) = choice.rare_class() {
        let found =
            format!("Of {} rows, {rows} have the rarest class, `{}`.", choice.target.present(), one_line(class));
        lines.push(data("split", text("by-class"), found));
    }
    match choice.client {
        Some(client) => {
            let found = format!("Clients are the {clients} values of {}.", shown(client));
            lines.push(line("partition", "by-column", "kind", text("by-column"), found));
        }
        None => {
            lines.push(line("partition", "iid", "kind", text("iid"), "No column says whose rows these are.".into()));
            lines.push(line("partition", "iid", "clients", Value::Integer(clients as i64), String::new()));
        }
    }
    let kind = if choice.client.is_some() { "by-column" } else { "iid" };
    let (share, patience) = stop.map(<(_, _)>::from).unzip();
    lines.extend(share.map(|(share, found)| line("partition", kind, "validation", share, found)));
    lines.push(line("model", "bnn", "kind", text("bnn"), String::new()));
    lines.push(line("model", "bnn", "hidden", Value::Array(vec![Value::Integer(50)]), about_network(choice.rows)));
    lines.push(line("algorithm", "newton-dsvgd", "kind", text("newton-dsvgd"), String::new()));
    lines.push(line("algorithm", "newton-dsvgd", "particles", Value::Integer(20), String::new()));
    lines.extend(patience.map(|(patience, found)| line("stop", "", "patience", patience, found)));
    lines
}

/// The name of the run whose config, or whose table, has this path: the file's name up to its first dot, as far as a
/// run's directory can have it.
pub fn run_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("own-data");
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
    stem.chars().map(plain).take(60).collect()
}

/// The number of clients: those of the column, else one for 50 rows, from 2 to 10.
fn clients(choice: &Choice<'_>) -> usize {
    let named = choice.client.and_then(SurveyColumn::distinct);
    named.unwrap_or((choice.rows / 50).clamp(2, 10))
}

/// That a linear model may do better on few rows.
fn about_network(rows: usize) -> String {
    if rows >= FEW_ROWS {
        return String::new();
    }
    format!(
        "With fewer than {FEW_ROWS} rows a linear model, `[]`, may predict better: compare both (docs/example.md, \"Which network?\")."
    )
}

const fn task(task: Task) -> &'static str {
    match task {
        Task::Classification => "classification",
        Task::Regression => "regression",
    }
}

fn delimiter(delimiter: u8) -> String {
    if delimiter == b'\t' { "tab".into() } else { char::from(delimiter).to_string() }
}

/// The other columns that could be predicted, or could if they had two values.
fn about_other_targets(choice: &Choice<'_>) -> String {
    let constant = choice.about_constant_outcomes().into_iter().map(|about| about + ".");
    let others = Some(others("could be predicted as well", &choice.other_targets)).filter(|others| !others.is_empty());
    constant.chain(others).collect::<Vec<_>>().join(" ")
}

fn about_target(choice: &Choice<'_>) -> String {
    let target = shown(choice.target);
    match (choice.task, &choice.target.values) {
        (Task::Classification, Some(values)) => {
            let may_be_count = choice.target.are_all(choice.target.numbers) && values.len() > 2;
            let count = match may_be_count {
                true => " If it is a count or a score, \"regression\" takes it as a number.",
                false => "",
            };
            format!("{target} has {}.{count}", listed(values.iter()))
        }
        (Task::Classification, None) => format!("{target} has more than a thousand distinct texts."),
        (Task::Regression, _) => format!("{target} holds numbers."),
    }
}

/// The first values of a column with their numbers of rows.
pub fn listed<'a>(values: impl ExactSizeIterator<Item = (&'a String, &'a usize)>) -> String {
    let count = values.len();
    let first: Vec<String> = values
        .take(LISTED)
        .map(|(value, rows)| format!("{} ({rows} row{})", one_line(value), if *rows == 1 { "" } else { "s" }))
        .collect();
    let more = if count > LISTED { ", …" } else { "" };
    format!("{count} values: {}{more}", first.join(", "))
}

fn others(what: &str, columns: &[&SurveyColumn]) -> String {
    let names: Vec<String> = columns.iter().take(LISTED).map(|column| shown(column)).collect();
    match columns.len() {
        0 => String::new(),
        count => format!("{}{} {what}.", names.join(", "), if count > LISTED { ", …" } else { "" }),
    }
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

/// A text on one line, with control characters escaped, cut after 40 characters.
pub fn one_line(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    let more = if text.chars().nth(40).is_some() { "…" } else { "" };
    format!("{}{more}", shown.escape_debug())
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
