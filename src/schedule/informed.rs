//! How clients are compared and drawn: the configuration that KSD and HIP selection share.

use fedstein_schema::Accepts::{self, Choice, Float};
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Key, NumberOr, key};
use serde::{Deserialize, Serialize};

use super::weigh::Draw;
use crate::random::Streams;
use crate::rows::Rows;
use crate::stein::{Bandwidth, Kernel, Rule};

/// The kernel in which clients are compared.
pub(super) const KERNEL: Key = key(
    "kernel",
    Choice(&["rbf", "imq"]),
    T("rbf"),
    "Kernel with which clients are compared: exp(-r²/h) or (1 + r²/h)^-½.",
);
/// Its standard deviation.
pub(super) const BANDWIDTH: Key = key(
    "bandwidth",
    Accepts::NumberOr(Interval::POSITIVE, &["median"]),
    T("median"),
    "Standard deviation σ of that kernel, h = 2σ² ([C] may mean 0.55, with which the kernel between different particles vanishes beyond some 50 dimensions); or the median rule of SVGD's kernel.",
);
/// The rows behind an answer.
pub(super) const ROWS: Key = key(
    "rows",
    Choice(&["full", "minibatch"]),
    T("full"),
    "The rows from which a client computes its answer: all, or one minibatch.",
);
/// The uniform share of the draw.
pub(super) const FLOOR: Key = key(
    "floor",
    Float(Interval::DECAY),
    F(0.0),
    "Share of the draw that is uniform: no client's probability falls below floor/K.",
);

/// How clients are compared and drawn: what `ksd` and `hip` share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InformedConfig {
    /// Clients a round.
    pub clients: usize,
    /// The kernel in which they are compared.
    pub kernel: SelectionKernel,
    /// Its standard deviation σ: h = 2σ².
    pub bandwidth: NumberOr<SelectionRule>,
    /// The rows behind an answer.
    pub rows: Rows,
    /// The uniform share of the draw.
    pub floor: f64,
}

/// Kernel in which clients are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelectionKernel {
    /// exp(-r²/h)
    Rbf,
    /// (1 + r²/h)^(-1/2)
    Imq,
}

/// Rule for the standard deviation of that kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SelectionRule {
    /// Median heuristic: the kernel in which SVGD moves.
    Median,
}

impl InformedConfig {
    /// The kernel; `moving` is the bandwidth rule of SVGD's own.
    pub(super) fn kernel(&self, moving: Bandwidth) -> Kernel {
        let bandwidth = match self.bandwidth {
            NumberOr::Rule(SelectionRule::Median) => moving,
            NumberOr::Fixed(sd) => Bandwidth { rule: Rule::Fixed(2.0 * sd * sd), ..Bandwidth::default() },
        };
        match self.kernel {
            SelectionKernel::Rbf => Kernel::Rbf(bandwidth),
            SelectionKernel::Imq => Kernel::Imq { bandwidth, exponent: -0.5 },
        }
    }

    /// How probabilities become clients.
    pub(super) fn draw(&self, streams: Streams) -> Draw {
        Draw { per_round: self.clients, floor: self.floor, streams }
    }
}
