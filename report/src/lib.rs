//! Scores and calibration reports for anybody's probabilistic predictions. No tensor library, no network.
//!
//! Predictions come in as class probabilities with labels, or as means and precisions with targets. Out come proper scores
//! and calibration errors ([`metrics`]), and a report: `report.json` for programs, `bins.csv` for spreadsheets, SVG
//! pictures, and `report.html`, one file without scripts, for people. The command `fedstein report` writes the same files.
//!
//! # A classification
//!
//! ```
//! use fedstein_report::metrics::ClassPredictions;
//! use fedstein_report::{Content, Report, write};
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! // Probabilities `[rows, classes]`, row-major, and a label a row.
//! let probabilities = vec![0.9, 0.1, 0.2, 0.8, 0.6, 0.4];
//! let predictions = ClassPredictions::new(vec![0, 1, 1], 2, probabilities)?;
//! let content = Content::Classification { predictions: &predictions, uncertainty: None };
//! let files = write(&Report::new("my model", content), directory)?;
//! println!("open {}", files.html.display());
//! # assert!(files.html.exists() && files.json.exists() && files.bins.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A regression
//!
//! ```
//! use fedstein_report::metrics::RegressionPredictions;
//! use fedstein_report::{Content, Report, write};
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! // One Gaussian a row: mean and variance. An ensemble has more members, `[members, rows]`.
//! let (mean, variance) = (vec![1.0, 2.5, 2.9], [0.5, 0.25, 0.5]);
//! let precision = variance.map(|v: f64| 1.0 / v).to_vec();
//! let targets = vec![1.3, 2.0, 3.1];
//! let predictions = RegressionPredictions::new(1, mean, precision, targets)?;
//! let files = write(&Report::new("my model", Content::Regression { predictions: &predictions }), directory)?;
//! println!("open {}", files.html.display());
//! # assert!(files.html.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`csv::read_predictions`] and [`csv::read_regression`] read predictions from files, [`verdict`] gives the headline
//! without writing anything, and [`metrics`] has every score as a function of its own. Which numbers a report has is
//! listed in one table, [`metrics::Metric::all`].
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod analysis;
pub mod csv;
mod definitions;
mod error;
pub mod exponential;
pub mod files;
mod html;
mod json;
pub mod metrics;
mod overall;
mod regression;
mod run;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

use std::path::{Path, PathBuf};

pub use analysis::{ClassAnalysis, Selective, TemperatureDiagnosis};
pub use error::ReportError;
pub use files::{FileError, quoted, read_text, read_whole, write_atomic};
pub use overall::Overall;
pub use regression::RegressionAnalysis;
pub use run::{Comparison, PartitionTable, PersonalRow, PersonalTable, RoundPoint, RunSummary};
pub use svg::{AxisSpec, ContourFigure, FigureLine, FigurePoint, LineFigure, Plane, Stroke, curves_svg, partition_svg};
pub use verdict::Verdict;

use crate::metrics::{ClassPredictions, RegressionPredictions, UncertaintySummary};

/// Version of the layout of `report.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// The input of a report. Nothing in it is computed yet.
#[derive(Debug)]
pub struct Report<'a> {
    /// Headline of the page, such as the name of the run.
    pub title: String,
    /// The predictions to judge.
    pub content: Content<'a>,
    /// Number of calibration bins; 15 is usual.
    pub bins: usize,
    /// Seed of the bootstrap and of the split for temperature scaling.
    pub seed: u64,
    /// The run behind the predictions, where known.
    pub run: Option<RunSummary>,
}

impl<'a> Report<'a> {
    /// A report with 15 bins and the seed 1 on predictions of unknown origin.
    pub fn new(title: impl Into<String>, content: Content<'a>) -> Self {
        Self { title: title.into(), content, bins: 15, seed: 1, run: None }
    }
}

/// Predictions of either task.
#[derive(Debug)]
pub enum Content<'a> {
    /// Class probabilities.
    Classification {
        /// The predictive with its labels.
        predictions: &'a ClassPredictions,
        /// The numbers that need the particles, where these are known.
        uncertainty: Option<UncertaintySummary>,
    },
    /// Mixtures of normals on the scale of the data (see
    /// [`RegressionPredictions::original_scale`]).
    Regression {
        /// The predictive with its targets.
        predictions: &'a RegressionPredictions,
    },
}

/// The paths of a report's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFiles {
    /// Everything, for programs.
    pub json: PathBuf,
    /// The bins (classification) or intervals (regression) as a table.
    pub bins: PathBuf,
    /// Reliability diagram (classification) or coverage plot (regression).
    pub reliability: PathBuf,
    /// Accuracy, NLL, ECE or RMSE over rounds; only with rounds.
    pub curves: Option<PathBuf>,
    /// Clients by classes; only with a partition.
    pub partition: Option<PathBuf>,
    /// Everything, for people.
    pub html: PathBuf,
}

/// The numbers computed from the predictions.
#[derive(Debug)]
enum Analysis {
    Classification(Box<ClassAnalysis>),
    Regression(Box<RegressionAnalysis>),
}

impl Analysis {
    fn overall(&self) -> &Overall {
        match self {
            Self::Classification(analysis) => &analysis.overall,
            Self::Regression(analysis) => &analysis.overall,
        }
    }
}

/// The headline of an analysis in one paragraph, without writing a file.
///
/// # Errors
/// A number of bins outside the accepted range.
pub fn verdict(report: &Report<'_>) -> Result<Verdict, ReportError> {
    Ok(match analyse(report)? {
        Analysis::Classification(analysis) => analysis.verdict,
        Analysis::Regression(analysis) => analysis.verdict,
    })
}

/// Computes the report and writes its files into `dir`, which is created if it is missing.
///
/// Everything is computed before the first file is written, and each file appears whole or not at
/// all.
///
/// # Errors
/// A number of bins outside the accepted range, or a file that cannot be written.
pub fn write(report: &Report<'_>, dir: &Path) -> Result<ReportFiles, ReportError> {
    let analysis = analyse(report)?;
    let run = report.run.as_ref();
    let compare = run.map_or(&[][..], |run| &run.compare);
    let (bins, reliability) = match &analysis {
        Analysis::Classification(a) => (csv::bins_csv(&a.bins), svg::reliability(&report.title, a, compare)),
        Analysis::Regression(a) => (csv::coverage_csv(&a.coverage), svg::coverage(&report.title, a)),
    };
    let curves = run.and_then(|run| svg::curves(&report.title, &run.rounds, compare));
    let partition = run.and_then(|run| run.partition.as_ref()).and_then(svg::heatmap);
    let pictures = html::Pictures { reliability: &reliability, curves: curves.as_ref(), partition: partition.as_ref() };
    let page = html::page(report, &analysis, &pictures);
    let json = json::render(report, &analysis)?;

    std::fs::create_dir_all(dir).map_err(|source| FileError::new(dir, source))?;
    let put = |name: &str, text: &str| -> Result<PathBuf, ReportError> {
        let path = dir.join(name);
        write_atomic(&path, text.as_bytes())?;
        Ok(path)
    };
    Ok(ReportFiles {
        json: put("report.json", &json)?,
        bins: put("bins.csv", &bins)?,
        reliability: put("reliability.svg", &reliability.standalone())?,
        curves: curves.map(|picture| put("curves.svg", &picture.standalone())).transpose()?,
        partition: partition.map(|picture| put("partition.svg", &picture.standalone())).transpose()?,
        html: put("report.html", &page)?,
    })
}

fn analyse(report: &Report<'_>) -> Result<Analysis, ReportError> {
    Ok(match &report.content {
        Content::Classification { predictions, uncertainty } => {
            let analysis = ClassAnalysis::new(predictions, uncertainty.clone(), report.bins, report.seed)?;
            Analysis::Classification(Box::new(analysis))
        }
        Content::Regression { predictions } => {
            Analysis::Regression(Box::new(RegressionAnalysis::new(predictions, report.bins)?))
        }
    })
}
