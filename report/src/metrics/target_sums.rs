//! Sums over the rows of a regression, in the units of the targets.

use super::calibration::{BinRule, bin_index};
use super::cluster_sums::Moments;
use super::error::MetricError;
use super::mixture::RegressionPredictions;
use super::regression::{
    COVERAGE_LEVELS, CURVE_LEVELS, LevelCalibration, PIT_BINS, crps, is_central, level_grid, log_likelihood, mae, pit,
    predictive_moments, rmse,
};
use super::sums_reader::Reader;

/// A score of a row, whose sum over rows is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetScore {
    /// Negative log density.
    Nll,
    /// Squared error of the mean.
    SquaredError,
    /// Absolute error of the mean.
    AbsoluteError,
    /// Continuous ranked probability score.
    Crps,
    /// Mean variance of the components.
    Aleatoric,
    /// Variance of the components' means.
    Epistemic,
}

use TargetScore::*;

/// The scores with their smallest values, in the order of a message. The CRPS is not negative but for rounding.
const SCORES: [(TargetScore, f64); 6] =
    [(Nll, f64::MIN), (SquaredError, 0.0), (AbsoluteError, 0.0), (Crps, f64::MIN), (Aleatoric, 0.0), (Epistemic, 0.0)];

/// The sums over rows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TargetSums {
    /// In the order of [`SCORES`].
    scores: [f64; SCORES.len()],
    /// Targets inside the central interval of each of [`COVERAGE_LEVELS`].
    covered: [f64; COVERAGE_LEVELS.len()],
    /// PIT values in equal-width bins.
    pit: [f64; PIT_BINS],
    /// Targets inside the central interval of each level of the curves.
    inside: [f64; CURVE_LEVELS],
    /// PIT values at or below each level of the curves.
    below: [f64; CURVE_LEVELS],
}

impl TargetSums {
    pub(super) fn new() -> Self {
        Self {
            scores: [0.0; SCORES.len()],
            covered: [0.0; COVERAGE_LEVELS.len()],
            pit: [0.0; PIT_BINS],
            inside: [0.0; CURVE_LEVELS],
            below: [0.0; CURVE_LEVELS],
        }
    }

    /// The sum of a score.
    pub fn get(&self, score: TargetScore) -> f64 {
        self.scores[score as usize]
    }

    /// Number of targets inside the central interval of one of [`COVERAGE_LEVELS`]; `None` for another level.
    pub fn covered(&self, level: f64) -> Option<f64> {
        COVERAGE_LEVELS.iter().position(|of| *of == level).map(|at| self.covered[at])
    }

    /// Counts of the PIT values in equal-width bins.
    pub fn pit_histogram(&self) -> Vec<usize> {
        self.pit.iter().map(|count| *count as usize).collect()
    }

    /// Levels against the share of PIT values at or below them, and against the share of targets in the central
    /// interval.
    pub fn curves(&self, rows: usize) -> [LevelCalibration; 2] {
        let levels = level_grid(CURVE_LEVELS);
        [&self.below, &self.inside].map(|counts| {
            let shares = counts.iter().map(|count| count / rows.max(1) as f64);
            LevelCalibration::of_curve(levels.iter().copied().zip(shares).collect())
        })
    }

    /// Adds rows.
    ///
    /// # Arguments
    /// * `each`: is called with each row and its [numbers](Self::moments)
    ///
    /// # Errors
    /// A score that is not finite.
    pub(super) fn add(
        &mut self,
        predictions: &RegressionPredictions<'_>,
        mut each: impl FnMut(usize, &[f64]),
    ) -> Result<(), MetricError> {
        let rows = predictions.rows() as f64;
        let moments = predictive_moments(predictions);
        let sum = |mean: Option<f64>| mean.map_or(f64::NAN, |mean| mean * rows);
        let added = [
            -sum(log_likelihood(predictions)),
            sum(rmse(predictions).map(|rmse| rmse * rmse)),
            sum(mae(predictions)),
            sum(crps(predictions)),
            moments.aleatoric.iter().sum(),
            moments.epistemic.iter().sum(),
        ];
        if let Some(index) = added.iter().position(|value: &f64| !value.is_finite()) {
            return Err(MetricError::NotFinite { what: "score", index, value: added[index] });
        }
        self.scores.iter_mut().zip(added).for_each(|(sum, more)| *sum += more);
        let levels = level_grid(CURVE_LEVELS);
        for (row, pit) in pit(predictions).into_iter().enumerate() {
            each(row, &COVERAGE_LEVELS.map(|level| f64::from(u8::from(is_central(pit, level)))));
            self.pit[bin_index(pit, PIT_BINS, BinRule::UpperClosed)] += 1.0;
            count(&mut self.covered, &COVERAGE_LEVELS, |level| is_central(pit, level));
            count(&mut self.inside, &levels, |level| is_central(pit, level));
            count(&mut self.below, &levels, |level| pit <= level);
        }
        Ok(())
    }

    /// The smallest value of each number of a row that is added up by clusters.
    pub(super) fn least() -> &'static [f64] {
        &[0.0; COVERAGE_LEVELS.len()]
    }

    /// The sums over rows of the numbers that are added up by clusters: for each of [`COVERAGE_LEVELS`] 1 where the target lies
    /// inside the central interval.
    pub(super) fn moments(&self) -> Vec<Moments> {
        self.covered.iter().map(|count| Moments::of_count(*count)).collect()
    }

    /// Adds other sums.
    pub(super) fn merge(&mut self, other: &Self) {
        self.parts_mut().into_iter().flatten().zip(other.parts().concat()).for_each(|(sum, more)| *sum += more);
    }

    /// Appends the sums to a message.
    pub(super) fn write(&self, to: &mut Vec<f64>) {
        to.extend(self.parts().concat());
    }

    fn parts(&self) -> [&[f64]; 5] {
        [&self.scores, &self.covered, &self.pit, &self.inside, &self.below]
    }

    fn parts_mut(&mut self) -> [&mut [f64]; 5] {
        [&mut self.scores, &mut self.covered, &mut self.pit, &mut self.inside, &mut self.below]
    }

    /// The sums of a message.
    ///
    /// # Errors
    /// A value is missing, or no rows can give it.
    pub(super) fn read(&self, from: &mut Reader<'_>) -> Result<Self, MetricError> {
        let mut came = Self::new();
        for (score, smallest) in SCORES {
            let largest = if from.rows > 0.0 { f64::MAX } else { 0.0 };
            came.scores[score as usize] = from.between(smallest.max(-largest), largest)?;
        }
        let [_, counts @ ..] = came.parts_mut();
        for counts in counts {
            from.counts(counts)?;
        }
        from.together(came.pit.iter().sum(), from.rows)?;
        Ok(came)
    }
}

/// Counts a row at every level for which the condition holds.
fn count(counts: &mut [f64], levels: &[f64], holds: impl Fn(f64) -> bool) {
    for (count, level) in counts.iter_mut().zip(levels) {
        *count += f64::from(u8::from(holds(*level)));
    }
}
