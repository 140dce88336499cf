//! `fedstein report`: a calibration report on a run, or on a file of any model's predictions.

use std::path::Path;

use crate::cli::{CliError, Report, ReportSource};
use crate::experiment::finished::Finished;
use crate::experiment::run_report::{comparisons, unreadable, write_files};
use crate::experiment::{ReportOptions, run_dir};
use crate::report::{self, Content, RunSummary, csv};

/// The number of bins where neither the command nor the run gives one.
const BINS: usize = 15;

/// Runs the command.
///
/// # Errors
/// The run or the predictions cannot be read, or the report cannot be written.
pub(super) fn report(typed: Report) -> Result<(), CliError> {
    let Report { source, bins, out, replace, compare, title } = typed;
    let occupied = out.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if out.exists() && !replace && (occupied || !out.is_dir()) {
        let message = "exists and is not empty; choose another with --out or replace it with --force";
        return Err(CliError::Usage(format!("`{}` {message}", out.display())));
    }
    // The run may come from an untrusted source: its report stays in its directory and does not follow a link out of
    // it.
    if matches!(&source, ReportSource::Run(run) if out.starts_with(run)) && out.is_symlink() {
        return Err(CliError::Usage(format!("`{}` is a link; name where the report goes with --out", out.display())));
    }
    let others = compare.iter().map(|run| Finished::open(run)).collect::<Result<Vec<_>, _>>()?;
    let files = match source {
        ReportSource::Run(path) => {
            let run = Finished::open(&path)?;
            // Read here, so that an internal error of the configuration keeps its exit code.
            let bins = bins.unwrap_or(run.config()?.evaluation.bins);
            let options = ReportOptions { bins: Some(bins), title, compare: &others };
            run.report(&out, options)?.ok_or_else(|| CliError::Usage(nothing_to_report(&path)))?
        }
        ReportSource::Predictions(path) => {
            let predictions = csv::read_predictions(&path).map_err(unreadable)?;
            let bins = bins.unwrap_or(BINS);
            let name =
                path.file_stem().map_or_else(|| "predictions".into(), |stem| stem.to_string_lossy().into_owned());
            let title = title.unwrap_or(name);
            let compare = comparisons(&others, &title, true, bins)?;
            let run = (!compare.is_empty()).then(|| RunSummary { compare, ..RunSummary::default() });
            let content = Content::Classification { predictions: &predictions, uncertainty: None };
            let report = report::Report { title, content, bins, seed: 1, run };
            write_files(&report, &out)?
        }
    };
    crate::cli::print_line(&files.html.display().to_string())
}

fn nothing_to_report(run: &Path) -> String {
    let predictions = run.join(run_dir::PREDICTIONS);
    let path = predictions.display();
    format!(
        "no {path}: a toy density predicts nothing, and here no site sent scores; any other run writes this file at its end"
    )
}
