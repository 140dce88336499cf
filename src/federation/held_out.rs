//! The rows that the clients of one process hold out, and what was last computed of the calibration rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fedstein_datasets::{Dataset, Normalisation, Targets};

use super::labelled::Labelled;
use crate::metrics::Clusters;
use crate::protocol::{ClientId, ScoreForm};
use crate::rows::Table;

/// Held-out rows: a table, its targets in the form that the metrics take, and the rows of each client.
#[derive(Clone, Debug)]
pub struct HeldOut {
    /// Features and encoded targets.
    pub table: Table,
    /// The targets, in the units of the data.
    pub targets: Targets,
    /// The group of each row of the table, where rows of one group belong together.
    pub groups: Option<Vec<usize>>,
    /// The indices of each client's rows in the table.
    pub rows: Vec<Vec<usize>>,
}

impl HeldOut {
    /// All of some rows, in the form that the model takes, as those of one of K clients.
    pub fn of_one(data: Dataset, normalisation: &Normalisation, client: ClientId, clients: usize) -> Self {
        let mut rows = vec![Vec::new(); clients];
        rows[client] = (0..data.rows()).collect();
        Self {
            targets: data.targets.clone(),
            groups: data.groups.clone(),
            table: Table::new(data, normalisation),
            rows,
        }
    }

    /// The clusters of a client's rows, in their order; `None` where rows are independent.
    pub fn clusters(&self, client: ClientId) -> Option<Clusters> {
        let groups = self.groups.as_ref()?;
        Some(Clusters::new(self.rows[client].iter().map(|row| groups[*row])))
    }
}

/// Calibration rows, and what was last computed of those of each client: a server asks about the same particles many times.
#[derive(Debug)]
pub struct CalibrationRows {
    /// The rows.
    pub held: HeldOut,
    seen: Mutex<BTreeMap<ClientId, Seen>>,
}

/// What was computed of a client's rows.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The fingerprint of the particles.
    pub particles: u64,
    /// The predictions; `None` where the client has no rows.
    pub labelled: Option<Arc<Labelled>>,
    /// The sorted scores of a form and levels.
    pub scores: Option<Scores>,
}

/// Sorted scores, with the form and the levels that they are of.
type Scores = (ScoreForm, Vec<f64>, Arc<Vec<Vec<f64>>>);

impl CalibrationRows {
    /// The calibration rows of the clients of one process.
    pub fn new(held: HeldOut) -> Self {
        Self { held, seen: Mutex::default() }
    }

    /// What was computed of the rows of each client.
    pub(super) fn seen(&self) -> MutexGuard<'_, BTreeMap<ClientId, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
