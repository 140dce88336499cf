//! Stein variational gradient descent (Liu & Wang 2016).
//!
//! N particles Θ `[N, d]` move along φ_i = (1/N) Σ_j [k(θ_j, θ_i) ∇ log p(θ_j) + ∇_{θ_j} k(θ_j, θ_i)] by an optimiser's
//! step.
//!
//! **Read [`mod@reference`] first.** It has these equations in plain tensors, one line each. The loop that runs is
//! [`Svgd`], and `reference`'s tests hold it to the same particles. It differs in these ways:
//!
//! - *Matrices instead of `[N, N, d]` differences.* Σ_j ∇_{θ_j} k(θ_j, θ_i) is a row of M·Θ with a small matrix M
//!   `[N, N]` ([`kernel`]), so that φ = (K·S + M·Θ)/N takes O(N²d) multiplications and O(Nd) memory.
//! - *A score is a sum of products C·X* of small matrices with long particle sets ([`Score`]). K is multiplied with the
//!   small matrices, and each long set is read once, however many densities take part ([`mod@direction`]).
//! - *Kernel and bandwidth are in f64 on the host*, where the median has to be found anyway ([`distances`],
//!   [`bandwidth`]).
//! - *On the CPU, in f32, φ is never stored.* One pass over tiles of columns forms φ in registers and applies the
//!   optimiser's step there (`simd`); on other devices and in f64, [`Optimizer::step`] does it in plain tensors.
//!
//! [`discrepancy`] has the kernelized Stein discrepancy, by which clients are selected.

pub mod bandwidth;
pub mod direction;
pub mod discrepancy;
pub mod distances;
pub mod kernel;
pub mod optimizer;
pub mod reference;
pub mod score;
pub mod svgd;

pub use bandwidth::{Bandwidth, MedianOfEven, Rule};
pub use direction::{Direction, direction};
pub use discrepancy::{SteinForm, SteinProduct};
pub use distances::Distances;
pub use kernel::{Gradient, Kernel, KernelMatrix, SteinKernel};
pub use optimizer::{AccumulatorStart, EpsilonPlace, Optimizer, OptimizerState};
pub(crate) use score::{Coefficients, Factor, FirstLayerProduct};
pub use score::{Precisions, Score};
pub use svgd::{FirstNorm, Svgd, SvgdError, first_non_finite};
