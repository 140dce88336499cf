//! The headline of a report of a classification, or of a group of its rows: verdict, skill and overall metrics.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::metrics::{
    self, ClassPredictions, Clusters, MetricError, NoSkill, ScoreIntervals, ScoredClasses, score_intervals,
};
use crate::overall::Overall;
use crate::skill::Skill;
use crate::verdict::{CalibrationVerdict, SecondClass};

/// The headline of some rows: its words, and what they rest on.
pub(super) struct Headline {
    pub verdict: CalibrationVerdict,
    pub no_skill: Option<NoSkill>,
    pub intervals: ScoreIntervals,
}

pub(super) fn headline(
    predictions: &ClassPredictions<'_>,
    scored: &ScoredClasses<'_>,
    second: &str,
    resamples: usize,
    seed: u64,
) -> Result<Headline, MetricError> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let intervals = score_intervals(scored, resamples, 0.95, &mut rng)?;
    let no_skill = NoSkill::of(predictions.labels(), predictions.classes());
    let nll = metrics::nll(predictions).value;
    let skill = |accuracy| no_skill.as_ref().map_or_else(Skill::default, |of| Skill::of_classes(accuracy, nll, of));
    let second = SecondClass::of_rows(scored, || second.to_owned());
    let (clusters, gap) = (scored.clusters().map(Clusters::count), intervals.get("signed_gap"));
    let verdict = CalibrationVerdict::of_classes(scored.top(), clusters, gap, second.as_ref(), skill);
    Ok(Headline { verdict, no_skill, intervals })
}

pub(super) fn overall(scored: &ScoredClasses<'_>, bins: usize) -> Overall {
    let clusters = scored.clusters().map(|clusters| ("clusters", clusters.count()));
    let sizes = clusters.into_iter().chain([("classes", scored.classes()), ("bins", bins)]).collect();
    Overall::new(scored.len(), sizes, |metric| {
        metric.classes.filter(|of| !of.meaning.is_empty()).map(|of| (of.of)(scored))
    })
}
