//! A fast reader of comma-separated numbers without header or quotes, for the published tables whose columns are known
//! (Covertype: 581,012 × 55). It allocates no `String` for a field. A user's own files are read by [`super::csv`].

use super::read_text;
use crate::DataError;
use crate::columns::text;
use ndarray::Array2;
use std::path::Path;

/// Reads `width` features and a last column of integer labels.
///
/// # Arguments
/// - `class_of`: the class index of a label, `None` for a label that does not belong here.
/// - `allowed`: the labels that do, in words, for the error message.
///
/// # Returns
/// Features `[rows, width]` and one class index per row.
///
/// # Errors
/// A line has another number of columns, a field is not a finite number, a label is unknown, there are no rows, or the
/// gzip stream is damaged. Each error names the file, the line and the column.
pub fn read(
    path: &Path,
    width: usize,
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<(Array2<f32>, Vec<usize>), DataError> {
    parse(path, &read_text(path)?, width, allowed, class_of)
}

/// [`read`] on bytes that are already in memory; `path` is only for messages.
///
/// # Errors
/// Those of [`read`], except for errors in reading the file.
pub fn parse(
    path: &Path,
    bytes: &[u8],
    width: usize,
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<(Array2<f32>, Vec<usize>), DataError> {
    let mut features = room(bytes, width);
    let mut labels = Vec::new();
    each_field(path, bytes, width + 1, |line, column, field| {
        if column < width {
            features.push(number(field).ok_or_else(|| not_a_number(path, line, column, field))?);
        } else {
            labels.push(class(path, line, field, allowed, &class_of)?);
        }
        Ok(())
    })?;
    Ok((rectangle(path, features, labels.len(), width)?, labels))
}

/// The position of the target in a regression table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetColumn {
    /// Before the features.
    First,
    /// After them.
    Last,
}

/// Reads `width` features and a real target.
///
/// # Returns
/// Features `[rows, width]` and one target per row.
///
/// # Errors
/// Those of [`read`].
pub fn read_regression(path: &Path, width: usize, target: TargetColumn) -> Result<(Array2<f32>, Vec<f64>), DataError> {
    let bytes = read_text(path)?;
    let target = if target == TargetColumn::First { 0 } else { width };
    let mut features = room(&bytes, width);
    let mut values = Vec::new();
    each_field(path, &bytes, width + 1, |line, column, field| {
        if column == target {
            values.push(real(field).ok_or_else(|| not_a_number(path, line, column, field))?);
        } else {
            features.push(number(field).ok_or_else(|| not_a_number(path, line, column, field))?);
        }
        Ok(())
    })?;
    Ok((rectangle(path, features, values.len(), width)?, values))
}

/// The content of a table with natural clients.
#[derive(Clone, Debug)]
pub struct OfClients {
    /// `[rows, width]`.
    pub features: Array2<f32>,
    /// One class index per row.
    pub labels: Vec<usize>,
    /// The natural client of each row.
    pub clients: Vec<usize>,
}

/// Reads a first column of clients, `width` features and a last column of integer labels.
///
/// # Arguments
/// - `clients`: the number of clients, which are numbered from 0.
/// - `allowed`, `class_of`: as in [`read`].
///
/// # Errors
/// Those of [`read`], and a client that is not a number below `clients`.
pub fn read_of_clients(
    path: &Path,
    clients: usize,
    width: usize,
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<OfClients, DataError> {
    let bytes = read_text(path)?;
    let mut features = room(&bytes, width);
    let (mut labels, mut of_row) = (Vec::new(), Vec::new());
    each_field(path, &bytes, width + 2, |line, column, field| {
        if column == 0 {
            let client = integer(field).and_then(|client| usize::try_from(client).ok()).filter(|&k| k < clients);
            of_row.push(client.ok_or_else(|| {
                let expected = format!("a client, a whole number from 0 to {}", clients - 1);
                not(path, line, column, field, expected)
            })?);
        } else if column <= width {
            features.push(number(field).ok_or_else(|| not_a_number(path, line, column, field))?);
        } else {
            labels.push(class(path, line, field, allowed, &class_of)?);
        }
        Ok(())
    })?;
    Ok(OfClients { features: rectangle(path, features, labels.len(), width)?, labels, clients: of_row })
}

/// Passes on every field with its 1-based line and its column from 0; empty lines are skipped.
fn each_field(
    path: &Path,
    bytes: &[u8],
    columns: usize,
    mut take: impl FnMut(u64, usize, &[u8]) -> Result<(), DataError>,
) -> Result<(), DataError> {
    for (index, row) in bytes.split(|&b| b == b'\n').enumerate() {
        let row = row.trim_ascii();
        if row.is_empty() {
            continue;
        }
        let line = index as u64 + 1;
        let mut found = 0;
        let mut taken = Ok(());
        for field in row.split(|&b| b == b',') {
            if found < columns && taken.is_ok() {
                taken = take(line, found, field);
            }
            found += 1;
        }
        // In a table of another width, this error is more helpful than one about the content of its columns.
        if found != columns {
            return Err(DataError::Ragged { path: path.to_path_buf(), line, found, expected: columns, hint: "" });
        }
        taken?;
    }
    Ok(())
}

/// A buffer for the features. Its capacity is estimated from the length of the first row, and bounded by the number of
/// bytes.
fn room(bytes: &[u8], width: usize) -> Vec<f32> {
    let first = bytes.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).find(|row| !row.is_empty()).unwrap_or_default();
    Vec::with_capacity(bytes.len() / (first.len() + 1).max(2 * width) * width)
}

/// Features `[rows, width]`.
///
/// # Errors
/// There are no rows.
fn rectangle(path: &Path, features: Vec<f32>, rows: usize, width: usize) -> Result<Array2<f32>, DataError> {
    if rows == 0 {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    Ok(Array2::from_shape_vec((rows, width), features).expect("every row pushed `width` numbers"))
}

fn class(
    path: &Path,
    row: u64,
    field: &[u8],
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<usize, DataError> {
    integer(field).and_then(class_of).ok_or_else(|| DataError::Label {
        path: path.to_path_buf(),
        row,
        label: text(field),
        allowed: allowed.to_owned(),
    })
}

/// A finite number; a number of digits alone is read by a faster path.
pub(super) fn number(field: &[u8]) -> Option<f32> {
    if let [digit @ b'0'..=b'9'] = field {
        return Some(f32::from(digit - b'0'));
    }
    let field = field.trim_ascii();
    if let Some(value) = integer(field) {
        return Some(value as f32);
    }
    let value: f32 = std::str::from_utf8(field).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// A finite number in double precision.
fn real(field: &[u8]) -> Option<f64> {
    let value: f64 = std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// A decimal integer of at most 15 digits, or a decimal number that is one (`1.0`, `+1`).
pub(super) fn integer(field: &[u8]) -> Option<i64> {
    let field = field.trim_ascii();
    let (negative, digits) = match field {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, field),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    if digits.iter().all(u8::is_ascii_digit) {
        let value = digits.iter().fold(0i64, |value, b| value * 10 + i64::from(b - b'0'));
        return Some(if negative { -value } else { value });
    }
    let value: f64 = std::str::from_utf8(field).ok()?.parse().ok()?;
    (value.fract() == 0.0 && value.abs() < 1e15).then_some(value as i64)
}

fn not_a_number(path: &Path, line: u64, column: usize, field: &[u8]) -> DataError {
    not(path, line, column, field, "a finite number".to_owned())
}

/// The error for a field whose content does not fit its column (from 0).
pub(super) fn not(path: &Path, line: u64, column: usize, field: &[u8], expected: String) -> DataError {
    let column = (column + 1).to_string();
    DataError::Field { path: path.to_path_buf(), line, column, value: text(field), expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn parse_two(bytes: &str) -> Result<(Array2<f32>, Vec<usize>), DataError> {
        parse(Path::new("t.csv"), bytes.as_bytes(), 2, "1 and 2", |label| match label {
            1 => Some(1),
            2 => Some(0),
            _ => None,
        })
    }

    #[test]
    fn numbers_of_every_spelling_are_read() {
        let (x, y) = parse_two("1,-12,1\r\n 0.5 ,1e3,2\n\n-7,+3,1.0").unwrap();
        assert_eq!(x, array![[1., -12.], [0.5, 1000.], [-7., 3.]]);
        assert_eq!(y, vec![1, 0, 1]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let message = |s: &str| parse_two(s).unwrap_err().to_string();
        assert_eq!(message("1,2,1\n1,x,1\n"), "t.csv: line 2, column 2: `x` is not a finite number");
        assert_eq!(message("nan,2,1\n"), "t.csv: line 1, column 1: `nan` is not a finite number");
        assert_eq!(message("1,1e39,1\n"), "t.csv: line 1, column 2: `1e39` is not a finite number");
        assert_eq!(message("1,,1\n"), "t.csv: line 1, column 2: an empty cell is not a finite number");
        assert_eq!(message("1,2,1\n\n1,2\n"), "t.csv: line 3: 2 columns, expected 3");
        assert_eq!(message("1,2,1,4\n"), "t.csv: line 1: 4 columns, expected 3");
        assert_eq!(message("1,x,3,1\n"), "t.csv: line 1: 4 columns, expected 3");
        assert_eq!(message("1,2,3\n"), "t.csv: row 1: label 3 is out of range, the labels are 1 and 2");
        assert_eq!(message("\n"), "t.csv: no data rows");
    }

    fn on_disk(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn a_real_target_is_the_first_or_the_last_column() {
        let file = on_disk("2001,0.5,-1e1\r\n1999.25,3,4\n");
        let (x, y) = read_regression(file.path(), 2, TargetColumn::First).unwrap();
        assert_eq!((x, y), (array![[0.5, -10.], [3., 4.]], vec![2001.0, 1999.25]));
        let (x, y) = read_regression(file.path(), 2, TargetColumn::Last).unwrap();
        assert_eq!((x, y), (array![[2001., 0.5], [1999.25, 3.]], vec![-10.0, 4.0]));
        let message =
            |text: &str| read_regression(on_disk(text).path(), 2, TargetColumn::First).unwrap_err().to_string();
        assert!(message("inf,1,2\n").ends_with("line 1, column 1: `inf` is not a finite number"));
        assert!(message("1,2,3\n1,x,2\n").ends_with("line 2, column 2: `x` is not a finite number"));
        assert!(message("1,2\n").ends_with("line 1: 2 columns, expected 3"));
        assert!(message("").ends_with("no data rows"));
    }

    #[test]
    fn clients_are_the_first_column_and_labels_the_last() {
        let read = |text: &str| {
            let class_of = |label| usize::try_from(label).ok().filter(|&class| class < 2);
            read_of_clients(on_disk(text).path(), 3, 2, "0 and 1", class_of)
        };
        let table = read("2,0.5,1,0\n0,2,3,1\n").unwrap();
        assert_eq!(table.features, array![[0.5, 1.], [2., 3.]]);
        assert_eq!((table.labels, table.clients), (vec![0, 1], vec![2, 0]));
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message("3,1,1,0\n").ends_with("column 1: `3` is not a client, a whole number from 0 to 2"));
        assert!(message("-1,1,1,0\n").ends_with("`-1` is not a client, a whole number from 0 to 2"));
        assert!(message("0,1,1,2\n").ends_with("row 1: label 2 is out of range, the labels are 0 and 1"));
        assert!(message("0,1,1\n").ends_with("line 1: 3 columns, expected 4"));
    }
}
