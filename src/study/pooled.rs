//! Summaries over the variants of one axis that are a sample of more, such as clients that are left out in turn: their
//! mean, and where a further one would lie.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::student::quantile;
use super::summary::{Estimate, FEW_SEEDS, LEVEL, Paired, Row};
use crate::reproduce::judge::better;
use crate::reproduce::verdict::ENOUGH_SEEDS;

/// The verdict on differences of fewer than three variants.
const FEW_VARIANTS: &str = "too few variants";

/// A metric over all variants of the pooled axis, in one combination of the other axes' variants. Each variant counts once,
/// with its mean over seeds.
#[derive(Clone, Debug)]
pub struct Pooled {
    /// The variant of each axis, in their order; `None` for the pooled axis.
    pub place: Vec<Option<usize>>,
    /// The metric, by its index in [`Plan::metrics`].
    pub metric: usize,
    /// The mean over the variants, with the interval of the mean over all that they are a sample of.
    pub estimate: Estimate,
    /// The smallest and the largest of the variants' means.
    pub range: (f64, f64),
    /// The ends of the interval in which the value of a further variant lies; `None` for fewer than three variants.
    pub further: Option<(f64, f64)>,
    /// The difference from the baseline, paired by variant; `None` for the baseline itself, and where there is none.
    pub difference: Option<Paired>,
}

impl Pooled {
    /// The names of the variants, in the order of the axes without the pooled one.
    pub fn names<'s>(&self, plan: &Plan<'s>) -> Vec<&'s str> {
        let axes = plan.study.axes.iter().zip(&self.place);
        axes.filter_map(|(axis, at)| at.map(|at| axis.variants[at].name.as_str())).collect()
    }
}

/// The summaries of a study that pools an axis, by metric and by variants; empty for one that pools none.
pub fn pooled(plan: &Plan<'_>, rows: &[Row]) -> Vec<Pooled> {
    let Some(axis) = plan.study.pooled else { return Vec::new() };
    let mut groups: BTreeMap<(usize, Vec<Option<usize>>), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        let mut place: Vec<Option<usize>> = plan.place(row.setting, row.variant).into_iter().map(Some).collect();
        place[axis] = None;
        groups.entry((row.metric, place)).or_default().push(row);
    }
    groups.into_iter().filter_map(|((metric, place), rows)| of_group(plan, metric, place, &rows)).collect()
}

/// The summary of the rows that differ in the pooled axis alone; `None` where none has a value.
fn of_group(plan: &Plan<'_>, metric: usize, place: Vec<Option<usize>>, rows: &[&Row]) -> Option<Pooled> {
    let means: Vec<f64> = rows.iter().filter_map(|row| Some(row.estimate?.mean)).collect();
    let estimate = Estimate::of(&means)?;
    let range =
        means.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(*mean), high.max(*mean)));
    // A variant of the sample is the same client, whichever is compared: the differences are paired by it.
    let pair = |(variant, row): (u64, &&Row)| {
        let (own, difference) = (row.estimate?.mean, row.difference?.estimate.mean);
        Some(((variant, own), (variant, own - difference)))
    };
    let (own, baseline): (Vec<_>, Vec<_>) = (0..).zip(rows).filter_map(pair).unzip();
    let difference = Paired::of(&own, &baseline, better(&plan.metrics[metric])).map(|paired| match paired.verdict {
        FEW_SEEDS => Paired { verdict: FEW_VARIANTS, ..paired },
        _ => paired,
    });
    Some(Pooled { place, metric, estimate, range, further: further(&estimate), difference })
}

/// The prediction interval of a further value from the same normal distribution: mean ± t·sd·√(1 + 1/n), with Student's t of
/// n − 1 degrees of freedom. `None` for fewer than three values.
fn further(estimate: &Estimate) -> Option<(f64, f64)> {
    let Estimate { n, mean, sd, .. } = *estimate;
    let sd = sd.filter(|_| n >= ENOUGH_SEEDS)?;
    let half = quantile(LEVEL, n - 1) * sd * (1.0 + 1.0 / n as f64).sqrt();
    Some((mean - half, mean + half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::ChaCha12Rng;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn a_further_value_lies_in_the_interval_in_95_of_100_cases() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        for n in [3, 4, 10] {
            let draws = 20_000;
            let inside = (0..draws).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
                let (low, high) = further(&Estimate::of(&values).unwrap()).unwrap();
                let next: f64 = StandardNormal.sample(&mut rng);
                (low..=high).contains(&next)
            });
            // Four standard errors of a share of .95: 4·√(.95·.05/20 000) = .0062.
            let share = inside.count() as f64 / f64::from(draws);
            assert!((share - 0.95).abs() < 0.0062, "n = {n}: {share}");
        }
    }

    #[test]
    fn two_values_say_too_little_of_a_further_one() {
        assert_eq!(further(&Estimate::of(&[0.2, 0.4]).unwrap()), None);
        assert_eq!(further(&Estimate::of(&[0.2]).unwrap()), None);
    }
}
