//! A client selection of a program's own.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::{Indicators, Schedule, ScheduleSetup, Selection};
use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::protocol::Question;

type Build = dyn Fn(ScheduleSetup) -> Box<dyn Schedule> + Send + Sync;

/// A client selection of a program's own; see
/// [`Experiment::with_selection`](crate::experiment::Experiment::with_selection).
#[derive(Clone)]
pub struct OwnSelection {
    name: String,
    build: Arc<Build>,
}

impl OwnSelection {
    /// A selection with a name, by which files and messages call it.
    pub fn new(
        name: impl Into<String>,
        build: impl Fn(ScheduleSetup) -> Box<dyn Schedule> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), build: Arc::new(build) }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Builds the schedule, whose selections are checked.
    pub(crate) fn build(&self, setup: ScheduleSetup) -> Box<dyn Schedule> {
        let ScheduleSetup { clients, per_round: most, .. } = setup;
        Box::new(Checked { name: self.name.clone(), clients, most, inner: (self.build)(setup) })
    }
}

impl fmt::Debug for OwnSelection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OwnSelection").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A schedule whose selections are checked.
struct Checked {
    name: String,
    clients: usize,
    most: usize,
    inner: Box<dyn Schedule>,
}

impl Schedule for Checked {
    fn question(&self) -> Option<Question> {
        self.inner.question()
    }

    fn select(&mut self, round: usize, indicators: Option<&Indicators>) -> Result<Selection, RunError> {
        let selection = self.inner.select(round, indicators)?;
        let (selected, Self { name, clients, most, .. }) = (&selection.clients, self);
        let mut seen = BTreeSet::new();
        let problem = match selected.iter().find(|client| **client >= *clients || !seen.insert(**client)) {
            Some(client) if client >= clients => format!("selects client {client} of {clients}, counted from 0"),
            Some(client) => format!("selects client {client} twice"),
            None if selected.is_empty() => "selects no client".to_owned(),
            None if selected.len() > *most => {
                format!("selects {} clients, and `schedule.clients` is {most}", selected.len())
            }
            None => return Ok(selection),
        };
        Err(RunError::Config(format!("round {round}: the client selection `{name}` {problem}")))
    }

    fn save(&self) -> State {
        self.inner.save()
    }

    fn restore(&mut self, state: &State) -> Result<(), CheckpointError> {
        self.inner.restore(state)
    }
}
