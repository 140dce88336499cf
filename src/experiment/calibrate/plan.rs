//! What the calibration of a run needs to know of its clients, and whether there is anything to do.

use crate::datasets::{ModelCard, Partition};
use crate::error::RunError;
use crate::experiment::config::Config;
use crate::models::Task;
use crate::report::maps::MOST_CLASSES;

/// What the calibration of a run needs to know of its clients.
#[derive(Debug)]
pub(in crate::experiment) struct Plan {
    /// The task of the model.
    pub task: Task,
    /// The names of the classes; none of a regression.
    pub classes: Vec<String>,
    /// Whether the clients have test rows of their own, rather than all the same.
    pub own_tests: bool,
}

impl Plan {
    /// The plan of a run whose rows are at their sites; `None` where there is nothing to do.
    ///
    /// # Errors
    /// The map of the probabilities is not for so many classes.
    pub fn new(config: &Config, task: Task, card: &ModelCard, own_tests: bool) -> Result<Option<Self>, RunError> {
        let keys = &config.calibration;
        let classes = card.classes.clone().unwrap_or_default();
        if let Some(kind) = keys.map.kind().filter(|_| classes.len() > MOST_CLASSES) {
            return Err(RunError::Config(format!(
                "`calibration.map` = \"{}\" is for at most {MOST_CLASSES} classes, and the data have {}; use \"temperature\"",
                kind.word(),
                classes.len()
            )));
        }
        let is_wanted = keys.fits_map(task) || keys.score(task).is_some();
        Ok(is_wanted.then_some(Self { task, classes, own_tests }))
    }

    /// The plan of a run in one process; `None` where there is nothing to do.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn here(
        config: &Config,
        task: Task,
        card: &ModelCard,
        partition: &Partition,
        pooled: bool,
    ) -> Result<Option<Self>, RunError> {
        let clients = if pooled { 1 } else { partition.clients().len() };
        let own_tests = !pooled && (1..clients).any(|client| partition.test(client) != partition.test(0));
        let plan = Self::new(config, task, card, own_tests)?;
        Ok(plan.filter(|_| !partition.calibrating().is_empty()))
    }
}
