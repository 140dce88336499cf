//! Checked predictions of a classification: probabilities with labels, and the log probabilities of every particle.

use std::borrow::Cow;

use rayon::prelude::*;

use super::clusters::Clusters;
use super::error::{MetricError, check_length};
use crate::exponential::add_exponentials;

/// Largest distance of a row's sum from 1. Rows within it are used as they are, never renormalised.
pub const ROW_SUM_TOLERANCE: f64 = 1e-3;

/// Largest distance of a probability from [0, 1], a few roundings of 32-bit floats; it is then the nearer end.
pub const PROBABILITY_TOLERANCE: f64 = 1e-6;

/// Rows that a thread takes at once.
const BLOCK: usize = 256;

/// Class probabilities of `n` rows with their true labels; at least one row and two classes, every
/// row a distribution. The arrays are its own, or borrowed for `'a`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassPredictions<'a> {
    labels: Cow<'a, [usize]>,
    classes: usize,
    probabilities: Cow<'a, [f64]>,
    clusters: Option<Clusters>,
}

/// The predicted class of every row, its probability, and whether it is the true one; each of
/// length `n`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLabel {
    /// Argmax of the row, the lowest class on ties.
    pub predicted: Vec<usize>,
    /// Probability of the predicted class.
    pub confidence: Vec<f64>,
    /// Whether the predicted class is the label.
    pub correct: Vec<bool>,
}

impl ClassPredictions<'static> {
    /// Checks and keeps the predictions of `labels.len()` rows.
    ///
    /// # Arguments
    /// * `labels`: true classes, `0..classes`, one per row
    /// * `probabilities`: `[n, classes]`, row-major
    ///
    /// # Errors
    /// Names the first row whose label is out of range, whose probabilities are outside `[0, 1]` by more than
    /// [`PROBABILITY_TOLERANCE`], or whose sum is further from 1 than [`ROW_SUM_TOLERANCE`]. Otherwise rows stay as
    /// given: the definitions use the raw values.
    pub fn new(labels: Vec<usize>, classes: usize, probabilities: Vec<f64>) -> Result<Self, MetricError> {
        Self::of(labels, classes, probabilities)
    }
}

impl<'a> ClassPredictions<'a> {
    /// As [`ClassPredictions::new`], of arrays that may be borrowed.
    ///
    /// # Errors
    /// As [`ClassPredictions::new`].
    pub fn of(
        labels: impl Into<Cow<'a, [usize]>>,
        classes: usize,
        probabilities: impl Into<Cow<'a, [f64]>>,
    ) -> Result<Self, MetricError> {
        let (labels, mut probabilities) = (labels.into(), probabilities.into());
        if labels.is_empty() {
            return Err(MetricError::NoRows);
        }
        if classes < 2 {
            return Err(MetricError::TooFewClasses { got: classes });
        }
        check_length("probabilities", probabilities.len(), labels.len() * classes)?;
        check_labels(&labels, classes)?;
        for (row, values) in probabilities.chunks_exact(classes).enumerate() {
            if let Some(class) = values.iter().position(|p| probability(*p).is_none()) {
                return Err(MetricError::Probability { row, class, value: values[class] });
            }
            check_sum(row, values.iter().sum())?;
        }
        if probabilities.iter().any(|p| !(0.0..=1.0).contains(p)) {
            probabilities.to_mut().iter_mut().for_each(|p| *p = p.clamp(0.0, 1.0));
        }
        Ok(Self { labels, classes, probabilities, clusters: None })
    }

    /// The same rows, with their labels and clusters, at other probabilities `[n, classes]`.
    ///
    /// # Errors
    /// As [`ClassPredictions::new`].
    pub fn with_probabilities(&self, probabilities: Vec<f64>) -> Result<ClassPredictions<'static>, MetricError> {
        let rows = ClassPredictions::new(self.labels.to_vec(), self.classes, probabilities)?;
        Ok(ClassPredictions { clusters: self.clusters.clone(), ..rows })
    }

    /// The same with rows that belong together, such as the visits of one patient: intervals and verdicts then count clusters
    /// and not rows. Clusters of one row each are independent rows.
    ///
    /// # Errors
    /// Another number of rows.
    pub fn with_clusters(self, clusters: impl Into<Option<Clusters>>) -> Result<Self, MetricError> {
        let clusters = clusters.into();
        check_length("clusters", clusters.as_ref().map_or(self.len(), Clusters::rows), self.len())?;
        Ok(Self { clusters: clusters.filter(|of| of.count() < of.rows()), ..self })
    }

    /// Number of rows `n`, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a ClassPredictions is never empty")]
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Number of classes `C`, at least 2.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The clusters of the rows; `None` where rows are independent.
    pub fn clusters(&self) -> Option<&Clusters> {
        self.clusters.as_ref()
    }

    /// The number of clusters; that of rows where they are independent.
    pub fn independent(&self) -> usize {
        self.clusters().map_or(self.len(), Clusters::count)
    }

    /// True classes, `[n]`.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// Probabilities, `[n, C]` row-major.
    pub fn probabilities(&self) -> &[f64] {
        &self.probabilities
    }

    /// Rows of `C` probabilities.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, f64> {
        self.probabilities.chunks_exact(self.classes)
    }

    /// The predictions of some of the rows, in this order; each is less than `n`.
    ///
    /// # Errors
    /// There are no rows.
    pub(crate) fn select(&self, rows: &[usize]) -> Result<ClassPredictions<'static>, MetricError> {
        let labels = rows.iter().map(|&row| self.labels[row]).collect();
        let values = |row: usize| &self.probabilities[row * self.classes..(row + 1) * self.classes];
        let mut probabilities = Vec::with_capacity(rows.len() * self.classes);
        rows.iter().for_each(|&row| probabilities.extend_from_slice(values(row)));
        let clusters = self.clusters().map(|clusters| clusters.select(rows));
        ClassPredictions::new(labels, self.classes, probabilities)?.with_clusters(clusters)
    }

    /// Predicted class, its probability and whether it is right, one per row.
    pub fn top_label(&self) -> TopLabel {
        let predicted: Vec<usize> = self.rows().map(argmax).collect();
        let confidence = self.rows().zip(&predicted).map(|(row, &class)| row[class]).collect();
        let correct = predicted.iter().zip(self.labels()).map(|(a, b)| a == b).collect();
        TopLabel { predicted, confidence, correct }
    }
}

/// Log probabilities of every particle: `[N, n, C]`, row-major; the data behind an ensemble's
/// predictive.
#[derive(Debug, Clone, PartialEq)]
pub struct ParticleLogProbs {
    particles: usize,
    rows: usize,
    classes: usize,
    values: LogProbs,
}

/// The values in the format in which they came: those of a backend are half as large.
#[derive(Debug, Clone, PartialEq)]
enum LogProbs {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl LogProbs {
    fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    fn get(&self, at: usize) -> f64 {
        match self {
            Self::F32(values) => f64::from(values[at]),
            Self::F64(values) => values[at],
        }
    }

    /// Copies the values from `start` on.
    fn read(&self, start: usize, to: &mut [f64]) {
        match self {
            Self::F32(values) => to.iter_mut().zip(&values[start..]).for_each(|(to, value)| *to = f64::from(*value)),
            Self::F64(values) => to.copy_from_slice(&values[start..start + to.len()]),
        }
    }
}

impl ParticleLogProbs {
    /// Checks and keeps `[particles, rows, classes]` log probabilities; `-inf` (probability 0) is
    /// accepted.
    ///
    /// # Errors
    /// Names the particle, row and class of a NaN or of a value above 0 by more than
    /// [`ROW_SUM_TOLERANCE`], and the first row whose probabilities do not sum to 1 within that
    /// tolerance.
    pub fn new(particles: usize, rows: usize, classes: usize, log_probs: Vec<f64>) -> Result<Self, MetricError> {
        Self::of((particles, rows, classes), LogProbs::F64(log_probs))
    }

    /// The same from the `f32` values of a backend, which stay in this format and are widened where they are used.
    ///
    /// # Errors
    /// As [`ParticleLogProbs::new`].
    pub fn from_f32(particles: usize, rows: usize, classes: usize, log_probs: Vec<f32>) -> Result<Self, MetricError> {
        Self::of((particles, rows, classes), LogProbs::F32(log_probs))
    }

    fn of((particles, rows, classes): (usize, usize, usize), values: LogProbs) -> Result<Self, MetricError> {
        if particles == 0 {
            return Err(MetricError::NoParticles);
        }
        if rows == 0 {
            return Err(MetricError::NoRows);
        }
        if classes < 2 {
            return Err(MetricError::TooFewClasses { got: classes });
        }
        check_length("log probabilities", values.len(), particles * rows * classes)?;
        let all = particles * rows;
        let bad = (0..all.div_ceil(BLOCK)).into_par_iter().find_map_first(|block| {
            let count = BLOCK.min(all - block * BLOCK);
            let (mut of_block, mut probabilities) = (vec![0.0; count * classes], vec![0.0; count * classes]);
            values.read(block * BLOCK * classes, &mut of_block);
            add_exponentials(&of_block, &mut probabilities);
            let rows_of = of_block.chunks_exact(classes).zip(probabilities.chunks_exact(classes)).enumerate();
            let first = |(at, (values, probabilities)): (usize, (&[f64], &[f64]))| {
                let (particle, row) = ((block * BLOCK + at) / rows, (block * BLOCK + at) % rows);
                let accepted = |v: &f64| *v <= ROW_SUM_TOLERANCE;
                match values.iter().position(|v| !accepted(v)) {
                    Some(class) => Some(MetricError::LogProbability { particle, row, class, value: values[class] }),
                    None => check_sum(row, probabilities.iter().sum()).err(),
                }
            };
            rows_of.filter_map(first).next()
        });
        match bad {
            Some(error) => Err(error),
            None => Ok(Self { particles, rows, classes, values }),
        }
    }

    /// Number of particles `N`, at least 1.
    pub fn particles(&self) -> usize {
        self.particles
    }

    /// Number of rows `n`, at least 1.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of classes `C`, at least 2.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Log probabilities of one particle on one row, `[C]`.
    ///
    /// # Panics
    /// There is no such particle or row.
    pub fn row(&self, particle: usize, row: usize) -> Vec<f64> {
        assert!(particle < self.particles && row < self.rows, "no row {row} of particle {particle}");
        let mut values = vec![0.0; self.classes];
        self.read_row(particle, row, &mut values);
        values
    }

    /// Copies the log probabilities of one particle from one row on, `[C]` each.
    pub(super) fn read_row(&self, particle: usize, row: usize, to: &mut [f64]) {
        self.values.read((particle * self.rows + row) * self.classes, to);
    }

    /// The log probability of one class.
    pub(super) fn of_class(&self, particle: usize, row: usize, class: usize) -> f64 {
        self.values.get((particle * self.rows + row) * self.classes + class)
    }

    /// The predictive `p_c = (1/N) sum_n exp(log p_nc)`, `[n, C]` row-major, in `f64`.
    ///
    /// Equal to `exp` of the log-mean-exp: what underflows in one underflows in the other. Rounding
    /// above 1 is cut off.
    pub fn ensemble(&self) -> Vec<f64> {
        let mut probabilities = vec![0.0; self.rows * self.classes];
        probabilities.par_chunks_mut(BLOCK * self.classes).enumerate().for_each(|(block, probabilities)| {
            let mut values = vec![0.0; probabilities.len()];
            for particle in 0..self.particles {
                self.read_row(particle, block * BLOCK, &mut values);
                add_exponentials(&values, probabilities);
            }
            for p in probabilities {
                *p = (*p / self.particles as f64).min(1.0);
            }
        });
        probabilities
    }

    /// The predictive with its labels, ready for a report or a file.
    ///
    /// # Errors
    /// A label out of range, or a number of labels that is not the number of rows.
    pub fn predictions(&self, labels: &[usize]) -> Result<ClassPredictions<'static>, MetricError> {
        check_length("labels", labels.len(), self.rows)?;
        ClassPredictions::new(labels.to_vec(), self.classes, self.ensemble())
    }
}

/// `Ok` when every label names one of the classes.
pub(crate) fn check_labels(labels: &[usize], classes: usize) -> Result<(), MetricError> {
    match labels.iter().position(|&label| label >= classes) {
        None => Ok(()),
        Some(row) => Err(MetricError::Label { row, label: labels[row], classes }),
    }
}

/// The probability that a number stands for, within [`PROBABILITY_TOLERANCE`]; `None` where it stands for none.
pub(crate) fn probability(value: f64) -> Option<f64> {
    // Adding 0 turns -0 into 0.
    let near = (-PROBABILITY_TOLERANCE..=1.0 + PROBABILITY_TOLERANCE).contains(&value);
    near.then(|| value.clamp(0.0, 1.0) + 0.0)
}

fn check_sum(row: usize, sum: f64) -> Result<(), MetricError> {
    if (sum - 1.0).abs() <= ROW_SUM_TOLERANCE {
        Ok(())
    } else {
        Err(MetricError::RowSum { row, sum, tolerance: ROW_SUM_TOLERANCE })
    }
}

/// Index of the largest value, the lowest index on ties.
pub fn argmax(row: &[f64]) -> usize {
    row.iter().enumerate().fold(0, |best, (class, p)| if *p > row[best] { class } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_row_is_named() {
        let build = |p: Vec<f64>| ClassPredictions::new(vec![0, 1], 2, p);
        assert!(matches!(build(vec![0.5, 0.5, 0.5, 0.6]), Err(MetricError::RowSum { row: 1, .. })));
        assert!(matches!(build(vec![0.5, 0.5, f64::NAN, 1.0]), Err(MetricError::Probability { row: 1, class: 0, .. })));
        assert!(matches!(build(vec![-0.1, 1.1, 0.5, 0.5]), Err(MetricError::Probability { row: 0, class: 0, .. })));
        assert!(matches!(build(vec![0.5, 0.5]), Err(MetricError::Length { got: 2, expected: 4, .. })));
        let label = ClassPredictions::new(vec![2], 2, vec![0.5, 0.5]);
        assert_eq!(
            label.map_err(|e| e.to_string()),
            Err("row 0: label 2 is out of range; 2 classes have the labels 0 to 1".into())
        );
        assert_eq!(ClassPredictions::new(vec![], 2, vec![]), Err(MetricError::NoRows));
    }

    #[test]
    fn a_row_within_the_tolerance_is_kept_as_given() -> Result<(), MetricError> {
        let predictions = ClassPredictions::new(vec![0], 2, vec![0.6, 0.4009])?;
        assert_eq!(predictions.probabilities(), [0.6, 0.4009]);
        Ok(())
    }

    #[test]
    fn probability_zero_of_a_particle_is_accepted_and_nan_is_not() -> Result<(), MetricError> {
        let certain = ParticleLogProbs::new(2, 1, 2, vec![0.0, f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0])?;
        assert_eq!(certain.ensemble(), [0.5, 0.5]);
        let nan = ParticleLogProbs::new(1, 1, 2, vec![f64::NAN, 0.0]);
        assert!(matches!(nan, Err(MetricError::LogProbability { particle: 0, row: 0, class: 0, .. })));
        Ok(())
    }
}
