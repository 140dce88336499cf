//! The order statistics of scores that lie in several places, from counts alone.

/// Questions split the range of every rank into this many parts.
const PARTS: u64 = 256;

/// Finds exact order statistics by asking "how many of your scores are at most t", in eight questions of 255 numbers for each
/// rank: a question splits the range of all `f64` that are left into 256 parts. The answers of any number of places are added
/// up; no score leaves its place. A threshold that is found is nevertheless one of the scores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantileSearch {
    /// The ranks that are looked for, from 1.
    ranks: Vec<usize>,
    /// The smallest and the largest number, by its place among all `f64`, that each may be.
    ranges: Vec<(u64, u64)>,
}

impl QuantileSearch {
    /// A search for the scores of these ranks, each from 1 to the number of all scores.
    pub fn new(ranks: Vec<usize>) -> Self {
        let ranges = vec![(place(f64::MIN), place(f64::MAX)); ranks.len()];
        Self { ranks, ranges }
    }

    /// The next numbers t, `[ranks, 255]` and ascending for each rank; `None` once all scores are found.
    pub fn question(&self) -> Option<Vec<f64>> {
        let is_open = |(lo, hi): &(u64, u64)| lo < hi;
        let points = |&(lo, hi): &(u64, u64)| (1..PARTS).map(move |part| number(point(lo, hi, part)));
        self.ranges.iter().any(is_open).then(|| self.ranges.iter().flat_map(points).collect())
    }

    /// Takes the counts over all places, in the order of the question.
    pub fn answer(&mut self, counts: &[u64]) {
        let each = self.ranks.iter().zip(&mut self.ranges).zip(counts.chunks_exact(PARTS as usize - 1));
        for ((rank, range), counts) in each {
            let (lo, hi) = *range;
            let reached = counts.iter().position(|count| *count >= *rank as u64);
            let parts = reached.map_or((PARTS - 1, PARTS), |at| (at as u64, at as u64 + 1));
            let lower = if parts.0 == 0 { lo } else { point(lo, hi, parts.0).saturating_add(1).min(hi) };
            let upper = if parts.1 == PARTS { hi } else { point(lo, hi, parts.1) };
            *range = (lower.min(upper), upper);
        }
    }

    /// The scores that were found, `[ranks]`.
    pub fn found(&self) -> Vec<f64> {
        // -0 and 0 count the same.
        self.ranges.iter().map(|(lo, _)| number(*lo) + 0.0).collect()
    }
}

/// The number of scores that are at most each threshold.
///
/// # Arguments
/// * `sorted`: the scores, ascending
pub fn counts_up_to(sorted: &[f64], thresholds: &[f64]) -> Vec<u64> {
    thresholds.iter().map(|t| sorted.partition_point(|score| score <= t) as u64).collect()
}

/// The end of a part of a range, from 0, the lower end, to [`PARTS`], the upper one.
fn point(lo: u64, hi: u64, part: u64) -> u64 {
    lo + (u128::from(hi - lo) * u128::from(part) / u128::from(PARTS)) as u64
}

/// The place of a number among all `f64` in ascending order.
fn place(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The number at a place.
fn number(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}
