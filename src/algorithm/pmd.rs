//! PMD, particle mirror descent: a weighted density of particles that follows mirror steps, with all rows in one place.
//!
//! Step t takes q_{t+1} ∝ q_t^(1−γ_t)·p̃^(γ_t), p̃ = p0·exp(−L/α) from a minibatch, with q_t the particles' kernel
//! density:
//!
//! ```text
//! log w_n = γ_t [ log p0(θ_n) + (N_tot/B) log p(batch | θ_n)/α − log q_t(θ_n) ],   γ_t = min(γ_max, c/t)
//! θ ← systematic resampling by w
//! θ_n ← m + √(1 − τ²)(θ_n − m) + τ·sd ⊙ z  where θ_n is a copy of another,   τ = min(λ_t/sd, ½),   z ~ N(0, I)
//! ```
//!
//! γ_t is shortened by bisection until the effective sample size is at least half of N. The last line draws from a
//! kernel around the parent, shrunk so that mean m and standard deviation sd of a set do not change. The first child of
//! a particle is not moved. If every particle were jittered in every step, the noise would persist while the selection
//! vanishes with γ_t → 0: on the paper's 1-D toy (N = 200, mean of 10 seeds) KL(q ‖ posterior) then rises from .04
//! after 10 steps to .29 after 3,000; if only copies are jittered, it is .009 from the tenth step on. The method uses
//! no gradients.
//! Source: Dai, He, Dai & Song 2016; the details are ours.

use fedstein_schema::Accepts::Float;
use fedstein_schema::Literal::{Float as F, Text as T};
use fedstein_schema::{Interval, Kind, NumberOr, POSITIVE, key};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::keys::{
    BATCH, KDE_BANDWIDTH, KdeRule, LIKELIHOOD_SCALE, LOCAL_STEPS, LocalConfig, MINIBATCH, PARTICLE_COUNT, TEMPERATURE,
    bandwidth,
};
use super::kind::{Algorithm, Capabilities, VisitCost};
use super::relay::Relay;
use crate::array::Values;
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, Likelihood};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{ClientHalf, Halves, Message, Request, Setup, Watch, message_of, particles_of};
use crate::random::{Purpose, Streams};

/// `[algorithm] kind = "pmd"`; L steps between two evaluations ("rounds").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PmdConfig {
    /// The number of particles N.
    pub particles: usize,
    /// The local steps L, the batch size B and the rows that the steps read.
    #[serde(flatten)]
    pub local: LocalConfig,
    /// The temperature α.
    pub temperature: f64,
    /// The bandwidth λ_t.
    pub kde_bandwidth: NumberOr<KdeRule>,
    /// The largest step γ_max ∈ (0, 1].
    pub max_step: f64,
    /// The constant c of γ_t = min(γ_max, c/t).
    pub step_decay: f64,
}

impl PmdConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "pmd",
        about: "Particle mirror descent on all rows in one place (Dai et al. 2016).",
        keys: &[
            PARTICLE_COUNT,
            LOCAL_STEPS,
            BATCH,
            MINIBATCH,
            LIKELIHOOD_SCALE,
            TEMPERATURE,
            KDE_BANDWIDTH.default(T(KdeRule::Scott.word())),
            key("max_step", Float(Interval::FRACTION), F(1.0), "γ_max: the longest mirror step."),
            key("step_decay", POSITIVE, F(5.0), "c: mirror step t is min(γ_max, c/t)."),
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities { scheduled_steps: false, ..Capabilities::CENTRALISED };
}

/// The smallest effective share of the particles after a step: ESS(w) ≥ N/2.
const SURVIVING: f64 = 0.5;
/// The number of halvings of the interval in which γ_t is sought.
const HALVINGS: usize = 50;
/// The largest τ: a particle keeps √(1 − ¼) of its place.
const LARGEST_JITTER: f64 = 0.5;

struct Client {
    config: PmdConfig,
    likelihood: Likelihood,
    streams: Streams,
    like: Particles,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let mut theta = particles_of(&request.message, &self.like, &self.session)?;
        self.likelihood.start_visit(request.round);
        let steps = self.config.local.local_steps;
        for step in 1..=steps {
            theta = self.step(&theta, (request.round - 1) * steps + step)?;
            watch(step, steps);
        }
        message_of(&theta)
    }

    fn save(&self) -> Result<State, RunError> {
        Ok(self.likelihood.save())
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        Ok(self.likelihood.restore(state)?)
    }
}

impl Client {
    /// Mirror step t, from 1, of particles `[N, d]`.
    fn step(&mut self, theta: &Particles, t: usize) -> Result<Particles, RunError> {
        let likelihood = self.likelihood.next_log_likelihood(theta)?;
        let prior = self.likelihood.model().prior().log_density(theta.blocks()).try_into_vec_as::<f64>()?;
        let kde = Kde::new(theta, KdeConfig { mode: KdeMode::Exact, bandwidth: bandwidth(self.config.kde_bandwidth) })?;
        let density = kde.log_density(theta)?;
        let gains: Vec<f64> = (0..theta.count()).map(|n| prior[n] + likelihood[n] - density[n]).collect();
        let longest = self.config.max_step.min(self.config.step_decay / t as f64);
        let no_particle = || RunError::Config(format!("mirror step {t}: no particle has a finite log p"));
        let weights = mirror_weights(&gains, longest).ok_or_else(no_particle)?;

        let mut rng = self.streams.rng(Purpose::Resample, t, 0);
        let parents = systematic(&weights, rng.random());
        let mut array = theta.to_array()?;
        let rows = array.values.to_f64();
        let mut rows: Vec<f64> = parents.iter().flat_map(|n| row(&rows, *n, theta.dim())).copied().collect();
        jitter(&mut rows, &parents, kde.lambda(), &mut rng);
        array.values = Values::F64(rows);
        Particles::from_array(&array, theta.layout(), &self.session).map_err(RunError::Array)
    }
}

/// The weights w_n ∝ exp(γ·gain_n), Σ w = 1, `[N]`, with the longest γ ≤ `longest` for which half of the particles with
/// a finite gain count. `None` if there is no such particle, or a gain is NaN or ∞.
fn mirror_weights(gains: &[f64], longest: f64) -> Option<Vec<f64>> {
    let top = gains.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() || gains.iter().any(|gain| gain.is_nan()) {
        return None;
    }
    // A particle outside the prior's support has gain −∞, and weight 0 with any γ.
    let weights = |step: f64| -> Vec<f64> {
        let weight = |gain: &f64| if gain.is_finite() { (step * (gain - top)).exp() } else { 0.0 };
        let weights: Vec<f64> = gains.iter().map(weight).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / total).collect()
    };
    let alive = gains.iter().filter(|gain| gain.is_finite()).count() as f64;
    let enough = |step: f64| effective(&weights(step)) >= SURVIVING * alive;
    if enough(longest) {
        return Some(weights(longest));
    }
    // ESS falls as γ grows, from `alive` at 0: bisection.
    let (mut low, mut high) = (0.0, longest);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if enough(middle) { low = middle } else { high = middle }
    }
    Some(weights(low))
}

/// The effective sample size 1/Σ w_n² of weights that sum to 1.
fn effective(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>()
}

/// Systematic resampling of N parents by one uniform number u ∈ [0, 1): particle n gets ⌊N w_n⌋ or ⌈N w_n⌉ children.
fn systematic(weights: &[f64], u: f64) -> Vec<usize> {
    let count = weights.len();
    let mut parents = Vec::with_capacity(count);
    let (mut parent, mut below) = (0, weights[0]);
    for child in 0..count {
        let place = (child as f64 + u) / count as f64;
        // Rounding may leave the sum of all weights a little below the last place.
        while place >= below && parent + 1 < count {
            parent += 1;
            below += weights[parent];
        }
        parents.push(parent);
    }
    parents
}

/// The move θ_n ← m + √(1 − τ²)(θ_n − m) + τ·sd ⊙ z of every further child of a parent, in the flat rows `[N, d]` of
/// the children of these `parents` in ascending order; a coordinate of variance 0 does not move.
fn jitter(rows: &mut [f64], parents: &[usize], lambda: f64, rng: &mut impl Rng) {
    let (count, d) = (parents.len(), rows.len() / parents.len());
    let (means, sds): (Vec<f64>, Vec<f64>) = (0..d)
        .map(|i| {
            let values = || rows.iter().skip(i).step_by(d);
            let mean = values().sum::<f64>() / count as f64;
            let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64;
            (mean, variance.sqrt())
        })
        .unzip();
    for child in (1..count).filter(|child| parents[*child] == parents[child - 1]) {
        let theta = &mut rows[child * d..(child + 1) * d];
        for ((theta, mean), sd) in theta.iter_mut().zip(&means).zip(&sds) {
            let z: f64 = StandardNormal.sample(rng);
            if *sd > 0.0 {
                let tau = (lambda / sd).min(LARGEST_JITTER);
                *theta = mean + (1.0 - tau * tau).sqrt() * (*theta - mean) + tau * sd * z;
            }
        }
    }
}

fn row(rows: &[f64], n: usize, d: usize) -> &[f64] {
    &rows[n * d..(n + 1) * d]
}

impl Algorithm for PmdConfig {
    fn kind(&self) -> Kind {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Self::CAPABILITIES
    }

    fn particles(&self) -> usize {
        self.particles
    }

    fn temperature(&self) -> f64 {
        self.temperature
    }

    fn check(&self) -> Result<(), String> {
        match self.particles {
            1 => {
                Err("algorithm kind `pmd` chooses among its particles; `algorithm.particles` must be 2 or more".into())
            }
            _ => Ok(()),
        }
    }

    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        Some(bandwidth(self.kde_bandwidth))
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        self.local.cost(rows)
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // One client that holds every row.
        let likelihoods = setup.likelihoods(self.local.data(self.temperature));
        let client = |(id, likelihood)| {
            let (like, session) = (setup.initial.clone(), setup.session.clone());
            (id, Box::new(Client { config: *self, likelihood, streams: setup.streams, like, session }) as _)
        };
        let clients = likelihoods.into_iter().map(client).collect();
        Ok(Halves { server: Box::new(Relay::new(setup.initial.clone(), setup.session.clone())), clients })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use rand::SeedableRng;
    use rand::rngs::ChaCha12Rng;

    #[test]
    fn a_long_step_is_shortened_to_an_effective_sample_size_of_half_the_particles() {
        let gains: Vec<f64> = (0..100).map(|n| -10.0 * f64::from(n)).collect();
        // The step needs no shortening: w ∝ exp(γ·gain), ratio e^(−10γ) from one to the next.
        let free = mirror_weights(&gains, 1e-3).unwrap();
        assert!((free[1] / free[0] - (-0.01f64).exp()).abs() < 1e-12);
        let cut = mirror_weights(&gains, 1.0).unwrap();
        assert!((effective(&cut) - 50.0).abs() < 1e-6, "{}", effective(&cut));
        assert!((cut.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn particles_outside_the_prior_have_weight_zero_and_invalid_gains_are_refused() {
        let weights = mirror_weights(&[0.0, f64::NEG_INFINITY, 0.0, f64::NEG_INFINITY], 1.0).unwrap();
        assert_eq!(weights, [0.5, 0.0, 0.5, 0.0]);
        assert_eq!(mirror_weights(&[-700.0], 1.0).unwrap(), [1.0]);
        assert!(mirror_weights(&[f64::NEG_INFINITY; 2], 1.0).is_none());
        assert!(mirror_weights(&[0.0, f64::NAN], 1.0).is_none());
        assert!(mirror_weights(&[0.0, f64::INFINITY], 1.0).is_none());
    }

    #[test]
    fn half_of_the_particles_within_the_prior_count_and_not_half_of_all() {
        let inside = (0..50).map(|n| -10.0 * f64::from(n));
        let gains: Vec<f64> = inside.chain([f64::NEG_INFINITY; 50]).collect();
        let weights = mirror_weights(&gains, 1.0).unwrap();
        assert!((effective(&weights) - 25.0).abs() < 1e-6, "{}", effective(&weights));
        assert!(weights[50..].iter().all(|weight| *weight == 0.0));
    }

    #[test]
    fn a_copy_keeps_as_much_of_its_place_as_the_width_of_the_kernel_leaves() {
        // Pairs of copies at 2 and 6: the mean is 4 and the sd 2, so that τ is λ/2, and ½ at most. In units of the sd a copy's
        // covariance with its parent is √(1 − τ²), with a standard error of τ/√20000 = .0071 τ.
        let parents: Vec<usize> = (0..40_000).map(|n| n / 2).collect();
        let place = |x: f64| 0.5 * (x - 4.0);
        let start: Vec<f64> = parents.iter().map(|n| if n % 2 == 0 { 2.0 } else { 6.0 }).collect();
        for (lambda, tau) in [(0.2, 0.1_f64), (0.8, 0.4), (9.0, 0.5)] {
            let mut rows = start.clone();
            jitter(&mut rows, &parents, lambda, &mut ChaCha12Rng::seed_from_u64(4));
            let kept = (1.0 - tau * tau).sqrt();
            let copies = start.iter().zip(&rows).skip(1).step_by(2);
            let pairs: Vec<(f64, f64)> = copies.map(|(from, to)| (place(*from), place(*to))).collect();
            let covariance = pairs.iter().map(|(from, to)| from * to).sum::<f64>() / 20_000.0;
            assert!((covariance - kept).abs() < 0.035 * tau, "λ = {lambda}: {covariance}, not {kept}");
            // The rest is noise of the variance τ², with a relative error of √(2/20000) = 1 %.
            let variance = pairs.iter().map(|(from, to)| (to - kept * from).powi(2)).sum::<f64>() / 20_000.0;
            assert!((variance / (tau * tau) - 1.0).abs() < 0.05, "λ = {lambda}: {variance}, not τ² for τ = {tau}");
        }
    }

    #[test]
    fn resampling_gives_each_particle_its_expected_number_of_children_up_to_one() {
        let weights = [0.02, 0.4, 0.0, 0.33, 0.25];
        for u in [0.0, 0.3, 0.77, 1.0 - f64::EPSILON] {
            let parents = systematic(&weights, u);
            assert_eq!(parents.len(), 5);
            for (n, weight) in weights.iter().enumerate() {
                let children = parents.iter().filter(|parent| **parent == n).count() as f64;
                assert!((children - 5.0 * weight).abs() < 1.0 + 1e-9, "u = {u}: particle {n} has {children}");
            }
        }
        // The sums stay below 1 by rounding.
        assert_eq!(systematic(&[0.1; 10], 0.999_999), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn copies_move_and_keep_mean_and_spread() {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        // Two children of every parent and two modes: sets that are not Gaussian keep their moments, too.
        let parents: Vec<usize> = (0..40_000).map(|n| n / 2).collect();
        let start: Vec<f64> = parents.iter().flat_map(|n| [if n % 2 == 0 { 3.0 } else { 5.0 }, 7.0]).collect();
        let mut rows = start.clone();
        jitter(&mut rows, &parents, 0.4, &mut rng);
        let (kept, moved): (Vec<usize>, Vec<usize>) = (0..40_000).partition(|n| n % 2 == 0);
        assert!(kept.iter().all(|n| rows[2 * n] == start[2 * n]));
        assert!(moved.iter().all(|n| rows[2 * n] != start[2 * n]));
        let moved: Vec<f64> = moved.iter().map(|n| rows[2 * n]).collect();
        let mean = moved.iter().sum::<f64>() / 20_000.0;
        let variance = moved.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 20_000.0;
        // The standard errors are .4/√20000 of the mean, about .006 of the variance.
        assert!((mean - 4.0).abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean}, {variance}");
        // A coordinate of variance 0 keeps it.
        assert!(rows.iter().skip(1).step_by(2).all(|x| *x == 7.0));
    }
}
