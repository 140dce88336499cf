//! How far particles can have come since something was found out about them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A stage of one loop's way: between two stages no particle has moved farther than [`Journey::since`] says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Journey {
    /// Which loop.
    id: u64,
    /// Σ of the longest step that each step may have been.
    way: f64,
}

impl Journey {
    /// The first stage of a loop.
    pub fn begin() -> Self {
        static LOOPS: AtomicU64 = AtomicU64::new(0);
        Self { id: LOOPS.fetch_add(1, Ordering::Relaxed), way: 0.0 }
    }

    /// The stage after a step of at most this length.
    pub fn after(self, step: f64) -> Self {
        Self { way: self.way + step, ..self }
    }

    /// The longest way from an earlier stage to this; infinite from another loop's.
    pub fn since(self, earlier: Self) -> f64 {
        if self.id == earlier.id { self.way - earlier.way } else { f64::INFINITY }
    }
}
