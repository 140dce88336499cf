//! `fedstein evaluate`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::options::{OwnPredictor, Written, level};
use crate::backend::KNOWN;

/// Score a trained run on labelled rows of a CSV file, such as those of another place or year, with a full report.
#[derive(Debug, PartialEq, Args)]
#[command(after_help = "\
Examples:
  fedstein evaluate runs/a --input other.csv                 the report is in runs/a/evaluate/other
  fedstein evaluate runs/a --input other.csv --by hospital   each hospital by itself too, the worst first
  fedstein evaluate runs/a --input pixels.csv --target label --out elsewhere

Columns are found by their names, as `fedstein predict` finds them. See docs/evaluate.md")]
pub struct Evaluate {
    /// The directory of a run
    #[arg(value_name = "RUN_DIR")]
    pub run: PathBuf,

    /// Rows with the features of the training data, and their targets
    #[arg(long, value_name = "FILE.csv")]
    pub input: PathBuf,

    /// The column of the targets, by name or by number from 0, -1 for the last [default: the run's `data.target`]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,

    /// A column of groups, such as hospital, year or sex; each has numbers of its own
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub by: Option<String>,

    /// A column of clusters, such as patients with several rows, by which intervals are computed [default: the run's
    /// `data.group_column`, where the file has it]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub cluster: Option<String>,

    /// Whose predictor.
    #[command(flatten)]
    pub own: OwnPredictor,

    /// Directory of predictions and report [default: RUN_DIR/evaluate/<FILE>, with --client <FILE>-client-<NAME>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace an earlier evaluation in the same directory
    #[arg(long)]
    pub force: bool,

    /// The report's heading
    #[arg(long)]
    pub title: Option<String>,

    /// Level of the prediction sets whose coverage is counted [default: the run's `calibration.level`]
    #[arg(long, value_name = "L", value_parser = level)]
    pub level: Option<f64>,

    /// How the cells of the file are written.
    #[command(flatten)]
    pub written: Written,

    /// Backend to use instead of the run's
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(KNOWN))]
    pub backend: Option<String>,
}
