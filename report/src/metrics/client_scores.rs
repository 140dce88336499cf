//! Scores of one client's own predictor on that client's own rows, as sums over the rows.

use super::calibration::{Bin, BinRule, Histogram, MAX_BINS};
use super::classification::{floored_nll, squared_error};
use super::error::{MetricError, check_length, finite};
use super::mixture::RegressionPredictions;
use super::predictions::{ParticleLogProbs, argmax, check_labels};
use super::regression::{log_likelihood, rmse};

/// Sums over the rows of one client, or of several.
#[derive(Debug, Clone)]
pub struct ClientScores {
    rows: f64,
    classes: bool,
    correct: f64,
    /// Mean over predictive components of the number of right predictions.
    correct_mean_particle: f64,
    nll: f64,
    brier: f64,
    squared_error: f64,
    confidence: Histogram,
}

/// Numbers before the histogram in [`ClientScores::to_values`].
const SUMS: usize = 7;

impl ClientScores {
    /// The scores of no row, with this many bins of confidence, from 1 to [`MAX_BINS`]; other numbers become the
    /// nearest of these.
    pub fn new(bins: usize) -> Self {
        Self {
            rows: 0.0,
            classes: false,
            correct: 0.0,
            correct_mean_particle: 0.0,
            nll: 0.0,
            brier: 0.0,
            squared_error: 0.0,
            confidence: Histogram::empty(bins.clamp(1, MAX_BINS), BinRule::UpperClosed),
        }
    }

    /// Adds rows with their labels.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    ///
    /// # Errors
    /// Labels out of range or not one per row.
    pub fn add_classes(&mut self, log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<(), MetricError> {
        check_length("labels", labels.len(), log_probs.rows())?;
        check_labels(labels, log_probs.classes())?;
        let predictions = log_probs.predictions(labels)?;
        for (index, (row, &label)) in predictions.rows().zip(labels).enumerate() {
            let predicted = argmax(row);
            let right = (0..log_probs.particles()).filter(|n| argmax(log_probs.row(*n, index)) == label).count();
            self.correct += f64::from(u8::from(predicted == label));
            self.correct_mean_particle += right as f64 / log_probs.particles() as f64;
            self.nll += floored_nll(row[label]);
            self.brier += squared_error(row, label);
            self.confidence.push(row[predicted], predicted == label);
        }
        self.classes = true;
        self.rows += labels.len() as f64;
        Ok(())
    }

    /// Adds rows with real targets, in the units in which they are to be reported.
    ///
    /// # Errors
    /// None that checked predictions can cause.
    pub fn add_real(&mut self, predictions: &RegressionPredictions) -> Result<(), MetricError> {
        let rows = predictions.rows() as f64;
        self.rows += rows;
        self.nll -= log_likelihood(predictions).unwrap_or(f64::NAN) * rows;
        self.squared_error += rmse(predictions).unwrap_or(f64::NAN).powi(2) * rows;
        Ok(())
    }

    /// Adds another client's sums, whose bins must be as many.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.classes |= other.classes;
        self.correct += other.correct;
        self.correct_mean_particle += other.correct_mean_particle;
        self.nll += other.nll;
        self.brier += other.brier;
        self.squared_error += other.squared_error;
        self.confidence.merge(&other.confidence);
    }

    /// The sums as a message carries them, `[7 + 3 * bins]`: seven numbers, then rows, right predictions and confidence
    /// of every bin.
    pub fn to_values(&self) -> Vec<f64> {
        let classes = f64::from(u8::from(self.classes));
        let sums =
            [self.rows, classes, self.correct, self.correct_mean_particle, self.nll, self.brier, self.squared_error];
        sums.into_iter().chain(self.confidence.values()).collect()
    }

    /// The sums of a message, `[7 + 3 * bins]`; `None` where the length is another one.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let (sums, bins) = values.split_at_checked(SUMS)?;
        if bins.is_empty() || !bins.len().is_multiple_of(3) {
            return None;
        }
        Some(Self {
            rows: sums[0],
            classes: sums[1] > 0.0,
            correct: sums[2],
            correct_mean_particle: sums[3],
            nll: sums[4],
            brier: sums[5],
            squared_error: sums[6],
            confidence: Histogram::of_values(bins),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    fn mean(&self, sum: f64, defined: bool) -> Option<f64> {
        if defined && self.rows > 0.0 { finite(sum / self.rows) } else { None }
    }

    /// Accuracy of the ensemble.
    pub fn accuracy(&self) -> Option<f64> {
        self.mean(self.correct, self.classes)
    }

    /// Mean over particles of each particle's accuracy.
    pub fn accuracy_mean_particle(&self) -> Option<f64> {
        self.mean(self.correct_mean_particle, self.classes)
    }

    /// Negative log-likelihood of the predictive, nats.
    pub fn nll(&self) -> Option<f64> {
        self.mean(self.nll, true)
    }

    /// Brier score, `[0, 2]`.
    pub fn brier(&self) -> Option<f64> {
        self.mean(self.brier, self.classes)
    }

    /// Expected calibration error of the top label.
    pub fn ece(&self) -> Option<f64> {
        if self.classes { self.confidence.finish().ece() } else { None }
    }

    /// Maximum calibration error of the top label.
    pub fn mce(&self) -> Option<f64> {
        if self.classes { self.confidence.finish().mce() } else { None }
    }

    /// Bins of confidence; all empty for real targets.
    pub fn bins(&self) -> Vec<Bin> {
        self.confidence.finish().bins().to_vec()
    }

    /// Root mean squared error.
    pub fn rmse(&self) -> Option<f64> {
        self.mean(self.squared_error, !self.classes).map(f64::sqrt)
    }
}
