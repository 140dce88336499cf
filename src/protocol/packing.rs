//! Functions that pack and unpack the most common arrays and numbers of messages.

use super::message::Message;
use super::names::{KDE_ESS, PARTICLES, SCORE_NORM};
use super::wire::Wire;
use crate::backend::Session;
use crate::error::RunError;
use crate::particles::Particles;

/// Reads the particles `[N, d]` from a message; `like` has the same layout.
///
/// # Errors
/// The message has no particles, or they are not of this layout.
pub fn particles_of(message: &Message, like: &Particles, session: &Session) -> Result<Particles, RunError> {
    Ok(Particles::from_array(message.array(PARTICLES)?, like.layout(), session)?)
}

/// A message that holds particles `[N, d]`. The call waits for the device.
///
/// # Errors
/// The device does not answer.
pub fn message_of(particles: &Particles) -> Result<Message, RunError> {
    Ok(Message::default().with_array(PARTICLES, particles.to_array()?))
}

/// Particles `[N, d]` as they arrive at the other side when they are sent in this precision. A client that keeps what it
/// sends keeps this, so that both sides hold the same numbers. The call waits for the device where something is rounded.
///
/// # Errors
/// The device does not answer.
pub fn as_sent(particles: Particles, wire: Wire, session: &Session) -> Result<Particles, RunError> {
    if wire == Wire::Full {
        return Ok(particles);
    }
    let mut array = particles.to_array()?;
    wire.round(&mut array);
    Ok(Particles::from_array(&array, particles.layout(), session)?)
}

/// Adds the diagnostics of a visit to a reply, where they are known.
pub fn diagnosed(reply: Message, score_norm: Option<f64>, kde_ess: Option<f64>) -> Message {
    let numbers = [(SCORE_NORM, score_norm), (KDE_ESS, kde_ess)];
    let known = numbers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.fold(reply, |reply, (name, value)| reply.with_scalar(name, value))
}
