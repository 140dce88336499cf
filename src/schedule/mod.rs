//! Schedules: which clients are asked in a round.

mod hip;
pub mod indicator;
mod informed;
mod kind;
mod kinds;
mod ksd;
mod random;
mod round_robin;
pub mod weigh;

pub use hip::{Hip, HipConfig, NegativePolicy, SoftmaxRule};
pub use indicator::{Indicators, Measure};
pub use informed::{InformedConfig, SelectionKernel, SelectionRule};
pub use kind::{ScheduleKind, ScheduleSetup};
pub use kinds::{SCHEDULE_KINDS, ScheduleConfig};
pub use ksd::{Ksd, KsdConfig};
pub use random::{Random, RandomConfig};
pub use round_robin::{RoundRobin, RoundRobinConfig};
pub use weigh::{Draw, Negative, Reasons};

use crate::checkpoint::{CheckpointError, State};
use crate::protocol::{ClientId, Question};

/// Chooses the clients of a round.
pub trait Schedule: Send {
    /// What every client is asked before the choice; `None` for schedules that need to know nothing.
    fn question(&self) -> Option<Question> {
        None
    }

    /// The clients of this round, without repetition. Rounds count from 1; `indicators` answer [`Schedule::question`].
    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Selection;

    /// What it needs to go on after a break: nothing, where a choice follows from round and indicators alone. A schedule
    /// that remembers anything has to say it here, and to take it back in [`Self::restore`].
    fn save(&self) -> State {
        State::default()
    }

    /// Takes over what [`Self::save`] has returned.
    ///
    /// # Errors
    /// The state is not one of this schedule.
    fn restore(&mut self, _state: &State) -> Result<(), CheckpointError> {
        Ok(())
    }
}

/// The clients of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// In the order in which they take part.
    pub clients: Vec<ClientId>,
    /// How they came to be chosen, where they were weighed.
    pub reasons: Option<Reasons>,
}

impl From<Vec<ClientId>> for Selection {
    fn from(clients: Vec<ClientId>) -> Self {
        Self { clients, reasons: None }
    }
}
