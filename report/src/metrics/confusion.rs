//! Which classes are taken for which.

use serde::Serialize;

use super::interval::Interval;
use super::predictions::{ClassPredictions, argmax};
use super::share::Share;

/// The numbers of rows of every class that are predicted as every class.
#[derive(Debug, Clone, PartialEq)]
pub struct Confusion {
    classes: usize,
    /// `[C, C]`, the label first.
    counts: Vec<usize>,
    /// Sums of the confidences of the same rows, `[C, C]`.
    confidence: Vec<f64>,
}

/// Rows of one class that are predicted as another one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ConfusedPair {
    /// The class of the rows.
    pub label: usize,
    /// The class that they are taken for.
    pub predicted: usize,
    /// Number of these rows.
    pub n: usize,
    /// Their share of the rows of the class.
    pub share: f64,
    /// The 95 % interval of this share (Wilson), by clusters where the rows have them.
    pub share_interval: Interval,
    /// Mean confidence of these predictions, all of which are wrong.
    pub confidence: f64,
}

impl Confusion {
    /// Counts the rows; the predicted class is the argmax, the lowest index on ties.
    pub fn of(predictions: &ClassPredictions<'_>) -> Self {
        let classes = predictions.classes();
        let (mut counts, mut confidence) = (vec![0; classes * classes], vec![0.0; classes * classes]);
        for (row, &label) in predictions.rows().zip(predictions.labels()) {
            let predicted = argmax(row);
            counts[label * classes + predicted] += 1;
            confidence[label * classes + predicted] += row[predicted];
        }
        Self { classes, counts, confidence }
    }

    /// Number of classes `C`.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The counts of every class, `[C]` for each label in ascending order.
    pub fn rows(&self) -> impl Iterator<Item = &[usize]> {
        self.counts.chunks_exact(self.classes)
    }

    /// The places in `[C, C]` of the pairs of different classes with rows.
    fn pairs(&self) -> impl Iterator<Item = usize> {
        (0..self.counts.len()).filter(|at| self.counts[*at] > 0 && at / self.classes != at % self.classes)
    }

    /// The number of pairs of different classes with rows.
    pub fn confused_pairs(&self) -> usize {
        self.pairs().count()
    }

    /// The pairs of different classes with the most rows, at most so many; pairs of equal numbers are in the order of label and
    /// prediction.
    ///
    /// # Arguments
    /// * `predictions`: those that were counted
    pub fn confused(&self, predictions: &ClassPredictions<'_>, most: usize) -> Vec<ConfusedPair> {
        let mut pairs: Vec<usize> = self.pairs().collect();
        pairs.sort_by_key(|at| std::cmp::Reverse(self.counts[*at]));
        pairs.truncate(most);
        let taken_for: Vec<usize> = predictions.rows().map(argmax).collect();
        let pair = |at: usize| {
            let (label, predicted, n) = (at / self.classes, at % self.classes, self.counts[at]);
            let of_label = predictions.labels().iter().enumerate().filter(move |(_, of)| **of == label);
            let share = Share::of(predictions.clusters(), of_label.map(|(row, _)| (row, taken_for[row] == predicted)))?;
            Some(ConfusedPair {
                label,
                predicted,
                n,
                share: share.value,
                share_interval: share.interval(0.95),
                confidence: self.confidence[at] / n as f64,
            })
        };
        pairs.into_iter().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::share_interval;

    #[test]
    fn pairs_are_sorted_by_their_rows_and_have_the_confidence_of_the_mistakes() {
        let rows =
            [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.2, 0.7, 0.1], [0.8, 0.1, 0.1], [0.4, 0.3, 0.3]];
        let predictions = ClassPredictions::new(vec![0, 1, 2, 0, 1, 2], 3, rows.concat()).unwrap();
        let confusion = Confusion::of(&predictions);
        assert_eq!(confusion.rows().collect::<Vec<_>>(), [[1, 1, 0], [2, 0, 0], [1, 0, 1]]);
        let pairs = confusion.confused(&predictions, 10);
        assert_eq!((confusion.confused_pairs(), confusion.confused(&predictions, 2)), (3, pairs[..2].to_vec()));
        let found: Vec<_> = pairs.iter().map(|pair| (pair.label, pair.predicted, pair.n)).collect();
        assert_eq!(found, [(1, 0, 2), (0, 1, 1), (2, 0, 1)]);
        assert!((pairs[0].confidence - 0.65).abs() < 1e-15 && pairs[0].share == 1.0 && pairs[1].share == 0.5);
        assert_eq!(pairs[0].share_interval, share_interval(1.0, 2));
    }
}
