//! The interface of the schedules that a config can name.

use fedstein_schema::Literal::Int as I;
use fedstein_schema::{COUNT, Key, UnusedKeys, key};

use super::Schedule;
use crate::random::Streams;
use crate::stein::Bandwidth;

/// The inputs from which a schedule is built, besides its own configuration.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleSetup {
    /// The number of clients K.
    pub clients: usize,
    /// The largest number of clients in a round, `schedule.clients`.
    pub per_round: usize,
    /// The run's random streams.
    pub streams: Streams,
    /// The bandwidth rule of SVGD's kernel, for `bandwidth = "median"`.
    pub svgd_bandwidth: Bandwidth,
}

/// The configuration of a schedule.
pub trait ScheduleKind {
    /// The number of clients per round.
    fn clients(&self) -> usize;

    /// Whether the schedule asks the clients about their tilted densities.
    fn is_informed(&self) -> bool {
        false
    }

    /// The keys that have no effect, because of what others say.
    fn unused_keys(&self) -> Vec<UnusedKeys> {
        Vec::new()
    }

    /// Builds the schedule.
    fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule>;
}

/// The number of clients per round.
pub(super) const CLIENTS: Key = key(
    "clients",
    COUNT,
    I(1),
    "Number of clients per round; `dsvgd` and `u-dsvgd` are defined for one; `dsgld` ignores it.",
);
