//! `labels-per-client`: every client gets c distinct classes, dealt from shuffled decks of all classes; a class's rows,
//! shuffled, are shared by its holders. (FedWBA's partition; ALGORITHMS.md section 1.6, `labels(c)`.) With equal or
//! random shares (as in pFedVEM); with shares proportional to U(.4, .6) it is `pfedgp`.

use super::holders::{self, Shares};
use super::{Classes, Partition};
use crate::DataError;
use rand::Rng;
use rand::seq::SliceRandom;
use std::collections::VecDeque;

pub(super) fn deal(
    kind: &'static str,
    classes: Classes,
    clients: usize,
    labels: usize,
    shares: Shares,
    rng: &mut impl Rng,
) -> Result<Partition, DataError> {
    let present = holders::present(&classes, labels)?;
    let held = hands(&present, clients, labels, rng);
    holders::share(kind, classes, &held, shares, rng)
}

/// `labels` distinct classes for each client. Every class is in some hand when there are enough hands: a card is
/// passed over only by a client that holds its class already.
pub(super) fn hands(classes: &[usize], clients: usize, labels: usize, rng: &mut impl Rng) -> Vec<Vec<usize>> {
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
