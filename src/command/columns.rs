//! Columns of predictions, and their rows as CSV or as JSON lines.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::datasets::Beside;
use crate::report::conformal::TargetInterval;
use crate::report::csv::text_cell;

/// A column of predictions, of which CSV may need several.
pub(super) enum Column<'a> {
    /// Columns of the file that are given as they are, and the number of its rows before these.
    Ids(&'a [Beside], usize),
    /// A text of each row, `[n]`.
    Texts(&'static str, Vec<&'a str>),
    /// A number of each row, `[n]`.
    Numbers(&'static str, Vec<f64>),
    /// Probabilities `[n, C]` of classes with these names, `[C]`.
    Probabilities(&'a [String], &'a [f64]),
    /// A list of each row, `[n]`.
    Lists(&'static str, Vec<Vec<&'a str>>),
    /// An interval of each row, `[n]`, which may be empty.
    Intervals(&'a [Option<TargetInterval>]),
}

/// The header of a CSV file.
pub(super) fn csv_header(columns: &[Column<'_>]) -> String {
    let own: Vec<String> = columns.iter().filter(|of| !matches!(of, Column::Ids(..))).map(|of| of.head(&[])).collect();
    let own: Vec<&str> = own.iter().flat_map(|heads| heads.split(',')).collect();
    let heads: Vec<String> = columns.iter().map(|of| of.head(&own)).collect();
    heads.join(",") + "\n"
}

/// The rows as CSV. A list is joined with `|`, an empty interval is blank.
pub(super) fn csv(columns: &[Column<'_>], rows: usize) -> String {
    let mut text = String::new();
    for row in 0..rows {
        for (at, column) in columns.iter().enumerate() {
            text.push_str(if at == 0 { "" } else { "," });
            column.cell(row, &mut text);
        }
        text.push('\n');
    }
    text
}

/// The rows as JSON, an object a line. Infinity is null, as is an empty interval.
pub(super) fn json_lines(columns: &[Column<'_>], rows: usize) -> String {
    let line = |row: usize| {
        let object: Map<String, Value> = columns.iter().map(|column| column.value(row)).collect();
        format!("{}\n", Value::Object(object))
    };
    (0..rows).map(line).collect()
}

impl Column<'_> {
    /// Its names. An id that is called like one of the columns `own` of the predictions has `_id` after its name.
    fn head(&self, own: &[&str]) -> String {
        match self {
            Self::Ids(ids, _) => {
                let name = |(at, id): (usize, &Beside)| {
                    let mut name = called(at, id);
                    if own.contains(&name.as_str()) {
                        name += "_id";
                    }
                    text_cell(&name).into_owned()
                };
                ids.iter().enumerate().map(name).collect::<Vec<_>>().join(",")
            }
            Self::Texts(name, _) | Self::Numbers(name, _) | Self::Lists(name, _) => (*name).to_owned(),
            Self::Probabilities(names, _) => {
                (0..names.len()).map(|class| format!("p_{class}")).collect::<Vec<_>>().join(",")
            }
            Self::Intervals(_) => "lower,upper".to_owned(),
        }
    }

    fn cell(&self, row: usize, text: &mut String) {
        // Writing to a text does not fail.
        let _ = match self {
            Self::Ids(ids, first) => {
                let cells: Vec<_> = ids.iter().map(|id| text_cell(&id.cells[first + row])).collect();
                write!(text, "{}", cells.join(","))
            }
            Self::Texts(_, texts) => write!(text, "{}", text_cell(texts[row])),
            Self::Numbers(_, numbers) => write!(text, "{}", numbers[row]),
            Self::Probabilities(names, values) => {
                let cells: Vec<String> = of_row(names, values, row).iter().map(f64::to_string).collect();
                write!(text, "{}", cells.join(","))
            }
            Self::Lists(_, lists) => write!(text, "{}", text_cell(&joined(&lists[row]))),
            Self::Intervals(intervals) => match &intervals[row] {
                Some(TargetInterval { lower, upper }) => write!(text, "{lower},{upper}"),
                None => write!(text, ","),
            },
        };
    }

    /// The key and the value in a line of JSON.
    fn value(&self, row: usize) -> (String, Value) {
        let (key, value) = match self {
            Self::Ids(ids, first) => {
                let id = |(at, id): (usize, &Beside)| (called(at, id), json!(id.cells[first + row]));
                ("id", Value::Object(ids.iter().enumerate().map(id).collect()))
            }
            Self::Texts(name, texts) => (*name, json!(texts[row])),
            Self::Numbers(name, numbers) => (*name, json!(numbers[row])),
            Self::Probabilities(names, values) => {
                let of_row = of_row(names, values, row).iter().map(|p| json!(p));
                let object: Map<String, Value> = names.iter().cloned().zip(of_row).collect();
                ("probabilities", Value::Object(object))
            }
            Self::Lists(name, lists) => (*name, json!(lists[row])),
            Self::Intervals(intervals) => {
                let ends = |TargetInterval { lower, upper }: &TargetInterval| json!({ "lower": lower, "upper": upper });
                ("interval", intervals[row].as_ref().map_or(Value::Null, ends))
            }
        };
        (key.to_owned(), value)
    }
}

/// The name of a column of the file; without a header `id`, `id_1` and so on.
fn called(at: usize, id: &Beside) -> String {
    match (&id.name, at) {
        (Some(name), _) => name.clone(),
        (None, 0) => "id".to_owned(),
        (None, at) => format!("id_{at}"),
    }
}

/// The probabilities of a row, `[C]`.
fn of_row<'a>(names: &[String], values: &'a [f64], row: usize) -> &'a [f64] {
    &values[row * names.len()..(row + 1) * names.len()]
}

/// The texts of a list, separated by `|`; a `|` or `\` in a text has a `\` before it.
fn joined(list: &[&str]) -> String {
    let escaped = list.iter().map(|text| text.replace('\\', "\\\\").replace('|', "\\|"));
    escaped.collect::<Vec<_>>().join("|")
}
