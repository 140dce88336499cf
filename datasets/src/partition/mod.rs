//! Which client holds which training rows. In: a [`PartitionConfig`], the training rows, a random source. Out: a
//! [`Partition`], a disjoint cover: every row belongs to exactly one client, and no client is empty.

mod by_column;
mod cyclic_labels;
mod dirichlet;
mod holders;
mod iid;
mod label_ratio;
mod labels_per_client;

use crate::{DataError, Dataset, Targets};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// How rows are dealt to clients (ALGORITHMS.md section 1.6).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PartitionConfig {
    /// Shuffled blocks of equal size, up to one row.
    Iid {
        /// Number of clients K.
        clients: usize,
    },
    /// Every client holds a few classes; a class's rows are shared equally by its holders.
    LabelsPerClient {
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

/// A disjoint cover of the training rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// Rows of each client, ascending.
    clients: Vec<Vec<usize>>,
    /// What a reader of results should know, one sentence each: which client was short, and why.
    pub notes: Vec<String>,
}

/// Deals the training rows to clients.
///
/// # Errors
/// No clients, more clients than rows, targets that the kind cannot work with (all but `iid` and `by-column` need
/// classes), parameters out of range.
pub fn partition(config: &PartitionConfig, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
    let rows = train.rows();
    let clients = match config {
        PartitionConfig::Iid { clients }
        | PartitionConfig::LabelsPerClient { clients, .. }
        | PartitionConfig::CyclicLabels { clients, .. }
        | PartitionConfig::LabelRatio { clients, .. }
        | PartitionConfig::Dirichlet { clients, .. } => *clients,
        PartitionConfig::ByColumn {} => return by_column::deal(train),
    };
    if clients == 0 {
        return Err(DataError::config("partition.clients", clients, "must be at least 1"));
    }
    if clients > rows {
        return Err(DataError::TooManyClients { clients, rows });
    }
    match config {
        PartitionConfig::Iid { .. } => Ok(iid::deal(rows, clients, rng)),
        PartitionConfig::LabelsPerClient { labels, .. } => {
            labels_per_client::deal(Classes::of(config, &train.targets)?, clients, *labels, rng)
        }
        PartitionConfig::CyclicLabels { labels, .. } => {
            cyclic_labels::deal(Classes::of(config, &train.targets)?, clients, *labels, rng)
        }
        PartitionConfig::LabelRatio { ratio, .. } => {
            label_ratio::deal(Classes::of(config, &train.targets)?, clients, ratio, rng)
        }
        PartitionConfig::Dirichlet { alpha, .. } => {
            dirichlet::deal(Classes::of(config, &train.targets)?, clients, *alpha, rng)
        }
        PartitionConfig::ByColumn {} => by_column::deal(train),
    }
}

impl PartitionConfig {
    /// The word after `kind =`.
    pub fn kind(&self) -> &'static str {
        match self {
            PartitionConfig::Iid { .. } => "iid",
            PartitionConfig::LabelsPerClient { .. } => "labels-per-client",
            PartitionConfig::CyclicLabels { .. } => "cyclic-labels",
            PartitionConfig::LabelRatio { .. } => "label-ratio",
            PartitionConfig::Dirichlet { .. } => "dirichlet",
            PartitionConfig::ByColumn {} => "by-column",
        }
    }
}

/// The rows of each class, and the classes' names.
struct Classes<'a> {
    rows: Vec<Vec<usize>>,
    names: &'a [String],
}

impl<'a> Classes<'a> {
    fn of(config: &PartitionConfig, targets: &'a Targets) -> Result<Self, DataError> {
        let Targets::Classes { labels, names } = targets else {
            let problem = "it deals classes, and these targets are none; use iid or by-column".to_owned();
            return Err(DataError::Partition { kind: config.kind(), problem });
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
        Partition { clients, notes }
    }

    /// Rows of each client, ascending.
    pub fn clients(&self) -> &[Vec<usize>] {
        &self.clients
    }

    /// Rows a client and class `[K, C]`; one column where the targets are no classes.
    ///
    /// # Panics
    /// When `targets` are not those that were dealt.
    pub fn counts(&self, targets: &Targets) -> Vec<Vec<usize>> {
        let count = |rows: &Vec<usize>| match targets {
            Targets::Classes { labels, names } => {
                let mut counts = vec![0; names.len()];
                for &row in rows {
                    counts[labels[row]] += 1;
                }
                counts
            }
            _ => vec![rows.len()],
        };
        self.clients.iter().map(count).collect()
    }

    /// The counts as a table for a terminal: a line a client, a column a class, sums at the end. Of more than 30
    /// clients the first 15 and the last 10 are shown; of more than 12 classes, how many the client holds.
    ///
    /// # Panics
    /// When `targets` are not those that were dealt.
    pub fn table(&self, targets: &Targets) -> String {
        const WIDE: usize = 12;
        let counts = self.counts(targets);
        let names: &[String] = match targets {
            Targets::Classes { names, .. } => names,
            _ => &[],
        };
        let cells = |counts: &[usize]| -> Vec<String> {
            let held = counts.iter().filter(|&&count| count > 0).count();
            let middle = match names.len() {
                0 => Vec::new(),
                1..=WIDE => {
                    counts.iter().map(|&count| if count == 0 { ".".into() } else { count.to_string() }).collect()
                }
                _ => vec![format!("{held} of {}", names.len())],
            };
            middle.into_iter().chain([counts.iter().sum::<usize>().to_string()]).collect()
        };
        let mut header = vec!["client".to_owned()];
        match names.len() {
            0 => {}
            1..=WIDE => header.extend(names.iter().map(|name| short(name))),
            _ => header.push("classes".to_owned()),
        }
        header.push("rows".to_owned());

        let many = counts.len() > 30;
        let shown = |client: usize| !many || client < 15 || client + 10 >= counts.len();
        let mut lines = vec![header];
        for (client, counts) in counts.iter().enumerate().filter(|(client, _)| shown(*client)) {
            lines.push([vec![client.to_string()], cells(counts)].concat());
        }
        let totals: Vec<usize> = (0..names.len().max(1)).map(|class| counts.iter().map(|c| c[class]).sum()).collect();
        lines.push([vec!["all".to_owned()], cells(&totals)].concat());

        let mut text = aligned(&lines, many.then(|| format!("... {} more clients", counts.len() - 25)));
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

/// Columns flush right, two spaces apart; `gap` goes in after the first 15 clients.
fn aligned(lines: &[Vec<String>], gap: Option<String>) -> String {
    let length = |text: &String| text.chars().count();
    let width = |column: usize| lines.iter().map(|line| length(&line[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        if let (16, Some(gap)) = (number, &gap) {
            let _ = writeln!(text, "{gap}");
        }
        let padded = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:>width$}"));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  "));
    }
    text
}

fn short(name: &str) -> String {
    if name.chars().count() <= 12 { name.to_owned() } else { name.chars().take(11).chain(['…']).collect() }
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

    #[test]
    fn long_tables_are_abbreviated_in_the_middle_and_end_with_sums() {
        let targets =
            Targets::Classes { labels: (0..80).map(|r| r % 2).collect(), names: vec!["a".into(), "b".into()] };
        let clients = (0..40).map(|k| vec![2 * k, 2 * k + 1]).collect();
        let table = Partition::new(clients, vec!["client 3 was short".into()]).table(&targets);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["client", "a", "b", "rows"]);
        assert_eq!(lines[16], "... 15 more clients");
        assert_eq!(lines[17].trim_start(), "30   1   1     2");
        assert_eq!(lines[27].split_whitespace().collect::<Vec<_>>(), ["all", "40", "40", "80"]);
        assert_eq!(lines[28], "note: client 3 was short");
        assert_eq!(lines.len(), 29);
    }

    #[test]
    fn targets_without_classes_have_one_column() {
        let partition = Partition::new(vec![vec![1, 0], vec![2]], Vec::new());
        let targets = Targets::Real { values: vec![0.5; 3] };
        assert_eq!(partition.counts(&targets), vec![vec![2], vec![1]]);
        assert_eq!(partition.table(&targets), "client  rows\n     0     2\n     1     1\n   all     3\n");
    }

    #[test]
    fn many_classes_are_counted_and_not_listed() {
        let targets = Targets::Classes { labels: vec![0, 1, 19], names: (0..20).map(|c| c.to_string()).collect() };
        let table = Partition::new(vec![vec![0, 1], vec![2]], Vec::new()).table(&targets);
        assert!(table.contains("2 of 20"), "{table}");
    }
}
