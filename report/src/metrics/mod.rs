//! Metrics of probabilistic predictions: host slices in, `f64` numbers out, no tensors.
//!
//! Every definition is fixed here once and printed in the report: bins are `(lo, hi]`, ties of the
//! argmax go to the lowest class, the top-label confidence is used for two classes too, the NLL is
//! floored at [`PROBABILITY_FLOOR`]. A number that has no value (an empty bin, an AUROC of one
//! class) is `None`; NaN and infinities never leave this module.
//!
//! ```
//! use fedstein_report::metrics::{ClassPredictions, Evaluation};
//!
//! let predictions = ClassPredictions::new(vec![0, 1], 2, vec![0.9, 0.1, 0.4, 0.6])?;
//! let evaluation = Evaluation::of_predictions(&predictions, 15)?;
//! assert_eq!(evaluation.accuracy, Some(1.0));
//! // Right both times, but only 90 % and 60 % sure: under-confident by 25 points.
//! assert!(evaluation.signed_gap.is_some_and(|gap| (gap + 0.25).abs() < 1e-12));
//! # Ok::<(), fedstein_report::metrics::MetricError>(())
//! ```

mod bootstrap;
mod calibration;
mod catalogue;
mod class_sums;
mod classification;
mod client_scores;
mod cluster_sums;
mod clusters;
mod confusion;
mod decision;
mod divergence;
mod ece_interval;
mod error;
mod evaluation;
mod federated;
mod golden_section;
mod interval;
mod metric;
mod mixture;
mod no_skill;
mod normal;
mod personal;
mod predictions;
#[cfg(test)]
mod properties;
mod ranking;
mod recalibration;
mod regression;
mod report_table;
mod scored;
mod selective;
mod share;
mod sums_reader;
mod table;
mod target_sums;
mod temperature;
mod temperature_search;
mod uncertainty;
mod uncertainty_summary;

pub use bootstrap::{ScoreIntervals, percentile_bootstrap, score_intervals, target_intervals};
pub use calibration::{
    Bin, BinRule, BrierDecomposition, Calibration, MAX_BINS, binary_positive, brier_decomposition, classwise_ece,
    equal_mass, equal_width, equal_width_by,
};
pub(crate) use class_sums::ClassSums;
pub use classification::{
    ClassRow, NegativeLogLikelihood, PROBABILITY_FLOOR, accuracy, accuracy_mean_particle, brier, brier_binary,
    gibbs_nll, nll, per_class, reference_max,
};
pub use client_scores::{ClientScores, ClientScoresBuilder};
pub(crate) use cluster_sums::{ClusterSums, ClusterTally, Moments};
pub use clusters::Clusters;
pub(crate) use clusters::design_effect;
pub use confusion::{ConfusedPair, Confusion};
pub use decision::{ThresholdRow, decision_thresholds, threshold_table};
pub use divergence::Grid;
pub use error::MetricError;
pub(crate) use error::{check_finite, check_length};
pub use federated::{ClientSummary, ClientValue, Direction, standard_error, summarise_clients};
pub use golden_section::golden_section;
pub use interval::Interval;
pub use metric::{
    ClassMetric, ClassStatistic, Metric, Over, PersonalColumn, TargetMetric, TargetStatistic, Unit, View,
};
pub use mixture::{RegressionPredictions, Scale};
pub use no_skill::{NoSkill, NoSkillTargets};
pub use normal::{erf, erfc, normal_cdf, normal_pdf};
pub use personal::PersonalScores;
pub(crate) use predictions::check_labels;
pub(crate) use predictions::probability;
pub use predictions::{ClassPredictions, PROBABILITY_TOLERANCE, ParticleLogProbs, ROW_SUM_TOLERANCE, TopLabel, argmax};
pub use ranking::{Ranking, Times};
pub use recalibration::{Estimate, NoEstimate, Recalibration};
pub use regression::{
    COVERAGE_LEVELS, CoverageRow, EnsembleCrps, LevelCalibration, PredictiveMoments, coverage_table, crps,
    ensemble_crps, interval_calibration, level_grid, log_likelihood, mae, mean_error, pit, pit_histogram,
    predictive_moments, quantile, quantile_calibration, rmse, sharpness,
};
pub(crate) use regression::{CURVE_LEVELS, PIT_BINS, coverage_of_pit, errors, is_central};
pub use report_table::REPORT;
pub use scored::{ParticleMeans, ScoredClasses, ScoredTargets};
pub use selective::{aurc, auroc, fpr95, risk_coverage};
pub(crate) use share::Share;
pub use share::share_interval;
pub use table::{Evaluation, ROUND};
pub(crate) use target_sums::TargetSums;
pub use temperature::{TEMPERATURE_LIMIT, TemperatureFit, apply_temperature, fit_temperature, logits_of};
pub use temperature_search::{TemperatureSearch, TemperatureSums, temperature_sums};
pub use uncertainty::{RowUncertainty, entropy};
pub use uncertainty_summary::UncertaintySummary;
