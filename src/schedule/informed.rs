//! The configuration that KSD and HIP selection share: the comparison and the draw of clients.

use fedstein_schema::Accepts::{self, Choice, Float};
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Key, NumberOr, key};
use serde::{Deserialize, Serialize};

use super::weigh::Draw;
use crate::random::Streams;
use crate::rows::Rows;
use crate::stein::{Bandwidth, Kernel, Rule};

/// The kernel with which clients are compared.
pub(super) const KERNEL: Key = key(
    "kernel",
    Choice(SelectionKernel::WORDS),
    T(SelectionKernel::Rbf.word()),
    "Kernel with which clients are compared: exp(-r²/h) or (1 + r²/h)^-½.",
);
/// The standard deviation of that kernel.
pub(super) const BANDWIDTH: Key = key(
    "bandwidth",
    Accepts::NumberOr(Interval::POSITIVE, SelectionRule::WORDS),
    T(SelectionRule::Median.word()),
    "Standard deviation σ of that kernel, h = 2σ² ([C] may mean 0.55, with which the kernel between different particles vanishes beyond some 50 dimensions); or the rule of SVGD's bandwidth (`reference`, where that is a number).",
);
/// The rows from which an answer is computed.
pub(super) const ROWS: Key = key(
    "rows",
    Choice(Rows::WORDS),
    T(Rows::Full.word()),
    "The rows from which a client computes its answer: all, or one minibatch.",
);
/// The uniform share of the draw.
pub(super) const FLOOR: Key = key(
    "floor",
    Float(Interval::DECAY),
    F(0.0),
    "Share of the draw that is uniform: no client's probability falls below floor/K.",
);

/// The keys that `ksd` and `hip` share: the comparison and the draw of clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InformedConfig {
    /// The number of clients per round.
    pub clients: usize,
    /// The kernel with which they are compared.
    pub kernel: SelectionKernel,
    /// The standard deviation σ of that kernel: h = 2σ².
    pub bandwidth: NumberOr<SelectionRule>,
    /// The rows from which an answer is computed.
    pub rows: Rows,
    /// The uniform share of the draw.
    pub floor: f64,
}

fedstein_schema::words! {
    /// The kernel with which clients are compared.
    pub enum SelectionKernel {
        /// exp(-r²/h)
        Rbf = "rbf",
        /// (1 + r²/h)^(-1/2)
        Imq = "imq",
    }
}

fedstein_schema::words! {
    /// A rule for the standard deviation of that kernel.
    pub enum SelectionRule {
        /// The median heuristic: the bandwidth rule of SVGD's kernel.
        Median = "median",
    }
}

impl InformedConfig {
    /// The kernel with which clients are compared.
    pub(super) fn kernel(&self, svgd_bandwidth: Bandwidth) -> Kernel {
        let bandwidth = match self.bandwidth {
            NumberOr::Rule(SelectionRule::Median) => svgd_bandwidth,
            NumberOr::Fixed(sd) => Bandwidth { rule: Rule::Fixed(2.0 * sd * sd), ..Bandwidth::default() },
        };
        match self.kernel {
            SelectionKernel::Rbf => Kernel::Rbf(bandwidth),
            SelectionKernel::Imq => Kernel::Imq { bandwidth, exponent: -0.5 },
        }
    }

    /// The draw of the clients.
    pub(super) fn draw(&self, streams: Streams) -> Draw {
        Draw { per_round: self.clients, floor: self.floor, streams }
    }
}
