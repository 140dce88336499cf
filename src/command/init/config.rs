//! The config that `fedstein init` writes.

use std::path::Path;

use toml::Value;

use super::cells;
use super::choice::{Choice, TEST_SHARE, key_of, shown};
use super::document::{Line, document, text};
use super::length;
use super::text::{LISTED, listed, one_line};
use crate::cli::CliError;
use crate::datasets::{Survey, SurveyColumn, Task};
use crate::experiment::config::schema;

/// Why a regression has its features in their principal axes (docs/results.md, "Principal axes for tables").
const ABOUT_AXES: &str = "`newton-dsvgd` takes features for uncorrelated. In regressions these axes often lower the NLL; in \
                          classifications they change little.";

/// When the client is worth a feature (docs/data.md, "The client as a feature").
const ABOUT_LEVELS: &str = "Where clients differ in ways that the other columns do not say, such as how ill their patients are, name it in `categorical` too.";

/// The units of the network's hidden layer.
pub const HIDDEN: i64 = 50;

/// Below this number of rows a linear model is worth a try.
const FEW_ROWS: usize = 1000;

/// The text of the config for the table at a path, with the name of the run.
///
/// # Errors
/// [`CliError::Failed`] where a key is not in the schema, which no table causes.
pub fn of_run((path, name): (&str, &str), survey: &Survey, choice: &Choice<'_>) -> Result<String, CliError> {
    let about = [
        format!("{}: {}.", one_line(path), choice.summary()),
        "All keys are in docs/configuration.md; those that are not here have their defaults.".to_owned(),
    ];
    document(schema(), &about, (survey, choice), lines((path, name), survey, choice))
}

/// All keys that a table can speak for, in the order of the file.
fn lines((path, name): (&str, &str), survey: &Survey, choice: &Choice<'_>) -> Vec<Line> {
    let line = |section, kind, key, value, found: String| Line { section, kind, key, value, found };
    let data = |key, value, found: String| line("data", "csv", key, value, found);
    let clients = clients(choice);
    let length::Lines { rounds: (rounds, about_rounds), stop } = length::Lines::of(choice, clients);
    let mut lines = vec![
        line("", "", "name", text(name), String::new()),
        line("", "", "rounds", rounds, about_rounds),
        data("kind", text("csv"), String::new()),
    ];
    lines.extend(of_file(path, survey, choice, true).into_iter().map(|(key, value, found)| data(key, value, found)));
    if let Some(client) = choice.client {
        let key = key_of(client, &survey.columns);
        let others = others("could be the clients as well", &choice.other_clients);
        lines.push(data("client_column", text(&key), [&others, ABOUT_LEVELS].join(" ").trim_start().to_owned()));
    } else if !choice.other_clients.is_empty() {
        let found = others("could be the clients (with `partition.kind = \"by-column\"`)", &choice.other_clients);
        lines.push(data("client_column", text(""), found));
    }
    let of_cells = cells::lines(survey, choice);
    lines.extend(of_cells.into_iter().map(|(key, value, found)| data(key, value, found)));
    lines.extend(of_test_rows(choice).into_iter().map(|(key, value, found)| data(key, value, found)));
    if choice.task == Task::Regression {
        lines.push(data("rotate", text("principal"), ABOUT_AXES.to_owned()));
    }
    match choice.client {
        Some(client) => {
            let mut found = format!("Clients are the {clients} values of {}.", shown(client));
            found.extend(choice.about_incomplete_client().map(|about| format!(" {about}.")));
            lines.push(line("partition", "by-column", "kind", text("by-column"), found));
        }
        None => {
            let incomplete = choice.about_incomplete_client().map(|about| about + ".");
            let found = incomplete.unwrap_or_else(|| "No column says whose rows these are.".into());
            lines.push(line("partition", "iid", "kind", text("iid"), found));
            lines.push(line("partition", "iid", "clients", Value::Integer(clients as i64), String::new()));
        }
    }
    let kind = if choice.client.is_some() { "by-column" } else { "iid" };
    let (share, patience) = stop.map(<(_, _)>::from).unzip();
    lines.extend(share.map(|(share, found)| line("partition", kind, "validation", share, found)));
    lines.push(line("model", "bnn", "kind", text("bnn"), String::new()));
    lines.push(line("model", "bnn", "hidden", Value::Array(vec![Value::Integer(HIDDEN)]), about_network(choice)));
    lines.push(line("algorithm", "newton-dsvgd", "kind", text("newton-dsvgd"), String::new()));
    lines.push(line("algorithm", "newton-dsvgd", "particles", Value::Integer(20), String::new()));
    lines.extend(patience.map(|(patience, found)| line("stop", "", "patience", patience, found)));
    lines
}

/// The keys of `[data]` that say what the file at a path is, and what is predicted.
///
/// # Arguments
/// * `names_positive`: whether the file says which of two classes is the second
pub fn of_file(path: &str, survey: &Survey, choice: &Choice<'_>, names_positive: bool) -> Vec<cells::Line> {
    let mut lines = vec![
        ("path", text(path), String::new()),
        ("target", text(&choice.target_key), about_other_targets(choice)),
        ("task", text(choice.task.word()), about_target(choice)),
    ];
    if let Some((positive, other)) = choice.positive().filter(|_| names_positive) {
        lines.push(("positive", text(&positive), format!("The other class is `{}`.", one_line(&other))));
    }
    lines.extend([
        ("header", text(if survey.header { "yes" } else { "no" }), about_header(survey)),
        ("delimiter", text(&delimiter(survey.delimiter)), String::new()),
    ]);
    lines
}

/// That a header was guessed, in a table of texts alone.
fn about_header(survey: &Survey) -> String {
    let found = match survey.header {
        _ if survey.columns.iter().any(|column| column.numbers + column.dates > 0) => return String::new(),
        true => "it was taken for names, as a cell of it is not there again in its column",
        false => "it was taken for a row, as all its cells are there again in their columns",
    };
    format!("No cell is a number or a date, so that line 1 may be either: {found}.")
}

/// The keys of `[data]` that say which rows are test rows.
pub fn of_test_rows(choice: &Choice<'_>) -> Vec<cells::Line> {
    let mut lines = vec![("test_fraction", Value::Float(TEST_SHARE), String::new())];
    if let Some((class, rows)) = choice.rare_class() {
        let found =
            format!("Of {} rows, {rows} have the rarest class, `{}`.", choice.target.present(), one_line(class));
        lines.push(("split", text("by-class"), found));
    }
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
pub fn clients(choice: &Choice<'_>) -> usize {
    let named = choice.client.and_then(SurveyColumn::distinct);
    named.unwrap_or((choice.rows / 50).clamp(2, 10))
}

/// That a linear model may do better on few rows.
fn about_network(choice: &Choice<'_>) -> String {
    if choice.rows >= FEW_ROWS {
        return String::new();
    }
    let linear = if choice.has_two_classes() { "a logistic regression" } else { "a linear model, `[]`," };
    format!("With fewer than {FEW_ROWS} rows {linear} may predict better: `fedstein init --study` writes a comparison.")
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
        (Task::Regression, _) => match choice.target_s_text() {
            Some((line, cell)) => format!(
                "{target} holds numbers, but for some cells, the first of them `{cell}` in line {line}: no run begins before \
                 they are numbers or missing."
            ),
            None => format!("{target} holds numbers."),
        },
    }
}

fn others(what: &str, columns: &[&SurveyColumn]) -> String {
    let names: Vec<String> = columns.iter().take(LISTED).map(|column| shown(column)).collect();
    match columns.len() {
        0 => String::new(),
        count => format!("{}{} {what}.", names.join(", "), if count > LISTED { ", …" } else { "" }),
    }
}
