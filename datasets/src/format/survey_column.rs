//! A column of a table before anybody says what it means: how many of its cells are numbers, dates, yes or no, missing or
//! something else.

use crate::columns::{CellKind, Codes, DateFormat, Decimal, MissingCells, Notation, is_missing, merged, text};
use std::collections::BTreeMap;

/// The largest number of distinct cells of a column that are counted one by one.
const DISTINCT: usize = 1000;

/// The formats of dates that are looked for. Of several that fit equally well, the first is taken.
pub(super) const DATE_FORMATS: [&str; 8] =
    ["YYYY-MM-DD", "DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "YYYY/MM/DD", "DD-MM-YYYY", "MM-DD-YYYY", "YYYY.MM.DD"];

/// A column of a table, looked at.
#[derive(Clone, Debug, Default)]
pub struct SurveyColumn {
    /// Its index, from 0.
    pub index: usize,
    /// Its name in the header.
    pub name: Option<String>,
    /// The number of cells.
    pub cells: usize,
    /// The number of missing cells: those that the key `missing` of a config is about.
    pub missing: usize,
    /// The number of these that are declared, and neither blank nor one of the usual marks.
    pub declared: usize,
    /// The number of cells that are finite numbers, with the table's decimal mark.
    pub numbers: usize,
    /// Whether all these numbers are whole.
    pub whole: bool,
    /// Whether its cells are 0, 1, 2, … or 1, 2, 3, … in the order of the lines.
    pub counts_up: bool,
    /// The number of cells that are numbers with the other decimal mark alone.
    pub other_mark: usize,
    /// The number of cells that are numbers with marks between the thousands, such as `4,512.33`, and with neither decimal
    /// mark alone.
    pub thousands: usize,
    /// The number of cells that are words for yes and no, or 1 and 0.
    pub booleans: usize,
    /// The number of cells that are dates in the table's format.
    pub dates: usize,
    /// The number of cells that are dates in the one other format that most of them have.
    pub other_dates: usize,
    /// The first cell that is neither missing nor a number, with its line.
    pub other: Option<(u64, String)>,
    /// The number of cells that are this text, in upper or lower case.
    pub alike: usize,
    /// How often each distinct cell occurs that is not missing; `None` where there are more than a thousand. Spellings
    /// that are one class in training are one here (`1`, `1.0`).
    pub values: Option<BTreeMap<String, usize>>,
    /// Numbers far beyond all others, which may stand for missing values; looked for where `values` are counted.
    pub codes: Option<Codes>,
}

impl SurveyColumn {
    /// Whether every cell is a finite number.
    pub fn is_numeric(&self) -> bool {
        self.numbers == self.cells
    }

    /// The number of distinct cells that are not missing; `None` for more than a thousand.
    pub fn distinct(&self) -> Option<usize> {
        self.values.as_ref().map(BTreeMap::len)
    }

    /// The number of cells that are not missing.
    pub fn present(&self) -> usize {
        self.cells - self.missing
    }

    /// Whether there are cells that are not missing, and all of them are among `count`.
    pub fn are_all(&self, count: usize) -> bool {
        count > 0 && count == self.present()
    }
}

/// The numbers among the cells of a column, with one decimal mark.
#[derive(Default)]
struct Numbers {
    count: usize,
    fractions: usize,
    other: Option<(u64, String)>,
    alike: usize,
}

impl Numbers {
    /// Whether the cell is a finite number.
    fn add(&mut self, cell: &[u8], number: Option<f64>, line: u64) -> bool {
        match number.filter(|number| number.is_finite()) {
            Some(number) => {
                self.count += 1;
                self.fractions += usize::from(number.fract() != 0.0);
                true
            }
            None => {
                let (_, first) = self.other.get_or_insert_with(|| (line, text(cell)));
                self.alike += usize::from(cell.eq_ignore_ascii_case(first.as_bytes()));
                false
            }
        }
    }
}

/// How numbers and dates may be written.
pub(super) struct Notations {
    point: Notation,
    comma: Notation,
    dates: Vec<DateFormat>,
}

impl Notations {
    pub fn new() -> Self {
        let comma = Notation { decimal: Decimal::Comma, ..Notation::default() };
        Self { point: Notation::default(), comma, dates: DATE_FORMATS.map(DateFormat::new).into() }
    }

    /// With either decimal mark.
    pub fn both(&self) -> [&Notation; 2] {
        [&self.point, &self.comma]
    }
}

/// What is counted of a column while its table is read.
#[derive(Default)]
pub(super) struct Look {
    column: SurveyColumn,
    point: Numbers,
    comma: Numbers,
    /// The number of cells that are their line's number, from 0 and from 1.
    of_lines: [usize; 2],
    /// The number of cells that are numbers with a point alone, and with a comma alone.
    alone: [usize; 2],
    /// The number of cells that are yes or no where numbers have a point, and where they have a comma.
    booleans: [usize; 2],
    dates: [usize; DATE_FORMATS.len()],
}

impl Look {
    pub fn new(index: usize, name: Option<String>) -> Self {
        let column = SurveyColumn { index, name, values: Some(BTreeMap::new()), ..SurveyColumn::default() };
        Self { column, ..Self::default() }
    }

    /// Adds a cell of a line; `missing` are the missing cells where numbers have a point, and where they have a comma.
    pub fn add(&mut self, cell: &[u8], line: u64, (notations, missing): (&Notations, &[MissingCells; 2])) {
        let column = &mut self.column;
        column.cells += 1;
        let is_blank = is_missing(cell);
        if is_blank || missing.iter().any(|missing| missing.declare(column.index, cell)) {
            column.missing += 1;
            column.declared += usize::from(!is_blank);
            return;
        }
        let string = String::from_utf8_lossy(cell);
        let [point, comma] = notations.both().map(|notation| notation.number(&string));
        for (first, count) in self.of_lines.iter_mut().enumerate() {
            *count += usize::from(point == Some((column.cells - 1 + first) as f64));
        }
        let (point, comma) = (self.point.add(cell, point, line), self.comma.add(cell, comma, line));
        self.alone[0] += usize::from(point && !comma);
        self.alone[1] += usize::from(comma && !point);
        column.thousands += usize::from(!point && !comma && has_thousands(&string));
        for (count, notation) in self.booleans.iter_mut().zip(notations.both()) {
            *count += usize::from(notation.value(CellKind::Boolean, &string).is_some());
        }
        for (count, format) in self.dates.iter_mut().zip(&notations.dates) {
            *count += usize::from(format.days(&string).is_some());
        }
        if let Some(values) = &mut column.values {
            *values.entry(string.into_owned()).or_default() += 1;
            if values.len() > DISTINCT {
                column.values = None;
            }
        }
    }

    /// The number of cells that a point alone reads, and those that a comma alone reads.
    pub fn alone(&self) -> [usize; 2] {
        self.alone
    }

    /// The formats that read all cells that are not missing.
    pub fn formats(&self) -> Vec<usize> {
        (0..DATE_FORMATS.len()).filter(|format| self.column.are_all(self.dates[*format])).collect()
    }

    /// The column, once decimal mark and format of the table are known.
    pub fn finish(self, decimal: Decimal, format: Option<usize>) -> SurveyColumn {
        let [with_point, with_comma] = self.booleans;
        let (own, other_mark, booleans) = match decimal {
            Decimal::Point => (self.point, self.alone[1], with_point),
            Decimal::Comma => (self.comma, self.alone[0], with_comma),
        };
        let others = self.dates.iter().enumerate().filter(|(at, _)| Some(*at) != format);
        SurveyColumn {
            numbers: own.count,
            whole: own.fractions == 0,
            counts_up: self.of_lines.contains(&self.column.cells),
            other: own.other,
            alike: own.alike,
            other_mark,
            booleans,
            dates: format.map_or(0, |format| self.dates[format]),
            other_dates: others.map(|(_, count)| *count).max().unwrap_or(0),
            codes: self.column.values.as_ref().and_then(|values| codes(values, decimal)),
            values: self.column.values.map(|values| merged(named(values, decimal))),
            ..self.column
        }
    }
}

/// Distinct cells as the names that they are for a reader, with their numbers of rows.
fn named(values: BTreeMap<String, usize>, decimal: Decimal) -> BTreeMap<String, usize> {
    let notation = Notation { decimal, ..Notation::default() };
    let mut named = BTreeMap::new();
    for (cell, rows) in values {
        *named.entry(notation.name(&cell).into_owned()).or_default() += rows;
    }
    named
}

/// The numbers among distinct cells that are far beyond all others.
fn codes(values: &BTreeMap<String, usize>, decimal: Decimal) -> Option<Codes> {
    let notation = Notation { decimal, ..Notation::default() };
    let numbers = values.iter().filter_map(|(cell, rows)| Some((notation.number(cell)?, *rows)));
    Codes::of(numbers.flat_map(|(number, rows)| std::iter::repeat_n(number, rows)))
}

/// Whether a cell is a number with the same mark between all its thousands: `4,512.33`, `-4.512,33`, `1 234 567`.
fn has_thousands(cell: &str) -> bool {
    const MARKS: [char; 7] = [',', '.', ' ', '\'', '’', '\u{a0}', '\u{202f}'];
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = cell.strip_prefix(['-', '+']).unwrap_or(cell);
    MARKS.iter().any(|&mark| {
        let (whole, fraction) = number.split_once(|c| c != mark && (c == ',' || c == '.')).unwrap_or((number, "0"));
        let Some((first, others)) = whole.split_once(mark) else { return false };
        let is_first = are_digits(first) && first.len() <= 3 && !first.starts_with('0');
        is_first && others.split(mark).all(|group| are_digits(group) && group.len() == 3) && are_digits(fraction)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_have_the_same_mark_between_groups_of_three_digits() {
        for cell in ["4,512.33", "4.512,33", "1,234,567", "-12'345.5", "1 234", "1\u{202f}234,5", "+1.234.567,0"] {
            assert!(has_thousands(cell), "{cell}");
        }
        for cell in
            ["4512.33", "45,12.33", "4,5123", "0,123.4", "1,234.", ",234", "1,234 567", "1,234,56", "", "1.2.2024"]
        {
            assert!(!has_thousands(cell), "{cell}");
        }
    }
}
