//! Lists of test rows: line k (from 0) has the rows of test split k, numbered from 0, with spaces between them. This is
//! the format of the standard splits of the UCI regression sets.

use super::read_text;
use super::table::not;
use crate::DataError;
use std::path::Path;

/// The test rows of split `split`, ascending.
///
/// # Arguments
/// - `rows`: the number of rows to split.
/// - `key`: the config key that asks for the split.
///
/// # Errors
/// The split does not exist, a field is not a row number below `rows`, a row is listed twice, the split has no training
/// or no test row, or the gzip stream is damaged.
pub fn read(path: &Path, split: usize, rows: usize, key: &str) -> Result<Vec<usize>, DataError> {
    let bytes = read_text(path)?;
    let lines: Vec<(usize, &[u8])> = bytes
        .split(|&b| b == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let Some(&(line, fields)) = lines.get(split) else {
        let problem = match lines.len().checked_sub(1) {
            Some(last) => format!("{} has the splits 0 to {last}; -1 draws one with the seed", path.display()),
            None => format!("{} has no splits; -1 draws one with the seed", path.display()),
        };
        return Err(DataError::config(key, split, problem));
    };
    let mut is_test = vec![false; rows];
    let fields = fields.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    for (column, field) in fields.enumerate() {
        let row = std::str::from_utf8(field).ok().and_then(|text| text.parse::<usize>().ok());
        match row.and_then(|row| is_test.get_mut(row)) {
            Some(seen) if !*seen => *seen = true,
            place => {
                let expected = match place {
                    Some(_) => "new: the row was listed before".to_owned(),
                    None => format!("a row, a whole number from 0 to {}", rows.saturating_sub(1)),
                };
                return Err(not(path, line as u64, column, field, expected));
            }
        }
    }
    let tests: Vec<usize> = (0..rows).filter(|&row| is_test[row]).collect();
    if tests.len() == rows {
        let problem = format!("line {line} lists all {rows} rows: none is left for training");
        return Err(DataError::Columns { path: path.to_path_buf(), problem });
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_ten(text: &str, split: usize) -> Result<Vec<usize>, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path(), split, 10, "data.test_split").map_err(|error| error.to_string())
    }

    #[test]
    fn line_k_has_the_rows_of_split_k() {
        assert_eq!(read_ten("3 1\n\n9 0 2\r\n", 0), Ok(vec![1, 3]));
        assert_eq!(read_ten("3 1\n\n9 0 2\r\n", 1), Ok(vec![0, 2, 9]));
    }

    #[test]
    fn errors_name_the_splits_and_rows_that_exist() {
        let message = |text: &str, split| read_ten(text, split).unwrap_err();
        let absent = message("1\n2\n", 2);
        assert!(
            absent.starts_with("data.test_split = 2: ") && absent.contains("has the splits 0 to 1; -1"),
            "{absent}"
        );
        assert!(message("\n", 0).contains("has no splits"));
        assert!(message("1 10\n", 0).ends_with("line 1, column 2: `10` is not a row, a whole number from 0 to 9"));
        assert!(message("1 -1\n", 0).contains("`-1` is not a row"));
        assert!(message("1 2 1\n", 0).ends_with("column 3: `1` is not new: the row was listed before"));
        assert!(message("0 1 2 3 4 5 6 7 8 9\n", 0).ends_with("line 1 lists all 10 rows: none is left for training"));
    }
}
