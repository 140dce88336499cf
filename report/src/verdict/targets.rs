//! Whether the predictions of a regression are too high or too low, and whether its intervals hold wherever they are.

use super::VerdictKind;
use super::notable::FEWEST_ROWS;
use crate::metrics::{Clusters, ScoredTargets, Share, is_central, predictive_moments};
use crate::text::{number, percent, thousands};

/// The mean error of the predictions of a regression, in the unit of the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bias {
    /// The mean of prediction minus target.
    pub mean: f64,
    /// The root mean squared error.
    pub rmse: f64,
    /// The root of the mean predictive variance.
    pub sd: f64,
    /// The design effect of the mean error; 1 of independent rows.
    pub design_effect: f64,
}

/// A mean error is notable from this share of the mean squared error on, and from this many predictive standard deviations.
const NOTABLE_BIAS: (f64, f64) = (0.1, 1.0 / 3.0);

impl Bias {
    /// The standard error of the mean of n errors.
    fn standard_error(self, n: usize) -> f64 {
        let variance = (self.rmse.powi(2) - self.mean.powi(2)).max(0.0) / (n.max(2) - 1) as f64;
        (self.design_effect * variance).sqrt()
    }

    fn share(self) -> f64 {
        (self.mean / self.rmse).powi(2)
    }

    /// Whether the mean error is beyond two standard errors, and no small part of the errors and of what is predicted of them.
    pub fn is_notable(self, n: usize) -> bool {
        let (share, deviations) = NOTABLE_BIAS;
        let is_certain = n > 1 && self.mean.abs() > 2.0 * self.standard_error(n);
        is_certain && self.share() >= share && self.mean.abs() >= deviations * self.sd
    }

    fn direction(self) -> &'static str {
        if self.mean > 0.0 { "too high" } else { "too low" }
    }

    /// The headline where it is notable.
    pub fn headline(self) -> String {
        format!("Biased: the predictions are {} by {} on average", self.direction(), number(self.mean.abs()))
    }

    /// What the headline rests on.
    pub fn sentence(self, n: usize) -> String {
        format!(
            "On average the predictions are {} by {} \u{00b1} {} (one standard error), which is {} of the mean squared error.",
            self.direction(),
            number(self.mean.abs()),
            number(self.standard_error(n)),
            percent(self.share())
        )
    }
}

/// The level of the intervals that are looked at in parts.
const LEVEL: f64 = 0.9;
/// A part whose coverage is nearer to the level is not reported.
const NOTABLE_MISS: f64 = 0.05;

/// The coverage of the 90 % intervals among the rows with the lowest, the middle and the highest predictions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thirds {
    /// The share of targets in their intervals.
    pub coverage: [f64; 3],
    /// The number of independent rows that tell as much of each share.
    pub independent: [f64; 3],
    /// The number of rows of a third.
    pub rows: usize,
}

impl Thirds {
    /// The thirds of all rows by their predictive means; `None` with too few rows for each, or where rows of two thirds have the
    /// same.
    pub fn of(scored: &ScoredTargets<'_>) -> Option<Self> {
        let means = predictive_moments(scored.predictions()).mean;
        let rows = means.len() / 3;
        let mut order: Vec<usize> = (0..means.len()).collect();
        order.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
        let clusters = scored.predictions().clusters();
        let covered =
            |part: &[usize]| Share::of(clusters, part.iter().map(|&row| (row, is_central(scored.pit()[row], LEVEL))));
        let count = |part: &[usize]| clusters.map_or(part.len(), |of| Clusters::select(of, part).count());
        let (low, rest) = order.split_at_checked(rows)?;
        let (middle, high) = rest.split_at_checked(rest.len() - rows)?;
        // Rows with one prediction are not told apart by it.
        let is_below = |a: &[usize], b: &[usize]| a.last().zip(b.first()).is_some_and(|(a, b)| means[*a] < means[*b]);
        let parts = [low, middle, high];
        let are_many = parts.iter().all(|part| count(part) >= FEWEST_ROWS);
        if !(are_many && is_below(low, middle) && is_below(middle, high)) {
            return None;
        }
        let [low, middle, high] = [covered(low)?, covered(middle)?, covered(high)?];
        let independent = [low.independent, middle.independent, high.independent];
        Some(Self { coverage: [low.value, middle.value, high.value], independent, rows })
    }

    /// The third whose coverage is farthest from the level: the headline and the sentence behind it. `None` where all are within
    /// three standard errors of it, or within five points.
    pub fn worst(self) -> Option<(VerdictKind, String, String)> {
        let noise = |at: usize| 3.0 * (LEVEL * (1.0 - LEVEL) / self.independent[at]).sqrt();
        let miss = |at: usize| (self.coverage[at] - LEVEL).abs();
        let beyond = (0..3).filter(|&at| miss(at) > noise(at).max(NOTABLE_MISS));
        let worst = beyond.max_by(|&a, &b| miss(a).total_cmp(&miss(b)))?;
        let place = ["lowest", "middle", "highest"][worst];
        let found = self.coverage[worst];
        let kind = if found < LEVEL { VerdictKind::OverConfident } else { VerdictKind::UnderConfident };
        let headline = format!(
            "The 90 % intervals hold on average, and {} of the targets where predictions are {place}",
            percent(found)
        );
        let [low, middle, high] = self.coverage.map(percent);
        let sentence = format!(
            "Of the {} rows each with the lowest, middle and highest predictions they contain {low}, {middle} and {high}: the \
             predicted spread is not that of the targets everywhere.",
            thousands(self.rows)
        );
        Some((kind, headline, sentence))
    }
}
