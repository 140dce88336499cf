//! The schedules that a config can name.
//!
//! The file of a schedule holds its configuration (one struct, which serde reads, and its keys), its selection rule and
//! its tests. A line in the list below adds it to the configuration.

use fedstein_schema::UnusedKeys;

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
    /// The number of clients per round.
    pub fn clients(&self) -> usize {
        self.as_dyn().clients()
    }

    /// Whether the schedule asks the clients about their tilted densities.
    pub fn is_informed(&self) -> bool {
        self.as_dyn().is_informed()
    }

    /// The keys that have no effect, because of what others say.
    pub fn unused_keys(&self) -> Vec<UnusedKeys> {
        self.as_dyn().unused_keys()
    }

    /// Builds the schedule.
    pub fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        self.as_dyn().build(setup)
    }
}
