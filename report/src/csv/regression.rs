//! Mixtures of Gaussians with their targets: `target,mean_0,precision_0,...`, or `target,mean,sd` of any model, and `cluster`
//! where rows belong together.

use std::fmt::Write as _;
use std::path::Path;

use super::fields::{CLUSTER, ClusterColumn, fields, input, utf8};
use crate::error::ReportError;
use crate::files::{FileError, quoted, read_whole, write_atomic};
use crate::metrics::RegressionPredictions;
use crate::text::counted;

/// The header, for messages.
const HEADER: &str =
    "`target,mean,sd`, or `target,mean_0,sd_0,...`; a last column `cluster` says which rows belong together";

/// Writes the predictions of a regression: header `target,mean_0,precision_0,...`, one row for each sample and one
/// Gaussian for each particle, on the scale of the data; and a last column `cluster` where rows have clusters.
///
/// # Errors
/// The file cannot be written.
pub fn write_regression(path: &Path, predictions: &RegressionPredictions<'_>) -> Result<(), FileError> {
    let mut text = String::from("target");
    for n in 0..predictions.particles() {
        let _ = write!(text, ",mean_{n},precision_{n}");
    }
    let clusters = predictions.clusters();
    text += &clusters.map_or("\n".to_owned(), |_| format!(",{CLUSTER}\n"));
    for (row, target) in predictions.target().iter().enumerate() {
        let _ = write!(text, "{target}");
        for at in (row..predictions.mean().len()).step_by(predictions.rows()) {
            let _ = write!(text, ",{},{}", predictions.mean()[at], predictions.precision()[at]);
        }
        if let Some(clusters) = clusters {
            let _ = write!(text, ",{}", clusters.of_rows()[row]);
        }
        text.push('\n');
    }
    write_atomic(path, text.as_bytes())
}

/// Reads what [`write_regression`] wrote, to the same bits; or a file with standard deviations in the place of precisions.
///
/// # Errors
/// The file cannot be read or is invalid. The error names the file, the line and the expected content.
pub fn read_regression(path: &Path) -> Result<RegressionPredictions<'static>, ReportError> {
    parse(path, &read_whole(path).map_err(|source| FileError::new(path, source))?)
}

/// [`read_regression`] of the file's bytes.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<RegressionPredictions<'static>, ReportError> {
    let at = |line: usize, column: Option<&str>, problem: String| input(path, line, column, problem);
    let text = utf8(path, bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_end();
    let mut lines = text.lines();
    let mut header = lines.next().map(fields).unwrap_or_default();
    let count = header.len();
    let mut clusters = ClusterColumn::new(&mut header);
    let particles = header.len().saturating_sub(1) / 2;
    let is_pair = |pair: &[&str]| {
        let [mean, spread] = pair else { return false };
        mean.starts_with("mean") && (spread.starts_with("precision") || spread.starts_with("sd"))
    };
    if header.first() != Some(&"target") || particles == 0 || !header[1..].chunks(2).all(is_pair) {
        return Err(at(1, None, format!("the header is {HEADER}")));
    }
    let mut values = Vec::new();
    for (line, text) in (2..).zip(lines) {
        let mut row = fields(text);
        if row.len() != count {
            return Err(at(line, None, format!("{}, where the header has {count}", counted(row.len(), "field"))));
        }
        clusters.take(&mut row).map_err(|problem| at(line, Some(CLUSTER), problem))?;
        for (column, field) in row.into_iter().enumerate() {
            let value = component((column, header[column]), field);
            values.push(value.map_err(|problem| at(line, Some(header[column]), problem))?);
        }
    }
    if values.is_empty() {
        return Err(at(1, None, "there are no rows below the header".into()));
    }
    let column = |at: usize| values.iter().skip(at).step_by(header.len()).copied();
    let every_second = |first: usize| (first..header.len()).step_by(2).flat_map(column).collect();
    let predictions = RegressionPredictions::new(particles, every_second(1), every_second(2), column(0).collect())?;
    Ok(predictions.with_clusters(clusters.clusters())?)
}

/// Reads the target, a mean or, in every second column, a precision, which a standard deviation becomes.
fn component((column, name): (usize, &str), text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{}` is not a number", quoted(text)))?;
    if !value.is_finite() {
        return Err(format!("{value} is not finite"));
    }
    if column == 0 || !column.is_multiple_of(2) {
        return Ok(value);
    }
    let is_sd = name.starts_with("sd");
    let precision = if is_sd { (value * value).recip() } else { value };
    match value > 0.0 && precision > 0.0 && precision.is_finite() {
        true => Ok(precision),
        false if is_sd => {
            Err(format!("{value} is not a standard deviation; it and its square must be above 0, and finite"))
        }
        false => Err(format!("{value} is not a precision; precisions are greater than 0")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::metrics::Clusters;

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
        let clustered = predictions.with_clusters(Clusters::new(["a", "b", "a"])).unwrap();
        write_regression(&path, &clustered).unwrap();
        assert!(fs::read_to_string(&path).unwrap().ends_with(",0.3,7,0\n"));
        assert_eq!(read_regression(&path).unwrap(), clustered);
        fs::write(&path, "target,mean,sd,cluster\n1,1.5,2,a\n-2,0,0.5,\n").unwrap();
        let error = read_regression(&path).unwrap_err().to_string();
        assert!(error.contains("line 3, column cluster: the cluster of the row is missing"), "{error}");
    }

    #[test]
    fn standard_deviations_are_read_as_precisions_with_a_mark_and_ends_of_lines_of_other_programs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.csv");
        fs::write(&path, "\u{feff}\"target\",mean,sd\r\n1,1.5,2\r\n-2,0,0.5\r\n\r\n").unwrap();
        let want = RegressionPredictions::new(1, vec![1.5, 0.0], vec![0.25, 4.0], vec![1.0, -2.0]).unwrap();
        assert_eq!(read_regression(&path).unwrap(), want);
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
            ("1", "line 3: 1 field, where the header has 3"),
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
        for header in ["", "target", "target,mean", "target,sd,mean", "target,mean,var", "target,mean_0,sd_0,mean_1"] {
            assert!(
                complaint(format!("{header}\n").as_bytes()).contains("line 1: the header is `target,mean,sd`"),
                "{header}"
            );
        }
        for sd in ["0", "-1", "1e-200"] {
            assert!(complaint(format!("target,mean,sd\n0,0,{sd}\n").as_bytes()).contains("standard deviation"), "{sd}");
        }
    }
}
