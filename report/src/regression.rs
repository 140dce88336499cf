//! All numbers of a regression report, computed once; its fields are those of `report.json`.

use serde::Serialize;

use super::verdict::Verdict;
use crate::metrics::{
    self, COVERAGE_LEVELS, CoverageRow, LevelCalibration, MetricError, RegressionPredictions, coverage_table,
    interval_calibration, level_grid, pit_histogram, predictive_moments, quantile_calibration,
};

/// Bins of the PIT histogram.
const PIT_BINS: usize = 20;
/// Levels of the calibration curves, 0 and 1 included.
const LEVELS: usize = 100;

/// Everything that a regression report says, on the scale of the data.
#[derive(Debug, Clone, Serialize)]
pub struct RegressionAnalysis {
    /// The headline in words.
    pub verdict: Verdict,
    /// The headline numbers.
    pub overall: RegressionOverall,
    /// Central intervals against the data.
    pub coverage: Vec<CoverageRow>,
    /// Counts of the PIT values in equal-width bins.
    pub pit_histogram: Vec<usize>,
    /// Levels against the share of PIT values below them.
    pub quantile_calibration: LevelCalibration,
    /// Levels against the share of targets in the central interval.
    pub interval_calibration: LevelCalibration,
}

/// Headline numbers of a regression.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "every field is defined in `definitions` of the report, by the same name")]
pub struct RegressionOverall {
    pub n: usize,
    pub particles: usize,
    pub rmse: Option<f64>,
    pub mae: Option<f64>,
    pub nll: Option<f64>,
    pub log_likelihood: Option<f64>,
    pub crps: Option<f64>,
    pub sharpness: Option<f64>,
    pub aleatoric_sd: Option<f64>,
    pub epistemic_sd: Option<f64>,
}

impl RegressionAnalysis {
    pub(super) fn new(predictions: &RegressionPredictions, bins: usize) -> Result<Self, MetricError> {
        let pit = metrics::pit(predictions);
        // The number of bins of a classification report does not apply, but a nonsensical one is
        // still refused.
        pit_histogram(&pit, bins)?;
        let coverage = coverage_table(predictions, &COVERAGE_LEVELS)?;
        let moments = predictive_moments(predictions);
        let root_mean = |values: &[f64]| {
            let root = (values.iter().sum::<f64>() / values.len() as f64).sqrt();
            root.is_finite().then_some(root)
        };
        let log_likelihood = metrics::log_likelihood(predictions);
        Ok(Self {
            verdict: Verdict::of_intervals(&coverage, predictions.rows()),
            overall: RegressionOverall {
                n: predictions.rows(),
                particles: predictions.particles(),
                rmse: metrics::rmse(predictions),
                mae: metrics::mae(predictions),
                nll: log_likelihood.map(|value| -value),
                log_likelihood,
                crps: metrics::crps(predictions),
                sharpness: metrics::sharpness(predictions),
                aleatoric_sd: root_mean(&moments.aleatoric),
                epistemic_sd: root_mean(&moments.epistemic),
            },
            coverage,
            pit_histogram: pit_histogram(&pit, PIT_BINS)?,
            quantile_calibration: quantile_calibration(&pit, &level_grid(LEVELS)),
            interval_calibration: interval_calibration(&pit, &level_grid(LEVELS)),
        })
    }
}
