//! The terms of a run, which a server sends to every site before the first round.

use serde::{Deserialize, Serialize};

use super::class_prior::ClassPrior;
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
    /// How often a training row of each class counts, `[C]`; `None` for once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_weights: Option<Vec<f64>>,
    /// How frequent the classes are at all clients, where a client's predictions are corrected to its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_prior: Option<ClassPrior>,
}

impl Terms {
    /// Checks the weights and the frequencies of the classes.
    ///
    /// # Errors
    /// There is not one for each class, or one is negative or not finite.
    pub fn check_classes(&self) -> Result<(), String> {
        self.check_numbers(self.class_weights.as_deref(), "weight")?;
        let prior = self.class_prior.as_ref();
        self.check_numbers(prior.map(|prior| &*prior.learned), "frequency")?;
        self.check_numbers(prior.map(|prior| &*prior.pseudo_rows), "number of rows")
    }

    fn check_numbers(&self, numbers: Option<&[f64]>, what: &str) -> Result<(), String> {
        let Some(numbers) = numbers else { return Ok(()) };
        let classes = self.card.classes.as_ref().map_or(0, Vec::len);
        if numbers.len() != classes {
            return Err(format!("{} numbers for {classes} classes, each of which has a {what}", numbers.len()));
        }
        match numbers.iter().find(|number| !(number.is_finite() && **number >= 0.0)) {
            Some(number) => Err(format!("{number} is no {what} of a class")),
            None => Ok(()),
        }
    }
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
