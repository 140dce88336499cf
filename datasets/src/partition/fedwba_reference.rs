//! `fedwba-reference`: the split of FedWBA's public code (`datasets/data.py`; ALGORITHMS.md section 1.6, `fedwba_ref`).
//! The classes are dealt as in `cyclic-labels`: client k holds those at ck, ck + 1, ..., ck + c - 1, modulo their number.
//! The training rows are shuffled once, and a client holds the first 10,000 of its classes in that order.
//!
//! So clients with the same classes hold the SAME rows, and rows beyond the 10,000 are nobody's. This is the only kind
//! that is not a disjoint cover; the notes say how far it is from one. (The code's CIFAR-100 has another rule, all classes
//! of two superclasses, and its clients are tested on 2,500 rows of their classes; both are not followed here.)

use super::{Classes, Partition, holders};
use crate::DataError;
use rand::Rng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;

/// Rows of a client.
const ROWS: usize = 10_000;

pub(super) fn deal(
    classes: Classes,
    clients: usize,
    labels: usize,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    let present = holders::present(&classes, labels)?;
    let mut cycle = present.iter().copied().cycle();
    let mut hands = BTreeMap::<Vec<usize>, Vec<usize>>::new();
    for client in 0..clients {
        let mut hand: Vec<usize> = cycle.by_ref().take(labels).collect();
        hand.sort_unstable();
        hands.entry(hand).or_default().push(client);
    }

    let mut order: Vec<(usize, usize)> =
        classes.rows.iter().enumerate().flat_map(|(class, rows)| rows.iter().map(move |&row| (row, class))).collect();
    // In the order of the rows, as the code shuffles them, and not class by class.
    order.sort_unstable();
    order.shuffle(rng);
    let mut rows = vec![Vec::new(); clients];
    let mut held = vec![false; order.len()];
    let mut notes = Vec::new();
    for (hand, sharers) in &hands {
        let first = |&&(_, class): &&(usize, usize)| hand.binary_search(&class).is_ok();
        let same: Vec<usize> = order.iter().filter(first).take(ROWS).map(|&(row, _)| row).collect();
        same.iter().for_each(|&row| held[row] = true);
        if sharers.len() > 1 {
            let names = hand.iter().map(|&class| classes.names[class].as_str()).collect::<Vec<_>>().join(", ");
            let (count, clients) = (same.len(), sharers.len());
            notes.push(format!("not disjoint: {clients} clients hold the same {count} rows of the classes {names}"));
        }
        for &client in sharers {
            rows[client].clone_from(&same);
        }
    }
    let nobody = held.iter().filter(|&&held| !held).count();
    if nobody > 0 {
        notes.push(format!("{nobody} of {} training rows belong to no client", held.len()));
    }
    Ok(Partition::new(rows, notes))
}
