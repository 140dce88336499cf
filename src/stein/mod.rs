//! Stein variational gradient descent: kernel, bandwidth, update direction, optimiser, inner loop.

pub mod bandwidth;
pub mod direction;
pub mod kernel;
pub mod optimizer;
pub mod svgd;

pub use bandwidth::{Bandwidth, MedianOfEven, Rule};
pub use direction::direction;
pub use kernel::{Gradient, Kernel, KernelMatrix};
pub use optimizer::{AccumulatorStart, EpsilonPlace, Optimizer, OptimizerState};
pub use svgd::{Svgd, SvgdError};
