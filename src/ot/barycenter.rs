//! The 2-Wasserstein barycenter of K particle sets with free support: FedWBA's aggregation.
//!
//! min_X Σ_k ω_k W₂²(X, Θ_k) by alternation: with M_k,ij = ‖x_i − θ_kj‖² (f64 on the host, the products on the device)
//! and π_k = argmin_π Σ_i M_k,iπ(i) the plan is T_k = P_π/N, and
//!
//! X ← N Σ_k ω_k T_k Θ_k, that is x_i ← Σ_k ω_k θ_{k,π_k(i)},
//!
//! until Σ_i‖Δx_i‖² ≤ tolerance. The problem is not convex: the result depends on where X starts. Eq. (5) prints
//! diag(N⁻¹) for the factor N. Source: FedWBA eq. (3)-(5).
//!
//! An update takes K·N²·d multiplications. The K·N × K·N products of the clients' particles with each other would give
//! the costs of all later updates on the host, but take as long as K updates; the iteration usually ends after two to
//! five.

use ndarray::Array2;

use super::{ParticleSet, TransportError, assign};
use crate::particles::Particles;

/// Largest distance of the weights' sum from 1: the rounding error of a few hundred weights.
const WEIGHT_SUM_TOLERANCE: f64 = 1e-9;

fedstein_schema::words! {
    /// How many times eq. (5) is applied.
    #[derive(Default)]
    pub enum Iterate {
        /// Until the particles no longer move, as in the public code.
        #[default]
        FixedPoint = "fixed-point",
        /// Once, as printed in the paper.
        OneStep = "one-step",
    }
}

fedstein_schema::words! {
    /// The mass factor of eq. (5).
    #[derive(Default)]
    pub enum Eq5 {
        /// N: with masses of 1/N the result is an average of particles.
        #[default]
        N = "N",
        /// 1/N, as printed: the same set divided by N². It is here only to show the effect of the misprint.
        Paper = "paper",
    }
}

/// The termination and the form of a barycenter's iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BarycenterConfig {
    /// The iteration ends where the sum of squared displacements is at most this, ≥ 0.
    pub tolerance: f64,
    /// Most updates, ≥ 1.
    pub max_iterations: usize,
    /// One update, or as many as the fixed point takes.
    pub iterate: Iterate,
    /// The mass factor.
    pub eq5: Eq5,
}

impl Default for BarycenterConfig {
    fn default() -> Self {
        Self { tolerance: 1e-7, max_iterations: 100, iterate: Iterate::default(), eq5: Eq5::default() }
    }
}

impl BarycenterConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    /// The tolerance is negative or not finite, or there are no iterations.
    fn check(&self) -> Result<(), TransportError> {
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            return Err(TransportError::Tolerance { value: self.tolerance });
        }
        if self.max_iterations == 0 { Err(TransportError::NoIterations) } else { Ok(()) }
    }

    fn limit(&self) -> usize {
        match self.iterate {
            Iterate::FixedPoint => self.max_iterations,
            Iterate::OneStep => 1,
        }
    }
}

/// A barycenter and a record of its iteration.
#[derive(Clone, Debug)]
pub struct Barycenter {
    /// X, `[N, d]`; row i is the moved row i of the initial set.
    pub particles: Particles,
    /// Σ_i‖Δx_i‖² of every update, `[updates]`. The last is 0 where the matchings repeat.
    pub displacement_sq: Vec<f64>,
    /// Σ_k ω_k W₂²(X, Θ_k) before every update, `[updates]`. It never increases, except in the first update with
    /// [`Eq5::Paper`].
    pub objectives: Vec<f64>,
    /// Σ_k ω_k W₂²(X, Θ_k) of the result.
    pub objective: f64,
    /// Share of π_k(i) = i among all K·N matches of the last update: 1 where the barycenter is the mean by index.
    pub identity_share: f64,
    /// Standard deviation over mean of the entries of a client's first cost matrix, averaged over clients. Near 0 all
    /// particles have nearly the same distance from each other, and the matching is almost arbitrary.
    pub cost_contrast: f64,
}

impl Barycenter {
    /// Number of updates.
    pub fn iterations(&self) -> usize {
        self.displacement_sq.len()
    }
}

/// The barycenter of the clients' sets, from an initial set of the same size.
///
/// # Arguments
/// - `clients`: Θ_k `[N, d]`, K of them.
/// - `weights`: ω `[K]`, ≥ 0 and of sum 1; `None` for equal weights.
/// - `initial`: X at the start `[N, d]`; [`index_mean`] is the usual one.
///
/// # Errors
/// There are no clients; sets differ in size, model or precision; a particle or weight is not finite; the weights do
/// not sum to 1; the configuration is invalid; reading from the device fails.
pub fn barycenter(
    clients: &[Particles],
    weights: Option<&[f64]>,
    initial: &Particles,
    config: &BarycenterConfig,
) -> Result<Barycenter, TransportError> {
    config.check()?;
    let weights = checked_weights(weights, clients.len())?;
    for (client, particles) in clients.iter().enumerate() {
        check_alike((ParticleSet::Client(client), particles), (ParticleSet::Initial, initial))?;
    }
    check_finite(ParticleSet::Initial, initial)?;

    let targets = Targets::new(clients, weights, initial)?;
    let mut x = initial.clone();
    let costs = targets.costs(&x)?;
    let cost_contrast = costs.iter().map(contrast).sum::<f64>() / costs.len() as f64;
    let mut matching = targets.matching(&costs)?;
    let (mut displacement_sq, mut objectives) = (Vec::new(), Vec::new());
    let used = loop {
        let moved = targets.average(&matching.permutations, config.eq5);
        let displacement = moved.clone().zip(x, |to, from| to - from).squared_norms()?.iter().sum();
        x = moved;
        let next = targets.matching(&targets.costs(&x)?)?;
        let used = std::mem::replace(&mut matching, next);
        displacement_sq.push(displacement);
        objectives.push(used.objective);
        if displacement <= config.tolerance || displacement_sq.len() == config.limit() {
            break used;
        }
        if matching.permutations == used.permutations {
            // The next update would return the same X.
            displacement_sq.push(0.0);
            objectives.push(matching.objective);
            break used;
        }
    };
    let (objective, identity_share) = (matching.objective, used.identity_share());
    Ok(Barycenter { particles: x, displacement_sq, objectives, objective, identity_share, cost_contrast })
}

/// The mean over clients of particle i, `[N, d]`, at which FedWBA's iteration starts.
///
/// # Errors
/// There are no clients, or sets differ in size, model or precision.
pub fn index_mean(clients: &[Particles]) -> Result<Particles, TransportError> {
    let Some((first, rest)) = clients.split_first() else { return Err(TransportError::NoClients) };
    for (client, particles) in rest.iter().enumerate() {
        check_alike((ParticleSet::Client(client + 1), particles), (ParticleSet::Client(0), first))?;
    }
    Particles::mean_of(clients).ok_or(TransportError::NoClients)
}

/// W₂² of two sets `[N, d]` with masses 1/N: the mean squared distance under the best matching.
///
/// # Errors
/// The sets differ in size, model or precision; a particle is not finite; reading from the device fails.
pub fn wasserstein2_squared(first: &Particles, second: &Particles) -> Result<f64, TransportError> {
    let plan = assign(cost_matrix(first, second)?.view())?;
    // Differences keep the digits that products lose: a set and its permuted copy are at distance 0.
    let apart = first.clone().zip(second.rows(&plan.permutation), |x, y| x - y).squared_norms()?;
    Ok(apart.iter().sum::<f64>() / first.count() as f64)
}

/// M_ij = ‖x_i − y_j‖², `[N, N]`, of two sets of one size.
///
/// # Errors
/// Those of [`wasserstein2_squared`].
pub fn cost_matrix(first: &Particles, second: &Particles) -> Result<Array2<f64>, TransportError> {
    check_alike((ParticleSet::Second, second), (ParticleSet::First, first))?;
    check_finite(ParticleSet::First, first)?;
    check_finite(ParticleSet::Second, second)?;
    let target = Targets::new(std::slice::from_ref(second), vec![1.0], second)?;
    Ok(target.costs(first)?.remove(0))
}

/// The clients' sets and their distances from a point.
struct Targets<'a> {
    clients: &'a [Particles],
    /// ω, `[K]`.
    weights: Vec<f64>,
    /// The point, as a set of one: the mean of the set at which the iteration starts. The mean of all sets would be far from
    /// most of them where one is far away.
    mean: Particles,
    /// ‖θ_kj − mean‖², `[N]` for each client.
    norms: Vec<Vec<f64>>,
}

/// π_k of every client, and Σ_k ω_k W₂² under them.
struct Matching {
    /// π_k, `[N]` for each client.
    permutations: Vec<Vec<usize>>,
    objective: f64,
}

impl<'a> Targets<'a> {
    fn new(clients: &'a [Particles], weights: Vec<f64>, initial: &Particles) -> Result<Self, TransportError> {
        let mean = initial.mean();
        let norms = clients.iter().map(|client| client.squared_distances_from(&mean));
        let norms: Vec<Vec<f64>> = norms.collect::<Result<_, _>>()?;
        if !norms.iter().flatten().all(|norm| norm.is_finite()) {
            for (client, particles) in clients.iter().enumerate() {
                check_finite(ParticleSet::Client(client), particles)?;
            }
        }
        Ok(Self { clients, weights, mean, norms })
    }

    /// M_k, `[N, N]` for each client. The point is subtracted so that f32 keeps its digits where ‖θ‖ ≫ spread;
    /// doing so each time costs less than a second copy of all sets.
    fn costs(&self, x: &Particles) -> Result<Vec<Array2<f64>>, TransportError> {
        let x = x.clone().zip(self.mean.clone(), |block, mean| block - mean);
        let x_norms = x.squared_norms()?;
        let cost = |(client, norms): (&Particles, &Vec<f64>)| {
            let products = x.gram_with_offsets(client, &self.mean)?;
            Ok(Array2::from_shape_fn(products.dim(), |(i, j)| {
                let r2 = x_norms[i] + norms[j] - 2.0 * products[[i, j]];
                if r2 < 0.0 { 0.0 } else { r2 } // NaN stays: `assign` reports it
            }))
        };
        self.clients.iter().zip(&self.norms).map(cost).collect()
    }

    fn matching(&self, costs: &[Array2<f64>]) -> Result<Matching, TransportError> {
        let (mut permutations, mut objective) = (Vec::with_capacity(costs.len()), 0.0);
        for (cost, weight) in costs.iter().zip(&self.weights) {
            let plan = assign(cost.view())?;
            objective += weight * plan.total / cost.nrows() as f64;
            permutations.push(plan.permutation);
        }
        Ok(Matching { permutations, objective })
    }

    /// Eq. (5): Σ_k ω_k θ_{k,π_k(i)}.
    fn average(&self, permutations: &[Vec<usize>], eq5: Eq5) -> Particles {
        let average = Particles::weighted_sum(self.clients, &self.weights, Some(permutations));
        match eq5 {
            Eq5::N => average,
            Eq5::Paper => {
                let factor = (average.count() as f64).powi(-2);
                average.map(|block| block.mul_scalar(factor))
            }
        }
    }
}

impl Matching {
    fn identity_share(&self) -> f64 {
        let pairs = || self.permutations.iter().flat_map(|permutation| permutation.iter().enumerate());
        pairs().filter(|(i, j)| i == *j).count() as f64 / pairs().count() as f64
    }
}

/// Standard deviation over mean of the costs; 0 where all costs are 0.
fn contrast(cost: &Array2<f64>) -> f64 {
    let mean = cost.sum() / cost.len() as f64;
    if mean > 0.0 { cost.std(0.0) / mean } else { 0.0 }
}

fn checked_weights(weights: Option<&[f64]>, clients: usize) -> Result<Vec<f64>, TransportError> {
    if clients == 0 {
        return Err(TransportError::NoClients);
    }
    let Some(weights) = weights else { return Ok(vec![1.0 / clients as f64; clients]) };
    if weights.len() != clients {
        return Err(TransportError::WeightCount { got: weights.len(), expected: clients });
    }
    let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
    if let Some(client) = weights.iter().position(|weight| !is_weight(weight)) {
        return Err(TransportError::Weight { client, value: weights[client] });
    }
    let (sum, tolerance) = (weights.iter().sum::<f64>(), WEIGHT_SUM_TOLERANCE);
    let is_one = (sum - 1.0).abs() <= tolerance;
    if is_one { Ok(weights.to_vec()) } else { Err(TransportError::WeightSum { sum, tolerance }) }
}

/// Checks a set against a reference.
///
/// # Errors
/// The set differs from the reference in size, model or precision.
fn check_alike(
    (set, particles): (ParticleSet, &Particles),
    (reference, expected): (ParticleSet, &Particles),
) -> Result<(), TransportError> {
    if particles.count() != expected.count() {
        let (got, expected) = (particles.count(), expected.count());
        return Err(TransportError::Count { set, got, reference, expected });
    }
    if particles.layout() != expected.layout() {
        return Err(TransportError::Layout { set, reference });
    }
    if particles.dtype() != expected.dtype() {
        let (got, expected) = (particles.dtype(), expected.dtype());
        return Err(TransportError::Precision { set, got, reference, expected });
    }
    Ok(())
}

fn check_finite(set: ParticleSet, particles: &Particles) -> Result<(), TransportError> {
    match particles.squared_norms()?.iter().position(|norm| !norm.is_finite()) {
        None => Ok(()),
        Some(particle) => Err(TransportError::NotFinite { set, particle }),
    }
}
