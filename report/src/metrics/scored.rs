//! The input of the metrics' functions: checked predictions, and what several metrics compute from them.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::calibration::{BinRule, Calibration, Histogram, bin_index, equal_mass};
use super::classification::PROBABILITY_FLOOR;
use super::clusters::Clusters;
use super::error::{MetricError, check_length, finite, mean};
use super::interval::Interval;
use super::mixture::RegressionPredictions;
use super::predictions::{ClassPredictions, ParticleLogProbs, argmax, check_labels};
use super::ranking::Ranking;
use super::recalibration::Recalibration;
use super::regression::{PredictiveMoments, crps_of_rows, log_densities, pit, predictive_moments};
use super::share::Share;
use super::uncertainty::RowScratch;

/// Class probabilities with their labels, as the metrics of a classification see them.
#[derive(Debug)]
pub struct ScoredClasses<'a> {
    probabilities: Cow<'a, [f64]>,
    labels: &'a [usize],
    clusters: Option<&'a Clusters>,
    classes: usize,
    confidence: Vec<f64>,
    correct: Vec<bool>,
    top: Calibration,
    equal_mass: Calibration,
    one_vs_rest: Vec<Calibration>,
    particles: Option<ParticleMeans>,
    ranking: OnceLock<Option<Ranking>>,
    recalibration: OnceLock<Option<Recalibration>>,
}

/// Means over rows of numbers that need the particles.
#[derive(Debug, Clone, Copy)]
pub struct ParticleMeans {
    /// Mean over particles of each particle's accuracy.
    pub accuracy: f64,
    /// Mean over particles of each particle's negative log-likelihood, nats.
    pub nll: f64,
    /// Mean entropy of the particles, nats.
    pub aleatoric: f64,
    /// Mean mutual information, nats.
    pub epistemic: f64,
    /// Mean share of particle pairs that predict different classes; `None` with one particle.
    pub disagreement: Option<f64>,
}

impl<'a> ScoredClasses<'a> {
    /// Prepares a predictive whose particles are not known.
    ///
    /// # Errors
    /// A number of bins outside `1..=`[`super::MAX_BINS`].
    pub fn of_predictions(predictions: &'a ClassPredictions<'a>, bins: usize) -> Result<Self, MetricError> {
        let probabilities = Cow::Borrowed(predictions.probabilities());
        let scored = Self::new(probabilities, predictions.labels(), predictions.classes(), bins, None)?;
        Ok(Self { clusters: predictions.clusters(), ..scored })
    }

    /// Prepares a particle set in one pass over its log probabilities.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    /// * `bins`: number of calibration bins
    ///
    /// # Errors
    /// Labels out of range or not one per row; a number of bins outside `1..=`[`super::MAX_BINS`].
    pub fn of_particles(log_probs: &ParticleLogProbs, labels: &'a [usize], bins: usize) -> Result<Self, MetricError> {
        check_length("labels", labels.len(), log_probs.rows())?;
        check_labels(labels, log_probs.classes())?;
        let mut scratch = RowScratch::new(log_probs.classes());
        let mut probabilities = Vec::with_capacity(labels.len() * log_probs.classes());
        let (mut votes, mut nll, mut aleatoric, mut epistemic) = (0, 0.0, 0.0, 0.0);
        let mut disagreement = None;
        let floor = PROBABILITY_FLOOR.ln();
        for (row, &label) in labels.iter().enumerate() {
            let split = scratch.split(log_probs, row);
            aleatoric += split.aleatoric;
            epistemic += split.epistemic;
            if let Some(share) = split.disagreement {
                *disagreement.get_or_insert(0.0) += share;
            }
            votes += scratch.votes[label];
            nll -= (0..log_probs.particles()).map(|n| log_probs.of_class(n, row, label).max(floor)).sum::<f64>();
            probabilities.extend_from_slice(&scratch.probabilities);
        }
        let (n, particles) = (labels.len() as f64, log_probs.particles() as f64);
        let means = ParticleMeans {
            accuracy: votes as f64 / (n * particles),
            nll: nll / (n * particles),
            aleatoric: aleatoric / n,
            epistemic: epistemic / n,
            disagreement: disagreement.map(|sum: f64| sum / n),
        };
        Self::new(Cow::Owned(probabilities), labels, log_probs.classes(), bins, Some(means))
    }

    fn new(
        probabilities: Cow<'a, [f64]>,
        labels: &'a [usize],
        classes: usize,
        bins: usize,
        particles: Option<ParticleMeans>,
    ) -> Result<Self, MetricError> {
        let empty = Histogram::new(bins, BinRule::UpperClosed)?;
        let mut one_vs_rest = vec![empty.clone(); classes];
        let mut top = empty;
        let mut confidence = Vec::with_capacity(labels.len());
        let mut correct = Vec::with_capacity(labels.len());
        for (row, &label) in probabilities.chunks_exact(classes).zip(labels) {
            let predicted = argmax(row);
            confidence.push(row[predicted]);
            correct.push(predicted == label);
            top.push(row[predicted], predicted == label);
            for (class, histogram) in one_vs_rest.iter_mut().enumerate() {
                histogram.push(row[class], class == label);
            }
        }
        let equal_mass = equal_mass(&confidence, &correct, bins)?;
        Ok(Self {
            probabilities,
            labels,
            clusters: None,
            classes,
            confidence,
            correct,
            top: top.finish(),
            equal_mass,
            one_vs_rest: one_vs_rest.iter().map(Histogram::finish).collect(),
            particles,
            ranking: OnceLock::new(),
            recalibration: OnceLock::new(),
        })
    }

    /// Number of rows `n`, at least 1.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows, which checked predictions rule out.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The clusters of the rows; `None` where rows are independent, or are those of particles.
    pub fn clusters(&self) -> Option<&'a Clusters> {
        self.clusters
    }

    /// The number of clusters; that of rows where they are independent.
    pub fn independent(&self) -> usize {
        self.clusters.map_or(self.len(), Clusters::count)
    }

    /// Number of classes `C`.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of bins.
    pub fn bins(&self) -> usize {
        self.top.bins().len()
    }

    /// Every row's probabilities `[C]` with its label.
    pub fn rows(&self) -> impl Iterator<Item = (&[f64], usize)> + Clone {
        self.probabilities.chunks_exact(self.classes).zip(self.labels.iter().copied())
    }

    /// The mean over rows of a score of probabilities `[C]` and label.
    pub fn mean(&self, score: impl Fn(&[f64], usize) -> f64) -> Option<f64> {
        // Not `sum`, whose start −0 would stay where every row scores −0.
        let sum = self.rows().fold(0.0, |sum, (row, label)| sum + score(row, label));
        finite(sum / self.len() as f64)
    }

    /// The number of rows that a condition on probabilities `[C]` and label holds for.
    pub fn count(&self, condition: impl Fn(&[f64], usize) -> bool) -> f64 {
        self.rows().filter(|(row, label)| condition(row, *label)).count() as f64
    }

    /// Probability of the predicted class, `[n]`.
    pub fn confidence(&self) -> &[f64] {
        &self.confidence
    }

    /// Whether the predicted class is the label, `[n]`.
    pub fn correct(&self) -> &[bool] {
        &self.correct
    }

    /// Calibration of the top label over equal-width bins.
    pub fn top(&self) -> &Calibration {
        &self.top
    }

    /// The 95 % interval of the accuracy of each bin of [`Self::top`] that has rows, by clusters where the rows have them.
    pub(crate) fn top_intervals(&self) -> Vec<Option<Interval>> {
        let rows = self.confidence.iter().copied().zip(self.correct.iter().copied());
        self.bin_intervals(&self.top, rows)
    }

    /// The same of the bins of a class in [`Self::one_vs_rest`].
    pub(crate) fn one_vs_rest_intervals(&self, class: usize) -> Vec<Option<Interval>> {
        self.bin_intervals(&self.one_vs_rest[class], self.rows().map(|(row, label)| (row[class], label == class)))
    }

    /// The intervals of bins, from the number of each row that decides the bin, and its outcome.
    fn bin_intervals(&self, of: &Calibration, rows: impl Iterator<Item = (f64, bool)>) -> Vec<Option<Interval>> {
        let Some(clusters) = self.clusters else { return of.accuracy_intervals() };
        let mut in_bins = vec![Vec::new(); self.bins()];
        for (row, (value, outcome)) in rows.enumerate() {
            in_bins[bin_index(value, self.bins(), BinRule::UpperClosed)].push((row, outcome));
        }
        let interval =
            |rows: &Vec<(usize, bool)>| Some(Share::of(Some(clusters), rows.iter().copied())?.interval(0.95));
        in_bins.iter().map(interval).collect()
    }

    /// Calibration of the top label over equal-mass bins.
    pub fn equal_mass(&self) -> &Calibration {
        &self.equal_mass
    }

    /// Calibration of every `p_c` against the indicator `label = c`, `[C]`.
    pub fn one_vs_rest(&self) -> &[Calibration] {
        &self.one_vs_rest
    }

    /// The rows in the order of p(y = 1); `None` unless there are two classes. Computed on the first call.
    pub fn ranking(&self) -> Option<&Ranking> {
        let new = || {
            let (score, positive): (Vec<f64>, Vec<bool>) = self.rows().map(|(row, label)| (row[1], label == 1)).unzip();
            Ranking::new(&score, &positive).ok()
        };
        self.ranking.get_or_init(|| if self.classes == 2 { new() } else { None }).as_ref()
    }

    /// The logistic recalibration of p(y = 1); `None` unless there are two classes. Computed on the first call.
    pub fn recalibration(&self) -> Option<&Recalibration> {
        let new = || (self.classes == 2).then(|| Recalibration::of_rows(self.rows(), self.clusters));
        self.recalibration.get_or_init(new).as_ref()
    }

    /// The numbers that need the particles; `None` where the particles are not known.
    pub fn particles(&self) -> Option<&ParticleMeans> {
        self.particles.as_ref()
    }
}

/// A regression's predictions on the scale of the data, as its metrics see them.
#[derive(Debug)]
pub struct ScoredTargets<'a> {
    predictions: &'a RegressionPredictions<'a>,
    log_densities: Vec<f64>,
    crps: OnceLock<Vec<f64>>,
    pit: Vec<f64>,
}

impl<'a> ScoredTargets<'a> {
    /// Prepares predictions on the scale of the data.
    pub fn new(predictions: &'a RegressionPredictions<'a>) -> Self {
        let (log_densities, pit) = (log_densities(predictions), pit(predictions));
        Self { predictions, log_densities, crps: OnceLock::new(), pit }
    }

    /// The predictions.
    pub fn predictions(&self) -> &'a RegressionPredictions<'a> {
        self.predictions
    }

    /// Mean log density of the targets, nats.
    pub fn log_likelihood(&self) -> Option<f64> {
        mean(self.log_densities.iter().copied())
    }

    /// Log density of each target, `[n]`, nats.
    pub fn log_densities(&self) -> &[f64] {
        &self.log_densities
    }

    /// Continuous ranked probability score of each row, `[n]`.
    pub fn crps(&self) -> &[f64] {
        self.crps.get_or_init(|| crps_of_rows(self.predictions))
    }

    /// Distribution function of the predictive at the target, `[n]`.
    pub fn pit(&self) -> &[f64] {
        &self.pit
    }

    /// Moments of the predictive, each `[n]`.
    pub fn moments(&self) -> PredictiveMoments {
        predictive_moments(self.predictions)
    }
}
