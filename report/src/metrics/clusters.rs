//! Rows that belong together, such as the visits of one patient, and how little they tell beside independent rows.
//!
//! Rows of one cluster are often alike, so that n rows of a few clusters tell less than n independent rows: intervals that
//! count rows are too narrow. Here a statistic varies with the sampling of the clusters. Sources: Kish 1965 for the design
//! effect, Liang and Zeger 1986 for the variance by clusters, Korn and Graubard 1998 for shares.

use std::collections::HashMap;
use std::hash::Hash;

/// The cluster of every row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clusters {
    /// The number of each row's cluster, `[n]`; every number below `count` has a row.
    of: Vec<usize>,
    count: usize,
}

impl Clusters {
    /// The clusters of rows, from a name or number of each row's cluster, `[n]`.
    pub fn new<T: Eq + Hash>(of: impl IntoIterator<Item = T>) -> Self {
        let mut numbers = HashMap::new();
        let number = |name: T| {
            let next = numbers.len();
            *numbers.entry(name).or_insert(next)
        };
        let of: Vec<usize> = of.into_iter().map(number).collect();
        Self { count: numbers.len(), of }
    }

    /// The number of clusters.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of rows `n`.
    pub fn rows(&self) -> usize {
        self.of.len()
    }

    /// The number of each row's cluster, `[n]`: 0 for that of the first row, 1 for the next other one, and so on.
    pub fn of_rows(&self) -> &[usize] {
        &self.of
    }

    /// The same for some of the rows, in this order; each is less than `n`.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Self::new(rows.iter().map(|&row| self.of[row]))
    }

    /// The rows of each cluster, ascending.
    pub(crate) fn rows_of_each(&self) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); self.count];
        self.of.iter().enumerate().for_each(|(row, &cluster)| rows[cluster].push(row));
        rows
    }

    /// The design effect of the mean of a number over some rows, at least 1: its variance over that of as many independent
    /// rows. With m clusters that have such rows, whose deviations from the mean add up to S_g in cluster g, the variance is
    /// `m / (m - 1) sum_g S_g^2 / n^2`.
    ///
    /// Where all rows have the same number, the rows of a cluster count as one; of one cluster, all rows do.
    ///
    /// # Arguments
    /// * `values`: rows with their numbers
    pub(crate) fn design_effect(&self, values: impl Iterator<Item = (usize, f64)> + Clone) -> f64 {
        let (n_all, sum) = values.clone().fold((0.0, 0.0), |(n, sum), (_, value)| (n + 1.0, sum + value));
        let mean = sum / n_all;
        let mut of_clusters = vec![(0.0, 0.0); self.count];
        let mut squares = 0.0;
        for (row, value) in values {
            let (n, deviations) = &mut of_clusters[self.of[row]];
            (*n, *deviations) = (*n + 1.0, *deviations + (value - mean));
            squares += (value - mean).powi(2);
        }
        // Rounding makes no difference between equal numbers.
        let variance = if squares <= f64::EPSILON * n_all * mean * mean { 0.0 } else { squares / n_all };
        effect(of_clusters.into_iter(), variance)
    }
}

/// The design effect from the number of rows of each cluster and the sum of their deviations from the mean, and from the
/// variance of the rows.
pub(super) fn effect(of_clusters: impl Iterator<Item = (f64, f64)>, variance: f64) -> f64 {
    let (mut n, mut m, mut squares) = (0.0, 0.0, 0.0);
    for (rows, deviations) in of_clusters.filter(|(rows, _)| *rows > 0.0) {
        (n, m, squares) = (n + rows, m + 1.0, squares + deviations * deviations);
    }
    effect_of((n, m), squares, variance)
}

/// The design effect from the numbers of rows and of clusters, the sum over clusters of the squared sums of deviations, and the
/// variance of the rows.
pub(super) fn effect_of((n, m): (f64, f64), squares: f64, variance: f64) -> f64 {
    match () {
        () if m < 2.0 => f64::max(n, 1.0),
        () if variance <= 0.0 => n / m,
        () => f64::max(m / (m - 1.0) * squares / n / variance, 1.0),
    }
}

/// The design effect of the mean of a number over some rows ([`Clusters::design_effect`]); 1 of independent rows.
pub(crate) fn design_effect(clusters: Option<&Clusters>, values: impl Iterator<Item = (usize, f64)> + Clone) -> f64 {
    clusters.map_or(1.0, |clusters| clusters.design_effect(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(clusters: &[&str], values: &[f64]) -> f64 {
        Clusters::new(clusters).design_effect(values.iter().copied().enumerate())
    }

    #[test]
    fn clusters_are_numbered_in_the_order_of_their_first_rows() {
        let clusters = Clusters::new(["b", "a", "b", "c"]);
        assert_eq!((clusters.count(), clusters.of_rows()), (3, &[0, 1, 0, 2][..]));
        assert_eq!(clusters.select(&[3, 1, 3]), Clusters::new([5, 1, 5]));
        assert_eq!(clusters.rows_of_each(), [vec![0, 2], vec![1], vec![3]]);
    }

    #[test]
    fn alike_rows_count_as_one() {
        // Four clusters of three equal rows: the variance of the mean is that of four numbers, with 3 in the place of 4 as the
        // divisor of the squares, where that of twelve rows has 12: 3 · 4/3.
        let names = ["a", "a", "a", "b", "b", "b", "c", "c", "c", "d", "d", "d"];
        let values: Vec<f64> = [1.0, 2.0, 4.0, 9.0].iter().flat_map(|value| [*value; 3]).collect();
        assert!((of(&names, &values) - 4.0).abs() < 1e-12);
        // Without a difference between rows, a cluster counts as a row.
        assert_eq!(of(&names, &[0.1; 12]), 3.0);
        // One cluster: nothing is known of the others.
        assert_eq!(of(&["a"; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]), 5.0);
    }

    #[test]
    fn it_is_that_of_standard_errors_of_statsmodels() {
        let clusters = Clusters::new([0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
        let p = [0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.25, 0.65, 0.15];
        let labels = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0];
        let differences: Vec<f64> = p.iter().zip(labels).map(|(p, label)| p - label).collect();
        // OLS of the differences on a constant with cov_type="cluster": the squared standard error times 5 / 4, over their
        // variance by 15.
        let got = clusters.design_effect(differences.iter().copied().enumerate());
        assert!((got - 1.210_473_283_052).abs() < 1e-10, "{got}");
    }

    #[test]
    fn rows_that_balance_in_their_cluster_count_as_independent() {
        assert_eq!(of(&["a", "a", "b", "b"], &[0.0, 1.0, 1.0, 0.0]), 1.0);
    }

    #[test]
    fn clusters_without_a_row_among_some_do_not_count() {
        let clusters = Clusters::new(["a", "a", "b", "b", "c"]);
        // Rows 0, 1 and 2 of two clusters, with the deviations −1, 0 and 1 from their mean 2.
        let some = [(0, 1.0), (1, 2.0), (2, 3.0)];
        let expected = 2.0 * (1.0 + 1.0) / 3.0 / (2.0 / 3.0);
        assert!((clusters.design_effect(some.into_iter()) - expected).abs() < 1e-12);
    }
}
