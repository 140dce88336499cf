//! NPV, nonparametric variational inference: a mixture of N isotropic Gaussians, with all rows in one place.
//!
//! q = (1/N) Σ_n N(μ_n, σ_n² I) maximises a bound of the evidence, with f = log p̃ to second order around the means:
//!
//! ```text
//! ELBO2 = (1/N) Σ_n [ f(μ_n) + (σ_n²/2) tr ∇²f(μ_n) ] − (1/N) Σ_n log q_n
//! q_n   = (1/N) Σ_j N(μ_n; μ_j, (σ_n² + σ_j²) I)
//! ```
//!
//! A round is a sweep: L-BFGS maximises the bound (1) in the means, without the term of the trace, (2) in the log σ_n²,
//! with it. A sweep that changes ELBO2 by less than 1e-4 of its value is the last; further rounds change nothing.
//! Predictions are made with the means alone, the first order of their expectation under q. Source: Gershman, Hoffman &
//! Blei 2012.
//!
//! Changes to the paper: all means move at once and not one after the other, so that an evaluation is one particle set.
//! A trace above 0 counts as 0, and no component gets wider than the prior: where f curves upwards, ELBO2 may have no
//! maximum in σ_n². `START` sets the initial σ_n².

use std::f64::consts::PI;

use fedstein_models::Model;
use fedstein_schema::Kind;
use fedstein_schema::Literal::Int as I;
use ndarray::{Array2, Axis};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::keys::{LOCAL_STEPS, PARTICLE_COUNT, TEMPERATURE};
use super::kind::{Algorithm, Capabilities, VisitCost};
use super::lbfgs::Lbfgs;
use crate::array::{Array, ArrayError, Values};
use crate::backend::Session;
use crate::checkpoint::State;
use crate::density::{KdeBandwidth, Likelihood, LikelihoodScale};
use crate::error::RunError;
use crate::particles::Particles;
use crate::protocol::{
    ClientHalf, Halves, LocalData, Message, PARTICLES, Posterior, Reply, Request, ServerHalf, Setup, Watch, message_of,
    particles_of,
};
use crate::random::{Purpose, Streams};
use crate::rows::{Order, Rows};
use crate::stein::Distances;

/// `[algorithm] kind = "npv"`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NpvConfig {
    /// The number of components N.
    pub particles: usize,
    /// The largest number of iterations of L-BFGS in each half of a sweep; a round is a sweep.
    pub local_steps: usize,
    /// The temperature α.
    pub temperature: f64,
}

impl NpvConfig {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "npv",
        about: "Nonparametric variational inference on all rows in one place (Gershman et al. 2012).",
        keys: &[
            PARTICLE_COUNT.doc("Components N of the mixture."),
            LOCAL_STEPS.default(I(100)).doc("Largest number of iterations of L-BFGS in a round's sweep."),
            TEMPERATURE,
        ],
    };

    /// The capabilities and the requirements of the method.
    pub const CAPABILITIES: Capabilities = Capabilities { scheduled_steps: false, ..Capabilities::CENTRALISED };
}

/// The name of the array of log σ_n² `[N, 1]` in messages.
const LOG_VARIANCES: &str = "log_variances";
/// The names under which the client keeps the last ELBO2, and whether it has converged.
const ELBO: &str = "elbo";
const HAS_CONVERGED: &str = "converged";
/// The number of past steps that L-BFGS keeps.
const MEMORY: usize = 10;
/// The relative change of ELBO2 below which a sweep is the last.
const CONVERGED: f64 = 1e-4;
/// The smallest σ_n².
const NARROWEST: f64 = 1e-12;
/// The initial σ_n², in units of Scott's λ² of the initial means. Components that are narrower than their distances
/// do not fall onto one mode together: on the DSVGD paper's 1-D toy, N = 10, KL(q ‖ posterior) of 40 starts is .011 in
/// the median and at worst with a tenth, .021 and .24 with 1.
const START: f64 = 0.1;
/// The largest d for which every second derivative is computed.
const EVERY_COORDINATE: usize = 32;
/// The number of random directions behind the trace in higher dimensions.
const PROBES: usize = 8;
/// The number of draws that estimate the prior's variance.
const PRIOR_DRAWS: usize = 32;

struct Server {
    means: Particles,
    /// The log variances log σ_n², `[N]`.
    log_variances: Vec<f64>,
    session: Session,
}

impl ServerHalf for Server {
    fn configure(&self, _round: usize) -> Result<Message, RunError> {
        mixture_message(&self.means, &self.log_variances)
    }

    fn aggregate(&mut self, replies: Vec<Reply>) -> Result<(), RunError> {
        for reply in replies {
            self.means = particles_of(&reply.message, &self.means, &self.session)?;
            self.log_variances = log_variances_of(&reply.message)?;
        }
        Ok(())
    }

    fn particles(&self) -> &Particles {
        &self.means
    }

    fn posterior(&self) -> Posterior {
        Posterior::Mixture { variances: exp(&self.log_variances) }
    }

    fn state_bytes(&self) -> u64 {
        self.means.bytes() + (self.log_variances.len() * size_of::<f64>()) as u64
    }

    fn save(&self) -> Result<State, RunError> {
        let state = State::default().with_particles(PARTICLES, &self.means)?;
        Ok(state.with_numbers(LOG_VARIANCES, self.log_variances.iter().copied()))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.means = state.particles(PARTICLES, self.means.layout(), &self.session)?;
        self.log_variances = state.numbers(LOG_VARIANCES)?;
        Ok(())
    }
}

struct Client {
    optimizer: Lbfgs,
    likelihood: Likelihood,
    streams: Streams,
    /// The largest σ_n², which is the prior's variance.
    widest: f64,
    /// The value of ELBO2 after the last sweep.
    elbo: Option<f64>,
    converged: bool,
    like: Particles,
    session: Session,
}

impl ClientHalf for Client {
    fn handle(&mut self, request: &Request, watch: Watch) -> Result<Message, RunError> {
        let start = particles_of(&request.message, &self.like, &self.session)?;
        let log_variances = log_variances_of(&request.message)?;
        if self.converged {
            watch(1, 1);
            return mixture_message(&start, &log_variances);
        }
        let means = self.move_means(&start, &log_variances)?;
        watch(1, 3);
        let traces = self.traces(&means, request.round)?;
        watch(2, 3);
        let log_variances = self.fit_variances(&means, &traces, log_variances)?;
        watch(3, 3);

        let at = self.upload(&means)?;
        let second_order: f64 = traces.iter().zip(&log_variances).map(|(trace, log)| 0.5 * log.exp() * trace).sum();
        let entropy = Entropy::of(&distances(&means), &exp(&log_variances), means.ncols()).value;
        let elbo = (self.log_target(&at)?.iter().sum::<f64>() + second_order + entropy) / means.nrows() as f64;
        if !elbo.is_finite() {
            return Err(RunError::Config(format!("the evidence bound is {elbo} after sweep {}", request.round)));
        }
        self.converged = self.elbo.is_some_and(|last| (elbo - last).abs() <= CONVERGED * elbo.abs().max(last.abs()));
        self.elbo = Some(elbo);
        mixture_message(&at, &log_variances)
    }

    /// The state holds no position in the rows, because every sweep reads all of them.
    fn save(&self) -> Result<State, RunError> {
        Ok(State::default().with_optional(ELBO, &[self.elbo]).with_count(HAS_CONVERGED, usize::from(self.converged)))
    }

    fn restore(&mut self, state: &State) -> Result<(), RunError> {
        self.elbo = state.optional(ELBO)?.into_iter().next().flatten();
        self.converged = state.count(HAS_CONVERGED)? != 0;
        Ok(())
    }
}

impl Client {
    /// (1) The means that maximise Σ_n f(μ_n) − Σ_n log q_n for these variances, `[N, d]`.
    fn move_means(&self, start: &Particles, log_variances: &[f64]) -> Result<Array2<f64>, RunError> {
        let (n, d) = (start.count(), start.dim());
        let variances = exp(log_variances);
        let objective = |flat: &[f64]| -> Result<(f64, Vec<f64>), RunError> {
            let means = host(flat.to_vec(), n, d)?;
            let at = self.upload(&means)?;
            let entropy = Entropy::of(&distances(&means), &variances, d);
            let value = self.log_target(&at)?.iter().sum::<f64>() + entropy.value;
            let gradient = self.score(&at)? + entropy.by_means(&means);
            Ok((-value, gradient.iter().map(|g| -g).collect()))
        };
        let end = self.optimizer.minimise(start.to_array()?.values.to_f64(), objective)?;
        if !end.value.is_finite() {
            return Err(RunError::Config("log p is not finite at the means of the components".into()));
        }
        host(end.at, n, d)
    }

    /// (2) The log σ_n² that maximise Σ_n (σ_n²/2) tr_n − Σ_n log q_n for these means, `[N]`.
    fn fit_variances(&self, means: &Array2<f64>, traces: &[f64], start: Vec<f64>) -> Result<Vec<f64>, RunError> {
        let (low, high) = (NARROWEST.ln(), self.widest.ln());
        let within = |log: &f64| log.clamp(low, high);
        let squared = distances(means);
        let objective = |free: &[f64]| -> Result<(f64, Vec<f64>), RunError> {
            let variances: Vec<f64> = free.iter().map(|log| within(log).exp()).collect();
            let entropy = Entropy::of(&squared, &variances, means.ncols());
            let second_order = variances.iter().zip(traces).map(|(variance, trace)| 0.5 * variance * trace);
            let value = second_order.clone().sum::<f64>() + entropy.value;
            // The objective is constant beyond the ends of the range.
            let slopes = second_order.zip(entropy.by_log_variances(&squared, &variances)).zip(free);
            let gradient =
                slopes.map(|((trace, entropy), log)| if *log == within(log) { -trace - entropy } else { 0.0 });
            Ok((-value, gradient.collect()))
        };
        let end = self.optimizer.minimise(start, objective)?;
        Ok(end.at.iter().map(within).collect())
    }

    /// min(tr ∇²f(μ_n), 0), `[N]`, from the scores around the means.
    fn traces(&self, means: &Array2<f64>, round: usize) -> Result<Vec<f64>, RunError> {
        let directions = Directions::of(means.ncols(), self.streams, round);
        let traces = directions.traces(means, relative_rounding(&self.session), |at| self.score(&self.upload(at)?))?;
        Ok(traces.into_iter().map(|trace| trace.min(0.0)).collect())
    }

    /// The log target f(μ_n) = log p0 + (1/α) Σ_rows log p, `[N]`.
    fn log_target(&self, at: &Particles) -> Result<Vec<f64>, RunError> {
        let likelihood = self.likelihood.log_likelihood(at)?;
        let prior = self.likelihood.model().prior().log_density(at.blocks()).try_into_vec_as::<f64>()?;
        Ok(likelihood.iter().zip(prior).map(|(likelihood, prior)| likelihood + prior).collect())
    }

    /// The score ∇f(μ_n), `[N, d]`.
    fn score(&self, at: &Particles) -> Result<Array2<f64>, RunError> {
        // All rows are read, so the round, which selects minibatches, has no effect.
        let score = self.likelihood.score_in(at, Rows::Full, 0, 1.0);
        host(score.to_array()?.values.to_f64(), at.count(), at.dim())
    }

    fn upload(&self, means: &Array2<f64>) -> Result<Particles, RunError> {
        let values = Values::F64(means.iter().copied().collect());
        let array = Array { shape: vec![means.nrows(), means.ncols()], values };
        Particles::from_array(&array, self.like.layout(), &self.session).map_err(RunError::Array)
    }
}

/// The value −Σ_n log q_n, N times the bound of the entropy of q, and the terms of its derivatives.
struct Entropy {
    value: f64,
    /// The sums r_nj + r_jn, `[N, N]`, where r_nj is the share of component j in q_n.
    shares: Array2<f64>,
    /// The sums σ_n² + σ_j², `[N, N]`.
    sums: Array2<f64>,
    d: usize,
}

impl Entropy {
    /// The bound from ‖μ_n − μ_j‖², `[N, N]`, and σ_n², `[N]`, in d dimensions.
    fn of(squared: &Array2<f64>, variances: &[f64], d: usize) -> Self {
        let n = variances.len();
        let sums = Array2::from_shape_fn((n, n), |(i, j)| variances[i] + variances[j]);
        let mut shares =
            Array2::from_shape_fn((n, n), |at| -0.5 * (squared[at] / sums[at] + d as f64 * (2.0 * PI * sums[at]).ln()));
        let mut value = 0.0;
        for mut row in shares.rows_mut() {
            let top = row.fold(f64::NEG_INFINITY, |top, log| top.max(*log));
            row.mapv_inplace(|log| (log - top).exp());
            let total = row.sum();
            row /= total;
            value -= top + (total / n as f64).ln();
        }
        let shares = &shares + &shares.t();
        Self { value, shares, sums, d }
    }

    /// The gradient ∂/∂μ_m = Σ_j (r_mj + r_jm)(μ_m − μ_j)/(σ_m² + σ_j²), `[N, d]`: μ_m stands in its own q_m and in all
    /// others.
    fn by_means(&self, means: &Array2<f64>) -> Array2<f64> {
        let weights = &self.shares / &self.sums;
        let own = weights.sum_axis(Axis(1)).insert_axis(Axis(1));
        means * &own - weights.dot(means)
    }

    /// The gradient ∂/∂ log σ_m² = σ_m² Σ_j (r_mj + r_jm)(d − ‖μ_m − μ_j‖²/s)/(2s), s = σ_m² + σ_j², `[N]`.
    fn by_log_variances(&self, squared: &Array2<f64>, variances: &[f64]) -> Vec<f64> {
        let slopes = (self.d as f64 - squared / &self.sums) / &self.sums * 0.5;
        let slopes = (&self.shares * &slopes).sum_axis(Axis(1));
        slopes.iter().zip(variances).map(|(slope, variance)| slope * variance).collect()
    }
}

/// The directions z of the second derivatives: tr H = Σ zᵀHz/weight.
struct Directions {
    /// The directions, `[Z, d]`.
    along: Array2<f64>,
    weight: f64,
}

impl Directions {
    /// The d axes, exact up to O(h²), or Hutchinson's random signs in more than 32 dimensions, for every mean the same.
    fn of(d: usize, streams: Streams, round: usize) -> Self {
        if d <= EVERY_COORDINATE {
            return Self { along: Array2::eye(d), weight: 1.0 };
        }
        let mut rng = streams.rng(Purpose::Trace, round, 0);
        let along = Array2::from_shape_fn((PROBES, d), |_| if rng.random::<bool>() { 1.0 } else { -1.0 });
        Self { along, weight: PROBES as f64 }
    }

    /// The trace tr ∇²f at every mean, `[N]`, by central differences of the score of step h = ε^(1/3)·max(1, |μ|) a
    /// coordinate: with D = diag(h), zᵀHz is estimated by zᵀD⁻¹[∇f(μ + Dz) − ∇f(μ − Dz)]/2.
    fn traces(
        &self,
        means: &Array2<f64>,
        rounding: f64,
        score: impl Fn(&Array2<f64>) -> Result<Array2<f64>, RunError>,
    ) -> Result<Vec<f64>, RunError> {
        let steps = means.mapv(|mean| rounding.cbrt() * mean.abs().max(1.0));
        let mut traces = vec![0.0; means.nrows()];
        for z in self.along.rows() {
            let shift = &steps * &z;
            let slope = score(&(means + &shift))? - score(&(means - &shift))?;
            let along = (slope / &steps * z).sum_axis(Axis(1));
            traces.iter_mut().zip(&along).for_each(|(trace, second)| *trace += 0.5 * second / self.weight);
        }
        Ok(traces)
    }
}

/// The squared distances ‖μ_n − μ_j‖², `[N, N]`.
fn distances(means: &Array2<f64>) -> Array2<f64> {
    let count = means.nrows() as f64;
    let offsets = means - &(means.sum_axis(Axis(0)) / count);
    Distances::of_gram(&offsets.dot(&offsets.t())).matrix()
}

fn exp(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| log.exp()).collect()
}

fn host(flat: Vec<f64>, n: usize, d: usize) -> Result<Array2<f64>, RunError> {
    Array2::from_shape_vec((n, d), flat).map_err(|error| ArrayError::Content(error.to_string()).into())
}

fn mixture_message(means: &Particles, log_variances: &[f64]) -> Result<Message, RunError> {
    let array = Array { shape: vec![log_variances.len(), 1], values: Values::F64(log_variances.to_vec()) };
    Ok(message_of(means)?.with_array(LOG_VARIANCES, array))
}

fn log_variances_of(message: &Message) -> Result<Vec<f64>, RunError> {
    Ok(message.array(LOG_VARIANCES)?.values.to_f64())
}

/// The relative rounding error ε of the device's numbers.
fn relative_rounding(session: &Session) -> f64 {
    if session.dtype().size() == size_of::<f64>() { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// The mean over coordinates of the prior's variance, estimated from draws; 1 if there is no prior.
fn prior_variance(model: &dyn Model, streams: Streams) -> f64 {
    let mut rng = streams.rng(Purpose::Trace, 0, 0);
    let d = model.layout().dim();
    let draws: Vec<f64> = (0..PRIOR_DRAWS).flat_map(|_| model.prior().sample(model.layout(), &mut rng)).collect();
    let variance = |coordinate: usize| {
        let values = || draws.iter().skip(coordinate).step_by(d);
        let mean = values().sum::<f64>() / PRIOR_DRAWS as f64;
        values().map(|value| (value - mean).powi(2)).sum::<f64>() / (PRIOR_DRAWS - 1) as f64
    };
    let mean = (0..d).map(variance).sum::<f64>() / d as f64;
    if mean.is_finite() && mean > NARROWEST { mean } else { 1.0 }
}

impl Algorithm for NpvConfig {
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

    fn visit_cost(&self, _rows: usize) -> VisitCost {
        VisitCost { steps: self.local_steps, draws: 0 }
    }

    fn build(&self, mut setup: Setup) -> Result<Halves, RunError> {
        // One client that holds every row.
        // All rows are read at once, so batch and order have no effect.
        let (order, scale) = (Order::default(), LikelihoodScale::Full);
        let likelihoods = setup.likelihoods(LocalData { batch: 1, order, scale, temperature: self.temperature });
        let lambda = KdeBandwidth::Scott.evaluate(&setup.initial.centred_gram()?, setup.initial.dim());
        let widest = prior_variance(&*setup.model, setup.streams);
        let start = (START * lambda * lambda).clamp(NARROWEST, widest).ln();
        // The last step is one that changes f by less than its rounding error.
        let tolerance = (10.0 * relative_rounding(&setup.session)).max(1e-9);
        let optimizer = Lbfgs { memory: MEMORY, iterations: self.local_steps, tolerance };
        let client = |(id, likelihood)| {
            let client = Client {
                optimizer,
                likelihood,
                streams: setup.streams,
                widest,
                elbo: None,
                converged: false,
                like: setup.initial.clone(),
                session: setup.session.clone(),
            };
            (id, Box::new(client) as _)
        };
        let clients = likelihoods.into_iter().map(client).collect();
        let log_variances = vec![start; setup.initial.count()];
        let server = Server { means: setup.initial.clone(), log_variances, session: setup.session.clone() };
        Ok(Halves { server: Box::new(server), clients })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use burn::tensor::Tensor;
    use fedstein_models::{Batch, BlrConfig, BnnConfig, Network};
    use ndarray::{ArrayView1, Slice};
    use rand::SeedableRng;
    use rand::rngs::ChaCha12Rng;
    use rand_distr::{Distribution, StandardNormal};

    use crate::backend::{Flex, Precision};

    fn normal(shape: (usize, usize), rng: &mut ChaCha12Rng) -> Array2<f64> {
        Array2::from_shape_fn(shape, |_| StandardNormal.sample(rng))
    }

    /// Central differences of a function of one coordinate.
    fn slope(value: impl Fn(f64) -> f64) -> f64 {
        let h = 1e-5;
        (value(h) - value(-h)) / (2.0 * h)
    }

    #[test]
    fn the_entropys_gradient_is_that_of_finite_differences() {
        let mut rng = ChaCha12Rng::seed_from_u64(5);
        // The scales run from components that hardly overlap to components that coincide.
        for (n, d, spread) in [(1, 2, 1.0), (2, 1, 0.3), (6, 3, 1.0), (6, 3, 0.05), (9, 5, 3.0)] {
            let means = normal((n, d), &mut rng) * spread;
            let log_variances: Vec<f64> = normal((1, n), &mut rng).iter().map(|z| 0.7 * z - 1.0).collect();
            let value = |means: &Array2<f64>, logs: &[f64]| Entropy::of(&distances(means), &exp(logs), d).value;
            let entropy = Entropy::of(&distances(&means), &exp(&log_variances), d);
            for (at, got) in entropy.by_means(&means).indexed_iter() {
                let want = slope(|h| {
                    let mut moved = means.clone();
                    moved[at] += h;
                    value(&moved, &log_variances)
                });
                // O(h²) and rounding/h: both about 1e-10.
                assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "N = {n}, mean {at:?}: {got}, not {want}");
            }
            let by_log_variances = entropy.by_log_variances(&distances(&means), &exp(&log_variances));
            for (m, got) in by_log_variances.into_iter().enumerate() {
                let want = slope(|h| {
                    let mut moved = log_variances.clone();
                    moved[m] += h;
                    value(&means, &moved)
                });
                assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "N = {n}, log σ² {m}: {got}, not {want}");
            }
        }
    }

    #[test]
    fn a_single_component_has_its_own_density_at_twice_its_variance() {
        // −log N(0; 0, 2σ² I) = (d/2) ln(4πσ²)
        let (d, variance) = (3, 0.4f64);
        let got = Entropy::of(&Array2::zeros((1, 1)), &[variance], d).value;
        assert!((got - 1.5 * (4.0 * PI * variance).ln()).abs() < 1e-14, "{got}");
    }

    /// Traces for a logistic regression of p features on 50 rows at four means, and their closed form:
    /// tr ∇²_w = −Σ σ(1 − σ)‖x‖² − p ξ, ∂²_{log ξ} = −ξ‖w‖²/2 − b ξ, b = 100.
    fn regression(p: usize, precision: Precision) -> (Vec<f64>, Vec<f64>) {
        let session = Session::open::<Flex>(precision).unwrap();
        let mut rng = ChaCha12Rng::seed_from_u64(9);
        let (rows, n) = (50, 4);
        let x = normal((rows, p), &mut rng);
        let mut means = normal((n, p + 1), &mut rng) * 0.5;
        means.column_mut(p).mapv_inplace(|log| log - 3.0);
        let labels: Vec<f64> = (0..rows).flat_map(|row| if row % 3 == 0 { [1.0, 0.0] } else { [0.0, 1.0] }).collect();
        let targets = Array2::from_shape_vec((rows, 2), labels).unwrap();
        let model = Network::new(BlrConfig::new(p).check().unwrap());
        let batch = Batch::new(session.matrix(&x), session.matrix(&targets));
        let score = |at: &Array2<f64>| {
            let blocks = [Slice::from(..p), Slice::from(p..)].map(|part| at.slice_axis(Axis(1), part).to_owned());
            let blocks: Vec<Tensor<2>> = blocks.iter().map(|block| session.matrix(block)).collect();
            let likelihood = model.likelihood_score(&blocks, &batch, 1.0);
            let score = model.prior().add_score(&blocks, likelihood, 1.0);
            host(Tensor::cat(score, 1).try_into_vec_as::<f64>()?, n, p + 1)
        };
        let directions = Directions::of(p + 1, Streams::new(3), 1);
        let got = directions.traces(&means, relative_rounding(&session), score).unwrap();
        let trace = |row: ArrayView1<f64>| {
            let (w, xi) = (row.slice_axis(Axis(0), Slice::from(..p)), row[p].exp());
            let curvature = x.rows().into_iter().map(|x| {
                let probability = 1.0 / (1.0 + (-x.dot(&w)).exp());
                probability * (1.0 - probability) * x.dot(&x)
            });
            -curvature.sum::<f64>() - p as f64 * xi - 0.5 * xi * w.dot(&w) - 100.0 * xi
        };
        let want = means.rows().into_iter().map(trace).collect();
        (got, want)
    }

    #[test]
    fn the_trace_of_a_logistic_regression_is_the_closed_form() {
        // In f64 h = 6e-6: h² and ε/h are 4e-11 of terms of order 100. In f32 h = 5e-3: 2e-5 of them.
        for (precision, tolerance) in [(Precision::F64, 1e-8), (Precision::F32, 1e-3)] {
            let (got, want) = regression(20, precision);
            for (got, want) in got.iter().zip(&want) {
                assert!((got / want - 1.0).abs() < tolerance, "{precision:?}: {got}, not {want}");
            }
        }
    }

    #[test]
    fn random_directions_estimate_the_trace_in_high_dimension() {
        // d = 61 > 32. The off-diagonal curvature of 50 random rows leaves a relative error of about
        // √(2 Σ_{i≠j} H_ij²/8)/|tr H| ≈ √(2·50·60²·.2²/8)/(50·60·.2) = .07.
        let (got, want) = regression(60, Precision::F64);
        for (got, want) in got.iter().zip(&want) {
            assert!((got / want - 1.0).abs() < 0.25, "{got}, not {want}");
        }
    }

    #[test]
    fn the_widest_component_has_the_variance_of_the_prior() {
        // Weights ~ N(0, 1/e). The mean over d = 5,302 coordinates of unbiased variances of 32 draws is off by √(2/(31 d)) =
        // .35 %, of which these are four; the divisor 32 in the place of 31 would be off by 3.1 %.
        let model = Network::new(BnnConfig::classifier(50, &[100], 2));
        let ratio = prior_variance(&model, Streams::new(1)) * std::f64::consts::E;
        assert!((ratio - 1.0).abs() < 0.014, "{ratio}");
    }

    #[test]
    fn random_directions_are_exact_without_correlations() {
        // f = −½ Σ a_i x_i²: zᵀHz = tr H for every z of signs.
        let d = 40;
        let a = Array2::from_shape_fn((1, d), |(_, i)| 1.0 + i as f64);
        let means = normal((3, d), &mut ChaCha12Rng::seed_from_u64(2)) * 10.0;
        let directions = Directions::of(d, Streams::new(1), 4);
        assert_eq!(directions.along.nrows(), PROBES);
        let traces = directions.traces(&means, f64::EPSILON, |at| Ok(-at * &a)).unwrap();
        for trace in traces {
            assert!((trace / -820.0 - 1.0).abs() < 1e-8, "{trace}");
        }
    }
}
