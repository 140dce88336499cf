//! Functions that the test files share: golden cases, comparison, particles from plain lists, experiments from text.
#![allow(dead_code)] // every test binary uses its own part

pub mod place;

use std::sync::Arc;

use burn::tensor::Tensor;
use fedstein::algorithm::gaussian::Family;
use fedstein::algorithm::gaussian::natural::{Gaussian, Symmetric};
use fedstein::algorithm::{ALGORITHM_CAPABILITIES, ALGORITHM_KINDS, Capabilities};
use fedstein::array::{Array, Values};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::{self, Partition, TrainTest};
use fedstein::error::RunError;
use fedstein::experiment::progress::Quiet;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::experiment::{Config, Experiment, Outcome, run};
use fedstein::models::{Layout, Model};
use fedstein::particles::Particles;
use fedstein::protocol::{ClientHalves, Halves, ServerHalf, Setup, all_here};
use fedstein::random::{Purpose, Streams};
use fedstein::rows::{Shard, Table};
use ndarray::{Array1, Array2};
use rand::rngs::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// The names of the algorithms with these capabilities, from the one list of all of them.
pub fn algorithms_that(can: impl Fn(Capabilities) -> bool) -> Vec<&'static str> {
    let all = ALGORITHM_KINDS.iter().zip(ALGORITHM_CAPABILITIES);
    all.filter(|(_, capabilities)| can(**capabilities)).map(|(kind, _)| kind.name).collect()
}

/// The names of all algorithms.
pub fn algorithms() -> Vec<&'static str> {
    algorithms_that(|_| true)
}

/// The method whose messages have no parameters: nothing moves at the server.
pub const SILENT: &str = "local-svgd";

/// Whether an algorithm has clients, whose predictors can be scored.
pub fn has_clients(algorithm: &str) -> bool {
    !algorithms_that(|can| can.centralised).contains(&algorithm)
}

/// Whether an algorithm has a key.
pub fn has_key(algorithm: &str, key: &str) -> bool {
    ALGORITHM_KINDS.iter().any(|kind| kind.name == algorithm && kind.key(key).is_some())
}

/// Whether an algorithm presupposes plain gradient steps.
pub fn needs_plain_steps(algorithm: &str) -> bool {
    algorithms_that(|can| can.plain_gradient_steps).contains(&algorithm)
}

/// Independent standard normal entries.
pub fn normal(shape: (usize, usize), rng: &mut ChaCha12Rng) -> Array2<f64> {
    Array2::from_shape_fn(shape, |_| StandardNormal.sample(rng))
}

/// The entries of a tensor, on the host.
pub fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().unwrap()
}

/// The blocks of particles given as flat rows.
pub fn blocks(rows: &Array2<f64>, model: &dyn Model, on: &Session) -> Vec<Tensor<2>> {
    with_layout(rows, model.layout(), on).blocks().to_vec()
}

/// A case of a golden file.
pub struct Case(pub Value);

/// |got − want| ≤ atol + rtol·|want|.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

pub fn tolerance(rtol: f64, atol: f64) -> Tolerance {
    Tolerance { rtol, atol }
}

/// The cases of `tests/golden/<file>.json`.
pub fn golden(file: &str) -> Vec<Case> {
    let path = format!("{}/tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let value: Value = serde_json::from_str(&text).unwrap();
    value["cases"].as_array().unwrap().iter().cloned().map(Case).collect()
}

impl Case {
    pub fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    pub fn input(&self, key: &str) -> &Value {
        &self.0["inputs"][key]
    }

    pub fn expected(&self, key: &str) -> &Value {
        &self.0["expected"][key]
    }

    pub fn number(&self, key: &str) -> f64 {
        self.input(key).as_f64().unwrap_or_else(|| panic!("{}: no number {key}", self.name()))
    }

    pub fn tolerance(&self, precision: Precision) -> Tolerance {
        let of = match precision {
            Precision::F64 => &self.0["tolerance"]["f64"],
            Precision::F32 => &self.0["tolerance"]["f32"],
        };
        Tolerance { rtol: of["rtol"].as_f64().unwrap(), atol: of["atol"].as_f64().unwrap() }
    }
}

/// Numbers of a JSON value in reading order, whatever its nesting.
pub fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Number(number) => vec![number.as_f64().unwrap()],
        Value::Array(items) => items.iter().flat_map(flat).collect(),
        Value::Bool(_) | Value::Null | Value::String(_) | Value::Object(_) => panic!("not a number: {value}"),
    }
}

/// A matrix from a list of rows.
pub fn matrix(value: &Value) -> Array2<f64> {
    let rows = value.as_array().unwrap().len();
    let values = flat(value);
    Array2::from_shape_vec((rows, values.len() / rows), values).unwrap()
}

pub fn assert_close(got: &[f64], want: &[f64], tolerance: Tolerance, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: number of values");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let bound = tolerance.atol + tolerance.rtol * want.abs();
        assert!((got - want).abs() <= bound, "{what}[{i}]: got {got:e}, want {want:e} within {bound:e}");
    }
}

/// A layout of d coordinates cut into two blocks where possible, so that sums over blocks are exercised.
pub fn plain_layout(d: usize) -> Arc<Layout> {
    let cut = d / 2;
    if cut == 0 {
        return Arc::new(Layout::new([("theta", [d].as_slice())]));
    }
    Arc::new(Layout::new([("a", [cut].as_slice()), ("b", [d - cut].as_slice())]))
}

/// Particles from rows.
pub fn particles(rows: &Array2<f64>, session: &Session) -> Particles {
    with_layout(rows, &plain_layout(rows.ncols()), session)
}

pub fn with_layout(rows: &Array2<f64>, layout: &Arc<Layout>, session: &Session) -> Particles {
    let array = Array { shape: vec![rows.nrows(), rows.ncols()], values: Values::F64(rows.iter().copied().collect()) };
    Particles::from_array(&array, layout, session).unwrap()
}

/// Rows of particles, flattened.
pub fn values(particles: &Particles) -> Vec<f64> {
    particles.to_array().unwrap().values.to_f64()
}

/// A covariance or precision with all its numbers.
pub fn full(matrix: Array2<f64>) -> Symmetric {
    Symmetric::Full(matrix)
}

/// N(0, variance·I) in d dimensions.
pub fn isotropic(family: Family, d: usize, variance: f64) -> Gaussian {
    let covariance = Symmetric::diagonal(family, Array1::from_elem(d, variance));
    Gaussian::new(Array1::zeros(d), &covariance).unwrap()
}

/// Digits in a small network, 64-7-10 with d = 535: a run of a second. `sections` are the rest of the config.
pub fn small_digits(rounds: usize, sections: &str) -> Experiment {
    experiment(&format!(
        r#"
        name = "small"
        seed = 5
        rounds = {rounds}
        [data]
        kind = "digits"
        train_limit = 203
        test_limit = 100
        [model]
        kind = "bnn"
        hidden = [7]
        {sections}
        "#
    ))
}

/// A toy density of the DSVGD paper in f64. `data` is `mixture-1d` or `mixture-2d`; `partition` and `algorithm` are the
/// keys of these sections, and other sections may follow those of the latter.
pub fn toy(data: &str, prior: &str, partition: &str, seed: u64, rounds: usize, algorithm: &str) -> Experiment {
    experiment(&format!(
        r#"
        name = "toy"
        seed = {seed}
        rounds = {rounds}
        precision = "f64"
        [data]
        kind = "{data}"
        [partition]
        {partition}
        [model]
        kind = "mixture"
        prior = "{prior}"
        [algorithm]
        {algorithm}
        "#
    ))
}

/// The experiment of a config.
pub fn experiment(text: &str) -> Experiment {
    let (config, _) = Config::load(Source { name: "test.toml", text }, &Overrides::default()).unwrap();
    Experiment::new(config, "data")
}

/// Both halves of an experiment's algorithm, built as a run builds them, to be driven by a test.
pub struct Built {
    pub server: Box<dyn ServerHalf>,
    pub clients: ClientHalves,
    pub layout: Arc<Layout>,
    pub session: Session,
}

impl Built {
    pub fn new(experiment: &Experiment) -> Self {
        let config = &experiment.config;
        let (streams, session) = (Streams::new(config.seed), Session::open::<Flex>(config.precision).unwrap());
        let (all, partition) = (data(config), partition_of(config));
        let model = experiment.model.clone().unwrap_or_else(|| config.model(&all.train).unwrap());
        let layout = model.layout().clone();
        let train = Table::new(all.train, &all.normalisation);
        let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
        let count = config.algorithm.particles();
        let rows: Vec<f64> = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
        let initial = with_layout(&Array2::from_shape_vec((count, layout.dim()), rows).unwrap(), &layout, &session);
        let shards = partition.clients().iter().map(|rows| Shard::new(train.clone(), rows.clone(), session.clone()));
        let (roster, here) = all_here(shards);
        let setup = Setup {
            model,
            roster,
            here,
            width: train.width(),
            initial,
            session: session.clone(),
            streams,
            svgd: config.svgd(),
            reset_optimizer: config.reset_optimizer(),
            personal: config.evaluation.personal,
            robust: config.robust_barycenter(),
        };
        let Halves { server, clients } = config.algorithm.build(setup).unwrap();
        Self { server, clients, layout, session }
    }
}

/// The result of a run without output and files.
pub fn try_run(experiment: &Experiment) -> Result<Outcome, RunError> {
    run::<Flex>(experiment, &Quiet, None)
}

pub fn outcome(experiment: &Experiment) -> Outcome {
    try_run(experiment).unwrap()
}

/// The last particles, to the bit.
pub fn bits(outcome: &Outcome) -> Vec<u64> {
    values(&outcome.particles).iter().map(|value| value.to_bits()).collect()
}

/// The data of an experiment, as the run itself loads them.
pub fn data(config: &Config) -> TrainTest {
    let mut rng = Streams::new(config.seed).rng(Purpose::Data, 0, 0);
    datasets::load(&config.data().unwrap(), "data".as_ref(), &mut rng).unwrap()
}

/// The partition of the training rows, as the run itself draws it.
pub fn partition_of(config: &Config) -> Partition {
    let mut rng = Streams::new(config.seed).rng(Purpose::Partition, 0, 0);
    datasets::partition(&config.partition().unwrap(), &data(config).train, &mut rng).unwrap()
}

/// Mean and variance of all values.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n)
}

/// Mean and standard deviations of q from draws m + L⁻ᵀz of a mean field, whose z is known: the two numbers of each
/// coordinate by least squares, which have no residual.
pub fn mean_field_of(outcome: &Outcome, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = (outcome.particles.count(), outcome.particles.dim());
    let mut rng = Streams::new(seed).rng(Purpose::Gaussian, 0, 0);
    let z: Array2<f64> = Array2::from_shape_simple_fn((n, d), || StandardNormal.sample(&mut rng));
    let theta = Array2::from_shape_vec((n, d), values(&outcome.particles)).unwrap();
    let coordinate = |j: usize| {
        let (z, theta) = (z.column(j), theta.column(j));
        let (z_mean, theta_mean) = (z.mean().unwrap(), theta.mean().unwrap());
        let slope = (&z - z_mean).dot(&(&theta - theta_mean)) / (&z - z_mean).mapv(|gap| gap * gap).sum();
        let mean = theta_mean - slope * z_mean;
        let residual = (&theta - mean - slope * &z).fold(0.0f64, |top, gap| top.max(gap.abs()));
        assert!(residual < 1e-5 * (1.0 + mean.abs()), "coordinate {j} is not m + s·z: {residual}");
        (mean, slope)
    };
    (0..d).map(coordinate).unzip()
}
