//! Class probabilities with their labels: `label,p_0,...,p_{C-1}`, or `label,p_1` for two classes, and `cluster` where rows
//! belong together.

use std::fmt::Write as _;
use std::path::Path;

use super::fields::{CLUSTER, ClusterColumn, fields, input, utf8};
use crate::error::ReportError;
use crate::files::{FileError, quoted, read_whole, write_atomic};
use crate::metrics::{self, ClassPredictions, ROW_SUM_TOLERANCE};
use crate::text::counted;

const HEADER: &str =
    "`label,p_0,...,p_{C-1}`, or `label,p_1` for two classes; a last column `cluster` says which rows belong together";

/// Reads a predictions file.
///
/// A byte order mark, CRLF line ends, quotes around a field and empty lines at the end are fine.
/// Rows whose sum is within [`ROW_SUM_TOLERANCE`] of 1 are kept as given. With the header
/// `label,p_1`, `p_0 = 1 - p_1`. A last column `cluster` makes the clusters of the predictions.
///
/// # Errors
/// The file cannot be read or is invalid. The error names the file, the line (the header is line 1), the column and the
/// expected content.
pub fn read_predictions(path: &Path) -> Result<ClassPredictions<'static>, ReportError> {
    parse(path, &read_whole(path).map_err(|source| FileError::new(path, source))?)
}

/// [`read_predictions`] of the file's bytes.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<ClassPredictions<'static>, ReportError> {
    let at = |line: usize, column: Option<&str>, problem: String| input(path, line, column, problem);
    let text = utf8(path, bytes)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Vec<&str> = text.trim_end_matches(['\n', '\r', ' ', '\t']).split('\n').collect();
    let mut header = fields(lines[0]);
    let count = header.len();
    let mut clusters = ClusterColumn::new(&mut header);
    if lines == [""] {
        return Err(at(1, None, format!("the file is empty; the header is {HEADER}")));
    }
    let columns = Columns::new(&header).map_err(|(column, problem)| at(1, column, problem))?;
    if lines.len() == 1 {
        return Err(at(1, None, "there are no rows below the header".into()));
    }
    let mut labels = Vec::with_capacity(lines.len() - 1);
    let mut probabilities = Vec::with_capacity((lines.len() - 1) * columns.classes);
    for (index, line) in lines.iter().enumerate().skip(1) {
        let mut values = fields(line);
        if values.len() != count {
            return Err(at(index + 1, None, format!("{}; the header has {count}", counted(values.len(), "field"))));
        }
        clusters.take(&mut values).map_err(|problem| at(index + 1, Some(CLUSTER), problem))?;
        let label = columns
            .read(&values, &mut probabilities)
            .map_err(|(column, problem)| at(index + 1, column.as_deref(), problem))?;
        labels.push(label);
    }
    let predictions = ClassPredictions::new(labels, columns.classes, probabilities)?;
    Ok(predictions.with_clusters(clusters.clusters())?)
}

/// Writes a predictions file that [`read_predictions`] reads back to the same bits.
///
/// # Errors
/// The file cannot be written.
pub fn write_predictions(path: &Path, predictions: &ClassPredictions<'_>) -> Result<(), FileError> {
    let mut text = String::from("label");
    for class in 0..predictions.classes() {
        let _ = write!(text, ",p_{class}");
    }
    let clusters = predictions.clusters();
    text += &clusters.map_or("\n".to_owned(), |_| format!(",{CLUSTER}\n"));
    for (at, (row, label)) in predictions.rows().zip(predictions.labels()).enumerate() {
        let _ = write!(text, "{label}");
        for p in row {
            let _ = write!(text, ",{p}");
        }
        if let Some(clusters) = clusters {
            let _ = write!(text, ",{}", clusters.of_rows()[at]);
        }
        text.push('\n');
    }
    write_atomic(path, text.as_bytes())
}

/// The columns that the header names.
struct Columns {
    classes: usize,
    /// Only `p_1` is given.
    positive_only: bool,
}

impl Columns {
    fn new<'h>(header: &[&'h str]) -> Result<Self, (Option<&'h str>, String)> {
        let Some(&first) = header.first() else {
            return Err((None, format!("there is no column `label`; the header is {HEADER}")));
        };
        if first != "label" {
            return Err((None, format!("the first column is `{}`; the header is {HEADER}", quoted(first))));
        }
        if header == ["label", "p_1"] {
            return Ok(Self { classes: 2, positive_only: true });
        }
        if header.len() < 3 {
            let given = quoted(&header.join(","));
            return Err((None, format!("`{given}` has no probabilities of two classes; the header is {HEADER}")));
        }
        for (class, &name) in header[1..].iter().enumerate() {
            let expected = format!("p_{class}");
            if name == expected {
                continue;
            }
            let shown = quoted(name);
            let problem = if header[1..=class].contains(&name) {
                format!("`{shown}` appears twice; `{expected}` is expected here")
            } else if header.contains(&expected.as_str()) {
                format!("`{shown}` stands where `{expected}` belongs; the columns are in the order of the classes")
            } else {
                format!("found `{shown}`, but `{expected}` is missing; the header is {HEADER}")
            };
            return Err((Some(name), problem));
        }
        Ok(Self { classes: header.len() - 1, positive_only: false })
    }

    fn name(&self, at: usize) -> String {
        match at {
            0 => "label".into(),
            _ if self.positive_only => "p_1".into(),
            _ => format!("p_{}", at - 1),
        }
    }

    /// Reads one line of as many fields as the header has: returns the label, appends the probabilities.
    fn read(&self, values: &[&str], into: &mut Vec<f64>) -> Result<usize, (Option<String>, String)> {
        let label = self.label(values[0]).map_err(|problem| (Some(self.name(0)), problem))?;
        let start = into.len();
        for (at, text) in values.iter().enumerate().skip(1) {
            let p = probability(text).map_err(|problem| (Some(self.name(at)), problem))?;
            if self.positive_only {
                into.push(1.0 - p);
            }
            into.push(p);
        }
        let sum: f64 = into[start..].iter().sum();
        if (sum - 1.0).abs() > ROW_SUM_TOLERANCE {
            return Err((
                None,
                format!("the probabilities sum to {sum}; they must sum to 1 within {ROW_SUM_TOLERANCE}"),
            ));
        }
        Ok(label)
    }

    fn label(&self, text: &str) -> Result<usize, String> {
        let range = format!("labels are the integers 0 to {}", self.classes - 1);
        // `1.0`, as pandas writes whole numbers of a column in which some were missing.
        let whole = text.parse::<f64>().ok().filter(|label| label.fract() == 0.0 && label.abs() < 1e15);
        match text.parse::<i128>().or_else(|error| whole.map(|label| label as i128).ok_or(error)) {
            Ok(label) if (0..self.classes as i128).contains(&label) => Ok(label as usize),
            Ok(label) => Err(format!("label {label} is out of range; {range}")),
            Err(_) => Err(format!("`{}` is not an integer; {range}", quoted(text))),
        }
    }
}

fn probability(text: &str) -> Result<f64, String> {
    let value: f64 = text
        .parse()
        .map_err(|_| format!("`{}` is not a number; a probability such as 0.25 is expected", quoted(text)))?;
    metrics::probability(value)
        .ok_or_else(|| format!("{} is not a probability; probabilities lie in [0, 1]", quoted(text)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<ClassPredictions<'static>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.csv");
        fs::write(&path, text).unwrap();
        read_predictions(&path).map_err(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    }

    #[test]
    fn every_spelling_of_a_good_file_is_read() {
        let want = ClassPredictions::new(vec![1, 0], 2, vec![0.25, 0.75, 0.5, 0.5]).unwrap();
        for text in [
            "label,p_0,p_1\n1,0.25,0.75\n0,0.5,0.5\n",
            "label,p_1\n1,0.75\n0,.5",
            "\u{feff}label,p_0,p_1\r\n1,0.25,0.75\r\n0,5e-1,0.5\r\n\r\n",
            "label,p_0,p_1\n1.0,0.25,0.75\n0.0,0.5,0.5\n",
            "\"label\", \"p_0\", \"p_1\"\n\"1\", 0.25, 0.75\n0,0.5,0.5\n\n",
        ] {
            assert_eq!(read(text).as_ref(), Ok(&want), "{text:?}");
        }
    }

    #[test]
    fn the_error_about_a_bad_file_names_the_place_and_the_expected_content() {
        let head = "label,p_0,p_1\n0,0.5,0.5\n";
        let row = |line: &str| format!("{head}{line}\n");
        let cases = [
            (String::new(), "p.csv, line 1: the file is empty"),
            ("label,p_0,p_1\n".into(), "line 1: there are no rows"),
            ("p_0,p_1\n0.5,0.5\n".into(), "line 1: the first column is `p_0`"),
            ("cluster\n1\n".into(), "line 1: there is no column `label`"),
            ("label,p_0\n0,1\n".into(), "line 1: `label,p_0` has no probabilities of two classes"),
            ("label,p_0,p_2\n".into(), "line 1, column p_2: found `p_2`, but `p_1` is missing"),
            ("label,p_1,p_0\n".into(), "line 1, column p_1: `p_1` stands where `p_0` belongs"),
            ("label,p_0,p_0\n".into(), "line 1, column p_0: `p_0` appears twice"),
            (row("0,0.5"), "line 3: 2 fields; the header has 3"),
            (row("0,0.5,0.5,"), "line 3: 4 fields"),
            (row("0,half,0.5"), "line 3, column p_0: `half` is not a number"),
            (row("0,,1"), "line 3, column p_0: `` is not a number"),
            (row("0,0.5,NaN"), "line 3, column p_1: NaN is not a probability"),
            (row("0,inf,0.5"), "line 3, column p_0: inf is not a probability"),
            (row("0,-0.1,1"), "line 3, column p_0: -0.1 is not a probability"),
            (row("0,1.1,0"), "line 3, column p_0: 1.1 is not a probability"),
            (row("0,0.5,0.6"), "line 3: the probabilities sum to 1.1; they must sum to 1 within 0.001"),
            (row("2,0.5,0.5"), "line 3, column label: label 2 is out of range; labels are the integers 0 to 1"),
            (row("-1,0.5,0.5"), "line 3, column label: label -1 is out of range"),
            (row("0.5,0.5,0.5"), "line 3, column label: `0.5` is not an integer"),
            (row("\n0,0.5,0.5"), "line 3: 1 field; the header has 3"),
            ("label,p_1,cluster\n1,0.5\n".into(), "line 2: 2 fields; the header has 3"),
            (
                "label,p_1,cluster\n1,0.5,a\n1,0.5, \n".into(),
                "line 3, column cluster: the cluster of the row is missing",
            ),
        ];
        for (text, want) in cases {
            let got = read(&text).unwrap_err();
            assert!(got.contains(want), "{text:?}: {got}");
        }
        assert!(read(b"label,p_1\n1,\xff\n").unwrap_err().contains("line 2: not UTF-8"));
    }

    #[test]
    fn rows_that_belong_together_are_read_back() {
        for text in [
            "label,p_1,cluster\n1,0.75,P7\n0,0.5,P2\n1,0.5,P7\n",
            "label,p_0,p_1,cluster\n1,.25,.75,0\n0,.5,.5,1\n1,.5,.5,0\n",
        ] {
            let predictions = read(text).unwrap();
            let clusters = predictions.clusters().unwrap();
            assert_eq!((clusters.count(), clusters.of_rows()), (2, &[0, 1, 0][..]));
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("p.csv");
            write_predictions(&path, &predictions).unwrap();
            assert_eq!(read_predictions(&path).unwrap(), predictions);
        }
        // Clusters of one row each are independent rows.
        assert_eq!(read("label,p_1,cluster\n1,0.75,a\n0,0.5,b\n").unwrap().clusters(), None);
    }

    #[test]
    fn a_row_within_the_tolerance_is_kept_as_given() {
        assert_eq!(read("label,p_0,p_1\n0,0.3333,0.6666\n").unwrap().probabilities(), [0.3333, 0.6666]);
        assert!(read("label,p_0,p_1\n0,0.3333,0.6655\n").is_err());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_predictions(Path::new("/nowhere/p.csv")).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere/p.csv: "), "{error}");
    }

    proptest! {
        #[test]
        fn a_file_is_read_back_to_the_bit(rows in prop::collection::vec((0_usize..3, 0.0..=1.0_f64, 0.0..=1.0_f64), 1..20)) {
            let labels = rows.iter().map(|row| row.0).collect();
            let probabilities = rows.iter().flat_map(|(_, a, b)| [a * b, a * (1.0 - b), 1.0 - a]).collect();
            let predictions = ClassPredictions::new(labels, 3, probabilities).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("p.csv");
            write_predictions(&path, &predictions).unwrap();
            let back = read_predictions(&path).unwrap();
            let bits = |of: &ClassPredictions<'_>| of.probabilities().iter().map(|p| p.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&predictions));
            prop_assert_eq!(back.labels(), predictions.labels());
        }
    }
}
