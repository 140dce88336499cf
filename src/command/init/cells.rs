//! The keys that say how the cells of a table are read, where its columns call for them.

use toml::Value;

use super::choice::{Choice, key_of, shown};
use super::config::{LISTED, listed, one_line};
use super::uses::{Use, because};
use crate::datasets::columns::{Decimal, Missing};
use crate::datasets::{Survey, SurveyColumn};

/// A key of `[data]` with its value, and what was found.
type Line = (&'static str, Value, String);

/// The keys that differ from their defaults.
pub fn lines(survey: &Survey, choice: &Choice<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    let left_out = choice.left_out();
    if !left_out.is_empty() {
        let reason =
            |(column, reason): &(&SurveyColumn, &str)| format!("{}: {}", shown(column), because(column, reason));
        let columns = keys(left_out.iter().map(|(column, _)| *column), survey);
        lines.push(("ignore", columns, joined(left_out.iter().map(reason), "; ") + "."));
    }
    let ids = choice.used(&Use::Id);
    if !ids.is_empty() {
        lines.push(("id", keys(ids.iter().copied(), survey), format!("Each row has another cell in {}.", names(&ids))));
    }
    let texts = choice.used(&Use::Category);
    if !texts.is_empty() {
        let held = |column: &&SurveyColumn| match &column.values {
            Some(values) => format!("{} has {}", shown(column), listed(values.iter())),
            None => shown(column),
        };
        lines.push(("categorical", keys(texts.iter().copied(), survey), joined(texts.iter().map(held), "; ") + "."));
    }
    let booleans = choice.used(&Use::Boolean);
    if !booleans.is_empty() {
        lines.push(("boolean", keys(booleans.iter().copied(), survey), String::new()));
    }
    lines.extend(dates(survey, choice));
    if survey.decimal == Decimal::Comma {
        let of = survey.columns.iter().filter(|column| column.are_all(column.numbers) && !column.whole);
        let text = Value::String(",".into());
        lines.push(("decimal", text, format!("In {}.", names(&of.collect::<Vec<_>>()))));
    }
    lines.extend(missing(choice));
    lines
}

fn dates(survey: &Survey, choice: &Choice<'_>) -> Vec<Line> {
    let dates = choice.used(&Use::Date);
    let Some(format) = survey.date_formats.first().filter(|_| !dates.is_empty()) else { return Vec::new() };
    let example = |column: &SurveyColumn| {
        let (line, cell) = column.other.as_ref()?;
        Some(format!("Such as `{}` in line {line}.", one_line(cell)))
    };
    let found = dates.first().and_then(|column| example(column)).unwrap_or_default();
    let others: Vec<String> = survey.date_formats[1..].iter().map(|other| format!("`{}`", other.as_str())).collect();
    let doubt = match others.is_empty() {
        true => String::new(),
        false => format!(" The cells could as well be {}: please check.", others.join(" or ")),
    };
    vec![
        ("date", keys(dates.iter().copied(), survey), String::new()),
        ("date_format", Value::String(format.as_str().to_owned()), found + &doubt),
    ]
}

fn missing(choice: &Choice<'_>) -> Option<Line> {
    let missing = choice.missing?;
    let features = choice.uses.iter().filter(|(_, of)| of.is_feature()).map(|(column, _)| *column);
    let counted = |column: &SurveyColumn| format!("{} ({} of {})", shown(column), column.missing, column.cells);
    let some = std::iter::once(choice.target).chain(features).filter(|column| column.missing > 0).map(counted);
    let target = match missing {
        Missing::Drop => " Rows without a target can only be left out.",
        _ => "",
    };
    Some((
        "missing",
        Value::String(missing.word().into()),
        format!("Missing are cells of {}.{target}", joined(some, ", ")),
    ))
}

/// The columns as a config names them.
fn keys<'a>(columns: impl Iterator<Item = &'a SurveyColumn>, survey: &Survey) -> Value {
    Value::Array(columns.map(|column| Value::String(key_of(column, survey.columns.len()))).collect())
}

fn names(columns: &[&SurveyColumn]) -> String {
    joined(columns.iter().map(|column| shown(column)), ", ")
}

/// The first of some texts.
fn joined(texts: impl Iterator<Item = String>, between: &str) -> String {
    let texts: Vec<String> = texts.collect();
    let more = if texts.len() > LISTED { ", …" } else { "" };
    texts.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(between) + more
}
