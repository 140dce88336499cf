//! What comes out of a run.

use crate::backend::Backend;
use crate::metrics::{Evaluation, PersonalScores};
use crate::particles::Particles;
use crate::protocol::Posterior;

use super::evaluate::Predicted;
use super::personal::PersonalResults;
use super::record::RoundRecord;

/// What came out.
#[derive(Debug)]
pub struct Outcome<B: Backend> {
    /// The global particles after the last round.
    pub particles: Particles<B>,
    /// q, where it is more than these particles.
    pub posterior: Posterior,
    /// What they say about the test rows.
    pub predicted: Predicted,
    /// Their numbers after the last round.
    pub evaluation: Evaluation,
    /// Every client's own predictor, with `evaluation.personal`.
    pub personal: Option<(PersonalResults, PersonalScores)>,
    /// Every round.
    pub rounds: Vec<RoundRecord>,
    /// Seconds from the first round to the last.
    pub seconds: f64,
}
