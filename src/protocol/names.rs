//! The names under which arrays and numbers travel and are kept, and what packs and unpacks the commonest of them.

use super::message::Message;
use crate::backend::{Backend, Session};
use crate::error::RunError;
use crate::particles::Particles;

/// The name under which particles travel.
pub const PARTICLES: &str = "particles";

/// The name under which a reply carries N_k, the number of rows of its client.
pub const ROWS: &str = "rows";

/// The name under which a client's squared Stein discrepancy travels.
pub const DISCREPANCY: &str = "discrepancy";

/// The name under which a reply carries the number of bytes that its client keeps between rounds.
pub const CLIENT_BYTES: &str = "client_bytes";

/// The name under which a client reports the effective number of centres in the density of its cavity: 1 is one-hot.
pub const KDE_ESS: &str = "kde_ess";

/// The name under which a client reports the mean length of its target's score at the start of a visit.
pub const SCORE_NORM: &str = "score_norm";

/// The part of a client's state that says where its rows are read.
pub const BATCHES: &str = "batches";

/// The part of a state that an optimiser remembers.
pub const OPTIMIZER: &str = "optimizer";

/// Reads the particles, `[N, d]`, out of a message; `like` has their layout.
///
/// # Errors
/// The message has no particles, or they are not of this layout.
pub fn particles_of<B: Backend>(
    message: &Message,
    like: &Particles<B>,
    session: &Session<B>,
) -> Result<Particles<B>, RunError> {
    Ok(Particles::from_array(message.array(PARTICLES)?, like.layout(), session)?)
}

/// A message that carries particles, `[N, d]`. Waits for the device.
///
/// # Errors
/// The device does not answer.
pub fn message_of<B: Backend>(particles: &Particles<B>) -> Result<Message, RunError> {
    Ok(Message::default().with_array(PARTICLES, particles.to_array()?))
}

/// A reply with what a client noticed on its visit, where it did.
pub fn diagnosed(reply: Message, score_norm: Option<f64>, kde_ess: Option<f64>) -> Message {
    let numbers = [(SCORE_NORM, score_norm), (KDE_ESS, kde_ess)];
    let known = numbers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.fold(reply, |reply, (name, value)| reply.with_scalar(name, value))
}
