//! Divergence of an approximate posterior from an exact one in one or two dimensions, by quadrature.
//!
//! KL(q ‖ p) = ∫ q log(q/p): trapezoidal rule on a fixed grid, both densities normalised on it. Cells of the grid where
//! the prior has no mass are left out and q is normalised on the rest; where q < 10⁻¹⁴ the integrand is 0.
//!
//! A point belongs in equal parts to the cells that it is a corner of, so a point on the edge of the prior's support
//! has half of an inner point's weight (a quarter in a corner), as at the ends of the grid. The error is O(h²) where
//! the edge lies on points of the grid, as the edges ±6 of the toys do.

use std::borrow::Cow;

/// Points of a square grid in one or two dimensions, with their trapezoidal weights.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Flat points `[G, d]`, the last coordinate fastest.
    points: Vec<f64>,
    /// Weight of every point where all cells count, `[G]`.
    weights: Vec<f64>,
    /// Points on a side, and from one to the next.
    side: usize,
    step: f64,
    dim: usize,
}

/// Density below which q log q counts as 0.
const NOTHING: f64 = 1e-14;

impl Grid {
    /// The grid of the toys: 9,601 points of [−12, 12], or 401² of [−8, 8]². `None` for d > 2.
    pub fn for_dimension(d: usize) -> Option<Self> {
        match d {
            1 => Some(Self::new(1, 12.0, 9601)),
            2 => Some(Self::new(2, 8.0, 401)),
            _ => None,
        }
    }

    /// side^d points of [−half, half]^d, d ∈ {1, 2}.
    fn new(dim: usize, half: f64, side: usize) -> Self {
        let step = 2.0 * half / (side - 1) as f64;
        let axis: Vec<f64> = (0..side).map(|i| -half + step * i as f64).collect();
        let points = match dim {
            1 => axis,
            _ => axis.iter().flat_map(|x| axis.iter().flat_map(move |y| [*x, *y])).collect(),
        };
        let mut grid = Self { points, weights: Vec::new(), side, step, dim };
        grid.weights = grid.weights_of_cells(|_| true);
        grid
    }

    /// The weights that remain of the cells whose corners, by their places among the points, all count.
    fn weights_of_cells(&self, counts: impl Fn(usize) -> bool) -> Vec<f64> {
        let mut weights = vec![0.0; self.points.len() / self.dim];
        let corners = match self.dim {
            1 => vec![0, 1],
            _ => vec![0, 1, self.side, self.side + 1],
        };
        let share = self.step.powi(self.dim as i32) / corners.len() as f64;
        let last = self.side - 1;
        let begins = |point: &usize| point % self.side < last && (self.dim == 1 || point / self.side < last);
        for first in (0..weights.len()).filter(begins) {
            if corners.iter().all(|corner| counts(first + corner)) {
                corners.iter().for_each(|corner| weights[first + corner] += share);
            }
        }
        weights
    }

    /// The weights of the cells on which a density, given by its logarithm, has mass at every corner.
    fn weights_within(&self, log_density: &[f64]) -> Cow<'_, [f64]> {
        let has_mass = |log: f64| log != f64::NEG_INFINITY;
        match log_density.iter().all(|log| has_mass(*log)) {
            true => Cow::Borrowed(&self.weights),
            false => Cow::Owned(self.weights_of_cells(|point| has_mass(log_density[point]))),
        }
    }

    /// Flat points `[G, d]`.
    pub fn points(&self) -> &[f64] {
        &self.points
    }

    /// Dimension d.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// log ∫ exp(log density), from the density's logarithm at every point.
    pub fn log_mass(&self, log_density: &[f64]) -> f64 {
        log_mass(log_density, &self.weights_within(log_density))
    }

    /// KL(q ‖ p) in nats from unnormalised logarithms `[G]`; `None` where either has no mass on the grid.
    pub fn divergence(&self, log_q: &[f64], log_p: &[f64]) -> Option<f64> {
        let weights = self.weights_within(log_p);
        let inside: Vec<f64> =
            log_q.iter().zip(log_p).map(|(q, p)| if p.is_finite() { *q } else { f64::NEG_INFINITY }).collect();
        let (mass_q, mass_p) = (log_mass(&inside, &weights), log_mass(log_p, &weights));
        let terms = inside.iter().zip(log_p).zip(weights.iter()).map(|((q, p), weight)| {
            let log_q = q - mass_q;
            let q = log_q.exp();
            if q > NOTHING { weight * q * (log_q - (p - mass_p)) } else { 0.0 }
        });
        let divergence: f64 = terms.sum();
        divergence.is_finite().then_some(divergence)
    }

    /// log (1/N) Σ_n N(θ; θ_n, v_n·I) at every point, from flat centres `[N, d]` and variances `[N]`.
    pub fn log_mixture(&self, centres: &[f64], variances: &[f64]) -> Vec<f64> {
        let d = self.dim;
        let log_scale: Vec<f64> = variances
            .iter()
            .map(|v| -(variances.len() as f64).ln() - 0.5 * d as f64 * (2.0 * std::f64::consts::PI * v).ln())
            .collect();
        let mut exponents = vec![0.0; variances.len()];
        let at = |point: &[f64]| {
            let mut top = f64::NEG_INFINITY;
            for ((exponent, centre), (v, scale)) in
                exponents.iter_mut().zip(centres.chunks_exact(d)).zip(variances.iter().zip(&log_scale))
            {
                let r2: f64 = point.iter().zip(centre).map(|(x, c)| (x - c).powi(2)).sum();
                *exponent = scale - 0.5 * r2 / v;
                top = top.max(*exponent);
            }
            top + exponents.iter().map(|exponent| (exponent - top).exp()).sum::<f64>().ln()
        };
        self.points.chunks_exact(d).map(at).collect()
    }

    /// log N(θ; mean, covariance) at every point, up to a constant. `covariance` is `[d, d]`, row-major, d ≤ 2.
    ///
    /// # Panics
    /// `mean` or `covariance` is of another dimension.
    pub fn log_gaussian(&self, mean: &[f64], covariance: &[f64]) -> Vec<f64> {
        assert!(mean.len() == self.dim && covariance.len() == self.dim * self.dim, "a Gaussian of another dimension");
        let precision = match covariance {
            [v] => vec![1.0 / v],
            [a, b, c, d] => {
                let det = a * d - b * c;
                vec![d / det, -b / det, -c / det, a / det]
            }
            _ => vec![f64::NAN; covariance.len()],
        };
        let d = self.dim;
        let quadratic = |point: &[f64]| {
            let offset: Vec<f64> = point.iter().zip(mean).map(|(x, m)| x - m).collect();
            let pairs = (0..d).flat_map(|i| (0..d).map(move |j| (i, j)));
            pairs.map(|(i, j)| offset[i] * precision[i * d + j] * offset[j]).sum::<f64>()
        };
        self.points.chunks_exact(d).map(|point| -0.5 * quadratic(point)).collect()
    }
}

/// log Σ weight·exp(log density).
fn log_mass(log_density: &[f64], weights: &[f64]) -> f64 {
    let top = log_density.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = log_density.iter().zip(weights).map(|(log, weight)| weight * (log - top).exp()).sum();
    top + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KL of the density ∝ e^(ax) on [−b, b] from the uniform one there, in closed form.
    fn kl_of_exponential(a: f64, b: f64) -> f64 {
        let z = 2.0 * (a * b).sinh() / a;
        let mean = b / (a * b).tanh() - 1.0 / a;
        (2.0 * b).ln() + a * mean - z.ln()
    }

    #[test]
    fn the_error_at_the_edges_of_a_prior_falls_with_the_square_of_the_step() {
        let (a, b) = (0.7, -0.4);
        let error = |dim: usize, half: f64, edge: f64, side: usize| {
            let grid = Grid::new(dim, half, side);
            let points = || grid.points().chunks_exact(dim);
            let inside = |point: &[f64]| point.iter().all(|x| x.abs() <= edge);
            let prior: Vec<f64> = points().map(|at| if inside(at) { 0.0 } else { f64::NEG_INFINITY }).collect();
            let q: Vec<f64> = points().map(|at| at.iter().zip([a, b]).map(|(x, slope)| slope * x).sum()).collect();
            let want: f64 = [a, b][..dim].iter().map(|slope| kl_of_exponential(*slope, edge)).sum();
            (grid.divergence(&q, &prior).unwrap() - want).abs()
        };
        // Steps of 1/4 and 1/8; the edges are points of both grids, and the ends of the grid in the third case.
        for (dim, half, edge, side) in [(1, 12.0, 6.0, 97), (2, 8.0, 4.0, 65), (1, 6.0, 6.0, 49)] {
            let (coarse, fine) = (error(dim, half, edge, side), error(dim, half, edge, 2 * side - 1));
            assert!((3.7..4.3).contains(&(coarse / fine)), "{dim}-D: {coarse:.2e}, then {fine:.2e}");
        }
    }

    #[test]
    fn the_divergence_of_two_gaussians_is_the_closed_form() {
        // KL(N(m, v) ‖ N(0, 1)) = ½ (v + m² − 1 − ln v)
        let grid = Grid::for_dimension(1).unwrap();
        let (m, v) = (0.7, 0.4);
        let got = grid.divergence(&grid.log_gaussian(&[m], &[v]), &grid.log_gaussian(&[0.0], &[1.0])).unwrap();
        assert!((got - 0.5 * (v + m * m - 1.0 - v.ln())).abs() < 1e-9, "{got}");
        let grid = Grid::for_dimension(2).unwrap();
        let q = grid.log_gaussian(&[0.7, -0.2], &[0.5, 0.2, 0.2, 0.6]);
        let got = grid.divergence(&q, &grid.log_gaussian(&[0.0, 0.0], &[1.0, 0.0, 0.0, 1.0])).unwrap();
        let want = 0.5 * (1.1 + 0.49 + 0.04 - 2.0 - (0.3f64 - 0.04).ln());
        assert!((got - want).abs() < 1e-9, "{got}, not {want}");
    }

    #[test]
    fn a_mixture_of_one_is_its_gaussian_and_every_mixture_has_mass_one() {
        let grid = Grid::for_dimension(1).unwrap();
        let one = grid.log_mixture(&[0.3], &[0.25]);
        assert!(grid.divergence(&one, &grid.log_gaussian(&[0.3], &[0.25])).unwrap().abs() < 1e-12);
        assert!(grid.log_mass(&grid.log_mixture(&[-1.0, 2.0, 2.5], &[0.1, 0.3, 1.0])).abs() < 1e-9);
    }

    #[test]
    fn mass_outside_the_priors_support_is_left_out() {
        let grid = Grid::for_dimension(1).unwrap();
        let inside: Vec<f64> =
            grid.points().iter().map(|x| if x.abs() <= 6.0 { 0.0 } else { f64::NEG_INFINITY }).collect();
        let wide = grid.log_gaussian(&[0.0], &[1e12]);
        assert!(grid.divergence(&wide, &inside).unwrap().abs() < 1e-9);
    }
}
