//! Cholesky factors A = L·Lᵀ of symmetric positive definite matrices, in f64 on the host.
//!
//! There are two, because they add the same terms in different orders, and the last bits of a run's results would
//! change if one took the place of the other: [`Cholesky`] works in blocks by matrix products, for Gaussian processes
//! on hundreds of rows; `RowCholesky` takes one sum after the other, for the covariances of Gaussian posteriors.

mod cholesky;
mod row_cholesky;

pub use cholesky::Cholesky;
pub(crate) use row_cholesky::RowCholesky;
