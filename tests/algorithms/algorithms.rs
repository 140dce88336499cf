//! Tests of whole algorithms: SVGD on known targets, the toys of the DSVGD paper by quadrature, and equalities between
//! algorithms that must hold to the bit.

use std::sync::{Arc, Mutex};

use crate::common::{self, bits, data, experiment, normal, outcome, particles, partition_of, small_digits, values};
use burn::tensor::Tensor;
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::synthetic::mixture::{GaussianMixture, paper_1d};
use fedstein::error::RunError;
use fedstein::experiment::Experiment;
use fedstein::experiment::config::AlgorithmConfig;
use fedstein::models::{Batch, Layout, Model, Prior, Task};
use fedstein::particles::Particles;
use fedstein::stein::{Bandwidth, Kernel, Optimizer, OptimizerState, Score, Svgd, direction};
use ndarray::{Array2, Axis};
use proptest::prelude::*;
use rand::rngs::ChaCha12Rng;
use rand::{Rng, SeedableRng};

fn session() -> Session {
    Session::open::<Flex>(Precision::F64).unwrap()
}

/// Mean and variance of numbers.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
}

/// The score of N(mean, variance·I).
fn pull(at: &Particles, mean: f64, variance: f64) -> Score {
    Score::dense(at.map(|block| block.neg().add_scalar(mean).div_scalar(variance)))
}

// ------------------------------------------------------------------------------------------- SVGD on known targets

#[test]
fn svgd_finds_the_mean_and_the_variance_of_a_gaussian() {
    // 200 particles, mean ± 0.01, variance ± 5 %.
    for (mean, variance) in [(0.0, 1.0), (1.5, 4.0), (-2.0, 0.25)] {
        let start = particles(&normal((200, 1), &mut ChaCha12Rng::seed_from_u64(31)), &session());
        let svgd = Svgd { kernel: Kernel::default(), optimizer: Optimizer::Sgd { lr: 0.5 * variance } };
        let score = |at: &Particles| Ok(pull(at, mean, variance));
        let end = svgd.run::<RunError>(start, 2000, &mut OptimizerState::default(), score, |_| {}).unwrap();
        let (got_mean, got_variance) = moments(&values(&end));
        assert!((got_mean - mean).abs() < 0.01, "mean {got_mean}, not {mean}");
        assert!((got_variance / variance - 1.0).abs() < 0.05, "variance {got_variance}, not {variance}");
    }
}

#[test]
fn two_particles_under_a_flat_target_move_apart() {
    let start = Array2::from_shape_vec((2, 2), vec![0.0, 0.0, 1.0, 2.0]).unwrap();
    let bandwidth = Bandwidth::default();
    for kernel in [
        Kernel::Rbf(bandwidth),
        Kernel::Imq { bandwidth, exponent: -0.5 },
        Kernel::Laplacian(bandwidth),
        Kernel::Mixture(bandwidth),
    ] {
        let x = particles(&start, &session());
        let phi = values(&direction(&kernel, &x, Score::zero(2)).unwrap().evaluate(&x));
        let along = (phi[2] - phi[0]) * 1.0 + (phi[3] - phi[1]) * 2.0;
        assert!(along > 0.0, "{kernel:?}: {phi:?}");
    }
}

#[test]
fn a_single_particle_climbs_the_gradient() {
    let start = Array2::from_shape_vec((1, 3), vec![2.0, -1.0, 0.5]).unwrap();
    let (lr, steps) = (0.1, 25);
    for kernel in [Kernel::default(), Kernel::Laplacian(Bandwidth::default())] {
        let svgd = Svgd { kernel, optimizer: Optimizer::Sgd { lr } };
        let score = |at: &Particles| Ok(pull(at, 3.0, 2.0));
        let end =
            svgd.run::<RunError>(particles(&start, &session()), steps, &mut OptimizerState::default(), score, |_| {});
        // The solution of x ← x + lr (m − x)/v: the offset from m shrinks by the factor 1 − lr/v per step.
        let want = start.mapv(|x| 3.0 + (x - 3.0) * (1.0f64 - lr / 2.0).powi(steps as i32));
        for (got, want) in values(&end.unwrap()).iter().zip(&want) {
            assert!((got - want).abs() < 1e-12, "{got}, not {want}");
        }
    }
}

#[test]
fn identical_particles_share_the_mean_score() {
    let x = particles(&Array2::from_elem((4, 3), 0.7), &session());
    let scores = normal((4, 3), &mut ChaCha12Rng::seed_from_u64(32));
    let score = Score::dense(particles(&scores, &session()));
    let phi = direction(&Kernel::default(), &x, score).unwrap().evaluate(&x);
    let mean = scores.mean_axis(Axis(0)).unwrap();
    for row in values(&phi).chunks_exact(3) {
        row.iter().zip(&mean).for_each(|(got, want)| assert!((got - want).abs() < 1e-14, "{got}, not {want}"));
    }
}

fn phi(kernel: &Kernel, x: &Array2<f64>, s: &Array2<f64>) -> Array2<f64> {
    let (at, score) = (particles(x, &session()), Score::dense(particles(s, &session())));
    let phi = direction(kernel, &at, score).unwrap().evaluate(&at);
    Array2::from_shape_vec(x.raw_dim(), values(&phi)).unwrap()
}

fn largest_difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    largest(&(a - b))
}

fn largest(matrix: &Array2<f64>) -> f64 {
    matrix.iter().fold(0.0, |top: f64, value| top.max(value.abs()))
}

/// The least squared distance of two rows; infinite for one row.
fn nearest(x: &Array2<f64>) -> f64 {
    let pairs = (0..x.nrows()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.map(|(i, j)| (&x.row(i) - &x.row(j)).mapv(|v| v * v).sum()).fold(f64::INFINITY, f64::min)
}

fn stationary() -> impl Strategy<Value = Kernel> {
    let bandwidth = Bandwidth::default();
    prop_oneof![
        Just(Kernel::Rbf(bandwidth)),
        Just(Kernel::Imq { bandwidth, exponent: -0.5 }),
        Just(Kernel::Laplacian(bandwidth)),
        Just(Kernel::Mixture(bandwidth)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn the_direction_does_not_depend_on_the_numbering_of_particles(
        kernel in stationary(), n in 1usize..9, d in 1usize..6, turn in 0usize..9, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (x, s) = (normal((n, d), &mut rng), normal((n, d), &mut rng));
        let order: Vec<usize> = (0..n).map(|i| (i + turn) % n).rev().collect();
        let got = phi(&kernel, &x.select(Axis(0), &order), &s.select(Axis(0), &order));
        let want = phi(&kernel, &x, &s).select(Axis(0), &order);
        // Sums of at most eight terms, in another order; a distance from a Gram matrix has a relative error of
        // 1e-15/r², which the Laplacian kernel's 1/r amplifies.
        prop_assert!(largest_difference(&got, &want) < (1e-12 + 1e-14 / nearest(&x)) * (1.0 + largest(&want)));
    }

    #[test]
    fn the_direction_does_not_depend_on_the_origin(
        kernel in stationary(), n in 1usize..9, d in 1usize..6, shift in -100.0f64..100.0, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (x, s) = (normal((n, d), &mut rng), normal((n, d), &mut rng));
        let got = phi(&kernel, &x.mapv(|value| value + shift), &s);
        let want = phi(&kernel, &x, &s);
        // By the addition of 100 the coordinates lose seven bits (1e-14), which 1/r of the Laplacian kernel amplifies.
        prop_assert!(largest_difference(&got, &want) < (1e-9 + 1e-12 / nearest(&x)) * (1.0 + largest(&want)));
    }

    #[test]
    fn repulsion_moves_no_centre_of_mass(kernel in stationary(), n in 2usize..9, d in 1usize..6, seed in any::<u64>()) {
        let x = normal((n, d), &mut ChaCha12Rng::seed_from_u64(seed));
        let at = particles(&x, &session());
        let direction = direction(&kernel, &at, Score::zero(n)).unwrap();
        let repulsion = Array2::from_shape_vec((n, d), values(&direction.evaluate(&at))).unwrap();
        let drift = direction.kernel.unwrap().drift;
        // Row i is Σ_j M_ij (θ_j − m)/N. M_ii = −Σ_j M_ij, the row's own sum and the sum of the rows are N roundings
        // each, by epsilon/2 of what enters, with offsets of at most twice the largest coordinate: 3N epsilon, and a
        // few. Particles that almost meet have a large M (the Laplacian kernel's 1/r), of which all but rounding
        // cancels.
        let entering = drift.mapv(f64::abs).sum() * largest(&x) / n as f64;
        let bound = 4.0 * n as f64 * f64::EPSILON * entering;
        prop_assert!(repulsion.sum_axis(Axis(0)).iter().all(|sum| sum.abs() <= bound), "{repulsion}, not within {bound:e}");
    }
}

// ---------------------------------------------------------------------------------------------------- experiments

/// Records the particles at which every likelihood score was computed: one entry per local step.
#[derive(Debug)]
struct Spy {
    inner: Arc<dyn Model>,
    /// The number of particles of the run, which is not that of the trial before it.
    particles: usize,
    path: Mutex<Vec<Vec<f64>>>,
}

impl Spy {
    /// Replaces the model of the config by a recording one.
    fn on(experiment: &mut Experiment) -> Arc<Self> {
        let config = &experiment.config;
        let (inner, particles) = (config.model(&data(config).train).unwrap(), config.algorithm.particles());
        let spy = Arc::new(Self { inner, particles, path: Mutex::default() });
        experiment.model = Some(spy.clone());
        spy
    }

    fn path(&self) -> Vec<Vec<f64>> {
        self.path.lock().unwrap().clone()
    }
}

impl Model for Spy {
    fn layout(&self) -> &Arc<Layout> {
        self.inner.layout()
    }

    fn task(&self) -> Task {
        self.inner.task()
    }

    fn prior(&self) -> &Prior {
        self.inner.prior()
    }

    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64> {
        self.inner.initial(rng)
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        if particles[0].dims()[0] == self.particles {
            let here = particles.iter().flat_map(|block| block.clone().try_into_vec_as::<f64>().unwrap()).collect();
            self.path.lock().unwrap().push(here);
        }
        self.inner.likelihood_score(particles, batch, scale)
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        self.inner.log_likelihood(particles, batch)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        self.inner.predict(particles, inputs)
    }

    fn log_noise_precision(&self) -> Option<usize> {
        self.inner.log_noise_precision()
    }
}

// ------------------------------------------------------------------------------------------------------- the toys

/// The standard deviation of the densities' kernel, in the algorithm and in the KL.
const LAMBDA: f64 = 0.55;

#[derive(Clone, Copy, Debug, PartialEq)]
enum ToyPrior {
    Uniform,
    Gaussian,
}

impl ToyPrior {
    fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Gaussian => "gaussian",
        }
    }

    fn log_density(self, x: f64) -> f64 {
        match self {
            Self::Uniform if x.abs() > 6.0 => f64::NEG_INFINITY,
            Self::Uniform => -(12f64.ln()),
            Self::Gaussian => GaussianMixture::new(1, &[(1.0, &[0.0], &[1.0])]).unwrap().log_density(&[x]),
        }
    }
}

/// KL(q ‖ q_opt) of the density q of particles by the trapezoidal rule on 9,601 points of [−12, 12]; both are
/// restricted to the prior's support and normalised there.
fn kl(particles: &[f64], prior: ToyPrior) -> f64 {
    const POINTS: usize = 9601;
    let step = 24.0 / (POINTS - 1) as f64;
    let grid: Vec<f64> =
        (0..POINTS).map(|i| -12.0 + step * i as f64).filter(|x| prior.log_density(*x).is_finite()).collect();
    let toy = paper_1d();
    let log_posterior = |x: &f64| prior.log_density(*x) + toy[0].log_density(&[*x]) + toy[1].log_density(&[*x]);
    let q =
        |x: &f64| particles.iter().map(|centre| (-(x - centre).powi(2) / (2.0 * LAMBDA * LAMBDA)).exp()).sum::<f64>();
    let integral = |values: &[f64]| step * (values.iter().sum::<f64>() - 0.5 * (values[0] + values[values.len() - 1]));
    let p: Vec<f64> = grid.iter().map(log_posterior).collect();
    let q: Vec<f64> = grid.iter().map(q).collect();
    let log_z = integral(&p.iter().map(|log| log.exp()).collect::<Vec<_>>()).ln();
    let mass = integral(&q);
    let terms: Vec<f64> = q
        .iter()
        .zip(&p)
        .map(|(q, log_p)| if *q > 0.0 { q / mass * ((q / mass).ln() - (log_p - log_z)) } else { 0.0 })
        .collect();
    integral(&terms)
}

fn toy(algorithm: &str, prior: ToyPrior, seed: u64, rounds: usize, first: usize) -> Experiment {
    let keys = "particles = 200\nlocal_steps = 200\nbatch = 2";
    let sections = format!("[optimizer]\nlr = 0.05\nepsilon = 1e-9\n[schedule]\nfirst = {first}");
    let algorithm = format!("{algorithm}\n{keys}\n{sections}");
    common::toy("mixture-1d", prior.word(), "clients = 2", seed, rounds, &algorithm)
}

const TOY_DSVGD: &str = "kind = \"dsvgd\"\ndistill_steps = 200\nfactors = \"with-prior\"\nkde_bandwidth = 0.55";

/// KL after each round, beginning with the client that holds the likelihood `leader` (0 or 1).
fn kl_by_round(prior: ToyPrior, seed: u64, rounds: usize, leader: usize) -> Vec<f64> {
    // `iid` assigns the two rows at random.
    let clients = partition_of(&toy(TOY_DSVGD, prior, seed, rounds, 0).config);
    let first = clients.clients().iter().position(|rows| rows == &[leader]).unwrap();
    let mut experiment = toy(TOY_DSVGD, prior, seed, rounds, first);
    let spy = Spy::on(&mut experiment);
    let end = values(&outcome(&experiment).particles);
    let mut starts: Vec<Vec<f64>> = spy.path().into_iter().step_by(200).collect();
    starts.push(end);
    assert_eq!(starts.len(), rounds + 1);
    starts[1..].iter().map(|particles| kl(particles, prior)).collect()
}

#[test]
fn the_kl_of_an_exact_sample_smoothed_by_the_kernel_is_the_golden_floor() {
    // Checks the quadrature itself: quantiles of the posterior stand for a perfect sample.
    for (prior, floor) in [(ToyPrior::Uniform, 0.011846707676801928), (ToyPrior::Gaussian, 0.03403028276350245)] {
        let toy = paper_1d();
        let step = 24.0 / 240_000.0;
        let grid: Vec<f64> = (0..=240_000).map(|i| -12.0 + step * f64::from(i)).collect();
        let density = |x: &f64| (prior.log_density(*x) + toy[0].log_density(&[*x]) + toy[1].log_density(&[*x])).exp();
        let mut below = 0.0;
        let cumulative: Vec<f64> = grid
            .iter()
            .map(|x| {
                below += density(x);
                below
            })
            .collect();
        let quantile = |u: f64| grid[cumulative.partition_point(|c| *c < u * below)];
        let sample: Vec<f64> = (0..2000).map(|i| quantile((f64::from(i) + 0.5) / 2000.0)).collect();
        let got = kl(&sample, prior);
        // 2,000 quantiles stand for the density itself up to 1/2000.
        assert!((got - floor).abs() < 2e-3, "{prior:?}: {got}, not {floor}");
    }
}

/// An independent program in numpy, "DSVGD with-prior": the mean over seeds of KL by round is within a factor 2 of `want`,
/// and the last one below `fixed_point`.
fn check_toy(prior: ToyPrior, want: [f64; 6], seeds: &[u64], fixed_point: f64) {
    // The first client of the other program holds the likelihood N(1, 4).
    let runs: Vec<Vec<f64>> = seeds.iter().map(|seed| kl_by_round(prior, *seed, 6, 0)).collect();
    let mean = |round: usize| runs.iter().map(|run| run[round]).sum::<f64>() / runs.len() as f64;
    let got: Vec<f64> = (0..6).map(mean).collect();
    println!("DSVGD, {prior:?} prior: KL by round {got:.3?}, table {want:?}");
    for (round, (got, want)) in got.iter().zip(want).enumerate() {
        let ratio = got / want;
        assert!((0.5..2.0).contains(&ratio), "{prior:?}, round {}: KL {got}, table {want}", round + 1);
    }
    assert!(got[5] < fixed_point, "{prior:?}: {} is no better than the best Gaussian, {fixed_point}", got[5]);
}

// 7.4 also has the best Gaussian (GVI = the fixed point of PVI): .22 and .0773. Rounds 2 and 6 of the uniform prior
// vary by a factor 2 between seeds, those of the Gaussian prior by 10 %.
#[test]
fn dsvgd_reaches_the_posterior_of_the_1d_toy_with_a_uniform_prior() {
    check_toy(ToyPrior::Uniform, [0.255, 0.025, 0.040, 0.028, 0.030, 0.033], &[1, 2, 3, 4], 0.22);
}

#[test]
fn dsvgd_reaches_the_posterior_of_the_1d_toy_with_a_gaussian_prior() {
    check_toy(ToyPrior::Gaussian, [0.130, 0.071, 0.041, 0.022, 0.042, 0.025], &[1, 2], 0.0773);
}

#[test]
fn svgd_reaches_the_posterior_of_the_1d_toy() {
    // An independent program in numpy, 800 iterations, mean of four seeds.
    for (prior, want) in [(ToyPrior::Uniform, 0.015), (ToyPrior::Gaussian, 0.029)] {
        let svgd = outcome(&toy("kind = \"svgd\"", prior, 1, 4, 0));
        let got = kl(&values(&svgd.particles), prior);
        assert!((0.5..2.0).contains(&(got / want)), "{prior:?}: KL {got}, table {want}");
    }
}

// ------------------------------------------------------------------------------------- equalities between algorithms

/// DSVGD of 5 particles; `clients` clients, further keys of `[algorithm]`.
fn small_dsvgd(rounds: usize, clients: usize, keys: &str) -> Experiment {
    small_digits(
        rounds,
        &format!(
            r#"
            [partition]
            clients = {clients}
            [algorithm]
            kind = "dsvgd"
            particles = 5
            local_steps = 12
            distill_steps = 9
            batch = 20
            {keys}
            "#
        ),
    )
}

#[test]
fn a_density_that_underflows_has_no_effect() {
    // At d = 502 the public codes' factor is exactly 0 in f32, so Θ is that of no densities, bit for
    // bit.
    for particles in [5, 20] {
        let with = |kde: &str| {
            let mut experiment =
                small_dsvgd(3, 2, &format!("kde = \"{kde}\"\nkde_bandwidth = 0.55\nfactors = \"with-prior\""));
            if let AlgorithmConfig::Dsvgd(dsvgd) = &mut experiment.config.algorithm {
                dsvgd.particles = particles;
            }
            bits(&outcome(&experiment))
        };
        let (off, reference, exact) = (with("off"), with("reference"), with("exact"));
        assert!(off == reference, "{particles} particles: the reference density moves Θ");
        assert!(off != exact, "{particles} particles: the exact density does not move Θ");
    }
}

#[test]
fn one_client_without_densities_is_svgd_step_by_step() {
    let optimizer = "[optimizer]\nreset = \"per-visit\"";
    let mut federated = small_dsvgd(1, 1, &format!("kde = \"off\"\n{optimizer}"));
    let mut centralised = small_digits(
        1,
        &format!("[algorithm]\nkind = \"svgd\"\nparticles = 5\nlocal_steps = 12\nbatch = 20\n{optimizer}"),
    );
    let (here, there) = (Spy::on(&mut federated), Spy::on(&mut centralised));
    let ends = (outcome(&federated), outcome(&centralised));
    assert_eq!(here.path().len(), 12);
    for (step, (here, there)) in here.path().iter().zip(there.path()).enumerate() {
        assert!(here == &there, "the paths part at step {step}");
    }
    assert!(bits(&ends.0) == bits(&ends.1), "the paths part at the last step");
}

#[test]
fn the_same_config_gives_the_same_bits_with_any_number_of_threads() {
    let fedavg = "[partition]\nclients = 4\n[schedule]\nkind = \"random\"\nclients = 3\n\
                  [algorithm]\nkind = \"fedavg\"\nlocal_steps = 10\nbatch = 20";
    for (name, experiment) in [("dsvgd", small_dsvgd(3, 3, "")), ("fedavg", small_digits(3, fedavg))] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| bits(&outcome(&experiment)))
        };
        let once = with(1);
        assert!(once == with(1), "{name}: two runs differ");
        assert!(once == with(2), "{name}: one thread and two differ");
        assert!(once == with(5), "{name}: one thread and five differ");
        let mut other = experiment;
        other.config.seed += 1;
        assert!(once != bits(&outcome(&other)), "{name}: another seed changes nothing");
    }
}

/// FedAvg over three clients in f64; `clients` of them per round, from client `first`; step size `lr`.
fn fedavg(clients: usize, first: usize, lr: f64, mix: &str) -> Experiment {
    let mut experiment = small_digits(
        1,
        &format!(
            r#"
            [partition]
            clients = 3
            [schedule]
            clients = {clients}
            first = {first}
            [algorithm]
            kind = "fedavg"
            mix = "{mix}"
            local_steps = 10
            batch = 20
            [optimizer]
            kind = "sgd"
            lr = {lr:e}
            "#
        ),
    );
    experiment.config.precision = Precision::F64;
    experiment
}

/// The rows of each client, the starting point, and the result of each client alone from there.
fn fedavg_parts() -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
    let rows =
        partition_of(&fedavg(1, 0, 1e-3, "replace").config).clients().iter().map(|rows| rows.len() as f64).collect();
    let theta = |experiment: Experiment| values(&outcome(&experiment).particles);
    // A step that even f64 rounds away.
    let start = theta(fedavg(1, 0, 1e-300, "replace"));
    let alone = (0..3).map(|first| theta(fedavg(1, first, 1e-3, "replace"))).collect();
    (rows, start, alone)
}

fn assert_same(got: &[f64], want: impl Iterator<Item = f64>, what: &str) {
    let mut count = 0;
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() < 1e-13, "{what}: {got}, not {want}");
        count += 1;
    }
    assert_eq!(count, got.len());
}

#[test]
fn federated_averaging_of_all_clients_is_their_mean_weighted_by_rows() {
    let (rows, start, alone) = fedavg_parts();
    // 203 rows: the shares differ.
    assert!(rows.iter().any(|count| *count != rows[0]), "{rows:?}");
    assert!(alone.iter().all(|theta| theta != &start), "clients must move");
    let total: f64 = rows.iter().sum();
    let mean = (0..start.len()).map(|j| alone.iter().zip(&rows).map(|(theta, n)| n * theta[j]).sum::<f64>() / total);
    for mix in ["replace", "reference"] {
        let got = values(&outcome(&fedavg(3, 0, 1e-3, mix)).particles);
        assert_same(&got, mean.clone(), mix);
    }
}

#[test]
fn the_public_codes_mixing_moves_by_the_clients_share_of_all_rows() {
    let (rows, start, alone) = fedavg_parts();
    let total: f64 = rows.iter().sum();
    for (client, (theta, count)) in alone.iter().zip(&rows).enumerate() {
        let got = values(&outcome(&fedavg(1, client, 1e-3, "reference")).particles);
        let want = start.iter().zip(theta).map(|(from, to)| from + count / total * (to - from));
        assert_same(&got, want, "reference");
    }
}

#[test]
fn factors_that_share_the_prior_are_accurate_for_similar_clients() {
    let run = |keys: &str| {
        let text = format!(
            r#"
            name = "shared"
            seed = 7
            rounds = 4
            [data]
            kind = "digits"
            train_limit = 600
            [partition]
            clients = 4
            [model]
            kind = "bnn"
            hidden = [20]
            [algorithm]
            kind = "dsvgd"
            particles = 8
            local_steps = 100
            distill_steps = 100
            batch = 50
            {keys}
            "#
        );
        outcome(&experiment(&text)).evaluation.accuracy.unwrap()
    };
    let (exact, off) = (run("kde = \"exact\""), run("kde = \"off\""));
    println!("accuracy after 4 rounds: exact densities {exact:.3}, no densities {off:.3}");
    // 360 test rows: one standard error of an accuracy of 0.9 is 0.016; both runs share rows and start.
    assert!(exact >= off - 0.016, "exact densities {exact}, no densities {off}");
    assert!(exact > 0.8, "{exact}");
}
