//! What the columns of a table probably mean: which one to predict, and which one says whose rows these are.

use super::uses::Use;
use crate::datasets::columns::Missing;
use crate::datasets::format::csv::Names;
use crate::datasets::{Survey, SurveyColumn, Task};

/// Names that columns to predict have, in lower case.
const TARGETS: &[&str] = &[
    "target",
    "label",
    "labels",
    "class",
    "y",
    "outcome",
    "output",
    "response",
    "diagnosis",
    "species",
    "survived",
    "default",
];

/// Names that columns of natural clients have, in lower case, with or without `_id`, `id` or `_name` at the end.
const CLIENTS: &[&str] = &[
    "client",
    "site",
    "hospital",
    "clinic",
    "centre",
    "center",
    "ward",
    "practice",
    "branch",
    "bank",
    "institution",
    "lab",
    "laboratory",
    "station",
    "region",
    "area",
    "district",
    "country",
    "plant",
    "factory",
    "store",
    "shop",
    "school",
    "device",
    "sensor",
    "machine",
    "user",
    "patient",
    "subject",
    "participant",
    "node",
    "party",
    "silo",
];

/// The largest number of distinct whole numbers that are taken for classes.
const MOST_CLASSES: usize = 20;

/// The largest number of distinct texts that are taken for classes, or for clients.
const MOST_NAMES: usize = 100;

/// The meaning of a table's columns.
pub struct Choice<'a> {
    /// The column to predict.
    pub target: &'a SurveyColumn,
    /// How its name is written in the config.
    pub target_key: String,
    /// Other columns that could be predicted.
    pub other_targets: Vec<&'a SurveyColumn>,
    /// What the target is.
    pub task: Task,
    /// The column of the natural clients.
    pub client: Option<&'a SurveyColumn>,
    /// Other columns that could be that of the clients.
    pub other_clients: Vec<&'a SurveyColumn>,
    /// The other columns, and what becomes of them.
    pub uses: Vec<(&'a SurveyColumn, Use)>,
    /// What becomes of missing cells; `None` where there are none.
    pub missing: Option<Missing>,
    /// The number of rows.
    pub rows: usize,
}

impl<'a> Choice<'a> {
    /// The choice for a table, with the target that the user names.
    ///
    /// # Errors
    /// There is no such column, or no column is left for the features.
    pub fn of(survey: &'a Survey, target: Option<&str>) -> Result<Self, String> {
        let columns = &survey.columns;
        if columns.len() < 2 {
            return Err("the table has a single column; it takes one to predict and one to predict it from".into());
        }
        let client_candidates: Vec<&SurveyColumn> =
            columns.iter().filter(|column| may_be_client(column, survey.rows)).collect();
        let by_name = |column: &&SurveyColumn| is_named(column, is_client_name);
        let (target, target_key) = match target {
            Some(key) => (find(columns, key)?, key.to_owned()),
            None => {
                let target =
                    guess(columns, survey.rows).ok_or("no column has two values, so there is nothing to predict")?;
                (target, key_of(target, columns.len()))
            }
        };
        // Two columns are the target and its feature; a third one may be the clients.
        let others = || client_candidates.iter().copied().filter(|column| column.index != target.index);
        let client = others().find(by_name).filter(|_| columns.len() > 2);
        let taken = |column: &&SurveyColumn| {
            column.index == target.index || client.is_some_and(|client| client.index == column.index)
        };
        let features = columns.iter().filter(|column| !taken(column));
        let uses: Vec<(&SurveyColumn, Use)> = features.map(|column| (column, Use::of(column, survey))).collect();
        if !uses.iter().any(|(_, of)| of.is_feature()) {
            return Err(format!("there is nothing to predict {} from: {}", shown(target), reasons(&uses)));
        }
        let missing = match target.missing {
            0 => uses.iter().any(|(column, of)| of.is_feature() && column.missing > 0).then_some(Missing::Indicator),
            _ => Some(Missing::Drop),
        };
        Ok(Self {
            target,
            target_key,
            other_targets: columns.iter().filter(|column| !taken(column) && is_discrete(column, survey.rows)).collect(),
            task: task_of(target),
            client,
            other_clients: others().filter(|column| !taken(column)).collect(),
            uses,
            missing,
            rows: survey.rows,
        })
    }

    /// The columns of which the same becomes.
    pub fn used(&self, what: &Use) -> Vec<&'a SurveyColumn> {
        self.uses.iter().filter(|(_, of)| of == what).map(|(column, _)| *column).collect()
    }

    /// The columns that are left out, each with the reason.
    pub fn left_out(&self) -> Vec<(&'a SurveyColumn, &str)> {
        let left_out = self.uses.iter().filter_map(|(column, of)| match of {
            Use::Nothing(reason) => Some((*column, reason.as_str())),
            _ => None,
        });
        left_out.collect()
    }

    /// The second of two classes in sorted order, and the first; `None` where there are not two.
    pub fn positive(&self) -> Option<(String, String)> {
        let values = self.target.values.as_ref().filter(|_| self.task == Task::Classification)?;
        let mut names = Names::default();
        values.keys().for_each(|value| {
            names.id(value);
        });
        match &names.sorted().0[..] {
            [first, second] => Some((second.clone(), first.clone())),
            _ => None,
        }
    }

    /// The choice in a sentence.
    pub fn summary(&self) -> String {
        let (rows, features) = (self.rows, self.uses.iter().filter(|(_, of)| of.is_feature()).count());
        let what = match (self.task, self.target.distinct()) {
            (Task::Classification, Some(classes)) => {
                format!("classification of {} ({classes} classes)", shown(self.target))
            }
            (Task::Classification, None) => format!("classification of {}", shown(self.target)),
            (Task::Regression, _) => format!("regression of {}", shown(self.target)),
        };
        let clients = self.client.map_or_else(String::new, |column| format!(", clients by {}", shown(column)));
        let plural = if features == 1 { "" } else { "s" };
        format!("{what} from {features} column{plural}, {rows} rows{clients}")
    }
}

/// A column as comments and messages name it.
pub fn shown(column: &SurveyColumn) -> String {
    match &column.name {
        Some(name) => format!("`{}`", name.escape_debug()),
        None => format!("column {}", column.index),
    }
}

/// Why each of some columns is no feature.
fn reasons(uses: &[(&SurveyColumn, Use)]) -> String {
    let reason = |(column, of): &(&SurveyColumn, Use)| match of {
        Use::Nothing(reason) => format!("{}: {reason}", shown(column)),
        _ => format!("{}: each row has another cell", shown(column)),
    };
    uses.iter().take(12).map(reason).collect::<Vec<_>>().join("; ")
}

/// A column as the config names it: by its name, or by its place.
pub fn key_of(column: &SurveyColumn, width: usize) -> String {
    match &column.name {
        Some(name) if !name.is_empty() => name.clone(),
        Some(_) => column.index.to_string(),
        None if column.index + 1 == width => "-1".into(),
        None => column.index.to_string(),
    }
}

/// The column of a name, or of an index from 0, negative from the end.
fn find<'a>(columns: &'a [SurveyColumn], key: &str) -> Result<&'a SurveyColumn, String> {
    let of_name = columns.iter().find(|column| column.name.as_deref() == Some(key));
    let place = || {
        let index: i64 = key.parse().ok()?;
        let index = if index < 0 { index.checked_add(columns.len() as i64)? } else { index };
        columns.get(usize::try_from(index).ok()?)
    };
    of_name.or_else(place).ok_or_else(|| {
        let names: Vec<String> = columns.iter().take(12).map(shown).collect();
        let more = if columns.len() > 12 { ", …" } else { "" };
        format!("no column `{}` for --target; there are {}{more}", key.escape_debug(), names.join(", "))
    })
}

/// The column that is probably to be predicted: by its name, else the last one that can be, else the first.
fn guess(columns: &[SurveyColumn], rows: usize) -> Option<&SurveyColumn> {
    let can =
        |column: &&SurveyColumn| is_discrete(column, rows) || (column.is_numeric() && column.distinct() != Some(1));
    let is_client = |column: &&SurveyColumn| is_named(column, is_client_name);
    let named = columns.iter().find(|column| can(column) && is_named(column, |name| TARGETS.contains(&name)));
    named
        .or_else(|| columns.last().filter(|column| can(column) && !is_client(column)))
        .or_else(|| columns.iter().find(|column| is_discrete(column, rows) && !is_client(column)))
        .or_else(|| columns.iter().find(can))
}

/// Whether the cells are few distinct texts or whole numbers, none missing: the classes of a classification.
fn is_discrete(column: &SurveyColumn, rows: usize) -> bool {
    let most = if column.is_numeric() { MOST_CLASSES } else { MOST_NAMES };
    let is_whole = !column.is_numeric() || column.whole;
    is_whole
        && column.missing == 0
        && column.distinct().is_some_and(|count| (2..=most).contains(&count) && count < rows)
}

/// Whether the cells may be names of clients: two or more, each with two rows on average.
fn may_be_client(column: &SurveyColumn, rows: usize) -> bool {
    let is_name = !column.is_numeric() && column.distinct().is_some_and(|count| count <= MOST_NAMES);
    let is_candidate = is_name || is_named(column, is_client_name);
    is_candidate && column.missing == 0 && column.distinct().is_some_and(|count| count >= 2 && 2 * count <= rows)
}

fn task_of(target: &SurveyColumn) -> Task {
    match target.are_all(target.numbers)
        && !(target.whole && target.distinct().is_some_and(|count| count <= MOST_CLASSES))
    {
        true => Task::Regression,
        false => Task::Classification,
    }
}

/// Whether the name of a column, in lower case and with `_` for spaces, is such a name.
pub fn is_named(column: &SurveyColumn, is: impl Fn(&str) -> bool) -> bool {
    column.name.as_ref().is_some_and(|name| is(&name.to_lowercase().replace([' ', '-'], "_")))
}

/// Whether columns of natural clients have this name.
pub fn is_client_name(name: &str) -> bool {
    let stem = name.strip_suffix("_id").or_else(|| name.strip_suffix("_name")).or_else(|| name.strip_suffix("id"));
    [Some(name), stem].into_iter().flatten().any(|name| CLIENTS.contains(&name))
}
