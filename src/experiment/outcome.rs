//! The results of a run in memory.

use crate::backend::Backend;
use crate::metrics::{Evaluation, PersonalScores};
use crate::particles::Particles;
use crate::protocol::Posterior;
use crate::report::RoundRecord;

use super::evaluate::Predicted;
use super::personal::PersonalResults;

/// The results of a run.
#[derive(Debug)]
pub struct Outcome<B: Backend> {
    /// The global particles after the last round, `[N, d]`.
    pub particles: Particles<B>,
    /// The posterior q, where it is more than these particles.
    pub posterior: Posterior,
    /// Their predictions on the test rows.
    pub predicted: Predicted,
    /// The metrics after the last round.
    pub evaluation: Evaluation,
    /// The results of every client's own predictor, where `evaluation.personal` is set.
    pub personal: Option<(PersonalResults, PersonalScores)>,
    /// The records of all rounds.
    pub rounds: Vec<RoundRecord>,
    /// Seconds from the first round to the last.
    pub seconds: f64,
}
