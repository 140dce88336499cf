//! Predictions as CSV files, one row for each sample: `label,p_0,...,p_{C-1}` (or `label,p_1` for two classes) of a
//! classification, `target,mean_0,precision_0,...` of a regression. A last column `cluster` has names or numbers without
//! commas, the same for rows that belong together, such as the visits of one patient ([`Clusters`](crate::metrics::Clusters)).
//!
//! Values stay `f64` on their way in and out: 0.6 rounded to `f32` lies above the bin edge 0.6.

mod classification;
mod decisions;
mod fields;
mod groups;
mod regression;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::Path;

pub use classification::{read_predictions, write_predictions};
pub(crate) use decisions::{confusion_csv, thresholds_csv};
pub(crate) use groups::groups_csv;
pub use regression::{read_regression, write_regression};

use crate::error::ReportError;
use crate::files::{FileError, read_whole};
use crate::metrics::{Bin, ClassPredictions, CoverageRow, RegressionPredictions};
use fields::{fields, utf8};

/// The predictions of a file, of either task.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyPredictions {
    /// Of a classification: [`read_predictions`].
    Classes(ClassPredictions<'static>),
    /// Of a regression: [`read_regression`].
    Targets(RegressionPredictions<'static>),
}

/// Reads a predictions file of either task; that of a regression begins with the column `target`.
///
/// # Errors
/// As those of [`read_predictions`] and [`read_regression`].
pub fn read_any(path: &Path) -> Result<AnyPredictions, ReportError> {
    let bytes = read_whole(path).map_err(|source| FileError::new(path, source))?;
    let first = utf8(path, &bytes)?.trim_start_matches('\u{feff}').lines().next().map(fields).unwrap_or_default();
    match first.first() {
        Some(&"target") => regression::parse(path, &bytes).map(AnyPredictions::Targets),
        _ => classification::parse(path, &bytes).map(AnyPredictions::Classes),
    }
}

/// The bins as a table `lo,hi,n,accuracy,confidence,gap`; an empty bin leaves the last three blank.
pub fn bins_csv(bins: &[Bin]) -> String {
    let mut text = String::from("lo,hi,n,accuracy,confidence,gap\n");
    for bin in bins {
        let [accuracy, confidence, gap] = [bin.accuracy, bin.confidence, bin.gap].map(cell);
        let _ = writeln!(text, "{},{},{},{accuracy},{confidence},{gap}", bin.lo, bin.hi, bin.n);
    }
    text
}

/// Central intervals as a table `level,coverage,mean_width`.
pub(super) fn coverage_csv(rows: &[CoverageRow]) -> String {
    let mut text = String::from("level,coverage,mean_width\n");
    for row in rows {
        let _ = writeln!(text, "{},{},{}", row.level, row.coverage, cell(row.mean_width));
    }
    text
}

fn cell(value: Option<f64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

/// A text as a cell of a table: in quotes, if a comma, a quote or a line break asks for them.
pub fn text_cell(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_bin_is_blank() {
        let bin = Bin { lo: 0.0, hi: 0.5, n: 0, accuracy: None, confidence: None, gap: None };
        assert_eq!(bins_csv(&[bin]), "lo,hi,n,accuracy,confidence,gap\n0,0.5,0,,,\n");
    }
}
