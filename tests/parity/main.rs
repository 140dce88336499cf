//! One suite for every backend: model scores, density estimates, SVGD steps and short federated runs in f32 agree with
//! flex in f64, and random draws are the same bits.
//!
//! A GPU (or a software adapter) is used from one thread: one `#[test]` per backend runs everything in sequence, 7 s on
//! Mesa's llvmpipe and 16 s on an H200 whose driver had compiled few of the kernels before. Where no adapter or device
//! opens, the test of its backend prints so and passes, unless `FEDSTEIN_REQUIRE_WGPU=1`, or
//! `FEDSTEIN_REQUIRE_DEVICE=1` for wgpu and cuda.

#[path = "../common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Instant;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use common::{host, particles, values, with_layout};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::datasets::synthetic::mixture;
use fedstein::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, LogDensity};
use fedstein::experiment::evaluate::Predicted;
use fedstein::experiment::progress::Quiet;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, Outcome, run};
use fedstein::models::{
    Activation, Batch, BlrConfig, BnnConfig, Forward, Head, LayerSpec, MixtureConfig, MixturePrior, Model, Network,
    Probit, ReplicatedConfig, StackConfig, Task,
};
use fedstein::random::{Purpose, Streams};
use fedstein::stein::{
    AccumulatorStart, Bandwidth, EpsilonPlace, Gradient, Kernel, Optimizer, OptimizerState, Precisions, Score,
    SteinForm, direction,
};
use ndarray::Array2;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// The tolerance of f32 against f64, relative to the largest number of an array. Sums here have up to 600 terms that
/// partly cancel, followed by one softmax or exp: some hundred units in the last place (6e-8 each). A wrong kernel has
/// an error of 1e-1 or more.
const TOLERANCE: f64 = 5e-5;

/// The comparisons so far. Failures are collected, so that a test reports all errors of a backend at once.
struct Report {
    backend: &'static str,
    failures: Vec<String>,
    worst: (f64, String),
    compared: usize,
}

impl Report {
    fn new(backend: &'static str) -> Self {
        Self { backend, failures: Vec::new(), worst: (0.0, "nothing".into()), compared: 0 }
    }

    /// Checks max |got − want| ≤ tolerance · max |want|, and that values are finite where the expected ones are.
    fn compare(&mut self, what: &str, got: &[f64], want: &[f64], tolerance: f64) {
        assert_eq!(got.len(), want.len(), "{}, {what}: number of values", self.backend);
        self.compared += 1;
        let largest = want.iter().fold(f64::MIN_POSITIVE, |top, value| top.max(value.abs()));
        let difference = |(got, want): (&f64, &f64)| {
            let both = got == want; // infinities
            let difference = (got - want).abs() / largest;
            if both { 0.0 } else { difference }
        };
        // `max` would skip a NaN.
        let errors: Vec<f64> = got.iter().zip(want).map(difference).collect();
        let worst = errors.iter().copied().max_by(f64::total_cmp).unwrap_or(0.0);
        if worst.is_nan() || worst > tolerance {
            let at = errors.iter().position(|error| error.to_bits() == worst.to_bits()).unwrap();
            self.failures.push(format!(
                "{what}: off by {worst:.1e} of the largest value (allowed {tolerance:.0e}); [{at}] is {:e}, not {:e}",
                got[at], want[at]
            ));
        }
        if worst.is_nan() || worst > self.worst.0 {
            self.worst = (worst, what.to_owned());
        }
    }

    fn finish(self) {
        let Self { backend, failures, worst, compared } = self;
        println!("{backend}: {compared} arrays compared, worst {:.1e} ({})", worst.0, worst.1);
        assert!(failures.is_empty(), "{backend} differs from flex in f64:\n{}", failures.join("\n"));
    }
}

fn normal(shape: (usize, usize), sd: f64, rng: &mut ChaCha12Rng) -> Array2<f64> {
    // Rounded to f32, so that both precisions start from the same numbers.
    Array2::from_shape_fn(shape, |_| {
        let z: f64 = StandardNormal.sample(rng);
        f64::from((sd * z) as f32)
    })
}

// --------------------------------------------------------------------------------------------------------- models

/// An ordinary Burn network, as a user writes it.
#[derive(Module, Debug)]
struct Mlp {
    hidden: Linear,
    out: Linear,
}

impl Mlp {
    fn new(device: &Device) -> Self {
        Self { hidden: LinearConfig::new(5, 7).init(device), out: LinearConfig::new(7, 3).init(device) }
    }
}

impl Forward for Mlp {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.out.forward(activation::relu(self.hidden.forward(inputs)))
    }
}

/// A model with the shape at which it is evaluated.
struct Shape {
    name: &'static str,
    model: Arc<dyn Model>,
    features: usize,
    particles: usize,
    rows: usize,
}

fn shapes() -> Vec<Shape> {
    fn shape(name: &'static str, model: Arc<dyn Model>, features: usize, particles: usize, rows: usize) -> Shape {
        Shape { name, model, features, particles, rows }
    }
    let bnn = |config: BnnConfig| Arc::new(Network::new(config.check().unwrap())) as Arc<dyn Model>;
    let blr = |config: BlrConfig| Arc::new(Network::new(config.check().unwrap())) as Arc<dyn Model>;
    let regression = |features, hidden: &[usize]| BnnConfig {
        head: Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 },
        ..BnnConfig::classifier(features, hidden, 2)
    };
    // Every kind of layer, strides and zeros around images included.
    let layers =
        "conv 3 3x3 stride 2 pad 1, silu, max-pool 2, conv 4 2x2 pad 1, relu, avg-pool 2 stride 1, dense 6, tanh";
    let layers = LayerSpec::read(&layers.split(", ").collect::<Vec<_>>()).unwrap();
    let stack = Arc::new(Network::new(StackConfig::classifier(&[2, 9, 11], layers, 3).check().unwrap()));
    let toy = |prior| Arc::new(Network::new(MixtureConfig::new(14, 2, prior).unwrap())) as Arc<dyn Model>;
    let classifier = BnnConfig::classifier;
    // With the feature `autotune` every new shape of a matrix product costs seconds of tuning: activations share one
    // shape, and so do the regressions with and without a bias (53 + 1 = 54 columns).
    let activations = [Activation::Tanh, Activation::Sigmoid, Activation::Gelu, Activation::Silu];
    let names = ["two classes, tanh", "two classes, sigmoid", "two classes, gelu", "two classes, silu"];
    let probit = Some(Probit { lambda: 0.55 });
    let mut shapes = vec![
        shape("one particle, one row", bnn(classifier(6, &[5], 3)), 6, 1, 1),
        shape("two hidden layers, one row", bnn(classifier(6, &[5, 7], 3)), 6, 3, 1),
        // The narrow head of Burn's issue 5122: rows beyond the first were wrong in a fused kernel.
        shape("regression", bnn(regression(8, &[11])), 8, 5, 13),
        // Burn's issue 4966: products of more than about 500 rows came out as 0. Here 8·70 = 560.
        shape("more than 512 rows", bnn(classifier(33, &[70], 10)), 33, 8, 33),
        shape("logistic regression", blr(BlrConfig::new(54)), 54, 6, 10),
        shape("with bias, probit", blr(BlrConfig { bias: true, probit, ..BlrConfig::new(53) }), 53, 6, 10),
        shape("logistic regression, one particle, one row", blr(BlrConfig::new(5)), 5, 1, 1),
        shape("toy, gaussian prior", toy(MixturePrior::Gaussian), 14, 9, 2),
        shape("toy, uniform prior", toy(MixturePrior::Uniform), 14, 9, 2),
        shape("convolutions", stack, 198, 3, 4),
        shape("ordinary module", Arc::new(Network::new(ReplicatedConfig::new(3, Mlp::new))), 5, 2, 7),
    ];
    for (name, activation) in names.into_iter().zip(activations) {
        shapes.push(shape(name, bnn(BnnConfig { activation, ..classifier(13, &[9], 2) }), 13, 4, 5));
    }
    shapes
}

/// All outputs of a model on some rows.
fn answers<B: Backend>(shape: &Shape, precision: Precision) -> Vec<(&'static str, Vec<f64>)> {
    let Shape { model, features, particles, rows, .. } = shape;
    let session = Session::open::<B>(precision).unwrap();
    let mut rng = ChaCha12Rng::seed_from_u64(21);
    let theta = normal((*particles, model.layout().dim()), 0.3, &mut rng);
    let (inputs, targets) = match model.task() {
        Task::Classification { classes } => {
            let inputs = normal((*rows, *features), 1.0, &mut rng);
            let labels: Vec<usize> = (0..*rows).map(|_| rng.random_range(0..classes)).collect();
            let one_hot = |(row, class): (usize, usize)| f64::from(u8::from(labels[row] == class));
            (inputs, Array2::from_shape_fn((*rows, classes), one_hot))
        }
        Task::Regression => (normal((*rows, *features), 1.0, &mut rng), normal((*rows, 1), 1.0, &mut rng)),
        Task::Density => {
            let data = mixture::dataset("mixture-2d", &mixture::paper_2d());
            (data.features.mapv(f64::from), Array2::zeros((*rows, 1)))
        }
    };
    let theta = with_layout(&theta, model.layout(), &session);
    let theta = theta.blocks();
    let batch = Batch::new(session.matrix(&inputs), session.matrix(&targets));
    let score = model.likelihood_score(theta, &batch, 7.5);
    let joint = model.prior().add_score(theta, score.clone(), 1.0);
    vec![
        ("log-likelihood", host(model.log_likelihood(theta, &batch))),
        ("log prior", host(model.prior().log_density(theta))),
        ("prediction", host(model.predict(theta, batch.inputs.clone()))),
        ("likelihood score", host(Tensor::cat(score, 1))),
        ("score", host(Tensor::cat(joint, 1))),
    ]
}

fn compare_models<B: Backend>(report: &mut Report) {
    for shape in shapes() {
        let got = answers::<B>(&shape, Precision::F32);
        let want = answers::<Flex>(&shape, Precision::F64);
        for ((part, got), (_, want)) in got.iter().zip(&want) {
            report.compare(&format!("{}: {part}", shape.name), got, want, TOLERANCE);
        }
    }
}

// ------------------------------------------------------------------------------------------------ densities and steps

fn stein_answers<B: Backend>(precision: Precision) -> Vec<(String, Vec<f64>)> {
    let session = Session::open::<B>(precision).unwrap();
    let mut answers = Vec::new();
    // 70 particles make Gram matrices beyond one workgroup of a GPU.
    for (n, d) in [(1, 7), (5, 13), (70, 3)] {
        let mut rng = ChaCha12Rng::seed_from_u64(22);
        // Far from the origin, as trained weights are, so that centring matters.
        let x = normal((n, d), 0.5, &mut rng).mapv(|value| value + 4.0);
        let x = particles(&x, &session);
        let score = Score::dense(particles(&normal((n, d), 3.0, &mut rng), &session));
        let bandwidth = Bandwidth::default();
        for (name, kernel) in [
            ("rbf", Kernel::Rbf(bandwidth)),
            ("imq", Kernel::Imq { bandwidth, exponent: -0.5 }),
            ("laplacian", Kernel::Laplacian(bandwidth)),
            ("mixture", Kernel::Mixture(bandwidth)),
            ("sigmoid", Kernel::Sigmoid { slope: 1e-3, offset: 0.0, gradient: Gradient::Correct }),
        ] {
            let phi = direction(&kernel, &x, score.clone()).unwrap().evaluate(&x);
            answers.push((format!("direction, {name}, N={n} d={d}"), values(&phi)));
        }
        let means = particles(&normal((n, d), 0.5, &mut rng).mapv(|value| value + 4.0), &session);
        let precisions = particles(&normal((n, d), 3.0, &mut rng).mapv(f64::abs), &session);
        let precisions = precisions.blocks().iter().cloned().map(Precisions::of_coordinates).map(Some).collect();
        let gaussians = score.clone().plus(Score::gaussian(means, Arc::new(precisions)).times(0.5));
        let phi = direction(&Kernel::Rbf(bandwidth), &x, gaussians).unwrap().evaluate(&x);
        answers.push((format!("direction with the scores of Gaussians, N={n} d={d}"), values(&phi)));
        let other = particles(&normal((n, d), 3.0, &mut rng), &session);
        let own = score.evaluate(&x);
        for (name, kernel) in [("rbf", Kernel::Rbf(bandwidth)), ("imq", Kernel::Imq { bandwidth, exponent: -0.5 })] {
            let form = SteinForm::new(&kernel, &x).unwrap().unwrap();
            for (what, second) in [("discrepancy", &own), ("inner product", &other)] {
                let product = form.product(&own, second).unwrap();
                answers.push((format!("{what}, {name}, N={n} d={d}"), product.matrix.into_iter().collect()));
            }
        }
        for (mode, bandwidth) in [
            (KdeMode::Exact, KdeBandwidth::Fixed(0.55)),
            (KdeMode::Exact, KdeBandwidth::Median),
            (KdeMode::Reference, KdeBandwidth::Fixed(0.55)),
        ] {
            let kde = Kde::new(&x, KdeConfig { mode, bandwidth }).unwrap();
            let at = particles(&normal((3, d), 0.5, &mut rng).mapv(|value| value + 4.0), &session);
            let label = |part: &str| format!("density, {mode:?} {bandwidth:?}, N={n} d={d}: {part}");
            answers.push((label("score"), values(&kde.score(&at).unwrap().evaluate(&at))));
            answers.push((label("log density"), kde.log_density(&at).unwrap()));
        }
        // The optimisers get given directions: with computed ones the sign of a rounded zero would reverse a whole
        // step.
        for (name, optimizer) in optimizers() {
            let (mut theta, mut state) = (x.clone(), OptimizerState::default());
            for _ in 0..3 {
                let phi = particles(&normal((n, d), 2.0, &mut rng), &session);
                theta = optimizer.step(theta, phi, &mut state);
            }
            answers.push((format!("three steps, {name}, N={n} d={d}"), values(&theta)));
        }
    }
    answers
}

fn optimizers() -> [(&'static str, Optimizer); 3] {
    let (lr, epsilon) = (0.05, 1e-6);
    let (init, place) = (AccumulatorStart::G2, EpsilonPlace::Outside);
    [
        ("adagrad", Optimizer::AdaGrad { lr, epsilon, momentum: 0.9, init, place }),
        ("adam", Optimizer::Adam { lr, epsilon, beta1: 0.9, beta2: 0.999 }),
        ("sgd", Optimizer::Sgd { lr }),
    ]
}

fn compare_stein<B: Backend>(report: &mut Report) {
    let (got, want) = (stein_answers::<B>(Precision::F32), stein_answers::<Flex>(Precision::F64));
    for ((what, got), (_, want)) in got.iter().zip(&want) {
        report.compare(what, got, want, TOLERANCE);
    }
}

/// One SVGD step in the shape of the runs below, from the same particles on the same rows: score, direction, move.
fn svgd_step<B: Backend>(precision: Precision) -> Vec<f64> {
    let session = Session::open::<B>(precision).unwrap();
    let model = Network::new(BnnConfig::classifier(64, &[12], 10));
    let mut rng = ChaCha12Rng::seed_from_u64(23);
    let start = normal((4, model.layout().dim()), 0.2, &mut rng);
    let theta = with_layout(&start, model.layout(), &session);
    let inputs = normal((20, 64), 0.5, &mut rng);
    let one_hot = Array2::from_shape_fn((20, 10), |(row, class)| f64::from(u8::from(row % 10 == class)));
    let batch = Batch::new(session.matrix(&inputs), session.matrix(&one_hot));
    let score = model.likelihood_score(theta.blocks(), &batch, 5.0);
    let score = Tensor::cat(model.prior().add_score(theta.blocks(), score, 1.0), 1);
    let score = Array2::from_shape_vec((4, model.layout().dim()), host(score)).unwrap();
    let score = Score::dense(with_layout(&score, model.layout(), &session));
    let phi = direction(&Kernel::default(), &theta, score).unwrap();
    let moved = values(&Optimizer::Sgd { lr: 1e-2 }.follow(theta, phi, &mut OptimizerState::default()));
    moved.iter().zip(&start).map(|(to, from)| to - from).collect()
}

// ----------------------------------------------------------------------------------------------------- whole runs

fn experiment(algorithm: &str, optimizer: &str, rounds: usize) -> Experiment {
    let text = format!(
        r#"
        name = "parity"
        seed = 3
        rounds = {rounds}
        [data]
        kind = "digits"
        train_limit = 200
        test_limit = 50
        [partition]
        clients = 3
        [model]
        kind = "bnn"
        hidden = [12]
        [algorithm]
        {algorithm}
        local_steps = 5
        batch = 20
        [optimizer]
        {optimizer}
        "#
    );
    let (config, _) = Config::load(Source { name: "parity.toml", text: &text }, &Overrides::default()).unwrap();
    Experiment::new(config, "data")
}

fn outcome<B: Backend>(mut experiment: Experiment, precision: Precision) -> Outcome {
    experiment.config.precision = precision;
    run::<B>(&experiment, &Quiet, None).unwrap()
}

fn log_probs(outcome: &Outcome) -> Vec<f64> {
    match &outcome.predicted {
        Predicted::Classes { log_probs, .. } => {
            let rows = |n| (0..log_probs.rows()).flat_map(move |row| log_probs.row(n, row));
            (0..log_probs.particles()).flat_map(rows).collect()
        }
        other => panic!("{other:?}"),
    }
}

const DSVGD: &str = "kind = \"dsvgd\"\nparticles = 4\ndistill_steps = 5";
const PLAIN: &str = "kind = \"sgd\"\nlr = 1e-3";
/// ϵ is so large that steps contract. With a small one a step overshoots where φ is nearly 0, as for the weights of
/// pixels that are always blank, on which only cavity and prior act: rounding errors then grow tenfold per step.
const ADAGRAD: &str = "kind = \"adagrad\"\nlr = 1e-2\nepsilon = 1.0";

fn compare_runs<B: Backend>(report: &mut Report) {
    for (name, algorithm, optimizer, rounds) in [
        ("DSVGD", DSVGD, PLAIN, 3),
        ("DSVGD, AdaGrad", DSVGD, ADAGRAD, 3),
        ("U-DSVGD", "kind = \"u-dsvgd\"\nparticles = 4", PLAIN, 2),
        ("P-DSVGD", "kind = \"p-dsvgd\"\nparticles = 4\ndistill_steps = 5\nserver_steps = 5", PLAIN, 2),
        ("DSGLD", "kind = \"dsgld\"\nparticles = 4\nstep_size = 1e-4", PLAIN, 2),
        ("FedAvg", "kind = \"fedavg\"", PLAIN, 2),
    ] {
        let got = outcome::<B>(experiment(algorithm, optimizer, rounds), Precision::F32);
        let want = outcome::<Flex>(experiment(algorithm, optimizer, rounds), Precision::F64);
        report.compare(&format!("{name}: particles"), &values(&got.particles), &values(&want.particles), TOLERANCE);
        report.compare(&format!("{name}: predictions"), &log_probs(&got), &log_probs(&want), TOLERANCE);
        let nll = |outcome: Option<f64>| [outcome.unwrap()];
        report.compare(&format!("{name}: NLL"), &nll(got.evaluation.nll), &nll(want.evaluation.nll), TOLERANCE);
        // With 50 test rows, one row that f32 classifies differently changes the accuracy by 0.02.
        let accuracy = |outcome: Option<f64>| [outcome.unwrap()];
        let (got, want) = (accuracy(got.evaluation.accuracy), accuracy(want.evaluation.accuracy));
        report.compare(&format!("{name}: accuracy"), &got, &want, 1e-9);
    }
}

/// Compares random draws, which are made on the host and have the same bits everywhere: those of the public function,
/// and the particles after a whole run with a step size that f32 rounds to 0.
fn compare_draws<B: Backend>(report: &mut Report) {
    fn drawn<B: Backend>() -> Vec<f64> {
        let session = Session::open::<B>(Precision::F32).unwrap();
        let model = Network::new(BnnConfig::classifier(64, &[12], 10));
        let mut rng = Streams::new(3).rng(Purpose::InitialParticles, 0, 0);
        let rows: Vec<f64> = (0..4).flat_map(|_| model.initial(&mut rng)).collect();
        let rows = Array2::from_shape_vec((4, model.layout().dim()), rows).unwrap();
        values(&with_layout(&rows, model.layout(), &session))
    }
    let still = "kind = \"sgd\"\nlr = 1e-60";
    let run = |at_rest: Vec<f64>| at_rest.iter().map(|value| value + 0.0).collect::<Vec<_>>(); // −0 is 0
    let (here, there) = (drawn::<B>(), drawn::<Flex>());
    report.compare("initial particles", &here, &there, 0.0);
    let got = run(values(&outcome::<B>(experiment(DSVGD, still, 1), Precision::F32).particles));
    report.compare("particles of a run that stands still", &got, &run(there), 0.0);
}

fn compare_step<B: Backend>(report: &mut Report) {
    let (got, want) = (svgd_step::<B>(Precision::F32), svgd_step::<Flex>(Precision::F64));
    report.compare("one SVGD step", &got, &want, TOLERANCE);
}

/// A part of the suite.
type Comparison = fn(&mut Report);

fn parity<B: Backend>() {
    let mut report = Report::new(B::NAME);
    let sections: [(&str, Comparison); 5] = [
        ("draws", compare_draws::<B>),
        ("models", compare_models::<B>),
        ("kernels, densities, step rules", compare_stein::<B>),
        ("one step", compare_step::<B>),
        ("runs", compare_runs::<B>),
    ];
    for (name, compare) in sections {
        let start = Instant::now();
        compare(&mut report);
        println!("{}: {name}: {:.1} s", B::NAME, start.elapsed().as_secs_f64());
    }
    report.finish();
}

#[test]
fn flex_in_single_precision_agrees_with_double() {
    parity::<Flex>();
}

#[cfg(feature = "ndarray")]
#[test]
fn ndarray_agrees_with_flex() {
    parity::<NdArray>();
}

#[test]
#[cfg(feature = "wgpu")]
fn wgpu_agrees_with_flex_where_an_adapter_opens() {
    use fedstein::backend::Wgpu;
    match Session::open::<Wgpu>(Precision::F32) {
        Ok(session) => {
            println!("wgpu: {}", session.hardware());
            parity::<Wgpu>();
        }
        Err(error) => skipped(&error.to_string(), &["FEDSTEIN_REQUIRE_WGPU", DEVICE]),
    }
}

/// The variable with which every backend of this build must open its device.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
const DEVICE: &str = "FEDSTEIN_REQUIRE_DEVICE";

/// Fails where one of these variables is 1. Otherwise prints to the terminal directly, because the test harness does not
/// show the output of tests that pass.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
#[allow(clippy::explicit_write)] // the test harness would capture eprintln!
fn skipped(reason: &str, required_by: &[&str]) {
    use std::io::Write;
    for variable in required_by {
        let is_required = std::env::var(variable).is_ok_and(|value| value == "1");
        assert!(!is_required, "{variable}=1, but {reason}");
    }
    writeln!(std::io::stderr(), "SKIPPED: {reason}").unwrap();
}

#[test]
#[cfg(feature = "cuda")]
fn cuda_agrees_with_flex_where_a_device_opens() {
    use fedstein::backend::Cuda;
    match Session::open::<Cuda>(Precision::F32) {
        Ok(session) => {
            println!("cuda: {}", session.hardware());
            parity::<Cuda>();
        }
        Err(error) => skipped(&error.to_string(), &[DEVICE]),
    }
}
