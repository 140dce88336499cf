//! The toys of the DSVGD paper as data: a client's likelihood is a sum of at most two Gaussians, and its one row
//! holds their numbers. Source: Kassab and Simeone, *Federated generalized Bayesian learning via distributed Stein
//! variational gradient descent*, 2022, Figs. 2 and 10.
//!
//! A row in dimension `d` is two components, one after the other, each
//! `[weight, mean (d), covariance (d * d, row by row)]`: 6 numbers for d = 1, 14 for d = 2. A component that is not
//! used has weight 0, mean 0 and the identity as covariance. Weights are factors and need not sum to 1.

use crate::{DataError, Dataset, Targets};
use ndarray::Array2;

/// The number of components in a row.
const SLOTS: usize = 2;

/// A weighted sum of Gaussian densities in `d` dimensions; weights need not sum to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    dimension: usize,
    components: Vec<Component>,
}

#[derive(Clone, Debug, PartialEq)]
struct Component {
    weight: f64,
    mean: Vec<f64>,
    /// `d * d`, row by row.
    covariance: Vec<f64>,
    /// The lower Cholesky factor of the covariance, `d * d`, row by row.
    cholesky: Vec<f64>,
}

impl GaussianMixture {
    /// A mixture from its components `(weight, mean [d], covariance [d * d])`.
    ///
    /// # Errors
    /// There is no component or more than two, a dimension does not fit, a weight is negative or not finite, all
    /// weights are 0, or a covariance is not symmetric and positive definite.
    pub fn new(dimension: usize, components: &[(f64, &[f64], &[f64])]) -> Result<Self, DataError> {
        let refuse = |problem: String| DataError::config("mixture", format!("{components:?}"), problem);
        if dimension == 0 || components.is_empty() || components.len() > SLOTS {
            return Err(refuse(format!("needs one to {SLOTS} components and a dimension of at least 1")));
        }
        let mut built = Vec::with_capacity(components.len());
        for &(weight, mean, covariance) in components {
            if mean.len() != dimension || covariance.len() != dimension * dimension {
                return Err(refuse(format!(
                    "a component in {dimension} dimensions has as many means, and their square as covariances"
                )));
            }
            if !(weight >= 0.0 && weight.is_finite()) || mean.iter().any(|m| !m.is_finite()) {
                return Err(refuse("weights are finite and not negative, means finite".to_owned()));
            }
            let cholesky = cholesky(dimension, covariance)
                .ok_or_else(|| refuse("a covariance is symmetric and positive definite".to_owned()))?;
            built.push(Component { weight, mean: mean.to_vec(), covariance: covariance.to_vec(), cholesky });
        }
        if built.iter().all(|component| component.weight == 0.0) {
            return Err(refuse("at least one weight is above 0".to_owned()));
        }
        Ok(GaussianMixture { dimension, components: built })
    }

    /// The dimension `d` of the density's space.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The number of values in a row of dimension `d`.
    pub fn row_width(dimension: usize) -> usize {
        SLOTS * (1 + dimension + dimension * dimension)
    }

    /// The mixture of a row (layout: see the module). f32 keeps about seven digits of each number.
    ///
    /// # Errors
    /// The row has another length; or the error is one of [`GaussianMixture::new`].
    pub fn from_row(row: &[f32], dimension: usize) -> Result<Self, DataError> {
        let width = Self::row_width(dimension);
        if row.len() != width {
            return Err(DataError::Width { expected: width, found: row.len() });
        }
        let numbers: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        let components: Vec<_> = numbers
            .chunks_exact(width / SLOTS)
            .filter(|slot| slot[0] != 0.0)
            .map(|slot| (slot[0], &slot[1..1 + dimension], &slot[1 + dimension..]))
            .collect();
        Self::new(dimension, &components)
    }

    /// The row of this mixture (layout: see the module), `[row_width(d)]`.
    pub fn to_row(&self) -> Vec<f32> {
        let d = self.dimension;
        let mut row = Vec::with_capacity(Self::row_width(d));
        for component in &self.components {
            row.push(component.weight as f32);
            row.extend(component.mean.iter().map(|&m| m as f32));
            row.extend(component.covariance.iter().map(|&c| c as f32));
        }
        for _ in self.components.len()..SLOTS {
            row.extend(std::iter::repeat_n(0.0, 1 + d));
            row.extend((0..d * d).map(|i| if i / d == i % d { 1.0 } else { 0.0 }));
        }
        row
    }

    /// The natural logarithm of the weighted sum of densities at a point `[d]`; NaN for a point of another length.
    pub fn log_density(&self, point: &[f64]) -> f64 {
        if point.len() != self.dimension {
            return f64::NAN;
        }
        let terms: Vec<f64> = self.components.iter().map(|component| component.log_density(point)).collect();
        let most = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if most == f64::NEG_INFINITY {
            return most;
        }
        most + terms.iter().map(|term| (term - most).exp()).sum::<f64>().ln()
    }
}

impl Component {
    fn log_density(&self, point: &[f64]) -> f64 {
        let d = self.mean.len();
        let mut solved = vec![0.0; d];
        let (mut squares, mut log_det) = (0.0, 0.0);
        for i in 0..d {
            let row = &self.cholesky[i * d..i * d + i + 1];
            let known: f64 = (0..i).map(|j| row[j] * solved[j]).sum();
            solved[i] = (point[i] - self.mean[i] - known) / row[i];
            squares += solved[i] * solved[i];
            log_det += row[i].ln();
        }
        let tau = 2.0 * std::f64::consts::PI;
        self.weight.ln() - 0.5 * (squares + d as f64 * tau.ln()) - log_det
    }
}

/// The lower Cholesky factor of a symmetric positive definite matrix; `None` for other matrices.
fn cholesky(d: usize, matrix: &[f64]) -> Option<Vec<f64>> {
    let mut factor = vec![0.0; d * d];
    for i in 0..d {
        for j in 0..=i {
            if matrix[i * d + j] != matrix[j * d + i] {
                return None;
            }
            let known: f64 = (0..j).map(|k| factor[i * d + k] * factor[j * d + k]).sum();
            let rest = matrix[i * d + j] - known;
            factor[i * d + j] = if i == j {
                if !(rest > 0.0 && rest.is_finite()) {
                    return None;
                }
                rest.sqrt()
            } else {
                rest / factor[j * d + j]
            };
        }
    }
    Some(factor)
}

/// The two likelihoods of Fig. 2: N(1, 4) and N(−3, 1) + N(3, 2); second arguments are variances.
pub fn paper_1d() -> [GaussianMixture; 2] {
    [known(1, &[(1.0, &[1.0], &[4.0])]), known(1, &[(1.0, &[-3.0], &[1.0]), (1.0, &[3.0], &[2.0])])]
}

/// The two likelihoods of Fig. 10: N((−1.71, −1.801), [[.226, .1652], [.1652, .6779]]) + N((1, 0), [[2, .5], [.5, 2]])
/// and N((1, 0), [[3, .5], [.5, 3]]).
pub fn paper_2d() -> [GaussianMixture; 2] {
    let narrow: (f64, &[f64], &[f64]) = (1.0, &[-1.71, -1.801], &[0.226, 0.1652, 0.1652, 0.6779]);
    [
        known(2, &[narrow, (1.0, &[1.0, 0.0], &[2.0, 0.5, 0.5, 2.0])]),
        known(2, &[(1.0, &[1.0, 0.0], &[3.0, 0.5, 0.5, 3.0])]),
    ]
}

fn known(dimension: usize, components: &[(f64, &[f64], &[f64])]) -> GaussianMixture {
    GaussianMixture::new(dimension, components).expect("the paper's covariances are positive definite")
}

/// The toy as a data set: one row per client (layout: see the module), natural clients 0 and 1, no targets.
pub fn dataset(name: &str, likelihoods: &[GaussianMixture; 2]) -> Dataset {
    let rows: Vec<Vec<f32>> = likelihoods.iter().map(GaussianMixture::to_row).collect();
    let width = rows[0].len();
    Dataset {
        name: name.to_owned(),
        features: Array2::from_shape_fn((2, width), |(row, column)| rows[row][column]),
        feature_shape: vec![width],
        feature_names: None,
        targets: Targets::None { rows: 2 },
        clients: Some(vec![0, 1]),
        client_names: None,
        groups: None,
        lines: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of a prior and both likelihoods on a grid of `n` points per side in `low..high`, times the cell.
    fn quadrature(toy: &[GaussianMixture; 2], low: f64, high: f64, n: usize, prior: impl Fn(&[f64]) -> f64) -> f64 {
        let step = (high - low) / (n - 1) as f64;
        let at = |i: usize| low + step * i as f64;
        let d = toy[0].dimension();
        let mut sum = 0.0;
        for i in 0..n.pow(d as u32) {
            let point: Vec<f64> = (0..d).map(|axis| at(i / n.pow(axis as u32) % n)).collect();
            // the trapezoidal rule
            let edges = point.iter().filter(|&&x| x == at(0) || x == at(n - 1)).count();
            let weight = 0.5f64.powi(edges as i32);
            sum += weight * (prior(&point) + toy[0].log_density(&point) + toy[1].log_density(&point)).exp();
        }
        sum * step.powi(d as i32)
    }

    fn relative(found: f64, expected: f64) -> f64 {
        (found / expected - 1.0).abs()
    }

    // Expected Z: golden/toy_posteriors.json (integral of prior and likelihoods, likelihood weights 1).
    #[test]
    fn the_1d_toy_with_a_uniform_prior_has_the_golden_z() {
        let found = quadrature(&paper_1d(), -6.0, 6.0, 20_001, |_| -(12f64.ln()));
        assert!(relative(found, 0.012719401854801193) < 1e-8, "{found}");
    }

    #[test]
    fn the_1d_toy_with_a_gaussian_prior_has_the_golden_z() {
        let prior = known(1, &[(1.0, &[0.0], &[1.0])]);
        let found = quadrature(&paper_1d(), -12.0, 12.0, 20_001, |x| prior.log_density(x));
        assert!(relative(found, 0.012283229556911773) < 1e-10, "{found}");
    }

    #[test]
    fn the_2d_toy_has_the_golden_z() {
        let prior = known(2, &[(1.0, &[0.0, 0.0], &[4.0, 2.0, 2.0, 4.0])]);
        let found = quadrature(&paper_2d(), -12.0, 12.0, 801, |x| prior.log_density(x));
        assert!(relative(found, 0.0013451686397384901) < 1e-8, "{found}");
    }

    #[test]
    fn the_golden_product_of_gaussians_in_two_dimensions_is_met() {
        let prior = known(2, &[(1.0, &[0.0, 0.0], &[4.0, 0.0, 0.0, 4.0])]);
        let toy = [
            known(2, &[(1.0, &[1.0, 1.0], &[1.0, 0.5, 0.5, 2.0])]),
            known(2, &[(1.0, &[-1.0, 2.0], &[2.0, 0.0, 0.0, 0.5])]),
        ];
        let found = quadrature(&toy, -12.0, 12.0, 801, |x| prior.log_density(x));
        assert!(relative(found, 0.0005154981103668681) < 1e-8, "{found}");
    }

    #[test]
    fn a_row_and_its_mixture_convert_into_each_other() {
        for (toy, d) in [(paper_1d(), 1), (paper_2d(), 2)] {
            for mixture in toy {
                let row = mixture.to_row();
                assert_eq!(row.len(), GaussianMixture::row_width(d));
                let back = GaussianMixture::from_row(&row, d).unwrap();
                let point = vec![0.3; d];
                assert!((back.log_density(&point) - mixture.log_density(&point)).abs() < 1e-6);
                assert_eq!(back.to_row(), row);
            }
        }
        assert_eq!(paper_1d()[0].to_row(), [1., 1., 4., 0., 0., 1.]);
    }

    #[test]
    fn the_data_set_has_one_row_per_client() {
        let data = dataset("mixture-2d", &paper_2d());
        assert_eq!((data.rows(), data.width(), data.clients), (2, 14, Some(vec![0, 1])));
        assert_eq!(data.targets, Targets::None { rows: 2 });
    }

    #[test]
    fn far_away_the_logarithm_is_finite_where_the_density_underflows() {
        let far = paper_1d()[1].log_density(&[1e4]);
        assert!(far.is_finite() && far < -1e7, "{far}");
    }

    #[test]
    fn invalid_mixtures_are_refused() {
        let bad: [(f64, &[f64], &[f64]); 5] = [
            (-1.0, &[0.0, 0.0], &[1.0, 0.0, 0.0, 1.0]),
            (0.0, &[0.0, 0.0], &[1.0, 0.0, 0.0, 1.0]),
            (1.0, &[0.0], &[1.0, 0.0, 0.0, 1.0]),
            (1.0, &[0.0, 0.0], &[1.0, 0.5, 0.0, 1.0]),
            (1.0, &[0.0, 0.0], &[1.0, 2.0, 2.0, 1.0]),
        ];
        for component in bad {
            assert!(GaussianMixture::new(2, &[component]).is_err(), "{component:?}");
        }
        assert!(GaussianMixture::from_row(&[1.0; 5], 1).is_err());
        assert!(paper_1d()[0].log_density(&[0.0, 0.0]).is_nan());
    }
}
