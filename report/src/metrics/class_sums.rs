//! Sums over the labelled rows of a classification.

use super::calibration::{BinRule, BrierDecomposition, Calibration, Histogram, MAX_BINS, bin_index};
use super::classification::{PROBABILITY_FLOOR, floored_nll, squared_error};
use super::cluster_sums::{ClusterSums, Moments};
use super::error::{MetricError, check_length, finite};
use super::interval::Interval;
use super::normal::two_sided_quantile;
use super::predictions::{ParticleLogProbs, argmax, check_labels};
use super::sums_reader::Reader;
use super::uncertainty::RowScratch;

/// A score of a row, whose sum over rows is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassScore {
    /// 1 where the predicted class is the label.
    Correct,
    /// 1 where the probability of the label lies below the floor of the NLL.
    Clamped,
    /// 1 where there are two predictive components or more, which can disagree.
    Paired,
    /// Share of the predictive components that are right.
    CorrectMeanParticle,
    /// Floored NLL of the predictive.
    Nll,
    /// Mean over components of the floored NLL.
    NllMeanParticle,
    /// Logarithm of the confidence.
    LogConfidence,
    /// Squared distance from the one-hot label.
    Brier,
    /// `(confidence - correct)^2`.
    TopBrier,
    /// Entropy of the predictive.
    Entropy,
    /// Mean entropy of the components.
    Aleatoric,
    /// Mutual information.
    Epistemic,
    /// Share of pairs of components that predict different classes.
    Disagreement,
}

use ClassScore::*;

/// Number of scores.
pub(super) const CLASS_SCORES: usize = 13;

/// The scores, in the order of a message.
const SCORES: [ClassScore; CLASS_SCORES] = [
    Correct,
    Clamped,
    Paired,
    CorrectMeanParticle,
    Nll,
    NllMeanParticle,
    LogConfidence,
    Brier,
    TopBrier,
    Entropy,
    Aleatoric,
    Epistemic,
    Disagreement,
];

/// The places among the numbers that are added up by clusters: of the gap, of right predictions, and of the second of two
/// classes.
const GAP: usize = 0;
/// See [`GAP`].
pub(super) const CORRECT: usize = 1;
/// See [`GAP`].
pub(super) const SECOND: usize = 2;

/// The smallest values of a row's numbers that are added up by clusters.
const LEAST: [f64; 3] = [-1.0, 0.0, -1.0];

/// Room in the bounds of a score for rounding, and for probabilities whose sum is not quite 1.
const ROOM: f64 = 0.02;
/// Room in the bounds of a bin's mean confidence for rounding.
const ROUNDING: f64 = 1e-9;

impl ClassScore {
    /// The smallest and the largest value of a row.
    fn bounds(self, classes: usize) -> (f64, f64) {
        let (nll, entropy) = (-PROBABILITY_FLOOR.ln() + ROOM, (classes as f64).ln() * (1.0 + ROOM) + ROOM);
        match self {
            Correct | Clamped | Paired | CorrectMeanParticle | TopBrier | Disagreement => (0.0, 1.0),
            Nll => (0.0, nll),
            NllMeanParticle => (-ROOM, nll),
            LogConfidence => (-nll, 0.0),
            Brier => (0.0, 2.0 + ROOM),
            Entropy | Epistemic => (0.0, entropy),
            Aleatoric => (-ROOM, entropy),
        }
    }

    /// Whether the sum is a number of rows.
    fn is_count(self) -> bool {
        matches!(self, Correct | Clamped | Paired)
    }
}

/// The sums over rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClassSums {
    classes: usize,
    /// In the order of [`SCORES`].
    scores: [f64; CLASS_SCORES],
    /// Bins of the top label.
    top: Histogram,
    /// For every class c and bin of `p_c`, the sum of `p_c - [label = c]`, `[C, B]`. The rows of each bin, from which
    /// the number of rows of each class would follow, are not needed.
    gaps: Vec<f64>,
}

impl ClassSums {
    pub(super) fn new(classes: usize, bins: usize) -> Self {
        let bins = bins.clamp(1, MAX_BINS);
        let top = Histogram::empty(bins, BinRule::UpperClosed);
        Self { classes, scores: [0.0; CLASS_SCORES], top, gaps: vec![0.0; classes * bins] }
    }

    /// Number of classes `C`.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of bins `B`.
    pub fn bins(&self) -> usize {
        self.top.len()
    }

    /// The sum of a score.
    pub fn get(&self, score: ClassScore) -> f64 {
        self.scores[score as usize]
    }

    /// Calibration of the top label.
    pub fn calibration(&self) -> Calibration {
        self.top.finish()
    }

    /// One-vs-rest ECE of every class, `[C]`; 0 without a row.
    pub fn classwise_ece(&self, rows: usize) -> Vec<f64> {
        let of_class = |gaps: &[f64]| gaps.iter().map(|gap| gap.abs()).sum::<f64>() / rows.max(1) as f64;
        self.gaps.chunks_exact(self.bins()).map(of_class).collect()
    }

    /// The mean of p_c less the share of the rows of class c; 0 without a row.
    pub fn mean_gap(&self, class: usize, rows: usize) -> f64 {
        self.sum_of_gaps(class) / rows.max(1) as f64
    }

    fn sum_of_gaps(&self, class: usize) -> f64 {
        self.gaps.chunks_exact(self.bins()).nth(class).unwrap_or_default().iter().sum()
    }

    /// The mean over rows of the Brier score, a sum over classes; 0 without a row.
    pub fn mean_brier(&self, rows: usize) -> f64 {
        self.get(ClassScore::Brier) / rows.max(1) as f64
    }

    /// Adds rows with their labels.
    ///
    /// # Arguments
    /// * `each`: is called with each row and its [numbers](Self::moments)
    ///
    /// # Errors
    /// Labels out of range or not one per row; another number of classes.
    pub(super) fn add(
        &mut self,
        log_probs: &ParticleLogProbs,
        labels: &[usize],
        mut each: impl FnMut(usize, &[f64]),
    ) -> Result<(), MetricError> {
        check_length("labels", labels.len(), log_probs.rows())?;
        check_length("classes", log_probs.classes(), self.classes)?;
        check_labels(labels, self.classes)?;
        let mut scratch = RowScratch::new(self.classes);
        let (particles, floor) = (log_probs.particles(), PROBABILITY_FLOOR.ln());
        for (row, &label) in labels.iter().enumerate() {
            let split = scratch.split(log_probs, row);
            let of_label = (0..particles).map(|n| log_probs.of_class(n, row, label).max(floor)).sum::<f64>();
            self.push(Entropy, split.total);
            self.push(Aleatoric, split.aleatoric);
            self.push(Epistemic, split.epistemic);
            self.push(Paired, indicator(split.disagreement.is_some()));
            self.push(Disagreement, split.disagreement.unwrap_or(0.0));
            self.push(CorrectMeanParticle, scratch.votes[label] as f64 / particles as f64);
            self.push(NllMeanParticle, -of_label / particles as f64);
            let numbers = self.add_predictive(&scratch.probabilities, label);
            each(row, &numbers[..self.least().len()]);
        }
        Ok(())
    }

    /// Adds the predictive of a row, `[C]`, and returns its numbers.
    fn add_predictive(&mut self, row: &[f64], label: usize) -> [f64; 3] {
        let predicted = argmax(row);
        let (confidence, correct) = (row[predicted], indicator(predicted == label));
        self.push(Correct, correct);
        self.push(Clamped, indicator(row[label] < PROBABILITY_FLOOR));
        self.push(Nll, floored_nll(row[label]));
        self.push(LogConfidence, -floored_nll(confidence));
        self.push(Brier, squared_error(row, label));
        self.push(TopBrier, (confidence - correct).powi(2));
        self.top.push(confidence, predicted == label);
        let bins = self.bins();
        for (class, (p, gaps)) in row.iter().zip(self.gaps.chunks_exact_mut(bins)).enumerate() {
            gaps[bin_index(*p, bins, BinRule::UpperClosed)] += p - indicator(class == label);
        }
        [confidence - correct, correct, row[1] - indicator(label == 1)]
    }

    /// The smallest value of each number of a row that is added up by clusters.
    pub(super) fn least(&self) -> &'static [f64] {
        &LEAST[..LEAST.len() - usize::from(self.classes > 2)]
    }

    /// The sums over rows of the numbers that are added up by clusters: the confidence less 1 where the predicted class is the
    /// label, that 1 or 0 itself, and with two classes the probability of the second less 1 where it is the label.
    pub(super) fn moments(&self) -> Vec<Moments> {
        let gap = Moments { sum: self.top.sum_of_gaps(), squared: self.get(TopBrier) };
        let second = Moments { sum: self.sum_of_gaps(1), squared: 0.5 * self.get(Brier) };
        [gap, Moments::of_count(self.get(Correct)), second][..self.least().len()].to_vec()
    }

    fn push(&mut self, score: ClassScore, value: f64) {
        self.scores[score as usize] += value;
    }

    /// Adds other sums.
    ///
    /// # Errors
    /// They have another number of classes or bins.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), MetricError> {
        check_length("classes", other.classes, self.classes)?;
        check_length("bins", other.bins(), self.bins())?;
        self.top.merge(&other.top);
        let sums = self.scores.iter_mut().chain(&mut self.gaps);
        sums.zip(other.scores.iter().chain(&other.gaps)).for_each(|(sum, more)| *sum += more);
        Ok(())
    }

    /// Appends the sums to a message.
    pub(super) fn write(&self, to: &mut Vec<f64>) {
        to.extend(self.scores);
        to.extend(self.top.values());
        to.extend(&self.gaps);
    }

    /// The sums of a message, for as many classes and bins as these.
    ///
    /// # Errors
    /// A value is missing, or no rows can give it.
    pub(super) fn read(&self, from: &mut Reader<'_>) -> Result<Self, MetricError> {
        let (rows, mut came) = (from.rows, Self::new(self.classes, self.bins()));
        for score in SCORES {
            let (lo, hi) = score.bounds(self.classes);
            came.scores[score as usize] = if score.is_count() { from.count(rows)? } else { from.sum(lo, hi)? };
        }
        let mut bins = Vec::with_capacity(3 * self.bins());
        let (mut all, mut correct) = (0.0, 0.0);
        let width = 1.0 / self.bins() as f64;
        for bin in 0..self.bins() {
            let n = from.count(rows)?;
            let (lo, hi) = (bin as f64 * width - ROUNDING, (bin + 1) as f64 * width + ROUNDING);
            bins.extend([n, from.count(n)?, from.between(n * lo, n * hi)?]);
            all += n;
            correct += bins[bins.len() - 2];
        }
        from.together(all, rows)?;
        from.together(correct, came.get(Correct))?;
        came.top = Histogram::of_values(&bins);
        for gap in &mut came.gaps {
            *gap = from.sum(-1.0, 1.0)?;
        }
        Ok(came)
    }

    /// The decomposition of the top-label Brier score; `None` without a row.
    pub fn brier_decomposition(&self, rows: usize) -> Option<BrierDecomposition> {
        let brier = finite(self.get(TopBrier) / rows as f64)?;
        Some(BrierDecomposition::of_bins(&self.calibration(), brier))
    }

    /// A 95 % interval of the mean gap of the top label: that of a normal distribution with the variance of the rows, or by
    /// clusters where they have them, and where all are right, or all wrong, that of the accuracy (Wilson's). `None` of one
    /// cluster, which says nothing of others.
    pub fn signed_gap_interval(&self, rows: usize, clusters: Option<&ClusterSums>) -> Option<Interval> {
        if clusters.is_some_and(|clusters| clusters.count() < 2) {
            return None;
        }
        let calibration = self.calibration();
        let gap = calibration.signed_gap()?;
        let (n, squared) = (rows as f64, self.get(TopBrier));
        let of_gap = Moments { sum: n * gap, squared };
        let effect = clusters.map_or(1.0, |clusters| clusters.design_effect(GAP, rows, of_gap));
        let half = two_sided_quantile(0.95) * (effect * (squared / n - gap * gap).max(0.0) / n).sqrt();
        // An accuracy of 0 and of 1 are its ends, which few rows would exceed.
        let confidence = calibration.mean_confidence()?;
        let (lo, hi) = (finite(gap - half)?.max(confidence - 1.0), finite(gap + half)?.min(confidence));
        let independent = clusters.map_or(rows, ClusterSums::count);
        calibration.interval_of_gap(0.95, Some(Interval { lo, hi }), independent)
    }
}

/// 1 where a condition holds.
fn indicator(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}
