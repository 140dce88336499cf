//! `fedstein report`: a calibration report on a run, or on a file of any model's predictions.

use std::path::Path;

use super::output::{self, NewDirectory};
use crate::cli::{CliError, Report, ReportSource};
use crate::experiment::finished::Finished;
use crate::experiment::finished::unreadable;
use crate::experiment::run_report::{TestRows, comparisons, write_files};
use crate::experiment::{ReportOptions, run_dir};
use crate::report::csv::{self, AnyPredictions};
use crate::report::files::remove_if_there;
use crate::report::{self, Content, RunSummary};

/// The number of bins where neither the command nor the run gives one.
const BINS: usize = 15;

/// Runs the command.
///
/// # Errors
/// The run or the predictions cannot be read, or the report cannot be written.
pub(super) fn report(typed: Report) -> Result<(), CliError> {
    let Report { source, bins, out, replace, compare, other_rows, title } = typed;
    // The run may come from an untrusted source: its report does not follow a link out of its directory.
    output::check_report(&out, replace)?;
    let (path, is_run) = match source {
        ReportSource::Run(path) => (path, true),
        ReportSource::Predictions(path) => (path, false),
    };
    // Opened before a directory is made, which may lie in it.
    let run = is_run.then(|| Finished::open(&path)).transpose()?;
    let others = compare.iter().map(|run| Finished::open(run)).collect::<Result<Vec<_>, _>>()?;
    // A new directory appears with all of its files. In one that is replaced each file appears whole, and its other files stay.
    let new = if replace && out.is_dir() { None } else { Some(NewDirectory::create(&out)?) };
    let to = new.as_ref().map_or(&*out, NewDirectory::staging);
    let files = match run {
        Some(run) => {
            // Read here, so that an internal error of the configuration keeps its exit code.
            let bins = bins.unwrap_or(run.config()?.evaluation.bins);
            let options = ReportOptions { bins: Some(bins), title, compare: &others, other_rows };
            run.report(to, options)?.ok_or_else(|| CliError::Usage(nothing_to_report(&path)))?
        }
        None => {
            let predictions = csv::read_any(&path).map_err(unreadable)?;
            let bins = bins.unwrap_or(BINS);
            let name =
                path.file_stem().map_or_else(|| "predictions".into(), |stem| stem.to_string_lossy().into_owned());
            let title = title.unwrap_or(name);
            let (rows, content) = match &predictions {
                AnyPredictions::Classes(predictions) => (
                    TestRows::of_labels(predictions.labels()),
                    Content::Classification { predictions, uncertainty: None },
                ),
                AnyPredictions::Targets(predictions) => {
                    (TestRows::of_targets(predictions.target()), Content::Regression { predictions })
                }
            };
            let compare = comparisons(&others, &title, &rows.or_any(other_rows), bins)?;
            let run = (!compare.is_empty()).then(|| RunSummary { compare, ..RunSummary::default() });
            let report = report::Report { title, content, bins, seed: 1, run, groups: None };
            let files = write_files(&report, to)?;
            // The card of a run whose report was here.
            remove_if_there(&to.join(run_dir::MODEL_CARD)).map_err(|error| CliError::Failed(error.to_string()))?;
            files
        }
    };
    let page = files.html.file_name().map_or_else(|| files.html.clone(), |page| out.join(page));
    let contents: Vec<&str> = report::FILES.into_iter().chain([run_dir::MODEL_CARD]).collect();
    new.map_or(Ok(()), |new| new.keep(&contents))?;
    crate::cli::print_line(&page.display().to_string())
}

fn nothing_to_report(run: &Path) -> String {
    let predictions = run.join(run_dir::PREDICTIONS);
    let path = predictions.display();
    format!(
        "no {path}: a toy density predicts nothing, and here no site sent scores; any other run writes this file at its end"
    )
}
