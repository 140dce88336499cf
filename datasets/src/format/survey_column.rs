//! A column of a table before anybody says what it means: how many of its cells are numbers, dates, yes or no, missing or
//! something else.

use crate::columns::codes::{Extremes, FarValues, exact, has_different};
use crate::columns::{
    CellKind, Codes, DateFormat, Decimal, MissingCells, Notation, has_thousands, is_missing, may_be_thousands, merged,
    sign, spelt, text, unit,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The largest number of distinct cells of a column that are counted one by one.
const DISTINCT: usize = 1000;

/// The formats of dates that are looked for. Of several that fit equally well, the first is taken.
pub(super) const DATE_FORMATS: [&str; 9] = [
    "YYYY-MM-DD",
    "DD.MM.YYYY",
    "DD/MM/YYYY",
    "MM/DD/YYYY",
    "YYYY/MM/DD",
    "DD-MM-YYYY",
    "MM-DD-YYYY",
    "YYYY.MM.DD",
    "YYYYMMDD",
];

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
    /// The line of the first of them.
    pub first_missing: Option<u64>,
    /// The number of these that are declared, and neither blank nor one of the usual marks.
    pub declared: usize,
    /// The number of cells that are finite numbers, with the table's decimal mark.
    pub numbers: usize,
    /// Whether all these numbers are whole.
    pub whole: bool,
    /// Whether its cells are 0, 1, 2, … or 1, 2, 3, … in the order of the lines.
    pub counts_up: bool,
    /// The number of cells that are numbers with the other decimal mark alone, which does not stand between thousands.
    pub other_mark: usize,
    /// The number of cells that are numbers with marks between the thousands: `4,512.33`, and `1,234` where the table's
    /// decimal mark is the point.
    pub thousands: usize,
    /// The number of cells that are numbers with a sign, such as `12 %`.
    pub signs: usize,
    /// The number of cells that are numbers with the unit of the first such cell, such as `82 kg`.
    pub units: usize,
    /// This unit.
    pub unit: Option<String>,
    /// The number of cells that are words for yes and no, or 1 and 0.
    pub booleans: usize,
    /// The number of cells that are dates in the table's format.
    pub dates: usize,
    /// The number of cells that are dates in the one other format that most of them have.
    pub other_dates: usize,
    /// The first cell that is neither missing nor a number, with its line.
    pub other: Option<(u64, String)>,
    /// The same of dates in the format that most of the cells have; in the table's where all have another one.
    pub not_date: Option<(u64, String)>,
    /// The number of cells that are this text, in upper or lower case.
    pub alike: usize,
    /// How often each distinct cell occurs that is not missing; `None` where there are more than a thousand. Spellings
    /// that are one class in training are one here (`1`, `1.0`).
    pub values: Option<BTreeMap<String, usize>>,
    /// Whether some cell that is not missing occurs twice.
    pub repeats: bool,
    /// Whether a sample of the distinct cells tells that, as there are too many.
    pub is_sample: bool,
    /// About how many distinct cells there are that are not missing, also where there are more than a thousand.
    pub about_distinct: usize,
    /// Numbers far beyond all others, or dates in a column of dates, which may stand for missing values.
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

    /// A cell read in one way.
    fn read_as(&self, reading: usize, cell: &str) -> Option<f64> {
        match reading.checked_sub(2) {
            None => self.both()[reading].number(cell),
            Some(format) => self.dates[format].days(cell),
        }
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
    /// How often each distinct cell occurs that is not missing; `None` where there are more than a thousand.
    values: Option<HashMap<String, usize>>,
    point: Numbers,
    comma: Numbers,
    /// The number of cells that are their line's number, from 0 and from 1.
    of_lines: [usize; 2],
    /// The number of cells that are numbers with a point alone, and with a comma alone.
    alone: [usize; 2],
    /// The number of these that may as well be numbers with marks between the thousands.
    may_be_thousands: [usize; 2],
    again: Again,
    /// The number of cells that are yes or no where numbers have a point, and where they have a comma.
    booleans: [usize; 2],
    dates: [usize; DATE_FORMATS.len()],
    /// The first cell that is no date in each format, with its line.
    not_dates: [Option<(u64, String)>; DATE_FORMATS.len()],
    /// The ends of a column of so many distinct cells that they are not counted.
    ends: Option<Box<[Extremes<String>; READINGS]>>,
}

/// The ways in which a cell may be a number: with a point, with a comma, and as a date in each format.
const READINGS: usize = 2 + DATE_FORMATS.len();

impl Look {
    /// Of a column of a table with so many columns.
    pub fn new(index: usize, name: Option<String>, width: usize) -> Self {
        let column = SurveyColumn { index, name, ..SurveyColumn::default() };
        Self { column, values: Some(HashMap::new()), again: Again::of_table(width), ..Self::default() }
    }

    /// Adds a cell of a line; `missing` are the missing cells where numbers have a point, and where they have a comma.
    pub fn add(&mut self, cell: &[u8], line: u64, (notations, missing): (&Notations, &[MissingCells; 2])) {
        let column = &mut self.column;
        column.cells += 1;
        let is_blank = is_missing(cell);
        if is_blank || missing.iter().any(|missing| missing.declare(column.index, cell)) {
            column.missing += 1;
            column.first_missing.get_or_insert(line);
            column.declared += usize::from(!is_blank);
            return;
        }
        let string = String::from_utf8_lossy(cell);
        let [point, comma] = notations.both().map(|notation| notation.number(&string));
        for (first, count) in self.of_lines.iter_mut().enumerate() {
            *count += usize::from(point == Some((column.cells - 1 + first) as f64));
        }
        let mut read = [None; READINGS];
        read[..2].copy_from_slice(&[point, comma]);
        let (point, comma) = (self.point.add(cell, point, line), self.comma.add(cell, comma, line));
        for (at, (alone, decimal)) in
            [(point && !comma, Decimal::Point), (comma && !point, Decimal::Comma)].into_iter().enumerate()
        {
            self.alone[at] += usize::from(alone);
            self.may_be_thousands[at] += usize::from(alone && may_be_thousands(&string, decimal));
        }
        column.signs += usize::from(!point && !comma && sign(&string).is_some());
        if let Some(unit) = unit(&string).filter(|_| !point && !comma) {
            column.units += usize::from(column.unit.get_or_insert_with(|| unit.to_owned()) == unit);
        }
        self.again.add(spelt(&string).as_bytes());
        column.thousands += usize::from(!point && !comma && has_thousands(&string));
        for (count, notation) in self.booleans.iter_mut().zip(notations.both()) {
            *count += usize::from(notation.value(CellKind::Boolean, &string).is_some());
        }
        let dates = self.dates.iter_mut().zip(&mut self.not_dates).zip(&notations.dates).zip(&mut read[2..]);
        for (((count, first), format), read) in dates {
            *read = format.days(&string);
            match read {
                Some(_) => *count += 1,
                None if first.is_none() => *first = Some((line, text(cell))),
                None => {}
            }
        }
        let Some(values) = &mut self.values else {
            self.ends.iter_mut().for_each(|ends| widen(ends, read, 1, &string));
            return;
        };
        if let Some(count) = values.get_mut(&*string) {
            *count += 1;
        } else if values.len() < DISTINCT {
            values.insert(string.into_owned(), 1);
        } else {
            let mut ends = Box::<[Extremes<String>; READINGS]>::default();
            for (cell, rows) in self.values.take().into_iter().flatten() {
                let read = std::array::from_fn(|reading| notations.read_as(reading, &cell));
                widen(&mut ends, read, rows, &cell);
            }
            widen(&mut ends, read, 1, &string);
            self.ends = Some(ends);
        }
    }

    /// The number of cells that a point alone reads, and those that a comma alone reads.
    pub fn alone(&self) -> [usize; 2] {
        self.alone
    }

    /// The same, of the cells whose mark does not stand between thousands, in a column of which these are half or more.
    pub fn surely_decimal(&self) -> [usize; 2] {
        let present = self.column.cells - self.column.missing;
        let sure = [0, 1].map(|mark| self.alone[mark] - self.may_be_thousands[mark]);
        sure.map(|count| if 2 * count >= present { count } else { 0 })
    }

    /// The formats that read all cells that are not missing.
    pub fn formats(&self) -> Vec<usize> {
        (0..DATE_FORMATS.len()).filter(|format| self.column.are_all(self.dates[*format])).collect()
    }

    /// The column, once decimal mark and format of the table are known.
    pub fn finish(self, decimal: Decimal, format: Option<usize>, notations: &Notations) -> SurveyColumn {
        let [with_point, with_comma] = self.booleans;
        let (own, other, booleans) = match decimal {
            Decimal::Point => (self.point, 1, with_point),
            Decimal::Comma => (self.comma, 0, with_comma),
        };
        // With the table's mark known, the other one stands between thousands where it can.
        let are_thousands = self.alone[other] == self.may_be_thousands[other];
        let (other_mark, thousands) = if are_thousands { (0, self.alone[other]) } else { (self.alone[other], 0) };
        let others = self.dates.iter().enumerate().filter(|(at, _)| Some(*at) != format);
        let most = (0..DATE_FORMATS.len()).rev().max_by_key(|at| self.dates[*at]);
        let is_whole = |at: &usize| self.column.are_all(self.dates[*at]);
        let judged = if most.as_ref().is_some_and(is_whole) { format } else { most };
        let mut not_dates = self.not_dates;
        let values: Option<BTreeMap<String, usize>> = self.values.map(|values| values.into_iter().collect());
        let reading = match format.filter(is_whole) {
            Some(format) => 2 + format,
            None => usize::from(decimal == Decimal::Comma),
        };
        let codes = match &values {
            Some(values) => codes(values, notations, reading),
            // So many distinct cells are more values than make others plausible.
            None => self.ends.as_ref().and_then(|ends| ends[reading].codes(|_, _| true)),
        };
        SurveyColumn {
            numbers: own.count,
            whole: own.fractions == 0,
            counts_up: self.of_lines.contains(&self.column.cells),
            other: own.other,
            alike: own.alike,
            other_mark,
            thousands: self.column.thousands + thousands,
            repeats: self.again.is_repeated,
            is_sample: self.again.zeros > 0,
            about_distinct: self.again.distinct().min(self.column.cells - self.column.missing),
            booleans,
            dates: format.map_or(0, |format| self.dates[format]),
            not_date: judged.and_then(|at| not_dates[at].take()),
            other_dates: others.map(|(_, count)| *count).max().unwrap_or(0),
            codes: codes.map(|codes| codes.written(|number, cell| written(number, cell, reading))),
            values: values.map(|values| merged(named(values, decimal))),
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

/// Adds a cell that was read in every way, in so many rows.
fn widen(ends: &mut [Extremes<String>; READINGS], read: [Option<f64>; READINGS], rows: usize, cell: &str) {
    for (ends, value) in ends.iter_mut().zip(read) {
        value.into_iter().for_each(|value| ends.add(value, rows, || cell.to_owned()));
    }
}

/// The values far beyond all others among distinct cells, read in one way.
fn codes(values: &BTreeMap<String, usize>, notations: &Notations, reading: usize) -> Option<FarValues<String>> {
    let mut numbers: Vec<(f64, usize, &String)> = Vec::new();
    for (cell, rows) in values {
        numbers.extend(notations.read_as(reading, cell).map(|value| (value, *rows, cell)));
    }
    let mut extremes = Extremes::default();
    numbers.iter().for_each(|(value, rows, cell)| extremes.add(*value, *rows, || (*cell).clone()));
    extremes.codes(|[low, high], least| {
        has_different(numbers.iter().map(|(value, ..)| *value).filter(|value| (low..=high).contains(value)), least)
    })
}

/// A number as a cell is declared missing: with a point, and a date as it stands there.
fn written(number: f64, cell: &str, reading: usize) -> String {
    if reading < 2 { exact(number) } else { cell.to_owned() }
}

/// Whether cells occur twice, and about how many are distinct, in a memory that does not grow with the rows: the hashes are
/// kept that end in so many zeros as the memory calls for. A cell that is kept is found whenever it occurs.
#[derive(Default)]
struct Again {
    kept: HashSet<u64>,
    /// The largest number of hashes that are kept.
    most: usize,
    zeros: u32,
    is_repeated: bool,
}

impl Again {
    /// The number of hashes of all columns of a table together, of 8 bytes each and as much again for the set.
    const OF_TABLE: usize = 1 << 22;
    /// The smallest number of one column: half of it still tells how many cells are distinct to some 2 %.
    const OF_COLUMN: usize = 4096;

    /// Of a column of a table with so many columns.
    fn of_table(width: usize) -> Self {
        Self { most: (Self::OF_TABLE / width.max(1)).max(Self::OF_COLUMN), ..Self::default() }
    }

    fn add(&mut self, cell: &[u8]) {
        let mut hasher = DefaultHasher::new();
        cell.hash(&mut hasher);
        let hash = hasher.finish();
        if hash.trailing_zeros() < self.zeros {
            return;
        }
        self.is_repeated |= !self.kept.insert(hash);
        while self.kept.len() > self.most {
            self.zeros += 1;
            self.kept.retain(|hash| hash.trailing_zeros() >= self.zeros);
        }
    }

    /// The number of distinct cells: exact without zeros, else with an error of some percent.
    fn distinct(&self) -> usize {
        self.kept.len() << self.zeros
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(width: usize, cells: impl Iterator<Item = usize>) -> Again {
        let mut again = Again::of_table(width);
        cells.for_each(|cell| again.add(cell.to_string().as_bytes()));
        again
    }

    #[test]
    fn cells_that_occur_twice_are_found_among_many() {
        // With a thousand columns some 4,000 hashes of each are kept.
        let most = Again::of_table(1000).most;
        for distinct in [1, 10, most, 5000, 100_000] {
            let (once, twice) = (again(1000, 0..distinct), again(1000, (0..distinct).chain(0..distinct)));
            assert!(!once.is_repeated && twice.is_repeated, "{distinct}");
            // The share of 2,048 cells or more has a standard error of 2.2 %.
            for again in [once, twice] {
                let error = (again.distinct() as f64 / distinct as f64 - 1.0).abs();
                assert!(if distinct <= most { error == 0.0 } else { error < 0.09 }, "{distinct}: {error}");
            }
        }
        // One in a hundred occurs twice.
        assert!(again(1000, (0..50_000).chain(0..500)).is_repeated);
        // With few columns a single one is found.
        let single = again(20, (0..100_000).chain([7]));
        assert!(single.is_repeated && again(20, 0..100_000).zeros == 0);
    }
}
