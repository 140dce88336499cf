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

impl Squares {
    /// Checks what a site tells.
    ///
    /// # Arguments
    /// - `particles`: N.
    /// - `rows`: the number of training rows of the site.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, particles: usize, rows: usize) -> Result<(), String> {
        if self.sums.len() != particles {
            return Err(format!("it tells {} sums of squared residuals, not {particles}", self.sums.len()));
        }
        if let Some(sum) = self.sums.iter().find(|sum| !(sum.is_finite() && **sum >= 0.0)) {
            return Err(format!("it tells {sum} as a sum of squared residuals"));
        }
        if self.rows == 0 || self.rows > rows {
            return Err(format!("it tells squared residuals of {} rows and has {rows} training rows", self.rows));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_squares_that_cannot_be_are_refused() {
        let checked = |sums: &[f64], rows| Squares { sums: sums.to_vec(), rows }.check(2, 10);
        assert_eq!(checked(&[0.0, 3.5], 10), Ok(()));
        for (sums, rows, word) in [
            (&[1.0][..], 5, "1 sums"),
            (&[1.0, -1e9], 5, "-1000000000"),
            (&[1.0, f64::INFINITY], 5, "inf"),
            (&[f64::NAN, 1.0], 5, "NaN"),
            (&[1.0, 1.0], 0, "0 rows"),
            (&[1.0, 1.0], usize::MAX, "10 training rows"),
        ] {
            let reason = checked(sums, rows).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
    }
}
