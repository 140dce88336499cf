//! The verdict on a number or an assertion of the paper.
//!
//! An order of two curves is checked by the differences seed by seed: their mean d and its standard error s over n
//! seeds. With n ≥ 3 it is *confirmed* where d has the asserted sign and |d| > 2s, *agrees* where only the sign is
//! right, is *within error* where the sign is not and |d| ≤ 2s, and *contradicted* beyond. With one or two seeds s is
//! not reliable: the verdict then states their number and the sign. A difference of exactly 0 does not have the
//! asserted sign.

use super::curve::mean_and_sem;

/// The number of seeds from which the standard error of a difference is used.
pub const ENOUGH_SEEDS: usize = 3;

/// The number of standard errors beyond which a difference counts.
const ERRORS: f64 = 2.0;

/// The verdict on a target or a claim, in the order in which the summary lists verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The number is met within its tolerance, or the order found beyond two standard errors.
    Confirmed,
    /// The order is found, within two standard errors.
    Agrees,
    /// Both curves have fewer than [`ENOUGH_SEEDS`] seeds in common.
    FewSeeds {
        /// The number of common seeds.
        seeds: usize,
        /// Whether the asserted order is found.
        agrees: bool,
    },
    /// The order is not found, within two standard errors.
    WithinError,
    /// The number is not met.
    NotConfirmed,
    /// The opposite order is found beyond two standard errors.
    Contradicted,
    /// There is no tolerance to judge by, or the runs do not have the scale of the number.
    NotJudged,
    /// The kept CSV file does not hold the numbers for a judgement.
    NeedsRun,
    /// The runs have no such number: they end before that round, or the sweep has no such value.
    NoValue,
    /// A run has not been carried out.
    NotRun,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Agrees => "agrees",
            Self::FewSeeds { seeds: 0, agrees: true } => "no common seed, agrees",
            Self::FewSeeds { seeds: 0, agrees: false } => "no common seed, contrary",
            Self::FewSeeds { seeds: 1, agrees: true } => "one seed, agrees",
            Self::FewSeeds { seeds: 1, agrees: false } => "one seed, contrary",
            Self::FewSeeds { agrees: true, .. } => "two seeds, agrees",
            Self::FewSeeds { agrees: false, .. } => "two seeds, contrary",
            Self::WithinError => "within error",
            Self::NotConfirmed => "not confirmed",
            Self::Contradicted => "contradicted",
            Self::NotJudged => "not judged",
            Self::NeedsRun => "needs a run",
            Self::NoValue => "no such value",
            Self::NotRun => "not run",
        }
    }

    /// The verdict on a number: whether the target is met, where there is a tolerance.
    pub fn of_number(met: Option<bool>) -> Self {
        match met {
            None => Self::NotJudged,
            Some(true) => Self::Confirmed,
            Some(false) => Self::NotConfirmed,
        }
    }

    /// The verdict on an order, from the differences of neighbours, each with the sign that makes the asserted order
    /// positive. The weakest difference decides: an order of three curves is confirmed where both differences are,
    /// contradicted where one is.
    pub fn of_order(differences: impl IntoIterator<Item = Difference>) -> Self {
        let weakness = |verdict: &Self| match verdict {
            Self::Confirmed => 0,
            Self::Agrees => 1,
            Self::FewSeeds { agrees: true, .. } => 2,
            Self::WithinError => 3,
            Self::FewSeeds { .. } => 4,
            Self::Contradicted => 5,
            _ => 6,
        };
        differences.into_iter().map(Difference::verdict).max_by_key(weakness).unwrap_or(Self::NoValue)
    }

    /// Whether the verdict is a judgement on a number or an order, rather than the reason why there is none.
    pub fn is_judgement(self) -> bool {
        self < Self::NotJudged
    }
}

/// The difference of two curves, paired by seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean difference; the difference of the curves' means where they have no seed in common.
    pub mean: f64,
    /// The standard error of the mean; `None` for fewer than two seeds.
    pub sem: Option<f64>,
    /// The number of common seeds.
    pub seeds: usize,
}

impl Difference {
    /// The difference of two curves, given as values by seed.
    pub fn of(a: &[(u64, f64)], b: &[(u64, f64)]) -> Self {
        let partner =
            |(seed, value): &(u64, f64)| b.iter().find(|(other, _)| other == seed).map(|(_, other)| value - other);
        let differences: Vec<f64> = a.iter().filter_map(partner).collect();
        if differences.is_empty() {
            let mean = |values: &[(u64, f64)]| values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
            return Self { mean: mean(a) - mean(b), sem: None, seeds: 0 };
        }
        let (mean, sem) = mean_and_sem(&differences);
        Self { mean, sem, seeds: differences.len() }
    }

    /// The difference with its sign reversed.
    pub fn reversed(self) -> Self {
        Self { mean: -self.mean, ..self }
    }

    /// The verdict on the assertion that the difference is positive.
    fn verdict(self) -> Verdict {
        let Self { mean, sem, seeds } = self;
        if !mean.is_finite() || sem.is_some_and(|sem| !sem.is_finite()) {
            return Verdict::NoValue;
        }
        match (sem.filter(|_| seeds >= ENOUGH_SEEDS), mean > 0.0) {
            (None, agrees) => Verdict::FewSeeds { seeds, agrees },
            (Some(sem), right) => match (right, mean.abs() > ERRORS * sem) {
                (true, true) => Verdict::Confirmed,
                (true, false) => Verdict::Agrees,
                (false, true) => Verdict::Contradicted,
                (false, false) => Verdict::WithinError,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a less b for these differences, on seeds 1, 2, ….
    fn differences(values: &[f64]) -> Difference {
        let seeds = || (1..).zip(values);
        let a: Vec<(u64, f64)> = seeds().map(|(seed, value)| (seed, 10.0 * seed as f64 + value)).collect();
        let b: Vec<(u64, f64)> = seeds().map(|(seed, _)| (seed, 10.0 * seed as f64)).collect();
        Difference::of(&a, &b)
    }

    fn verdict(values: &[f64]) -> Verdict {
        Verdict::of_order([differences(values)])
    }

    #[test]
    fn an_order_is_confirmed_beyond_two_standard_errors_over_three_seeds() {
        // The differences have mean 2, sd 1, standard error 1/√3 = .577; the seeds' own values differ by ten.
        assert_eq!(verdict(&[1.0, 2.0, 3.0]), Verdict::Confirmed);
        assert_eq!(verdict(&[-1.0, -2.0, -3.0]), Verdict::Contradicted);
        // The differences have mean 1 and sd 1, and 1 < 2·.577.
        assert_eq!(verdict(&[0.0, 1.0, 2.0]), Verdict::Agrees);
        assert_eq!(verdict(&[0.0, -1.0, -2.0]), Verdict::WithinError);
        // The mean is 1, beyond and within two errors of five seeds: sd 1, error .447, and sd 1.2, error .537.
        let spread = |sd: f64| [-1.0, -1.0, 0.0, 1.0, 1.0].map(|step| 1.0 + sd * step);
        assert_eq!((verdict(&spread(1.0)), verdict(&spread(1.2))), (Verdict::Confirmed, Verdict::Agrees));
    }

    #[test]
    fn one_or_two_seeds_confirm_and_contradict_nothing() {
        assert_eq!(verdict(&[5.0]).words(), "one seed, agrees");
        assert_eq!(verdict(&[-5.0]).words(), "one seed, contrary");
        assert_eq!(verdict(&[5.0, 5.1]).words(), "two seeds, agrees");
        assert_eq!(verdict(&[-5.0, -5.1]).words(), "two seeds, contrary");
        let apart = Difference::of(&[(1, 3.0)], &[(2, 1.0)]);
        assert_eq!(apart, Difference { mean: 2.0, sem: None, seeds: 0 });
        assert_eq!(Verdict::of_order([apart]).words(), "no common seed, agrees");
    }

    #[test]
    fn seeds_that_one_curve_lacks_are_left_out() {
        let a = [(1, 2.0), (2, 3.0), (3, 4.0), (4, 90.0)];
        let b = [(3, 1.0), (2, 1.0), (1, 1.0), (7, -50.0)];
        let difference = Difference::of(&a, &b);
        assert_eq!((difference.mean, difference.seeds), (2.0, 3));
        assert!((difference.sem.unwrap() - (1.0_f64 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn nan_is_undecided_and_no_difference_is_not_the_asserted_order() {
        assert_eq!(verdict(&[1.0, f64::NAN, 3.0]), Verdict::NoValue);
        assert_eq!(verdict(&[f64::INFINITY]), Verdict::NoValue);
        assert_eq!(verdict(&[0.0, 0.0, 0.0]), Verdict::WithinError);
        assert_eq!(verdict(&[0.5, 0.5, 0.5]), Verdict::Confirmed);
    }

    #[test]
    fn the_weakest_link_of_a_chain_decides() {
        let [sure, vague] = [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0]].map(|values| differences(&values));
        let of = |chain: &[Difference]| Verdict::of_order(chain.iter().copied());
        assert_eq!(of(&[sure, sure]), Verdict::Confirmed);
        assert_eq!(of(&[sure, vague]), Verdict::Agrees);
        assert_eq!(of(&[vague.reversed(), sure]), Verdict::WithinError);
        assert_eq!(of(&[sure, differences(&[1.0])]), Verdict::FewSeeds { seeds: 1, agrees: true });
        assert_eq!(of(&[sure.reversed(), vague.reversed(), sure]), Verdict::Contradicted);
        assert_eq!(of(&[sure.reversed(), differences(&[f64::NAN])]), Verdict::NoValue);
    }

    #[test]
    fn a_number_keeps_its_tolerance() {
        assert_eq!(Verdict::of_number(Some(true)), Verdict::Confirmed);
        assert_eq!(Verdict::of_number(Some(false)), Verdict::NotConfirmed);
        assert_eq!(Verdict::of_number(None), Verdict::NotJudged);
    }
}
