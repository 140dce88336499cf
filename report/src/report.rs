//! The input of a report: predictions and, where it is known, the run that made them.

use crate::groups::Groups;
use crate::metrics::{ClassPredictions, ClientScores, RegressionPredictions, UncertaintySummary};
use crate::run::RunSummary;

/// The input of a report. Nothing in it is computed yet.
#[derive(Debug)]
pub struct Report<'a> {
    /// Headline of the page, such as the name of the run.
    pub title: String,
    /// The predictions to judge.
    pub content: Content<'a>,
    /// Number of calibration bins; 15 is usual. Sums have bins of their own, and this number is not used.
    pub bins: usize,
    /// Seed of the bootstrap and of the split for temperature scaling.
    pub seed: u64,
    /// The run behind the predictions, where known.
    pub run: Option<RunSummary>,
    /// The group of every row, for a table of groups; not for sums.
    pub groups: Option<&'a Groups>,
}

impl<'a> Report<'a> {
    /// A report with 15 bins and the seed 1 on predictions of unknown origin.
    pub fn new(title: impl Into<String>, content: Content<'a>) -> Self {
        Self { title: title.into(), content, bins: 15, seed: 1, run: None, groups: None }
    }

    /// The name of one of `classes` classes; its index where the names are not known.
    pub(crate) fn class_name(&self, class: usize, classes: usize) -> String {
        let partition = self.run.as_ref().and_then(|run| run.partition.as_ref());
        let names = partition.map_or(&[][..], |table| &table.class_names);
        if names.len() == classes { names[class].clone() } else { class.to_string() }
    }
}

/// Predictions of either task, or what is known of them.
#[derive(Debug)]
pub enum Content<'a> {
    /// Class probabilities.
    Classification {
        /// The predictive with its labels.
        predictions: &'a ClassPredictions<'a>,
        /// The numbers that need the particles, where these are known.
        uncertainty: Option<UncertaintySummary>,
    },
    /// Mixtures of normals on the scale of the data.
    Regression {
        /// The predictive with its targets.
        predictions: &'a RegressionPredictions<'a>,
    },
    /// Sums of scores over rows that are elsewhere, of either task. Numbers that need single rows are left out.
    Sums {
        /// The sums over all rows.
        scores: &'a ClientScores,
        /// The numbers that need the particles, where these are known.
        uncertainty: Option<UncertaintySummary>,
    },
}
