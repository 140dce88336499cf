//! Golden cases of the models: log-likelihoods, log priors with every constant, scores and predictions of logistic
//! regression and of networks, as other programs computed them (`tests/golden/README.md`), in f64 and in f32. Then what
//! golden numbers cannot show: autodiff against closed forms and against ordinary modules, priors against finite
//! differences and against their own draws.

use crate::common::{Case, Tolerance, assert_close, flat, golden, matrix, with_layout};
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
use fedstein::array::{Array, Values};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::metrics::{Evaluation, ParticleLogProbs};
use fedstein::models::{
    Activation, Architecture, Batch, BlrConfig, BnnConfig, Forward, Head, LayerSpec, Layout, MixtureConfig,
    MixturePrior, Model, Network, Prior, PriorTerm, Probit, ReplicatedConfig, StackConfig, WeightPrecision,
};
use fedstein::protocol::Message;
use ndarray::{Array1, Array2, Axis};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// The subject of a golden case.
#[derive(Clone, Copy)]
enum Kind {
    BlrScore,
    BlrPrediction,
    Regression,
    Classification,
    ParameterCounts,
    Payload,
}

/// Every case by its full name: a case that is not listed fails, and so does a name without a case.
const CASES: [(&str, Kind); 17] = [
    ("BLR, 4 samples, d=2, Gamma(1, rate 100)", Kind::BlrScore),
    ("BLR, Gamma(1, rate 0.01)", Kind::BlrScore),
    ("BLR, Gamma(2.5, rate 3), minibatch scale 12.5", Kind::BlrScore),
    ("BLR, one sample, weights 0", Kind::BlrScore),
    ("BLR, extreme logits: stable log-sigmoid", Kind::BlrScore),
    ("BLR, very small and large precision", Kind::BlrScore),
    ("BLR, 7 samples, d=4, temperature 0.5 (scale 2)", Kind::BlrScore),
    ("BLR prediction: particle average and probit form", Kind::BlrPrediction),
    ("BLR prediction, labels in {0,1} convention reversed sign check", Kind::BlrPrediction),
    ("BNN regression 2-3-1, two particles, 5 samples, lambda = e", Kind::Regression),
    ("BNN regression 2-3-1, minibatch scale 20, weight precision 0.5, Gamma(2, rate 0.5)", Kind::Regression),
    ("BNN regression 1-2-1, all hidden units off: only b2, w2 prior and log_gamma move", Kind::Regression),
    ("BNN classification 2-4-3, three particles, 6 samples, lambda = e", Kind::Classification),
    ("BNN classification 2-4-3, scale 100", Kind::Classification),
    ("BNN classification, logits of several hundred: log-softmax stays finite", Kind::Classification),
    ("parameter counts", Kind::ParameterCounts),
    ("payload one way, 10 particles of the 784-100-10 network in f32", Kind::Payload),
];

/// Networks of the golden file that fedstein does not build yet.
const COUNTED_LATER: [&str; 1] = [
    // Ten real outputs under one noise precision: the likelihood `gaussian-onehot`.
    "mlp 784-100-10 with log gamma",
];

/// The blocks of particles given as flat rows.
fn blocks(rows: &Array2<f64>, model: &dyn Model, on: &Session) -> Vec<Tensor<2>> {
    with_layout(rows, model.layout(), on).blocks().to_vec()
}

/// The flat rows of these blocks, on the host.
fn rows(blocks: Vec<Tensor<2>>) -> Vec<f64> {
    Tensor::cat(blocks, 1).try_into_vec_as::<f64>().unwrap()
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.try_into_vec_as::<f64>().unwrap()
}

fn one_hot(labels: &[usize], classes: usize) -> Array2<f64> {
    Array2::from_shape_fn((labels.len(), classes), |(row, class)| f64::from(u8::from(labels[row] == class)))
}

fn batch(inputs: &Array2<f64>, targets: &Array2<f64>, on: &Session) -> Batch {
    Batch::new(on.matrix(inputs), on.matrix(targets))
}

/// Some of a prior's terms.
fn only(prior: &Prior, keep: impl Fn(&PriorTerm) -> bool) -> Prior {
    Prior { terms: prior.terms.iter().filter(|term| keep(term)).cloned().collect() }
}

// ---------------------------------------------------------------------------------------------- golden cases

/// Classes of labels in {−1, +1}.
fn classes_of_signs(case: &Case) -> Vec<usize> {
    flat(case.input("y")).iter().map(|y| usize::from(*y > 0.0)).collect()
}

fn check_blr_score<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let x = matrix(case.input("X"));
    let mut config = BlrConfig::new(x.ncols());
    config.gamma_shape = case.input("gamma_prior")["shape"].as_f64().unwrap();
    config.gamma_rate = case.input("gamma_prior")["rate"].as_f64().unwrap();
    let model = Network::new(config.check().unwrap());
    let theta = blocks(&matrix(case.input("particles")), &model, &session);
    let batch = batch(&x, &one_hot(&classes_of_signs(case), 2), &session);
    let scale = case.number("likelihood_scale");

    let tolerance = case.tolerance(precision);
    let check = |got: &[f64], part: &str| {
        let want = flat(case.expected(part));
        assert_close(got, &want, tolerance, &format!("{} ({}): {part}", case.name(), B::NAME));
    };
    let log_lik = model.log_likelihood(&theta, &batch);
    let log_prior = model.prior().log_density(&theta);
    check(&host(log_lik.clone()), "log_lik");
    check(&host(log_prior.clone()), "log_prior");
    check(&host(log_lik.mul_scalar(scale) + log_prior), "log_joint");
    let score = model.likelihood_score(&theta, &batch, scale);
    check(&rows(score.clone()), "score_lik");
    check(&rows(model.prior().add_score(&theta, score, 1.0)), "score");
}

fn check_blr_prediction<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let x = matrix(case.input("X"));
    let labels = classes_of_signs(case);
    let tolerance = case.tolerance(precision);
    let check = |got: &[f64], part: &str| {
        let want = flat(case.expected(part));
        assert_close(got, &want, tolerance, &format!("{} ({}): {part}", case.name(), B::NAME));
    };
    let predict = |probit: Option<Probit>| {
        let model = Network::new(BlrConfig { probit, ..BlrConfig::new(x.ncols()) });
        let theta = blocks(&matrix(case.input("particles")), &model, &session);
        let particles = theta[0].dims()[0];
        let log_probs = host(model.predict(&theta, session.matrix(&x)));
        ParticleLogProbs::new(particles, labels.len(), 2, log_probs).unwrap()
    };
    let positive = |p: &ParticleLogProbs| p.ensemble().into_iter().skip(1).step_by(2).collect::<Vec<_>>();

    let plain = predict(None);
    check(&positive(&plain), "p_positive");
    check(&positive(&predict(Some(Probit { lambda: case.number("lambda") }))), "p_positive_probit");
    let evaluation = Evaluation::classification(&plain, &labels, 15).unwrap();
    check(&[evaluation.accuracy.unwrap()], "accuracy");
    check(&[evaluation.accuracy_mean_particle.unwrap()], "mean_particle_accuracy");
    check(&[evaluation.log_likelihood.unwrap()], "log_lik");
}

/// One flat row from golden parameters by name: weights turned from [in][out] to our [out, in].
fn network_row(parameters: &Value) -> Vec<f64> {
    let transposed = |value: &Value| matrix(value).t().iter().copied().collect::<Vec<_>>();
    let mut row = transposed(&parameters["W1"]);
    row.extend(flat(&parameters["b1"]));
    // One output: w2 is a list already.
    match parameters.get("W2") {
        Some(w2) => row.extend(transposed(w2)),
        None => row.extend(flat(&parameters["w2"])),
    }
    row.extend(flat(&parameters["b2"]));
    row.extend(parameters.get("log_gamma").map(flat).unwrap_or_default());
    row
}

fn network_rows(particles: &Value, of: impl Fn(&Value) -> &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = particles.as_array().unwrap().iter().map(|p| network_row(of(p))).collect();
    Array2::from_shape_fn((rows.len(), rows[0].len()), |(n, j)| rows[n][j])
}

/// Every particle's value under one name.
fn of_particles(case: &Case, key: &str) -> Vec<f64> {
    let particles = case.expected("particles").as_array().unwrap();
    particles.iter().flat_map(|particle| flat(&particle[key])).collect()
}

/// The checks that regression and classification have in common: likelihood, priors, joint, score.
fn check_network<B: Backend>(
    case: &Case,
    precision: Precision,
    head: Head,
    targets: &Array2<f64>,
) -> (Network<BnnConfig>, Vec<Tensor<2>>, Session) {
    let session = Session::open::<B>(precision).unwrap();
    let x = matrix(case.input("X"));
    let hidden = flat(&case.input("particles")[0]["b1"]).len();
    let mut config = BnnConfig::classifier(x.ncols(), &[hidden], 2);
    config.head = head;
    config.weight_precision = WeightPrecision::Fixed(case.number("weight_precision"));
    let model = Network::new(config.check().unwrap());
    let theta = blocks(&network_rows(case.input("particles"), |p| p), &model, &session);
    let batch = batch(&x, targets, &session);
    let scale = case.number("likelihood_scale");

    let tolerance = case.tolerance(precision);
    let check = |got: &[f64], part: &str| {
        let want = of_particles(case, part);
        assert_close(got, &want, tolerance, &format!("{} ({}): {part}", case.name(), B::NAME));
    };
    let log_lik = model.log_likelihood(&theta, &batch);
    check(&host(log_lik.clone()), "log_lik");
    let weights = only(model.prior(), |term| matches!(term, PriorTerm::Normal { .. }));
    check(&host(weights.log_density(&theta)), "log_prior_weights");
    if matches!(head, Head::Real { .. }) {
        let gamma = only(model.prior(), |term| matches!(term, PriorTerm::LogGamma { .. }));
        check(&host(gamma.log_density(&theta)), "log_prior_gamma");
    }
    check(&host(log_lik.mul_scalar(scale) + model.prior().log_density(&theta)), "log_joint");

    let score = model.likelihood_score(&theta, &batch, scale);
    let score = rows(model.prior().add_score(&theta, score, 1.0));
    let want = network_rows(case.expected("particles"), |p| &p["grad"]);
    let want: Vec<f64> = want.iter().copied().collect();
    assert_close(&score, &want, tolerance, &format!("{} ({}): score", case.name(), B::NAME));
    (model, theta, session)
}

fn check_regression<B: Backend>(case: &Case, precision: Precision) {
    let gamma = case.input("gamma_prior");
    let head =
        Head::Real { gamma_shape: gamma["shape"].as_f64().unwrap(), gamma_rate: gamma["rate"].as_f64().unwrap() };
    let y = Array1::from(flat(case.input("y"))).insert_axis(Axis(1));
    let (model, theta, session) = check_network::<B>(case, precision, head, &y);

    let outputs = host(model.predict(&theta, session.matrix(&matrix(case.input("X"))))); // [N, B, 2]
    let means: Vec<f64> = outputs.iter().step_by(2).copied().collect();
    let tolerance = case.tolerance(precision);
    assert_close(&means, &of_particles(case, "f"), tolerance, &format!("{}: f", case.name()));
    let log_gamma = case.input("particles").as_array().unwrap().iter().map(|p| p["log_gamma"].as_f64().unwrap());
    let want: Vec<f64> = log_gamma.flat_map(|value| vec![value; y.nrows()]).collect();
    let got: Vec<f64> = outputs.iter().skip(1).step_by(2).copied().collect();
    assert_close(&got, &want, tolerance, &format!("{}: log γ", case.name()));
}

fn check_classification<B: Backend>(case: &Case, precision: Precision) {
    let labels: Vec<usize> = flat(case.input("labels")).iter().map(|label| *label as usize).collect();
    let classes = flat(&case.input("particles")[0]["b2"]).len();
    let targets = one_hot(&labels, classes);
    let (model, theta, session) = check_network::<B>(case, precision, Head::Classes(classes), &targets);

    let log_probs = host(model.predict(&theta, session.matrix(&matrix(case.input("X")))));
    assert!(log_probs.iter().all(|p| p.is_finite()), "{}: {log_probs:?}", case.name());
    if case.expected("ensemble").is_null() {
        return; // the case of extreme logits
    }
    let tolerance = case.tolerance(precision);
    let label = |part: &str| format!("{} ({}): {part}", case.name(), B::NAME);
    let probs: Vec<f64> = log_probs.iter().map(|p| p.exp()).collect();
    assert_close(&probs, &of_particles(case, "probs"), tolerance, &label("probs"));
    let ensemble = case.expected("ensemble");
    let log_probs = ParticleLogProbs::new(theta[0].dims()[0], labels.len(), classes, log_probs).unwrap();
    assert_close(&log_probs.ensemble(), &flat(&ensemble["probs"]), tolerance, &label("ensemble probs"));
    let evaluation = Evaluation::classification(&log_probs, &labels, 15).unwrap();
    for (got, key) in [
        (evaluation.accuracy, "accuracy"),
        (evaluation.nll, "nll"),
        (evaluation.accuracy_mean_particle, "mean_particle_accuracy"),
        (evaluation.nll_mean_particle, "mean_particle_nll"),
    ] {
        assert_close(&[got.unwrap()], &flat(&ensemble[key]), tolerance, &label(key));
    }
    // One public code prints the mean over particles and rows of ln max_c p as the log-likelihood.
    let top = |(n, row): (usize, usize)| log_probs.row(n, row).iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let pairs: Vec<_> = (0..log_probs.particles()).flat_map(|n| (0..labels.len()).map(move |row| (n, row))).collect();
    let count = pairs.len() as f64;
    let mean = pairs.into_iter().map(top).sum::<f64>() / count;
    assert_close(&[mean], &flat(&ensemble["mean_log_max_prob"]), tolerance, &label("mean_log_max_prob"));
}

fn regression_network(features: usize, hidden: usize) -> BnnConfig {
    let head = Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 };
    BnnConfig { head, ..BnnConfig::classifier(features, &[hidden], 2) }
}

const LENET: &str = "conv 16 5x5, max-pool 2, conv 32 5x5, max-pool 2, dense 120, dense 84";
const CNN: &str = "conv 32 3x3, conv 64 3x3, conv 128 3x3, conv 256 3x3, conv 100 3x3, global-avg-pool";

/// Dimension of a stack on images 3×32×32.
fn convolutional(layers: &str, classes: usize) -> usize {
    let layers = LayerSpec::read(&layers.split(", ").collect::<Vec<_>>()).unwrap();
    Network::new(StackConfig::classifier(&[3, 32, 32], layers, classes).check().unwrap()).layout().dim()
}

fn check_parameter_counts(case: &Case) {
    for (name, want) in case.expected("d").as_object().unwrap() {
        let d = match name.as_str() {
            "mlp 784-100-10" => Network::new(BnnConfig::classifier(784, &[100], 10)).layout().dim(),
            "mlp 8-50-1 with log gamma" => Network::new(regression_network(8, 50)).layout().dim(),
            "mlp 90-100-1 with log gamma" => Network::new(regression_network(90, 100)).layout().dim(),
            "blr covertype 54 features" => Network::new(BlrConfig::new(54)).layout().dim(),
            "lenet 3x32x32: conv 16 k5, pool 2, conv 32 k5, pool 2, 120, 84, 10" => convolutional(LENET, 10),
            "cnn conv 32 64 128 256 100 k3, global pool, linear 100-100" => convolutional(CNN, 100),
            later if COUNTED_LATER.contains(&later) => continue,
            other => panic!("parameter counts: unknown network {other}"),
        };
        assert_eq!(d as u64, want.as_u64().unwrap(), "{name}");
    }
}

fn check_payload(case: &Case) {
    let session = Session::open::<Flex>(Precision::F32).unwrap();
    let model = Network::new(BnnConfig::classifier(784, &[100], 10));
    let (n, d) = (case.number("N") as usize, case.number("d") as usize);
    assert_eq!(model.layout().dim(), d);
    let particles = with_layout(&Array2::zeros((n, d)), model.layout(), &session);
    let bytes = Message::default().with_array("particles", particles.to_array().unwrap()).bytes();
    assert_eq!(bytes, case.expected("bytes").as_u64().unwrap());
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    assert_close(&[mebibytes], &flat(case.expected("MiB")), case.tolerance(Precision::F64), case.name());
    // A payload is the sum of its arrays' bytes, which depend on the element type.
    let scalars = Message::default().with_array("x", Array { shape: vec![3], values: Values::F64(vec![0.0; 3]) });
    assert_eq!(scalars.bytes(), 24);
}

fn check_models<B: Backend>(precision: Precision) {
    let cases = golden("blr_bnn_scores");
    let names: Vec<&str> = cases.iter().map(Case::name).collect();
    for (name, _) in CASES {
        assert!(names.contains(&name), "the golden file has no case {name:?}");
    }
    for case in &cases {
        let known = CASES.iter().find(|(name, _)| *name == case.name());
        let (_, kind) = known.unwrap_or_else(|| panic!("unknown golden case {:?}", case.name()));
        match kind {
            Kind::BlrScore => check_blr_score::<B>(case, precision),
            Kind::BlrPrediction => check_blr_prediction::<B>(case, precision),
            Kind::Regression => check_regression::<B>(case, precision),
            Kind::Classification => check_classification::<B>(case, precision),
            Kind::ParameterCounts => check_parameter_counts(case),
            Kind::Payload => check_payload(case),
        }
    }
}

#[test]
fn model_cases_on_flex_in_f64() {
    check_models::<Flex>(Precision::F64);
}

#[test]
fn model_cases_on_flex_in_f32() {
    check_models::<Flex>(Precision::F32);
}

#[cfg(feature = "ndarray")]
#[test]
fn model_cases_on_ndarray_in_f64() {
    check_models::<NdArray>(Precision::F64);
}

// ----------------------------------------------------------------------------------- autodiff against closed forms

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

fn normal(shape: (usize, usize), sd: f64, rng: &mut ChaCha12Rng) -> Array2<f64> {
    Array2::from_shape_fn(shape, |_| {
        let z: f64 = StandardNormal.sample(rng);
        sd * z
    })
}

/// ∇_w = s Σ (t − σ(w·x)) x − ξ w; ∂_{log ξ} = p/2 − ξ‖w‖²/2 + a − b ξ.
fn blr_closed_form(theta: &Array2<f64>, x: &Array2<f64>, t: &[usize], scale: f64, (a, b): (f64, f64)) -> Vec<f64> {
    let p = x.ncols();
    let mut score = Vec::with_capacity(theta.len());
    for row in theta.rows() {
        let w = row.slice(ndarray::s![..p]);
        let xi = row[p].exp();
        let residuals: Array1<f64> =
            x.dot(&w).iter().zip(t).map(|(z, t)| *t as f64 - 1.0 / (1.0 + (-z).exp())).collect();
        let on_w = residuals.dot(x) * scale - &w * xi;
        score.extend(on_w);
        score.push(0.5 * p as f64 - 0.5 * xi * w.dot(&w) + a - b * xi);
    }
    score
}

fn check_blr_against_its_closed_form(precision: Precision, tolerance: Tolerance) {
    let session = Session::open::<Flex>(precision).unwrap();
    let mut rng = rng(11);
    let (n, p, rows_in_batch) = (6, 54, 100);
    let model = Network::new(BlrConfig::new(p));
    let theta = normal((n, p + 1), 0.5, &mut rng);
    let x = normal((rows_in_batch, p), 1.0, &mut rng);
    let labels: Vec<usize> = (0..rows_in_batch).map(|_| rng.random_range(0..2)).collect();
    let blocks = blocks(&theta, &model, &session);
    let batch = batch(&x, &one_hot(&labels, 2), &session);
    let score = model.likelihood_score(&blocks, &batch, 40.0);
    let got = rows(model.prior().add_score(&blocks, score, 1.0));
    // Rounding errors are relative to the largest coordinate, not to each one.
    let want = blr_closed_form(&theta, &x, &labels, 40.0, (1.0, 100.0));
    let largest = want.iter().fold(0.0f64, |top, value| top.max(value.abs()));
    assert_close(&got, &want, Tolerance { atol: tolerance.rtol * largest, ..tolerance }, "BLR score");
}

#[test]
fn the_score_of_logistic_regression_by_autodiff_is_its_closed_form() {
    check_blr_against_its_closed_form(Precision::F64, Tolerance { rtol: 1e-10, atol: 0.0 });
    check_blr_against_its_closed_form(Precision::F32, Tolerance { rtol: 1e-5, atol: 0.0 });
}

#[test]
fn a_bias_is_a_column_of_ones() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let mut rng = rng(12);
    let x = normal((9, 3), 1.0, &mut rng);
    let ones = ndarray::concatenate![Axis(1), x, Array2::ones((9, 1))];
    let labels: Vec<usize> = (0..9).map(|row| row % 2).collect();
    let theta = normal((4, 5), 1.0, &mut rng);
    let with_bias = Network::new(BlrConfig { bias: true, ..BlrConfig::new(3) });
    let plain = Network::new(BlrConfig::new(4));
    let score = |model: &dyn Model, x: &Array2<f64>| {
        let batch = batch(x, &one_hot(&labels, 2), &session);
        rows(model.likelihood_score(&blocks(&theta, model, &session), &batch, 1.0))
    };
    let (got, want) = (score(&with_bias, &x), score(&plain, &ones));
    assert_close(&got, &want, Tolerance { rtol: 1e-13, atol: 1e-13 }, "score with bias");
}

/// A network with this activation, and the score of two of its particles on five rows.
fn score_with<B: Backend>(activation: Activation) -> (impl Fn(usize, f64) -> Vec<f64>, Vec<f64>, usize) {
    let session = Session::open::<B>(Precision::F64).unwrap();
    let model = Network::new(BnnConfig { activation, ..BnnConfig::classifier(2, &[4], 3) });
    let mut rng = rng(19);
    let theta = normal((2, model.layout().dim()), 1.0, &mut rng);
    let batch = batch(&normal((5, 2), 1.0, &mut rng), &one_hot(&[0, 2, 1, 1, 0], 3), &session);
    let score = rows(model.likelihood_score(&blocks(&theta, &model, &session), &batch, 1.0));
    let d = theta.ncols();
    let moved = move |j: usize, by: f64| {
        let mut theta = theta.clone();
        theta.column_mut(j).mapv_inplace(|value| value + by);
        host(model.log_likelihood(&blocks(&theta, &model, &session), &batch))
    };
    (moved, score, d)
}

#[test]
fn the_score_of_a_network_is_the_slope_of_its_log_likelihood_for_every_activation() {
    for activation in [Activation::Relu, Activation::Tanh, Activation::Sigmoid, Activation::Gelu, Activation::Silu] {
        let (log_likelihood, score, d) = score_with::<Flex>(activation);
        let h = 1e-5;
        for j in 0..d {
            for (n, (up, down)) in log_likelihood(j, h).into_iter().zip(log_likelihood(j, -h)).enumerate() {
                let (got, want) = (score[n * d + j], (up - down) / (2.0 * h));
                // Central differences of values of order 1: h² and ε/h, both about 1e-10.
                assert!((got - want).abs() < 1e-7, "{activation:?}, [{n}, {j}]: {got}, not {want}");
            }
        }
        // Burn's sigmoid on the other backends computes in f32, so its values are too coarse for differences.
        #[cfg(feature = "ndarray")]
        {
            let (_, other, _) = score_with::<NdArray>(activation);
            assert_close(&other, &score, Tolerance { rtol: 1e-6, atol: 1e-6 }, &format!("{activation:?} on ndarray"));
        }
    }
}

// ------------------------------------------------------------------------------- the particle axis against a loop

/// An ordinary network, as a user of Burn writes it.
#[derive(Module, Debug)]
struct Mlp {
    layers: Vec<Linear>,
}

impl Mlp {
    fn new(widths: &[usize], device: &Device) -> Self {
        let layers = widths.windows(2).map(|pair| LinearConfig::new(pair[0], pair[1]).init(device)).collect();
        Self { layers }
    }
}

impl Forward for Mlp {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let (first, rest) = self.layers.split_first().unwrap();
        rest.iter().fold(first.forward(inputs), |hidden, layer| layer.forward(activation::relu(hidden)))
    }
}

/// A flat row with weights `[out, in]` in the layout of Burn's `Linear`, with weights `[in, out]`; biases stay in
/// place.
fn transpose_weights(row: &[f64], ours: &Layout) -> Vec<f64> {
    let mut out = Vec::with_capacity(row.len());
    for block in ours.blocks() {
        let values = &row[block.offset..block.offset + block.size()];
        let matrix = Array2::from_shape_vec((block.shape[0], block.shape[1]), values.to_vec()).unwrap();
        out.extend(matrix.t().iter());
    }
    out
}

#[test]
fn particles_in_one_pass_and_one_by_one_have_the_same_scores() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let widths = [7, 5, 6, 4];
    let ours = Network::new(BnnConfig::classifier(7, &[5, 6], 4));
    let looped = Network::new(ReplicatedConfig::new(4, move |device| Mlp::new(&widths, device)));
    assert_eq!(ours.layout().dim(), looped.layout().dim());

    let mut rng = rng(13);
    let theta = normal((3, ours.layout().dim()), 0.7, &mut rng);
    let transposed: Vec<f64> =
        theta.rows().into_iter().flat_map(|row| transpose_weights(row.as_slice().unwrap(), ours.layout())).collect();
    let transposed = Array2::from_shape_vec(theta.raw_dim(), transposed).unwrap();
    let x = normal((11, 7), 1.0, &mut rng);
    let labels: Vec<usize> = (0..11).map(|row| (row * 3) % 4).collect();
    let batch = batch(&x, &one_hot(&labels, 4), &session);
    let (a, b) = (blocks(&theta, &ours, &session), blocks(&transposed, &looped, &session));

    // Both sides are f64 sums of a dozen terms.
    let tight = Tolerance { rtol: 1e-12, atol: 1e-12 };
    let likelihood = |model: &dyn Model, theta: &[Tensor<2>]| host(model.log_likelihood(theta, &batch));
    assert_close(&likelihood(&ours, &a), &likelihood(&looped, &b), tight, "log-likelihood");
    let predictions = |model: &dyn Model, theta: &[Tensor<2>]| host(model.predict(theta, batch.inputs.clone()));
    assert_close(&predictions(&ours, &a), &predictions(&looped, &b), tight, "predictions");
    let score = |model: &dyn Model, theta: &[Tensor<2>]| {
        let score = model.likelihood_score(theta, &batch, 5.0);
        rows(model.prior().add_score(theta, score, 1.0))
    };
    let got = score(&ours, &a);
    let d = ours.layout().dim();
    let got: Vec<f64> = got.chunks_exact(d).flat_map(|row| transpose_weights(row, ours.layout())).collect();
    assert_close(&got, &score(&looped, &b), tight, "scores");
}

/// A layer after a normalisation.
#[derive(Module, Debug)]
struct Normalised {
    norm: LayerNorm,
    out: Linear,
}

impl Forward for Normalised {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        self.out.forward(self.norm.forward(inputs))
    }
}

#[test]
fn a_normalisation_layer_starts_open() {
    let build = |device: &Device| Normalised {
        norm: LayerNormConfig::new(3).init(device),
        out: LinearConfig::new(3, 2).init(device),
    };
    let model = Network::new(ReplicatedConfig::new(2, build));
    let theta = model.initial(&mut rng(20));
    let block = |name: &str| {
        let block = &model.layout().blocks()[model.layout().position(name).unwrap()];
        &theta[block.offset..block.offset + block.size()]
    };
    assert_eq!(block("norm.gamma"), [1.0; 3]);
    assert_eq!(block("norm.beta"), [0.0; 3]);
    assert_eq!(block("out.bias"), [0.0; 2]);
}

#[test]
fn an_ordinary_module_starts_at_the_scale_of_its_fan_in_with_biases_at_zero() {
    let widths = [300, 40, 4];
    let model = Network::new(ReplicatedConfig::new(4, move |device| Mlp::new(&widths, device)));
    let theta = model.initial(&mut rng(14));
    let names: Vec<&str> = model.layout().blocks().iter().map(|block| block.name.as_str()).collect();
    assert_eq!(names, ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]);
    for block in model.layout().blocks() {
        let values = &theta[block.offset..block.offset + block.size()];
        if block.shape.len() == 1 {
            assert!(values.iter().all(|value| *value == 0.0), "{}", block.name);
            continue;
        }
        let second_moment = values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64;
        let want = 1.0 / (block.shape[0] as f64 + 1.0);
        // Standard error of a second moment of n normal draws: √(2/n); five of them.
        let bound = 5.0 * (2.0 / values.len() as f64).sqrt();
        assert!((second_moment / want - 1.0).abs() < bound, "{}: {second_moment} for {want}", block.name);
    }
}

// --------------------------------------------------------------------------------------------------------- priors

/// A layout, a prior over it and a name: one for every kind of term.
fn priors() -> Vec<(&'static str, Layout, Prior)> {
    let toy = |prior| MixtureConfig::new(14, 2, prior).unwrap();
    let of = |architecture: &dyn Fn(&Layout) -> Prior, layout: Layout| {
        let prior = architecture(&layout);
        (layout, prior)
    };
    let blr = BlrConfig { gamma_shape: 2.5, gamma_rate: 3.0, ..BlrConfig::new(4) };
    let bnn = regression_network(3, 2);
    let weight_precision = WeightPrecision::Learned { shape: 2.0, rate: 0.7 };
    let learned = BnnConfig { weight_precision, ..regression_network(3, 2) };
    let (gaussian, uniform) = (toy(MixturePrior::Gaussian), toy(MixturePrior::Uniform));
    let cases = [
        ("hierarchical normal", of(&|layout| blr.prior(layout), blr.layout())),
        ("normal and log gamma", of(&|layout| bnn.prior(layout), bnn.layout())),
        ("learned precision of a network", of(&|layout| learned.prior(layout), learned.layout())),
        ("gaussian", of(&|layout| gaussian.prior(layout), gaussian.layout())),
        ("uniform", of(&|layout| uniform.prior(layout), uniform.layout())),
    ];
    cases.into_iter().map(|(name, (layout, prior))| (name, layout, prior)).collect()
}

#[test]
fn the_prior_cases_hold_every_kind_of_term() {
    let mut seen = [false; 5];
    for (_, _, prior) in priors() {
        for term in prior.terms {
            // A new kind of term does not compile here until the cases above have one.
            let kind = match term {
                PriorTerm::Normal { .. } => 0,
                PriorTerm::HierarchicalNormal { .. } => 1,
                PriorTerm::LogGamma { .. } => 2,
                PriorTerm::Gaussian { .. } => 3,
                PriorTerm::Uniform { .. } => 4,
            };
            seen[kind] = true;
        }
    }
    assert!(seen.iter().all(|kind| *kind), "{seen:?}");
}

#[test]
fn the_score_of_a_prior_is_the_slope_of_its_log_density() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let mut rng = rng(15);
    for (name, layout, prior) in priors() {
        let layout = std::sync::Arc::new(layout);
        let theta = normal((3, layout.dim()), 0.8, &mut rng);
        let at = |theta: &Array2<f64>| with_layout(theta, &layout, &session).blocks().to_vec();
        let zeros: Vec<_> = at(&theta).iter().map(Tensor::zeros_like).collect();
        let score = rows(prior.add_score(&at(&theta), zeros.clone(), 1.0));

        // Central differences: error h² f''' + ε f/h, both below 1e-8 of values of order 10 here.
        let h = 1e-5;
        let mut slope = Array2::zeros(theta.raw_dim());
        for j in 0..layout.dim() {
            let moved = |by: f64| {
                let mut theta = theta.clone();
                theta.column_mut(j).mapv_inplace(|value| value + by);
                host(prior.log_density(&at(&theta)))
            };
            for (n, (up, down)) in moved(h).into_iter().zip(moved(-h)).enumerate() {
                slope[[n, j]] = (up - down) / (2.0 * h);
            }
        }
        let slope: Vec<f64> = slope.iter().copied().collect();
        assert_close(&score, &slope, Tolerance { rtol: 1e-6, atol: 1e-7 }, name);

        let half = rows(prior.add_score(&at(&theta), zeros, 0.5));
        let want: Vec<f64> = score.iter().map(|value| 0.5 * value).collect();
        assert_close(&half, &want, Tolerance { rtol: 1e-14, atol: 1e-14 }, &format!("{name}, half of it"));
    }
}

#[test]
fn a_uniform_prior_has_no_mass_outside_its_box() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let model = Network::new(MixtureConfig::new(6, 2, MixturePrior::Uniform).unwrap());
    let theta = Array2::from_shape_vec((3, 1), vec![5.9, 6.1, -6.1]).unwrap();
    let density = host(model.prior().log_density(&blocks(&theta, &model, &session)));
    assert_eq!(density[0], -(12f64.ln()));
    assert_eq!(density[1..], [f64::NEG_INFINITY; 2]);
}

/// Mean and variance of numbers.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

#[test]
fn the_precision_of_logistic_regression_has_mean_shape_over_rate() {
    // "Gamma(1, 0.01)" means E ξ = 0.01 (rate 100) here, never 100 (rate 0.01) by accident.
    const DRAWS: usize = 40_000;
    for (shape, rate, mean) in [(1.0, 100.0, 0.01), (1.0, 0.01, 100.0), (2.5, 3.0, 2.5 / 3.0)] {
        let model = Network::new(BlrConfig { gamma_shape: shape, gamma_rate: rate, ..BlrConfig::new(2) });
        let mut rng = rng(16);
        let (mut precisions, mut weights) = (Vec::new(), Vec::new());
        for _ in 0..DRAWS {
            let theta = model.initial(&mut rng);
            let xi = theta[2].exp();
            precisions.push(xi);
            weights.extend(theta[..2].iter().map(|w| w * xi.sqrt()));
        }
        let (got, variance) = moments(&precisions);
        // The standard error of the mean is √(a/n)/b; five of them. The variance a/b² of a Gamma has a long tail: 10 %.
        assert!((got - mean).abs() < 5.0 * (shape / DRAWS as f64).sqrt() / rate, "E ξ = {got}, not {mean}");
        assert!((variance * rate * rate / shape - 1.0).abs() < 0.1, "var ξ = {variance}");
        // w | ξ ~ N(0, 1/ξ), so w √ξ ~ N(0, 1): standard errors 1/√n and √(2/n).
        let (centre, spread) = moments(&weights);
        assert!(centre.abs() < 0.02 && (spread - 1.0).abs() < 0.03, "w √ξ: mean {centre}, variance {spread}");
    }
    assert_eq!(BlrConfig::new(2).gamma_rate, 100.0);
}

/// Coordinate, mean, variance.
type Moments = (usize, f64, f64);

#[test]
fn draws_of_every_prior_have_its_moments() {
    const DRAWS: usize = 40_000;
    let expected: [(&str, &[Moments]); 3] = [
        // Weights of a network, precision e; the last coordinate is log γ and is checked as γ below.
        ("normal and log gamma", &[(0, 0.0, (-1f64).exp()), (5, 0.0, (-1f64).exp())]),
        ("gaussian", &[(0, 0.0, 4.0), (1, 0.0, 4.0)]),
        ("uniform", &[(0, 0.0, 12.0), (1, 0.0, 12.0)]),
    ];
    for (name, layout, prior) in priors() {
        let mut rng = rng(17);
        let draws: Vec<Vec<f64>> = (0..DRAWS).map(|_| prior.sample(&layout, &mut rng)).collect();
        let column = |j: usize| draws.iter().map(|theta| theta[j]).collect::<Vec<_>>();
        for (_, coordinates) in expected.iter().filter(|(of, _)| *of == name) {
            for (j, mean, variance) in *coordinates {
                let (got_mean, got_variance) = moments(&column(*j));
                // Five standard errors: of the mean √(v/n), of the variance at most v √(2/n).
                assert!((got_mean - mean).abs() < 5.0 * (variance / DRAWS as f64).sqrt(), "{name} {j}: {got_mean}");
                let bound = 5.0 * (2.0 / DRAWS as f64).sqrt();
                assert!((got_variance / variance - 1.0).abs() < bound, "{name} {j}: variance {got_variance}");
            }
        }
        match name {
            "gaussian" => {
                let products: Vec<f64> = draws.iter().map(|theta| theta[0] * theta[1]).collect();
                // Covariance 2; var(xy) = 4·4 + 2² = 20, so five standard errors are 0.11.
                assert!((moments(&products).0 - 2.0).abs() < 0.12, "{name}: covariance {}", moments(&products).0);
            }
            "normal and log gamma" => {
                // γ ~ Gamma(1, rate 0.1): mean 10, standard error 10/√n = 0.05.
                let gamma: Vec<f64> = column(layout.dim() - 1).iter().map(|log| log.exp()).collect();
                assert!((moments(&gamma).0 - 10.0).abs() < 0.25, "E γ = {}", moments(&gamma).0);
            }
            _ => {}
        }
    }
}
