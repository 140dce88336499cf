//! The terms of a run, which a server sends to every site before the first round.

use serde::{Deserialize, Serialize};

use crate::datasets::ModelCard;

/// What all sites agree on, besides the initial particles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The data as the model sees them: names of features and classes, and scales.
    pub card: ModelCard,
    /// The keys of the run's configuration that concern a client, as TOML. Nothing else can be set by a server.
    pub config: String,
    /// The number of training rows N_k of each client, `[K]`.
    pub roster: Vec<usize>,
}

/// Sums of squared residuals of untrained regression networks, by which the noise of the initial particles is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Squares {
    /// The sum over the rows for each particle, `[N]`.
    pub sums: Vec<f64>,
    /// The number of rows.
    pub rows: usize,
}
