//! Gaussians in natural parameters η1 = Λm and Λ = Σ⁻¹ (so η2 = −Λ/2), in f64 on the host.
//!
//! Products and quotients of densities are sums and differences here. A [`Natural`] may be improper, as factors and
//! cavities may; a [`Gaussian`] is proper, and only it has a mean and can be drawn from.

use ndarray::{Array1, Array2};

use super::family::Family;
use super::symmetric::Factor;
pub use super::symmetric::Symmetric;
use crate::array::{Array, ArrayError, Values};
use crate::checkpoint::{CheckpointError, State};
use crate::error::RunError;
use crate::protocol::Message;

/// The names of the arrays of natural parameters in messages: η1 `[d]`, and Λ `[d]` or `[d, d]`.
const ETA1: &str = "eta1";
const PRECISION: &str = "precision";

/// The part of q's precision that a step must leave.
const STEP_FLOOR: f64 = 0.5;
/// The part of the initial q's precision that must always be left.
const FLOOR: f64 = 1e-3;
/// The part of the precision that must be left with which q still counts as proper; the margin allows for rounding.
const MARGIN: f64 = 0.5;
/// The number of halvings after which a step is given up.
const HALVINGS: usize = 40;

/// exp(η1·θ − ½ θᵀΛθ) up to a constant: a Gaussian where Λ is positive definite, a factor or a cavity in any case.
#[derive(Clone, Debug, PartialEq)]
pub struct Natural {
    /// η1 = Λm, `[d]`.
    pub eta1: Array1<f64>,
    /// Λ = −2·η2, `[d, d]`.
    pub precision: Symmetric,
}

impl Natural {
    /// The function 1 in d dimensions: η1 = 0 and Λ = 0.
    pub fn flat(family: Family, d: usize) -> Self {
        Self { eta1: Array1::zeros(d), precision: Symmetric::diagonal(family, Array1::zeros(d)) }
    }

    /// The product of two densities.
    pub fn plus(&self, other: &Self) -> Self {
        self.combine(1.0, other, 1.0)
    }

    /// The quotient of two densities.
    pub fn minus(&self, other: &Self) -> Self {
        self.combine(1.0, other, -1.0)
    }

    /// The density to the power c.
    pub fn times(&self, c: f64) -> Self {
        self.combine(c, self, 0.0)
    }

    fn combine(&self, a: f64, other: &Self, b: f64) -> Self {
        Self { eta1: &self.eta1 * a + &other.eta1 * b, precision: self.precision.combine(a, &other.precision, b) }
    }

    /// The Gaussian that this is; `None` where Λ is not positive definite.
    pub fn normalised(self) -> Option<Gaussian> {
        let factor = Factor::of(&self.precision)?;
        let mut mean = self.eta1.clone();
        factor.solve(mean.view_mut());
        Some(Gaussian { natural: self, mean, factor })
    }

    /// The count of numbers in a message and in memory: d for η1, and those of Λ.
    pub fn numbers(&self) -> usize {
        self.eta1.len() + self.precision.len()
    }

    /// Bytes in memory.
    pub fn bytes(&self) -> u64 {
        (self.numbers() * size_of::<f64>()) as u64
    }

    /// The natural parameters as a message of two arrays, η1 `[d]` and Λ `[d]` or `[d, d]`.
    pub fn to_message(&self) -> Message {
        Message::default().with_array(ETA1, vector(&self.eta1)).with_array(PRECISION, array(&self.precision))
    }

    /// The natural parameters as a part of a state.
    pub(in crate::algorithm) fn save(&self) -> State {
        State::default().with_array(ETA1, vector(&self.eta1)).with_array(PRECISION, array(&self.precision))
    }

    /// Reads natural parameters from a state.
    ///
    /// # Errors
    /// An array is missing, or not of this family and dimension.
    pub(in crate::algorithm) fn in_state(state: &State, family: Family, d: usize) -> Result<Self, RunError> {
        let read = |name: &str| Ok::<_, CheckpointError>(state.array(name)?.clone());
        let message = Message::default().with_array(ETA1, read(ETA1)?).with_array(PRECISION, read(PRECISION)?);
        Ok(Self::from_message(&message, family, d).map_err(|error| CheckpointError::Content(error.to_string()))?)
    }

    /// Reads natural parameters from a message.
    ///
    /// # Errors
    /// The arrays are missing or not of this family and dimension.
    pub fn from_message(message: &Message, family: Family, d: usize) -> Result<Self, ArrayError> {
        let read = |name: &str, shape: &[usize]| {
            let array = message.array(name)?;
            let fits = array.shape == shape && array.values.len() == shape.iter().product::<usize>();
            let (name, expected, found) = (name.to_owned(), shape.to_vec(), array.shape.clone());
            fits.then(|| array.values.to_f64()).ok_or(ArrayError::Shape { name, expected, found })
        };
        let eta1 = Array1::from_vec(read(ETA1, &[d])?);
        let precision = match family {
            Family::MeanField => Symmetric::Diagonal(Array1::from_vec(read(PRECISION, &[d])?)),
            Family::Full => {
                let matrix = Array2::from_shape_vec((d, d), read(PRECISION, &[d, d])?);
                Symmetric::Full(matrix.map_err(|error| ArrayError::Content(error.to_string()))?)
            }
        };
        Ok(Self { eta1, precision })
    }
}

/// The Gaussian N(m, Λ⁻¹).
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    natural: Natural,
    mean: Array1<f64>,
    factor: Factor,
}

impl Gaussian {
    /// N(mean, covariance) for a mean `[d]` and a covariance `[d, d]`; `None` where the covariance is not positive
    /// definite.
    pub fn new(mean: Array1<f64>, covariance: &Symmetric) -> Option<Self> {
        let precision = Factor::of(covariance)?.inverse();
        Natural { eta1: precision.dot(&mean), precision }.normalised()
    }

    /// The natural parameters η1 and Λ.
    pub fn natural(&self) -> &Natural {
        &self.natural
    }

    /// The mean m, `[d]`.
    pub fn mean(&self) -> &Array1<f64> {
        &self.mean
    }

    /// The covariance Σ, `[d, d]`.
    pub fn covariance(&self) -> Symmetric {
        self.factor.inverse()
    }

    /// The Cholesky factor L of Λ = L·Lᵀ.
    pub(super) fn factor(&self) -> &Factor {
        &self.factor
    }

    /// The points m + L⁻ᵀz `[S, d]` for the rows of z `[S, d]`: draws from q where the rows are draws from N(0, I).
    pub fn at(&self, z: &Array2<f64>) -> Array2<f64> {
        let mut theta = z.clone();
        for mut row in theta.rows_mut() {
            self.factor.solve_transposed(row.view_mut());
            row += &self.mean;
        }
        theta
    }

    /// The divergence KL(self ‖ other) in nats.
    pub fn divergence(&self, other: &Self) -> f64 {
        let offset = &other.mean - &self.mean;
        let quadratic = offset.dot(&other.natural.precision.dot(&offset));
        let trace = other.natural.precision.trace_of_product(&self.covariance());
        let log_dets = self.factor.log_determinant() - other.factor.log_determinant();
        0.5 * (trace + quadratic - self.mean.len() as f64 + log_dets)
    }

    /// η ← (1 − ρ)η + ρ·target, with the largest share ≤ ρ that the bound admits: coordinate by coordinate in the
    /// mean field, by halving otherwise.
    pub fn step(&self, target: &Natural, share: f64, bound: &StepBound) -> Self {
        match (&self.natural.precision, &target.precision, &bound.floor) {
            (Symmetric::Diagonal(from), Symmetric::Diagonal(to), Symmetric::Diagonal(floor)) => {
                let share = |j: usize| {
                    let (from, to) = (from[j], to[j]);
                    let gradient = target.eta1[j] - to * self.mean[j];
                    bound.share(share, from, to, gradient, floor[j])
                };
                let shares = Array1::from_shape_fn(from.len(), share);
                let mix = |from: &Array1<f64>, to: &Array1<f64>| from + &(&shares * &(to - from));
                let precision = Symmetric::Diagonal(mix(from, to));
                let next = Natural { eta1: mix(&self.natural.eta1, &target.eta1), precision };
                next.normalised().unwrap_or_else(|| self.clone())
            }
            _ => {
                let shares = (0..HALVINGS).map(|halvings| share * 0.5f64.powi(halvings as i32));
                let candidates = shares.map(|share| self.natural.combine(1.0 - share, target, share));
                let accepted = candidates.filter_map(Natural::normalised).find(|next| bound.accepts(self, next));
                accepted.unwrap_or_else(|| self.clone())
            }
        }
    }
}

/// A bound on a step that keeps q a Gaussian, and near the point at which its expectations were taken.
///
/// Likelihoods need not be log-concave, nor estimates of their curvature negative: the precision of a target may be
/// anything. No step takes more than half of q's precision away, and none leaves less than a thousandth of the initial
/// precision. Both bounds are relative, so they do not depend on the units of θ. Factors have no bounds, because those
/// would move the fixed point.
#[derive(Clone, Debug)]
pub struct StepBound {
    /// The precision that must be left, `[d, d]`.
    floor: Symmetric,
    /// Whether the mean may move by more than a standard deviation of q.
    leaps: bool,
}

impl StepBound {
    /// The bound for a q that begins as `initial`. Where expectations are `sampled`, a step moves the mean by at most
    /// one standard deviation of q (√d in the full family): there a curvature that was estimated too small would move
    /// the mean to where the likelihood is almost linear, and no later estimate brings it back.
    pub fn new(initial: &Gaussian, sampled: bool) -> Self {
        let precision = &initial.natural.precision;
        Self { floor: precision.combine(FLOOR, precision, 0.0), leaps: !sampled }
    }

    /// Whether q has the precision that must be left, up to the margin.
    pub(super) fn holds(&self, q: &Gaussian) -> bool {
        Factor::of(&q.natural.precision.combine(1.0, &self.floor, -MARGIN)).is_some()
    }

    /// In the mean field: q in the coordinates that have the precision that must be left, and `near` in the others. `None`
    /// in the full family.
    pub(super) fn mixed(&self, q: &Natural, near: &Gaussian) -> Option<Gaussian> {
        let near = &near.natural;
        let (Symmetric::Diagonal(of_q), Symmetric::Diagonal(of_near), Symmetric::Diagonal(floor)) =
            (&q.precision, &near.precision, &self.floor)
        else {
            return None;
        };
        let mix = |q: &Array1<f64>, near: &Array1<f64>| {
            Array1::from_shape_fn(q.len(), |j| if of_q[j] > MARGIN * floor[j] { q[j] } else { near[j] })
        };
        let precision = Symmetric::Diagonal(mix(of_q, of_near));
        Natural { eta1: mix(&q.eta1, &near.eta1), precision }.normalised()
    }

    /// The share of the step in one coordinate, for precisions Λ → Λ', gradient η1' − Λ'm.
    fn share(&self, mut share: f64, from: f64, to: f64, gradient: f64, floor: f64) -> f64 {
        let least = floor.max(STEP_FLOOR * from);
        if to < from && from + share * (to - from) < least {
            share = ((from - least) / (from - to)).max(0.0);
        }
        // The mean moves by ρ·gradient/((1−ρ)Λ + ρΛ'), at most Λ^(−½).
        let slack = gradient.abs() + (from - to) / from.sqrt();
        if !self.leaps && share * slack > from.sqrt() {
            share = from.sqrt() / slack;
        }
        share
    }

    /// Whether a step from q to `next` is admissible.
    fn accepts(&self, q: &Gaussian, next: &Gaussian) -> bool {
        let precision = &next.natural.precision;
        let above = |part: f64, of: &Symmetric| Factor::of(&precision.combine(1.0, of, -part)).is_some();
        let shift = &next.mean - &q.mean;
        let near = || shift.dot(&q.natural.precision.dot(&shift)) <= shift.len() as f64;
        above(STEP_FLOOR, &q.natural.precision) && above(1.0, &self.floor) && (self.leaps || near())
    }
}

fn vector(values: &Array1<f64>) -> Array {
    Array { shape: vec![values.len()], values: Values::F64(values.to_vec()) }
}

fn array(matrix: &Symmetric) -> Array {
    match matrix {
        Symmetric::Diagonal(diagonal) => vector(diagonal),
        Symmetric::Full(matrix) => {
            let values = matrix.iter().copied().collect();
            Array { shape: matrix.shape().to_vec(), values: Values::F64(values) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn full(matrix: Array2<f64>) -> Symmetric {
        Symmetric::Full(matrix)
    }

    #[test]
    fn a_message_is_read_back_unchanged() {
        for (family, precision) in [
            (Family::MeanField, Symmetric::Diagonal(array![1.0, -2.0])),
            (Family::Full, full(array![[1.0, 0.5], [0.5, -3.0]])),
        ] {
            let natural = Natural { eta1: array![0.1, 1e-9], precision };
            let message = natural.to_message();
            assert_eq!(message.bytes(), 8 * natural.numbers() as u64);
            assert_eq!(Natural::from_message(&message, family, 2), Ok(natural));
            assert!(Natural::from_message(&message, family, 3).unwrap_err().to_string().contains("eta1"));
        }
    }

    #[test]
    fn a_step_towards_an_improper_target_stays_proper() {
        let mean_field = Gaussian::new(array![1.0, 2.0], &Symmetric::Diagonal(array![1.0, 0.25])).unwrap();
        let coupled = Gaussian::new(array![1.0, 2.0], &full(array![[1.0, 0.3], [0.3, 0.25]])).unwrap();
        for (q, family) in [(mean_field, Family::MeanField), (coupled, Family::Full)] {
            let bound = StepBound::new(&q, false);
            let improper =
                Natural { eta1: array![5.0, -5.0], precision: Symmetric::diagonal(family, array![-10.0, 7.0]) };
            let mut wide = q.clone();
            for _ in 0..100 {
                wide = wide.step(&improper, 1.0, &bound);
            }
            // The floor is a thousandth of the first precision; halving ends within a factor 2 of it.
            let narrowest = q.natural().precision.to_full();
            let left = wide.natural().precision.to_full()[[0, 0]] / narrowest[[0, 0]];
            assert!((0.999e-3..1.0).contains(&left), "{family:?}: {left}");
            assert!(wide.mean().iter().all(|m| m.is_finite()));
        }
    }

    #[test]
    fn a_precision_below_the_floor_may_rise_by_its_share_and_no_more() {
        let diagonal = |precision: f64| Symmetric::Diagonal(array![1.0 / precision]);
        let bound = StepBound::new(&Gaussian::new(array![0.0], &diagonal(1.0)).unwrap(), false);
        let q = Gaussian::new(array![0.0], &diagonal(1e-4)).unwrap();
        assert!(!bound.holds(&q));
        for (to, want) in [(5e-4, 3e-4), (2.0, 1.00005), (0.5e-4, 1e-4)] {
            let target = Natural { eta1: array![0.0], precision: Symmetric::Diagonal(array![to]) };
            let got = q.step(&target, 0.5, &bound).natural().precision.to_diagonal()[0];
            assert!((got / want - 1.0).abs() < 1e-12, "{got}, not {want}");
        }
    }

    #[test]
    fn an_improper_coordinate_leaves_the_others_where_they_are() {
        let initial = Gaussian::new(array![0.0, 0.0], &Symmetric::Diagonal(array![1.0, 1.0])).unwrap();
        let bound = StepBound::new(&initial, true);
        let q = Natural { eta1: array![1.0, 0.0], precision: Symmetric::Diagonal(array![0.05, -1.0]) };
        let near = initial.step(&q, 1.0, &StepBound::new(&initial, false));
        let got = bound.mixed(&q, &near).unwrap();
        // N(20, 20) in the first coordinate, as by itself; half of the initial precision in the second.
        assert!((got.mean()[0] / 20.0 - 1.0).abs() < 1e-12, "{}", got.mean());
        assert_eq!(got.natural().precision, Symmetric::Diagonal(array![0.05, 0.5]));
        let coupled = Gaussian::new(array![0.0, 0.0], &full(array![[1.0, 0.0], [0.0, 1.0]])).unwrap();
        let q = Natural { precision: Symmetric::diagonal(Family::Full, array![0.05, -1.0]), ..q };
        assert_eq!(StepBound::new(&coupled, true).mixed(&q, &coupled), None);
    }

    #[test]
    fn a_sampled_step_moves_the_mean_by_a_standard_deviation_at_most() {
        let q = Gaussian::new(array![0.0, 0.0], &Symmetric::Diagonal(array![4.0, 4.0])).unwrap();
        let target = Natural { eta1: array![1e6, 0.01], precision: Symmetric::Diagonal(array![0.2, 0.2]) };
        let moved = q.step(&target, 1.0, &StepBound::new(&q, true));
        assert!((moved.mean()[0] - 2.0).abs() < 1e-12, "{}", moved.mean());
        assert!((moved.mean()[1] - 0.05).abs() < 1e-12, "{}", moved.mean());
        let full = Gaussian::new(array![0.0, 0.0], &full(array![[4.0, 1.0], [1.0, 4.0]])).unwrap();
        let target =
            Natural { eta1: array![1e6, 0.01], precision: Symmetric::diagonal(Family::Full, array![0.2, 0.2]) };
        let moved = full.step(&target, 1.0, &StepBound::new(&full, true));
        let distance = moved.mean().dot(&full.natural().precision.dot(moved.mean()));
        assert!((0.4..=2.0).contains(&distance), "{distance}");
    }
}
