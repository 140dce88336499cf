//! The result of a partition scheme: the rows of each client.

use crate::Targets;
use serde::{Deserialize, Serialize};

/// The rows of each client: of the training set for training and validation, of the test set for its test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The training rows of each client, ascending.
    pub(super) clients: Vec<Vec<usize>>,
    /// The rows of each client that are held out from its training, ascending.
    #[serde(default)]
    pub(super) validation: Vec<Vec<usize>>,
    /// The rows of each client that are held out from its training and validation, ascending.
    #[serde(default)]
    pub(super) calibration: Vec<Vec<usize>>,
    /// The rows of the test set for each client, ascending; without lists before [`Partition::with_tests`].
    #[serde(default)]
    pub(super) tests: Vec<Vec<usize>>,
    /// The names of the clients, `[K]`; empty where they have numbers only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
    /// Notes for the reader of results, one sentence each, such as which client has few rows, and the reason.
    pub notes: Vec<String>,
}

impl Partition {
    /// A partition with these rows for each client, in any order.
    pub(super) fn new(mut clients: Vec<Vec<usize>>, notes: Vec<String>) -> Self {
        for rows in &mut clients {
            rows.sort_unstable();
        }
        let none = || vec![Vec::new(); clients.len()];
        Partition { validation: none(), calibration: none(), clients, tests: Vec::new(), names: Vec::new(), notes }
    }

    /// The names of the clients, `[K]`: those of natural clients; empty where clients have numbers only.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of client `k`, or its number.
    pub fn name(&self, k: usize) -> String {
        self.names.get(k).cloned().unwrap_or_else(|| k.to_string())
    }

    /// Training rows of each client, ascending, without those held out for validation and calibration.
    pub fn clients(&self) -> &[Vec<usize>] {
        &self.clients
    }

    /// All of `rows` training rows but those held out for validation and calibration, ascending: the training rows of a
    /// method with all rows in one place.
    pub fn pooled(&self, rows: usize) -> Vec<usize> {
        let mut kept = vec![true; rows];
        self.held_out()
            .into_iter()
            .chain(self.calibrating())
            .filter(|&row| row < rows)
            .for_each(|row| kept[row] = false);
        (0..rows).filter(|&row| kept[row]).collect()
    }

    /// The rows of the training set that any client holds out for validation, ascending, each once.
    pub fn held_out(&self) -> Vec<usize> {
        distinct(&self.validation)
    }

    /// The rows of the training set that any client holds out for calibration, ascending, each once.
    pub fn calibrating(&self) -> Vec<usize> {
        distinct(&self.calibration)
    }

    /// Rows of the training set that client `k` holds out for calibration, ascending.
    ///
    /// # Panics
    /// When there is no client `k`.
    pub fn calibration(&self, k: usize) -> &[usize] {
        assert!(k < self.clients.len(), "client {k} of {}", self.clients.len());
        self.calibration.get(k).map_or(&[], Vec::as_slice)
    }

    /// Rows of the training set that client `k` holds out for validation, ascending.
    ///
    /// # Panics
    /// When there is no client `k`.
    pub fn validation(&self, k: usize) -> &[usize] {
        &self.validation[k]
    }

    /// The rows of the test set for client `k`, ascending; empty if it has none, and before [`Partition::with_tests`].
    ///
    /// # Panics
    /// When there is no client `k`.
    pub fn test(&self, k: usize) -> &[usize] {
        assert!(k < self.clients.len(), "client {k} of {}", self.clients.len());
        self.tests.get(k).map_or(&[], Vec::as_slice)
    }

    /// The training, validation and calibration rows of client `k`, which are all rows that were assigned to it.
    pub(super) fn assigned(&self, k: usize) -> impl Iterator<Item = usize> {
        self.clients[k].iter().chain(&self.validation[k]).chain(self.calibration(k)).copied()
    }

    /// The numbers of training rows per client and class `[K, C]`; one column if the targets are not classes.
    ///
    /// # Panics
    /// When `targets` are not those of the rows that were assigned.
    pub fn counts(&self, targets: &Targets) -> Vec<Vec<usize>> {
        self.clients.iter().map(|rows| targets.counts(rows.iter().copied())).collect()
    }
}

/// The rows of all clients, ascending, each once.
fn distinct(rows: &[Vec<usize>]) -> Vec<usize> {
    let mut rows: Vec<usize> = rows.iter().flatten().copied().collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}
