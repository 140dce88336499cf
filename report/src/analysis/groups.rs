//! The numbers of each group of rows: the first ones of a report on its rows alone.

use std::cmp::Ordering;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;

use super::{class_headline, target_headline};
use crate::groups::Groups;
use crate::metrics::{
    Calibration, ClassPredictions, CoverageRow, Metric, MetricError, RegressionPredictions, ScoreIntervals,
    ScoredClasses, ScoredTargets, target_intervals,
};
use crate::overall::Overall;
use crate::report::{Content, Report};
use crate::site_scores::{SiteScores, badness};
use crate::skill::Skill;
use crate::verdict::CalibrationVerdict;

/// The numbers of the rows of one group.
#[derive(Debug, Clone, Serialize)]
pub struct GroupAnalysis {
    /// Its name.
    pub name: String,
    /// The headline in words.
    pub verdict: CalibrationVerdict,
    /// The headline numbers.
    pub overall: Overall,
    /// Intervals of the headline numbers, with as many resamples as the whole report has.
    pub confidence_intervals: ScoreIntervals,
}

impl GroupAnalysis {
    /// The numbers of a site or client, whose rows are not known one by one.
    pub(crate) fn of_scores(scores: &SiteScores) -> Self {
        let of = &scores.evaluation;
        let (is_regression, clusters) = (of.rmse.is_some(), scores.clusters.as_ref());
        let count = clusters.map(|clusters| clusters.count);
        let effect = |level: f64| {
            let key = if level == 0.5 { "coverage_50" } else { "coverage_90" };
            clusters.and_then(|clusters| clusters.independent(key)).map_or(1.0, |rows| of.rows as f64 / rows)
        };
        let coverage = |level, share: Option<f64>| Some(CoverageRow { level, coverage: share?, mean_width: None });
        let verdict = match is_regression {
            true => CalibrationVerdict::of_intervals(
                &Vec::from_iter(coverage(0.5, of.coverage_50).into_iter().chain(coverage(0.9, of.coverage_90))),
                of.rows,
                count.map(|count| (count, &effect as &dyn Fn(f64) -> f64)),
                (None, None),
                Skill::default(),
            ),
            // Of one cluster there is no interval.
            false if scores.gap_interval.is_none() && (count.is_none() || scores.bins.is_empty()) => {
                CalibrationVerdict::unknown()
            }
            false => CalibrationVerdict::of_classes(
                &Calibration::new(scores.bins.clone()),
                count,
                scores.gap_interval,
                None,
                |_| Skill::default(),
            ),
        };
        let shown = |metric: &Metric| match is_regression {
            true => metric.targets.is_some(),
            false => metric.classes.is_some(),
        };
        Self {
            name: scores.name.clone(),
            verdict,
            overall: Overall::new(of.rows, Vec::from_iter(count.map(|count| ("clusters", count))), |metric| {
                shown(metric).then(|| of.value(metric))
            }),
            confidence_intervals: scores.intervals(),
        }
    }
}

/// The headline numbers of every group that has rows, in the order of the groups; none without groups.
///
/// # Errors
/// There are not as many groups as rows, or rows are not known one by one, or a number of bins outside the accepted range.
pub(super) fn overall(report: &Report<'_>) -> Result<Vec<(String, Overall)>, MetricError> {
    let Some(groups) = report.groups else { return Ok(Vec::new()) };
    match &report.content {
        Content::Classification { predictions, .. } => of_each(groups, predictions.len(), |rows| {
            let predictions = predictions.select(rows)?;
            Ok(class_headline::overall(&ScoredClasses::of_predictions(&predictions, report.bins)?, report.bins))
        }),
        Content::Regression { predictions } => of_each(groups, predictions.rows(), |rows| {
            target_headline::overall(&ScoredTargets::new(&predictions.select(rows)?), report.bins)
        }),
        Content::Sums { .. } => Err(MetricError::GroupsOfSums),
    }
}

/// The numbers of every group of a classification; `second` is the name of the second of two classes, and `resamples` of the
/// rows of a group give its intervals.
///
/// # Errors
/// As [`overall`].
pub(super) fn of_classes(
    predictions: &ClassPredictions<'_>,
    groups: &Groups,
    second: &str,
    bins: usize,
    resamples: usize,
    seed: u64,
) -> Result<Vec<GroupAnalysis>, MetricError> {
    let found = of_each(groups, predictions.len(), |rows| {
        let predictions = predictions.select(rows)?;
        let scored = ScoredClasses::of_predictions(&predictions, bins)?;
        let headline = class_headline::headline(&predictions, &scored, second, resamples, seed)?;
        Ok((headline, class_headline::overall(&scored, bins)))
    })?;
    let group = |(name, (headline, overall)): (String, (class_headline::Headline, Overall))| GroupAnalysis {
        name,
        verdict: headline.verdict,
        overall,
        confidence_intervals: headline.intervals,
    };
    Ok(ordered(groups, found.into_iter().map(group).collect()))
}

/// The numbers of every group of a regression; `resamples` of the rows of a group give its intervals.
///
/// # Errors
/// As [`overall`].
pub(super) fn of_targets(
    predictions: &RegressionPredictions<'_>,
    groups: &Groups,
    bins: usize,
    resamples: usize,
    seed: u64,
) -> Result<Vec<GroupAnalysis>, MetricError> {
    let found = of_each(groups, predictions.rows(), |rows| {
        let predictions = predictions.select(rows)?;
        let scored = ScoredTargets::new(&predictions);
        let intervals = target_intervals(&scored, resamples, 0.95, &mut ChaCha8Rng::seed_from_u64(seed))?;
        Ok((target_headline::verdict(&scored), target_headline::overall(&scored, bins)?, intervals))
    })?;
    let group = |(name, (verdict, overall, confidence_intervals))| GroupAnalysis {
        name,
        verdict,
        overall,
        confidence_intervals,
    };
    Ok(ordered(groups, found.into_iter().map(group).collect()))
}

/// The groups in the order in which they are shown.
fn ordered(groups: &Groups, mut found: Vec<GroupAnalysis>) -> Vec<GroupAnalysis> {
    if groups.are_worst_first() {
        let of = |group: &GroupAnalysis| {
            let GroupAnalysis { overall, confidence_intervals: intervals, .. } = group;
            let independent = overall.size("clusters").unwrap_or(overall.n);
            badness(independent, (intervals.get("signed_gap"), intervals.get("coverage_90")), overall.get("nll"))
        };
        found.sort_by(|a, b| of(b).partial_cmp(&of(a)).unwrap_or(Ordering::Equal));
    }
    found
}

/// A function of the rows of each group, with the group's name. One group is copied at a time.
fn of_each<T>(
    groups: &Groups,
    rows: usize,
    of: impl Fn(&[usize]) -> Result<T, MetricError>,
) -> Result<Vec<(String, T)>, MetricError> {
    if groups.rows() != rows {
        return Err(MetricError::Length { what: "groups", got: groups.rows(), expected: rows });
    }
    groups.rows_of_each().map(|(name, rows)| Ok((name.to_owned(), of(&rows)?))).collect()
}
