//! Robust rules, which bound the influence of a few poisoned replies: `combine.rs` applies them to the validated replies of
//! a round before an algorithm sees these.
//!
//! - `norm-clip`: the change of each array, reply − sent (or the array itself where it already is a change or none was
//!   sent), is shortened to c times the median length of the round's changes. In a round with one or two replies, the median is
//!   that of the latest accepted changes. Lengths are root mean squares, so that arrays with different numbers of rows
//!   can be compared, and those of sums over a client's rows are divided by the number of its rows. Source: Sun et al. 2019.
//! - `median`, `trimmed`: every reply is replaced by the coordinate-wise median or β-trimmed mean of all replies of the
//!   round. Any weighted average of the replies is then equal to that median or mean. Source: Yin et al. 2018.
//!
//! The particles of FedWBA's clients are not numbered alike; its server has a median and a trimmed barycenter of its
//! own ([`crate::ot::robust`]).

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// The robust rule by which replies are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Robust {
    /// The replies are combined by the algorithm alone.
    #[default]
    None,
    /// Changes are shortened to this many times the median length.
    NormClip(f64),
    /// The coordinate-wise median.
    Median,
    /// The coordinate-wise mean without this share of the replies at either end.
    Trimmed(f64),
}

/// The number of lengths that are kept for each array.
const REMEMBERED: usize = 50;
/// The number of arrays whose lengths are kept. Their names are the clients' own; a method has a few.
const MOST_ARRAYS: usize = 64;

/// The lengths of the latest accepted changes after clipping, by array. They are stored as bits, which every file
/// format keeps exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Norms(BTreeMap<String, VecDeque<u64>>);

impl Norms {
    /// Adds the length of an accepted change of this array.
    pub(super) fn remember(&mut self, name: &str, norm: f64) {
        if self.0.len() >= MOST_ARRAYS && !self.0.contains_key(name) {
            return;
        }
        let norms = self.0.entry(name.to_owned()).or_default();
        norms.push_back(norm.to_bits());
        if norms.len() > REMEMBERED {
            norms.pop_front();
        }
    }

    /// The latest lengths of the changes of this array.
    pub(super) fn latest(&self, name: &str) -> Vec<f64> {
        self.0.get(name).map(|norms| norms.iter().map(|bits| f64::from_bits(*bits)).collect()).unwrap_or_default()
    }
}
