//! The statistics of a study: means over seeds with 95 % intervals, and differences from the baseline, seed by seed.

use super::plan::Plan;
use super::student::{beyond, quantile};
use crate::metrics::Direction;
use crate::reproduce::curve::{Results, mean_and_sem};
use crate::reproduce::judge::better;
use crate::reproduce::verdict::{Difference, ENOUGH_SEEDS, Verdict};

/// The level of all intervals.
pub const LEVEL: f64 = 0.95;

/// The mean of some values, with the interval in which the mean over all seeds lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number of values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, with n − 1; `None` for one value.
    pub sd: Option<f64>,
    /// Half the width of the interval, t·sd/√n with Student's t of n − 1 degrees of freedom; `None` for one value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from the values of all seeds; `None` without a value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let (mean, sem) = mean_and_sem(values);
        let half_width = sem.map(|sem| quantile(LEVEL, n - 1) * sem);
        (n > 0).then_some(Self { n, mean, sd: sem.map(|sem| sem * (n as f64).sqrt()), half_width })
    }

    /// The ends of the interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half_width.map(|half| (self.mean - half, self.mean + half))
    }
}

/// The difference from the baseline over the seeds that both have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The mean difference with its interval, which is `None` where `p` is.
    pub estimate: Estimate,
    /// The p-value of the paired t-test, two-sided; `None` for fewer than [`ENOUGH_SEEDS`] seeds, and where all differences
    /// are equal: a standard error of 0 is chance, or no seed changes the metric.
    pub p: Option<f64>,
    /// How far the variant is from the baseline, in words: [`BETTER`], [`WORSE`], [`DIFFERS`] or others.
    pub verdict: &'static str,
}

impl Paired {
    /// The difference of two variants' values by seed; `None` without a seed in common.
    pub fn of(own: &[(u64, f64)], baseline: &[(u64, f64)], better: Option<Direction>) -> Option<Self> {
        let partner = |seed: u64| baseline.iter().find(|(other, _)| *other == seed).map(|(_, value)| value);
        let pairs: Vec<(f64, f64)> = own.iter().filter_map(|(seed, value)| Some((*value, *partner(*seed)?))).collect();
        let values: Vec<f64> = pairs.iter().map(|(own, baseline)| own - baseline).collect();
        let all = Estimate::of(&values)?;
        // Equal differences of other values differ by their rounding.
        let rounding = f64::EPSILON * pairs.iter().fold(0.0, |largest: f64, (a, b)| largest.max(a.abs()).max(b.abs()));
        let sem = mean_and_sem(&values).1.filter(|sem| all.n >= ENOUGH_SEEDS && *sem > rounding);
        let estimate = Estimate { half_width: all.half_width.filter(|_| sem.is_some()), ..all };
        let p = sem.map(|sem| beyond(estimate.mean / sem, estimate.n - 1));
        Some(Self { estimate, p, verdict: verdict(Difference::of(own, baseline), better) })
    }
}

/// The verdict on a difference in the better direction of the metric. An interval of few seeds may contain 0 all the same.
pub const BETTER: &str = "better by over 2 SE";
/// The verdict on a difference in the other direction.
pub const WORSE: &str = "worse by over 2 SE";
/// The verdict on a difference in a metric without a better direction.
pub const DIFFERS: &str = "differs by over 2 SE";

/// The verdict on differences of fewer than three seeds.
pub const FEW_SEEDS: &str = "too few seeds";

/// The project's rule: a difference counts beyond two standard errors, over three seeds or more.
fn verdict(difference: Difference, better: Option<Direction>) -> &'static str {
    let signed = if better == Some(Direction::LowerIsBetter) { difference.reversed() } else { difference };
    match (Verdict::of_order([signed]), better) {
        (Verdict::Confirmed, Some(_)) => BETTER,
        (Verdict::Contradicted, Some(_)) => WORSE,
        (Verdict::Confirmed | Verdict::Contradicted, None) => DIFFERS,
        (Verdict::Agrees | Verdict::WithinError, _) => "within 2 SE",
        (Verdict::FewSeeds { .. }, _) => FEW_SEEDS,
        _ => "no value",
    }
}

/// A metric of the runs of one variant in one setting.
#[derive(Clone, Debug)]
pub struct Row {
    /// The setting, by its index in [`Plan::settings`].
    pub setting: usize,
    /// The variant of the compared axis.
    pub variant: usize,
    /// The metric, by its index in [`Plan::metrics`].
    pub metric: usize,
    /// The values by seed.
    pub values: Vec<(u64, f64)>,
    /// Their mean; `None` without a run that has a value.
    pub estimate: Option<Estimate>,
    /// The difference from the baseline; `None` for the baseline itself, and where there is none.
    pub difference: Option<Paired>,
}

/// All rows, metric by metric, in each setting by setting.
pub fn rows(plan: &Plan<'_>, results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (metric, name) in plan.metrics.iter().enumerate() {
        for setting in 0..plan.settings.len() {
            let values = |variant: usize| -> Vec<(u64, f64)> {
                let kept = results.kept[plan.cell(setting, variant)].iter();
                kept.filter_map(|(seed, kept)| Some((*seed, kept.result(name)?))).collect()
            };
            for variant in 0..plan.study.compared().variants.len() {
                let own = values(variant);
                let baseline = plan.study.baseline.filter(|baseline| *baseline != variant);
                let plain: Vec<f64> = own.iter().map(|(_, value)| *value).collect();
                rows.push(Row {
                    setting,
                    variant,
                    metric,
                    estimate: Estimate::of(&plain),
                    difference: baseline.and_then(|baseline| Paired::of(&own, &values(baseline), better(name))),
                    values: own,
                });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [f64; 5] = [0.93, 0.95, 0.91, 0.94, 0.96];
    const B: [f64; 5] = [0.90, 0.94, 0.92, 0.90, 0.93];

    fn by_seed(values: &[f64]) -> Vec<(u64, f64)> {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn intervals_and_paired_tests_are_those_of_scipy() {
        // scipy 1.17.1: numpy.mean, numpy.std(ddof=1), stats.t.interval(0.95, 4, mean, stats.sem), stats.ttest_rel.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} and {b}");
        let own = Estimate::of(&A).unwrap();
        near(own.mean, 0.938);
        near(own.sd.unwrap(), 0.01923538406167131);
        near(own.interval().unwrap().0, 0.9141161161190002);
        near(own.interval().unwrap().1, 0.9618838838809997);
        let paired = Paired::of(&by_seed(&A), &by_seed(&B), Some(Direction::HigherIsBetter)).unwrap();
        near(paired.estimate.mean, 0.02);
        near(paired.estimate.interval().unwrap().0, -0.004833279964075277);
        near(paired.estimate.interval().unwrap().1, 0.044833279964075226);
        near(paired.p.unwrap(), 0.08900934250008571);
        // t = 2.236: beyond two standard errors, and within the interval by t of four degrees of freedom.
        assert_eq!(paired.verdict, "better by over 2 SE");
    }

    #[test]
    fn the_verdict_is_that_of_the_metric_s_better_direction() {
        let verdict = |a: &[f64], b: &[f64], better| Paired::of(&by_seed(a), &by_seed(b), better).unwrap().verdict;
        let (high, low) = (Some(Direction::HigherIsBetter), Some(Direction::LowerIsBetter));
        assert_eq!((verdict(&A, &B, low), verdict(&B, &A, low)), (WORSE, BETTER));
        assert_eq!((verdict(&B, &A, high), verdict(&A, &B, None)), (WORSE, DIFFERS));
        assert_eq!(verdict(&[0.0, 1.0, 2.0], &[0.0; 3], high), "within 2 SE");
        assert_eq!(verdict(&A[..2], &B[..2], high), FEW_SEEDS);
    }

    #[test]
    fn one_seed_has_no_interval_and_equal_or_few_differences_have_neither_interval_nor_p() {
        let one = Estimate::of(&[2.0]).unwrap();
        assert_eq!((one.n, one.sd, one.interval()), (1, None, None));
        assert_eq!(Estimate::of(&[]), None);
        let higher = Some(Direction::HigherIsBetter);
        let paired = |a: &[f64], b: &[f64]| Paired::of(&by_seed(a), &by_seed(b), higher).unwrap();
        let blank = |paired: Paired| paired.estimate.interval().is_none() && paired.p.is_none();
        assert!(blank(paired(&A, &A)) && blank(paired(&A[..2], &B[..2])));
        assert!(!blank(paired(&A[..3], &B[..3])));
        let shifted = paired(&[2.0; 3], &[1.0; 3]);
        assert!(blank(shifted) && shifted.verdict == BETTER);
        // 0.3 − 0.2 and 0.2 − 0.1 are not the same number.
        assert!(blank(paired(&[0.2, 0.3, 0.4], &[0.1, 0.2, 0.3])));
    }

    #[test]
    fn only_seeds_that_both_have_are_paired() {
        let paired = Paired::of(&[(1, 3.0), (2, 5.0), (4, 9.0)], &[(2, 1.0), (4, 3.0), (5, 7.0)], None).unwrap();
        assert_eq!((paired.estimate.n, paired.estimate.mean), (2, 5.0));
        assert_eq!(Paired::of(&[(1, 3.0)], &[(2, 1.0)], None), None);
    }
}
