//! `data.rotate`: the basis in which models see the features.

use fedstein_schema::Accepts::Choice;
use fedstein_schema::Literal::Text as T;
use fedstein_schema::{Key, key};
use serde::{Deserialize, Serialize};

/// The keys of `[data]` about the basis.
///
/// A run of an earlier version has neither: its features are as they were after scaling.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RotationConfig {
    /// The basis.
    pub rotate: Rotate,
    /// The rows from which it is computed.
    pub rotate_from: RotateFrom,
}

fedstein_schema::words! {
    /// The basis in which models see the features.
    #[derive(Default)]
    pub enum Rotate {
        /// The features as they are after scaling.
        #[default]
        None = "none",
        /// The principal axes of the training rows.
        Principal = "principal",
    }
}

fedstein_schema::words! {
    /// The rows from which a basis is computed.
    #[derive(Default)]
    pub enum RotateFrom {
        /// The training rows of all clients: each sends the sum of x xᵀ over its rows once.
        #[default]
        AllClients = "all-clients",
        /// The training rows of client 0 alone.
        FirstClient = "first-client",
    }
}

pub(super) const ROTATE: Key = key(
    "rotate",
    Choice(Rotate::WORDS),
    T(Rotate::None.word()),
    "Basis of the features after scaling: as they are, or their principal axes (eigenvectors of the training rows' second moment), in which diagonal step rules and curvatures fit better. The matrix is kept with the run, and predictions take rows as they are. Not for convolutions.",
);

pub(super) const ROTATE_FROM: Key = key(
    "rotate_from",
    Choice(RotateFrom::WORDS),
    T(RotateFrom::AllClients.word()),
    "Rows that the principal axes come from: those of all clients (each sends one p × p matrix of sums), or of client 0, which sends p × p numbers to all.",
);
