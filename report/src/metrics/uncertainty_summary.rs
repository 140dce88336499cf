//! The uncertainty of a particle set over labelled rows.

use serde::{Deserialize, Serialize};

use super::classification::{accuracy_mean_particle, gibbs_nll};
use super::client_scores::ClientScores;
use super::error::{MetricError, mean};
use super::predictions::ParticleLogProbs;
use super::table::Evaluation;
use super::uncertainty::RowUncertainty;

/// The numbers that need the particles behind a predictive: the part of a report that a predictions
/// file lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UncertaintySummary {
    /// Number of particles.
    pub particles: usize,
    /// Mean over particles of each particle's accuracy.
    pub accuracy_mean_particle: f64,
    /// Mean over particles of each particle's negative log-likelihood, nats.
    pub nll_mean_particle: f64,
    /// Mean entropy of the predictive, nats.
    pub entropy: Option<f64>,
    /// Mean aleatoric part, nats.
    pub aleatoric: Option<f64>,
    /// Mean epistemic part (mutual information), nats.
    pub mutual_information: Option<f64>,
    /// Mean share of particle pairs that predict different classes.
    pub disagreement: Option<f64>,
    /// Mutual information of every row, `[n]`, to rank rows by.
    #[serde(skip)]
    pub row_mutual_information: Vec<f64>,
}

impl UncertaintySummary {
    /// Summarises a particle set on labelled rows.
    ///
    /// # Errors
    /// Labels out of range or not one per row.
    pub fn new(log_probs: &ParticleLogProbs, labels: &[usize]) -> Result<Self, MetricError> {
        let rows = RowUncertainty::new(log_probs);
        let average = |values: &[f64]| mean(values.iter().copied());
        Ok(Self {
            particles: log_probs.particles(),
            accuracy_mean_particle: accuracy_mean_particle(log_probs, labels)?,
            nll_mean_particle: gibbs_nll(log_probs, labels)?,
            entropy: average(&rows.total),
            aleatoric: average(&rows.aleatoric),
            mutual_information: average(&rows.epistemic),
            disagreement: rows.disagreement.as_deref().and_then(average),
            row_mutual_information: rows.epistemic,
        })
    }

    /// Summarises the sums of a particle set with this number of particles; `None` for a regression and without a row.
    /// The mutual information of the rows is not known.
    pub fn of_sums(scores: &ClientScores, particles: usize) -> Option<Self> {
        let of = Evaluation::of_sums(scores);
        Some(Self {
            particles,
            accuracy_mean_particle: of.accuracy_mean_particle?,
            nll_mean_particle: of.nll_mean_particle?,
            entropy: of.entropy,
            aleatoric: of.aleatoric,
            mutual_information: of.mutual_information,
            disagreement: of.disagreement,
            row_mutual_information: Vec::new(),
        })
    }
}
