//! Schedules, which select the clients of a round.

mod hip;
#[doc(hidden)]
pub mod indicator;
mod informed;
mod kind;
mod kinds;
mod ksd;
mod own;
mod random;
mod round_robin;
mod selection;
#[doc(hidden)]
pub mod weigh;

pub use hip::{Hip, HipConfig, NegativePolicy, SoftmaxRule};
pub use indicator::{Indicators, Measure};
pub use informed::{InformedConfig, SelectionKernel, SelectionRule};
pub use kind::{ScheduleKind, ScheduleSetup};
pub use kinds::{SCHEDULE_KINDS, ScheduleConfig};
pub use ksd::{Ksd, KsdConfig};
pub use own::OwnSelection;
pub use random::{Random, RandomConfig};
pub use round_robin::{RoundRobin, RoundRobinConfig};
pub use selection::{Action, Reasons, Selection};
pub use weigh::{Draw, Negative};

use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::protocol::Question;

/// A rule that selects the clients of a round.
pub trait Schedule: Send {
    /// The question to every client before the selection; `None` for schedules without one.
    fn question(&self) -> Option<Question> {
        None
    }

    /// The clients of this round, without repetition. Rounds are counted from 1; `indicators` are the answers to
    /// [`Schedule::question`].
    ///
    /// # Errors
    /// Nobody can be selected, for a reason of the rule; the run then ends.
    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Result<Selection, RunError>;

    /// The state for a checkpoint. It is empty for a schedule whose selection depends on the round and the indicators
    /// alone.
    fn save(&self) -> State {
        State::default()
    }

    /// Restores the state of [`Self::save`].
    ///
    /// # Errors
    /// The state does not belong to this schedule.
    fn restore(&mut self, _state: &State) -> Result<(), CheckpointError> {
        Ok(())
    }
}
