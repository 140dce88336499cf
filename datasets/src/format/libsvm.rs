//! LIBSVM's text format: `label index:value index:value ...`, with indices from 1; omitted values are 0.
//! Source: <https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/>.

use super::read_text;
use super::table::{integer, number};
use crate::DataError;
use crate::columns::text;
use ndarray::Array2;
use std::path::Path;

/// The bytes of the dense features as a multiple of the bytes of the text, beyond [`ROOM`]. (Covertype, 54 features
/// with some 12 given in each line, takes twice its text.) Without this bound two bytes, a label and a line end, would
/// become `width` numbers.
const DENSE_TIMES: usize = 16;
/// The bytes that the dense features of any text may take.
const ROOM: usize = 1 << 20;

/// Reads `width` features and a class from each line.
///
/// # Arguments
/// - `class_of`: the class index of a label, `None` for a label that does not belong here.
/// - `allowed`: the labels that do, in words, for the error message.
///
/// # Returns
/// Features `[rows, width]` and one class index per row.
///
/// # Errors
/// An index is outside `1..=width` or not larger than the one before it, a value is not a finite number, a label is
/// unknown, there are no rows, the rows are so sparse that the dense table would be many times the text, or the gzip
/// stream is damaged.
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
    let most = (ROOM + DENSE_TIMES * bytes.len()) / size_of::<f32>();
    let mut features: Vec<f32> = Vec::new();
    let mut labels = Vec::new();
    for (index, row) in bytes.split(|&b| b == b'\n').enumerate() {
        let line = index as u64 + 1;
        let row = row.split(|&b| b == b'#').next().unwrap_or(row);
        let mut fields = row.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let Some(label) = fields.next() else { continue };
        labels.push(integer(label).and_then(&class_of).ok_or_else(|| DataError::Label {
            path: path.to_path_buf(),
            row: line,
            label: text(label),
            allowed: allowed.to_owned(),
        })?);
        let start = features.len();
        if start + width > most {
            let (path, size) = (path.to_path_buf(), bytes.len());
            let problem = format!(
                "line {line}: {} rows of {width} numbers in {size} bytes of text; a table of so many zeros is not read",
                labels.len()
            );
            return Err(DataError::Columns { path, problem });
        }
        features.resize(start + width, 0.0);
        let mut last = 0;
        for (position, field) in fields.enumerate() {
            let (at, value) = pair(field, last, width).map_err(|expected| DataError::Field {
                path: path.to_path_buf(),
                line,
                column: (position + 2).to_string(),
                value: text(field),
                expected,
            })?;
            features[start + at - 1] = value;
            last = at;
        }
    }
    if labels.is_empty() {
        return Err(DataError::Empty { path: path.to_path_buf() });
    }
    let shape = (labels.len(), width);
    let features = Array2::from_shape_vec(shape, features).expect("every row added `width` numbers");
    Ok((features, labels))
}

/// The 1-based index and the value of one field, or the expected content.
fn pair(field: &[u8], last: usize, width: usize) -> Result<(usize, f32), String> {
    let colon = field.iter().position(|&b| b == b':').ok_or("index:value")?;
    let at = integer(&field[..colon])
        .and_then(|at| usize::try_from(at).ok())
        .filter(|at| (1..=width).contains(at))
        .ok_or_else(|| format!("index:value with an index from 1 to {width}"))?;
    if at <= last {
        return Err(format!("index:value with an index above {last}, the one before it"));
    }
    let value = number(&field[colon + 1..]).ok_or("index:value with a finite value")?;
    Ok((at, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn parse_three(bytes: &str) -> Result<(Array2<f32>, Vec<usize>), DataError> {
        parse(Path::new("t.libsvm"), bytes.as_bytes(), 3, "-1 and +1", |label| match label {
            1 => Some(1),
            -1 => Some(0),
            _ => None,
        })
    }

    #[test]
    fn omitted_values_are_zero() {
        let (x, y) = parse_three("+1 1:0.5 3:-2 \n-1 2:7 # a comment\n\n1\n").unwrap();
        assert_eq!(x, array![[0.5, 0., -2.], [0., 7., 0.], [0., 0., 0.]]);
        assert_eq!(y, vec![1, 0, 1]);
    }

    #[test]
    fn a_table_of_many_times_the_size_of_its_text_is_refused() {
        let read = |lines: usize| parse(Path::new("t"), "1\n".repeat(lines).as_bytes(), 54, "1", |_| Some(0));
        // A row is 216 bytes dense and 2 in the text: 2^20 / (216 - 16 * 2) = 5,698 rows are within the bound.
        assert_eq!(read(5_698).unwrap().1.len(), 5_698);
        let message = read(100_000).unwrap_err().to_string();
        assert!(message.contains("rows of 54 numbers in 200000 bytes of text"), "{message}");
        assert!(message.starts_with("t: line "), "{message}");
    }

    #[test]
    fn errors_name_line_and_field() {
        let message = |s: &str| parse_three(s).unwrap_err().to_string();
        assert!(message("1 4:1").contains("line 1, column 2: `4:1` is not index:value with an index from 1 to 3"));
        assert!(message("1 0:1").contains("index from 1 to 3"));
        assert!(
            message("1 1:1\n1 2:1 2:1").contains("line 2, column 3: `2:1` is not index:value with an index above 2")
        );
        assert!(message("1 1:nan").contains("finite value"));
        assert!(message("1 1").contains("`1` is not index:value"));
        assert!(message("7 1:1").contains("label 7 is out of range, the labels are -1 and +1"));
        assert!(message("\n").contains("no data rows"));
    }
}
