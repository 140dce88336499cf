//! The prior divided into the terms that a family of Gaussians contains and those that it does not contain.

use std::ops::Range;

use fedstein_models::{Layout, Prior, PriorTerm};

use super::family::Family;
use super::natural::{Natural, Symmetric};

/// p0 = exact · shared, and a Gaussian for q to begin with.
#[derive(Clone, Debug)]
pub(super) struct DividedPrior {
    /// The product of the terms that are in the family; flat in all other coordinates.
    pub exact: Natural,
    /// The initial Gaussian of q in the coordinates where `exact` is flat.
    pub start: Natural,
    /// The other terms, of which only the scores are used.
    pub shared: Prior,
}

impl DividedPrior {
    /// Divides the terms of a prior between the exact and the shared ones.
    pub fn new(prior: &Prior, layout: &Layout, family: Family) -> Self {
        let flat = Natural::flat(family, layout.dim());
        let (mut exact, mut start, mut shared) = (flat.clone(), flat, Prior::default());
        let range = |block: usize| {
            let block = &layout.blocks()[block];
            block.offset..block.offset + block.size()
        };
        for term in &prior.terms {
            match term {
                PriorTerm::Normal { block, precision } => normal(&mut exact, range(*block), 0.0, *precision),
                PriorTerm::Gaussian { block, mean, precision, .. } => {
                    let (d, offset) = (mean.len(), range(*block).start);
                    let entries = || (0..d * d).map(|at| (at / d, at % d, precision[at]));
                    let coupled = entries().any(|(i, j, value)| i != j && value != 0.0);
                    if family == Family::MeanField && coupled {
                        // The mean field with the smallest KL(q ‖ term): its mean, and the diagonal of its precision.
                        (0..d).for_each(|i| entry(&mut start, (offset + i, offset + i), mean[i], precision[i * d + i]));
                        shared.terms.push(term.clone());
                    } else {
                        entries().for_each(|(i, j, value)| entry(&mut exact, (offset + i, offset + j), mean[j], value));
                    }
                }
                PriorTerm::HierarchicalNormal { weights, log_precision, shape, rate } => {
                    let precision = (shape / rate).max(NARROWEST);
                    weights.iter().for_each(|block| normal(&mut start, range(*block), 0.0, precision));
                    log_gamma(&mut start, range(*log_precision), *shape, *rate);
                    shared.terms.push(term.clone());
                }
                PriorTerm::LogGamma { block, shape, rate } => {
                    log_gamma(&mut start, range(*block), *shape, *rate);
                    shared.terms.push(term.clone());
                }
                PriorTerm::Uniform { block, low, high } => {
                    normal(&mut start, range(*block), 0.5 * (low + high), 12.0 / (high - low).powi(2));
                    shared.terms.push(term.clone());
                }
            }
        }
        let known = exact.plus(&start).precision.to_diagonal();
        let unknown = (0..layout.dim()).filter(|coordinate| known[*coordinate] == 0.0);
        unknown.for_each(|coordinate| normal(&mut start, coordinate..coordinate + 1, 0.0, 1.0));
        Self { exact, start, shared }
    }
}

/// The smallest precision that q begins with under a hierarchical prior. Such priors may have no second moment to
/// match, and where q is much wider than the posterior, a likelihood is almost linear on both sides and shows no
/// curvature.
const NARROWEST: f64 = 1.0;

/// Multiplies N(mean, 1/precision) onto some coordinates.
fn normal(natural: &mut Natural, coordinates: Range<usize>, mean: f64, precision: f64) {
    coordinates.for_each(|coordinate| entry(natural, (coordinate, coordinate), mean, precision));
}

/// Laplace's approximation of log γ, γ ~ Gamma(a, b): the mode log(a/b), the curvature −a there.
fn log_gamma(natural: &mut Natural, coordinates: Range<usize>, shape: f64, rate: f64) {
    normal(natural, coordinates, (shape / rate).ln(), shape.max(NARROWEST));
}

/// Adds one entry of a precision matrix, and its contribution to η1 for this mean of its column.
fn entry(natural: &mut Natural, (row, column): (usize, usize), mean: f64, precision: f64) {
    natural.eta1[row] += precision * mean;
    match &mut natural.precision {
        Symmetric::Diagonal(diagonal) if row == column => diagonal[row] += precision,
        Symmetric::Diagonal(_) => {}
        Symmetric::Full(matrix) => matrix[[row, column]] += precision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn gaussian_terms_are_exact_and_the_others_are_shared() {
        let layout = Layout::new([("w", [2].as_slice()), ("log_gamma", &[1]), ("bias", &[1])]);
        let prior = Prior {
            terms: vec![
                PriorTerm::Normal { block: 0, precision: 4.0 },
                PriorTerm::LogGamma { block: 1, shape: 2.0, rate: 0.5 },
            ],
        };
        let divided = DividedPrior::new(&prior, &layout, Family::MeanField);
        assert_eq!(divided.shared.terms, prior.terms[1..]);
        assert_eq!(divided.exact.precision, Symmetric::Diagonal(array![4.0, 4.0, 0.0, 0.0]));
        // log γ ~ N(log(a/b), 1/a); a block without a term has a start all the same.
        assert_eq!(divided.start.precision, Symmetric::Diagonal(array![0.0, 0.0, 2.0, 1.0]));
        assert_eq!(divided.start.eta1, array![0.0, 0.0, 2.0 * 4f64.ln(), 0.0]);
    }

    #[test]
    fn terms_outside_of_the_family_have_a_gaussian_start() {
        let layout = Layout::new([("u", [1].as_slice()), ("w", &[2]), ("log_xi", &[1])]);
        let divided = |shape: f64, rate: f64| {
            let prior = Prior {
                terms: vec![
                    PriorTerm::Uniform { block: 0, low: -2.0, high: 6.0 },
                    PriorTerm::HierarchicalNormal { weights: vec![1], log_precision: 2, shape, rate },
                ],
            };
            let divided = DividedPrior::new(&prior, &layout, Family::MeanField);
            assert_eq!((&divided.shared, &divided.exact), (&prior, &Natural::flat(Family::MeanField, 4)));
            divided.start
        };
        // U(−2, 6) has the mean 2 and the variance 8²/12. ξ ~ Gamma(2.5, rate ½) has the mean 5, the precision of the weights,
        // and log ξ the mode log 5 with the curvature 2.5.
        let start = divided(2.5, 0.5);
        assert_eq!(start.precision, Symmetric::Diagonal(array![12.0 / 64.0, 5.0, 5.0, 2.5]));
        assert_eq!(start.eta1, array![24.0 / 64.0, 0.0, 0.0, 2.5 * 5f64.ln()]);
        // No start of a hierarchical prior is wider than N(0, 1).
        let start = divided(0.5, 2.0);
        assert_eq!(start.precision, Symmetric::Diagonal(array![12.0 / 64.0, 1.0, 1.0, 1.0]));
        assert_eq!(start.eta1[3], 0.25f64.ln());
    }

    #[test]
    fn a_coupled_gaussian_is_exact_only_where_the_family_holds_it() {
        let layout = Layout::new([("theta", [2].as_slice())]);
        let gaussian = PriorTerm::Gaussian {
            block: 0,
            mean: vec![1.0, -1.0],
            precision: vec![2.0, 0.5, 0.5, 1.0],
            cholesky: vec![], // for draws alone
        };
        let prior = Prior { terms: vec![gaussian] };
        let full = DividedPrior::new(&prior, &layout, Family::Full);
        assert!(full.shared.terms.is_empty());
        assert_eq!(full.exact.precision, Symmetric::Full(array![[2.0, 0.5], [0.5, 1.0]]));
        assert_eq!(full.exact.eta1, array![1.5, -0.5]);
        assert_eq!(full.start, Natural::flat(Family::Full, 2));
        let mean_field = DividedPrior::new(&prior, &layout, Family::MeanField);
        assert_eq!(mean_field.shared, prior);
        assert_eq!(mean_field.exact, Natural::flat(Family::MeanField, 2));
        assert_eq!(mean_field.start.precision, Symmetric::Diagonal(array![2.0, 1.0]));
        assert_eq!(mean_field.start.eta1, array![2.0, -1.0]);
    }
}
