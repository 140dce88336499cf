//! Which client holds which rows. In: a [`PartitionConfig`], the training rows, a random source. Out: a [`Partition`], a
//! disjoint cover of the training rows: every row belongs to exactly one client, and no client is empty
//! (`fedwba-reference` alone deals the same rows to many). A share of each client's rows can be held out for its own
//! validation, and [`Partition::with_tests`] names the test rows on which each client's own model is judged.

mod by_column;
mod cyclic_labels;
mod dirichlet;
mod fedwba_reference;
mod holders;
mod iid;
mod label_ratio;
mod labels_per_client;
mod superclass_labels;
mod table;
mod test_rows;
mod validation;

use crate::{DataError, Dataset, Targets};
use holders::Shares;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Which rows are whose (ALGORITHMS.md section 1.6). No key has a default here: the caller writes all of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PartitionConfig {
    /// How the training rows are dealt.
    #[serde(flatten)]
    pub deal: Deal,
    /// Share of each client's rows that is held out from its training, at least 0 and less than 1. One row stays for
    /// training, however large the share.
    pub validation: f64,
}

/// How rows are dealt to clients (ALGORITHMS.md section 1.6).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Deal {
    /// Shuffled blocks of equal size, up to one row.
    Iid {
        /// Number of clients K.
        clients: usize,
    },
    /// Every client holds a few classes; a class's rows are shared by its holders.
    LabelsPerClient {
        /// Number of clients K.
        clients: usize,
        /// Distinct classes a client.
        labels: usize,
        /// Whether they share equally.
        cut: Cut,
    },
    /// Every client holds a few classes of CIFAR-100, no two of them of one superclass; a class's rows are shared equally
    /// by its holders. The FedWBA paper's CIFAR-100: ten a client.
    SuperclassLabels {
        /// Number of clients K.
        clients: usize,
        /// Superclasses a client, one class of each.
        labels: usize,
    },
    /// As `labels-per-client`, but a class is shared in parts proportional to U(0.4, 0.6), its test rows in the same
    /// parts (pFedGP).
    Pfedgp {
        /// Number of clients K.
        clients: usize,
        /// Distinct classes a client.
        labels: usize,
    },
    /// The split of FedWBA's public code, which is NOT disjoint: clients with the same classes, which are dealt as in
    /// `cyclic-labels`, hold the same rows, the first 10,000 of these classes in one shuffled order. With ten classes and
    /// five labels all even clients hold the same rows of the classes 0 to 4 and all odd ones the same of 5 to 9.
    FedwbaReference {
        /// Number of clients K.
        clients: usize,
        /// Distinct classes a client.
        labels: usize,
    },
    /// As `labels-per-client`, but the classes are dealt in their order, round and round, and not from shuffled decks:
    /// client k holds c consecutive classes from the ck-th on. The client-selection paper's MNIST: digits 0 to 8, three
    /// a client, 27 or 120 clients.
    CyclicLabels {
        /// Number of clients K.
        clients: usize,
        /// Distinct classes a client.
        labels: usize,
    },
    /// Two classes, mixed differently at each client.
    ///
    /// Two numbers `[a, b]` are the mix within a client: client k holds a : b, where b is the share of class 0 for
    /// even k and of class 1 for odd k. `[1, 9]` is the client-selection paper's. Clients' sizes are chosen so that
    /// the mix is exact (up to whole rows) and all rows are used; where the classes are too unbalanced for that,
    /// both classes are dealt with weights a and b instead, and a note says what came out.
    ///
    /// K numbers (K > 2) say how class 0 is dealt to the clients, in percent or any other unit; class 1 is dealt by
    /// the same list read backwards. `[40, 40, 10, 10]` is Fig. 5 of the DSVGD paper.
    LabelRatio {
        /// Number of clients K.
        clients: usize,
        /// `[a, b]`, or one number a client.
        ratio: Vec<f64>,
    },
    /// Each class is dealt to the clients in shares drawn from a symmetric Dirichlet distribution.
    Dirichlet {
        /// Number of clients K.
        clients: usize,
        /// Concentration: 0.1 is very uneven, 100 nearly even.
        alpha: f64,
    },
    /// The clients that the data come with.
    ByColumn {},
}

/// How the holders of a class share its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// Equally, up to one row.
    Equal,
    /// At random places, all equally likely; every holder gets a row.
    Random,
}

impl From<Deal> for PartitionConfig {
    /// Nothing is held out for validation.
    fn from(deal: Deal) -> Self {
        PartitionConfig { deal, validation: 0.0 }
    }
}

/// The rows of each client: of the training set for training and validation, of the test set for its test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Training rows of each client, ascending.
    clients: Vec<Vec<usize>>,
    /// Rows of each client that are held out from its training, ascending.
    #[serde(default)]
    validation: Vec<Vec<usize>>,
    /// Rows of the test set for each client, ascending; no lists until [`Partition::with_tests`].
    #[serde(default)]
    tests: Vec<Vec<usize>>,
    /// What a reader of results should know, one sentence each: which client was short, and why.
    pub notes: Vec<String>,
}

/// Deals the training rows to clients, and holds out what is asked for validation. The deal is the same with and without
/// validation.
///
/// # Errors
/// No clients, more clients than rows, targets that the kind cannot work with (all but `iid` and `by-column` need
/// classes), parameters out of range.
pub fn partition(config: &PartitionConfig, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
    let dealt = deal(&config.deal, train, rng)?;
    validation::hold_out(dealt, config.validation, &train.targets, rng)
}

fn deal(config: &Deal, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
    let Some(clients) = config.clients() else { return by_column::deal(train) };
    let rows = train.rows();
    if clients == 0 {
        return Err(DataError::config("partition.clients", clients, "must be at least 1"));
    }
    // Where rows are dealt more than once, there are enough for everybody.
    if clients > rows && !matches!(config, Deal::FedwbaReference { .. }) {
        return Err(DataError::TooManyClients { clients, rows });
    }
    let classes = || Classes::of(config, &train.targets);
    match config {
        Deal::Iid { .. } => Ok(iid::deal(rows, clients, rng)),
        Deal::LabelsPerClient { labels, cut, .. } => {
            labels_per_client::deal(config.kind(), classes()?, clients, *labels, Shares::of(*cut), rng)
        }
        Deal::Pfedgp { labels, .. } => {
            labels_per_client::deal(config.kind(), classes()?, clients, *labels, Shares::PFEDGP, rng)
        }
        Deal::SuperclassLabels { labels, .. } => {
            superclass_labels::deal(classes()?, train.superclasses(), clients, *labels, rng)
        }
        Deal::CyclicLabels { labels, .. } => cyclic_labels::deal(classes()?, clients, *labels, rng),
        Deal::FedwbaReference { labels, .. } => fedwba_reference::deal(classes()?, clients, *labels, rng),
        Deal::LabelRatio { ratio, .. } => label_ratio::deal(classes()?, clients, ratio, rng),
        Deal::Dirichlet { alpha, .. } => dirichlet::deal(classes()?, clients, *alpha, rng),
        Deal::ByColumn {} => by_column::deal(train),
    }
}

impl Deal {
    /// The word after `kind =`.
    pub fn kind(&self) -> &'static str {
        match self {
            Deal::Iid { .. } => "iid",
            Deal::LabelsPerClient { .. } => "labels-per-client",
            Deal::SuperclassLabels { .. } => "superclass-labels",
            Deal::Pfedgp { .. } => "pfedgp",
            Deal::FedwbaReference { .. } => "fedwba-reference",
            Deal::CyclicLabels { .. } => "cyclic-labels",
            Deal::LabelRatio { .. } => "label-ratio",
            Deal::Dirichlet { .. } => "dirichlet",
            Deal::ByColumn {} => "by-column",
        }
    }

    /// Number of clients asked for, `None` where the data decide.
    pub fn clients(&self) -> Option<usize> {
        match self {
            Deal::Iid { clients }
            | Deal::LabelsPerClient { clients, .. }
            | Deal::SuperclassLabels { clients, .. }
            | Deal::Pfedgp { clients, .. }
            | Deal::FedwbaReference { clients, .. }
            | Deal::CyclicLabels { clients, .. }
            | Deal::LabelRatio { clients, .. }
            | Deal::Dirichlet { clients, .. } => Some(*clients),
            Deal::ByColumn {} => None,
        }
    }
}

/// The rows of each class, and the classes' names.
struct Classes<'a> {
    rows: Vec<Vec<usize>>,
    names: &'a [String],
}

impl<'a> Classes<'a> {
    fn of(deal: &Deal, targets: &'a Targets) -> Result<Self, DataError> {
        let Targets::Classes { labels, names } = targets else {
            let problem = "it deals classes, and these targets are none; use iid or by-column".to_owned();
            return Err(DataError::Partition { kind: deal.kind(), problem });
        };
        let mut rows = vec![Vec::new(); names.len()];
        for (row, &label) in labels.iter().enumerate() {
            rows[label].push(row);
        }
        Ok(Classes { rows, names })
    }
}

impl Partition {
    /// From each client's rows in any order.
    fn new(mut clients: Vec<Vec<usize>>, notes: Vec<String>) -> Self {
        for rows in &mut clients {
            rows.sort_unstable();
        }
        let validation = vec![Vec::new(); clients.len()];
        Partition { clients, validation, tests: Vec::new(), notes }
    }

    /// Names the test rows of each client, and says in a note which clients have none.
    ///
    /// - `labels-per-client`, `cyclic-labels`, `superclass-labels`, `fedwba-reference`: all test rows of the classes that
    ///   the client was dealt; clients with the same class share them.
    /// - `pfedgp`: the test rows of a class in the shares of its training rows, disjoint.
    /// - `dirichlet`, `label-ratio`: a sample of the test rows, as large as can be, whose mix of classes is the client's.
    ///   Clients' samples overlap.
    /// - `by-column`: the test rows of the same natural client.
    /// - `iid`: all test rows.
    ///
    /// The rows are numbers within `test`, those of training and validation within `train`: no row is in both, since the
    /// sets are separate (of two files that hold equal rows nothing is known).
    ///
    /// # Arguments
    /// - `config`, `train`: those of [`partition`].
    ///
    /// # Errors
    /// Test rows with other classes than the training rows, or without the clients that the training rows have.
    pub fn with_tests(
        mut self,
        config: &PartitionConfig,
        train: &Dataset,
        test: &Dataset,
        rng: &mut impl Rng,
    ) -> Result<Partition, DataError> {
        let (tests, notes) = test_rows::of_clients(&config.deal, &self, train, test, rng)?;
        self.tests = tests;
        self.notes.extend(notes);
        Ok(self)
    }

    /// Training rows of each client, ascending, without those held out for validation.
    pub fn clients(&self) -> &[Vec<usize>] {
        &self.clients
    }

    /// Of `rows` training rows all but those held out for validation, ascending: what a method with all rows in one place
    /// trains on.
    pub fn pooled(&self, rows: usize) -> Vec<usize> {
        let mut kept = vec![true; rows];
        self.validation.iter().flatten().filter(|&&row| row < rows).for_each(|&row| kept[row] = false);
        (0..rows).filter(|&row| kept[row]).collect()
    }

    /// Rows of the training set that client `k` holds out from its training, ascending.
    ///
    /// # Panics
    /// When there is no client `k`.
    pub fn validation(&self, k: usize) -> &[usize] {
        &self.validation[k]
    }

    /// Rows of the test set for client `k`, ascending; empty where it has none, and before [`Partition::with_tests`].
    ///
    /// # Panics
    /// When there is no client `k`.
    pub fn test(&self, k: usize) -> &[usize] {
        assert!(k < self.clients.len(), "client {k} of {}", self.clients.len());
        self.tests.get(k).map_or(&[], Vec::as_slice)
    }

    /// Training and validation rows of client `k`: what it was dealt.
    fn dealt(&self, k: usize) -> impl Iterator<Item = usize> {
        self.clients[k].iter().chain(&self.validation[k]).copied()
    }

    /// Training rows a client and class `[K, C]`; one column where the targets are no classes.
    ///
    /// # Panics
    /// When `targets` are not those that were dealt.
    pub fn counts(&self, targets: &Targets) -> Vec<Vec<usize>> {
        self.clients.iter().map(|rows| count(rows.iter().copied(), targets)).collect()
    }
}

/// How many of some rows are of each class `[C]`; one number where the targets are no classes.
fn count(rows: impl Iterator<Item = usize>, targets: &Targets) -> Vec<usize> {
    match targets {
        Targets::Classes { labels, names } => {
            let mut counts = vec![0; names.len()];
            rows.for_each(|row| counts[labels[row]] += 1);
            counts
        }
        _ => vec![rows.count()],
    }
}

/// Where n things are cut for clients with these weights: K + 1 boundaries from 0 to n, at the rounded-down
/// cumulative shares.
fn boundaries(n: usize, weights: &[f64]) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let mut cuts = Vec::with_capacity(weights.len() + 1);
    cuts.push(0);
    let mut sum = 0.0;
    for weight in weights {
        sum += weight;
        // A share that is a whole number must not be rounded down by the last bit of a sum.
        let cut = (n as f64 * (sum / total) + 1e-9) as usize;
        cuts.push(cut.clamp(cuts[cuts.len() - 1], n));
    }
    cuts[weights.len()] = n;
    cuts
}

/// Gives every empty client one row of the client that holds most at that moment: as few rows move as can.
/// Needs at least as many rows as clients. Returns `(client, donor)` of each row moved.
fn fill_empty(clients: &mut [Vec<usize>], rng: &mut impl Rng) -> Vec<(usize, usize)> {
    use rand::RngExt;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let mut largest: BinaryHeap<(usize, Reverse<usize>)> =
        clients.iter().enumerate().map(|(client, rows)| (rows.len(), Reverse(client))).collect();
    let mut moved = Vec::new();
    for client in 0..clients.len() {
        if !clients[client].is_empty() {
            continue;
        }
        let Some((count, Reverse(donor))) = largest.pop() else {
            break;
        };
        if count < 2 {
            break;
        }
        let row = clients[donor].swap_remove(rng.random_range(0..count));
        largest.push((count - 1, Reverse(donor)));
        clients[client].push(row);
        moved.push((client, donor));
    }
    moved
}

/// One sentence for each row that [`fill_empty`] moved, the first 20 of them.
fn moved_notes(moved: &[(usize, usize)], why: &str) -> Vec<String> {
    let mut notes: Vec<String> = moved
        .iter()
        .take(20)
        .map(|(client, donor)| format!("client {client} had no rows ({why}): it got 1 row of client {donor}"))
        .collect();
    if moved.len() > 20 {
        notes.push(format!("{} more clients had no rows ({why}): each got 1 row of a large client", moved.len() - 20));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_are_the_rounded_down_shares() {
        assert_eq!(boundaries(10, &[1.0, 1.0, 1.0]), vec![0, 3, 6, 10]);
        assert_eq!(boundaries(100, &[40.0, 40.0, 10.0, 10.0]), vec![0, 40, 80, 90, 100]);
        assert_eq!(boundaries(7, &[0.0, 1.0, 0.0]), vec![0, 0, 7, 7]);
    }
}
