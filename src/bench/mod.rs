//! Times of the main computations of a federation: the workloads W1 to W8, each compared with the machine's limit.
//!
//! A bench takes an open device, a number of seconds, and a size; it returns one [`Line`] per measured quantity, with
//! its time, its FLOPs and its bytes. The timed code is the code of a run, on synthetic rows of the right shape. The
//! same work in PyTorch and JAX ("yardsticks") has the same names, so that lines can be paired. `fedstein bench` prints
//! the lines; `cargo bench` also counts allocations.
//!
//! | | what | file |
//! |---|---|---|
//! | W1 | one SVGD step of the network 784-100-10 | [`network_step`] |
//! | W2 | one DSVGD round on it | [`dsvgd_round`] |
//! | W3 | 200 SVGD steps of a logistic regression | [`logistic`] |
//! | W4 | client selection by Hilbert inner product | [`selection`] |
//! | W5 | one FedWBA round | [`fedwba_round`] |
//! | W6 | the predictive mean on 10,000 test images | [`prediction`] |
//! | W7 | one SVGD step of the LeNet | [`convolution`] |
//! | W8 | one visit of newton-dsvgd | [`newton_visit`] |

pub mod activity;
pub mod bands;
pub mod convolution;
pub mod cost;
pub mod dsvgd_round;
pub mod fedwba_round;
pub mod growth;
pub mod logistic;
pub mod network_step;
pub mod newton_visit;
pub mod prediction;
pub mod roofline;
pub mod selection;
mod size;
mod synthetic;
pub mod table;
pub mod timing;

use std::fmt;
use std::str::FromStr;

pub use cost::Cost;
pub use roofline::Ceilings;
pub use size::Size;
pub use timing::{Bench, Line, Record, Settings, Threads};

use crate::error::RunError;

/// A workload by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// One SVGD step of the network 784-100-10.
    W1,
    /// One DSVGD round on that network.
    W2,
    /// 200 SVGD steps of a logistic regression.
    W3,
    /// Client selection by Hilbert inner product.
    W4,
    /// One FedWBA round.
    W5,
    /// The predictive mean on 10,000 test images.
    W6,
    /// One SVGD step of the LeNet.
    W7,
    /// One visit of newton-dsvgd.
    W8,
}

impl Workload {
    /// All workloads, in order.
    pub const ALL: [Self; 8] = [Self::W1, Self::W2, Self::W3, Self::W4, Self::W5, Self::W6, Self::W7, Self::W8];

    /// A short description of the workload.
    pub fn what(self) -> &'static str {
        match self {
            Self::W1 => "one SVGD step of the network 784-100-10",
            Self::W2 => "one DSVGD round on it, exact densities",
            Self::W3 => "200 SVGD steps of a logistic regression",
            Self::W4 => "client selection by Hilbert inner product, 120 clients",
            Self::W5 => "one FedWBA round, 10 clients and the barycenter of 50",
            Self::W6 => "the predictive mean on 10,000 test images",
            Self::W7 => "one SVGD step of the LeNet on 3x32x32",
            Self::W8 => "one visit of newton-dsvgd, with its gradient and curvature",
        }
    }

    /// Builds the data and times the workload.
    ///
    /// # Errors
    /// The device fails, or particles diverge, in which case there is no time.
    pub fn measure(self, bench: &Bench) -> Result<Vec<Line>, RunError> {
        match self {
            Self::W1 => network_step::lines(bench),
            Self::W2 => dsvgd_round::lines(bench),
            Self::W3 => logistic::lines(bench),
            Self::W4 => selection::lines(bench),
            Self::W5 => fedwba_round::lines(bench),
            Self::W6 => prediction::lines(bench),
            Self::W7 => convolution::lines(bench),
            Self::W8 => newton_visit::lines(bench),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl FromStr for Workload {
    type Err = String;

    /// Parses W1 to W8, in upper or lower case.
    fn from_str(word: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|workload| workload.to_string().eq_ignore_ascii_case(word));
        named.ok_or_else(|| {
            let all: Vec<String> =
                Self::ALL.iter().map(|workload| format!("{workload} ({})", workload.what())).collect();
            format!("there is no workload \"{word}\"; choose from {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests;
