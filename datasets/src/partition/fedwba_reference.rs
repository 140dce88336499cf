//! `fedwba-reference`: the split of FedWBA's public code (`datasets/data.py`).
//! The classes are assigned as in `cyclic-labels`: client k holds those at ck, ck + 1, ..., ck + c - 1, modulo their
//! number. The training rows are shuffled once, and a client holds the first 10,000 of its classes in that order.
//!
//! So clients with the same classes hold the SAME rows, and rows beyond the 10,000 belong to no client. This is the
//! only kind that is not a disjoint cover; the notes say how far it is from one. (The code's CIFAR-100 has another
//! rule, all classes of two superclasses, and its clients are tested on 2,500 rows of their classes; both are not
//! followed here.)

use super::classes::Classes;
use super::kind::{CALIBRATION, CLIENTS, LABELS, Scheme, SchemeProperties, VALIDATION};
use super::test_rows::TestRows;
use super::{Partition, holders};
use crate::{DataError, Dataset};
use fedstein_schema::Kind;
use fedstein_schema::Literal::Int;
use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of rows of a client.
const ROWS: usize = 10_000;

/// The split of FedWBA's public code, which is NOT disjoint: clients with the same classes, which are assigned as in
/// `cyclic-labels`, hold the same rows, the first 10,000 of these classes in one shuffled order. With ten classes and
/// five labels all even clients hold the same rows of the classes 0 to 4 and all odd ones the same of 5 to 9.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct FedwbaReference {
    /// The number of clients K.
    pub clients: usize,
    /// The number of distinct classes per client.
    pub labels: usize,
}

impl Scheme for FedwbaReference {
    const KIND: Kind = Kind {
        name: "fedwba-reference",
        about: "The split of [W]'s code, in which clients with the same labels hold the SAME 10,000 rows.",
        keys: &[CLIENTS, LABELS.default(Int(5)), VALIDATION, CALIBRATION],
    };
    const PROPERTIES: SchemeProperties = SchemeProperties { disjoint: false, ..SchemeProperties::BY_CLASS };
    const TEST_ROWS: TestRows = TestRows::OfHeldClasses;

    fn clients(&self) -> Option<usize> {
        Some(self.clients)
    }

    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
        let classes = Classes::of(Self::KIND.name, &train.targets)?;
        let present = holders::present(&classes, self.labels)?;
        let mut cycle = present.iter().copied().cycle();
        // The clients that hold each set of classes.
        let mut clients_of = BTreeMap::<Vec<usize>, Vec<usize>>::new();
        for client in 0..self.clients {
            let mut held: Vec<usize> = cycle.by_ref().take(self.labels).collect();
            held.sort_unstable();
            clients_of.entry(held).or_default().push(client);
        }

        let mut order: Vec<(usize, usize)> = classes
            .rows
            .iter()
            .enumerate()
            .flat_map(|(class, rows)| rows.iter().map(move |&row| (row, class)))
            .collect();
        // The rows are taken in the shuffled order of all rows, as in the public code, and not class by class.
        order.sort_unstable();
        order.shuffle(rng);
        let mut rows = vec![Vec::new(); self.clients];
        let mut assigned = vec![false; order.len()];
        let mut notes = Vec::new();
        for (held, sharers) in &clients_of {
            let is_held = |&&(_, class): &&(usize, usize)| held.binary_search(&class).is_ok();
            let same: Vec<usize> = order.iter().filter(is_held).take(ROWS).map(|&(row, _)| row).collect();
            same.iter().for_each(|&row| assigned[row] = true);
            if sharers.len() > 1 {
                let names = held.iter().map(|&class| classes.names[class].as_str()).collect::<Vec<_>>().join(", ");
                let (count, clients) = (same.len(), sharers.len());
                notes
                    .push(format!("not disjoint: {clients} clients hold the same {count} rows of the classes {names}"));
            }
            for &client in sharers {
                rows[client].clone_from(&same);
            }
        }
        // How many of the different sets of rows each row is in.
        let mut sets = vec![0_usize; assigned.len()];
        clients_of.values().for_each(|sharers| rows[sharers[0]].iter().for_each(|row| sets[*row] += 1));
        let shared = sets.iter().filter(|sets| **sets > 1).count();
        if shared > 0 {
            notes.push(format!("not disjoint: {shared} rows belong to clients that have other classes besides"));
        }
        let left = assigned.iter().filter(|&&assigned| !assigned).count();
        if left > 0 {
            notes.push(format!("{left} of {} training rows belong to no client", assigned.len()));
        }
        Ok(Partition::new(rows, notes))
    }
}
