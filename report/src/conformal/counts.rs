//! What prediction sets did on labelled rows.

use serde::{Deserialize, Serialize};

use super::targets::TargetInterval;
use crate::metrics::{self, ClusterSums, ClusterTally, Clusters, Moments, Share};

/// Counts over the prediction sets of some rows, or over their intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SetCounts {
    /// Number of rows.
    pub rows: usize,
    /// Rows whose set holds the true label.
    pub covered: usize,
    /// Rows with an empty set.
    pub empty: usize,
    /// Rows with one class in the set; 0 for intervals.
    pub single: usize,
    /// Rows whose interval has no end.
    pub unbounded: usize,
    /// The numbers of classes of all sets, or the widths of all intervals that have ends, added up.
    pub size: f64,
    /// The sums over clusters of the number that is 1 for the rows whose set holds the true label; `None` where rows are
    /// independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clusters: Option<ClusterSums>,
}

impl SetCounts {
    /// How many numbers a message has of the counts of independent rows, and of rows with clusters.
    pub const LENGTHS: [usize; 2] = [6, 6 + ClusterSums::values(1)];

    /// Adds a set of classes, `[C]`, of a row with this label.
    pub fn add_set(&mut self, set: &[bool], label: usize) {
        let size = set.iter().filter(|is_in| **is_in).count();
        self.rows += 1;
        self.covered += usize::from(set.get(label).is_some_and(|is_in| *is_in));
        self.empty += usize::from(size == 0);
        self.single += usize::from(size == 1);
        self.size += size as f64;
    }

    /// Adds an interval of a row with this target.
    pub fn add_interval(&mut self, interval: Option<TargetInterval>, target: f64) {
        self.rows += 1;
        let Some(interval) = interval else { return self.empty += 1 };
        self.covered += usize::from(interval.holds(target));
        let width = interval.upper - interval.lower;
        if width.is_finite() { self.size += width } else { self.unbounded += 1 }
    }

    /// The counts of some rows.
    ///
    /// # Arguments
    /// * `rows`: the rows, and the counts of each alone
    /// * `clusters`: those of all rows; `None` where rows are independent
    pub fn of_rows<'r>(rows: impl Iterator<Item = (usize, &'r Self)> + Clone, clusters: Option<&Clusters>) -> Self {
        let mut all = Self::default();
        rows.clone().for_each(|(_, row)| all.merge(row));
        all.clusters = clusters.filter(|_| all.rows > 0).map(|clusters| {
            let mut tally = ClusterTally::new(clusters, 1);
            rows.for_each(|(row, counts)| tally.add(row, &[counts.covered as f64]));
            tally.finish()
        });
        all
    }

    /// The sums over clusters; where rows are independent, over rows.
    fn clusters_or_rows(&self) -> ClusterSums {
        self.clusters.clone().unwrap_or_else(|| ClusterSums::of_independent(self.rows, &[self.moments()]))
    }

    fn moments(&self) -> Moments {
        Moments::of_count(self.covered as f64)
    }

    /// Adds the counts of other rows, of other clusters.
    pub fn merge(&mut self, other: &Self) {
        if self.clusters.is_some() || other.clusters.is_some() {
            let mut clusters = self.clusters_or_rows();
            clusters.add(&other.clusters_or_rows());
            self.clusters = Some(clusters);
        }
        self.rows += other.rows;
        self.covered += other.covered;
        self.empty += other.empty;
        self.single += other.single;
        self.unbounded += other.unbounded;
        self.size += other.size;
    }

    /// The number of independent rows that tell as much of the coverage; `None` where rows are independent.
    pub fn independent_rows(&self) -> Option<f64> {
        let clusters = self.clusters.as_ref().filter(|_| self.rows > 0)?;
        Some((self.rows as f64 / clusters.design_effect(0, self.rows, self.moments())).max(1.0))
    }

    /// The share of rows whose set holds the true label; `None` without rows.
    pub fn coverage(&self) -> Option<f64> {
        self.share(self.covered)
    }

    /// The 95 % binomial interval of the coverage (Wilson 1927), by clusters where the rows have them; `None` without rows.
    pub fn interval(&self) -> Option<metrics::Interval> {
        let independent = self.independent_rows().unwrap_or(self.rows as f64);
        Some(Share { value: self.coverage()?, independent }.interval(0.95))
    }

    /// The mean number of classes of a set, or the mean width of an interval; `None` without rows, and where an interval has
    /// no end.
    pub fn mean_size(&self) -> Option<f64> {
        (self.rows > 0 && self.unbounded == 0).then(|| self.size / self.rows as f64)
    }

    /// A share of the rows; `None` without rows.
    pub fn share(&self, count: usize) -> Option<f64> {
        (self.rows > 0).then(|| count as f64 / self.rows as f64)
    }

    /// The counts as numbers, for a message: the rows, covered rows, rows with an empty set, rows with one class, rows without an
    /// end, sizes; where they have clusters, also the number of clusters, the sum of their squared numbers of rows, and the sums
    /// of their numbers of covered rows, times the rows and squared. Without rows, 0 for each.
    ///
    /// # Arguments
    /// * `clusters`: whether the numbers of clusters are told; where rows are independent, each is one
    pub fn to_values(&self, clusters: bool) -> Vec<f64> {
        let Self { rows, covered, empty, single, unbounded, size, clusters: _ } = *self;
        let mut values = vec![rows as f64, covered as f64, empty as f64, single as f64, unbounded as f64, size];
        if clusters {
            self.clusters_or_rows().write(&mut values);
        }
        values
    }

    /// Whether the rows have clusters.
    pub fn has_clusters(&self) -> bool {
        self.clusters.is_some()
    }

    /// The counts of a message from a source that is not trusted; `None` where no rows can give them.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let (&[rows, covered, empty, single, unbounded, size], of_clusters) = values.split_first_chunk()?;
        let is_count = |value: f64| value.fract() == 0.0 && (0.0..=rows).contains(&value);
        let counts = [rows, covered, empty, single, unbounded];
        let fits = counts.into_iter().all(is_count) && covered + empty <= rows && single + empty <= rows;
        if !(fits && size.is_finite() && size >= 0.0 && rows <= 1e15) {
            return None;
        }
        let clusters = match of_clusters {
            [] => None,
            of if rows == 0.0 => of.iter().all(|value| *value == 0.0).then_some(None)?,
            of => Some(ClusterSums::of_values(rows, of, &[0.0]).ok()?),
        };
        let [rows, covered, empty, single, unbounded] = counts.map(|value| value as usize);
        Some(Self { rows, covered, empty, single, unbounded, size, clusters })
    }
}
