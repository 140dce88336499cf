//! The scores of the sites or clients that hold the rows, one by one.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{Bin, ClientScores, Evaluation, Interval, ScoreIntervals};
use crate::verdict::FEWEST_ROWS;

/// The scores of one of several sites or clients that hold the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteScores {
    /// Its name.
    pub name: String,
    /// Its index among the clients, from 0.
    pub index: usize,
    /// The headline numbers of the global particles on its test rows; without rows where it sent no usable scores.
    pub evaluation: Evaluation,
    /// Its equal-width bins; none for a regression.
    pub bins: Vec<Bin>,
    /// The headline numbers of its personal predictor on the same rows, where that was scored.
    #[serde(default)]
    pub own: Option<Evaluation>,
    /// The 95 % interval of the signed gap; `None` for a regression, of one cluster, and in a file written before this field
    /// existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_interval: Option<Interval>,
    /// The clusters of its rows; `None` where rows are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<SiteClusters>,
    /// The same for its personal predictor, where that was scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_clusters: Option<SiteClusters>,
}

/// The clusters of the rows of a site or client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteClusters {
    /// Their number.
    pub count: usize,
    /// For each metric that is a share of rows the number of independent rows that tell as much of it, by its key.
    pub independent: BTreeMap<String, f64>,
}

impl SiteClusters {
    fn of_sums(scores: &ClientScores) -> Option<Self> {
        Some(Self { count: scores.clusters()?, independent: scores.independent_of_shares() })
    }

    /// The number of independent rows that tell as much of a metric; `None` where it is not known.
    pub(crate) fn independent(&self, key: &str) -> Option<f64> {
        self.independent.get(key).copied()
    }
}

impl SiteScores {
    /// The scores of a site or client, from its sums over rows, and from those of its personal predictor where it has one besides.
    pub fn of_sums(name: String, index: usize, scores: &ClientScores, own: Option<&ClientScores>) -> Self {
        Self {
            name,
            index,
            evaluation: Evaluation::of_sums(scores),
            bins: scores.bins(),
            own: own.map(Evaluation::of_sums),
            gap_interval: scores.signed_gap_interval(),
            clusters: SiteClusters::of_sums(scores),
            own_clusters: own.and_then(SiteClusters::of_sums),
        }
    }

    /// The number of its rows, or of their clusters.
    fn independent(&self) -> usize {
        self.clusters.as_ref().map_or(self.evaluation.rows, |clusters| clusters.count)
    }

    /// The 95 % intervals of the scores.
    pub(crate) fn intervals(&self) -> ScoreIntervals {
        let independent = |key: &str| self.clusters.as_ref()?.independent(key);
        ScoreIntervals::of_evaluation(&self.evaluation, self.gap_interval, independent)
    }

    /// Those with rows, the worst calibrated first: by the distance of the calibration error from 0 beyond its interval,
    /// then by the NLL.
    pub(crate) fn worst_first(all: &[Self]) -> Vec<&Self> {
        let mut sorted: Vec<&Self> = all.iter().filter(|scores| scores.evaluation.rows > 0).collect();
        sorted.sort_by(|a, b| b.badness().partial_cmp(&a.badness()).unwrap_or(Ordering::Equal));
        sorted
    }

    fn badness(&self) -> (f64, f64) {
        let of = &self.evaluation;
        let coverage = self.intervals().get("coverage_90");
        badness(self.independent(), (self.gap_interval, coverage), of.nll)
    }
}

/// How far the calibration error of some rows is from 0 beyond its interval, or the coverage of 90 % intervals from 0.9, and
/// the NLL. Rows, or clusters of rows, so few that there is no verdict on them come last.
///
/// # Arguments
/// * `independent`: the number of rows, or of clusters
pub(crate) fn badness(
    independent: usize,
    (gap, coverage_90): (Option<Interval>, Option<Interval>),
    nll: Option<f64>,
) -> (f64, f64) {
    let (range, perfect) = if gap.is_some() { (gap, 0.0) } else { (coverage_90, 0.9) };
    let beyond = range.map_or(0.0, |range| (range.lo - perfect).max(perfect - range.hi).max(0.0));
    (if independent < FEWEST_ROWS { -1.0 } else { beyond }, nll.unwrap_or(0.0))
}
