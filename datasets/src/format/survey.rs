//! What a user's table looks like before anybody says what its columns mean: the separator of its cells, whether it has a
//! header, and for each column how many of its cells are numbers, blank or text.

use super::header::Header;
use super::lines::Lines;
use super::{open, read_error};
use crate::DataError;
use crate::columns::{Notation, is_missing};
use csv::{ByteRecord, ReaderBuilder, Trim};
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

/// The separators that are looked for, the more frequent ones first.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The number of bytes at a file's beginning from which the separator is found.
const BEGINNING: u64 = 64 * 1024;

/// The number of lines from which the separator is found.
const LINES: usize = 100;

/// The largest number of distinct cells of a column that are counted one by one.
const DISTINCT: usize = 1000;

/// A table, looked at.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The ASCII character between the cells.
    pub delimiter: u8,
    /// Whether the first line holds the names of the columns.
    pub header: bool,
    /// The number of lines without the header.
    pub rows: usize,
    /// The columns, in the file's order.
    pub columns: Vec<SurveyColumn>,
}

/// A column of a table, looked at.
#[derive(Clone, Debug, Default)]
pub struct SurveyColumn {
    /// Its index, from 0.
    pub index: usize,
    /// Its name in the header.
    pub name: Option<String>,
    /// The number of cells.
    pub cells: usize,
    /// The number of cells that are finite numbers.
    pub numbers: usize,
    /// Whether all these numbers are whole.
    pub whole: bool,
    /// The number of cells that are blank, or a mark of a missing value such as `NA` or `?`.
    pub missing: usize,
    /// The number of cells that are numbers with a decimal comma.
    pub decimal_commas: usize,
    /// The first cell that is no finite number, with its line.
    pub other: Option<(u64, String)>,
    /// How often each distinct cell occurs; `None` where there are more than a thousand.
    pub values: Option<BTreeMap<String, usize>>,
}

impl SurveyColumn {
    /// Whether every cell is a finite number.
    pub fn is_numeric(&self) -> bool {
        self.other.is_none()
    }

    /// The number of distinct cells; `None` for more than a thousand.
    pub fn distinct(&self) -> Option<usize> {
        self.values.as_ref().map(BTreeMap::len)
    }

    fn add(&mut self, cell: &[u8], line: u64) {
        let text = String::from_utf8_lossy(cell);
        self.cells += 1;
        match text.parse().ok().filter(|number: &f64| number.is_finite()) {
            Some(number) => {
                self.whole &= number.fract() == 0.0;
                self.numbers += 1;
            }
            None => {
                self.other.get_or_insert_with(|| (line, super::table::text(cell)));
                self.missing += usize::from(is_missing(cell));
                self.decimal_commas += usize::from(is_number_with_comma(&text));
            }
        }
        if let Some(values) = &mut self.values {
            *values.entry(text.into_owned()).or_default() += 1;
            if values.len() > DISTINCT {
                self.values = None;
            }
        }
    }
}

/// Looks at a table, which may be gzipped; the memory does not grow with its number of lines.
///
/// # Errors
/// The file cannot be read or has no data row, a line has another number of cells than the first one, or two columns have
/// one name.
pub fn survey(path: &Path) -> Result<Survey, DataError> {
    let delimiter = find_delimiter(&beginning(path)?);
    let mut lines = Lines::open(path, delimiter)?;
    lines.header(Header::Auto, &[], &Notation::default());
    let names = lines.names.clone();
    check_names(path, names.as_deref().unwrap_or_default())?;
    let column = |index: usize| SurveyColumn {
        index,
        name: names.as_ref().map(|names| names[index].clone()),
        whole: true,
        values: Some(BTreeMap::new()),
        ..SurveyColumn::default()
    };
    let mut columns: Vec<SurveyColumn> = (0..lines.width).map(column).collect();
    let mut rows = 0;
    while lines.next()? {
        let (cells, line) = lines.cells();
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell, line));
        rows += 1;
    }
    match rows {
        0 => Err(DataError::Empty { path: path.to_path_buf() }),
        rows => Ok(Survey { delimiter, header: names.is_some(), rows, columns }),
    }
}

fn reader(delimiter: u8) -> ReaderBuilder {
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).trim(Trim::All).delimiter(delimiter);
    builder
}

/// The first lines of a file; the last of them may be cut off.
fn beginning(path: &Path) -> Result<Vec<u8>, DataError> {
    let source = open(path)?;
    let mut bytes = Vec::new();
    source.reader.take(BEGINNING).read_to_end(&mut bytes).map_err(|error| read_error(path, source.gzipped, error))?;
    Ok(bytes)
}

/// The separator by which all lines have the same number of cells, at least two, and the largest share of these are
/// numbers; of several the one with the most cells; a comma where there is none.
fn find_delimiter(bytes: &[u8]) -> u8 {
    let mut best = None;
    for delimiter in DELIMITERS {
        let score = score(bytes, delimiter);
        if score.is_some_and(|score| best.is_none_or(|(_, highest)| score > highest)) {
            best = score.map(|score| (delimiter, score));
        }
    }
    best.map_or(b',', |(delimiter, _)| delimiter)
}

/// The share of numbers in the cells, and the number of cells in a line; `None` where lines differ or have a single cell.
fn score(bytes: &[u8], delimiter: u8) -> Option<(f64, usize)> {
    let is_whole = (bytes.len() as u64) < BEGINNING;
    let records: Vec<ByteRecord> =
        reader(delimiter).from_reader(bytes).into_byte_records().flatten().take(LINES).collect();
    let kept = if is_whole || records.len() == LINES { records.len() } else { records.len().saturating_sub(1) };
    let width = records.first()?.len();
    if width < 2 || records[..kept].iter().any(|record| record.len() != width) {
        return None;
    }
    let is_number = |cell: &[u8]| {
        let text = String::from_utf8_lossy(cell);
        text.parse::<f64>().is_ok() || (delimiter != b',' && is_number_with_comma(&text))
    };
    // The first line may be a header.
    let cells = || records[..kept].iter().skip(1).flatten();
    let numbers = cells().filter(|cell| is_number(cell)).count();
    Some((numbers as f64 / cells().count().max(1) as f64, width))
}

fn is_number_with_comma(text: &str) -> bool {
    text.matches(',').count() == 1 && !text.contains('.') && text.replace(',', ".").parse::<f64>().is_ok()
}

fn check_names(path: &Path, names: &[String]) -> Result<(), DataError> {
    let mut seen = HashSet::new();
    let Some(name) = names.iter().find(|name| !seen.insert(*name)) else { return Ok(()) };
    let name = super::table::text(name.as_bytes());
    let problem = format!("two columns are named `{name}`; give each a name of its own");
    Err(DataError::Columns { path: path.to_path_buf(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey_of(text: &str) -> Survey {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        survey(file.path()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_separator_is_the_one_by_which_lines_agree_and_cells_are_numbers() {
        for (text, delimiter, width) in [
            ("a,b\n1,2\n3,4\n", b',', 2),
            ("a;b\n1;2\n", b';', 2),
            ("a\tb\tc\n1\t2\tx y\n", b'\t', 3),
            ("1|2\n3|4\n", b'|', 2),
            // Decimal commas: by the comma the lines have three cells each.
            ("1,5;2,5\n3,0;4,1\n", b';', 2),
            // Texts with another separator in them.
            ("a,b\n1,\"x;y\"\n2,\"z;w\"\n", b',', 2),
            ("one\n1\n2\n", b',', 1),
        ] {
            let found = survey_of(text);
            assert_eq!((found.delimiter, found.columns.len()), (delimiter, width), "{text:?}");
        }
    }

    #[test]
    fn a_first_line_without_a_number_is_a_header() {
        for (text, header, rows) in [("a,b\n1,2\n", true, 1), ("1,x\n2,y\n", false, 2), ("NA,?\n1,2\n", false, 2)] {
            let found = survey_of(text);
            assert_eq!((found.header, found.rows), (header, rows), "{text:?}");
        }
    }

    #[test]
    fn cells_are_counted_by_what_they_are() {
        let found = survey_of("n,w,t,m,c\n1.5,1,a,3,\"1,5\"\n2e3,2,b,,\"2,25\"\n-1,3,a,NA,0\n");
        let [n, w, t, m, c] = &found.columns[..] else { panic!("{found:?}") };
        assert!(n.is_numeric() && !n.whole && w.is_numeric() && w.whole);
        assert_eq!((t.numbers, t.distinct(), t.other.clone()), (0, Some(2), Some((2, "a".into()))));
        assert_eq!((m.numbers, m.missing, m.other.clone()), (1, 2, Some((3, String::new()))));
        assert_eq!((c.numbers, c.decimal_commas), (1, 2));
        assert_eq!(t.values.as_ref().unwrap()["a"], 2);
    }

    #[test]
    fn a_column_of_many_texts_is_not_counted_one_by_one() {
        let text: String = (0..1001).map(|row| format!("x{row},{}\n", row % 7)).collect();
        let found = survey_of(&format!("id,k\n{text}"));
        assert_eq!((found.columns[0].distinct(), found.columns[1].distinct()), (None, Some(7)));
    }

    #[test]
    fn a_table_that_is_none_is_refused_with_the_reason() {
        let message = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            survey(file.path()).unwrap_err().to_string()
        };
        assert!(message("").contains("no data rows"));
        assert!(message("a,b\n").contains("no data rows"));
        assert!(message("a,a\n1,2\n").contains("two columns are named `a`"));
        assert!(message("a,b\n1,2\n\n3\n").contains("line 4: 1 columns, expected 2"));
    }
}
