//! External validation: a finished run on labelled rows that it has never seen, with the report of a run.

use std::path::Path;

use ndarray::Array2;

use super::artifact::write_predicted;
use super::client_predictor::ClientPredictor;
use super::config::Config;
use super::evaluate::Predicted;
use super::finished::Finished;
use super::recalibrated::Recalibrated;
use super::row_groups::RowGroups;
use super::run_dir;
use super::run_report::{names_only, write_files};
use crate::datasets::Targets;
use crate::error::RunError;
use crate::federation::labelled::Labelled;
use crate::metrics::{Clusters, Evaluation};
use crate::report::{CalibrationResults, Content, Groups, Report, ReportFiles, RunSummary};

/// Labelled rows.
#[derive(Clone, Debug)]
pub struct LabelledRows {
    /// `[n, p]`, in the units of the data and in the order of the training columns.
    pub features: Array2<f32>,
    /// In the units of the data, `[n]`; classes with the names of the run's, in any order.
    pub targets: Targets,
    /// The groups of the rows, where there are any: each has numbers of its own in the report.
    pub groups: Option<RowGroups>,
    /// The clusters of the rows, such as patients, by which intervals are computed; `None` where rows are independent.
    pub clusters: Option<Clusters>,
    /// What the rows are, for messages.
    pub input: String,
}

/// A finished run on labelled rows.
#[derive(Debug)]
pub struct Evaluated {
    predicted: Predicted,
    groups: Option<RowGroups>,
    /// Why the report has no verdict, in a sentence.
    not_judged: Option<String>,
    /// The headline metrics.
    pub evaluation: Evaluation,
    /// What temperature and sets do on these rows; `None` where the run has neither.
    pub calibration: Option<CalibrationResults>,
}

/// What the report says of the evaluation.
#[derive(Clone, Debug)]
pub struct About {
    /// The headline of the page.
    pub title: String,
    /// Facts before those of the run.
    pub facts: Vec<(String, String)>,
    /// Notes on the rows, one sentence each.
    pub notes: Vec<String>,
}

impl Finished {
    /// Whether the run keeps a map of probabilities or thresholds of sets without the results that a report shows with them:
    /// so do a site's own results that an earlier version wrote.
    pub fn keeps_calibration_alone(&self) -> bool {
        self.card.calibration.is_some() && self.summary.calibration.is_none()
    }

    /// Predicts labelled rows, and scores the predictions as those of a run's own test rows.
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]; its `backend` computes, and may be another one than the run's
    /// * `client`: the client whose personal predictor predicts; `None` for the global particles
    /// * `recalibrated`: the run's temperature and sets, from [`Finished::recalibrated`]
    ///
    /// # Errors
    /// As [`Finished::predict_labelled`], or the groups are not those of these rows.
    pub fn evaluate(
        &self,
        config: &Config,
        client: Option<ClientPredictor>,
        recalibrated: &Recalibrated,
        rows: LabelledRows,
    ) -> Result<Evaluated, RunError> {
        let LabelledRows { features, targets, groups, clusters, input } = rows;
        groups.as_ref().map_or(Ok(()), |groups| groups.check(features.nrows(), &input))?;
        // Temperature and sets are those of the global particles.
        let not_judged = self.new_rows_not_judged(config, client.as_ref().is_some_and(ClientPredictor::is_own));
        let of_run = self.summary.calibration.as_ref().filter(|_| client.is_none());
        let predicted = self.predict_labelled(config, client, features, &targets, clusters, &input)?;
        let bins = config.evaluation.bins;
        let classes = self.card.classes.as_deref().unwrap_or_default();
        let calibration = match (of_run, predicted.labelled()?) {
            (Some(of_run), Some(labelled)) => {
                Some(recalibrated.on_rows(of_run, (&labelled, bins), classes, groups.as_ref())?)
            }
            _ => None,
        };
        Ok(Evaluated { evaluation: predicted.evaluate(bins)?, predicted, groups, not_judged, calibration })
    }
}

impl Evaluated {
    /// Why the scores are not those that the run is for, in a sentence: they are those of parameters of which a part is
    /// untrained. `None` for all others.
    pub fn not_judged(&self) -> Option<&str> {
        self.not_judged.as_deref()
    }

    /// Writes predictions and report into a directory that exists.
    ///
    /// # Errors
    /// The predictions cannot be scored, or a file cannot be written.
    pub fn write(&self, run: &Finished, config: &Config, about: About, dir: &Path) -> Result<ReportFiles, RunError> {
        let uncertainty = write_predicted(dir, &self.predicted)?;
        let labelled = self.predicted.labelled()?;
        let content = match &labelled {
            Some(Labelled::Classes(predictions)) => Content::Classification { predictions, uncertainty },
            Some(Labelled::Real(predictions)) => Content::Regression { predictions },
            None => return Err(RunError::Config("this run's model makes no predictions from rows".into())),
        };
        let groups = self.groups.as_ref().map(|RowGroups { names, of }| Groups::new(names.clone(), of.clone()));
        let groups = groups.transpose().map_err(RunError::Predictions)?.map(Groups::worst_first);
        let About { title, facts, notes } = about;
        let summary = RunSummary {
            config_toml: run.config_toml.clone(),
            // The clients of the training are not those of these rows.
            partition: run.card.classes.clone().map(names_only),
            facts: facts.into_iter().chain(of_run(run)).collect(),
            notes,
            not_judged: self.not_judged.clone(),
            calibration: self.calibration.clone(),
            ..RunSummary::default()
        };
        let (bins, seed) = (config.evaluation.bins, config.seed);
        let report = Report { title, content, bins, seed, run: Some(summary), groups: groups.as_ref() };
        write_files(&report, &dir.join(run_dir::REPORT))
    }
}

/// The facts of the run, of which the data are those of the training.
fn of_run(run: &Finished) -> impl Iterator<Item = (String, String)> {
    run.summary.facts.iter().map(|(name, fact)| match name.as_str() {
        "data" => ("trained on".to_owned(), fact.clone()),
        _ => (name.clone(), fact.clone()),
    })
}
