//! What clusters of rows tell of the chance in means over rows, as sums over the clusters. A client sends them in the place of
//! rows, and the sums of several clients add up.
//!
//! With m clusters of n_g rows, in which the values of a number add up to S_g, the design effect of its mean μ
//! ([`Clusters::design_effect`]) needs `sum_g (S_g - μ n_g)^2`, which is `sum S_g^2 - 2 μ sum S_g n_g + μ^2 sum n_g^2`.

use serde::{Deserialize, Serialize};

use super::clusters::{Clusters, effect_of};
use super::error::MetricError;
use super::sums_reader::Reader;

/// Sums over the clusters of some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClusterSums {
    /// Number of clusters m.
    count: usize,
    /// `sum_g n_g^2`.
    squared_rows: f64,
    /// Those of each number that rows have.
    numbers: Vec<Products>,
}

/// Sums over clusters of one number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Products {
    /// `sum_g S_g n_g`.
    with_rows: f64,
    /// `sum_g S_g^2`.
    squared: f64,
}

/// The sums over rows of a number, and of its square.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moments {
    /// The sum.
    pub sum: f64,
    /// The sum of the squares.
    pub squared: f64,
}

impl Moments {
    /// Those of a number that is 1 for so many rows and 0 for the others.
    pub fn of_count(count: f64) -> Self {
        Self { sum: count, squared: count }
    }
}

impl ClusterSums {
    /// Those of rows of which each is a cluster.
    pub fn of_independent(rows: usize, numbers: &[Moments]) -> Self {
        let of = |moments: &Moments| Products { with_rows: moments.sum, squared: moments.squared };
        Self { count: rows, squared_rows: rows as f64, numbers: numbers.iter().map(of).collect() }
    }

    /// Number of clusters.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds those of other rows, of other clusters.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.squared_rows += other.squared_rows;
        for (sums, more) in self.numbers.iter_mut().zip(&other.numbers) {
            sums.with_rows += more.with_rows;
            sums.squared += more.squared;
        }
    }

    /// The design effect of the mean of a number, at least 1.
    ///
    /// # Arguments
    /// * `number`: which of the numbers
    /// * `rows`: the number of rows
    /// * `of`: the number's sums over them
    pub fn design_effect(&self, number: usize, rows: usize, of: Moments) -> f64 {
        let (n, Products { with_rows, squared }) = (rows as f64, self.numbers[number]);
        let mean = of.sum / n;
        let deviations = squared - 2.0 * mean * with_rows + mean * mean * self.squared_rows;
        // Rounding makes no difference between equal numbers.
        let variance = of.squared / n - mean * mean;
        let variance = if variance <= n * f64::EPSILON * mean * mean { 0.0 } else { variance };
        effect_of((n, self.count as f64), deviations.max(0.0), variance)
    }

    /// How many values a message has of these sums.
    pub const fn values(numbers: usize) -> usize {
        2 + 2 * numbers
    }

    /// Appends them to a message.
    pub fn write(&self, to: &mut Vec<f64>) {
        to.extend([self.count as f64, self.squared_rows]);
        to.extend(self.numbers.iter().flat_map(|of| [of.with_rows, of.squared]));
    }

    /// Those of a message about so many rows, which has nothing else.
    ///
    /// # Errors
    /// As [`Self::read`], and where there are more values.
    pub fn of_values(rows: f64, values: &[f64], least: &[f64]) -> Result<Self, MetricError> {
        let values = [&[rows], values].concat();
        let mut reader = Reader::new(&values)?;
        let sums = Self::read(&mut reader, least)?;
        reader.end().map(|()| sums)
    }

    /// Those of a message.
    ///
    /// # Arguments
    /// * `least`: the smallest value of each number in a row, -1 or 0; the largest is 1
    ///
    /// # Errors
    /// A value is missing, or no clusters can give it.
    pub(super) fn read(from: &mut Reader<'_>, least: &[f64]) -> Result<Self, MetricError> {
        let n = from.rows;
        let m = from.count(n)?;
        if m == 0.0 {
            return Err(from.refused());
        }
        // Clusters of equal size have the least sum of squares, one large cluster among single rows the largest.
        let room = 1.0 + ROUNDING;
        let squared_rows = from.between(n * n / m / room, ((n - m + 1.0).powi(2) + m - 1.0) * room)?;
        let number = |least: &f64| {
            let most = squared_rows * room;
            Ok(Products { with_rows: from.between(least * most, most)?, squared: from.between(0.0, most)? })
        };
        let numbers = least.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Self { count: m as usize, squared_rows, numbers })
    }
}

/// Room in the bounds of sums for rounding, as a part of them.
const ROUNDING: f64 = 1e-9;

/// Adds up numbers of rows by the clusters of these rows.
#[derive(Debug)]
pub(crate) struct ClusterTally<'c> {
    /// The cluster of each row that may come, `[n]`.
    of: &'c [usize],
    /// For each cluster the number of rows, and the sum of each number, `[m, 1 + numbers]`.
    sums: Vec<f64>,
    width: usize,
}

impl<'c> ClusterTally<'c> {
    /// A tally of rows that are to come, each with so many numbers.
    pub fn new(clusters: &'c Clusters, numbers: usize) -> Self {
        let width = 1 + numbers;
        Self { of: clusters.of_rows(), sums: vec![0.0; clusters.count() * width], width }
    }

    /// The number of rows that may come.
    pub fn rows(&self) -> usize {
        self.of.len()
    }

    /// Adds a row.
    pub fn add(&mut self, row: usize, numbers: &[f64]) {
        let sums = &mut self.sums[self.of[row] * self.width..][..self.width];
        sums.iter_mut().zip([1.0].iter().chain(numbers)).for_each(|(sum, number)| *sum += number);
    }

    /// The sums over the clusters that have rows.
    pub fn finish(self) -> ClusterSums {
        let numbers = vec![Products::default(); self.width - 1];
        let mut all = ClusterSums { count: 0, squared_rows: 0.0, numbers };
        for sums in self.sums.chunks_exact(self.width).filter(|sums| sums[0] > 0.0) {
            all.count += 1;
            all.squared_rows += sums[0] * sums[0];
            for (of, sum) in all.numbers.iter_mut().zip(&sums[1..]) {
                of.with_rows += sum * sums[0];
                of.squared += sum * sum;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fifteen rows of five clusters with a probability, a label, and their difference.
    const CLUSTERS: [usize; 15] = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4];
    const P: [f64; 15] = [0.1, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.25, 0.65, 0.15];
    const LABELS: [f64; 15] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0];

    fn differences() -> Vec<f64> {
        P.iter().zip(LABELS).map(|(p, label)| p - label).collect()
    }

    fn moments(values: &[f64]) -> Moments {
        Moments { sum: values.iter().sum(), squared: values.iter().map(|value| value * value).sum() }
    }

    fn of(clusters: &[usize], values: &[f64]) -> ClusterSums {
        let clusters = Clusters::new(clusters);
        let mut tally = ClusterTally::new(&clusters, 1);
        values.iter().enumerate().for_each(|(row, value)| tally.add(row, &[*value]));
        tally.finish()
    }

    #[test]
    fn the_design_effect_is_that_of_standard_errors_of_statsmodels() {
        // As in `clusters.rs`: OLS on a constant with cov_type="cluster".
        let (values, expected) = (differences(), 1.210_473_283_052);
        let all = of(&CLUSTERS, &values);
        assert!((all.design_effect(0, 15, moments(&values)) - expected).abs() < 1e-10);
        // The sums of two sites, of which one has the first two clusters.
        let mut pooled = of(&CLUSTERS[..9], &values[..9]);
        pooled.add(&of(&CLUSTERS[9..], &values[9..]));
        assert_eq!(pooled.count(), 5);
        assert!((pooled.design_effect(0, 15, moments(&values)) - expected).abs() < 1e-10);
    }

    #[test]
    fn independent_rows_are_clusters_of_one_row() {
        let values = differences();
        let single = of(&Vec::from_iter(0..15), &values);
        let sums = ClusterSums::of_independent(15, &[moments(&values)]);
        let effect = |of: &ClusterSums| of.design_effect(0, 15, moments(&values));
        assert!((effect(&single) - effect(&sums)).abs() < 1e-12 && (effect(&sums) - 15.0 / 14.0).abs() < 1e-12);
    }

    #[test]
    fn equal_values_make_a_cluster_count_as_a_row() {
        for value in [0.1, 1.0, 0.0] {
            let values = [value; 15];
            assert_eq!(of(&CLUSTERS, &values).design_effect(0, 15, moments(&values)), 3.0, "{value}");
        }
        let one = of(&[0; 15], &differences());
        assert_eq!(one.design_effect(0, 15, moments(&differences())), 15.0);
    }

    #[test]
    fn values_that_no_clusters_can_give_are_refused() {
        let sums = of(&CLUSTERS, &differences());
        let mut values = Vec::new();
        sums.write(&mut values);
        assert_eq!(values.len(), ClusterSums::values(1));
        assert_eq!(ClusterSums::of_values(15.0, &values, &[-1.0]), Ok(sums));
        let most = 11.0_f64.powi(2) + 4.0;
        for (at, wrong) in [
            (0, 0.0),
            (0, 2.5),
            (0, 16.0),
            (0, f64::NAN),
            (1, 44.9),
            (1, most + 0.1),
            (2, 60.0),
            (2, -60.0),
            (3, -0.1),
            (3, 60.0),
            (3, f64::INFINITY),
        ] {
            let mut values = values.clone();
            values[at] = wrong;
            assert!(ClusterSums::of_values(15.0, &values, &[-1.0]).is_err(), "value {at} is {wrong}");
        }
        assert!(ClusterSums::of_values(15.0, &values[..3], &[-1.0]).is_err());
        assert!(ClusterSums::of_values(15.0, &[&values[..], &[0.0]].concat(), &[-1.0]).is_err());
        // A count has no negative sum.
        values[2] = -1.0;
        assert!(ClusterSums::of_values(15.0, &values, &[-1.0]).is_ok());
        assert!(ClusterSums::of_values(15.0, &values, &[0.0]).is_err());
    }
}
