//! All numbers of a regression report, computed once; its fields are those of `report.json`.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;

use super::groups::{self, GroupAnalysis};
use super::resamples;
use super::target_headline::{of_intervals, overall, skill};
use crate::metrics::{
    COVERAGE_LEVELS, CURVE_LEVELS, ClientScores, CoverageRow, LevelCalibration, MetricError, NoSkillTargets, PIT_BINS,
    RegressionPredictions, ScoreIntervals, ScoredTargets, TargetSums, coverage_table, interval_calibration, level_grid,
    pit_histogram, quantile_calibration, target_intervals,
};
use crate::overall::Overall;
use crate::report::Report;
use crate::skill::Skill;
use crate::verdict::CalibrationVerdict;

/// What a report of sums leaves out, and why.
const LEFT_OUT: &str = "The rows of this report stay where they are, and only sums over them are known. The mean widths of \
     the intervals are left out: they would need the quantiles of every row.";
/// What is said of chance without clusters.
const OF_ROWS: &str =
    "Rows are taken for independent: where several are of one patient, chance moves coverages by more.";
/// And with clusters.
const OF_CLUSTERS: &str = "What chance does to a coverage is that of the clusters.";

/// All numbers of a regression report, on the scale of the data.
#[derive(Debug, Clone, Serialize)]
pub struct RegressionAnalysis {
    /// The headline in words.
    pub verdict: CalibrationVerdict,
    /// The scores of one normal distribution for all rows; `None` where single rows are not known, or all targets equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_skill: Option<NoSkillTargets>,
    /// What is left out, and why, where single rows are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Particles of the predictive, where they are known.
    #[serde(skip)]
    pub particles: Option<usize>,
    /// The headline numbers.
    pub overall: Overall,
    /// Bootstrap intervals of the headline numbers; `None` where single rows are not known.
    pub confidence_intervals: Option<ScoreIntervals>,
    /// Central intervals against the data.
    pub coverage: Vec<CoverageRow>,
    /// Counts of the PIT values in equal-width bins.
    pub pit_histogram: Vec<usize>,
    /// Levels against the share of PIT values below them.
    pub quantile_calibration: LevelCalibration,
    /// Levels against the share of targets in the central interval.
    pub interval_calibration: LevelCalibration,
    /// The numbers of every group of rows; none without groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupAnalysis>,
}

impl RegressionAnalysis {
    pub(super) fn new(report: &Report<'_>, predictions: &RegressionPredictions<'_>) -> Result<Self, MetricError> {
        let scored = ScoredTargets::new(predictions);
        let pit = scored.pit();
        let overall = overall(&scored, report.bins)?;
        let coverage = coverage_table(predictions, &COVERAGE_LEVELS)?;
        let no_skill = NoSkillTargets::of(predictions.target());
        let mut rng = ChaCha8Rng::seed_from_u64(report.seed);
        let resamples = resamples(predictions.rows());
        let of_groups = |of| groups::of_targets(predictions, of, report.bins, resamples, report.seed);
        Ok(Self {
            verdict: of_intervals(&scored, &coverage, skill(&scored, no_skill.as_ref())),
            no_skill,
            left_out: None,
            particles: Some(predictions.particles()),
            overall,
            confidence_intervals: Some(target_intervals(&scored, resamples, 0.95, &mut rng)?),
            coverage,
            pit_histogram: pit_histogram(pit, PIT_BINS)?,
            quantile_calibration: quantile_calibration(pit, &level_grid(CURVE_LEVELS)),
            interval_calibration: interval_calibration(pit, &level_grid(CURVE_LEVELS)),
            groups: report.groups.map_or(Ok(Vec::new()), of_groups)?,
        })
    }

    /// The numbers that sums over at least one row give.
    pub(super) fn of_sums(scores: &ClientScores, sums: &TargetSums) -> Self {
        let rows = scores.rows();
        let share = |level| sums.covered(level).map(|count| count / rows as f64);
        let row = |level| Some(CoverageRow { level, coverage: share(level)?, mean_width: None });
        let coverage: Vec<CoverageRow> = COVERAGE_LEVELS.into_iter().filter_map(row).collect();
        let effect = |level: f64| rows as f64 / scores.independent_of_coverage(level);
        let clusters = scores.clusters().map(|count| (count, &effect as &dyn Fn(f64) -> f64));
        let sizes = clusters.iter().map(|(count, _)| ("clusters", *count)).collect();
        let [quantile_calibration, interval_calibration] = sums.curves(rows);
        Self {
            verdict: CalibrationVerdict::of_intervals(&coverage, rows, clusters, (None, None), Skill::default()),
            no_skill: None,
            left_out: Some(format!("{LEFT_OUT} {}", if clusters.is_some() { OF_CLUSTERS } else { OF_ROWS })),
            particles: None,
            overall: Overall::new(rows, sizes, |metric| {
                let shown = metric.targets.filter(|of| !of.meaning.is_empty());
                shown.map(|_| metric.sums.and_then(|of| of(scores)))
            }),
            confidence_intervals: None,
            coverage,
            pit_histogram: sums.pit_histogram(),
            quantile_calibration,
            interval_calibration,
            groups: Vec::new(),
        }
    }
}
