//! Bandwidth h of the kernel k = exp(−r²/h): the median heuristics of the papers and of their codes.
//!
//! On the host, in f64, from the `[N, N]` matrix of squared distances: the one number that every step has to read.
//! Source: ALGORITHMS 2.2, which also lists the edge cases.

use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// How h follows from the distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Rule {
    /// Median of all N² squared distances, zeros of the diagonal included, over ln(N+1): the public codes.
    #[default]
    Reference,
    /// (median of the pair distances)² over ln N: the papers.
    Paper,
    /// (median of all N² distances)² over ln N: numpyro.
    FullMatrix,
    /// Median of the squared pair distances over ln(N+1): pyro.
    Pyro,
    /// A given h > 0.
    Fixed(f64),
}

/// The median of an even count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MedianOfEven {
    /// Mean of the two middle values (numpy).
    #[default]
    Mean,
    /// The lower middle value (torch).
    Lower,
}

/// A rule and its median convention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// How h follows from the distances.
    pub rule: Rule,
    /// The median of an even count.
    pub median: MedianOfEven,
}

impl Bandwidth {
    /// h for squared distances `d2` `[N, N]`; always finite and positive: where the rule itself gives 0 or nothing (most
    /// particles equal, N = 1), the mean of the positive distances takes its place, and 1 where there are none.
    ///
    /// `power` is 2 for kernels of r² and 1 for the Laplacian kernel of r.
    pub fn evaluate(&self, d2: &Array2<f64>, power: i32) -> f64 {
        let h = self.rule_value(d2, power);
        if h.is_finite() && h > 0.0 { h } else { fallback(d2, power) }
    }

    /// What the rule says, 0 and NaN included.
    pub fn rule_value(&self, d2: &Array2<f64>, power: i32) -> f64 {
        let n = d2.nrows();
        let (pairs, log) = match self.rule {
            Rule::Fixed(h) => return h,
            Rule::Reference => (false, ((n + 1) as f64).ln()),
            Rule::Pyro => (true, ((n + 1) as f64).ln()),
            Rule::Paper => (true, (n as f64).ln()),
            Rule::FullMatrix => (false, (n as f64).ln()),
        };
        // Squaring the median of the distances differs from the median of the squares where two values are averaged.
        let of_distances = matches!(self.rule, Rule::Paper | Rule::FullMatrix) || power == 1;
        let value = |r2: &f64| if of_distances { r2.sqrt() } else { *r2 };
        let mut values: Vec<f64> = if pairs {
            d2.indexed_iter().filter(|((i, j), _)| i < j).map(|(_, r2)| value(r2)).collect()
        } else {
            d2.iter().map(value).collect()
        };
        let median = self.median(&mut values);
        let spread = if of_distances && power == 2 { median * median } else { median };
        spread / log
    }

    fn median(&self, values: &mut [f64]) -> f64 {
        if values.is_empty() {
            return 0.0;
        }
        let (count, upper) = (values.len(), values.len() / 2);
        let (below, middle, _) = values.select_nth_unstable_by(upper, f64::total_cmp);
        if count % 2 == 1 {
            return *middle;
        }
        let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self.median {
            MedianOfEven::Mean => 0.5 * (lower + *middle),
            MedianOfEven::Lower => lower,
        }
    }
}

/// Median 0 while some particles differ: the mean of the positive values over ln(N+1). All equal, or N = 1: 1.
fn fallback(d2: &Array2<f64>, power: i32) -> f64 {
    let positive = d2.iter().filter(|r2| **r2 > 0.0).map(|r2| if power == 1 { r2.sqrt() } else { *r2 });
    let (sum, count) = positive.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    if count == 0 {
        return 1.0;
    }
    sum / count as f64 / ((d2.nrows() + 1) as f64).ln()
}
