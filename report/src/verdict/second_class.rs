//! Whether the probabilities of the second of two classes are right on average, and how extreme they are.

use super::notable::NOTABLE;
use crate::metrics::{Estimate, Interval, ScoredClasses, design_effect};
use crate::text::{percent, points};

/// The probabilities of the second of two classes.
#[derive(Debug, Clone)]
pub(crate) struct SecondClass {
    /// Its name.
    pub name: String,
    /// The number of rows n; of clusters, of the independent rows that tell as much of the difference.
    pub independent: f64,
    /// The mean of the probability, less the share of rows of the class.
    pub difference: f64,
    /// The standard error of that difference: of calibrated probabilities, or where their variance is not known, of the rows.
    pub standard_error: f64,
    /// The share of rows of the class, where it is known.
    pub share: Option<f64>,
    /// The calibration slope, where it is known.
    pub slope: Option<Estimate>,
}

/// The level at which a difference of the second class or its slope counts. Above the 95 % of the gap, so that three
/// questions find little more by chance than one.
const SECOND_LEVEL: f64 = 0.99;
/// The smallest distance of the slope from 1 that is reported.
const NOTABLE_SLOPE: f64 = 0.1;
/// The smallest difference that is reported of a rare class, as a part of its share.
const NOTABLE_PART: f64 = 0.25;

/// The smallest difference in rows of the class that counts, −ln 0.005: so many are expected where none comes with a
/// probability of 0.005, and for fewer the normal distribution of the difference is no guide.
const FEWEST_TOO_MANY: f64 = 5.3;

impl SecondClass {
    /// What sums over so many rows tell, from the sums' mean difference and Brier score.
    ///
    /// # Arguments
    /// * `independent`: the number of independent rows that tell as much of the difference
    pub fn of_sums(name: String, (rows, independent): (usize, f64), difference: f64, brier: f64) -> Self {
        let of_one = rows as f64 / (rows.max(2) - 1) as f64 * (0.5 * brier - difference.powi(2)).max(0.0);
        let variance = of_one / independent;
        Self { name, independent, difference, standard_error: variance.sqrt(), share: None, slope: None }
    }

    /// What single rows tell.
    pub fn of_rows(scored: &ScoredClasses<'_>, name: impl FnOnce() -> String) -> Option<Self> {
        let slope = scored.recalibration()?.slope;
        let is_second = |label: usize| f64::from(u8::from(label == 1));
        let share = scored.mean(|_, label| is_second(label))?;
        let difference = scored.mean(|row, _| row[1])? - share;
        let differences = scored.rows().map(|(row, label)| row[1] - is_second(label)).enumerate();
        let independent = scored.len() as f64 / design_effect(scored.clusters(), differences);
        let standard_error = (scored.mean(|row, _| row[1] * (1.0 - row[1]))? / independent).sqrt();
        let share = Some(share);
        Some(Self { name: name(), independent, difference, standard_error, share, slope })
    }

    /// Whether the probability is too high or too low on average: beyond chance, and by no small amount.
    pub fn is_shifted(&self) -> bool {
        let rare = self.share.map_or(f64::INFINITY, |share| NOTABLE_PART * share.min(1.0 - share));
        let Self { difference, standard_error, .. } = *self;
        let Interval { lo, hi } = Estimate { value: difference, standard_error }.interval(SECOND_LEVEL);
        let rows = difference.abs() * self.independent;
        (lo > 0.0 || hi < 0.0) && rows >= FEWEST_TOO_MANY && difference.abs() >= NOTABLE.min(rare)
    }

    /// The slope, where it is beyond chance and no small amount from 1.
    pub fn notable_slope(&self) -> Option<Estimate> {
        let is_notable = |slope: &Estimate| {
            let Interval { lo, hi } = slope.interval(SECOND_LEVEL);
            (lo > 1.0 || hi < 1.0) && (slope.value - 1.0).abs() >= NOTABLE_SLOPE
        };
        self.slope.filter(is_notable)
    }

    /// The headline where it is shifted.
    pub fn headline(&self) -> String {
        let direction = if self.difference > 0.0 { "too high" } else { "too low" };
        format!(
            "Biased: the probability of `{}` is {direction} by {:.1} points on average",
            self.name,
            100.0 * self.difference.abs()
        )
    }

    /// What the headline rests on.
    pub fn sentence(&self) -> String {
        match self.share {
            Some(share) => format!(
                "The mean probability of `{}` is {}, and {} of the rows are of this class.",
                self.name,
                percent(share + self.difference),
                percent(share)
            ),
            None => format!(
                "The mean probability of `{}` is {} points from the share of rows of this class.",
                self.name,
                points(self.difference)
            ),
        }
    }
}
