//! The Gaussian processes of pFedGP: their linear algebra, their posterior against integrals and against an independent
//! program, their gradients against differences, and the classifier.

use crate::common::{Tolerance, assert_close, flat, golden, matrix, normal};
use burn::tensor::Tensor;
use fedstein::algorithm::pfedgp::class_tree::{Fork, class_tree};
use fedstein::algorithm::pfedgp::classifier::{Classifier, GpConfig, UNSEEN, held, objective};
use fedstein::algorithm::pfedgp::embedding::Embedding;
use fedstein::algorithm::pfedgp::kernel::Rbf;
use fedstein::algorithm::pfedgp::polya_gamma::Posterior;
use fedstein::algorithm::pfedgp::stratified;
use fedstein::backend::{Flex, Precision, Session};
use fedstein::linalg::Cholesky;
use fedstein::models::{Activation, BlrConfig, BnnConfig, Model, Network};
use ndarray::{Array2, Axis, array, concatenate};
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

pub fn gp(output_scale: f64, length_scale: f64, inference_steps: usize) -> GpConfig {
    GpConfig { kernel: Rbf { output_scale, length_scale }, inference_steps }
}

pub fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |top, value| f64::max(top, value.abs()))
}

// --------------------------------------------------------------------------------------------------------- Cholesky

#[test]
fn the_factor_of_a_textbook_matrix_is_the_textbooks() {
    let matrix = array![[4.0, 12.0, -16.0], [12.0, 37.0, -43.0], [-16.0, -43.0, 98.0]];
    let factor = Cholesky::of(&matrix).unwrap();
    assert_eq!(factor.lower(), array![[2.0, 0.0, 0.0], [6.0, 1.0, 0.0], [-8.0, 5.0, 3.0]]);
    // |A| = (2·1·3)² = 36
    assert!((factor.log_determinant() - 36f64.ln()).abs() < 1e-14);
    // A·(1, 2, 3)ᵀ = (−20, −43, 192)
    let x = factor.solve(array![-20.0, -43.0, 192.0]);
    assert!(largest(&x - &array![1.0, 2.0, 3.0]) < 1e-12, "{x}");
}

#[test]
fn a_factor_solves_at_every_size_around_its_blocks() {
    for n in [1, 2, 31, 32, 33, 64, 131] {
        let x = normal((n, n + 3), &mut rng(n as u64));
        let matrix = x.dot(&x.t()) + Array2::<f64>::eye(n);
        let factor = Cholesky::of(&matrix).unwrap();
        let lower = factor.lower();
        let size = largest(matrix.iter().copied());
        assert!(largest(lower.dot(&lower.t()) - &matrix) < 1e-13 * size, "n = {n}: L·Lᵀ");
        assert!(lower.indexed_iter().all(|((i, j), value)| i >= j || *value == 0.0), "n = {n}: not triangular");
        let by_columns = Cholesky::of(&matrix.clone().reversed_axes()).unwrap();
        assert!(largest(by_columns.lower() - lower) < 1e-13 * size, "n = {n}: a matrix column by column");
        let b = normal((n, 5), &mut rng(7));
        assert!(largest(lower.dot(&factor.solve_lower(b.clone())) - &b) < 1e-10, "n = {n}: L⁻¹");
        assert!(largest(lower.t().dot(&factor.solve_upper(b.clone())) - &b) < 1e-10, "n = {n}: L⁻ᵀ");
        assert!(largest(matrix.dot(&factor.inverse()) - Array2::<f64>::eye(n)) < 1e-10, "n = {n}: A⁻¹");
        let diagonal = factor.inverse_diagonal();
        assert!(largest(factor.inverse().diag().to_owned() - &diagonal) < 1e-12, "n = {n}: diagonal of A⁻¹");
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_has_no_factor() {
    for bad in [array![[1.0, 2.0], [2.0, 1.0]], array![[1.0, 1.0], [1.0, 1.0]], array![[f64::NAN]], array![[-1.0]]] {
        assert!(Cholesky::of(&bad).is_none(), "{bad}");
    }
    let mut late = Array2::<f64>::eye(60);
    late[[55, 55]] = -1.0;
    assert!(Cholesky::of(&late).is_none());
}

// ---------------------------------------------------------------------------------------------------------- posterior

/// Points and weights of N(0, 1).
fn line() -> Vec<(f64, f64)> {
    let points: Vec<f64> = (0..=80).map(|i| -8.0 + 0.2 * f64::from(i)).collect();
    let mass: f64 = points.iter().map(|z| (-0.5 * z * z).exp()).sum();
    points.into_iter().map(|z| (z, (-0.5 * z * z).exp() / mass)).collect()
}

/// Normaliser, mean and variance of f under N(f; 0, K)·g(f) for two rows, by quadrature in two dimensions.
fn integrate(covariance: &Array2<f64>, g: impl Fn([f64; 2]) -> f64) -> (f64, [f64; 2], [f64; 2]) {
    let lower = Cholesky::of(covariance).unwrap().lower().clone();
    let (mut mass, mut first, mut second) = (0.0, [0.0; 2], [0.0; 2]);
    for (x, x_weight) in line() {
        for (y, y_weight) in line() {
            let f = [lower[[0, 0]] * x, lower[[1, 0]] * x + lower[[1, 1]] * y];
            let weight = x_weight * y_weight * g(f);
            mass += weight;
            for i in 0..2 {
                first[i] += weight * f[i];
                second[i] += weight * f[i] * f[i];
            }
        }
    }
    let mean = first.map(|value| value / mass);
    (mass, mean, [0, 1].map(|i| second[i] / mass - mean[i] * mean[i]))
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn two(scale: f64, correlation: f64) -> Array2<f64> {
    array![[scale, scale * correlation], [scale * correlation, scale]]
}

#[test]
fn the_posterior_of_two_rows_is_the_integral_under_its_own_bound() {
    for (scale, correlation, labels) in
        [(8.0, 0.6, [true, true]), (8.0, 0.6, [true, false]), (0.5, -0.3, [false, true])]
    {
        let covariance = two(scale, correlation);
        let posterior = Posterior::fit(&covariance, &labels, 300).unwrap();
        let (mean, variance) = (posterior.mean(), posterior.variance());
        let c: Vec<f64> = (0..2).map(|i| (mean[i] * mean[i] + variance[i]).sqrt()).collect();
        // Jaakkola & Jordan: σ(yf) ≥ σ(c) exp((yf − c)/2 − λ(c)(f² − c²)), λ(c) = tanh(c/2)/(4c)
        let bound = |f: f64, i: usize| {
            let sign = if labels[i] { 1.0 } else { -1.0 };
            let slope = (0.5 * c[i]).tanh() / (4.0 * c[i]);
            sigmoid(c[i]) * (0.5 * (sign * f - c[i]) - slope * (f * f - c[i] * c[i])).exp()
        };
        let (mass, want_mean, want_variance) = integrate(&covariance, |f| bound(f[0], 0) * bound(f[1], 1));
        for i in 0..2 {
            assert!((mean[i] - want_mean[i]).abs() < 1e-9, "m {mean}, not {want_mean:?}");
            assert!((variance[i] - want_variance[i]).abs() < 1e-9, "S {variance}, not {want_variance:?}");
        }
        assert!((posterior.bound() - mass.ln()).abs() < 1e-9, "L {}, not {}", posterior.bound(), mass.ln());
    }
}

#[test]
fn the_bound_lies_below_the_exact_evidence_and_near_it_where_the_prior_is_narrow() {
    // The gap falls as s²: about s²/50 where s ≤ 1.
    for (scale, slack) in [(8.0, 0.25), (1.0, 0.025), (0.01, 2.5e-6)] {
        for (correlation, labels) in [(0.6, [true, true]), (0.6, [true, false]), (-0.9, [false, false])] {
            let covariance = two(scale, correlation);
            let sign = |label| if label { 1.0 } else { -1.0 };
            let likelihood = |f: [f64; 2]| sigmoid(sign(labels[0]) * f[0]) * sigmoid(sign(labels[1]) * f[1]);
            let (mass, exact_mean, _) = integrate(&covariance, likelihood);
            let posterior = Posterior::fit(&covariance, &labels, 300).unwrap();
            let gap = mass.ln() - posterior.bound();
            assert!(gap > 0.0 && gap < slack, "s = {scale}, {labels:?}: {gap}");
            for (got, want) in posterior.mean().iter().zip(exact_mean) {
                // The mean field underestimates: by 12 % at s = 8.
                assert!((got - want).abs() <= 0.13 * want.abs() + 1e-9, "s = {scale}: mean {got}, exactly {want}");
            }
        }
    }
}

#[test]
fn predictions_agree_with_an_independent_program_and_nearly_with_the_integral() {
    // numpy, dense inverses, 200 updates; exactly: p(y, y*)/p(y) by quadrature in three dimensions.
    for (scale, correlation, labels, mean, p, exact) in [
        (8.0, 0.6, vec![true, true], 2.1005417, 0.6879830304209121, 0.704518305436351),
        (8.0, 0.6, vec![true, false], 0.99040173, 0.6005259897412342, 0.6064883196920088),
        (1.0, 0.6, vec![true, false], 0.18284185, 0.5288031595738633, 0.5289741187776407),
        (8.0, 0.0, vec![true], 1.69830273, 0.6560529865560215, 0.6695449780605507),
    ] {
        let covariance = if labels.len() == 1 { array![[scale]] } else { two(scale, correlation) };
        let posterior = Posterior::fit(&covariance, &labels, 200).unwrap();
        assert!((posterior.mean()[0] - mean).abs() < 1e-7, "{}", posterior.mean());
        let cross = Array2::from_shape_fn((1, labels.len()), |(_, j)| scale * [0.7, 0.4][j]);
        let (m, v) = posterior.predict(cross.view(), scale);
        let got: f64 = line().into_iter().map(|(z, weight)| weight * sigmoid(m[0] + v[0].sqrt() * z)).sum();
        assert!((got - p).abs() < 1e-10, "{got}, not {p}");
        assert!((got - exact).abs() < 0.02, "{got}, exactly {exact}");
    }
}

#[test]
fn no_update_lowers_the_bound() {
    for seed in 0..5 {
        let mut rng = rng(seed);
        let rows = normal((30, 3), &mut rng);
        let labels: Vec<bool> = (0..30).map(|_| rng.random()).collect();
        let covariance = Rbf { output_scale: 8.0, length_scale: 1.0 }.gram(&rows);
        let bounds: Vec<f64> =
            (0..40).map(|steps| Posterior::fit(&covariance, &labels, steps).unwrap().bound()).collect();
        assert!(bounds.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12), "{bounds:?}");
        assert!(bounds[1] > bounds[0] + 1e-3, "the first update must do something: {bounds:?}");
        assert!(bounds[39] - bounds[30] < 1e-4, "no end in sight: {bounds:?}");
    }
}

#[test]
fn repeated_rows_need_no_jitter() {
    // n observations at one point, half of them positive: K = s·11ᵀ has rank 1.
    let rows = Array2::from_elem((120, 4), 0.5);
    let labels: Vec<bool> = (0..120).map(|i| i % 2 == 0).collect();
    let covariance = Rbf { output_scale: 8.0, length_scale: 1.0 }.gram(&rows);
    let posterior = Posterior::fit(&covariance, &labels, 50).unwrap();
    assert!(posterior.bound().is_finite() && posterior.gradient().iter().all(|value| value.is_finite()));
    assert!(largest(posterior.mean().iter().copied()) < 1e-10, "{}", posterior.mean());
    // One f with the likelihood exp(−120 ω f²/2): 1/S = 1/s + 120 ω, ω = tanh(c/2)/(2c), c² = S.
    let variance = posterior.variance()[0];
    let c = variance.sqrt();
    let want = 1.0 / (1.0 / 8.0 + 120.0 * (0.5 * c).tanh() / (2.0 * c));
    assert!((variance / want - 1.0).abs() < 1e-9, "{variance}, not {want}");
}

#[test]
fn a_covariance_without_numbers_is_refused() {
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(Posterior::fit(&array![[bad, 0.0], [0.0, 1.0]], &[true, false], 3).is_none(), "{bad}");
    }
}

// ---------------------------------------------------------------------------------------------------------- gradients

/// Central differences of f, element by element.
fn differences(at: &Array2<f64>, step: f64, f: impl Fn(&Array2<f64>) -> f64) -> Array2<f64> {
    Array2::from_shape_fn(at.raw_dim(), |place| {
        let (mut up, mut down) = (at.clone(), at.clone());
        up[place] += step;
        down[place] -= step;
        (f(&up) - f(&down)) / (2.0 * step)
    })
}

#[test]
fn the_gradient_of_the_bound_in_the_activations_is_that_of_differences() {
    let labels = [0, 2, 5, 5, 0, 2, 2, 5, 9];
    let forks = [Fork { left: vec![0, 5], right: vec![2] }, Fork { left: vec![0], right: vec![5] }];
    let activations = normal((9, 4), &mut rng(3));
    for (scale, length) in [(8.0, 1.0), (2.0, 0.5)] {
        let config = gp(scale, length, 400);
        let value = |at: &Array2<f64>| objective(config, &forks, Embedding::of(at.clone()).unit(), &labels).unwrap().0;
        let embedding = Embedding::of(activations.clone());
        let (_, gradient) = objective(config, &forks, embedding.unit(), &labels).unwrap();
        let got = embedding.pull_back(gradient);
        let want = differences(&activations, 1e-5, value);
        assert!(largest(want.iter().copied()) > 0.01, "there must be a slope");
        assert!(largest(&got - &want) < 1e-6, "{got}\nnot\n{want}");
        // The last row's class is on no side of any fork.
        assert!(got.row(8).iter().all(|value| *value == 0.0), "{}", got.row(8));
        // ‖h‖ has no effect.
        for (g, h) in got.rows().into_iter().zip(activations.rows()) {
            assert!(g.dot(&h).abs() < 1e-12);
        }
    }
}

#[test]
fn activations_without_a_direction_are_embedded_at_zero_and_have_no_gradient() {
    let embedding = Embedding::of(array![[0.0, 0.0], [3.0, 4.0]]);
    assert_eq!(embedding.unit(), array![[0.0, 0.0], [0.6, 0.8]]);
    let pulled = embedding.pull_back(array![[1.0, 2.0], [1.0, 2.0]]);
    // g − e(e·g) = (1, 2) − 2.2·(.6, .8) = (−.32, .24), over 5
    assert!(largest(&pulled - &array![[0.0, 0.0], [-0.064, 0.048]]) < 1e-15, "{pulled}");
}

fn tensor(values: &Array2<f64>, session: &Session) -> Tensor<2> {
    session.matrix(values)
}

#[test]
fn the_pullback_of_an_embedding_is_that_of_differences() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let config = BnnConfig { activation: Activation::Tanh, ..BnnConfig::classifier(5, &[4, 3], 2) };
    let model = Network::new(config);
    let layout = model.layout().clone();
    let theta = normal((2, layout.dim()), &mut rng(11));
    let inputs = normal((6, 5), &mut rng(12));
    for (head_layers, width) in [(1, 3), (2, 4)] {
        let cotangent = normal((2, 6 * width), &mut rng(13));
        let lifted = tensor(&cotangent, &session).reshape([2, 6, width as i32]);
        let blocks = |theta: &Array2<f64>| crate::common::with_layout(theta, &layout, &session).blocks().to_vec();
        let embed = |theta: &Array2<f64>| model.embed(&blocks(theta), tensor(&inputs, &session), head_layers).unwrap();
        assert_eq!(embed(&theta).dims(), [2, 6, width]);
        let value = |theta: &Array2<f64>| (embed(theta) * lifted.clone()).sum().into_scalar::<f64>();
        let score =
            model.embedding_score(&blocks(&theta), tensor(&inputs, &session), head_layers, lifted.clone()).unwrap();
        let columns: Vec<Array2<f64>> = score
            .into_iter()
            .map(|block| {
                let size = block.dims()[1];
                Array2::from_shape_vec((2, size), block.try_into_vec_as::<f64>().unwrap()).unwrap()
            })
            .collect();
        let views: Vec<_> = columns.iter().map(|block| block.view()).collect();
        let got = concatenate(Axis(1), &views).unwrap();
        let want = differences(&theta, 1e-5, value);
        assert!(largest(&got - &want) < 1e-8, "head of {head_layers}: {}", largest(&got - &want));
        // The head has no part in it: 3·2 + 2 coordinates, and 4·3 + 3 more.
        let head = if head_layers == 1 { 8 } else { 23 };
        assert!(got.columns().into_iter().rev().take(head).flatten().all(|value| *value == 0.0));
        assert!(got.columns().into_iter().rev().nth(head).unwrap().iter().all(|value| *value != 0.0));
    }
    for head_layers in [3, 4] {
        let particles = crate::common::with_layout(&theta, &layout, &session);
        assert!(model.embed(particles.blocks(), tensor(&inputs, &session), head_layers).is_none(), "{head_layers}");
    }
}

#[test]
fn an_embedding_is_what_the_last_layer_reads() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let model = Network::new(BnnConfig::classifier(5, &[4], 3));
    let theta = normal((1, model.layout().dim()), &mut rng(21));
    let particles = crate::common::with_layout(&theta, model.layout(), &session);
    let inputs = tensor(&normal((7, 5), &mut rng(22)), &session);
    let embedding = model.embed(particles.blocks(), inputs.clone(), 1).unwrap().squeeze_dim::<2>(0); // [7, 4]
    let weight = particles.blocks()[2].clone().reshape([3, 4]);
    let logits = embedding.matmul(weight.transpose()) + particles.blocks()[3].clone();
    let want = model.predict(particles.blocks(), inputs).squeeze_dim::<2>(0);
    let gap = (burn::tensor::activation::log_softmax(logits, 1) - want).abs().max().into_scalar::<f64>();
    assert!(gap < 1e-12, "{gap}");
}

#[test]
fn a_logistic_regression_gives_no_embedding() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let model = Network::new(BlrConfig::new(3));
    let particles = crate::common::with_layout(&Array2::zeros((1, model.layout().dim())), model.layout(), &session)
        .blocks()
        .to_vec();
    let inputs = tensor(&Array2::zeros((2, 3)), &session);
    assert!(model.embed(&particles, inputs.clone(), 1).is_none());
    let cotangent = inputs.clone().unsqueeze_dim::<3>(0);
    assert!(model.embedding_score(&particles, inputs, 1, cotangent).is_none());
}

// --------------------------------------------------------------------------------------------------------------- tree

#[test]
fn classes_that_are_close_are_separated_last() {
    // Class means at 0, 10, 1, 11 on a line, and one at 100.
    let rows = array![[0.0], [10.0], [1.0], [11.0], [99.0], [101.0]];
    let labels = [3, 4, 5, 6, 9, 9];
    let fork = |left: &[usize], right: &[usize]| Fork { left: left.to_vec(), right: right.to_vec() };
    let want = [fork(&[3, 4, 5, 6], &[9]), fork(&[3, 5], &[4, 6]), fork(&[3], &[5]), fork(&[4], &[6])];
    assert_eq!(class_tree(&[3, 4, 5, 6, 9], &rows, &labels), want);
}

#[test]
fn a_tree_does_not_depend_on_the_order_of_the_rows() {
    let mut rng = rng(5);
    let labels: Vec<usize> = (0..60).map(|i| i % 7).collect();
    let rows = Array2::from_shape_fn((60, 3), |(i, j)| ((labels[i] * 5 + j * 3) % 11) as f64);
    let mut order: Vec<usize> = (0..60).collect();
    order.shuffle(&mut rng);
    let moved: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let classes: Vec<usize> = (0..7).collect();
    let tree = class_tree(&classes, &rows, &labels);
    assert_eq!(tree, class_tree(&classes, &rows.select(Axis(0), &order), &moved));
    assert_eq!(tree.len(), 6, "C leaves have C − 1 forks");
}

#[test]
fn classes_with_one_mean_are_separated_in_their_order() {
    let tree = class_tree(&[0, 1, 2], &Array2::zeros((3, 2)), &[0, 1, 2]);
    assert_eq!(tree[0], Fork { left: vec![0, 1], right: vec![2] });
    assert_eq!(tree.len(), 2);
    assert!(class_tree(&[4], &Array2::zeros((3, 2)), &[4, 4, 4]).is_empty(), "one class is a leaf");
}

// --------------------------------------------------------------------------------------------------------- classifier

/// Rings of radius 1, 2, 3, …, equally many rows each.
fn rings(count: usize, classes: usize, rng: &mut ChaCha12Rng) -> (Array2<f64>, Vec<usize>) {
    let labels: Vec<usize> = (0..count).map(|i| i % classes).collect();
    let mut rows = Array2::zeros((count, 2));
    for (mut row, label) in rows.rows_mut().into_iter().zip(&labels) {
        let angle = std::f64::consts::TAU * rng.random::<f64>();
        let noise: f64 = StandardNormal.sample(rng);
        let radius = 1.0 + *label as f64 + 0.1 * noise;
        row.assign(&array![radius * angle.cos(), radius * angle.sin()]);
    }
    (rows, labels)
}

pub fn accuracy(log: &Array2<f64>, labels: &[usize]) -> f64 {
    let best = |row: ndarray::ArrayView1<f64>| (0..row.len()).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
    let right = log.rows().into_iter().zip(labels).filter(|(row, label)| best(*row) == **label).count();
    right as f64 / labels.len() as f64
}

fn assert_distributions(log: &Array2<f64>) {
    assert!(log.iter().all(|value| value.is_finite() && *value <= 0.0));
    for row in log.rows() {
        let total = row.mapv(f64::exp).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}

#[test]
fn rings_are_separated() {
    let mut rng = rng(8);
    let (rows, labels) = rings(400, 4, &mut rng);
    let classifier = Classifier::fit(gp(8.0, 0.5, 20), &rows, &labels, 4).unwrap();
    let (test, answers) = rings(1000, 4, &mut rng);
    let log = classifier.log_probabilities(&test);
    assert_distributions(&log);
    let accuracy = accuracy(&log, &answers);
    println!("four rings: accuracy {accuracy}");
    assert!(accuracy > 0.95, "{accuracy}");
    // Far from every row the prediction is the prior: each fork has the probability one half.
    let far = classifier.log_probabilities(&array![[1e3, 1e3]]);
    let mut probabilities: Vec<f64> = far.iter().map(|log| log.exp()).collect();
    probabilities.iter().for_each(|p| assert!([0.5, 0.25, 0.125].iter().any(|want| (p - want).abs() < 1e-9), "{p}"));
    probabilities.sort_by(f64::total_cmp);
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn the_tree_agrees_with_an_independent_program() {
    // scripts/golden_gp.py: written from the documentation; E σ(f) by another rule, gradients by complex steps.
    for case in golden("gaussian_process_tree") {
        let name = case.name();
        let [rows, test] = ["rows", "test"].map(|key| matrix(case.input(key)));
        let whole = |key: &str| flat(case.input(key)).into_iter().map(|value| value as usize).collect::<Vec<_>>();
        let (labels, classes, steps) = (whole("labels"), whole("classes")[0], whole("inference_steps")[0]);
        let config = gp(flat(case.input("output_scale"))[0], flat(case.input("length_scale"))[0], steps);
        let close = |got: &[f64], key: &str| {
            let want = flat(case.expected(key));
            assert_close(got, &want, Tolerance { rtol: 1e-9, atol: 1e-12 }, &format!("{name}: {key}"));
        };
        let log = Classifier::fit(config, &rows, &labels, classes).unwrap().log_probabilities(&test);
        close(&log.iter().map(|log| log.exp()).collect::<Vec<_>>(), "probabilities");
        let tree = class_tree(&held(&labels), &rows, &labels);
        let (bound, gradient) = objective(config, &tree, &rows, &labels).unwrap();
        close(&[bound], "bound");
        close(&gradient.iter().copied().collect::<Vec<_>>(), "gradient");
    }
}

#[test]
fn a_class_without_rows_keeps_a_small_probability() {
    let (rows, labels) = rings(60, 3, &mut rng(9));
    let named: Vec<usize> = labels.iter().map(|label| [1, 4, 8][*label]).collect();
    let classifier = Classifier::fit(gp(8.0, 1.0, 10), &rows, &named, 10).unwrap();
    let log = classifier.log_probabilities(&rows);
    assert_distributions(&log);
    for unseen in [0, 2, 3, 5, 6, 7, 9] {
        assert!(log.column(unseen).iter().all(|value| (value.exp() - UNSEEN / 7.0).abs() < 1e-18));
    }
    assert!(accuracy(&log, &named) > 0.9);
}

#[test]
fn a_client_of_one_class_is_certain_of_it() {
    let rows = normal((5, 3), &mut rng(10));
    let classifier = Classifier::fit(gp(8.0, 1.0, 10), &rows, &[2; 5], 4).unwrap();
    let log = classifier.log_probabilities(&normal((3, 3), &mut rng(11)));
    assert_distributions(&log);
    assert!(log.column(2).iter().all(|value| (value.exp() - (1.0 - UNSEEN)).abs() < 1e-12));
    let (bound, gradient) = objective(gp(8.0, 1.0, 10), &[], &rows, &[2; 5]).unwrap();
    assert!(bound == 0.0 && gradient.iter().all(|value| *value == 0.0));
}

#[test]
fn rows_far_inside_a_class_stay_finite() {
    // A variance of 10⁸: f is in the thousands, and σ(−f) below the smallest f64.
    let rows = array![[0.0], [1.0]];
    let classifier = Classifier::fit(gp(1e8, 0.1, 10), &rows, &[0, 1], 2).unwrap();
    let log = classifier.log_probabilities(&rows);
    assert!(log.iter().all(|value| value.is_finite()), "{log}");
    assert!(log[[0, 0]] > log[[0, 1]] && log[[1, 1]] > log[[1, 0]], "{log}");
}

#[test]
fn a_sample_of_rows_has_the_shares_of_the_classes() {
    let labels: Vec<usize> = (0..1000)
        .map(|i| {
            if i < 600 {
                0
            } else if i < 990 {
                1
            } else {
                7
            }
        })
        .collect();
    let chosen = stratified(&labels, 100, &mut rng(1));
    let count = |class| chosen.iter().filter(|position| labels[**position] == class).count();
    assert_eq!(chosen.len(), 100);
    assert_eq!((count(0), count(1), count(7)), (60, 39, 1));
    assert!(chosen.windows(2).all(|pair| pair[0] < pair[1]), "ascending, none twice");
    assert_eq!(chosen, stratified(&labels, 100, &mut rng(1)));
    assert_ne!(chosen, stratified(&labels, 100, &mut rng(2)));
    assert_eq!(stratified(&labels, 5000, &mut rng(1)), (0..1000).collect::<Vec<_>>());
    // A class is never left out, even by a limit below the number of classes.
    assert_eq!(stratified(&labels, 1, &mut rng(1)).len(), 3);
}
