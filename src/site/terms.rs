//! The terms of a run, which a server sends to every site before the first round.

use serde::{Deserialize, Serialize};

use super::Tell;
use super::check::is_formula;
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
    /// Checks the names, the weights and the frequencies of the classes.
    ///
    /// # Errors
    /// A name is a formula for a spreadsheet, in which the site may open its predictions; or there is not one number for each
    /// class, or one is negative or not finite.
    pub fn check_classes(&self) -> Result<(), String> {
        if let Some(at) = self.card.classes.iter().flatten().position(|name| is_formula(name)) {
            return Err(format!("the name of class {at}, from 0, is a formula for a spreadsheet"));
        }
        self.check_numbers(self.class_weights.as_deref(), "weight")?;
        let prior = self.class_prior.as_ref();
        self.check_numbers(prior.map(|prior| &*prior.learned), "frequency")?;
        self.check_numbers(prior.map(|prior| &*prior.pseudo_rows), "number of rows")
    }

    /// Checks that a site may train with the weights and the frequencies of the classes: it tells how many rows of each class it
    /// has; the weights are those of balanced classes for some numbers of rows that have this site's among them; and its rows
    /// weigh as enough equal ones do. With other weights, rows of a rare class would stand alone in what the site sends.
    ///
    /// # Arguments
    /// - `tell`: what the site may tell.
    /// - `own`: the number of the site's training rows of each class, `[C]`.
    ///
    /// # Errors
    /// A sentence that names the key of the site, or the first class whose weight is wrong.
    pub fn check_weights(&self, tell: Tell, own: &[usize]) -> Result<(), String> {
        if !tell.class_counts && (self.class_weights.is_some() || self.class_prior.is_some()) {
            let what = "the server sends weights or frequencies of classes";
            return Err(format!("{what}, and this site tells no numbers of rows of its classes (tell.class_counts)"));
        }
        let Some(weights) = &self.class_weights else { return Ok(()) };
        let all: f64 = self.roster.iter().map(|rows| *rows as f64).sum();
        let held = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
        let mut sum = 0.0;
        for (class, (weight, own)) in weights.iter().zip(own).enumerate() {
            // w_c = n/(C·n_c)
            let rows = if *weight > 0.0 { all / (held * weight) } else { 0.0 };
            let is_whole = (rows - rows.round()).abs() <= 1e-6 * rows.max(1.0);
            if !is_whole || rows.round() < *own as f64 {
                return Err(format!(
                    "the server's weight {weight} of class {class} is that of {rows} of all {all} rows, of which this site has {own}"
                ));
            }
            sum += rows.round();
        }
        if sum != all {
            return Err(format!("the server's weights of classes are those of {sum} rows, and there are {all}"));
        }
        // (Σ w)²/Σ w²: so many rows of equal weight have a mean as uncertain as these.
        let sum_of = |power: i32| -> f64 { weights.iter().zip(own).map(|(w, own)| *own as f64 * w.powi(power)).sum() };
        let equal = sum_of(1).powi(2) / sum_of(2);
        match equal >= tell.min_rows as f64 {
            true => Ok(()),
            false => Err(format!(
                "with the weights of its classes this site's rows count as {equal:.1} equal ones, fewer than tell.min_rows = {}: \
                 those of a rare class would stand nearly alone in what it sends",
                tell.min_rows
            )),
        }
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
    use ndarray::array;

    use super::*;
    use crate::datasets::{Dataset, FeatureScale, Normalisation, Targets};

    #[test]
    fn weights_are_those_of_balanced_classes_at_sites_that_tell_their_counts() {
        // 300 rows of all clients, 100, 190 and 10 of the classes, of which this site has 20, 30 and 1.
        let own = [20, 30, 1];
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let data = Dataset::new("t", array![[0.0]], Targets::Classes { labels: vec![0], names }).unwrap();
        let card = ModelCard::of(&data, Normalisation { features: FeatureScale::Identity, target: None });
        let terms = |class_weights: &[f64]| Terms {
            card: card.clone(),
            config: String::new(),
            roster: vec![51, 249],
            class_weights: Some(class_weights.to_vec()),
            class_prior: None,
        };
        let balanced = |counts: [f64; 3]| counts.map(|count| 300.0 / (3.0 * count));
        let tell = |class_counts, min_rows| Tell {
            categories: false,
            class_counts,
            min_rows,
            products: false,
            statistics: true,
        };
        let check = |weights: [f64; 3]| terms(&weights).check_weights(tell(true, 10), &own);
        assert_eq!(check(balanced([100.0, 190.0, 10.0])), Ok(()));
        // Weights of 1, 0.526 and 10: (20 + 15.8 + 10)²/(20 + 8.3 + 100) = 16.3 equal rows.
        let few = terms(&balanced([100.0, 190.0, 10.0])).check_weights(tell(true, 17), &own).unwrap_err();
        assert!(few.contains("count as 16.3 equal ones, fewer than tell.min_rows = 17"), "{few}");
        // A server that invents many rows elsewhere.
        let invented = Terms { roster: vec![51, 1_000_000_000], ..terms(&[1.0; 3]) };
        let rare = [5e8, 5e8 + 50.0, 1.0].map(|count| 1_000_000_051.0 / (3.0 * count));
        let alone = Terms { class_weights: Some(rare.to_vec()), ..invented }.check_weights(tell(true, 2), &own);
        assert!(alone.as_ref().is_err_and(|reason| reason.contains("count as 1.0 equal ones")), "{alone:?}");
        for (weights, word) in [
            // The class of one row alone, or as good as that.
            ([0.0, 0.0, 1.0], "class 0 is that of 0 of"),
            ([1e-9, 1e-9, 1.0], "and there are 300"),
            ([1.0, 1.0, 1e9], "class 2"),
            // Fewer rows than the site has, parts of a row, and another number of rows in all.
            (balanced([19.0, 271.0, 10.0]), "class 0"),
            (balanced([100.5, 189.5, 10.0]), "class 0"),
            (balanced([100.0, 180.0, 10.0]), "those of 290 rows, and there are 300"),
        ] {
            let reason = check(weights).unwrap_err();
            assert!(reason.contains(word), "{reason}");
        }
        let silent = terms(&balanced([100.0, 190.0, 10.0])).check_weights(tell(false, 1), &own).unwrap_err();
        assert!(silent.contains("tell.class_counts"), "{silent}");
        let prior = ClassPrior { learned: vec![0.2; 3], pseudo_rows: vec![1.0; 3] };
        let with_prior = Terms { class_weights: None, class_prior: Some(prior), ..terms(&[1.0; 3]) };
        assert!(
            with_prior.check_weights(tell(false, 1), &own).is_err()
                && with_prior.check_weights(tell(true, 1), &own).is_ok()
        );
    }

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
