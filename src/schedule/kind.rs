//! What every schedule that a config can name has in common.

use fedstein_schema::Literal::Int as I;
use fedstein_schema::{COUNT, Key, key};

use super::Schedule;
use crate::random::Streams;
use crate::stein::Bandwidth;

/// What a schedule is built from beside its own configuration.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleSetup {
    /// Number of clients K.
    pub clients: usize,
    /// The run's random numbers.
    pub streams: Streams,
    /// The bandwidth rule of the kernel in which SVGD moves, for `bandwidth = "median"`.
    pub moving: Bandwidth,
}

/// A schedule as a config describes it.
pub trait ScheduleKind {
    /// Clients a round.
    fn clients(&self) -> usize;

    /// Whether it asks the clients for their tilted densities.
    fn is_informed(&self) -> bool {
        false
    }

    /// The schedule.
    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule>;
}

/// Clients a round.
pub(super) const CLIENTS: Key = key(
    "clients",
    COUNT,
    I(1),
    "Number of clients per round; `dsvgd` and `u-dsvgd` are defined for one; `dsgld` ignores it.",
);
