//! All numbers of a regression report, computed once; its fields are those of `report.json`.

use serde::Serialize;

use crate::metrics::{
    COVERAGE_LEVELS, CoverageRow, LevelCalibration, MetricError, RegressionPredictions, ScoredTargets, coverage_table,
    interval_calibration, level_grid, pit_histogram, quantile_calibration,
};
use crate::overall::Overall;
use crate::verdict::CalibrationVerdict;

/// Bins of the PIT histogram.
const PIT_BINS: usize = 20;
/// Levels of the calibration curves, 0 and 1 included.
const LEVELS: usize = 100;

/// All numbers of a regression report, on the scale of the data.
#[derive(Debug, Clone, Serialize)]
pub struct RegressionAnalysis {
    /// The headline in words.
    pub verdict: CalibrationVerdict,
    /// Particles of the predictive.
    #[serde(skip)]
    pub particles: usize,
    /// The headline numbers.
    pub overall: Overall,
    /// Central intervals against the data.
    pub coverage: Vec<CoverageRow>,
    /// Counts of the PIT values in equal-width bins.
    pub pit_histogram: Vec<usize>,
    /// Levels against the share of PIT values below them.
    pub quantile_calibration: LevelCalibration,
    /// Levels against the share of targets in the central interval.
    pub interval_calibration: LevelCalibration,
}

impl RegressionAnalysis {
    pub(super) fn new(predictions: &RegressionPredictions, bins: usize) -> Result<Self, MetricError> {
        let scored = ScoredTargets::new(predictions);
        let pit = scored.pit();
        let sizes = vec![("particles", predictions.particles())];
        // The number of bins of a classification report does not apply, but a nonsensical one is
        // still refused.
        pit_histogram(pit, bins)?;
        let coverage = coverage_table(predictions, &COVERAGE_LEVELS)?;
        Ok(Self {
            verdict: CalibrationVerdict::of_intervals(&coverage, predictions.rows()),
            particles: predictions.particles(),
            overall: Overall::new(predictions.rows(), sizes, |metric| {
                metric.targets.filter(|of| !of.meaning.is_empty()).map(|of| (of.of)(&scored))
            }),
            coverage,
            pit_histogram: pit_histogram(pit, PIT_BINS)?,
            quantile_calibration: quantile_calibration(pit, &level_grid(LEVELS)),
            interval_calibration: interval_calibration(pit, &level_grid(LEVELS)),
        })
    }
}
