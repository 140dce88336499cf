//! The bandwidth h of the kernel k = exp(−r²/h) by the median heuristics of the papers and of their codes.
//!
//! h is computed on the host, in f64, from the squared distances. Source: Liu & Wang 2016, section 5, and the public codes
//! of the papers, which differ in the median and its divisor.

use serde::{Deserialize, Serialize};

use super::distances::Distances;

/// The rule by which h follows from the distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Rule {
    /// The median of all N² squared distances, zeros of the diagonal included, over ln(N+1), as in the public codes.
    #[default]
    Reference,
    /// (median of the pair distances)² over ln N, as in the papers.
    Paper,
    /// (median of all N² distances)² over ln N, as in numpyro.
    FullMatrix,
    /// The median of the squared pair distances over ln(N+1), as in pyro.
    Pyro,
    /// A constant h > 0.
    Fixed(f64),
}

fedstein_schema::words! {
    /// The convention for the median of an even number of values.
    #[derive(Default)]
    pub enum MedianOfEven {
        /// The mean of the two middle values, as in numpy.
        #[default]
        Mean = "mean",
        /// The lower middle value, as in torch.
        Lower = "lower",
    }
}

/// A rule and its median convention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// The rule by which h follows from the distances.
    pub rule: Rule,
    /// The convention for the median of an even number of values.
    pub median: MedianOfEven,
}

impl Bandwidth {
    /// h for these distances, always finite and positive. Where the rule gives no positive number (most particles are
    /// equal, or N = 1), h is the mean of the positive distances over ln(N+1), or 1 where there are none.
    ///
    /// `power` is 2 for kernels of r² and 1 for the Laplacian kernel of r.
    pub fn evaluate(&self, distances: &Distances, power: i32) -> f64 {
        let h = self.rule_value(distances, power);
        if h.is_finite() && h > 0.0 { h } else { fallback(distances, power) }
    }

    /// Whether h is a number of the config, whatever the particles are.
    pub fn is_fixed(&self) -> bool {
        matches!(self.rule, Rule::Fixed(_))
    }

    /// The result of the rule itself, which may be 0 or NaN.
    pub fn rule_value(&self, distances: &Distances, power: i32) -> f64 {
        let n = distances.count();
        let (pairs, log) = match self.rule {
            Rule::Fixed(h) => return h,
            Rule::Reference => (false, ((n + 1) as f64).ln()),
            Rule::Pyro => (true, ((n + 1) as f64).ln()),
            Rule::Paper => (true, (n as f64).ln()),
            Rule::FullMatrix => (false, (n as f64).ln()),
        };
        // Squaring the median of the distances differs from the median of the squares where two values are averaged.
        let of_distances = matches!(self.rule, Rule::Paper | Rule::FullMatrix) || power == 1;
        let value = |r2: f64| if of_distances { r2.sqrt() } else { r2 };
        // Of all N² values sorted, the zeros of the diagonal come first, and every pair occurs twice.
        let count = if pairs { distances.pairs().len() } else { n * n };
        let place = |rank: usize| if pairs { Some(rank) } else { rank.checked_sub(n).map(|above| above / 2) };
        let median =
            self.median(count, |lower, upper| two_of(distances.pairs(), place(lower), place(upper)).map(value));
        let spread = if of_distances && power == 2 { median * median } else { median };
        spread / log
    }

    /// The median of `count` values; `ranked` returns the values of two ranks.
    fn median(&self, count: usize, ranked: impl FnOnce(usize, usize) -> [f64; 2]) -> f64 {
        if count == 0 {
            return 0.0;
        }
        let upper = count / 2;
        let lower = if count % 2 == 1 { upper } else { upper - 1 };
        let [lower, upper] = ranked(lower, upper);
        match self.median {
            MedianOfEven::Mean => 0.5 * (lower + upper),
            MedianOfEven::Lower => lower,
        }
    }
}

/// The values of two ranks, of which `lower` is `upper` or one less; the value of the rank `None` is 0.
fn two_of(values: &[f64], lower: Option<usize>, upper: Option<usize>) -> [f64; 2] {
    let Some(upper) = upper else { return [0.0; 2] };
    let (mut near, first) = around(values, upper);
    let (below, value, _) = near.select_nth_unstable_by(upper - first, f64::total_cmp);
    let value = *value;
    match lower {
        None => [0.0, value],
        Some(lower) if lower == upper => [value; 2],
        Some(_) => [below.iter().copied().fold(f64::NEG_INFINITY, f64::max), value],
    }
}

/// A subset of the values that holds those of this rank and of the rank before, and how many values are smaller than
/// the whole subset. The subset lies between two values of a sample. It is all values where they are few, or where the
/// sample misses the rank.
fn around(values: &[f64], rank: usize) -> (Vec<f64>, usize) {
    const SAMPLE: usize = 128;
    // Three standard deviations of the rank of a median in such a sample.
    const MARGIN: usize = 17;
    let all = || (values.to_vec(), 0);
    if values.len() < 8 * SAMPLE {
        return all();
    }
    let mut sample: Vec<f64> = (0..SAMPLE).map(|place| values[place * values.len() / SAMPLE]).collect();
    sample.sort_unstable_by(f64::total_cmp);
    let place = rank * SAMPLE / values.len();
    let (low, high) = (sample[place.saturating_sub(MARGIN)], sample[(place + MARGIN).min(SAMPLE - 1)]);
    let first = values.iter().filter(|value| **value < low).count();
    let mut kept = vec![0.0; values.len()];
    let mut count = 0;
    // Each value is written, and counted only if it is in the range: a branch would be mispredicted too often.
    for value in values {
        kept[count] = *value;
        count += usize::from(low <= *value && *value <= high);
    }
    kept.truncate(count);
    if first < rank && rank < first + count { (kept, first) } else { all() }
}

/// The bandwidth where the rule gives no positive number: the mean of the positive values over ln(N+1), or 1 where
/// there are none.
fn fallback(distances: &Distances, power: i32) -> f64 {
    let positive = distances.pairs().iter().filter(|r2| **r2 > 0.0);
    let values = positive.map(|r2| if power == 1 { r2.sqrt() } else { *r2 });
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        return 1.0;
    }
    sum / count as f64 / ((distances.count() + 1) as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_every_rank_are_those_of_the_sorted_values() {
        // Three cases: values in no order, each a few times (1031 and 499 are prime); nearly all equal; in ascending
        // order.
        let scattered: Vec<f64> = (0..3000).map(|i| f64::from(i * 499 % 1031)).collect();
        let equal: Vec<f64> = (0..3000).map(|i| f64::from(u8::from(i % 700 == 0))).collect();
        let ordered: Vec<f64> = (0..3000).map(|i| f64::from(i).sqrt()).collect();
        for values in [scattered, equal, ordered] {
            let mut sorted = values.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            for upper in 1..values.len() {
                assert_eq!(two_of(&values, Some(upper - 1), Some(upper)), [sorted[upper - 1], sorted[upper]]);
            }
            assert_eq!(two_of(&values, Some(0), Some(0)), [sorted[0]; 2]);
        }
    }

    #[test]
    fn nan_values_rank_last() {
        let values: Vec<f64> = (0..3000).map(|i| if i % 3 == 0 { f64::NAN } else { f64::from(i) }).collect();
        assert_eq!(two_of(&values, Some(0), Some(0)), [1.0; 2]);
        assert_eq!(two_of(&values, Some(1000), Some(1000)), [1501.0; 2]);
        assert!(two_of(&values, Some(2500), Some(2500))[1].is_nan());
    }
}
