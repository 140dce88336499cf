//! `fedstein runs`.

use std::path::PathBuf;

use clap::Args;

/// List the runs below a directory with their state and metrics, or show how runs differ.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  fedstein runs                              every run in runs/ and below
  fedstein runs results --csv > runs.csv
  fedstein runs --diff runs/a runs/b         the keys in which their configs differ

States: finished; stopped (`fedstein train --resume` continues it); running (a process works on it); broken off (stopped
without a checkpoint); set aside (by a --force that was killed before its own run had results).")]
pub struct Runs {
    /// The directory
    #[arg(value_name = "DIR", default_value = "runs", conflicts_with = "diff")]
    pub dir: PathBuf,

    /// Show the keys in which the configs of these runs differ
    #[arg(long, value_name = "RUN_DIR", num_args = 2..)]
    pub diff: Vec<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print CSV
    #[arg(long)]
    csv: bool,
}

impl Runs {
    /// The form of the output.
    pub fn listing(&self) -> Listing {
        match (self.json, self.csv) {
            (true, _) => Listing::Json,
            (_, true) => Listing::Csv,
            _ => Listing::Text,
        }
    }
}

/// The form of a table on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// Aligned columns.
    Text,
    /// JSON.
    Json,
    /// CSV.
    Csv,
}
