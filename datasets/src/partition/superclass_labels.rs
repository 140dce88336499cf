//! `superclass-labels`: every client gets c distinct superclasses, dealt from shuffled decks of all superclasses, and of
//! each one class, dealt from shuffled decks of its classes; a class's rows, shuffled, are shared equally by its holders.
//! (The FedWBA paper's CIFAR-100, c = 10; ALGORITHMS.md section 1.6, `superclass(10)`.)

use super::holders::{self, Shares};
use super::{Classes, Partition, labels_per_client};
use crate::DataError;
use rand::Rng;
use rand::seq::SliceRandom;

const KIND: &str = "superclass-labels";

pub(super) fn deal(
    classes: Classes,
    superclasses: Option<&[usize]>,
    clients: usize,
    labels: usize,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    let superclasses = superclasses.ok_or_else(|| DataError::Partition {
        kind: KIND,
        problem: "these classes have no superclasses; cifar100 has, other data can use labels-per-client".to_owned(),
    })?;
    // The classes with training rows of each superclass that has any.
    let mut members = vec![Vec::new(); superclasses.iter().max().map_or(0, |most| most + 1)];
    for (class, _) in classes.rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        members[superclasses[class]].push(class);
    }
    members.retain(|classes| !classes.is_empty());
    if labels == 0 || labels > members.len() {
        let problem = format!("must be from 1 to {}, the number of superclasses with training rows", members.len());
        return Err(DataError::config("partition.labels", labels, problem));
    }

    let all: Vec<usize> = (0..members.len()).collect();
    let mut decks = vec![Vec::new(); members.len()];
    let mut held = Vec::with_capacity(clients);
    for hand in labels_per_client::hands(&all, clients, labels, rng) {
        let mut draw = |superclass: usize| {
            let deck = &mut decks[superclass];
            if deck.is_empty() {
                deck.clone_from(&members[superclass]);
                deck.shuffle(rng);
            }
            deck.pop()
        };
        held.push(hand.into_iter().filter_map(&mut draw).collect());
    }
    holders::share(KIND, classes, &held, Shares::Equal, rng)
}
