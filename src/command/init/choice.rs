//! What the columns of a table probably mean: which one to predict, and which one says whose rows these are.

use super::names;
use super::text::one_line;
use super::uses::{self, Use, are_all_different, is_measured, is_zero_or_one};
use crate::datasets::columns::{MOST_NUMBERED_CLASSES, Names, note_on_alike};
use crate::datasets::{Survey, SurveyColumn, Task, is_without_event, share};

/// The largest number of distinct texts that are taken for classes, or for clients.
const MOST_NAMES: usize = 100;

/// The rows of each person from which on more persons than [`MOST_NAMES`] are taken for clients.
const MANY_ROWS: usize = 20;

/// With fewer rows of the rarest class, or a smaller share of all, test rows are drawn from each class.
const FEW_OF_A_CLASS: (usize, f64) = (50, 0.05);

/// The share of the rows that are for testing.
pub const TEST_SHARE: f64 = 0.2;

/// With more classes that are whole numbers a target may as well be a count.
const MOST_NUMBERS_OF_CLASSES: usize = 10;

/// The meaning of a table's columns.
pub struct Choice<'a> {
    /// The column to predict.
    pub target: &'a SurveyColumn,
    /// How its name is written in the config.
    pub target_key: String,
    /// Columns with a single value whose names say more than the target's that they are to be predicted. Empty where the
    /// user names the target.
    pub constant_outcomes: Vec<&'a SurveyColumn>,
    /// Other columns that could be predicted.
    pub other_targets: Vec<&'a SurveyColumn>,
    /// What the target is.
    pub task: Task,
    /// Whose rows the table has.
    whose: Whose,
    /// The column of the natural clients.
    pub client: Option<&'a SurveyColumn>,
    /// A column that could be that of the clients, if none of its cells were missing.
    incomplete_client: Option<&'a SurveyColumn>,
    /// The last column, where it has too many texts to be taken for the target.
    unlikely_target: Option<&'a SurveyColumn>,
    /// Other columns that could be that of the clients.
    pub other_clients: Vec<&'a SurveyColumn>,
    /// The other columns, and what becomes of them.
    pub uses: Vec<(&'a SurveyColumn, Use)>,
    /// The number of rows.
    pub rows: usize,
}

/// Whose rows a table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of all clients of a run in one process.
    ManyClients,
    /// Those of one site of a federation.
    OneSite,
}

impl<'a> Choice<'a> {
    /// The choice for a table, with the target that the user names.
    ///
    /// # Errors
    /// There is no such column, or no column is left for the features.
    pub fn of(survey: &'a Survey, target: Option<&str>, whose: Whose) -> Result<Self, String> {
        let columns = &survey.columns;
        if columns.len() < 2 {
            return Err("the table has a single column; it takes one to predict and one to predict it from. Cells are separated \
                        by `,`, `;`, `|` or tabs"
                .into());
        }
        let is_asked = target.is_some();
        let (target, target_key, constant_outcomes) = match target {
            Some(key) => (find(columns, key)?, key.to_owned(), Vec::new()),
            None => {
                let target = guess(survey).ok_or("no column has two values, so there is nothing to predict")?;
                let constant = constant_outcomes(columns, target);
                // A site may have rows of one class alone.
                match constant.first().filter(|_| whose == Whose::OneSite) {
                    Some(target) => (*target, key_of(target, columns), Vec::new()),
                    None => (target, key_of(target, columns), constant),
                }
            }
        };
        let is_guessed = !is_asked && names::target_rank(target).is_none();
        let unlikely_target =
            last(columns).filter(|column| is_guessed && column.index != target.index && has_many_texts(column));
        let is_candidate = |column: &&SurveyColumn| column.index != target.index && may_be_client(column, survey.rows);
        let candidates: Vec<&SurveyColumn> = match whose {
            Whose::ManyClients => columns.iter().filter(is_candidate).collect(),
            Whose::OneSite => Vec::new(),
        };
        // Two columns are the target and its feature; a third one may be the clients.
        let client = client(&candidates, survey.rows).filter(|_| columns.len() > 2);
        let taken = |column: &&SurveyColumn| {
            column.index == target.index || client.is_some_and(|client| client.index == column.index)
        };
        let features = columns.iter().filter(|column| !taken(column));
        let use_of = |column: &SurveyColumn| match whose == Whose::OneSite && names_the_site(column) {
            true => {
                Use::Nothing("its only value names the place, by the column's name, and a site is one place".into())
            }
            false if whose == Whose::OneSite && names::is_of_persons(column) && !column.is_numeric() => Use::Id,
            false => match Use::of(column, survey) {
                // Another site may have other numbers in it, and all need the same keys.
                Use::Boolean if whose == Whose::OneSite && is_zero_or_one(column) => Use::Number,
                of => of,
            },
        };
        // A place that most rows have is that of all.
        let lacks_some = |column: &&SurveyColumn| {
            let is_place = names::is_client(column) && !names::is_person(column);
            let in_some = column.missing > 0 && 2 * column.missing < column.cells;
            is_place && in_some && !taken(column) && names_clients(column, survey.rows)
        };
        let incomplete_client = columns.iter().find(lacks_some).filter(|_| whose == Whose::ManyClients);
        let uses: Vec<(&SurveyColumn, Use)> = features.map(|column| (column, use_of(column))).collect();
        if !uses.iter().any(|(_, of)| of.is_feature()) {
            return Err(format!("there is nothing to predict {} from: {}", shown(target), reasons(&uses)));
        }
        Ok(Self {
            target,
            target_key,
            constant_outcomes,
            other_targets: other_targets(&uses),
            task: task_of(target),
            whose,
            client,
            incomplete_client,
            unlikely_target,
            other_clients: candidates.into_iter().filter(|column| !taken(column)).collect(),
            uses,
            rows: survey.rows,
        })
    }

    /// Whether the target has two classes.
    pub fn has_two_classes(&self) -> bool {
        self.task == Task::Classification && self.target.distinct() == Some(2)
    }

    /// The line of a study with its metrics, for two classes: those of any study, and the AUROC, which says of a rare event what
    /// an accuracy does not. Empty for other targets.
    pub fn metrics_of_study(&self) -> &'static str {
        match self.has_two_classes() {
            true => "metrics = [\"accuracy\", \"nll\", \"ece\", \"brier\", \"auroc\"]\n",
            false => "",
        }
    }

    /// The columns of features with missing cells.
    pub fn with_missing(&self) -> Vec<&'a SurveyColumn> {
        let features = self.uses.iter().filter(|(_, of)| of.is_feature()).map(|(column, _)| *column);
        features.filter(|column| column.missing > 0).collect()
    }

    /// The class with the fewest rows and their number, where a random share of all rows may have too few of them.
    pub fn rare_class(&self) -> Option<(&'a String, usize)> {
        let values = self.target.values.as_ref().filter(|_| self.task == Task::Classification)?;
        let (class, rows) = values.iter().min_by_key(|(_, rows)| **rows)?;
        let (least, share) = FEW_OF_A_CLASS;
        (*rows < least || (*rows as f64) < share * self.target.present() as f64).then_some((class, *rows))
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

    /// The class that the report is about, and the other one; `None` where there are not two. That is the second in sorted
    /// order, unless its word and not the other's says that there was nothing, such as `nein` beside `ja`.
    pub fn positive(&self) -> Option<(String, String)> {
        let values = self.target.values.as_ref().filter(|_| self.task == Task::Classification)?;
        let mut names = Names::default();
        values.keys().for_each(|value| {
            names.id(value);
        });
        match &names.sorted().0[..] {
            [first, second] => {
                let says_nothing = [first, second].map(|class| is_without_event(class));
                let [positive, other] = if says_nothing == [false, true] { [first, second] } else { [second, first] };
                Some((positive.clone(), other.clone()))
            }
            _ => None,
        }
    }

    /// A sentence for each of the constant outcomes.
    pub fn about_constant_outcomes(&self) -> Vec<String> {
        let value = |column: &SurveyColumn| column.values.as_ref().and_then(|values| values.keys().next().cloned());
        let about = |column: &&SurveyColumn| {
            let value = one_line(&value(column).unwrap_or_default());
            let (column, target) = (shown(column), shown(self.target));
            format!("{column} is named like an outcome, but its only value is `{value}`; {target} is predicted instead")
        };
        self.constant_outcomes.iter().map(about).collect()
    }

    /// That each person is a client, so that test rows are of persons with training rows.
    pub fn about_persons_as_clients(&self) -> Option<String> {
        let column = self.client.filter(|column| names::is_person(column))?;
        let name = shown(column);
        Some(format!(
            "each {name} is a client with training and test rows, so that scores are of further rows of the same ones; for new ones \
             leave `client_column` out and name it in `id` and `group_column`"
        ))
    }

    /// That texts look like the names of persons or cases with several rows each.
    pub fn about_repeated_texts(&self) -> Option<String> {
        let column = self.used(&Use::Category).into_iter().find(|column| uses::may_be_repeated_ids(column))?;
        Some(format!(
            "{} has {} texts with digits, each in several rows on average: where they are persons or cases, name it in `id` and \
             `group_column` in the place of `categorical`, or training and test rows are of the same ones",
            shown(column),
            column.distinct()?
        ))
    }

    /// Why a column is not that of the clients, which it would be or could be.
    pub fn about_incomplete_client(&self) -> Option<String> {
        let column = self.incomplete_client?;
        let (name, line, missing) = (shown(column), column.first_missing?, column.missing);
        let other = self.client.filter(|client| !names::is_person(client));
        let (would, instead) = match other {
            Some(other) => ("could", format!(" in the place of {}", shown(other))),
            None => ("would", String::new()),
        };
        let are = if missing == 1 { "one of its cells is".to_owned() } else { format!("{missing} of its cells are") };
        Some(format!(
            "{name} {would} be the clients{instead}, but {are} missing, the first in line {line}: write the client \
             there, or take these rows out, and repeat the command"
        ))
    }

    /// That the last column is not predicted, as it has too many texts.
    pub fn about_unlikely_target(&self) -> Option<String> {
        let column = self.unlikely_target?;
        let (name, target) = (shown(column), shown(self.target));
        Some(format!(
            "{name}, the last column, has more than {MOST_NAMES} texts, which are many for classes; {target} is predicted \
             instead, unless --target names another"
        ))
    }

    /// That whole numbers which are taken for classes may be a count.
    pub fn about_count(&self) -> Option<String> {
        let are_many = self.target.distinct().is_some_and(|classes| classes > MOST_NUMBERS_OF_CLASSES);
        (self.task == Task::Classification && self.target.is_numeric() && are_many).then(|| {
            format!(
                "the whole numbers of {} are taken for classes; if it is a count or a score, set data.task = \"regression\"",
                shown(self.target)
            )
        })
    }

    /// That classes, clients or categories differ in their spelling alone.
    pub fn about_alike(&self) -> Option<String> {
        let target = (self.task == Task::Classification).then_some(self.target);
        let columns = target.into_iter().chain(self.client).chain(self.used(&Use::Category));
        let texts = columns.filter_map(|column| {
            let name = column.name.clone().unwrap_or_else(|| column.index.to_string());
            Some((one_line(&name), column.values.as_ref()?.keys().cloned().collect()))
        });
        let texts: Vec<(String, Vec<String>)> = texts.collect();
        note_on_alike("the table", texts.iter().map(|(name, texts)| (name.clone(), &texts[..])))
    }

    /// Why no run can begin with this target; `None` where one can.
    pub fn untrainable(&self) -> Option<String> {
        let target = shown(self.target);
        match (self.task, self.target.distinct()) {
            (Task::Classification, Some(1)) if self.whose == Whose::ManyClients => Some(format!(
                "no run can begin: {target} has a single value, and a classification needs two; name another column with \
                 --target"
            )),
            (Task::Classification, _) if self.leaves_no_test_row() => Some(format!(
                "no run can begin: each class of {target} has so few rows that none of them is for testing; name another \
                 column with --target"
            )),
            (Task::Regression, _) => self.target_s_text().map(|(line, cell)| {
                format!(
                    "no run can begin before the cells of {target} are numbers or missing; the first other one is `{cell}` in \
                     line {line}"
                )
            }),
            _ => None,
        }
    }

    /// Whether no class gives a row for testing, where test rows are drawn from each class.
    fn leaves_no_test_row(&self) -> bool {
        let most = self.target.values.iter().flat_map(|values| values.values()).max();
        self.rare_class().is_some() && most.is_some_and(|most| share::rounded(TEST_SHARE, *most) == 0)
    }

    /// The first cell of a target of numbers that is neither a number nor missing, with its line.
    pub fn target_s_text(&self) -> Option<(u64, String)> {
        let (line, cell) = self.target.other.as_ref().filter(|_| !self.target.are_all(self.target.numbers))?;
        Some((*line, one_line(cell)))
    }

    /// The choice in a sentence.
    pub fn summary(&self) -> String {
        let (rows, features) = (self.rows, self.uses.iter().filter(|(_, of)| of.is_feature()).count());
        let what = match (self.task, self.target.distinct()) {
            (Task::Classification, Some(classes)) => {
                let plural = if classes == 1 { "class" } else { "classes" };
                format!("classification of {} ({classes} {plural})", shown(self.target))
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
        _ if are_all_different(column) => format!("{}: each row has another cell", shown(column)),
        _ => format!("{}: it is an id by its name", shown(column)),
    };
    uses.iter().take(12).map(reason).collect::<Vec<_>>().join("; ")
}

/// A column as the config names it: by its name, or by its place.
///
/// # Arguments
/// * `columns`: all columns; a name takes precedence over a place, so that a place that is also a name is counted from the end
pub fn key_of(column: &SurveyColumn, columns: &[SurveyColumn]) -> String {
    let width = columns.len();
    let (from_start, from_end) = (column.index.to_string(), format!("-{}", width - column.index));
    match &column.name {
        Some(name) if !name.is_empty() => name.clone(),
        Some(_) if columns.iter().any(|other| other.name.as_ref() == Some(&from_start)) => from_end,
        None if column.index + 1 == width => from_end,
        _ => from_start,
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

/// The last column that has a cell: a separator at the ends of lines, as some programs write it, makes a column of none.
fn last(columns: &[SurveyColumn]) -> Option<&SurveyColumn> {
    columns.iter().rfind(|column| column.present() > 0)
}

/// The column that is probably to be predicted: by its name, else the last one that can be, else the first.
fn guess(survey: &Survey) -> Option<&SurveyColumn> {
    let columns = &survey.columns;
    let can = |column: &&SurveyColumn| is_discrete(column) || (holds_numbers(column) && column.distinct() != Some(1));
    let named = columns.iter().filter(can).filter_map(|column| Some((names::target_rank(column)?, column)));
    let names_clients = |column: &SurveyColumn| names::is_client(column) && !is_measured(column);
    let is_other = |column: &&SurveyColumn| names_clients(column) || Use::of(column, survey) == Use::Id;
    let mostly_there = |column: &&SurveyColumn| 2 * column.present() >= column.cells;
    named
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, column)| column)
        .or_else(|| last(columns).filter(|column| can(column) && mostly_there(column) && !is_other(column)))
        .or_else(|| columns.iter().find(|column| is_discrete(column) && column.missing == 0 && !is_other(column)))
        .or_else(|| columns.iter().find(can))
}

/// The columns with a single value whose names say more than that of the target that they are to be predicted.
fn constant_outcomes<'a>(columns: &'a [SurveyColumn], target: &SurveyColumn) -> Vec<&'a SurveyColumn> {
    let rank = names::target_rank(target).unwrap_or(usize::MAX);
    let says_more = |column: &&SurveyColumn| names::target_rank(column).is_some_and(|own| own < rank);
    columns.iter().filter(|column| column.distinct() == Some(1)).filter(says_more).collect()
}

/// The columns that could be predicted as well.
fn other_targets<'a>(uses: &[(&'a SurveyColumn, Use)]) -> Vec<&'a SurveyColumn> {
    let others = uses.iter().filter(|(column, of)| *of != Use::Id && is_discrete(column));
    others.map(|(column, _)| *column).collect()
}

/// Whether the cells that are not missing are few distinct texts or whole numbers: the classes of a classification.
fn is_discrete(column: &SurveyColumn) -> bool {
    let is_numeric = column.are_all(column.numbers);
    let most = if is_numeric { MOST_NUMBERED_CLASSES } else { MOST_NAMES };
    (!is_numeric || column.whole)
        && column.distinct().is_some_and(|count| (2..=most).contains(&count) && count < column.present())
}

/// Whether the cells are too many texts for classes, and neither ids nor a text of each row's own.
fn has_many_texts(column: &SurveyColumn) -> bool {
    let count = column.distinct().unwrap_or(column.about_distinct);
    let are_many = count > MOST_NAMES && 2 * count <= column.present();
    are_many && !holds_numbers(column) && !names::is_id(column) && !column.are_all(column.dates)
}

/// Whether the cells may be names of clients: no measured values, and two or more, each with two rows on average. Every row
/// has a client.
fn may_be_client(column: &SurveyColumn, rows: usize) -> bool {
    column.missing == 0 && names_clients(column, rows)
}

/// As [`may_be_client`], but for missing cells.
fn names_clients(column: &SurveyColumn, rows: usize) -> bool {
    let is_name = !column.is_numeric() && column.distinct().is_some_and(|count| count <= MOST_NAMES);
    let is_candidate = (is_name || names::is_client(column)) && !is_measured(column);
    is_candidate && column.distinct().is_some_and(|count| count >= 2 && 2 * count <= rows)
}

/// The column of the clients among the candidates: that of a place by its name, else that of persons who are few or have
/// many rows each.
fn client<'a>(candidates: &[&'a SurveyColumn], rows: usize) -> Option<&'a SurveyColumn> {
    let named = || candidates.iter().copied().filter(|column| names::is_client(column));
    let are_clients = |column: &&SurveyColumn| {
        column.distinct().is_some_and(|count| count <= MOST_NAMES || MANY_ROWS * count <= rows)
    };
    named().find(|column| !names::is_person(column)).or_else(|| named().find(are_clients))
}

/// Whether all cells are one name of a place, as the column's name says.
fn names_the_site(column: &SurveyColumn) -> bool {
    let is_place = names::is_client(column) && !names::is_person(column) && !is_measured(column);
    is_place && column.distinct() == Some(1)
}

/// Whether a column holds numbers. A few cells that are neither number nor missing make no classes of many numbers.
fn holds_numbers(column: &SurveyColumn) -> bool {
    let are_many = column.distinct().is_none_or(|count| count > MOST_NAMES);
    column.are_all(column.numbers) || (are_many && 2 * column.numbers > column.present())
}

fn task_of(target: &SurveyColumn) -> Task {
    let are_classes = target.whole && target.distinct().is_some_and(|count| count <= MOST_NUMBERED_CLASSES);
    if holds_numbers(target) && !are_classes { Task::Regression } else { Task::Classification }
}
