//! The files of a report.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::analysis::Analysis;
use crate::error::ReportError;
use crate::files::{FileError, names_in, read_regular, remove_if_there, write_atomic};
use crate::overall::Overall;
use crate::report::Report;
use crate::site_scores::SiteScores;
use crate::verdict::CalibrationVerdict;
use crate::{csv, html, json, svg};

/// The paths of a report's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFiles {
    /// Everything, for programs.
    pub json: PathBuf,
    /// The bins (classification) or intervals (regression) as a table.
    pub bins: PathBuf,
    /// The headline numbers of every group as a table; only with groups.
    pub groups: Option<PathBuf>,
    /// Reliability diagram (classification) or coverage plot (regression).
    pub reliability: PathBuf,
    /// Accuracy, NLL, ECE or RMSE over rounds; only with rounds.
    pub curves: Option<PathBuf>,
    /// Clients by classes; only with a partition.
    pub partition: Option<PathBuf>,
    /// Share against probability of class 1; only of two classes whose rows are known.
    pub positive: Option<PathBuf>,
    /// The decision curve; only of two classes that both have rows, and whose rows are known.
    pub decision: Option<PathBuf>,
    /// The thresholds of the decision curve as a table; only of two classes whose rows are known.
    pub thresholds: Option<PathBuf>,
    /// Reliability diagrams of the worst calibrated clients or sites; only where there are scores of each.
    pub clients: Option<PathBuf>,
    /// The confusion matrix as a picture; only of 3 to 20 classes whose rows are known.
    pub confusion: Option<PathBuf>,
    /// The confusion matrix as a table; only of three classes or more whose rows are known.
    pub confusion_table: Option<PathBuf>,
    /// Everything, for people.
    pub html: PathBuf,
    /// In what the model is no better than one prediction for all rows ([`CalibrationVerdict::warning`]).
    pub warning: Option<String>,
}

/// The headline of an analysis in one paragraph, without writing a file.
///
/// # Errors
/// A number of bins outside the accepted range.
pub fn verdict(report: &Report<'_>) -> Result<CalibrationVerdict, ReportError> {
    Ok(Analysis::new(report)?.into_verdict())
}

/// The headline numbers, without bootstrap intervals, temperature scaling or a file: a small part of the time of a report.
///
/// # Errors
/// A number of bins outside the accepted range.
pub fn overall(report: &Report<'_>) -> Result<Overall, ReportError> {
    Ok(Analysis::overall_of(report)?)
}

/// The headline numbers of every group of rows by its name, in the order of the groups; none without groups.
///
/// # Errors
/// A number of bins outside the accepted range, groups that are not one for each row, or groups of sums.
pub fn overall_of_groups(report: &Report<'_>) -> Result<Vec<(String, Overall)>, ReportError> {
    Ok(Analysis::overall_of_groups(report)?)
}

/// The contents of a report's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// `report.json`: everything, for programs.
    pub json: String,
    /// `bins.csv`: the bins (classification) or intervals (regression) as a table.
    pub bins: String,
    /// `groups.csv`: the headline numbers of every group as a table; only with groups.
    pub groups: Option<String>,
    /// `reliability.svg`: reliability diagram (classification) or coverage plot (regression).
    pub reliability: String,
    /// `curves.svg`: accuracy, NLL, ECE or RMSE over rounds; only with rounds.
    pub curves: Option<String>,
    /// `partition.svg`: clients by classes; only with a partition.
    pub partition: Option<String>,
    /// `positive.svg`: share against probability of class 1; only of two classes whose rows are known.
    pub positive: Option<String>,
    /// `decision.svg`: the decision curve; only of two classes that both have rows, and whose rows are known.
    pub decision: Option<String>,
    /// `thresholds.csv`: the thresholds of the decision curve; only of two classes whose rows are known.
    pub thresholds: Option<String>,
    /// `clients.svg`: reliability diagrams of the worst calibrated clients or sites; only where there are scores of each.
    pub clients: Option<String>,
    /// `confusion.svg`: the confusion matrix; only of 3 to 20 classes whose rows are known.
    pub confusion: Option<String>,
    /// `confusion.csv`: the same as a table; only of three classes or more whose rows are known.
    pub confusion_table: Option<String>,
    /// `report.html`: everything, for people.
    pub html: String,
    /// In what the model is no better than one prediction for all rows ([`CalibrationVerdict::warning`]).
    pub warning: Option<String>,
}

/// Computes the report, without writing a file.
///
/// # Errors
/// A number of bins outside the accepted range, or groups that are not one for each row.
pub fn render(report: &Report<'_>) -> Result<Rendered, ReportError> {
    let analysis = Analysis::new(report)?;
    let run = report.run.as_ref();
    let compare = run.map_or(&[][..], |run| &run.compare);
    let (bins, reliability) = match &analysis {
        Analysis::Classification(a) => (csv::bins_csv(&a.bins), svg::reliability(&report.title, a, compare)),
        Analysis::Regression(a) => (csv::coverage_csv(&a.coverage), svg::coverage(&report.title, a)),
    };
    let curves = run.and_then(|run| svg::curves(&report.title, &run.rounds, compare));
    let more_curves = run.map_or_else(Vec::new, |run| svg::more_curves(&report.title, &run.rounds, compare));
    let runs = svg::runs(compare);
    let partition = run.and_then(|run| run.partition.as_ref()).and_then(svg::heatmap);
    let (binary, confused) = match &analysis {
        Analysis::Classification(a) => (a.binary.as_ref(), a.confusion.as_ref()),
        Analysis::Regression(_) => (None, None),
    };
    let (positive, decision) = (binary.map(svg::positive), binary.filter(|of| of.has_both()).map(svg::decision));
    let matrix = confused.and_then(|of| of.counts.as_ref()).and_then(|counts| {
        let names: Vec<String> = (0..counts.len()).map(|class| report.class_name(class, counts.len())).collect();
        svg::confusion(counts, &names)
    });
    let clients = run.and_then(|run| match run.sites.is_empty() {
        true => svg::clients("Clients, the worst calibrated first", &SiteScores::worst_first(&run.clients)),
        false if run.not_judged.is_some() => None,
        false => svg::clients("Sites, the worst calibrated first", &SiteScores::worst_first(&run.sites)),
    });
    let pictures = html::Pictures {
        clients: clients.as_ref(),
        reliability: &reliability,
        curves: curves.as_ref(),
        more_curves: &more_curves,
        runs: runs.as_ref(),
        partition: partition.as_ref(),
        positive: positive.as_ref(),
        decision: decision.as_ref(),
        confusion: matrix.as_ref(),
    };
    let page = html::page(report, &analysis, &pictures);
    Ok(Rendered {
        json: json::render(report, &analysis)?,
        bins,
        groups: csv::groups_csv(analysis.groups()),
        reliability: reliability.standalone(),
        curves: curves.map(|picture| picture.standalone()),
        partition: partition.map(|picture| picture.standalone()),
        positive: positive.map(|picture| picture.standalone()),
        decision: decision.map(|picture| picture.standalone()),
        thresholds: binary.map(|of| csv::thresholds_csv(&of.thresholds)),
        clients: clients.map(|picture| picture.standalone()),
        confusion: matrix.map(|picture| picture.standalone()),
        confusion_table: confused.map(|of| csv::confusion_csv(&of.matrix)),
        html: page,
        warning: analysis.into_verdict().warning,
    })
}

/// Computes the report and writes its files into `dir`, which is created if it is missing.
///
/// Everything is computed before the first file is written, and each file appears whole or not at
/// all.
///
/// # Errors
/// A number of bins outside the accepted range, groups that are not one for each row, or a file that cannot be written.
pub fn write(report: &Report<'_>, dir: &Path) -> Result<ReportFiles, ReportError> {
    Ok(render(report)?.write(dir)?)
}

/// The names of all files that a report may have.
pub const FILES: [&str; 13] = [
    "report.json",
    "bins.csv",
    "groups.csv",
    "reliability.svg",
    "curves.svg",
    "partition.svg",
    "positive.svg",
    "decision.svg",
    "thresholds.csv",
    "clients.svg",
    "confusion.svg",
    "confusion.csv",
    "report.html",
];

/// Whether a report may be written into a directory in the place of what is there: nothing but the leftovers of killed
/// processes, or a report. It may not where the directory cannot be read.
pub fn takes_report(directory: &Path) -> bool {
    names_in(directory).is_ok_and(|names| names.is_empty()) || holds_report(directory)
}

/// Whether a directory has the `report.json` of a report.
fn holds_report(directory: &Path) -> bool {
    let [json, ..] = FILES;
    let found = read_regular(&directory.join(json)).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let marks = ["schema_version", "title", "task", "definitions", "overall"];
    found.is_some_and(|found| marks.iter().all(|mark| found.get(mark).is_some()))
}

impl Rendered {
    /// Writes the files of the report into `dir`, which is created if it is missing; each appears whole or not at all. Files
    /// of an earlier report that this one does not have are removed.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub fn write(&self, dir: &Path) -> Result<ReportFiles, FileError> {
        std::fs::create_dir_all(dir).map_err(|source| FileError::new(dir, source))?;
        let put = |name: &str, text: &String| -> Result<PathBuf, FileError> {
            let path = dir.join(name);
            write_atomic(&path, text.as_bytes())?;
            Ok(path)
        };
        let put_some = |name: &str, text: &Option<String>| match text {
            Some(text) => put(name, text).map(Some),
            None => remove_if_there(&dir.join(name)).map(|()| None),
        };
        let [
            json,
            bins,
            groups,
            reliability,
            curves,
            partition,
            positive,
            decision,
            thresholds,
            clients,
            confusion,
            confusion_table,
            html,
        ] = FILES;
        Ok(ReportFiles {
            json: put(json, &self.json)?,
            bins: put(bins, &self.bins)?,
            groups: put_some(groups, &self.groups)?,
            reliability: put(reliability, &self.reliability)?,
            curves: put_some(curves, &self.curves)?,
            partition: put_some(partition, &self.partition)?,
            positive: put_some(positive, &self.positive)?,
            decision: put_some(decision, &self.decision)?,
            thresholds: put_some(thresholds, &self.thresholds)?,
            clients: put_some(clients, &self.clients)?,
            confusion: put_some(confusion, &self.confusion)?,
            confusion_table: put_some(confusion_table, &self.confusion_table)?,
            html: put(html, &self.html)?,
            warning: self.warning.clone(),
        })
    }
}
