//! Golden cases of the models: log-likelihoods, log priors with every constant, scores and predictions of logistic
//! regression and of networks, as other programs computed them (`tests/golden/README.md`), in f64 and in f32.

use crate::common::{Case, assert_close, blocks, flat, golden, host, matrix, with_layout};
use burn::tensor::Tensor;
use fedstein::array::{Array, Values};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::metrics::{Evaluation, ParticleLogProbs};
use fedstein::models::{
    Batch, BlrConfig, BnnConfig, Head, LayerSpec, Model, Network, Prior, PriorTerm, Probit, StackConfig,
    WeightPrecision,
};
use fedstein::protocol::Message;
use ndarray::{Array1, Array2, Axis};
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

/// The flat rows of these blocks, on the host.
pub fn rows(blocks: Vec<Tensor<2>>) -> Vec<f64> {
    Tensor::cat(blocks, 1).try_into_vec_as::<f64>().unwrap()
}

pub fn one_hot(labels: &[usize], classes: usize) -> Array2<f64> {
    Array2::from_shape_fn((labels.len(), classes), |(row, class)| f64::from(u8::from(labels[row] == class)))
}

pub fn batch(inputs: &Array2<f64>, targets: &Array2<f64>, on: &Session) -> Batch {
    Batch::new(on.matrix(inputs), on.matrix(targets))
}

/// Some of a prior's terms.
fn only(prior: &Prior, keep: impl Fn(&PriorTerm) -> bool) -> Prior {
    Prior { terms: prior.terms.iter().filter(|term| keep(term)).cloned().collect() }
}

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

pub fn regression_network(features: usize, hidden: usize) -> BnnConfig {
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
