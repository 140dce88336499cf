//! The flat record of headline numbers that a run writes every round.

use serde::{Deserialize, Serialize};

use super::calibration::{BinRule, Histogram, equal_mass};
use super::classification::{PROBABILITY_FLOOR, argmax, floored_nll, squared_error};
use super::error::{MetricError, check_length, finite};
use super::mixture::{RegressionPredictions, Scale};
use super::predictions::{ClassPredictions, ParticleLogProbs, check_labels};
use super::regression::{coverage_of_pit, crps, log_likelihood, mae, pit, rmse};
use super::uncertainty::{RowScratch, entropy};

/// Headline numbers of one evaluation; `None` where a number has no meaning for the task or no
/// value.
///
/// Accuracy is the ensemble's; the mean over particles has its own field. Entropies and
/// log-likelihoods are in nats, regression numbers on the scale of the data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Test rows.
    pub rows: usize,
    /// Accuracy of the ensemble.
    pub accuracy: Option<f64>,
    /// Mean over particles of their own accuracies.
    pub accuracy_mean_particle: Option<f64>,
    /// Negative log-likelihood of the predictive.
    pub nll: Option<f64>,
    /// Mean over particles of their own negative log-likelihoods.
    pub nll_mean_particle: Option<f64>,
    /// Rows whose probability of the label lay below the floor of the NLL.
    pub nll_clamped: Option<f64>,
    /// Mean log density or log probability of the targets, `-nll`.
    pub log_likelihood: Option<f64>,
    /// Mean log of the largest probability, the reference code's "log-likelihood".
    pub reference_max: Option<f64>,
    /// Brier score, `[0, 2]`.
    pub brier: Option<f64>,
    /// Expected calibration error of the top label.
    pub ece: Option<f64>,
    /// Maximum calibration error of the top label.
    pub mce: Option<f64>,
    /// Adaptive (equal-mass) calibration error of the top label.
    pub ace: Option<f64>,
    /// Mean over classes of the one-vs-rest calibration errors.
    pub classwise_ece: Option<f64>,
    /// Mean confidence minus accuracy.
    pub signed_gap: Option<f64>,
    /// Mean probability of the predicted class.
    pub mean_confidence: Option<f64>,
    /// Mean entropy of the predictive.
    pub entropy: Option<f64>,
    /// Mean entropy of the particles.
    pub aleatoric: Option<f64>,
    /// Mean mutual information, `entropy - aleatoric`.
    pub mutual_information: Option<f64>,
    /// Mean share of particle pairs that predict different classes.
    pub disagreement: Option<f64>,
    /// Root mean squared error.
    pub rmse: Option<f64>,
    /// Mean absolute error.
    pub mae: Option<f64>,
    /// Continuous ranked probability score.
    pub crps: Option<f64>,
    /// Share of targets in the central 50 % interval.
    pub coverage_50: Option<f64>,
    /// Share of targets in the central 90 % interval.
    pub coverage_90: Option<f64>,
    /// Share of targets in the central 95 % interval.
    pub coverage_95: Option<f64>,
    /// KL(q ‖ posterior) of a toy density, by quadrature.
    #[serde(default)]
    pub kl: Option<f64>,
}

impl Evaluation {
    /// The numbers by name, in the order of the columns of `rounds.csv`.
    pub fn columns(&self) -> Vec<(&'static str, Option<f64>)> {
        vec![
            ("accuracy", self.accuracy),
            ("accuracy_mean_particle", self.accuracy_mean_particle),
            ("nll", self.nll),
            ("nll_mean_particle", self.nll_mean_particle),
            ("ece", self.ece),
            ("mce", self.mce),
            ("ace", self.ace),
            ("classwise_ece", self.classwise_ece),
            ("brier", self.brier),
            ("signed_gap", self.signed_gap),
            ("mean_confidence", self.mean_confidence),
            ("entropy", self.entropy),
            ("mutual_information", self.mutual_information),
            ("disagreement", self.disagreement),
            ("reference_max", self.reference_max),
            ("log_likelihood", self.log_likelihood),
            ("rmse", self.rmse),
            ("mae", self.mae),
            ("crps", self.crps),
            ("coverage_90", self.coverage_90),
            ("kl", self.kl),
        ]
    }

    /// Scores a particle set in one pass over its log probabilities and one sort of the
    /// confidences.
    ///
    /// # Arguments
    /// * `log_probs`: `[N, n, C]`
    /// * `labels`: `[n]`
    /// * `bins`: number of calibration bins
    ///
    /// # Errors
    /// Labels out of range or not one a row; a number of bins that makes no histogram.
    pub fn classification(log_probs: &ParticleLogProbs, labels: &[usize], bins: usize) -> Result<Self, MetricError> {
        check_length("labels", labels.len(), log_probs.rows())?;
        check_labels(labels, log_probs.classes())?;
        let mut tally = Tally::new(labels.len(), log_probs.classes(), bins)?;
        let mut scratch = RowScratch::new(log_probs.classes());
        let (mut entropies, mut aleatoric, mut epistemic) = (0.0, 0.0, 0.0);
        let (mut disagreement, mut votes, mut gibbs) = (None, 0, 0.0);
        let floor = PROBABILITY_FLOOR.ln();
        for (row, &label) in labels.iter().enumerate() {
            let split = scratch.split(log_probs, row);
            entropies += split.total;
            aleatoric += split.aleatoric;
            epistemic += split.epistemic;
            if let Some(share) = split.disagreement {
                *disagreement.get_or_insert(0.0) += share;
            }
            votes += scratch.votes[label];
            gibbs -= (0..log_probs.particles()).map(|n| log_probs.row(n, row)[label].max(floor)).sum::<f64>();
            tally.push(&scratch.probabilities, label);
        }
        let n = labels.len() as f64;
        let particles = log_probs.particles() as f64;
        Ok(Self {
            accuracy_mean_particle: finite(votes as f64 / (n * particles)),
            nll_mean_particle: finite(gibbs / (n * particles)),
            entropy: finite(entropies / n),
            aleatoric: finite(aleatoric / n),
            mutual_information: finite(epistemic / n),
            disagreement: disagreement.and_then(|sum| finite(sum / n)),
            ..tally.finish(bins)?
        })
    }

    /// Scores a predictive whose particles are not known.
    ///
    /// # Errors
    /// A number of bins that makes no histogram.
    pub fn of_predictions(predictions: &ClassPredictions, bins: usize) -> Result<Self, MetricError> {
        let mut tally = Tally::new(predictions.len(), predictions.classes(), bins)?;
        let mut entropies = 0.0;
        for (row, &label) in predictions.rows().zip(predictions.labels()) {
            entropies += entropy(row);
            tally.push(row, label);
        }
        Ok(Self { entropy: finite(entropies / predictions.len() as f64), ..tally.finish(bins)? })
    }

    /// Scores a regression.
    ///
    /// # Arguments
    /// * `standardised`: predictions and targets on the scale that the model was trained on
    /// * `scale`: brings them back to the scale of the data, on which every number is given
    ///
    /// # Errors
    /// A scale that is not finite and positive.
    pub fn regression(standardised: &RegressionPredictions, scale: Scale) -> Result<Self, MetricError> {
        let predictions = standardised.original_scale(scale)?;
        let log_likelihood = log_likelihood(&predictions);
        let pit = pit(&predictions);
        Ok(Self {
            rows: predictions.rows(),
            nll: log_likelihood.map(|value| -value),
            log_likelihood,
            rmse: rmse(&predictions),
            mae: mae(&predictions),
            crps: crps(&predictions),
            coverage_50: finite(coverage_of_pit(&pit, 0.5)),
            coverage_90: finite(coverage_of_pit(&pit, 0.9)),
            coverage_95: finite(coverage_of_pit(&pit, 0.95)),
            ..Self::default()
        })
    }
}

/// Running sums of the scores of a predictive.
#[derive(Debug)]
struct Tally {
    confidence: Vec<f64>,
    correct: Vec<bool>,
    top: Histogram,
    one_vs_rest: Vec<Histogram>,
    nll: f64,
    clamped: usize,
    brier: f64,
    log_max: f64,
}

impl Tally {
    fn new(rows: usize, classes: usize, bins: usize) -> Result<Self, MetricError> {
        let empty = Histogram::new(bins, BinRule::UpperClosed)?;
        Ok(Self {
            confidence: Vec::with_capacity(rows),
            correct: Vec::with_capacity(rows),
            one_vs_rest: vec![empty.clone(); classes],
            top: empty,
            nll: 0.0,
            clamped: 0,
            brier: 0.0,
            log_max: 0.0,
        })
    }

    fn push(&mut self, row: &[f64], label: usize) {
        let predicted = argmax(row);
        let (confidence, correct) = (row[predicted], predicted == label);
        self.confidence.push(confidence);
        self.correct.push(correct);
        self.top.push(confidence, correct);
        for (class, histogram) in self.one_vs_rest.iter_mut().enumerate() {
            histogram.push(row[class], class == label);
        }
        self.nll += floored_nll(row[label]);
        self.clamped += usize::from(row[label] < PROBABILITY_FLOOR);
        self.brier += squared_error(row, label);
        self.log_max -= floored_nll(confidence);
    }

    fn finish(self, bins: usize) -> Result<Evaluation, MetricError> {
        let rows = self.confidence.len();
        let n = rows as f64;
        let top = self.top.finish();
        let of_classes: Vec<f64> = self.one_vs_rest.iter().filter_map(|h| h.finish().ece()).collect();
        let right = self.correct.iter().filter(|right| **right).count();
        Ok(Evaluation {
            rows,
            accuracy: finite(right as f64 / n),
            nll: finite(self.nll / n),
            nll_clamped: Some(self.clamped as f64),
            log_likelihood: finite(-self.nll / n),
            reference_max: finite(self.log_max / n),
            brier: finite(self.brier / n),
            ece: top.ece(),
            mce: top.mce(),
            ace: equal_mass(&self.confidence, &self.correct, bins)?.ece(),
            classwise_ece: finite(of_classes.iter().sum::<f64>() / of_classes.len() as f64),
            signed_gap: top.signed_gap(),
            mean_confidence: finite(self.confidence.iter().sum::<f64>() / n),
            ..Evaluation::default()
        })
    }
}
