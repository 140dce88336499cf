//! Optimal transport between sets of N particles of equal mass, with which FedWBA's server combines its clients'
//! posteriors.
//!
//! With equal masses and equal N the optimal plan is a permutation over N, so that all functions use one exact solver:
//! [`assign`] solves a cost matrix on the host, [`wasserstein2_squared`] is the distance of two sets `[N, d]`, and
//! [`barycenter()`] is the set with the least mean squared distance to several. Sets of unequal N, for which a plan
//! would have to split masses, are refused with an error. Source: FedWBA eq. (3)-(5).

pub mod assignment;
pub mod barycenter;
pub mod robust;

use std::fmt;

use burn::tensor::{DType, TensorReadError};
use thiserror::Error;

pub use assignment::{Assignment, assign};
pub use barycenter::{
    Barycenter, BarycenterConfig, Eq5, Iterate, barycenter, cost_matrix, index_mean, wasserstein2_squared,
};

pub use robust::{RobustBarycenter, robust_barycenter};

/// The role of a particle set, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParticleSet {
    /// The set at which a barycenter's iteration starts.
    Initial,
    /// A client's set, by its index among the given sets.
    Client(usize),
    /// The first of the two sets.
    First,
    /// The second of the two sets.
    Second,
}

impl fmt::Display for ParticleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Initial => write!(f, "the initial set"),
            Self::Client(client) => write!(f, "client {client}"),
            Self::First => write!(f, "the first set"),
            Self::Second => write!(f, "the second set"),
        }
    }
}

/// The error of an assignment, distance or barycenter. Rows, columns, clients and particles are counted from 0.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TransportError {
    /// A cost matrix without entries.
    #[error("the cost matrix has no entries; an assignment needs at least one row and one column")]
    NoCosts,
    /// A cost matrix that is not square.
    #[error("the cost matrix is {rows} x {columns}; an assignment needs as many columns as rows")]
    NotSquare {
        /// Number of rows.
        rows: usize,
        /// Number of columns.
        columns: usize,
    },
    /// A cost that is NaN, infinite, or so large that sums of N costs overflow.
    #[error("cost [{row}, {column}] is {value:e}; costs must be finite and at most {limit:e} in size")]
    Cost {
        /// Row of the cost.
        row: usize,
        /// Column of the cost.
        column: usize,
        /// The cost.
        value: f64,
        /// The largest absolute value accepted.
        limit: f64,
    },
    /// A barycenter of no sets.
    #[error("there are no clients; a barycenter needs at least one set of particles")]
    NoClients,
    /// Two sets differ in size.
    #[error("{set} has {got} particles and {reference} has {expected}; an assignment needs equal numbers")]
    Count {
        /// The set that differs.
        set: ParticleSet,
        /// Its number of particles.
        got: usize,
        /// The set it is compared with.
        reference: ParticleSet,
        /// That set's number of particles.
        expected: usize,
    },
    /// Two sets are parameters of different models.
    #[error("{set} and {reference} differ in their parameter blocks; both must be particles of one model")]
    Layout {
        /// The set that differs.
        set: ParticleSet,
        /// The set it is compared with.
        reference: ParticleSet,
    },
    /// Two sets differ in their element type.
    #[error("{set} holds {got:?} and {reference} holds {expected:?}; both must have one precision")]
    Precision {
        /// The set that differs.
        set: ParticleSet,
        /// Its element type.
        got: DType,
        /// The set it is compared with.
        reference: ParticleSet,
        /// That set's element type.
        expected: DType,
    },
    /// A particle with a coordinate that is not finite. It is never replaced by zeros.
    #[error("{set}: particle {particle} is not finite, or its squared norm is beyond the precision's range")]
    NotFinite {
        /// The set.
        set: ParticleSet,
        /// Index of the first bad particle.
        particle: usize,
    },
    /// The number of weights is not the number of clients.
    #[error("{got} weights for {expected} clients; give one weight per client")]
    WeightCount {
        /// Number of weights.
        got: usize,
        /// Number of clients.
        expected: usize,
    },
    /// A weight below 0 or not finite.
    #[error("the weight of client {client} is {value}; weights must be finite and at least 0")]
    Weight {
        /// The client.
        client: usize,
        /// The weight of the client.
        value: f64,
    },
    /// The weights do not sum to 1.
    #[error("the weights sum to {sum}; they must sum to 1 within {tolerance:e}")]
    WeightSum {
        /// The sum of the weights.
        sum: f64,
        /// Largest distance from 1 that is accepted.
        tolerance: f64,
    },
    /// A tolerance that no displacement can meet.
    #[error("the barycenter's tolerance is {value}; it must be finite and at least 0")]
    Tolerance {
        /// The tolerance.
        value: f64,
    },
    /// A limit of zero updates.
    #[error("the barycenter's max_iterations is 0; it must be at least 1")]
    NoIterations,
    /// Reading from the device failed.
    #[error("the device failed: {0}")]
    Device(String),
}

impl From<TensorReadError> for TransportError {
    fn from(error: TensorReadError) -> Self {
        Self::Device(error.to_string())
    }
}
