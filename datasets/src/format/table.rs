//! Numbers between commas, fast: for the big published tables whose columns are known (Covertype: 581,012 × 55).
//! No header, no quotes, no `String` a field. A user's own files go through [`super::csv`].

use super::read_text;
use crate::DataError;
use ndarray::Array2;
use std::path::Path;

/// Reads `width` features and a last column of integer labels.
///
/// # Arguments
/// - `class_of`: the class index of a label, `None` for a label that does not belong here.
/// - `allowed`: the labels that do, in words, for the error message.
///
/// # Returns
/// Features `[rows, width]` and one class index a row.
///
/// # Errors
/// A line with another number of columns, a field that is no finite number, an unknown label, no rows, damaged
/// gzip. Each names file, line and column.
pub fn read(
    path: &Path,
    width: usize,
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<(Array2<f32>, Vec<usize>), DataError> {
    parse(path, &read_text(path)?, width, allowed, class_of)
}

/// [`read`] on bytes that are already in memory; `path` is only for messages.
pub fn parse(
    path: &Path,
    bytes: &[u8],
    width: usize,
    allowed: &str,
    class_of: impl Fn(i64) -> Option<usize>,
) -> Result<(Array2<f32>, Vec<usize>), DataError> {
    let mut features = Vec::new();
    let mut labels = Vec::new();
    for (index, row) in bytes.split(|&b| b == b'\n').enumerate() {
        let row = row.trim_ascii();
        if row.is_empty() {
            continue;
        }
        if features.is_empty() {
            // The first row's length tells about how many rows follow; never more numbers than the bytes can hold.
            features.reserve(bytes.len() / (row.len() + 1).max(2 * width) * width);
        }
        let line = index as u64 + 1;
        let mut column = 0;
        for field in row.split(|&b| b == b',') {
            if column < width {
                features.push(number(field).ok_or_else(|| not_a_number(path, line, column, field))?);
            } else if column == width {
                let class = integer(field).and_then(&class_of);
                labels.push(class.ok_or_else(|| DataError::Label {
                    path: path.to_path_buf(),
                    row: line,
                    label: text(field),
                    allowed: allowed.to_owned(),
                })?);
            }
            column += 1;
        }
        if column != width + 1 {
            return Err(DataError::Ragged { path: path.to_path_buf(), line, found: column, expected: width + 1 });
        }
    }
    if labels.is_empty() {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    let shape = (labels.len(), width);
    let features = Array2::from_shape_vec(shape, features).expect("every row pushed `width` numbers");
    Ok((features, labels))
}

/// A finite number; digits alone take the short way.
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
    DataError::Field {
        path: path.to_path_buf(),
        line,
        column: (column + 1).to_string(),
        value: text(field),
        expected: "a finite number".to_owned(),
    }
}

/// A field for a message: readable, and not longer than a message should be.
pub(super) fn text(field: &[u8]) -> String {
    let shown: String = String::from_utf8_lossy(field.trim_ascii()).chars().take(40).collect();
    shown.escape_debug().to_string()
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
        assert_eq!(message("1,,1\n"), "t.csv: line 1, column 2: `` is not a finite number");
        assert_eq!(message("1,2,1\n\n1,2\n"), "t.csv: line 3: 2 columns, expected 3");
        assert_eq!(message("1,2,1,4\n"), "t.csv: line 1: 4 columns, expected 3");
        assert_eq!(message("1,2,3\n"), "t.csv: row 1: label 3 is out of range, the labels are 1 and 2");
        assert_eq!(message("\n"), "t.csv: no data rows");
    }
}
