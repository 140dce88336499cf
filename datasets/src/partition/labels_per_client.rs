//! `labels-per-client`: every client gets c distinct classes, dealt cyclically from shuffled decks of all classes;
//! a class's rows, shuffled, are shared equally by its holders. (The client-selection paper's MNIST and FedWBA's
//! partitions; ALGORITHMS.md section 1.6, `digits(c)` and `labels(c)`.)

use super::{Classes, Partition, boundaries};
use crate::DataError;
use rand::Rng;
use rand::seq::SliceRandom;
use std::collections::VecDeque;

const KIND: &str = "labels-per-client";

pub(super) fn deal(
    mut classes: Classes,
    clients: usize,
    labels: usize,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    // A class without training rows is nobody's.
    let present: Vec<usize> = (0..classes.rows.len()).filter(|&class| !classes.rows[class].is_empty()).collect();
    if labels == 0 || labels > present.len() {
        let problem = format!("must be from 1 to {}, the number of classes with training rows", present.len());
        return Err(DataError::config("partition.labels", labels, problem));
    }
    let held = hands(&present, clients, labels, rng);
    let mut holders = vec![Vec::new(); classes.rows.len()];
    for (client, hand) in held.iter().enumerate() {
        for &class in hand {
            holders[class].push(client);
        }
    }
    let nobody: Vec<&str> = present
        .iter()
        .filter(|&&class| holders[class].is_empty())
        .map(|&class| classes.names[class].as_str())
        .collect();
    if !nobody.is_empty() {
        let problem = format!(
            "{clients} clients with {labels} labels each cannot hold {} classes: nobody would hold {}; \
             use more clients or more labels",
            present.len(),
            nobody.join(", ")
        );
        return Err(DataError::Partition { kind: KIND, problem });
    }

    let mut rows = vec![Vec::new(); clients];
    let mut notes = Vec::new();
    for &class in &present {
        classes.rows[class].shuffle(rng);
        let (count, sharers) = (classes.rows[class].len(), holders[class].len());
        let cuts = boundaries(count, &vec![1.0; sharers]);
        for (place, &client) in holders[class].iter().enumerate() {
            rows[client].extend_from_slice(&classes.rows[class][cuts[place]..cuts[place + 1]]);
        }
        if count < sharers {
            let name = &classes.names[class];
            notes.push(format!("class {name} has {count} rows for {sharers} holders: some of them got none of it"));
        }
    }
    if let Some(client) = rows.iter().position(Vec::is_empty) {
        let hand = held[client].iter().map(|&class| classes.names[class].as_str()).collect::<Vec<_>>().join(", ");
        let problem =
            format!("client {client} would hold no rows: too few of its classes ({hand}) to share; use fewer clients");
        return Err(DataError::Partition { kind: KIND, problem });
    }
    Ok(Partition::new(rows, notes))
}

/// `labels` distinct classes for each client. Every class is in some hand when there are enough hands: a card is
/// passed over only by a client that holds its class already.
fn hands(classes: &[usize], clients: usize, labels: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
    let mut deck: VecDeque<usize> = VecDeque::new();
    let mut hands = Vec::with_capacity(clients);
    for _ in 0..clients {
        let mut hand: Vec<usize> = Vec::with_capacity(labels);
        while hand.len() < labels {
            match deck.iter().position(|class| !hand.contains(class)) {
                Some(place) => hand.extend(deck.remove(place)),
                None => {
                    let mut fresh = classes.to_vec();
                    fresh.shuffle(rng);
                    deck.extend(fresh);
                }
            }
        }
        hands.push(hand);
    }
    hands
}
