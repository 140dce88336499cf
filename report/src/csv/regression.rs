//! Mixtures of Gaussians with their targets: `target,mean_0,precision_0,...`.

use std::fmt::Write as _;
use std::path::Path;

use super::{fields, input, unquote, utf8};
use crate::error::ReportError;
use crate::files::{FileError, quoted, read_whole, write_atomic};
use crate::metrics::RegressionPredictions;

/// Writes the predictions of a regression: header `target,mean_0,precision_0,...`, one row for each sample and one
/// Gaussian for each particle, on the scale of the data.
///
/// # Errors
/// The file cannot be written.
pub fn write_regression(path: &Path, predictions: &RegressionPredictions<'_>) -> Result<(), FileError> {
    let mut text = String::from("target");
    for n in 0..predictions.particles() {
        let _ = write!(text, ",mean_{n},precision_{n}");
    }
    text.push('\n');
    for (row, target) in predictions.target().iter().enumerate() {
        let _ = write!(text, "{target}");
        for at in (row..predictions.mean().len()).step_by(predictions.rows()) {
            let _ = write!(text, ",{},{}", predictions.mean()[at], predictions.precision()[at]);
        }
        text.push('\n');
    }
    write_atomic(path, text.as_bytes())
}

/// Reads what [`write_regression`] wrote, to the same bits.
///
/// # Errors
/// The file cannot be read or is invalid. The error names the file, the line and the expected content.
pub fn read_regression(path: &Path) -> Result<RegressionPredictions<'static>, ReportError> {
    let bytes = read_whole(path).map_err(|source| FileError::new(path, source))?;
    let at = |line: usize, column: Option<&str>, problem: String| input(path, line, column, problem);
    let mut lines = utf8(path, &bytes)?.lines();
    let header = lines.next().map(fields).unwrap_or_default();
    let particles = header.len().saturating_sub(1) / 2;
    if header.first() != Some(&"target") || particles == 0 || header.len() != 1 + 2 * particles {
        return Err(at(1, None, "the header is `target,mean_0,precision_0,...`".into()));
    }
    let mut values = Vec::new();
    for (line, text) in (2..).zip(lines) {
        let found = text.split(',').count();
        if found != header.len() {
            return Err(at(line, None, format!("{found} fields, where the header has {}", header.len())));
        }
        for (column, field) in text.split(',').map(unquote).enumerate() {
            let value = component(column, field).map_err(|problem| at(line, Some(header[column]), problem))?;
            values.push(value);
        }
    }
    if values.is_empty() {
        return Err(at(1, None, "there are no rows below the header".into()));
    }
    let column = |at: usize| values.iter().skip(at).step_by(header.len()).copied();
    let every_second = |first: usize| (first..header.len()).step_by(2).flat_map(column).collect();
    Ok(RegressionPredictions::new(particles, every_second(1), every_second(2), column(0).collect())?)
}

/// Reads the target, a mean or, in every second column, a precision.
fn component(column: usize, text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{}` is not a number", quoted(text)))?;
    let is_precision = column > 0 && column.is_multiple_of(2);
    match (value.is_finite(), is_precision && value <= 0.0) {
        (true, false) => Ok(value),
        (true, true) => Err(format!("{value} is not a precision; precisions are greater than 0")),
        (false, _) => Err(format!("{value} is not finite")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn predictions_of_a_regression_are_read_as_they_were_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.csv");
        let (mean, precision) = (vec![1.5, 2.5, -0.1, 1e-9, 4.0, 0.3], vec![0.25, 4.0, 1e5, 0.1, 3.0, 7.0]);
        let predictions = RegressionPredictions::new(2, mean, precision, vec![1.0, 2.0, 1.0 / 3.0]).unwrap();
        write_regression(&path, &predictions).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("target,mean_0,precision_0,mean_1,precision_1\n1,1.5,0.25,0.000000001,0.1\n"),
            "{text}"
        );
        assert_eq!(read_regression(&path).unwrap(), predictions);
    }

    #[test]
    fn errors_about_predictions_of_a_regression_name_line_and_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.csv");
        let complaint = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            read_regression(&path).unwrap_err().to_string()
        };
        let head = "target,mean_0,precision_0\n0,0.5,2\n";
        for (row, want) in [
            ("1,2", "p.csv, line 3: 2 fields, where the header has 3"),
            ("1,x,2", "line 3, column mean_0: `x` is not a number"),
            ("inf,1,2", "line 3, column target: inf is not finite"),
            ("1,1,0", "line 3, column precision_0: 0 is not a precision; precisions are greater than 0"),
            ("1,1,NaN", "line 3, column precision_0: NaN is not finite"),
            ("1,\u{1b}[2J,1", r"line 3, column mean_0: `\u{1b}[2J` is not a number"),
        ] {
            let got = complaint(format!("{head}{row}\n").as_bytes());
            assert!(got.contains(want), "{row}: {got}");
        }
        assert!(complaint(b"target,mean_0,precision_0\n").contains("line 1: there are no rows below the header"));
        assert!(complaint(b"target,mean_0,precision_0\n1,\xff,1\n").contains("line 2: not UTF-8"));
        assert!(complaint(b"").contains("line 1: the header is"));
    }
}
