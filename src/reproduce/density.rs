//! Densities of a toy on a grid over θ: the exact posterior, the clients' local posteriors, and a run's result.

use super::kept::KeptDensity;
use crate::array::{Array, Values};
use crate::backend::{Flex, Precision, Session};
use crate::datasets;
use crate::error::RunError;
use crate::experiment::Config;
use crate::metrics::Grid;
use crate::particles::Particles;
use crate::random::{Purpose, Streams};
use crate::rows::Table;
use std::path::Path;

/// The exact densities of a toy.
#[derive(Clone, Debug)]
pub struct Toy {
    grid: Grid,
    /// log p0 at every grid point, `[G]`.
    log_prior: Vec<f64>,
    /// The log-likelihood of every client, `[K][G]`.
    log_likelihoods: Vec<Vec<f64>>,
}

/// A density at the points that a picture draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The coordinates of the points, each `[d]`.
    pub points: Vec<Vec<f64>>,
    /// The density at each point.
    pub values: Vec<f64>,
}

/// Half of the width that is drawn.
const REACH: f64 = 8.0;

impl Toy {
    /// The toy of a config; `None` if the config has none, or one of more than two dimensions.
    ///
    /// # Errors
    /// The config is inconsistent.
    pub fn of(config: &Config) -> Result<Option<Self>, RunError> {
        if !config.data_kind().starts_with("mixture-") {
            return Ok(None);
        }
        let mut rng = Streams::new(config.seed).rng(Purpose::Data, 0, 0);
        // A toy needs no files.
        let data = datasets::load(&config.data()?, Path::new(""), &mut rng)?;
        let model = config.model(&data.train)?;
        let Some(grid) = Grid::for_dimension(model.layout().dim()) else { return Ok(None) };
        let session = Session::open::<Flex>(Precision::F64)?;
        let table = Table::new(data.train, &data.normalisation);
        let shape = vec![grid.points().len() / grid.dim(), grid.dim()];
        let array = Array { shape, values: Values::F64(grid.points().to_vec()) };
        let at = Particles::from_array(&array, model.layout(), &session)?;
        let log_prior = model.prior().log_density(at.blocks()).try_into_vec_as::<f64>()?;
        let likelihood = |row| {
            let batch = table.batch(row..row + 1, &session);
            Ok(model.log_likelihood(at.blocks(), &batch).try_into_vec_as::<f64>()?)
        };
        let log_likelihoods = (0..table.rows()).map(likelihood).collect::<Result<_, RunError>>()?;
        Ok(Some(Self { grid, log_prior, log_likelihoods }))
    }

    /// Number of clients K, each with one likelihood.
    pub fn clients(&self) -> usize {
        self.log_likelihoods.len()
    }

    /// The exact posterior p0·Π_k p_k, normalised.
    pub fn exact(&self) -> Drawn {
        let all = self.log_likelihoods.iter().fold(self.log_prior.clone(), |sum, one| add(&sum, one));
        self.drawn(&all)
    }

    /// The local posterior p0·p_k, normalised.
    pub fn local(&self, client: usize) -> Drawn {
        self.drawn(&add(&self.log_prior, &self.log_likelihoods[client]))
    }

    /// The density at which a run arrived.
    pub fn reached(&self, density: &KeptDensity) -> Drawn {
        self.drawn(&match density {
            KeptDensity::Mixture { centres, variances } => self.grid.log_mixture(centres, variances),
            KeptDensity::Gaussian { mean, covariance } => self.grid.log_gaussian(mean, covariance),
        })
    }

    /// The density at every few points of the grid.
    fn drawn(&self, log_density: &[f64]) -> Drawn {
        let (d, mass) = (self.grid.dim(), self.grid.log_mass(log_density));
        // The strides give steps of 0.05 in one dimension, of 0.2 in two.
        let stride = if d == 1 { 20 } else { 5 };
        let per_axis = if d == 1 { log_density.len() } else { log_density.len().isqrt() };
        let on_grid =
            |index: usize| (index % per_axis).is_multiple_of(stride) && (index / per_axis).is_multiple_of(stride);
        let kept = self.grid.points().chunks_exact(d).zip(log_density).enumerate();
        let kept = kept.filter(|(index, (point, _))| on_grid(*index) && point.iter().all(|x| x.abs() < REACH + 1e-9));
        let (points, values) = kept.map(|(_, (point, log))| (point.to_vec(), (log - mass).exp())).unzip();
        Drawn { points, values }
    }
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::schema::{Overrides, Source};

    fn toy(data: &str, prior: &str) -> Toy {
        let text = format!(
            "data.kind = \"{data}\"\npartition.kind = \"by-column\"\nmodel = {{ kind = \"mixture\", prior = \"{prior}\" }}\n\
             algorithm.kind = \"svgd\"\n"
        );
        let (config, _) = Config::load(Source { name: "toy", text: &text }, &Overrides::default()).unwrap();
        Toy::of(&config).unwrap().unwrap()
    }

    fn highest(drawn: &Drawn, from: f64, to: f64) -> (f64, f64) {
        let inside = drawn.points.iter().zip(&drawn.values).filter(|(point, _)| (from..=to).contains(&point[0]));
        inside.map(|(point, value)| (point[0], *value)).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap()
    }

    #[test]
    fn the_exact_posterior_of_the_first_toy_has_the_papers_peaks() {
        // The values are read off Fig. 2 by eye: .265 at 2.33 and .105 at -2.2.
        let exact = toy("mixture-1d", "uniform").exact();
        let ((right, high), (left, low)) = (highest(&exact, 0.0, 6.0), highest(&exact, -6.0, 0.0));
        assert!((right - 2.33).abs() < 0.1 && (high - 0.265).abs() < 0.01, "{right} {high}");
        assert!((left + 2.2).abs() < 0.1 && (low - 0.105).abs() < 0.01, "{left} {low}");
    }

    #[test]
    fn the_exact_posterior_of_the_second_toy_has_its_modes() {
        // An independent program on the same grid gives .1610 at (-1.36, -1.24).
        let exact = toy("mixture-2d", "gaussian").exact();
        assert_eq!(exact.points.len(), 81 * 81);
        let (at, value) = highest_point(&exact);
        assert!(
            (value - 0.1610).abs() < 0.002 && (at[0] + 1.36).abs() < 0.2 && (at[1] + 1.24).abs() < 0.2,
            "{at:?} {value}"
        );
    }

    fn highest_point(drawn: &Drawn) -> (Vec<f64>, f64) {
        let (at, value) = drawn.points.iter().zip(&drawn.values).max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        (at.clone(), *value)
    }

    #[test]
    fn what_a_run_reached_is_drawn_with_mass_one() {
        let toy = toy("mixture-1d", "gaussian");
        let of = |density: KeptDensity| toy.reached(&density).values.iter().sum::<f64>() * 0.05;
        let mixture = KeptDensity::Mixture { centres: vec![-1.0, 1.0], variances: vec![0.3, 0.3] };
        // A sum over steps of 0.05 is exact for densities this wide.
        assert!((of(mixture) - 1.0).abs() < 1e-6);
        assert!((of(KeptDensity::Gaussian { mean: vec![0.5], covariance: vec![0.8] }) - 1.0).abs() < 1e-6);
        assert_eq!(toy.clients(), 2);
        assert!((toy.local(1).values.iter().sum::<f64>() * 0.05 - 1.0).abs() < 1e-3);
    }
}
