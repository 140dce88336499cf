//! The particles that a client uploaded last, with which it predicts on its own rows.

use std::sync::Arc;

use fedstein_models::Layout;

use crate::backend::Session;
use crate::checkpoint::State;
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::Predictor;

/// The name in a client's state.
const UPLOADED: &str = "uploaded";

/// The Θ `[N, d]` that a client uploaded in its last visit, where it keeps it.
pub(super) struct Uploaded {
    is_kept: bool,
    last: Option<Particles>,
}

impl Uploaded {
    /// Before the first visit; `is_kept` where the client predicts with what it uploads.
    pub fn new(is_kept: bool) -> Self {
        Self { is_kept, last: None }
    }

    /// Keeps what a visit uploads.
    pub fn set(&mut self, moved: &Particles) {
        self.last = self.is_kept.then(|| moved.clone());
    }

    /// The client's predictor: the global particles before its first visit.
    pub fn predictor(&self) -> Predictor {
        self.last.clone().map_or(Predictor::Published, Predictor::Own)
    }

    /// The bytes that it takes.
    pub fn bytes(&self) -> u64 {
        self.last.as_ref().map_or(0, Particles::bytes)
    }

    /// Adds it to a state.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn save(&self, state: State) -> Result<State, RunError> {
        match &self.last {
            Some(uploaded) => Ok(state.with_particles(UPLOADED, uploaded)?),
            None => Ok(state),
        }
    }

    /// Restores what [`Self::save`] has added.
    ///
    /// # Errors
    /// The particles have another layout.
    pub fn restore(&mut self, state: &State, layout: &Arc<Layout>, session: &Session) -> Result<(), RunError> {
        self.last = match state.has(UPLOADED) {
            true => Some(state.particles(UPLOADED, layout, session)?),
            false => None,
        };
        Ok(())
    }
}
