//! The headline of a report of a regression, or of a group of its rows: verdict, skill and overall metrics.

use crate::metrics::{
    COVERAGE_LEVELS, CoverageRow, MetricError, NoSkillTargets, ScoredTargets, coverage_of_pit, design_effect, errors,
    is_central, mean_error, pit_histogram, rmse, sharpness,
};
use crate::overall::Overall;
use crate::skill::Skill;
use crate::verdict::{Bias, CalibrationVerdict, Thirds};

/// The headline in words, without the widths of the intervals, which it does not need.
pub(super) fn verdict(scored: &ScoredTargets<'_>) -> CalibrationVerdict {
    let row = |level| CoverageRow { level, coverage: coverage_of_pit(scored.pit(), level), mean_width: None };
    let no_skill = NoSkillTargets::of(scored.predictions().target());
    let skill = skill(scored, no_skill.as_ref());
    of_intervals(scored, &COVERAGE_LEVELS.map(row), skill)
}

/// The same with the table of coverages.
pub(super) fn of_intervals(scored: &ScoredTargets<'_>, coverage: &[CoverageRow], skill: Skill) -> CalibrationVerdict {
    let clusters = scored.predictions().clusters();
    let inside =
        |level: f64| scored.pit().iter().map(move |pit| f64::from(u8::from(is_central(*pit, level)))).enumerate();
    let effect = |level: f64| design_effect(clusters, inside(level));
    let clusters = clusters.map(|clusters| (clusters.count(), &effect as &dyn Fn(f64) -> f64));
    let parts = (bias(scored), Thirds::of(scored));
    CalibrationVerdict::of_intervals(coverage, scored.pit().len(), clusters, parts, skill)
}

fn bias(scored: &ScoredTargets<'_>) -> Option<Bias> {
    let predictions = scored.predictions();
    let design_effect = design_effect(predictions.clusters(), errors(predictions).enumerate());
    Some(Bias { mean: mean_error(predictions)?, rmse: rmse(predictions)?, sd: sharpness(predictions)?, design_effect })
}

pub(super) fn skill(scored: &ScoredTargets<'_>, no_skill: Option<&NoSkillTargets>) -> Skill {
    let nll = scored.log_likelihood().map(|value| -value);
    no_skill.map_or_else(Skill::default, |of| Skill::of_targets(rmse(scored.predictions()), nll, of))
}

/// The metrics of a regression.
///
/// # Errors
/// A number of bins outside the accepted range. It does not apply here, but a nonsensical one is still refused.
pub(super) fn overall(scored: &ScoredTargets<'_>, bins: usize) -> Result<Overall, MetricError> {
    pit_histogram(scored.pit(), bins)?;
    let predictions = scored.predictions();
    let clusters = predictions.clusters().map(|clusters| ("clusters", clusters.count()));
    let sizes = clusters.into_iter().chain([("particles", predictions.particles())]).collect();
    Ok(Overall::new(predictions.rows(), sizes, |metric| {
        metric.targets.filter(|of| !of.meaning.is_empty()).map(|of| (of.of)(scored))
    }))
}
