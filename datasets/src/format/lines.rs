//! A table, read line by line with the csv crate: the header, columns by name or index, numbers, and errors that name
//! line and column.

use super::header::Header;
use super::quotes::{Opening, Quotes};
use super::{columnar, open, read_error};
use crate::DataError;
use crate::columns::{CellKind, MissingCells, Notation, Purpose, Reading, text};
use csv::{ByteRecord, ReaderBuilder, Trim};
use fedstein_schema::{first, nearest};
use ndarray::Array2;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The cells at some places of a file, each a line from 1 and a column; those that cannot be read are missing.
pub(crate) fn cells_at(path: &Path, delimiter: u8, wanted: BTreeSet<(u64, usize)>) -> BTreeMap<(u64, usize), String> {
    let mut found = BTreeMap::new();
    let Some((last, _)) = wanted.last() else { return found };
    let Ok(mut lines) = Lines::open(path, delimiter) else { return found };
    if lines.header(Header::No, &[], &Notation::default()).is_err() {
        return found;
    }
    while let Ok(true) = lines.next() {
        let (cells, line) = lines.cells();
        for (line, column) in wanted.range((line, 0)..=(line, usize::MAX)) {
            found.extend(cells.get(*column).map(|cell| ((*line, *column), text(cell))));
        }
        if line >= *last {
            break;
        }
    }
    found
}

/// The lines of a file, which all have as many fields as the first one.
pub(super) struct Lines {
    path: PathBuf,
    gzipped: bool,
    /// Whether the first line has names in any case.
    pub has_header: bool,
    reader: csv::Reader<Counted>,
    newlines: Rc<RefCell<Newlines>>,
    quotes: Rc<RefCell<Quotes>>,
    record: ByteRecord,
    /// 1-based line of `record`.
    line: u64,
    /// Whether `record` was read in advance.
    waiting: bool,
    /// Whether [`Header::Auto`] took the first line as data.
    guessed_data: bool,
    /// Whether rows without any cell are read too.
    keeps_blank_rows: bool,
    /// The number of fields per line.
    pub width: usize,
    /// The header.
    pub names: Option<Vec<String>>,
}

/// What to do with a table in another encoding.
const AS_UTF_8: &str = "save the table as UTF-8 (in a spreadsheet: \"CSV UTF-8\")";

impl Lines {
    /// Opens a file. Its first line sets the number of fields per line.
    ///
    /// # Errors
    /// The file cannot be read, or is empty.
    pub fn open(path: &Path, delimiter: u8) -> Result<Self, DataError> {
        let source = open(path)?;
        let delimiter = if source.has_header { columnar::DELIMITER } else { delimiter };
        let newlines = Rc::new(RefCell::new(Newlines::default()));
        let quotes = Rc::new(RefCell::new(Quotes::new(delimiter)));
        let reader =
            ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).delimiter(delimiter).from_reader(
                Counted { inner: source.reader, newlines: Rc::clone(&newlines), quotes: Rc::clone(&quotes) },
            );
        let mut lines = Lines {
            path: path.to_path_buf(),
            gzipped: source.gzipped,
            has_header: source.has_header,
            reader,
            newlines,
            quotes,
            record: ByteRecord::new(),
            line: 0,
            waiting: false,
            guessed_data: false,
            keeps_blank_rows: false,
            width: 0,
            names: None,
        };
        if !lines.advance()? {
            return Err(DataError::Empty { path: path.to_path_buf() });
        }
        let first = lines.record.get(0).unwrap_or_default();
        if [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| first.starts_with(mark)) {
            return Err(lines.columns(format!("it is UTF-16 text; {AS_UTF_8}")));
        }
        if names_separator(&lines.record) {
            return Err(lines.columns("line 1 is `sep=…`, which is for a spreadsheet alone; delete this line".into()));
        }
        if lines.record.len() > 1 && lines.record.iter().all(<[u8]>::is_empty) {
            return Err(lines.columns(format!("line {} has no cell; delete it", lines.line)));
        }
        lines.waiting = true;
        lines.width = lines.record.len();
        Ok(lines)
    }

    fn advance(&mut self) -> Result<bool, DataError> {
        let more = self.reader.read_byte_record(&mut self.record).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => read_error(&self.path, self.gzipped, error),
            other => DataError::Columns { path: self.path.clone(), problem: format!("not a table: {other:?}") },
        })?;
        if let Some(opening) = self.quotes.borrow().followed() {
            let Opening { line, column } = opening;
            return Err(DataError::AfterQuote { path: self.path.clone(), line, column: self.numbered(column) });
        }
        if let Some(Opening { line, column }) = self.open_quote() {
            return Err(DataError::Quote { path: self.path.clone(), line, column: self.numbered(column) });
        }
        // The line of the csv crate is that of the end of the last record; empty lines in between are missing from it.
        let ends = self.reader.position().byte();
        self.line = self.newlines.borrow_mut().line(ends);
        self.line -= self.record.iter().flatten().filter(|&&b| b == b'\n').count() as u64;
        Ok(more)
    }

    /// The quote that is open at the end of the file, once that is reached.
    fn open_quote(&self) -> Option<Opening> {
        self.newlines.borrow().at_end.then(|| self.quotes.borrow().open()).flatten()
    }

    /// A column of any line, which may have more cells than the header, as messages have it.
    fn numbered(&self, column: usize) -> String {
        let has_name = self.names.as_ref().is_some_and(|names| column < names.len());
        if has_name { self.place(column) } else { (column + 1).to_string() }
    }

    /// Decides whether there is a header, given the columns that are not features of numbers.
    ///
    /// # Errors
    /// [`DataError::Field`] with the first name that is not UTF-8.
    pub fn header(&mut self, header: Header, keys: &[&str], notation: &Notation) -> Result<(), DataError> {
        let is_header = match header {
            _ if self.has_header => true,
            Header::Yes => true,
            Header::No => false,
            Header::Auto => self.looks_like_header(keys, notation),
        };
        if is_header {
            self.check_text()?;
            // Nothing is lost after the check; a name that is read with a result would make the list grow by doubling.
            let name = |column: usize| String::from_utf8_lossy(&self.record[column]).into_owned();
            self.names = Some((0..self.width).map(name).collect());
            self.waiting = false;
        }
        self.guessed_data = header == Header::Auto && !is_header;
        Ok(())
    }

    /// Whether a key is a name, or the first line has a name and no number in the columns that no key names, or it is blank
    /// and then counts from 0, at least to 2.
    pub fn looks_like_header(&self, keys: &[&str], notation: &Notation) -> bool {
        if self.has_header {
            return true;
        }
        let counts = |column: usize| self.record[column + 1] == *column.to_string().as_bytes();
        let as_pandas_writes = self.width > 3 && self.record[0].is_empty() && (0..self.width - 1).all(counts);
        let by_name = keys.iter().any(|key| !key.is_empty() && key.parse::<i64>().is_err());
        let others: Vec<usize> = keys.iter().filter_map(|key| place(key, self.width)).collect();
        let first = |column: usize| String::from_utf8_lossy(&self.record[column]);
        let features = || (0..self.width).filter(|column| !others.contains(column)).map(first);
        let is_number = |field: &str| notation.number(field).is_some();
        let is_name = |field: &str| !is_number(field) && !is_mark(field);
        by_name || as_pandas_writes || (features().any(|f| is_name(&f)) && !features().any(|f| is_number(&f)))
    }

    /// Whether the first line has all of these names; before the header is known.
    pub fn first_line_has<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let fields: HashSet<&[u8]> = self.record.iter().collect();
        names.into_iter().all(|name| fields.contains(name.as_bytes()))
    }

    /// Whether a key is a name in the first line, and no index of a column; before the header is known.
    pub fn first_line_names(&self, key: &str) -> bool {
        !key.is_empty() && place(key, self.width).is_none() && self.first_line_has([key])
    }

    /// The column of a name in the header, if there is one.
    ///
    /// # Errors
    /// Several columns have this name.
    pub fn named(&self, name: &str) -> Result<Option<usize>, DataError> {
        let names = self.names.as_deref().unwrap_or_default();
        let mut columns = (0..names.len()).filter(|&column| names[column] == name);
        let first = columns.next();
        match columns.count() {
            0 => Ok(first),
            more => Err(self.columns(format!("{} columns are called `{name}`", more + 1))),
        }
    }

    pub fn no_column(&self, key: &str) -> DataError {
        self.columns(format!("no column `{key}`: {}", self.known(key)))
    }

    /// The column that a key of the config names, by its name or its index; `None` where there is none. A name takes
    /// precedence.
    ///
    /// # Errors
    /// Several columns have this name.
    pub fn find(&self, column: &str) -> Result<Option<usize>, DataError> {
        Ok(self.named(column)?.or_else(|| place(column, self.width)))
    }

    /// The error for a column that a key of the config names, and that is not there.
    pub fn no_column_of(&self, key: &str, column: &str) -> DataError {
        self.columns(format!("no column `{}` ({key}): {}", text(column.as_bytes()), self.known(column)))
    }

    /// The error for a column that is to be written beside predictions, and that is not there.
    pub fn no_column_beside(&self, key: &str, column: &str) -> DataError {
        let (column, known) = (text(column.as_bytes()), self.known(column));
        self.columns(format!(
            "no column `{column}` ({key}), which is written beside the predictions; its cells may be blank: {known}"
        ))
    }

    /// The columns that there are, and what may be wrong where this one is not.
    fn known(&self, column: &str) -> String {
        let width = self.width;
        match &self.names {
            Some(names) => format!("the header has {}{}", listed(names), doubt(column, names)),
            None => format!("there is no header, so columns are 0 to {} or -{width} to -1", width - 1),
        }
    }

    /// The name of a column, or its number from 0, as a key of the config takes it.
    pub fn called(&self, column: usize) -> String {
        match &self.names {
            Some(names) => text(names[column].as_bytes()),
            None => column.to_string(),
        }
    }

    /// The bytes of a field.
    pub fn field(&self, column: usize) -> &[u8] {
        &self.record[column]
    }

    /// Reads rows without any cell too, as rows to predict are: each of them has its prediction.
    pub fn keep_blank_rows(&mut self) {
        self.keeps_blank_rows = true;
    }

    /// Advances to the next data row; `false` at the end. A row without any cell, as spreadsheets leave them below a table, is
    /// none.
    ///
    /// # Errors
    /// The file cannot be read, or a line has another number of fields.
    pub fn next(&mut self) -> Result<bool, DataError> {
        loop {
            if !std::mem::take(&mut self.waiting) && !self.advance()? {
                return Ok(false);
            }
            let is_blank = self.width > 1 && self.record.iter().all(<[u8]>::is_empty);
            if self.keeps_blank_rows || !is_blank {
                break;
            }
        }
        if self.record.len() != self.width {
            let (found, expected) = (self.record.len(), self.width);
            let hint = match found > expected {
                true => "; a cell with the separator in it stands in double quotes",
                false => "; every line has as many as the first one",
            };
            return Err(DataError::Ragged { path: self.path.clone(), line: self.line, found, expected, hint });
        }
        Ok(true)
    }

    /// The fields of the present row, and its line.
    pub fn cells(&self) -> (&ByteRecord, u64) {
        (&self.record, self.line)
    }

    /// The cells that are missing in the columns of the file; once the header is known.
    pub fn missing_cells(&self, reading: &Reading) -> MissingCells {
        reading.missing_cells(self.names.iter().flatten().map(String::as_str))
    }

    /// Checks that the columns of `data.missing_values` are there.
    ///
    /// # Errors
    /// One is not, or columns are named and there is no header.
    pub fn check_missing_values(&self, reading: &Reading) -> Result<(), DataError> {
        let key = Reading::MISSING_VALUES;
        for column in reading.missing_values.columns() {
            if self.names.is_none() {
                return Err(self.columns(format!(
                    "{key} names the column `{}`, and the file has no header; a list, such as [999], holds for all columns",
                    text(column.as_bytes())
                )));
            }
            if self.named(column)?.is_none() {
                return Err(self.no_column_of(key, column));
            }
        }
        Ok(())
    }

    /// Reads a finite number in double precision.
    ///
    /// # Errors
    /// [`DataError::Field`] where the field is not a finite number.
    pub fn number(&self, column: usize, notation: &Notation) -> Result<f64, DataError> {
        let value = std::str::from_utf8(&self.record[column]).ok().and_then(|field| notation.number(field));
        value.filter(|value| value.is_finite()).ok_or_else(|| self.bad(column, self.wanted("a finite number".into())))
    }

    /// Reads the value of a feature that is no category, in single precision.
    ///
    /// # Errors
    /// [`DataError::Field`] where the field is none of this kind, or is beyond the range of `f32`; the message says which
    /// key would accept it.
    pub fn feature(
        &self,
        column: usize,
        kind: CellKind,
        notation: &Notation,
        purpose: Purpose,
    ) -> Result<f32, DataError> {
        let field = &self.record[column];
        let value = std::str::from_utf8(field).ok().and_then(|cell| notation.value(kind, cell));
        let Some(value) = value else {
            let remedy = notation.remedy(kind, field, &self.called(column), purpose);
            return Err(self.bad(column, self.wanted(notation.wanted(kind)) + &remedy));
        };
        let value = value as f32;
        if value.is_finite() {
            return Ok(value);
        }
        let mut wanted = "a number below 3.4e38".to_owned();
        if matches!(purpose, Purpose::Train) {
            let called = self.called(column);
            wanted += &format!(
                "; data.missing_values takes such cells for missing, and data.ignore = [\"{called}\"] leaves out the column"
            );
        }
        Err(self.bad(column, wanted))
    }

    /// The expected content of a field, with a hint where the first line was taken for data.
    pub fn wanted(&self, expected: String) -> String {
        match self.guessed_data && self.line == 1 {
            true => expected + " (if this line is a header, say so)",
            false => expected,
        }
    }

    /// Reads a name, as [`Notation::name`] does; `what` describes it in the error.
    ///
    /// # Errors
    /// [`DataError::Field`] where the field is empty or not UTF-8.
    pub fn name(&self, column: usize, notation: &Notation, what: &str) -> Result<String, DataError> {
        self.filled(column, what).map(|cell| notation.name(cell).into_owned())
    }

    /// Reads a text that is not empty; `what` describes it in the error.
    ///
    /// # Errors
    /// [`DataError::Field`] where the field is empty or not UTF-8.
    pub fn filled(&self, column: usize, what: &str) -> Result<&str, DataError> {
        match std::str::from_utf8(&self.record[column]) {
            Ok("") => Err(self.bad(column, what.to_owned())),
            Ok(text) => Ok(text),
            Err(_) => Err(self.not_utf_8(column)),
        }
    }

    /// Reads a text, which may be empty.
    ///
    /// # Errors
    /// [`DataError::Field`] where the field is not UTF-8.
    pub fn text(&self, column: usize) -> Result<String, DataError> {
        let field = std::str::from_utf8(&self.record[column]);
        field.map(str::to_owned).map_err(|_| self.not_utf_8(column))
    }

    /// Checks that all fields are UTF-8.
    ///
    /// # Errors
    /// [`DataError::Field`] with the first that is not.
    pub fn check_text(&self) -> Result<(), DataError> {
        let other = self.record.iter().position(|field| std::str::from_utf8(field).is_err());
        other.map_or(Ok(()), |column| Err(self.not_utf_8(column)))
    }

    fn not_utf_8(&self, column: usize) -> DataError {
        self.bad(column, format!("UTF-8 text; {AS_UTF_8}"))
    }

    /// The error for a field whose content does not fit its column.
    pub fn bad(&self, column: usize, expected: String) -> DataError {
        DataError::Field {
            path: self.path.clone(),
            line: self.line,
            column: self.place(column),
            value: text(&self.record[column]),
            expected,
        }
    }

    /// The number of a column from 1, and its name, for a message.
    pub fn place(&self, column: usize) -> String {
        let name = self.names.as_ref().map(|names| format!(" ({})", text(names[column].as_bytes())));
        format!("{}{}", column + 1, name.unwrap_or_default())
    }

    /// An error about the columns of this file.
    pub fn columns(&self, problem: String) -> DataError {
        DataError::Columns { path: self.path.clone(), problem }
    }

    /// The features `[rows, width]`, given in row-major order.
    ///
    /// # Errors
    /// [`DataError::Empty`] where there are no features.
    pub fn finish(&self, features: Vec<f32>, width: usize) -> Result<Array2<f32>, DataError> {
        if features.is_empty() {
            return Err(DataError::Empty { path: self.path.clone() });
        }
        let shape = (features.len() / width, width);
        Ok(Array2::from_shape_vec(shape, features).expect("every line pushed `width` numbers"))
    }
}

/// Whether a first line is `sep=;` or the like, which tells a spreadsheet the separator: its end is a cell where it is the one
/// that is read.
fn names_separator(record: &ByteRecord) -> bool {
    let mut cells = record.iter();
    let first = cells.next().unwrap_or_default().to_ascii_lowercase();
    let named = first.strip_prefix(b"sep=".as_slice());
    named.is_some_and(|named| [&b""[..], b",", b";", b"|", b"\t"].contains(&named)) && cells.all(<[u8]>::is_empty)
}

/// The column of an index, negative from the end.
fn place(key: &str, width: usize) -> Option<usize> {
    let index: i64 = key.parse().ok()?;
    let column = if index < 0 { index.checked_add(i64::try_from(width).ok()?)? } else { index };
    usize::try_from(column).ok().filter(|&column| column < width)
}

/// What may be wrong where a column is not among the names of a header; empty where nobody knows.
fn doubt(column: &str, names: &[String]) -> String {
    if let [only] = names
        && let Some(mark) = [';', ',', '\t', '|'].iter().find(|mark| only.contains(**mark))
    {
        let mark = if *mark == '\t' { "tabs".to_owned() } else { format!("`{mark}`") };
        return format!("; are its cells separated by {mark}? (data.delimiter, or --delimiter)");
    }
    // A longer name is no typing error.
    let short = names.iter().map(String::as_str).filter(|name| name.len() <= 100);
    nearest(column, short).map_or_else(String::new, |name| format!("; did you mean `{}`?", text(name.as_bytes())))
}

/// Whether a field of the first line is a mark for a missing value, and no name of a column: also `none` and `-`, which are no
/// missing cells ([`is_missing`](crate::columns::is_missing)) but name no column either.
pub(super) fn is_mark(field: &str) -> bool {
    const MARKS: [&str; 7] = ["", "na", "n/a", "?", "null", "none", "-"];
    MARKS.contains(&field.to_lowercase().as_str())
}

/// The first names of a header for a message.
fn listed(names: &[String]) -> String {
    first(12, names.iter().map(|name| format!("`{}`", text(name.as_bytes()))))
}

/// The offsets of the line ends of a stream, as far as it has been read.
#[derive(Default)]
struct Newlines {
    /// Bytes read so far.
    read: u64,
    /// Offsets of the line ends that no record has passed yet.
    ahead: VecDeque<u64>,
    /// Line ends that were passed.
    passed: u64,
    /// Whether the last byte was a carriage return, which ends a line where no newline follows.
    is_open: bool,
    /// Whether all bytes have been read.
    at_end: bool,
}

impl Newlines {
    /// The 1-based line of the last byte before a record's end, its own line end left out.
    fn line(&mut self, ends: u64) -> u64 {
        while self.ahead.front().is_some_and(|&at| at + 1 < ends) {
            self.ahead.pop_front();
            self.passed += 1;
        }
        self.passed + 1
    }
}

/// A reader that records the line ends and the quotes in the bytes that it reads.
struct Counted {
    inner: Box<dyn Read>,
    newlines: Rc<RefCell<Newlines>>,
    quotes: Rc<RefCell<Quotes>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.quotes.borrow_mut().read(&buffer[..count]);
        let mut newlines = self.newlines.borrow_mut();
        newlines.at_end = count == 0;
        let start = newlines.read;
        for (at, &byte) in (start..).zip(&buffer[..count]) {
            if newlines.is_open && byte != b'\n' {
                newlines.ahead.push_back(at - 1);
            }
            if byte == b'\n' {
                newlines.ahead.push_back(at);
            }
            newlines.is_open = byte == b'\r';
        }
        newlines.read += count as u64;
        Ok(count)
    }
}
