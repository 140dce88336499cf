//! The baselines that DSVGD is compared with, on targets whose answer is known: NPV and PMD (variational, one place),
//! SGLD and DSGLD (Langevin chains), FedSGD.

use std::sync::Arc;

use crate::common::{self, experiment, moments, outcome, values};
use burn::tensor::Tensor;
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::{self, DataConfig, Dataset};
use fedstein::experiment::{Config, Experiment, Outcome};
use fedstein::models::{Batch, Layout, Model, Prior, Task};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::Table;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// The 1-D toy of the DSVGD paper with the prior N(0, 1), f64; `algorithm` is the section of that name.
fn toy(seed: u64, rounds: usize, algorithm: &str) -> Experiment {
    common::toy("mixture-1d", "gaussian", "clients = 2", seed, rounds, algorithm)
}

/// Logistic regression on twonorm, 5,920 training rows, d = 21.
fn twonorm(rounds: usize, clients: usize, algorithm: &str) -> Experiment {
    experiment(&format!(
        r#"
        name = "twonorm"
        seed = 3
        rounds = {rounds}
        [data]
        kind = "twonorm"
        [partition]
        clients = {clients}
        [model]
        kind = "blr"
        [algorithm]
        {algorithm}
        [optimizer]
        lr = 0.05
        epsilon = 1e-9
        "#
    ))
}

// ------------------------------------------------------------------------------------------------ a Gaussian target

/// θ ~ N(0, I), and every row is an observation y_i = shift + slope·(x_i1, …, x_id) ~ N(θ, I/precision): the posterior
/// is a Gaussian in closed form.
#[derive(Debug)]
struct Observations {
    layout: Arc<Layout>,
    prior: Prior,
    precision: f64,
    shift: f64,
    slope: f64,
    /// The first particles are N(start, spread²·I).
    start: f64,
    spread: f64,
}

impl Observations {
    fn new(d: usize, precision: f64, shift: f64, slope: f64) -> Self {
        let layout = Arc::new(Layout::new([("theta", [d].as_slice())]));
        let prior = Prior::normal(&layout, 1.0);
        Self { layout, prior, precision, shift, slope, start: 0.0, spread: 1.0 }
    }

    fn starting(mut self, start: f64, spread: f64) -> Self {
        (self.start, self.spread) = (start, spread);
        self
    }

    /// Mean of y, `[1, d]`, and number of rows.
    fn mean(&self, batch: &Batch) -> (Tensor<2>, f64) {
        let d = self.layout.dim();
        let mean = batch.inputs.clone().narrow(1, 0, d).mean_dim(0).mul_scalar(self.slope).add_scalar(self.shift);
        (mean, batch.inputs.dims()[0] as f64)
    }
}

impl Model for Observations {
    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn task(&self) -> Task {
        Task::Density
    }

    fn prior(&self) -> &Prior {
        &self.prior
    }

    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64> {
        let draw = |_| {
            let z: f64 = StandardNormal.sample(rng);
            self.start + self.spread * z
        };
        (0..self.layout.dim()).map(draw).collect()
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        let (mean, rows) = self.mean(batch);
        vec![(mean - particles[0].clone()).mul_scalar(scale * rows * self.precision)]
    }

    /// The log density up to a constant.
    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        let (mean, rows) = self.mean(batch);
        let squares = (particles[0].clone() - mean).square().sum_dim(1).squeeze_dim::<1>(1);
        squares.mul_scalar(-0.5 * rows * self.precision)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        Tensor::zeros([particles[0].dims()[0], inputs.dims()[0], 1], &inputs.device())
    }

    fn log_noise_precision(&self) -> Option<usize> {
        None
    }
}

// -------------------------------------------------------------------------------------------------------------- NPV

#[test]
fn npv_is_closer_to_the_toy_than_every_single_gaussian() {
    // The best Gaussian has KL .0773. With N = 10, forty starts of an independent program all end at
    // .011.
    for seed in 1..=3 {
        let run = outcome(&toy(seed, 10, "kind = \"npv\"\nparticles = 10"));
        let kl = run.evaluation.kl.unwrap();
        println!("npv, toy, seed {seed}: KL {kl:.4}");
        assert!(kl < 0.015, "seed {seed}: KL {kl}");
    }
}

#[test]
fn npv_finds_the_mean_and_the_variance_of_a_gaussian() {
    // Two rows y = 3 of precision 2: posterior N(12/5, 1/5). N = 1 is that family; the mixture of 20 has a KL of .005.
    for (particles, bound) in [(1, 1e-6), (20, 0.015)] {
        let mut experiment = toy(1, 10, &format!("kind = \"npv\"\nparticles = {particles}"));
        experiment.model = Some(Arc::new(Observations::new(1, 2.0, 3.0, 0.0)));
        let run = outcome(&experiment);
        let (mean, _) = moments(&values(&run.particles));
        let kl = run.evaluation.kl.unwrap();
        println!("npv, Gaussian, N = {particles}: mean {mean:.6}, KL {kl:.2e}");
        assert!((mean - 2.4).abs() < 1e-3, "N = {particles}: mean {mean}");
        assert!(kl < bound, "N = {particles}: KL {kl}");
    }
}

#[test]
fn npv_is_as_accurate_as_svgd_on_twonorm() {
    let npv = outcome(&twonorm(6, 1, "kind = \"npv\"\nparticles = 10"));
    let svgd = outcome(&twonorm(4, 1, "kind = \"svgd\"\nparticles = 10\nlocal_steps = 200\nbatch = 100"));
    let (npv, svgd) = (npv.evaluation.accuracy.unwrap(), svgd.evaluation.accuracy.unwrap());
    println!("twonorm: npv {npv:.4}, svgd {svgd:.4}");
    assert!((npv - svgd).abs() < 0.01, "npv {npv}, svgd {svgd}");
}

#[test]
fn npv_stops_once_a_sweep_changes_nothing() {
    let particles = |rounds| values(&outcome(&toy(2, rounds, "kind = \"npv\"\nparticles = 4")).particles);
    let (early, late) = (particles(30), particles(31));
    assert!(early == late, "the 31st sweep moves the means");
    assert!(early != particles(1), "one sweep was all");
}

// -------------------------------------------------------------------------------------------------------------- PMD

#[test]
fn pmd_reaches_the_posterior_of_the_toy_and_stays_there() {
    // Ten seeds of an independent program: mean .009, worst .016, from the tenth step to the 3,000th.
    for seed in 1..=2 {
        let run = outcome(&toy(seed, 6, "kind = \"pmd\"\nparticles = 200\nlocal_steps = 100\nbatch = 2"));
        let kl: Vec<f64> = run.rounds.iter().filter_map(|round| round.metric("kl")).collect();
        println!("pmd, toy, seed {seed}: KL {kl:.4?}");
        assert!(kl.len() == 6 && kl.iter().all(|kl| *kl < 0.03), "seed {seed}: {kl:?}");
    }
}

/// PMD of twelve particles on the toy.
fn twelve(rounds: usize, steps: usize, more: &str) -> Experiment {
    toy(3, rounds, &format!("kind = \"pmd\"\nparticles = 12\nlocal_steps = {steps}\nbatch = 2\n{more}"))
}

#[test]
fn the_mirror_steps_of_pmd_are_counted_over_all_rounds() {
    // γ_t = min(γ_max, c/t) and the draws of step t follow from t alone.
    assert!(common::bits(&outcome(&twelve(6, 1, ""))) == common::bits(&outcome(&twelve(1, 6, ""))));
}

#[test]
fn a_mirror_step_of_length_zero_moves_no_particle() {
    // Then all weights are equal: every particle has one child, which is not jittered.
    let start = values(common::Built::new(&twelve(1, 6, "")).server.particles());
    for key in ["max_step", "step_decay"] {
        let got = values(&outcome(&twelve(1, 6, &format!("{key} = 1e-300"))).particles);
        assert!(got == start, "{key}: {got:?}, not {start:?}");
    }
    assert!(values(&outcome(&twelve(1, 6, "")).particles) != start, "the usual steps move nothing");
}

#[test]
fn pmd_separates_the_classes_of_twonorm() {
    let run = outcome(&twonorm(5, 1, "kind = \"pmd\"\nparticles = 100\nlocal_steps = 200\nbatch = 100"));
    let (accuracy, nll) = (run.evaluation.accuracy.unwrap(), run.evaluation.nll.unwrap());
    println!("pmd, twonorm: accuracy {accuracy:.4}, nll {nll:.4}");
    // In d = 21 a density of 100 particles is a sum of islands: the set finds the direction of w and contracts onto it.
    assert!(accuracy > 0.9, "{accuracy}");
}

#[test]
fn pmd_survives_particles_without_spread() {
    let algorithm = |n: usize| format!("kind = \"pmd\"\nparticles = {n}\nlocal_steps = 20\nbatch = 2");
    for rule in ["\"scott\"", "\"median\"", "0.55"] {
        for (n, spread) in [(2, 0.0), (7, 0.0)] {
            let mut experiment = toy(1, 1, &format!("{}\nkde_bandwidth = {rule}", algorithm(n)));
            experiment.model = Some(Arc::new(Observations::new(1, 2.0, 3.0, 0.0).starting(0.5, spread)));
            let got = values(&outcome(&experiment).particles);
            assert!(got.iter().all(|x| *x == got[0] && x.is_finite()), "N = {n}, {rule}: {got:?}");
            assert_eq!(got[0], 0.5, "N = {n}, {rule}: {got:?}");
        }
    }
}

// --------------------------------------------------------------------------------------------------- SGLD and DSGLD

/// Langevin chains with a constant step size, on rows of twonorm.
fn chains(rounds: usize, clients: usize, algorithm: &str, model: Observations) -> Experiment {
    let mut experiment = experiment(&format!(
        r#"
        name = "chains"
        seed = 4
        rounds = {rounds}
        [data]
        kind = "twonorm"
        train_limit = 400
        test_limit = 10
        [partition]
        clients = {clients}
        [model]
        kind = "blr"
        [algorithm]
        step_power = 0.0
        batch = 400
        {algorithm}
        "#
    ));
    experiment.model = Some(Arc::new(model));
    experiment
}

#[test]
fn sgld_samples_a_gaussian_with_its_variance() {
    // No likelihood: the target is N(0, 1). θ' = (1 − ε/2)θ + √ε z has the variance 1/(1 − ε/4), at ε = .05 1.3 % more.
    // 3 × 2,000 chains: standard errors .013 of the mean, 1.8 % of the variance.
    let model = Observations::new(3, 0.0, 0.0, 0.0).starting(3.0, 0.1);
    let sgld = "kind = \"sgld\"\nparticles = 2000\nlocal_steps = 400\nstep_size = 0.05";
    let (mean, variance) = moments(&values(&outcome(&chains(1, 1, sgld, model)).particles));
    println!("sgld, N(0, 1): mean {mean:.4}, variance {variance:.4}");
    assert!(mean.abs() < 0.04, "mean {mean}");
    assert!((variance * (1.0 - 0.05 / 4.0) - 1.0).abs() < 0.05, "variance {variance}");
}

#[test]
fn the_public_codes_noise_lets_the_variance_collapse() {
    let model = Observations::new(3, 0.0, 0.0, 0.0).starting(3.0, 1.0);
    let sgld = "kind = \"sgld\"\nparticles = 50\nlocal_steps = 400\nstep_size = 0.05\nnoise = \"reference\"";
    let (_, variance) = moments(&values(&outcome(&chains(1, 1, sgld, model)).particles));
    // Gradient flow: of the initial variance (1 − ε/2)^800 remains, 1.6e-9.
    assert!(variance < 1e-7, "{variance}");
}

/// The number of chains, all starting at 3, that move in one round of DSGLD.
fn moved(particles: usize, clients: usize, share: &str) -> (usize, Outcome) {
    let algorithm =
        format!("kind = \"dsgld\"\nparticles = {particles}\nlocal_steps = 2\nchains = \"{share}\"\nstep_size = 0.05");
    let model = Observations::new(3, 0.01, 3.0, 1.0).starting(3.0, 0.0);
    let outcome = outcome(&chains(1, clients, &algorithm, model));
    let moved = values(&outcome.particles).chunks_exact(3).filter(|chain| chain.iter().all(|x| *x != 3.0)).count();
    (moved, outcome)
}

#[test]
fn every_chain_of_dsgld_moves_in_every_round() {
    // K divides N, does not, leaves a worker without chains (9 over 4 by threes), and N < K.
    for (n, k) in [(8, 4), (10, 4), (9, 4), (3, 8), (1, 5)] {
        assert_eq!(moved(n, k, "ceil").0, n, "N = {n}, K = {k}");
    }
    for (n, k, want) in [(8, 4, 8), (10, 4, 8), (11, 4, 8), (3, 8, 3)] {
        assert_eq!(moved(n, k, "floor").0, want, "N = {n}, K = {k}, public code");
    }
}

#[test]
fn a_round_of_dsgld_sends_every_chain_to_a_client_and_back_once() {
    for (n, k) in [(8, 4), (10, 4), (3, 8)] {
        let (_, outcome) = moved(n, k, "ceil");
        let bytes = (n * 3 * 4) as u64;
        assert_eq!(outcome.rounds[0].downlink_bytes, bytes, "N = {n}, K = {k}");
        assert_eq!(outcome.rounds[0].uplink_bytes, bytes, "N = {n}, K = {k}");
    }
}

#[test]
fn the_corrected_scale_makes_dsgld_agree_with_sgld() {
    // 400 rows y of precision .01: the posterior is N(4ȳ/5, I/5), ȳ ≈ 3. Without the factor K a worker sees 100 rows,
    // and chains settle at about ȳ/2.
    let model = || Observations::new(3, 0.01, 3.0, 1.0);
    let config = chains(1, 4, "kind = \"dsgld\"", model()).config;
    let rows = train(&config);
    let (count, width) = (rows.rows(), rows.width());
    let features: Vec<f64> = rows.features.iter().map(|x| f64::from(*x)).collect();
    let mean_of = |j: usize| 3.0 + features.iter().skip(j).step_by(width).sum::<f64>() / count as f64;
    let want: Vec<f64> = (0..3).map(|j| 0.8 * mean_of(j)).collect();

    let run = |kind: &str, clients: usize, keys: &str| {
        let sizes = "particles = 1200\nlocal_steps = 20\nstep_size = 0.02";
        let algorithm = format!("kind = \"{kind}\"\n{sizes}\n{keys}");
        let outcome = outcome(&chains(15, clients, &algorithm, model()));
        let flat = values(&outcome.particles);
        (0..3).map(|j| flat.iter().skip(j).step_by(3).copied().collect()).collect::<Vec<Vec<f64>>>()
    };
    let (sgld, dsgld) = (run("sgld", 1, ""), run("dsgld", 4, ""));
    let reference = run("dsgld", 4, "gradient_scale = \"reference\"");
    for (j, want) in want.into_iter().enumerate() {
        let [(sgld, _), (dsgld, variance), (reference, _)] = [&sgld[j], &dsgld[j], &reference[j]].map(|x| moments(x));
        println!(
            "coordinate {j}: posterior {want:.4}, sgld {sgld:.4}, dsgld {dsgld:.4} ± {variance:.4}, {reference:.4}"
        );
        // A standard error is √(1/5/1200) = .013; the workers' own means average out, because each has 300 chains.
        assert!((sgld - want).abs() < 0.045, "sgld {sgld}, posterior {want}");
        assert!((dsgld - want).abs() < 0.045, "dsgld {dsgld}, posterior {want}");
        // Both use the same noise, assigned to other chains, and in a linear drift only its mean matters: 300 chains
        // at each of the four equal shards have the drift of 1,200 at all rows, to the rounding of f32.
        assert!((dsgld - sgld).abs() < 1e-3, "dsgld {dsgld}, sgld {sgld}");
        assert!((variance / 0.2 - 1.0).abs() < 0.2, "variance {variance}, posterior .2");
        assert!((reference - want).abs() > 0.5, "without the factor K: {reference}, posterior {want}");
    }
}

/// The training rows of a config, as the run itself draws them.
fn train(config: &Config) -> Dataset {
    let data: DataConfig = config.data().unwrap();
    datasets::load(&data, "data".as_ref(), &mut Streams::new(config.seed).rng(Purpose::Data, 0, 0)).unwrap().train
}

// ----------------------------------------------------------------------------------------------------------- FedSGD

/// One round of FedSGD with all of three clients, in f64.
fn fedsgd(lr: f64) -> Experiment {
    experiment(&format!(
        r#"
        name = "fedsgd"
        seed = 5
        rounds = 1
        precision = "f64"
        [data]
        kind = "digits"
        train_limit = 203
        test_limit = 50
        [partition]
        clients = 3
        [model]
        kind = "bnn"
        hidden = [7]
        [algorithm]
        kind = "fedsgd"
        [schedule]
        clients = 3
        [optimizer]
        kind = "sgd"
        lr = {lr:e}
        "#
    ))
}

#[test]
fn a_round_of_fedsgd_is_a_gradient_step_on_the_mean_loss_of_all_rows() {
    let lr = 0.5;
    // A step that even f64 rounds away.
    let start = outcome(&fedsgd(1e-300)).particles;
    let got = values(&outcome(&fedsgd(lr)).particles);

    let config = fedsgd(lr).config;
    let data = datasets::load(
        &config.data().unwrap(),
        "data".as_ref(),
        &mut Streams::new(config.seed).rng(Purpose::Data, 0, 0),
    )
    .unwrap();
    let model = config.model(&data.train).unwrap();
    let table = Table::new(data.train, &data.normalisation);
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let rows = table.rows();
    assert_eq!(rows, 203, "shares of 68, 68 and 67 rows: unequal weights");
    let gradient = model.likelihood_score(start.blocks(), &table.batch(0..rows, &session), 1.0 / rows as f64);
    let gradient: Vec<f64> = gradient.into_iter().flat_map(|block| block.try_into_vec_as::<f64>().unwrap()).collect();
    let start = values(&start);
    assert!(gradient.iter().any(|g| g.abs() > 1e-3), "there must be a slope");
    for (j, got) in got.iter().enumerate() {
        let want = start[j] + lr * gradient[j];
        assert!((got - want).abs() < 1e-12, "coordinate {j}: {got}, not {want}");
    }
}

// ---------------------------------------------------------------------------------------------------- reproducibility

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    let npv = toy(1, 2, "kind = \"npv\"\nparticles = 5");
    let pmd = toy(1, 2, "kind = \"pmd\"\nparticles = 30\nlocal_steps = 20\nbatch = 2");
    let dsgld = toy(1, 4, "kind = \"dsgld\"\nparticles = 7\nlocal_steps = 20\nbatch = 2");
    for (name, mut experiment) in [("npv", npv), ("pmd", pmd), ("dsgld", dsgld)] {
        let bits = |experiment: &Experiment, threads: usize| -> Vec<u64> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let outcome = pool.install(|| outcome(experiment));
            values(&outcome.particles).iter().map(|value| value.to_bits()).collect()
        };
        let once = bits(&experiment, 1);
        assert!(once == bits(&experiment, 3), "{name}: one thread and three differ");
        experiment.config.seed += 1;
        assert!(once != bits(&experiment, 1), "{name}: another seed changes nothing");
    }
}
