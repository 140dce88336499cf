//! Scores and calibration reports for probabilistic predictions of any model, without a tensor library.
//!
//! Predictions are class probabilities with labels, or means and precisions with targets. From these the crate computes
//! proper scores and calibration errors ([`metrics`]), and a report: `report.json` for programs, `bins.csv` for
//! spreadsheets, SVG pictures, and `report.html`, one file without scripts, for people. The command `fedstein report`
//! writes the same files.
//!
//! # A classification
//!
//! ```
//! use fedstein_report::metrics::ClassPredictions;
//! use fedstein_report::{Content, Report, write};
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! // Probabilities `[rows, classes]`, row-major, and a label per row.
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
//! // One Gaussian per row: mean and variance. An ensemble has more members, `[members, rows]`.
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
//! [`csv::read_predictions`] and [`csv::read_regression`] read predictions from files, [`verdict`] gives the headline,
//! [`overall`] the headline numbers and [`render`] the whole report without writing anything, and [`metrics`] has every score as a function of its own. Which numbers a report has is
//! listed in one table, [`metrics::Metric::all`].
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod analysis;
mod calibrated;
mod clients;
mod clients_compared;
pub mod conformal;
pub mod csv;
mod definitions;
mod error;
pub mod exponential;
pub mod files;
mod groups;
mod html;
mod json;
pub mod maps;
pub mod metrics;
mod overall;
pub mod record;
mod report;
mod run;
mod site_scores;
mod skill;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod verdict;
mod write;

pub use analysis::{
    BinaryAnalysis, ClassAnalysis, ConfusionAnalysis, GroupAnalysis, PositiveClass, RegressionAnalysis, Selective,
    TemperatureDiagnosis,
};
pub use calibrated::{CalibrationResults, MapResults, SetLine, SetResults, TemperatureResults};
pub use clients::ClientNames;
pub use clients_compared::{ClientPair, ClientsCompared};
pub use error::ReportError;
pub use files::{FileError, quoted, quoted_within, read_text, read_whole, write_atomic};
pub use groups::Groups;
pub use json::SCHEMA_VERSION;
pub use overall::Overall;
pub use record::{HEADLINE, RoundRecord};
pub use report::{Content, Report};
pub use run::{Comparison, PartitionTable, PersonalRow, PersonalTable, RunSummary};
pub use site_scores::SiteScores;
pub use svg::{
    AxisSpec, ContourFigure, FigureLine, FigurePoint, IntervalFigure, IntervalGroup, IntervalRow, LineFigure, Plane,
    Stroke, curves_svg, partition_svg,
};
pub use text::decimals;
pub use verdict::{CalibrationVerdict, VerdictKind};
pub use write::{FILES, Rendered, ReportFiles, overall, overall_of_groups, render, takes_report, verdict, write};
