//! The keys that say how the cells of a table are read, where its columns call for them.

use toml::Value;

use super::choice::{Choice, key_of, shown};
use super::names::is_person;
use super::suspects::Suspects;
use super::text::{LISTED, listed, one_line};
use super::uses::{Use, because, is_zero_or_one, occur_twice};
use crate::datasets::columns::{Decimal, Missing, MissingValues};
use crate::datasets::{Survey, SurveyColumn};

/// A key of `[data]` with its value, and what was found.
pub type Line = (&'static str, Value, String);

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
        let group = group(&ids);
        lines.push(("id", keys(ids.iter().copied(), survey), about_ids(&ids, group)));
        if let Some(column) = group {
            let found = format!("Rows with the same {} are all training or all test rows.", shown(column));
            lines.push(("group_column", Value::String(key_of(column, &survey.columns)), found));
        }
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
        lines.push(("boolean", keys(booleans.iter().copied(), survey), about_booleans(&booleans)));
    }
    lines.extend(dates(survey, choice));
    if survey.decimal == Decimal::Comma {
        let of = survey.columns.iter().filter(|column| column.are_all(column.numbers) && !column.whole);
        let text = Value::String(",".into());
        lines.push(("decimal", text, format!("In {}.", names(&of.collect::<Vec<_>>()))));
    }
    lines.extend(missing_values(survey, choice));
    lines.extend(missing(choice));
    lines
}

/// That numbers which are 0 or 1 are taken for yes and no.
fn about_booleans(columns: &[&SurveyColumn]) -> String {
    let numbers: Vec<&SurveyColumn> = columns.iter().copied().filter(|column| is_zero_or_one(column)).collect();
    if numbers.is_empty() {
        return String::new();
    }
    let hold = if numbers.len() == 1 { "holds" } else { "hold" };
    format!(
        "{} {hold} only 0 and 1. A count, of which new rows may have more, is left out of this list: it is then scaled as \
         other numbers are.",
        names(&numbers)
    )
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

/// The fewest values of a column whose rows stay together: of fewer, a fifth may be none at all.
const FEWEST_GROUPS: usize = 20;

/// The column of ids whose rows stay together: one of those whose cells are there and occur twice; that of persons by its
/// name, else that with the fewest values.
fn group<'a>(ids: &[&'a SurveyColumn]) -> Option<&'a SurveyColumn> {
    let are_enough = |column: &SurveyColumn| column.distinct().is_none_or(|count| count >= FEWEST_GROUPS);
    let may_be = |column: &&SurveyColumn| column.missing == 0 && occur_twice(column) && are_enough(column);
    let repeated = ids.iter().copied().filter(may_be);
    repeated.min_by_key(|column| (!is_person(column), column.distinct().unwrap_or(column.about_distinct)))
}

/// The number of groups of rows that stay together, as far as it is known; `None` where each row is for itself.
pub fn groups(choice: &Choice<'_>) -> Option<usize> {
    group(&choice.used(&Use::Id)).map(|column| column.distinct().unwrap_or(column.about_distinct))
}

/// That rows of one person may be in training and test, because a cell of what names the persons is missing.
pub fn about_incomplete_group(choice: &Choice<'_>) -> Option<String> {
    let ids = choice.used(&Use::Id);
    let incomplete = |column: &&&SurveyColumn| column.missing > 0 && is_person(column) && occur_twice(column);
    let column = ids.iter().find(incomplete).filter(|_| group(&ids).is_none())?;
    let (name, missing) = (shown(column), column.missing);
    let are = if missing == 1 { "one of its cells is".to_owned() } else { format!("{missing} of its cells are") };
    let place = column.first_missing.map_or_else(String::new, |line| format!(", the first in line {line}"));
    Some(format!(
        "rows with one {name} would stay together (group_column), but {are} missing{place}: write it there, or take these rows out, \
         and repeat the command; otherwise training and test rows may be of one, and test scores are then too good"
    ))
}

fn count(column: &SurveyColumn) -> String {
    match column.distinct() {
        Some(count) => count.to_string(),
        None => format!("about {}", column.about_distinct),
    }
}

fn about_ids(ids: &[&SurveyColumn], group: Option<&SurveyColumn>) -> String {
    let (repeated, different): (Vec<&SurveyColumn>, Vec<&SurveyColumn>) =
        ids.iter().partition(|column| occur_twice(column));
    let (sampled, counted): (Vec<&SurveyColumn>, Vec<&SurveyColumn>) =
        different.into_iter().partition(|column| column.is_sample);
    let each = (!counted.is_empty()).then(|| format!("Each row has another cell in {}.", names(&counted)));
    let sample = (!sampled.is_empty()).then(|| {
        format!(
            "No cell occurs twice in a sample of {}: if some do, name the column in `group_column`, and their rows stay together.",
            names(&sampled)
        )
    });
    let several = repeated.iter().map(|column| {
        let values = format!("{} has {} values in {} rows", shown(column), count(column), column.present());
        match group {
            Some(group) if group.index == column.index => values + ".",
            Some(group) => values + &format!("; those with one stay together as far as they share {}.", shown(group)),
            None => values + ": training and test rows may share one, and test scores are then too good.",
        }
    });
    each.into_iter().chain(sample).chain(several).collect::<Vec<_>>().join(" ")
}

/// The cells that the user declared missing, and numbers that may stand for missing values.
fn missing_values(survey: &Survey, choice: &Choice<'_>) -> Option<Line> {
    let declared = &survey.missing_values;
    let coded = Suspects::codes(survey, choice);
    if declared.is_empty() && coded.is_none() {
        return None;
    }
    let held = survey.columns.iter().filter(|column| column.declared > 0);
    let held = joined(held.map(|column| format!("{} ({} of {})", shown(column), column.declared, column.cells)), ", ");
    let about = match () {
        () if declared.is_empty() => String::new(),
        () if held.is_empty() => "No cell is one of those declared.".to_owned(),
        () => format!("Declared are cells of {held}."),
    };
    let doubt = coded.map_or_else(String::new, |Suspects { found, value }| {
        format!(
            "Far beyond all others of their column: {found}. If they stand for missing values, write {value} here, and \
             what becomes of them in `missing` and `missing_target`."
        )
    });
    Some(("missing_values", value_of(declared), [about, doubt].join(" ").trim().to_owned()))
}

/// The value of the key as a user would write it.
fn value_of(declared: &MissingValues) -> Value {
    let cell = |text: &String| match text.parse::<i64>() {
        Ok(number) if number.to_string() == *text => Value::Integer(number),
        _ => Value::String(text.clone()),
    };
    let list = |cells: &Vec<String>| Value::Array(cells.iter().map(cell).collect());
    match declared {
        MissingValues::Everywhere(cells) => list(cells),
        MissingValues::InColumns(columns) => {
            Value::Table(columns.iter().map(|(name, cells)| (name.clone(), list(cells))).collect())
        }
    }
}

fn missing(choice: &Choice<'_>) -> Vec<Line> {
    let counted = |column: &SurveyColumn| format!("{} ({} of {})", shown(column), column.missing, column.cells);
    let (features, target) = (choice.with_missing(), choice.target);
    let mut lines = Vec::new();
    if !features.is_empty() {
        let found = format!("Missing are cells of {}.", joined(features.into_iter().map(counted), ", "));
        lines.push(("missing", Value::String(Missing::Indicator.word().into()), found));
    }
    if target.missing > 0 {
        let found = format!("Missing are cells of {}: rows without it are left out.", counted(target));
        lines.push(("missing_target", Value::String("drop".into()), found));
    }
    lines
}

/// The columns as a config names them.
fn keys<'a>(columns: impl Iterator<Item = &'a SurveyColumn>, survey: &Survey) -> Value {
    Value::Array(columns.map(|column| Value::String(key_of(column, &survey.columns))).collect())
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
