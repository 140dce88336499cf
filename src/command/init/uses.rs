//! What becomes of a column that is neither target nor client: a feature of some kind, an id, or nothing.

use super::names;
use super::text::one_line;
use crate::datasets::columns::MOST_CATEGORIES;
use crate::datasets::{Survey, SurveyColumn};

/// The number of texts of a column about which nobody wonders.
const FEW: usize = 20;

/// What becomes of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// A number.
    Number,
    /// A text, which is one-hot encoded.
    Category,
    /// Yes or no, also as 1 and 0.
    Boolean,
    /// A date.
    Date,
    /// No feature; predictions are written beside it.
    Id,
    /// Nothing, for this reason.
    Nothing(String),
}

impl Use {
    /// What its cells call for.
    pub fn of(column: &SurveyColumn, survey: &Survey) -> Self {
        match () {
            () if column.present() == 0 => Self::Nothing("all its cells are missing".into()),
            () if column.are_all(column.numbers) && is_numbered(column) => Self::Id,
            () if is_repeated_id(column) => Self::Id,
            () if are_dates_in_digits(column) && column.are_all(column.dates) => Self::Date,
            () if are_dates_in_digits(column) => of_other_dates(survey),
            () if is_zero_or_one(column) => Self::Boolean,
            () if column.are_all(column.numbers) => Self::Number,
            () if column.are_all(column.booleans) => Self::Boolean,
            () if column.are_all(column.dates) => Self::Date,
            () => of_texts(column, survey),
        }
    }

    /// Whether the column is a feature.
    pub fn is_feature(&self) -> bool {
        !matches!(self, Self::Id | Self::Nothing(_))
    }
}

/// Whether the cells are the numbers 0 and 1, both of them.
pub fn is_zero_or_one(column: &SurveyColumn) -> bool {
    column.are_all(column.numbers) && column.are_all(column.booleans) && column.distinct() == Some(2)
}

/// Whether whole numbers are all different and have the name of ids, or count the rows and have no name.
fn is_numbered(column: &SurveyColumn) -> bool {
    let is_id = names::is_id(column) || (column.counts_up && names::is_not_named(column));
    column.whole && column.missing == 0 && are_all_different(column) && is_id
}

/// Whether the cells are ids by their name that several rows have, such as those of a patient with several visits.
fn is_repeated_id(column: &SurveyColumn) -> bool {
    let is_number = column.are_all(column.numbers);
    let are_many = column.distinct().is_none_or(|count| count > FEW);
    let says_id = names::says_id(column) || names::says_number(column);
    let is_named = match are_many {
        true => says_id || names::is_person(column),
        false => says_id && names::is_person(column),
    };
    is_named && (column.whole || !is_number)
}

/// The least number of different whole numbers that are taken for dates where all can be read as such: one in 27 numbers of
/// eight digits can.
const LEAST_DATES: usize = 3;

/// Whether the cells are dates without marks, such as 20240131.
fn are_dates_in_digits(column: &SurveyColumn) -> bool {
    let are_dates = column.are_all(column.dates) || column.are_all(column.other_dates);
    are_dates && column.are_all(column.numbers) && column.distinct().is_none_or(|count| count >= LEAST_DATES)
}

/// Whether many texts, nearly all of them with a digit, occur in several rows each on average: ids of persons or cases under
/// a name that says nothing.
pub fn may_be_repeated_ids(column: &SurveyColumn) -> bool {
    let Some(values) = column.values.as_ref().filter(|values| values.len() > FEW) else { return false };
    let with_digit = values.keys().filter(|text| text.contains(|c: char| c.is_ascii_digit())).count();
    10 * with_digit >= 9 * values.len() && column.present() >= 2 * values.len()
}

/// Whether each row has a cell of its own, as far as was counted.
pub fn are_all_different(column: &SurveyColumn) -> bool {
    column.cells > 2 && column.missing == 0 && !occur_twice(column)
}

/// Whether some cell that is not missing occurs twice, as far as was counted.
pub fn occur_twice(column: &SurveyColumn) -> bool {
    column.distinct().map_or(column.repeats, |count| count < column.present())
}

/// Whether cells are measured values: fractions, or a bound such as `<0.5`.
pub fn is_measured(column: &SurveyColumn) -> bool {
    let mut values = column.values.iter().flat_map(|values| values.keys());
    !column.whole || column.other_mark > 0 || column.thousands > 0 || values.any(|value| is_bound(value))
}

fn is_bound(cell: &str) -> bool {
    let number = cell.strip_prefix(['<', '>', '≤', '≥']).map(|rest| rest.trim_start_matches('=').trim_start());
    number.is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit() || ".,-".contains(first)))
}

/// Whether the cells are numbers, some of which have marks between the thousands.
pub fn has_thousands(column: &SurveyColumn) -> bool {
    column.thousands > 0 && column.are_all(column.numbers + column.other_mark + column.thousands)
}

/// What becomes of dates in another format than that of the table.
fn of_other_dates(survey: &Survey) -> Use {
    let format = survey.date_formats.first().map_or("", |format| format.as_str());
    Use::Nothing(format!("its dates are not written as `{format}`"))
}

/// What becomes of a column of texts, or of texts and numbers.
fn of_texts(column: &SurveyColumn, survey: &Survey) -> Use {
    let (present, distinct) = (column.present(), column.distinct());
    if has_thousands(column) {
        return Use::Nothing("its numbers probably have thousands separators, which are not read".into());
    }
    if column.signs > 0 && column.are_all(column.numbers + column.signs) {
        return Use::Nothing("its numbers have signs such as `%` or `€`, which are not read".into());
    }
    if column.other_mark > 0 && column.are_all(column.numbers + column.other_mark) {
        return Use::Nothing("its numbers have another decimal mark than most".into());
    }
    if column.are_all(column.other_dates) {
        return of_other_dates(survey);
    }
    let few = distinct.is_some_and(|count| count <= FEW);
    let remedy = "texts that stand for missing values can be declared with --missing-values";
    if let Some(unit) = column.unit.as_ref().filter(|_| !few && column.are_all(column.numbers + column.units)) {
        return Use::Nothing(format!("its numbers have the unit `{}`, which is not read", one_line(unit)));
    }
    if !few && 2 * column.numbers > present {
        return Use::Nothing(format!("most of its cells are numbers, but not all ({remedy})"));
    }
    if !few && most_are_dates(column) {
        return Use::Nothing(format!("most of its cells are dates of one format, but not all ({remedy})"));
    }
    // A free text has spaces; more than a thousand texts are not kept.
    let may_be_id = match &column.values {
        Some(values) => !values.keys().any(|text| text.contains(' ')),
        None => names::is_id(column),
    };
    if column.missing == 0 && are_all_different(column) && may_be_id {
        return Use::Id;
    }
    match distinct {
        None => Use::Nothing(format!("it has more than {MOST_CATEGORIES} different texts")),
        Some(count) if present > 2 && (count == present || (!few && 2 * count > present)) => {
            Use::Nothing("almost every row has a text of its own".into())
        }
        Some(_) => Use::Category,
    }
}

/// The only text of a column most of whose cells are numbers, unless it is a bound such as `<0.5`.
pub fn lone_text(column: &SurveyColumn) -> Option<&str> {
    let is_lone = column.numbers + column.alike == column.present() && 2 * column.numbers > column.present();
    let text = column.other.as_ref().filter(|_| is_lone && column.alike > 0).map(|(_, text)| text.as_str());
    text.filter(|text| !is_bound(text))
}

/// Whether more than half of the cells are dates of one format.
fn most_are_dates(column: &SurveyColumn) -> bool {
    2 * column.dates.max(column.other_dates) > column.present()
}

/// The reason with the first cell that is not a number, or no date where most cells are.
pub fn because(column: &SurveyColumn, reason: &str) -> String {
    match if most_are_dates(column) { &column.not_date } else { &column.other } {
        Some((line, cell)) => format!("{reason}, such as `{}` in line {line}", one_line(cell)),
        None => reason.to_owned(),
    }
}
