//! Which client goes next.

mod random;
mod round_robin;

pub use random::Random;
pub use round_robin::RoundRobin;

use crate::federation::message::ClientId;

/// Chooses the clients of a round.
pub trait Schedule: Send {
    /// The clients of this round, without repetition. Rounds count from 1.
    fn select(&mut self, round: usize) -> Vec<ClientId>;
}
