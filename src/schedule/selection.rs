//! The selected clients of a round, and why they were selected.

use serde::{Deserialize, Serialize};

use crate::protocol::ClientId;

/// The selected clients of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// The clients, in the order in which they take part.
    pub clients: Vec<ClientId>,
    /// The probabilities of the selection, for schedules with indicators.
    pub reasons: Option<Reasons>,
}

impl From<Vec<ClientId>> for Selection {
    fn from(clients: Vec<ClientId>) -> Self {
        Self { clients, reasons: None }
    }
}

/// The way in which the indicators were turned into probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// P_k = S_k/ΣS, as in the paper.
    Proportional,
    /// Negative values were cut to 0.
    Clipped,
    /// A constant was added to all values.
    Shifted,
    /// A softmax.
    Softmax,
    /// All clients are equally likely, because the values are all equal, not finite, or without a positive one.
    Uniform,
}

/// The probabilities from which clients were drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Reasons {
    /// P, `[K]`; 0 for clients without an answer, if others answered.
    pub probabilities: Vec<f64>,
    /// The way in which P was computed.
    pub action: Action,
    /// Δ/ε = Σ_k S_k P_k − mean S: the gain over uniform selection in the bound on the decrease of the free energy;
    /// (18) for KSD, (25) for HIP.
    pub gain: f64,
    /// The entropy of P over the logarithm of the number of clients that answered: 1 for uniform probabilities.
    pub entropy: f64,
    /// The number of negative indicators.
    pub negative: usize,
}
