//! The common part of the schemes with a few classes per client. The input are the classes of each client, the output
//! is the partition in which a class's rows are shared by the clients that hold it.

use super::Partition;
use super::classes::{Classes, boundaries};
use crate::DataError;
use rand::seq::{SliceRandom, index};
use rand::{Rng, RngExt};
use std::collections::VecDeque;

/// The shares in which the holders of a class divide its rows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shares {
    /// Equal shares.
    Equal,
    /// Shares between distinct boundaries, all of which are equally likely: every holder gets a row. (pFedVEM's code
    /// draws one set of boundaries for all classes, which are of equal size there; here each class has its own.)
    Random,
    /// Shares proportional to draws from U(low, high).
    Uniform {
        /// The smallest weight.
        low: f64,
        /// The largest weight.
        high: f64,
    },
}

impl Shares {
    /// The boundaries `[holders + 1]`, from 0 to `count`, by which `count` rows are divided.
    fn cuts(self, count: usize, holders: usize, rng: &mut impl Rng) -> Vec<usize> {
        let weights = match self {
            Shares::Random if count >= holders => {
                let mut cuts: Vec<usize> = index::sample(rng, count - 1, holders - 1).iter().map(|at| at + 1).collect();
                cuts.extend([0, count]);
                cuts.sort_unstable();
                return cuts;
            }
            Shares::Equal | Shares::Random => vec![1.0; holders],
            Shares::Uniform { low, high } => (0..holders).map(|_| rng.random_range(low..high)).collect(),
        };
        boundaries(count, &weights)
    }
}

/// The classes that can be assigned: those with training rows.
///
/// # Errors
/// There are fewer of them than a client is to hold, or a client is to hold none.
pub(super) fn present(classes: &Classes, labels: usize) -> Result<Vec<usize>, DataError> {
    let present: Vec<usize> = (0..classes.rows.len()).filter(|&class| !classes.rows[class].is_empty()).collect();
    if labels == 0 || labels > present.len() {
        let problem = format!("must be from 1 to {}, the number of classes with training rows", present.len());
        return Err(DataError::config("partition.labels", labels, problem));
    }
    Ok(present)
}

/// `labels` distinct classes for each client, drawn from shuffled lists of all classes, one list after the other. A
/// class is skipped only by a client that already holds it: with enough draws, every class is held by a client.
pub(super) fn draw(classes: &[usize], clients: usize, labels: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut left: VecDeque<usize> = VecDeque::new();
    let mut of_clients = Vec::with_capacity(clients);
    for _ in 0..clients {
        let mut held: Vec<usize> = Vec::with_capacity(labels);
        while held.len() < labels {
            match left.iter().position(|class| !held.contains(class)) {
                Some(place) => held.extend(left.remove(place)),
                None => {
                    let mut fresh = classes.to_vec();
                    fresh.shuffle(rng);
                    left.extend(fresh);
                }
            }
        }
        of_clients.push(held);
    }
    of_clients
}

/// Shares the rows of each class, shuffled, among its holders.
///
/// # Arguments
/// - `held`: the distinct classes of each client.
///
/// # Errors
/// No client holds a class that has rows, or a client gets no row.
pub(super) fn share(
    kind: &'static str,
    mut classes: Classes,
    held: &[Vec<usize>],
    shares: Shares,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    let clients = held.len();
    let mut holders = vec![Vec::new(); classes.rows.len()];
    for (client, own) in held.iter().enumerate() {
        for &class in own {
            holders[class].push(client);
        }
    }
    let present: Vec<usize> = (0..classes.rows.len()).filter(|&class| !classes.rows[class].is_empty()).collect();
    let not_held: Vec<&str> = present
        .iter()
        .filter(|&&class| holders[class].is_empty())
        .map(|&class| classes.names[class].as_str())
        .collect();
    if !not_held.is_empty() {
        let labels = held.first().map_or(0, Vec::len);
        let problem = format!(
            "{clients} clients with {labels} labels each cannot hold {} classes: no client would hold {}; \
             use more clients or more labels",
            present.len(),
            not_held.join(", ")
        );
        return Err(DataError::Partition { kind, problem });
    }

    let mut rows = vec![Vec::new(); clients];
    let mut notes = Vec::new();
    for &class in &present {
        classes.rows[class].shuffle(rng);
        let (count, sharers) = (classes.rows[class].len(), holders[class].len());
        let cuts = shares.cuts(count, sharers, rng);
        for (place, &client) in holders[class].iter().enumerate() {
            rows[client].extend_from_slice(&classes.rows[class][cuts[place]..cuts[place + 1]]);
        }
        if count < sharers {
            let name = &classes.names[class];
            notes.push(format!("class {name} has {count} rows for {sharers} holders: some of them got none of it"));
        }
    }
    if let Some(client) = rows.iter().position(Vec::is_empty) {
        let own = held[client].iter().map(|&class| classes.names[class].as_str()).collect::<Vec<_>>().join(", ");
        let problem =
            format!("client {client} would hold no rows: too few of its classes ({own}) to share; use fewer clients");
        return Err(DataError::Partition { kind, problem });
    }
    Ok(Partition::new(rows, notes))
}
