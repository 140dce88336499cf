//! What a user's table looks like before anybody says what its columns mean: the separator of its cells, whether it has a
//! header, how its numbers and dates are written, and for each column what its cells are.

use super::header::Header;
use super::lines::{Lines, is_mark};
use super::quotes::Quotes;
pub use super::survey_column::SurveyColumn;
use super::survey_column::{DATE_FORMATS, Look, Notations};
use super::{open, read_error};
use crate::DataError;
use crate::columns::{DateFormat, Decimal, MissingValues, Notation, Reading, is_missing, text};
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

/// A table, looked at.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The ASCII character between the cells.
    pub delimiter: u8,
    /// Whether the first line holds the names of the columns.
    pub header: bool,
    /// The number of lines without the header.
    pub rows: usize,
    /// The decimal mark that more cells have.
    pub decimal: Decimal,
    /// The formats that read most columns of dates; the columns are counted by the first. Empty where there are none.
    pub date_formats: Vec<DateFormat>,
    /// The cells that were taken for missing besides the usual marks.
    pub missing_values: MissingValues,
    /// The columns, in the file's order.
    pub columns: Vec<SurveyColumn>,
}

/// Looks at a table, which may be gzipped; the memory does not grow with its number of lines.
///
/// # Arguments
/// - `target`: the column to predict, where the user names it; a first line with this name is a header.
/// - `missing_values`: cells that stand for missing values besides the usual marks; a first line with the name of one of
///   their columns is a header.
///
/// # Errors
/// The file cannot be read or has no data row, a line has another number of cells than the first one, two columns have
/// one name, or a column of `missing_values` is not there.
pub fn survey(path: &Path, target: Option<&str>, missing_values: &MissingValues) -> Result<Survey, DataError> {
    if path.exists() && !path.is_file() && !path.is_dir() {
        let problem = "it is read several times, which a pipe or a device is not; write the table to a file first";
        return Err(DataError::Columns { path: path.to_path_buf(), problem: problem.to_owned() });
    }
    let delimiter = find_delimiter(&beginning(path)?);
    let mut lines = Lines::open(path, delimiter)?;
    let notations = Notations::new();
    // A first line of numbers with commas is none either.
    let looks_like_names = notations.both().iter().all(|notation| lines.looks_like_header(&[], notation));
    let is_header = (looks_like_names && (lines.has_header || !all_appear_again(path, delimiter)?))
        || target
            .into_iter()
            .chain(missing_values.columns().map(String::as_str))
            .any(|column| lines.first_line_names(column))
        || heads_numbers(path, delimiter, &notations)?;
    lines.header(if is_header { Header::Yes } else { Header::No }, &[], &Notation::default())?;
    let names = lines.names.clone();
    check_names(path, names.as_deref().unwrap_or_default())?;
    let reading = |decimal| Reading { missing_values: missing_values.clone(), decimal, ..Reading::default() };
    lines.check_missing_values(&reading(Decimal::Point))?;
    let missing = [Decimal::Point, Decimal::Comma].map(|decimal| lines.missing_cells(&reading(decimal)));
    let look = |index: usize| Look::new(index, names.as_ref().map(|names| names[index].clone()), lines.width);
    let mut columns: Vec<Look> = (0..lines.width).map(look).collect();
    let mut rows = 0;
    while lines.next()? {
        lines.check_text()?;
        let (cells, line) = lines.cells();
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.add(cell, line, (&notations, &missing)));
        rows += 1;
    }
    if rows == 0 {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    let (decimal, formats) = (decimal(&columns), date_formats(&columns));
    let columns =
        columns.into_iter().map(|column| column.finish(decimal, formats.first().copied(), &notations)).collect();
    let date_formats = formats.into_iter().map(|format| DateFormat::new(DATE_FORMATS[format])).collect();
    let (header, missing_values) = (names.is_some(), missing_values.clone());
    Ok(Survey { delimiter, header, rows, decimal, date_formats, missing_values, columns })
}

/// Whether every cell of the first line is there again in its column, as in a row of texts and not of names.
fn all_appear_again(path: &Path, delimiter: u8) -> Result<bool, DataError> {
    let mut lines = Lines::open(path, delimiter)?;
    lines.header(Header::No, &[], &Notation::default())?;
    if !lines.next()? {
        return Ok(false);
    }
    let first = lines.cells().0.clone();
    let mut once: Vec<usize> = (0..first.len()).collect();
    // What is wrong with a line is said when the names are known.
    while !once.is_empty() && lines.next().unwrap_or(false) {
        let cells = lines.cells().0;
        once.retain(|column| cells[*column] != first[*column]);
    }
    Ok(once.is_empty())
}

/// Whether the first line has names although it has numbers too. Its cells must all be different, and none of its texts may
/// occur again in its column. Also, it must have the only text of a column of numbers, or its numbers must count the columns
/// from 0, as those that pandas writes, or from 1.
fn heads_numbers(path: &Path, delimiter: u8, notations: &Notations) -> Result<bool, DataError> {
    let mut lines = Lines::open(path, delimiter)?;
    lines.header(Header::No, &[], &Notation::default())?;
    if !lines.next()? {
        return Ok(false);
    }
    let first = lines.cells().0.clone();
    let mut seen = HashSet::new();
    if !first.iter().all(|cell| seen.insert(cell)) {
        return Ok(false);
    }
    let are_counted = count_columns(&first, notations);
    let texts: Vec<usize> = (0..first.len()).filter(|column| is_name(&first[*column], notations)).collect();
    let (mut heads, mut numbers) = (texts.clone(), vec![0; first.len()]);
    while (are_counted || !heads.is_empty()) && lines.next()? {
        let cells = lines.cells().0;
        if texts.iter().any(|&column| cells[column] == first[column]) {
            return Ok(false);
        }
        heads.retain(|&column| is_missing(&cells[column]) || is_number(&cells[column], notations));
        heads.iter().for_each(|&column| numbers[column] += usize::from(!is_missing(&cells[column])));
    }
    Ok(are_counted || heads.iter().any(|&column| numbers[column] > 0))
}

/// Whether the numbers of a line are 0, 1, 2 and so on, or 1, 2, 3 and so on, at least three of them.
fn count_columns(cells: &ByteRecord, notations: &Notations) -> bool {
    let numbers: Vec<&[u8]> = cells.iter().filter(|cell| is_number(cell, notations)).collect();
    let count_from = |first: usize| (first..).zip(&numbers).all(|(at, cell)| *cell == at.to_string().as_bytes());
    numbers.len() >= 3 && (count_from(0) || count_from(1))
}

/// Whether a cell is a number with either decimal mark.
fn is_number(cell: &[u8], notations: &Notations) -> bool {
    let read = |cell| notations.both().iter().any(|notation| notation.number(cell).is_some());
    std::str::from_utf8(cell).is_ok_and(read)
}

/// Whether a cell may be the name of a column of numbers, and is not a value such as `<LOD` or `12 mg`.
fn is_name(cell: &[u8], notations: &Notations) -> bool {
    let text = String::from_utf8_lossy(cell);
    let is_value = text.starts_with(|first: char| first.is_ascii_digit() || "<>".contains(first));
    text.contains(char::is_alphabetic) && !is_value && !is_mark(&text) && !is_number(cell, notations)
}

/// The mark that more cells have.
fn decimal(columns: &[Look]) -> Decimal {
    let sum = |of: fn(&Look) -> [usize; 2], mark: usize| columns.iter().map(|column| of(column)[mark]).sum::<usize>();
    // `1.234` says nothing where another column does.
    let [points, commas] = match [0, 1].map(|mark| sum(Look::surely_decimal, mark)) {
        [0, 0] => [0, 1].map(|mark| sum(Look::alone, mark)),
        sure => sure,
    };
    if commas > points { Decimal::Comma } else { Decimal::Point }
}

/// The formats that read the most columns of dates.
fn date_formats(columns: &[Look]) -> Vec<usize> {
    let mut read = [0; DATE_FORMATS.len()];
    columns.iter().flat_map(Look::formats).for_each(|format| read[format] += 1);
    let most = read.iter().copied().max().unwrap_or(0);
    (0..read.len()).filter(|format| most > 0 && read[*format] == most).collect()
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

/// The least share of lines with one number of cells by which a separator is told where no separator gives it to all of them.
const USUAL: f64 = 0.9;

/// The separator by which all lines have the same number of cells, at least two, and the largest share of these are
/// numbers; of several the one with the most cells. Where there is none, that by which nearly all lines do, so that the
/// odd one is named; else a comma.
fn find_delimiter(bytes: &[u8]) -> u8 {
    let best = |least: f64| {
        let mut best = None;
        for delimiter in DELIMITERS {
            let score = score(bytes, delimiter, least);
            if score.is_some_and(|score| best.is_none_or(|(_, highest)| score > highest)) {
                best = score.map(|score| (delimiter, score));
            }
        }
        best.map(|(delimiter, _)| delimiter)
    };
    best(1.0).or_else(|| best(USUAL)).unwrap_or(b',')
}

/// The share of numbers in the cells, and the number of cells in a line; `None` where less than this share of the lines has
/// it, or lines have a single cell.
fn score(bytes: &[u8], delimiter: u8, least: f64) -> Option<(f64, usize)> {
    let mut quotes = Quotes::new(delimiter);
    quotes.read(bytes);
    // A record that is cut off, or whose quote is not closed, is the last one.
    let is_whole = (bytes.len() as u64) < BEGINNING && quotes.open().is_none();
    let records: Vec<ByteRecord> =
        reader(delimiter).from_reader(bytes).into_byte_records().flatten().take(LINES + 1).collect();
    let kept = if is_whole && records.len() <= LINES { records.len() } else { records.len().saturating_sub(1) };
    let mut widths = BTreeMap::<usize, usize>::new();
    records[..kept].iter().for_each(|record| *widths.entry(record.len()).or_default() += 1);
    let (width, lines) = widths.into_iter().max_by_key(|(_, lines)| *lines)?;
    if width < 2 || (lines as f64) < least * kept as f64 {
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
    let name = text(name.as_bytes());
    let problem = format!("two columns are named `{name}`; give each a name of its own");
    Err(DataError::Columns { path: path.to_path_buf(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey_of(text: &str) -> Survey {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        survey(file.path(), None, &MissingValues::default()).unwrap_or_else(|error| panic!("{error}"))
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
        for (text, header, rows) in [
            ("a,b\n1,2\n", true, 1),
            ("1,x\n2,y\n", false, 2),
            ("NA,?\n1,2\n", false, 2),
            ("1,5;2,25\n1,0;3,5\n", false, 2),
            // Texts alone: names are not among the cells below them.
            ("east,ill\nwest,well\neast,well\nwest,ill\n", false, 4),
            ("unit,outcome\nwest,well\neast,ill\nunit,ill\n", true, 3),
        ] {
            let found = survey_of(text);
            assert_eq!((found.header, found.rows), (header, rows), "{text:?}");
        }
    }

    #[test]
    fn a_first_line_with_a_number_is_a_header_where_a_name_stands_above_numbers() {
        for (text, header) in [
            ("age,5,died\n1,2,yes\n3,4,no\n", true),
            ("age,5,died\nNA,2,yes\n\"1,5\",4,no\n", true),
            // Nothing says that the texts are of another kind than those below.
            ("2019,2020,y\n1,2,a\n3,4,b\n", false),
            // As pandas names columns, with and without its index; a row that counts has a text that is there again.
            ("0,1,2,y\n5,2,1,a\n3,4,1,b\n", true),
            (",0,1,2\n0,5,2,1\n1,3,4,1\n", true),
            ("1,2,3,outcome\n5,2,1,a\n3,4,1,b\n", true),
            ("id,1,2,3\n5,2,1,a\n3,4,1,b\n", true),
            ("1,2,3,a\n5,2,1,a\n3,4,1,b\n", false),
            ("1,2,4,outcome\n5,2,1,a\n3,4,1,b\n", false),
            ("2,3,4,outcome\n5,2,1,a\n3,4,1,b\n", false),
            ("0,1,2,a\n5,2,1,a\n3,4,1,b\n", false),
            ("0,1,y\n1,2,a\n3,4,b\n", false),
            // A measured value that is not a number, in the first row.
            ("<LOD,2,3\n1,2,0\n3,4,1\n", false),
            ("12 mg,2,3\n1,2,0\n3,4,1\n", false),
            ("none,2,3\n1,2,0\n3,4,1\n", false),
            ("neg,2,yes\n1,2,yes\n3,4,no\n", false),
            ("neg,2,2\n1,2,0\n3,4,1\n", false),
            ("x,2,3\nNA,2,0\n,4,1\n", false),
        ] {
            assert_eq!(survey_of(text).header, header, "{text:?}");
        }
    }

    #[test]
    fn a_first_line_with_the_target_s_or_a_declared_column_s_name_is_a_header() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "2019,2020,y\n1,2,a\n3,4,b\n").unwrap();
        let header = |target: &str| survey(file.path(), Some(target), &MissingValues::default()).unwrap().header;
        assert!(header("y") && header("2019"));
        // An index, which is not a name, and a name that is not there.
        assert!(!header("2") && !header("-1") && !header("z") && !header(""));
        let declared = MissingValues::InColumns([("y".to_owned(), vec!["c".to_owned()])].into());
        assert!(survey(file.path(), None, &declared).unwrap().header);
    }

    #[test]
    fn cells_are_counted_by_what_they_are() {
        let found = survey_of("n,w,t,m,b\n1.5,1,a,3,yes\n2e3,2,b,,NO\n-1,3,a,NA,1\n");
        let [n, w, t, m, b] = &found.columns[..] else { panic!("{found:?}") };
        assert!(n.is_numeric() && !n.whole && w.is_numeric() && w.whole);
        assert_eq!((t.numbers, t.distinct(), t.other.clone()), (0, Some(2), Some((2, "a".into()))));
        assert_eq!((m.numbers, m.missing, m.other.clone(), m.distinct()), (1, 2, None, Some(1)));
        assert!(m.are_all(m.numbers) && b.are_all(b.booleans) && !t.are_all(t.booleans));
        assert_eq!(t.values.as_ref().unwrap()["a"], 2);
    }

    #[test]
    fn yes_and_no_are_read_with_the_tables_decimal_mark() {
        let comma = survey_of("dose;flag;text\n1,5;1,0;0.0\n2,5;0,0;1.0\n0,5;;1.0\n");
        let counts: Vec<usize> = comma.columns.iter().map(|column| column.booleans).collect();
        assert_eq!((comma.columns[1].numbers, counts), (2, vec![0, 2, 0]));
        let point = survey_of("dose,flag\n1.5,1.0\n2.5,0.0\n");
        assert_eq!(point.columns[1].booleans, 2);
    }

    #[test]
    fn declared_cells_are_missing_cells() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "age;dose\n50;1,5\n999;Unknown\n;-9,0\n").unwrap();
        let found = |declared: &[&str], columns: &[&str]| {
            let cells: Vec<String> = declared.iter().map(|cell| (*cell).to_owned()).collect();
            let missing_values = match columns {
                [] => MissingValues::Everywhere(cells),
                _ => MissingValues::InColumns(columns.iter().map(|name| ((*name).to_owned(), cells.clone())).collect()),
            };
            let found = survey(file.path(), None, &missing_values).map_err(|error| error.to_string())?;
            Ok::<_, String>(
                found
                    .columns
                    .iter()
                    .map(|column| [column.numbers, column.missing, column.declared])
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(found(&[], &[]).unwrap(), [[2, 1, 0], [2, 0, 0]]);
        assert_eq!(found(&["999", "unknown", "-9"], &[]).unwrap(), [[1, 2, 1], [1, 2, 2]]);
        assert_eq!(found(&["999", "unknown"], &["dose"]).unwrap(), [[2, 1, 0], [2, 1, 1]]);
        assert!(found(&["999"], &["weight"]).unwrap_err().contains("weight"));
    }

    /// Also in a column with more distinct cells than are counted, and by the column's own reading of its cells.
    #[test]
    fn cells_far_beyond_all_others_are_found_among_any_number_of_cells() {
        let codes = |rows: usize| {
            let row = |i: usize| match i % 100 {
                7 => "99999;31.12.9999;-9,5\n".to_owned(),
                _ => format!("{i};{:02}.{:02}.{};{},25\n", 1 + i % 28, 1 + i % 12, 2000 + i % 20, i % 7000),
            };
            let found = survey_of(&format!("n;d;c\n{}", (0..rows).map(row).collect::<String>()));
            let of = |column: &SurveyColumn| column.codes.as_ref().map(|codes| codes.of_column("x"));
            found.columns.iter().map(of).collect::<Vec<_>>()
        };
        let few = codes(400);
        assert_eq!(few[0].as_deref(), Some("`x` (99999 in 4 rows, all others 0 to 399)"));
        assert_eq!(few[1].as_deref(), Some("`x` (31.12.9999 in 4 rows, all others 01.01.2000 to 24.12.2019)"));
        assert_eq!(few[2], None);
        let many = codes(4000);
        assert_eq!(many[0].as_deref(), Some("`x` (99999 in 40 rows, all others 0 to 3999)"));
        assert_eq!(many[1].as_deref(), Some("`x` (31.12.9999 in 40 rows, all others 01.01.2000 to 28.12.2019)"));
        assert_eq!(many[2], None);
    }

    #[test]
    fn distinct_cells_are_counted_as_training_counts_them() {
        let found = survey_of("y,code,t\n0,007,0\n0.0,7,0.0\n1,1E1,x\n1,10,1\n");
        let distinct = found.columns.iter().map(SurveyColumn::distinct).collect::<Vec<_>>();
        assert_eq!(distinct, [Some(2), Some(4), Some(4)]);
        let rows = found.columns[0].values.as_ref().unwrap();
        assert_eq!(rows.iter().map(|(name, rows)| (name.as_str(), *rows)).collect::<Vec<_>>(), [("0", 2), ("1", 2)]);
    }

    #[test]
    fn a_column_counts_up_where_each_cell_is_its_line_s_number() {
        let found = survey_of("a,b,c,d,e\n0,1,1,2,0\n1,2,3,3,\n2,3,2,4,2\n");
        assert_eq!(
            found.columns.iter().map(|column| column.counts_up).collect::<Vec<_>>(),
            [true, true, false, false, false]
        );
    }

    #[test]
    fn the_decimal_mark_is_the_one_that_more_cells_have() {
        let found = survey_of("c,p,w\n\"1,5\",1.5,1\n\"2,25\",2,2\n0,3,3\n");
        let [c, p, w] = &found.columns[..] else { panic!("{found:?}") };
        assert_eq!(found.decimal, Decimal::Comma);
        assert!(c.is_numeric() && !c.whole && w.is_numeric() && w.whole);
        assert_eq!((p.numbers, p.other_mark, p.other.clone()), (2, 1, Some((2, "1.5".into()))));
        assert_eq!(survey_of("x;y\n1,5;2.5\n3;4\n").decimal, Decimal::Point);
        // `1.234` may be a thousand; a column of fractions tells, and a single cell does not.
        let rows = |cell: &dyn Fn(usize) -> String| {
            (0..40).map(|row| format!("5{row:02}.1{row:02};{}\n", cell(row))).collect::<String>()
        };
        let fractions = survey_of(&format!("w;d\n{}", rows(&|row| format!("0,{row}"))));
        assert_eq!((fractions.decimal, fractions.columns[0].thousands), (Decimal::Comma, 40));
        let choices = survey_of(&format!("w;c\n{}", rows(&|row| if row == 7 { "1,2".into() } else { "2".into() })));
        assert_eq!(
            (choices.decimal, choices.columns[0].numbers, choices.columns[0].thousands),
            (Decimal::Point, 40, 0)
        );
    }

    #[test]
    fn numbers_with_marks_of_thousands_are_counted() {
        let found = survey_of("c,p\n\"4,512.33\",1.5\n950.10,2\n\"1,234,567\",3\n\"1,234\",4\nNA,5\n");
        let c = &found.columns[0];
        assert_eq!((c.thousands, c.numbers, c.other_mark, found.columns[1].thousands), (3, 1, 0, 0));
        assert_eq!(survey_of("c;x\n4.512,33;0,5\n950,10;1,5\n").columns[0].thousands, 1);
    }

    #[test]
    fn dates_have_the_format_that_reads_the_most_columns() {
        let formats = |text: &str| {
            let found = survey_of(text);
            let names = found.date_formats.iter().map(|format| format.as_str().to_owned()).collect::<Vec<_>>();
            (
                names.join(" or "),
                found.columns.iter().map(|column| (column.dates, column.other_dates)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(formats("d,x\n13/02/2024,1\n,2\n"), ("DD/MM/YYYY".into(), vec![(1, 0), (0, 0)]));
        assert_eq!(formats("d,x\n02/03/2024,1\n"), ("DD/MM/YYYY or MM/DD/YYYY".into(), vec![(1, 1), (0, 0)]));
        let two = "a,b,c\n1.2.2024,2024-02-01,3.4.2024 10:00\n2.2.2024,2024-02-02,4.4.2024\n";
        assert_eq!(formats(two), ("DD.MM.YYYY".into(), vec![(2, 0), (0, 2), (2, 0)]));
        assert_eq!(formats("d,x\n31.12.2024,1\nlater,2\n"), (String::new(), vec![(0, 1), (0, 0)]));
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
            survey(file.path(), None, &MissingValues::default()).unwrap_err().to_string()
        };
        assert!(message("").contains("no data rows"));
        assert!(message("a,b\n").contains("no data rows"));
        assert!(message("a,a\n1,2\n").contains("two columns are named `a`"));
        assert!(message("a,b\n1,2\n\n3\n").contains("line 4: 1 columns, expected 2"));
        for mark in [',', ';'] {
            // Also where the file has more lines than those from which the separator is found.
            for rows in [2, 300] {
                let row = format!("1{mark}x{mark}2\n").repeat(rows);
                let text = format!("a{mark}b{mark}c\n{row}3{mark}\"y{mark}4\n{row}");
                let found = message(&text);
                let expected = format!(": line {}, column 2 (b): the quote that opens here is not closed", rows + 2);
                assert!(found.contains(&expected), "{found}");
            }
        }
    }
}
