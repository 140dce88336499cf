//! Golden cases of kernels, bandwidth rules, directions, AdaGrad steps and density estimates: exact numbers that other
//! programs computed (`tests/golden/README.md`), in f64 and in f32.

use crate::common::{Case, Tolerance, assert_close, experiment, flat, golden, matrix, particles, values};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::density::kde::reference_factor;
use fedstein::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, LogDensity};
use fedstein::error::RunError;
use fedstein::stein::{
    AccumulatorStart, Bandwidth, Distances, EpsilonPlace, Gradient, Kernel, MedianOfEven, Optimizer, OptimizerState,
    Rule, Score, Svgd, direction, reference,
};
use ndarray::{Array2, array};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};

fn rule(name: &str) -> Bandwidth {
    let (rule, median) = match name {
        "paper" => (Rule::Paper, MedianOfEven::Mean),
        "full_matrix" => (Rule::FullMatrix, MedianOfEven::Mean),
        "svgd_ref" => (Rule::Reference, MedianOfEven::Mean),
        "fedwba_ref" => (Rule::Reference, MedianOfEven::Lower),
        "pairs_sq" => (Rule::Pyro, MedianOfEven::Mean),
        other => panic!("unknown bandwidth rule {other}"),
    };
    Bandwidth { rule, median }
}

fn kernel(case: &Case) -> Kernel {
    let bandwidth = match (case.input("h").as_f64(), case.input("bandwidth_rule").as_str()) {
        (Some(h), _) => Bandwidth { rule: Rule::Fixed(h), median: MedianOfEven::Mean },
        (None, Some(name)) => rule(name),
        (None, None) => Bandwidth::default(),
    };
    let reference = case.name().contains("reference-code");
    let gradient = if reference { Gradient::Reference } else { Gradient::Correct };
    match case.input("kernel").as_str().unwrap() {
        "rbf" => Kernel::Rbf(bandwidth),
        "imq" => Kernel::Imq { bandwidth, exponent: case.number("beta") },
        "laplace" => Kernel::Laplacian(bandwidth),
        "mixture" => Kernel::Mixture(bandwidth),
        "polynomial" => Kernel::Polynomial { degree: case.number("degree") as i32, offset: case.number("c"), gradient },
        "sigmoid" => Kernel::Sigmoid { slope: case.number("alpha"), offset: case.number("c"), gradient },
        other => panic!("unknown kernel {other}"),
    }
}

fn check_bandwidth(case: &Case) {
    let x = matrix(case.input("particles"));
    let d2 = Distances::of_gram(&x.dot(&x.t()));
    for (name, want) in case.expected("h").as_object().unwrap() {
        let got = rule(name).rule_value(&d2, 2);
        assert!(rule(name).evaluate(&d2, 2) > 0.0, "{} {name}: a bandwidth of 0 must be replaced", case.name());
        assert_close(&[got], &flat(want), case.tolerance(Precision::F64), &format!("{} {name}", case.name()));
    }
}

fn check_direction<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let x = particles(&matrix(case.input("particles")), &session);
    let s = Score::dense(particles(&matrix(case.input("scores")), &session));
    let kernel = kernel(case);
    let tolerance = case.tolerance(precision);
    let label = |part: &str| format!("{} ({}): {part}", case.name(), B::NAME);

    let along = direction(&kernel, &x, s).unwrap();
    let (phi, k) = (along.evaluate(&x), along.kernel);
    assert_close(&values(&phi), &flat(case.expected("phi")), tolerance, &label("phi"));
    if case.expected("K").is_null() {
        return;
    }
    let repulsion = direction(&kernel, &x, Score::zero(x.count())).unwrap().evaluate(&x);
    assert_close(&values(&repulsion), &flat(case.expected("repulsion")), tolerance, &label("repulsion"));
    if let Some(k) = k {
        let k: Vec<f64> = k.values.iter().copied().collect();
        assert_close(&k, &flat(case.expected("K")), tolerance, &label("K"));
    }
}

/// φ of the reference in plain tensors, which has the RBF kernel alone.
fn check_reference_direction<B: Backend>(case: &Case, precision: Precision) {
    let Kernel::Rbf(rule) = kernel(case) else { return };
    let session = Session::open::<B>(precision).unwrap();
    let [x, s] = ["particles", "scores"].map(|name| session.matrix(&matrix(case.input(name))));
    let phi = reference::direction(&x, s, rule).unwrap().try_into_vec_as::<f64>().unwrap();
    let label = format!("{} ({}): phi of the reference", case.name(), B::NAME);
    assert_close(&phi, &flat(case.expected("phi")), case.tolerance(precision), &label);
}

/// The steps of the reference in plain tensors, whose accumulator starts at φ².
fn check_reference_steps<B: Backend>(case: &Case, precision: Precision) {
    let Kernel::Rbf(rule) = kernel(case) else { return };
    if case.input("init") != "g2" {
        return;
    }
    let session = Session::open::<B>(precision).unwrap();
    let start = matrix(case.input("particles"));
    let (mean, variance) = target(case, start.ncols());
    let adagrad =
        reference::AdaGrad { lr: case.number("lr"), epsilon: case.number("eps"), momentum: case.number("beta") };
    let rows = session.matrix(&Array2::from_shape_fn(start.dim(), |(_, j)| mean[j]));
    let (mut x, mut accumulator) = (session.matrix(&start), None);
    for step in 0..case.number("steps") as usize {
        let score = (rows.clone() - x.clone()).div_scalar(variance);
        let phi = reference::direction(&x, score, rule).unwrap();
        x = adagrad.step(x, phi.clone(), &mut accumulator);
        for (part, got) in [("phi", phi), ("x", x.clone()), ("hist", accumulator.clone().unwrap())] {
            let got = got.try_into_vec_as::<f64>().unwrap();
            let label = format!("{} ({}): {part} of the reference, step {step}", case.name(), B::NAME);
            assert_close(&got, &flat(&case.expected(part)[step]), case.tolerance(precision), &label);
        }
    }
}

/// Checks K and M to f64's precision in both precisions, because the particles are exact in f32, and φ to the precision
/// of its products.
fn check_close_particles<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let [x, s] = ["particles", "scores"].map(|name| particles(&matrix(case.input(name)), &session));
    let label = |part: &str| format!("{} ({}, {precision:?}): {part}", case.name(), B::NAME);
    let (all_digits, tolerance) = (case.tolerance(Precision::F64), case.tolerance(precision));

    let along = direction(&kernel(case), &x, Score::dense(s)).unwrap();
    let k = along.kernel.as_ref().unwrap();
    for (name, got) in [("K", &k.values), ("drift", &k.drift)] {
        let got: Vec<f64> = got.iter().copied().collect();
        assert_close(&got, &flat(case.expected(name)), all_digits, &label(name));
    }
    assert_close(&[k.bandwidth.unwrap()], &flat(case.expected("h")), all_digits, &label("h"));
    assert_close(&values(&along.evaluate(&x)), &flat(case.expected("phi")), tolerance, &label("phi"));
    let repulsion = direction(&kernel(case), &x, Score::zero(x.count())).unwrap().evaluate(&x);
    assert_close(&values(&repulsion), &flat(case.expected("repulsion")), tolerance, &label("repulsion"));
}

/// The score of N(mean, variance·I) at the particles, as a combination of particles and a constant row.
fn gaussian_score(at: &fedstein::particles::Particles, mean: &[f64], variance: f64, on: &Session) -> Score {
    let rows = Array2::from_shape_fn((at.count(), mean.len()), |(_, j)| mean[j]);
    let pull = particles(&rows, on).zip(at.clone(), |mean, x| mean - x).map(|block| block.div_scalar(variance));
    Score::dense(pull)
}

/// Mean and variance of a case's target in d dimensions.
fn target(case: &Case, d: usize) -> (Vec<f64>, f64) {
    match case.input("target").as_str().unwrap() {
        "N(0,I), score = -x" => (vec![0.0; d], 1.0),
        "N(mu, 4I), mu = [1,-2,0.5], score = -(x-mu)/4" => (vec![1.0, -2.0, 0.5], 4.0),
        other => panic!("unknown target {other}"),
    }
}

fn check_steps<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let start = matrix(case.input("particles"));
    let (mean, variance) = target(case, start.ncols());
    let init = match case.input("init").as_str().unwrap() {
        "g2" => AccumulatorStart::G2,
        "zero" => AccumulatorStart::Zero,
        other => panic!("unknown start {other}"),
    };
    let optimizer = Optimizer::AdaGrad {
        lr: case.number("lr"),
        epsilon: case.number("eps"),
        momentum: case.number("beta"),
        init,
        place: EpsilonPlace::Outside,
    };
    let svgd = Svgd { kernel: kernel(case), optimizer };
    let mut state = OptimizerState::default();
    let mut x = particles(&start, &session);
    for step in 0..case.number("steps") as usize {
        let along = direction(&svgd.kernel, &x, gaussian_score(&x, &mean, variance, &session)).unwrap();
        let (phi, k) = (along.evaluate(&x), along.kernel);
        let label = |part: &str| format!("{} ({}): {part} of step {step}", case.name(), B::NAME);
        let tolerance = case.tolerance(precision);
        assert_close(&values(&phi), &flat(&case.expected("phi")[step]), tolerance, &label("phi"));
        assert_close(&[k.unwrap().bandwidth.unwrap()], &[flat(case.expected("h"))[step]], tolerance, &label("h"));
        x = svgd
            .run::<RunError>(x, 1, &mut state, |at| Ok(gaussian_score(at, &mean, variance, &session)), |_| {})
            .unwrap();
        assert_close(&values(&x), &flat(&case.expected("x")[step]), tolerance, &label("x"));
        let hist: Vec<f64> = interleave(&state.second);
        assert_close(&hist, &flat(&case.expected("hist")[step]), tolerance, &label("hist"));
    }
}

/// The rows of several tensors, joined along the columns.
fn interleave(blocks: &[burn::tensor::Tensor<2>]) -> Vec<f64> {
    let rows = blocks[0].dims()[0];
    let whole = burn::tensor::Tensor::cat(blocks.to_vec(), 1);
    assert_eq!(whole.dims()[0], rows);
    whole.try_into_vec_as::<f64>().unwrap()
}

/// The variance at the fixed point: the mean over coordinates of the sample variance after a long run.
fn check_variance_law(case: &Case) {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let (d, n) = (case.number("d") as usize, case.number("N") as usize);
    let bandwidth = rule(case.input("bandwidth_rule").as_str().unwrap());
    let mut rng = rand::rngs::ChaCha12Rng::seed_from_u64(1);
    let start = Array2::from_shape_fn((n, d), |_| StandardNormal.sample(&mut rng));
    for (kernel, key) in
        [(Kernel::Rbf(bandwidth), "variance_rbf"), (Kernel::Imq { bandwidth, exponent: -0.5 }, "variance_imq")]
    {
        let svgd = Svgd { kernel, optimizer: Optimizer::Sgd { lr: 0.5 } };
        let score = |at: &fedstein::particles::Particles| Ok(gaussian_score(at, &vec![0.0; d], 1.0, &session));
        let x = svgd
            .run::<RunError>(particles(&start, &session), 3000, &mut OptimizerState::default(), score, |_| {})
            .unwrap();
        let x = Array2::from_shape_vec((n, d), values(&x)).unwrap();
        let variance = x.var_axis(ndarray::Axis(0), 1.0).mean().unwrap();
        assert_close(
            &[variance],
            &flat(case.expected(key)),
            case.tolerance(Precision::F64),
            &format!("{} {key}", case.name()),
        );
    }
}

fn check_svgd<B: Backend>(precision: Precision) {
    for case in golden("svgd") {
        match case.name() {
            name if name.starts_with("bandwidth:") => check_bandwidth(&case),
            name if name.starts_with("adagrad") => {
                check_steps::<B>(&case, precision);
                check_reference_steps::<B>(&case, precision);
            }
            name if name.starts_with("variance at") => {}
            _ => {
                check_direction::<B>(&case, precision);
                check_reference_direction::<B>(&case, precision);
            }
        }
    }
}

#[test]
fn svgd_cases_on_flex_in_f64() {
    check_svgd::<Flex>(Precision::F64);
}

#[test]
fn svgd_cases_on_flex_in_f32() {
    check_svgd::<Flex>(Precision::F32);
}

#[cfg(feature = "ndarray")]
#[test]
fn svgd_cases_on_ndarray_in_f64() {
    check_svgd::<NdArray>(Precision::F64);
}

/// Distances from a Gram matrix in f64 are wrong by 10⁻¹⁰ here, and the Laplacian kernel divides by them.
#[test]
fn particles_that_almost_meet_keep_their_digits() {
    let cases = golden("close_particles");
    assert_eq!(cases.len(), 8);
    for case in &cases {
        check_close_particles::<Flex>(case, Precision::F64);
        check_close_particles::<Flex>(case, Precision::F32);
        #[cfg(feature = "ndarray")]
        check_close_particles::<NdArray>(case, Precision::F64);
    }
}

#[test]
fn particles_collapse_to_the_variance_that_the_law_predicts() {
    let cases: Vec<_> = golden("svgd").into_iter().filter(|case| case.name().starts_with("variance at")).collect();
    assert_eq!(cases.len(), 3);
    cases.iter().for_each(check_variance_law);
}

fn kde(case: &Case, mode: KdeMode, session: &Session) -> Kde {
    let config = KdeConfig { mode, bandwidth: KdeBandwidth::Fixed(case.number("lambda")) };
    Kde::new(&particles(&matrix(case.input("particles")), session), config).unwrap()
}

fn check_exact_kde(case: &Case, precision: Precision) {
    let session = Session::open::<Flex>(precision).unwrap();
    let kde = kde(case, KdeMode::Exact, &session);
    let x = Array2::from_shape_vec((1, flat(case.input("x")).len()), flat(case.input("x"))).unwrap();
    let x = particles(&x, &session);
    let tolerance = case.tolerance(precision);
    let label = |part: &str| format!("{} ({}): {part}", case.name(), Flex::NAME);
    let score = kde.score(&x).unwrap().evaluate(&x);
    let weights: Vec<f64> = kde.weights(&x).unwrap().iter().copied().collect();
    assert_close(&kde.log_density(&x).unwrap(), &flat(case.expected("logpdf")), tolerance, &label("log density"));
    assert_close(&values(&score), &flat(case.expected("score")), tolerance, &label("score"));
    assert_close(&weights, &flat(case.expected("weights")), tolerance, &label("weights"));
    let ess = kde.effective_sample_size(&x).unwrap();
    assert_close(&ess, &flat(case.expected("ess")), tolerance, &label("effective sample size"));
}

fn check_reference_kde(case: &Case) {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let x = Array2::from_shape_vec((1, flat(case.input("x")).len()), flat(case.input("x"))).unwrap();
    let x = particles(&x, &session);
    let tolerance = case.tolerance(Precision::F64);
    let exact = kde(case, KdeMode::Exact, &session);
    let lambda = case.number("lambda");
    // One released program counts the weights only: its normaliser has another dimension than the particle.
    let d = case.input("d_norm").as_f64().map_or(x.dim(), |d| d as usize);
    let factor = reference_factor(exact.exponents(&x).unwrap().row(0), d, lambda);
    let scaled: Vec<f64> = values(&exact.score(&x).unwrap().evaluate(&x)).iter().map(|s| factor * s).collect();
    assert_close(&scaled, &flat(case.expected("score")), tolerance, case.name());
    if d == x.dim() {
        let reference = kde(case, KdeMode::Reference, &session).score(&x).unwrap().evaluate(&x);
        assert_close(&values(&reference), &flat(case.expected("score")), tolerance, case.name());
    }
}

fn check_kde(precision: Precision) {
    let mut seen = [0; 3];
    for case in golden("kde") {
        match case.name() {
            name if name.starts_with("scott") => {
                seen[0] += 1;
                let x = matrix(case.input("particles"));
                let centred = &x - &x.mean_axis(ndarray::Axis(0)).unwrap();
                let lambda = KdeBandwidth::Scott.evaluate(&centred.dot(&centred.t()), x.ncols());
                assert_close(&[lambda], &flat(case.expected("lambda")), case.tolerance(Precision::F64), name);
            }
            name if name.starts_with("floored") => {
                seen[1] += 1;
                check_reference_kde(&case);
            }
            _ => {
                seen[2] += 1;
                check_exact_kde(&case, precision);
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn density_estimates_on_flex_in_f64() {
    check_kde(Precision::F64);
}

#[test]
fn density_estimates_on_flex_in_f32() {
    check_kde(Precision::F32);
}

#[test]
fn the_score_of_the_reference_density_is_zero_where_the_public_codes_underflow() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let config = KdeConfig { mode: KdeMode::Reference, bandwidth: KdeBandwidth::Fixed(0.55) };
    let zero_score = |d: usize, n: usize| {
        let x = particles(&Array2::from_shape_fn((n, d), |(i, j)| ((i * d + j) as f64).sin()), &session);
        Kde::new(&x, config).unwrap().has_zero_score()
    };
    // Exactly 0 at d = 502, tiny but not 0 at d = 55.
    assert!(zero_score(502, 20));
    assert!(!zero_score(55, 6) && !zero_score(2, 6));
}

#[test]
fn a_density_is_negligible_where_less_than_a_hundredth_of_its_exact_score_is_left_at_equal_centres() {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let mut counts = [0; 2];
    for (n, d) in [1, 2, 6, 20, 100].into_iter().flat_map(|n| (1..40).map(move |d| (n, d))) {
        let centres = particles(&Array2::from_elem((n, d), 0.3), &session);
        let near = particles(&Array2::from_elem((1, d), 0.3 + 1e-6), &session);
        let density = |mode| Kde::new(&centres, KdeConfig { mode, bandwidth: KdeBandwidth::Fixed(0.55) }).unwrap();
        let norm = |mode| density(mode).score(&near).unwrap().evaluate(&near).row_norms().unwrap()[0];
        let left = norm(KdeMode::Reference) / norm(KdeMode::Exact);
        let is_negligible = density(KdeMode::Reference).is_negligible();
        counts[usize::from(is_negligible)] += 1;
        // The bound on the sum over the centres is (N + 1)/N times the sum.
        let bound = 0.01 * n as f64 / (n + 1) as f64;
        assert!(if is_negligible { left < 0.01 } else { left > 0.99 * bound }, "N = {n}, d = {d}: {left}");
        assert!(density(KdeMode::Off).is_negligible() && !density(KdeMode::Exact).is_negligible());
    }
    assert!(counts.iter().all(|count| *count > 30), "{counts:?}");
}

#[test]
fn two_far_centres_give_a_constant_drift_as_one_hot_densities_do() {
    // ∇log q − ∇log t with single centres is (c_q − c_t)/λ², wherever the particle is.
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(0.55) };
    let single = |value: f64| Kde::new(&particles(&Array2::from_elem((1, 4), value), &session), config).unwrap();
    let (q, t) = (single(2.0), single(-1.0));
    let x = particles(&Array2::from_shape_fn((3, 4), |(i, j)| (i * 7 + j) as f64 - 9.0), &session);
    let drift = q.score(&x).unwrap().minus(t.score(&x).unwrap()).evaluate(&x);
    let want = vec![3.0 / (0.55 * 0.55); 12];
    assert_close(&values(&drift), &want, Tolerance { rtol: 1e-12, atol: 0.0 }, "drift");
}

#[test]
fn the_median_rule_of_a_density_is_half_the_median_square_over_the_logarithm() {
    // Of the nine r² of three centres, 0 three times, 2 four times and 4 twice, the fifth is 2: λ² = ½·2/ln 4.
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Median };
    let lambda = |centres: &Array2<f64>| Kde::new(&particles(centres, &session), config).unwrap().lambda();
    let close = Tolerance { rtol: 1e-12, atol: 0.0 };
    let three = array![[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]];
    assert_close(&[lambda(&three)], &[4f64.ln().recip().sqrt()], close, "three centres");
    // A single centre has no distances, and h is 1.
    assert_close(&[lambda(&array![[3.0, -1.0]])], &[0.5f64.sqrt()], close, "one centre");
}

#[test]
fn the_words_of_a_config_are_the_rules_of_the_density() {
    for kind in ["u-dsvgd", "dsvgd", "fedwba", "pmd"] {
        let of = |value: &str| {
            let text = format!("[algorithm]\nkind = \"{kind}\"\nkde_bandwidth = {value}");
            experiment(&text).config.algorithm.kde_bandwidth()
        };
        assert_eq!(of("\"median\""), Some(KdeBandwidth::Median), "{kind}");
        assert_eq!(of("\"scott\""), Some(KdeBandwidth::Scott), "{kind}");
        assert_eq!(of("0.3"), Some(KdeBandwidth::Fixed(0.3)), "{kind}");
    }
}
