//! The schedules that a config can name.
//!
//! A schedule's own file holds its configuration (one struct, which serde reads, with its keys beside the fields), the
//! choice and its tests. One line in the list below makes it known.

use super::Schedule;
use super::hip::HipConfig;
use super::kind::{ScheduleKind, ScheduleSetup};
use super::ksd::KsdConfig;
use super::random::RandomConfig;
use super::round_robin::RoundRobinConfig;

fedstein_schema::kinds! {
    /// `[schedule]`: one of the schedules that a config can name, tagged by `kind`.
    pub enum ScheduleConfig: dyn ScheduleKind, SCHEDULE_KINDS {
        RoundRobin(RoundRobinConfig),
        Random(RandomConfig),
        Ksd(KsdConfig),
        Hip(HipConfig),
    }
}

impl ScheduleConfig {
    /// Clients a round.
    pub fn clients(&self) -> usize {
        self.as_dyn().clients()
    }

    /// Whether it asks the clients for their tilted densities.
    pub fn is_informed(&self) -> bool {
        self.as_dyn().is_informed()
    }

    /// The schedule.
    pub fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        self.as_dyn().build(setup)
    }
}
