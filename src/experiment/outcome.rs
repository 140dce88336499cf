//! The results of a run in memory.

use crate::metrics::{ClientScores, Evaluation, PersonalScores};
use crate::particles::Particles;
use crate::protocol::Posterior;
use crate::report::{ClientNames, RoundRecord, SiteScores};

use super::calibrate::Calibrated;
use super::evaluate::Predicted;
use super::personal::PersonalResults;

/// The results of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The global particles after the last round, or after the best one, `[N, d]`.
    pub particles: Particles,
    /// The posterior q, where it is more than these particles.
    pub posterior: Posterior,
    /// Their predictions on the test rows.
    pub predicted: Predicted,
    /// The metrics of these particles.
    pub evaluation: Evaluation,
    /// The results of every client's personal predictor, where `evaluation.personal` is set.
    pub personal: Option<(PersonalResults, PersonalScores)>,
    /// The round that validation rows have chosen, where `stop.patience` is set: the results are those of this round.
    pub best: Option<usize>,
    /// What was learned from calibration rows, where there are any.
    pub calibrated: Option<Calibrated>,
    /// The number of rounds in which each client's reply was used, `[K]`.
    pub visits: Vec<usize>,
    /// The records of all rounds.
    pub rounds: Vec<RoundRecord>,
    /// Seconds from the first round to the last.
    pub seconds: f64,
    /// Those of them in which rows were scored, and in which the results were.
    pub evaluation_seconds: f64,
}

impl Outcome {
    /// The sums over all test rows, where the clients hold these.
    pub(super) fn pooled(&self) -> Option<&ClientScores> {
        match &self.predicted {
            Predicted::Pooled { scores, .. } => Some(scores.pooled()),
            Predicted::Classes { .. } | Predicted::Real(_) | Predicted::Density { .. } => None,
        }
    }

    /// The scores of every client by its name, where the clients hold the test rows; none otherwise.
    pub(super) fn sites(&self) -> Vec<SiteScores> {
        let Predicted::Pooled { names, scores } = &self.predicted else { return Vec::new() };
        let own = |index: usize| self.personal.as_ref()?.1.clients().get(index);
        let site = |(index, (name, scores)): (usize, (&String, &ClientScores))| {
            SiteScores::of_sums(name.clone(), index, scores, own(index))
        };
        names.iter().zip(scores.clients()).enumerate().map(site).collect()
    }

    /// The scores of every client's personal predictor, where the test rows are here.
    pub(super) fn clients(&self, names: &ClientNames) -> Vec<SiteScores> {
        let Some((_, scores)) = self.personal.as_ref().filter(|_| self.pooled().is_none()) else { return Vec::new() };
        let client =
            |(index, scores): (usize, &ClientScores)| SiteScores::of_sums(names.titled(index), index, scores, None);
        scores.clients().iter().enumerate().map(client).collect()
    }
}
