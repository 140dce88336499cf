//! A report from predictions and, where known, from the run that made them: `report.json` for
//! programs, `bins.csv` for spreadsheets, SVG pictures for a page, `report.html` (one file, no
//! script, no network) for people.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use fedstein_report::{self as report, Content, Report};
//!
//! let predictions = report::csv::read_predictions(Path::new("predictions.csv"))?;
//! let report = Report {
//!     title: "my model".into(),
//!     content: Content::Classification { predictions: &predictions, uncertainty: None },
//!     bins: 15,
//!     seed: 1,
//!     run: None,
//! };
//! let files = report::write(&report, Path::new("report"))?;
//! println!("{}", files.html.display());
//! # Ok::<(), fedstein_report::ReportError>(())
//! ```

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

/// What a report is about. Nothing in it is computed yet.
#[derive(Debug)]
pub struct Report<'a> {
    /// Headline of the page, such as the name of the run.
    pub title: String,
    /// The predictions to judge.
    pub content: Content<'a>,
    /// Number of calibration bins; 15 unless there is a reason.
    pub bins: usize,
    /// Seed of the bootstrap and of the split for temperature scaling.
    pub seed: u64,
    /// The run behind the predictions, where known.
    pub run: Option<RunSummary>,
}

/// Predictions of either task.
#[derive(Debug)]
pub enum Content<'a> {
    /// Class probabilities.
    Classification {
        /// The predictive with its labels.
        predictions: &'a ClassPredictions,
        /// What the particles tell beyond the predictive.
        uncertainty: Option<UncertaintySummary>,
    },
    /// Mixtures of normals on the scale of the data (see
    /// [`RegressionPredictions::original_scale`]).
    Regression {
        /// The predictive with its targets.
        predictions: &'a RegressionPredictions,
    },
}

/// Where the files of a report are.
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

/// What was computed from the predictions.
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

/// Computes the report and writes its files into `dir`, which is made if missing.
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
