//! `fedstein report`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Write the calibration report of a run, or of any model's predictions.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["run", "predictions"])))]
#[command(after_help = "\
The file of --predictions has one row per sample, and the header `label,p_0,...,p_{C-1}` (or `label,p_1` for two classes), or
of a regression `target,mean,sd` (or `target,mean_0,sd_0,...` for a mixture of normal distributions). A last column `cluster`,
such as the patient of each row, says which rows belong together: intervals then count clusters and not rows.")]
pub struct ReportArgs {
    /// The directory of a run
    #[arg(value_name = "RUN_DIR")]
    run: Option<PathBuf>,

    /// A file of predictions with the truth, instead of a run
    #[arg(long, value_name = "FILE.csv")]
    predictions: Option<PathBuf>,

    /// Number of bins of confidence [default: the run's `evaluation.bins`, else 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    bins: Option<u16>,

    /// Directory of the report [default: RUN_DIR/report, or <FILE>-report in the working directory]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Replace a report in the same directory (RUN_DIR/report is always replaced)
    #[arg(long)]
    force: bool,

    /// Compare with another run; may be repeated
    #[arg(long, value_name = "RUN_DIR")]
    compare: Vec<PathBuf>,

    /// Compare with runs on other test rows too
    #[arg(long)]
    other_rows: bool,

    /// The report's heading
    #[arg(long)]
    title: Option<String>,
}

/// A report to write.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    /// The input of the report.
    pub source: ReportSource,
    /// The number of bins of confidence; `None` for the run's number, else 15.
    pub bins: Option<usize>,
    /// The directory of the report.
    pub out: PathBuf,
    /// Whether an existing report in that directory is replaced.
    pub replace: bool,
    /// Runs that the report compares.
    pub compare: Vec<PathBuf>,
    /// Whether these runs may have other test rows.
    pub other_rows: bool,
    /// The report's heading.
    pub title: Option<String>,
}

/// The input of a report.
#[derive(Debug, PartialEq, Eq)]
pub enum ReportSource {
    /// The directory of a run.
    Run(PathBuf),
    /// A CSV file of predictions with the truth.
    Predictions(PathBuf),
}

impl ReportArgs {
    /// The report that the arguments mean.
    pub(super) fn resolved(self) -> Report {
        let Self { run, predictions, bins, out, force, compare, other_rows, title } = self;
        // A run's own report may always be replaced: it is generated from the run alone.
        let (source, default_out, own) = match (run, predictions) {
            (Some(run), _) => (ReportSource::Run(run.clone()), run.join("report"), true),
            (None, predictions) => {
                // Clap's group of arguments requires one of the two.
                let file = predictions.unwrap_or_default();
                let mut name = file.file_stem().unwrap_or_default().to_os_string();
                name.push("-report");
                (ReportSource::Predictions(file), PathBuf::from(name), false)
            }
        };
        Report {
            source,
            bins: bins.map(usize::from),
            replace: force || (own && out.is_none()),
            out: out.unwrap_or(default_out),
            compare,
            other_rows,
            title,
        }
    }
}
