//! The numbers of two classes, for somebody who decides with the probability of one of them.

use serde::Serialize;

use crate::metrics::{
    Bin, ClassPredictions, Interval, NoEstimate, Recalibration, ScoredClasses, ThresholdRow, decision_thresholds,
    threshold_table,
};

/// The class that decisions are about: the one with the index 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PositiveClass {
    /// Its index.
    pub class: usize,
    /// Its name; the index, where names are not known.
    pub name: String,
    /// The name of the other class.
    pub other: String,
    /// Rows of this class.
    pub rows: usize,
    /// Clusters that have such a row; `None` where rows are independent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<usize>,
}

/// The numbers of two classes.
#[derive(Debug, Clone, Serialize)]
pub struct BinaryAnalysis {
    /// The class whose probability the numbers are about.
    pub positive: PositiveClass,
    /// Mean of p(y = 1) over all rows.
    pub mean_probability: f64,
    /// The logistic recalibration of p(y = 1).
    pub recalibration: Recalibration,
    /// Equal-width bins of p(y = 1); `accuracy` is the share of class 1, `confidence` the mean of p(y = 1).
    pub bins: Vec<Bin>,
    /// The 95 % intervals of their shares.
    #[serde(skip)]
    pub bin_intervals: Vec<Option<Interval>>,
    /// The thresholds of the decision curve, ascending.
    pub thresholds: Vec<ThresholdRow>,
}

impl BinaryAnalysis {
    /// The numbers of two classes with these names; `None` for any other number of classes.
    pub(super) fn new(
        predictions: &ClassPredictions<'_>,
        scored: &ScoredClasses<'_>,
        name: impl Fn(usize) -> String,
    ) -> Option<Self> {
        let [_, positive] = scored.one_vs_rest() else { return None };
        let of_class: Vec<usize> =
            predictions.labels().iter().enumerate().filter(|(_, label)| **label == 1).map(|(row, _)| row).collect();
        let clusters = predictions.clusters().map(|clusters| clusters.select(&of_class).count());
        Some(Self {
            positive: PositiveClass { class: 1, name: name(1), other: name(0), rows: of_class.len(), clusters },
            mean_probability: predictions.rows().map(|row| row[1]).sum::<f64>() / predictions.len() as f64,
            recalibration: *scored.recalibration()?,
            bins: positive.bins().to_vec(),
            bin_intervals: scored.one_vs_rest_intervals(1),
            thresholds: threshold_table(predictions, &decision_thresholds())?,
        })
    }

    /// Whether there are rows of both classes.
    pub(crate) fn has_both(&self) -> bool {
        self.recalibration.missing != Some(NoEstimate::OneClass)
    }
}
