//! How frequent each class is among the rows of all clients, and how much clients differ in it.
//!
//! The classes of client k's rows are taken for draws with frequencies of its own, π_k ~ Dirichlet(a·s), around the shares s
//! of all rows. The concentration a is the one with the highest likelihood of the clients' numbers of rows (empirical Bayes;
//! the likelihood has a single maximum: Levin and Reeds, *Compound Multinomial Likelihood Functions are Unimodal*, 1977).
//! Given its rows n_k, the mean of π_k is (n_k + a·s) / (|n_k| + a): clients that differ by no more than chance get a large a,
//! and all of them the shares s.

use serde::{Deserialize, Serialize};

use crate::metrics::golden_section;

/// The range of the concentration, in rows.
const CONCENTRATION: [f64; 2] = [1e-3, 1e9];
/// The width of the last interval of log a.
const TOLERANCE: f64 = 1e-6;
/// Log-likelihoods that differ by less are equal, and the larger concentration is taken: with one row a client there is
/// nothing to learn from.
const EQUAL: f64 = 1e-9;

/// How frequent the classes are among the rows of all clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassPrior {
    /// The frequencies that a model of all rows learns, `[C]`, with sum 1.
    pub learned: Vec<f64>,
    /// The number of rows of each class that is added to a client's own, a·s, `[C]`.
    pub pseudo_rows: Vec<f64>,
}

impl ClassPrior {
    /// The prior of some clients.
    ///
    /// # Arguments
    /// * `counts`: the number of training rows of each client and class, `[K][C]`, not all 0
    /// * `weights`: how often a row of each class counts in the likelihood, `[C]`; `None` for once
    pub fn of_clients(counts: &[Vec<usize>], weights: Option<&[f64]>) -> Self {
        let shares = shares(counts, None);
        let concentration = concentration(counts, &shares);
        let pseudo_rows = shares.iter().map(|share| concentration * share).collect();
        let learned = if weights.is_some() { self::shares(counts, weights) } else { shares };
        Self { learned, pseudo_rows }
    }
}

/// How much of the entropy of the classes knowing the client takes away, 0 to 1 (Theil's U), less what it would be by chance
/// where clients are alike.
///
/// # Arguments
/// * `counts`: the number of training rows of each client and class, `[K][C]`
pub fn dependence(counts: &[Vec<usize>]) -> f64 {
    let shares = shares(counts, None);
    let rows = |client: &[usize]| client.iter().sum::<usize>() as f64;
    let all: f64 = counts.iter().map(|client| rows(client)).sum();
    let entropy = |shares: &[f64]| -> f64 { shares.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum() };
    let of_client = |client: &Vec<usize>| match rows(client) {
        0.0 => 0.0,
        n => n / all * entropy(&client.iter().map(|count| *count as f64 / n).collect::<Vec<f64>>()),
    };
    let marginal = entropy(&shares);
    if marginal == 0.0 {
        return 0.0;
    }
    let information = marginal - counts.iter().map(of_client).sum::<f64>();
    let held = |values: usize| values.saturating_sub(1) as f64;
    let classes = held(shares.iter().filter(|share| **share > 0.0).count());
    let clients = held(counts.iter().filter(|client| rows(client) > 0.0).count());
    // The mean of the mutual information of n independent draws is (C − 1)(K − 1)/2n, to first order.
    ((information - classes * clients / (2.0 * all)) / marginal).max(0.0)
}

/// The share of each class among the rows of all clients, `[C]`, where a row of class c counts `weights[c]` times.
fn shares(counts: &[Vec<usize>], weights: Option<&[f64]>) -> Vec<f64> {
    let classes = counts.first().map_or(0, Vec::len);
    let weight = |class: usize| weights.map_or(1.0, |weights| weights[class]);
    let rows = |class: usize| counts.iter().map(|client| client[class]).sum::<usize>() as f64 * weight(class);
    let rows: Vec<f64> = (0..classes).map(rows).collect();
    let all: f64 = rows.iter().sum();
    rows.into_iter().map(|rows| rows / all).collect()
}

/// The concentration with the highest likelihood of the clients' counts, by golden sections of its logarithm.
fn concentration(counts: &[Vec<usize>], shares: &[f64]) -> f64 {
    let loss = |log_a: f64| -log_likelihood(counts, shares, log_a.exp());
    golden_section(loss, CONCENTRATION.map(f64::ln), TOLERANCE, EQUAL).exp()
}

/// log Π_k ∫ Multinomial(n_k; π) Dirichlet(π; a·s) dπ, up to a constant in a.
fn log_likelihood(counts: &[Vec<usize>], shares: &[f64], a: f64) -> f64 {
    let of_client = |client: &Vec<usize>| {
        let held = client.iter().zip(shares).filter(|(count, _)| **count > 0);
        let classes: f64 = held.map(|(count, share)| log_rising(a * share, *count as f64)).sum();
        classes - log_rising(a, client.iter().sum::<usize>() as f64)
    };
    counts.iter().map(of_client).sum()
}

/// log Γ(x + n) − log Γ(x) − n log x, without the cancellation of large x.
fn log_rising(x: f64, n: f64) -> f64 {
    /// From here on Stirling's series has the precision of a double.
    const LARGE: f64 = 30.0;
    if n == 0.0 {
        return 0.0;
    }
    if x < LARGE {
        return libm::lgamma(x + n) - libm::lgamma(x) - n * x.ln();
    }
    let correction = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x + n - 0.5) * (n / x).ln_1p() - n + correction(x + n) - correction(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: [[usize; 2]; 4] = [[90, 10], [10, 90], [85, 15], [20, 80]];

    fn rows<const C: usize>(clients: &[[usize; C]]) -> Vec<Vec<usize>> {
        clients.iter().map(|client| client.to_vec()).collect()
    }

    fn fitted<const C: usize>(clients: &[[usize; C]]) -> f64 {
        ClassPrior::of_clients(&rows(clients), None).pseudo_rows.iter().sum()
    }

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value / expected - 1.0).abs() < tolerance, "{value}, expected {expected}");
    }

    /// The maximum of the sum of `scipy.stats.dirichlet_multinomial.logpmf` (SciPy 1.17.1), found by
    /// `scipy.optimize.minimize_scalar`.
    #[test]
    fn the_concentration_is_that_of_scipy() {
        assert_near(fitted(&[[12, 3, 0], [4, 9, 2], [0, 1, 30], [7, 7, 7]]), 1.7418102391517232, 1e-4);
        assert_near(fitted(&MIXED), 1.6217940713953944, 1e-4);
        assert_near(fitted(&[[100, 900], [900, 100], [100, 900], [900, 100]]), 1.2939856943945336, 1e-4);
        // The last class is nobody's.
        assert_near(fitted(&[[30, 0, 0, 0, 0], [3, 40, 1, 0, 0], [0, 0, 11, 2, 0]]), 0.5536811825304604, 1e-4);
    }

    #[test]
    fn clients_that_are_alike_have_the_frequencies_of_all_rows() {
        let [_, largest] = CONCENTRATION;
        assert_near(fitted(&[[50, 30, 20], [25, 15, 10]]), largest, 1e-5);
        assert_near(fitted(&[[1_000_000, 3_000_000]]), largest, 1e-5);
        // One row a client says nothing of the client, and no rows say nothing at all.
        assert_near(fitted(&[[1, 0], [0, 1], [1, 0], [0, 0]]), largest, 1e-5);
    }

    #[test]
    fn the_model_has_learned_weighted_frequencies_and_clients_have_those_of_their_rows() {
        let prior = ClassPrior::of_clients(&rows(&[[1, 2, 0], [3, 0, 2]]), Some(&[2.0 / 3.0, 4.0 / 3.0, 4.0 / 3.0]));
        assert!(prior.learned.iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-15), "{prior:?}");
        let added: f64 = prior.pseudo_rows.iter().sum();
        for (rows, share) in prior.pseudo_rows.iter().zip([0.5, 0.25, 0.25]) {
            assert_near(*rows, added * share, 1e-12);
        }
    }

    /// 1 − H(class | client)/H(class) with `scipy.stats.entropy`, less (C − 1)(K − 1)/(2n·H(class)).
    #[test]
    fn the_dependence_is_theils_u_without_chance() {
        assert_near(dependence(&rows(&MIXED)), 0.43230413538451234 - 3.0 / (2.0 * 400.0 * 0.6928346479997212), 1e-9);
        assert_eq!(dependence(&rows(&[[5, 5], [7, 7], [0, 0]])), 0.0);
        assert_eq!(dependence(&rows(&[[5, 0], [7, 0]])), 0.0);
        assert!(dependence(&rows(&[[1_000_000, 0], [0, 1_000_000]])) > 0.999);
    }

    #[test]
    fn rising_factorials_are_continuous_where_the_series_begins() {
        for n in [1.0, 7.0, 4e6] {
            let [before, after] = [30.0 - 1e-9, 30.0].map(|x| log_rising(x, n));
            assert!((before - after).abs() < 1e-7 * (1.0 + n / 30.0), "{n}: {before} and {after}");
        }
        assert_near(log_rising(1e9, 1e3), (0..1000).map(|i| f64::from(i) / 1e9).map(f64::ln_1p).sum(), 1e-9);
    }
}
