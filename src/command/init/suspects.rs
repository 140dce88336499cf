//! Cells that may stand for missing values. They are not declared, as they may be what they say: the user decides.

use super::choice::{Choice, key_of, shown};
use super::text::{LISTED, one_line};
use super::uses::{Use, lone_text};
use crate::datasets::columns::MissingValues;
use crate::datasets::{Survey, SurveyColumn};

/// Cells of some columns that may stand for missing values.
pub struct Suspects {
    /// The columns with their cells, in words.
    pub found: String,
    /// The value of `data.missing_values` that declares them, and what is declared already.
    pub value: MissingValues,
}

impl Suspects {
    /// Numbers and dates far beyond all others of their column, in features and target.
    pub fn codes(survey: &Survey, choice: &Choice<'_>) -> Option<Self> {
        let columns = [Use::Number, Use::Date].iter().flat_map(|of| choice.used(of)).chain([choice.target]);
        Self::of(survey, columns.filter_map(|column| codes(column, survey)))
    }

    /// These, and the only text of a column of numbers.
    pub fn all(survey: &Survey, choice: &Choice<'_>) -> Option<Self> {
        let is_used =
            |(column, of): &&(&SurveyColumn, Use)| matches!(of, Use::Number | Use::Date) || lone_text(column).is_some();
        let features = choice.uses.iter().filter(is_used).map(|(column, _)| *column);
        let columns = features.chain([choice.target]);
        Self::of(survey, columns.flat_map(|column| text(column, survey).into_iter().chain(codes(column, survey))))
    }

    fn of(survey: &Survey, columns: impl Iterator<Item = (String, (String, Vec<String>))>) -> Option<Self> {
        let (found, columns): (Vec<String>, Vec<(String, Vec<String>)>) = columns.unzip();
        columns.first()?;
        let more = if found.len() > LISTED { ", …" } else { "" };
        let found = found[..found.len().min(LISTED)].join(", ") + more;
        Some(Self { found, value: survey.missing_values.with(&columns, survey.header) })
    }
}

/// The codes of a column in words, and its name with their cells.
fn codes(column: &SurveyColumn, survey: &Survey) -> Option<(String, (String, Vec<String>))> {
    let (key, codes) = (key_of(column, &survey.columns), column.codes.as_ref()?);
    Some((codes.of_column(&one_line(&key)), (key, codes.cells().to_vec())))
}

/// The same for the only text of a column of numbers.
fn text(column: &SurveyColumn, survey: &Survey) -> Option<(String, (String, Vec<String>))> {
    let text = lone_text(column)?;
    let rows = column.present() - column.numbers;
    let plural = if rows == 1 { "row" } else { "rows" };
    let about = format!("{} (`{}` in {rows} {plural}, all others are numbers)", shown(column), one_line(text));
    Some((about, (key_of(column, &survey.columns), vec![text.to_owned()])))
}
