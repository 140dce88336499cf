//! The calibration report of a finished run, from the files in its directory.

use std::path::Path;

use super::config::Config;
use super::finished::Finished;
use super::model_card;
use super::personal::PersonalResults;
use super::run_dir;
use crate::checkpoint::digest;
use crate::error::RunError;
use crate::federation::labelled::Labelled;
use crate::metrics::{ClientScores, Evaluation, MetricError, equal_width};
use crate::report::files::{FileError, write_atomic};
use crate::report::{
    self, ClientsCompared, Comparison, Content, PartitionTable, Rendered, Report, ReportError, ReportFiles, RunSummary,
    SiteScores,
};

/// Writes the calibration report of the finished run in the directory `run` into the directory `out`, which is created
/// if it is missing and must not be a link; files of an earlier report in it are replaced. Returns `None` where the run has
/// no predictions to report on (a toy density).
///
/// # Errors
/// A file of the run is missing or invalid, or the report cannot be written.
pub fn write_report(run: &Path, out: &Path) -> Result<Option<ReportFiles>, RunError> {
    if out.is_symlink() {
        let out = out.display();
        return Err(RunError::Output(format!(
            "`{out}` is a link, which is not followed: remove it, then `fedstein report`"
        )));
    }
    Finished::open(run)?.report(out, ReportOptions::default())
}

/// What a report says besides what the run's own files say.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions<'a> {
    /// The number of calibration bins; `None` for the run's `evaluation.bins`.
    pub bins: Option<usize>,
    /// The headline of the page; `None` for the run's name.
    pub title: Option<String>,
    /// Runs of the same task to show beside this one.
    pub compare: &'a [Finished],
    /// Whether these runs may have other test rows.
    pub other_rows: bool,
}

/// The contents of the files of a run's report.
#[derive(Clone, Debug)]
pub struct RenderedRun {
    /// Those of the report.
    pub report: Rendered,
    /// `MODEL_CARD.md`.
    pub model_card: String,
}

impl RenderedRun {
    /// Writes the files into the directory `out`, which is created if it is missing; each appears whole or not at all.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, out: &Path) -> Result<ReportFiles, RunError> {
        let failed = |error: FileError| RunError::Output(error.to_string());
        let files = self.report.write(out).map_err(failed)?;
        write_atomic(&out.join(run_dir::MODEL_CARD), self.model_card.as_bytes()).map_err(failed)?;
        Ok(files)
    }
}

/// The test rows of a report, with which those of other runs are compared.
pub(crate) struct TestRows {
    /// Whether they have classes.
    pub classes: bool,
    /// The digest of their targets; `None` where single rows are not known, or where any rows will do.
    pub targets: Option<String>,
}

impl TestRows {
    /// Rows of these classes.
    pub fn of_labels(labels: &[usize]) -> Self {
        let bytes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
        Self { classes: true, targets: Some(digest::of_bytes(&bytes)) }
    }

    /// Rows with these real targets.
    pub fn of_targets(targets: &[f64]) -> Self {
        let bytes: Vec<u8> = targets.iter().flat_map(|target| target.to_le_bytes()).collect();
        Self { classes: false, targets: Some(digest::of_bytes(&bytes)) }
    }

    /// Those of predictions with their outcomes.
    fn of(predictions: &Labelled) -> Self {
        match predictions {
            Labelled::Classes(predictions) => Self::of_labels(predictions.labels()),
            Labelled::Real(predictions) => Self::of_targets(predictions.target()),
        }
    }

    /// The same where any rows may be compared.
    pub fn or_any(self, any: bool) -> Self {
        Self { targets: self.targets.filter(|_| !any), ..self }
    }
}

impl Finished {
    /// Writes the run's calibration report, and its model card, into the directory `out`, which is created if it is missing. Returns `None`
    /// where there is nothing to report on: the run has neither predictions (a toy density) nor scores of its sites.
    ///
    /// # Errors
    /// As [`Self::rendered`]; or the report cannot be written.
    pub fn report(&self, out: &Path, options: ReportOptions<'_>) -> Result<Option<ReportFiles>, RunError> {
        self.rendered(options)?.map(|report| report.write(out)).transpose()
    }

    /// Computes what [`Self::report`] writes, without writing a file.
    ///
    /// # Errors
    /// The run's configuration or predictions, or the predictions of a run to compare, cannot be read; a run to compare
    /// has another task; the number of bins is out of range, or is not that of the sites' scores.
    pub fn rendered(&self, options: ReportOptions<'_>) -> Result<Option<RenderedRun>, RunError> {
        let (summary, config) = (&self.summary, self.config()?);
        let path = self.path.join(run_dir::PREDICTIONS);
        let scores = self.scores()?.filter(|_| !path.exists());
        // A run that has scored rows here has written their predictions: without the file, reading it says so.
        let nothing = || !path.exists() && summary.evaluation.rows == 0;
        if scores.map_or_else(nothing, |scores| scores.rows() == 0) {
            return Ok(None);
        }
        let title = options.title.unwrap_or_else(|| summary.name.clone());
        let bins = match scores {
            Some(scores) => bins_of(scores, options.bins)?,
            None => options.bins.unwrap_or(config.evaluation.bins),
        };
        let (compare, any) = (options.compare, options.other_rows);
        // Clients are compared on the same rows alone.
        let same_rows = if any { &[] } else { compare };
        let run = |rows: TestRows| -> Result<Option<RunSummary>, RunError> {
            Ok(Some(RunSummary {
                config_toml: self.config_toml.clone(),
                rounds: summary.rounds.clone(),
                // In a federation nobody knows the rows of every class at every site.
                partition: summary.partition.clone().or_else(|| self.card.classes.clone().map(names_only)),
                personal: summary.personal.as_ref().map(PersonalResults::table),
                personal_first: self.capabilities(&config).personal,
                not_judged: self.not_judged(&config),
                sites: summary.sites.clone(),
                clients: summary.clients.clone(),
                facts: summary.facts.clone(),
                notes: summary.notes.clone(),
                calibration: summary.calibration.clone(),
                compare: self.with_clients(comparisons(compare, &title, &rows.or_any(any), bins)?, same_rows)?,
            }))
        };
        let seed = config.seed;
        let uncertainty = summary.uncertainty.clone();
        let report = if let Some(scores) = scores {
            let content = Content::Sums { scores, uncertainty };
            let run = run(TestRows { classes: classifies(self), targets: None })?;
            report::render(&Report { title, content, bins, seed, run, groups: None }).map_err(of_report)?
        } else {
            let predictions = self.test_predictions()?;
            let run = run(TestRows::of(&predictions))?;
            let content = match &predictions {
                Labelled::Classes(predictions) => Content::Classification { predictions, uncertainty },
                Labelled::Real(predictions) => Content::Regression { predictions },
            };
            report::render(&Report { title, content, bins, seed, run, groups: None }).map_err(of_report)?
        };
        let model_card = model_card::text(self, &config, &report.json)?;
        Ok(Some(RenderedRun { report, model_card }))
    }

    /// Comparisons with these runs, with the predictors of each client where the clients are the same.
    ///
    /// # Errors
    /// The configuration of a run cannot be read.
    fn with_clients(&self, mut compared: Vec<Comparison>, others: &[Self]) -> Result<Vec<Comparison>, RunError> {
        let config = self.config()?;
        for (comparison, run) in compared.iter_mut().zip(others) {
            let other = run.config()?;
            if self.has_the_clients_of(run, &config, &other) {
                comparison.clients = ClientsCompared::new(&self.client_scores(&config), &run.client_scores(&other));
            }
        }
        Ok(compared)
    }

    /// The scores of each client's predictor on its own test rows, where it was scored: at a site, the server's particles
    /// are none where a part of them is untrained.
    fn client_scores(&self, config: &Config) -> Vec<&SiteScores> {
        let untrained = self.capabilities(config).untrained_part;
        let sites = self.summary.sites.iter().filter(|site| !untrained || site.own.is_some());
        sites.chain(&self.summary.clients).collect()
    }

    /// Whether the clients of another run are the same: the same sites, or the same rows assigned in the same way.
    fn has_the_clients_of(&self, other: &Self, config: &Config, of_other: &Config) -> bool {
        let names = |run: &Self| run.summary.sites.iter().map(|site| site.name.clone()).collect::<Vec<_>>();
        let assigned = |config: &Config| (config.seed, config.partition.clone());
        names(self) == names(other)
            && self.summary.partition == other.summary.partition
            && config.evaluation.rows == of_other.evaluation.rows
            && (config.rows_are_at_sites() || assigned(config) == assigned(of_other))
    }

    /// The sums over the test rows of all sites, of a run whose rows are at sites.
    ///
    /// # Errors
    /// They are of another task than the model.
    fn scores(&self) -> Result<Option<&ClientScores>, RunError> {
        let Some(scores) = &self.summary.scores else { return Ok(None) };
        let classes = self.card.classes.as_ref().map(Vec::len);
        if scores.classes() == classes {
            return Ok(Some(scores));
        }
        let task = |classes: Option<usize>| {
            classes
                .map_or_else(|| "a regression".to_owned(), |classes| format!("a classification with {classes} classes"))
        };
        let (file, card) = (self.path.join(run_dir::SUMMARY), self.path.join(run_dir::MODEL));
        Err(RunError::Config(format!(
            "{}: `scores` is of {}; {} is of {}",
            file.display(),
            task(scores.classes()),
            card.display(),
            task(classes)
        )))
    }
}

/// The number of bins of sums, and of the report on them.
///
/// # Errors
/// Another one is asked for.
fn bins_of(scores: &ClientScores, asked: Option<usize>) -> Result<usize, RunError> {
    let bins = scores.bins().len();
    match asked.filter(|asked| *asked != bins && bins > 0) {
        None => Ok(bins.max(1)),
        Some(asked) => Err(RunError::Config(format!(
            "--bins {asked} (`ReportOptions::bins`): the rows of this run are at its sites, which sent their scores in {bins} bins; \
             leave it out"
        ))),
    }
}

/// The table with the names of the classes alone.
pub(super) fn names_only(class_names: Vec<String>) -> PartitionTable {
    PartitionTable {
        class_names,
        counts: Vec::new(),
        validation: Vec::new(),
        calibration: Vec::new(),
        test: Vec::new(),
        clients: Default::default(),
    }
}

/// Whether a run is a classification; otherwise it is a regression.
fn classifies(run: &Finished) -> bool {
    run.card.classes.is_some()
}

/// The runs to compare with the one named `title`, all of its task. Runs with equal names are named by their
/// directories.
///
/// # Errors
/// A run has another task or other test rows, or its predictions cannot be read; the number of bins is out of range.
pub(crate) fn comparisons(
    runs: &[Finished],
    title: &str,
    rows: &TestRows,
    bins: usize,
) -> Result<Vec<Comparison>, RunError> {
    let classes = rows.classes;
    let same_rows = |run: &Finished, other: TestRows| match rows.targets.is_none() || rows.targets == other.targets {
        true => Ok(()),
        false => Err(RunError::Config(format!(
            "--compare `{}` has other test rows, so that its numbers cannot be set beside these; --other-rows \
             (`ReportOptions::other_rows`) compares them nevertheless",
            run.path.display()
        ))),
    };
    let comparison = |run: &Finished| {
        let path = run.path.join(run_dir::PREDICTIONS);
        let scores = run.scores()?.filter(|_| !path.exists());
        if scores.is_none() && !path.exists() && run.summary.evaluation.rows == 0 {
            let run = run.path.display();
            let why = "it is a run on a toy density, or has no test rows";
            return Err(RunError::Config(format!("--compare `{run}` has no predictions to compare: {why}")));
        }
        if classifies(run) != classes {
            let task = |classes| if classes { "a classification" } else { "a regression" };
            let message = format!("is {}, the report is on {}", task(!classes), task(classes));
            return Err(RunError::Config(format!("--compare `{}` {message}", run.path.display())));
        }
        let mut evaluation = run.summary.evaluation.clone();
        let bins = if let Some(scores) = scores {
            // Sums cannot be put into other bins.
            if scores.bins().len() != bins {
                evaluation = evaluation.with_bins_of(None);
            }
            scores.bins()
        } else if classes || rows.targets.is_some() {
            let predictions = run.test_predictions()?;
            same_rows(run, TestRows::of(&predictions))?;
            match predictions {
                Labelled::Classes(predictions) => {
                    if run.config()?.evaluation.bins != bins {
                        let of_these = Evaluation::of_predictions(&predictions, bins).map_err(of_metric)?;
                        evaluation = evaluation.with_bins_of(Some(&of_these));
                    }
                    let top = predictions.top_label();
                    equal_width(&top.confidence, &top.correct, bins).map_err(of_metric)?.bins().to_vec()
                }
                Labelled::Real(_) => Vec::new(),
            }
        } else {
            Vec::new()
        };
        let (summary, not_judged) = (&run.summary, run.not_judged(&run.config()?));
        let same = |other: &&Finished| other.summary.name == summary.name;
        let ambiguous = summary.name == title || runs.iter().filter(same).count() > 1;
        let name = if ambiguous { run.path.display().to_string() } else { summary.name.clone() };
        Ok(Comparison {
            name,
            evaluation,
            // Without them, no picture has its lines.
            bins: if not_judged.is_none() { bins } else { Vec::new() },
            rounds: if not_judged.is_none() { summary.rounds.clone() } else { Vec::new() },
            not_judged,
            clients: None,
        })
    };
    runs.iter().map(comparison).collect()
}

/// Writes the files of a report.
///
/// # Errors
/// The predictions cannot be scored with this number of bins, or a file cannot be written.
pub(crate) fn write_files(report: &Report<'_>, out: &Path) -> Result<ReportFiles, RunError> {
    report::write(report, out).map_err(of_report)
}

fn of_metric(error: MetricError) -> RunError {
    RunError::Config(error.to_string())
}

fn of_report(error: ReportError) -> RunError {
    match error {
        ReportError::Metric(_) => RunError::Config(error.to_string()),
        _ => RunError::Output(error.to_string()),
    }
}
