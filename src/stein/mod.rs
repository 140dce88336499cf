//! Stein variational gradient descent: score, kernel, bandwidth, update direction, optimiser, inner loop, discrepancy.

pub mod bandwidth;
pub mod direction;
pub mod discrepancy;
pub mod distances;
pub mod kernel;
pub mod optimizer;
pub mod score;
pub mod svgd;

pub use bandwidth::{Bandwidth, MedianOfEven, Rule};
pub use direction::{Direction, direction};
pub use discrepancy::{SteinForm, SteinProduct};
pub use distances::Distances;
pub use kernel::{Gradient, Kernel, KernelMatrix, SteinKernel};
pub use optimizer::{AccumulatorStart, EpsilonPlace, Optimizer, OptimizerState};
pub(crate) use score::Coefficients;
pub use score::Score;
pub use svgd::{Svgd, SvgdError};
