//! `iid`: shuffled, contiguous blocks; client k of K gets ⌊n(k+1)/K⌋ − ⌊nk/K⌋ of n rows.

use super::Partition;
use rand::Rng;
use rand::seq::SliceRandom;

pub(super) fn deal(rows: usize, clients: usize, rng: &mut impl Rng) -> Partition {
    let mut order: Vec<usize> = (0..rows).collect();
    order.shuffle(rng);
    let blocks = (0..clients).map(|k| order[rows * k / clients..rows * (k + 1) / clients].to_vec());
    Partition::new(blocks.collect(), Vec::new())
}
