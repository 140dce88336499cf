//! Client selection: discrepancies and inner products against golden cases and slow loops, probabilities and draws.
//! What selection costs and changes in a run is in `selection_runs.rs`. Source: Yang et al. eq. (13)-(25).

use crate::common::{
    Case, Tolerance, assert_close, experiment, flat, golden, matrix, moments, normal, particles, values,
};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::random::Streams;
use fedstein::schedule::Action;
use fedstein::schedule::indicator::inner_products;
use fedstein::schedule::weigh::probabilities;
use fedstein::schedule::{Draw, Indicators, Measure, Negative, ScheduleSetup};
use fedstein::stein::{Bandwidth, Kernel, MedianOfEven, Rule, Score, SteinForm, SteinProduct, direction};
use ndarray::{Array1, Array2, array};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use serde_json::Value;

fn fixed(h: f64) -> Bandwidth {
    Bandwidth { rule: Rule::Fixed(h), median: MedianOfEven::Mean }
}

fn product_on(
    kernel: &Kernel,
    x: &Array2<f64>,
    first: &Array2<f64>,
    second: &Array2<f64>,
    precision: Precision,
) -> SteinProduct {
    let session = Session::open::<Flex>(precision).unwrap();
    let form = SteinForm::new(kernel, &particles(x, &session)).unwrap().unwrap();
    form.product(&particles(first, &session), &particles(second, &session)).unwrap()
}

fn product(kernel: &Kernel, x: &Array2<f64>, first: &Array2<f64>, second: &Array2<f64>) -> SteinProduct {
    product_on(kernel, x, first, second, Precision::F64)
}

// ------------------------------------------------------------------------------------------------- golden cases

/// The kernel of a case, and the factor that is left: (c² + r²)^β = c^(2β)·(1 + r²/c²)^β.
fn kernel(case: &Case) -> (Kernel, f64) {
    match case.input("kernel").as_str().unwrap() {
        "rbf" => (Kernel::Rbf(fixed(case.number("h"))), 1.0),
        "imq" => {
            let (c, exponent) = (case.number("c"), case.number("beta"));
            (Kernel::Imq { bandwidth: fixed(c * c), exponent }, c.powf(2.0 * exponent))
        }
        other => panic!("unknown kernel {other}"),
    }
}

fn check_discrepancy(case: &Case, precision: Precision) {
    let (kernel, factor) = kernel(case);
    let (x, s) = (matrix(case.input("particles")), matrix(case.input("scores")));
    let got = product_on(&kernel, &x, &s, &s, precision);
    let check = |got: &[f64], key: &str| {
        let scaled: Vec<f64> = got.iter().map(|value| factor * value).collect();
        assert_close(&scaled, &flat(case.expected(key)), case.tolerance(precision), &format!("{} {key}", case.name()));
    };
    check(&[got.v], "V");
    match (got.u, case.expected("U")) {
        (None, Value::Null) => {}
        (got, want) => {
            // U is a difference of what V sums up: it inherits V's rounding, not its own size's.
            let tolerance = case.tolerance(precision);
            let atol = tolerance.atol + tolerance.rtol * case.expected("V").as_f64().unwrap();
            let got = factor * got.unwrap_or_else(|| panic!("{}: no U", case.name()));
            assert_close(&[got], &flat(want), Tolerance { atol, ..tolerance }, &format!("{} U", case.name()));
        }
    }
    let root = (factor * got.v).sqrt();
    assert_close(&[root], &flat(case.expected("sqrt_V")), case.tolerance(precision), &format!("{} √V", case.name()));
    for key in ["H", "closed_form", "H_12"] {
        match (key, case.expected(key)) {
            (_, Value::Null) => {}
            ("H", _) => check(got.matrix.as_slice().unwrap(), key),
            ("H_12", _) => check(&[got.matrix[[0, 1]]], key),
            _ => check(&[got.v], key),
        }
    }
}

fn check_inner_product(case: &Case, precision: Precision) {
    let (kernel, factor) = kernel(case);
    let of = |key: &str| matrix(case.input(key));
    let got = product_on(&kernel, &of("particles"), &of("scores_1"), &of("scores_2"), precision).v * factor;
    assert_close(&[got], &flat(case.expected("HIP")), case.tolerance(precision), case.name());
}

/// The policies by the names of the golden file.
fn policies() -> [(&'static str, Negative); 3] {
    let softmax = Negative::Softmax { temperature: Some(1.0) };
    [("clip", Negative::Clip), ("shift", Negative::Shift), ("softmax", softmax)]
}

fn check_clients(case: &Case, precision: Precision) {
    let session = Session::open::<Flex>(precision).unwrap();
    let (kernel, _) = kernel(case);
    let form = SteinForm::new(&kernel, &particles(&matrix(case.input("particles")), &session)).unwrap().unwrap();
    let scores = case.input("client_scores").as_array().unwrap().iter().map(|s| particles(&matrix(s), &session));
    let scores: Vec<_> = scores.collect();
    let tolerance = case.tolerance(precision);
    let ksd: Vec<f64> = scores.iter().map(|score| form.product(score, score).unwrap().v).collect();
    let hip = inner_products(&form, &scores).unwrap();
    assert_close(&ksd, &flat(case.expected("ksd")), tolerance, "KSD of four clients");
    assert_close(&hip, &flat(case.expected("hip")), tolerance, "HIP of four clients");
    let plain = probabilities(&ksd, Negative::Clip);
    assert_close(&plain.0, &flat(&case.expected("ksd_selection")["plain"]), tolerance, "KSD selection");
    assert_eq!(plain.1, Action::Proportional);
    for (name, policy) in policies() {
        let got = probabilities(&hip, policy).0;
        assert_close(&got, &flat(&case.expected("hip_selection")[name]), tolerance, &format!("HIP selection, {name}"));
    }
}

fn check_probabilities(case: &Case, precision: Precision) {
    let given = flat(case.input("values"));
    for (name, policy) in policies() {
        let (got, _) = probabilities(&given, policy);
        assert_close(&got, &flat(case.expected(name)), case.tolerance(precision), &format!("{} {name}", case.name()));
    }
}

/// n V of n exact samples of N(0, I₂), over 20 seeds: E = d + 2d/h. A wrong sign of the cross terms gives V of order 1.
fn check_exact_samples(case: &Case, precision: Precision) {
    let want = flat(&case.expected("expected_V_times_n")["value"]);
    for n in flat(case.input("n")) {
        let one = |seed: u64| {
            let x = normal((n as usize, 2), &mut ChaCha12Rng::seed_from_u64(seed));
            let s = x.mapv(|value| -value);
            n * product_on(&Kernel::Rbf(fixed(case.number("h"))), &x, &s, &s, precision).v
        };
        let mean = (0..20).map(one).sum::<f64>() / 20.0;
        assert_close(&[mean], &want, case.tolerance(precision), &format!("{}, n = {n}", case.name()));
    }
}

fn check_golden(precision: Precision) {
    let mut seen = [0; 5];
    for case in golden("ksd_hip") {
        let has = |key: &str| !case.input(key).is_null();
        let kind = match () {
            () if has("client_scores") => 0,
            () if has("scores") => 1,
            () if has("scores_1") => 2,
            () if has("values") => 3,
            () => 4,
        };
        seen[kind] += 1;
        match kind {
            0 => check_clients(&case, precision),
            1 => check_discrepancy(&case, precision),
            2 => check_inner_product(&case, precision),
            3 => check_probabilities(&case, precision),
            _ => check_exact_samples(&case, precision),
        }
    }
    assert_eq!(seen, [1, 9, 4, 5, 1]);
}

#[test]
fn golden_cases_on_flex_in_f64() {
    check_golden(Precision::F64);
}

#[test]
fn golden_cases_on_flex_in_f32() {
    check_golden(Precision::F32);
}

#[test]
fn far_particles_leave_gradient_norms_over_a_constant() {
    // S_k = [mean ‖s_k‖² + d/λ²]/N and HIP_k = [mean s_k·s̄ + d/λ²]/N once the kernel is diagonal.
    let (n, d, lambda) = (6, 55, 0.55);
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let mut rng = ChaCha12Rng::seed_from_u64(41);
    let x = normal((n, d), &mut rng).mapv(|value| 2.0 * value);
    let scores: Vec<_> = (0..3).map(|_| normal((n, d), &mut rng).mapv(|value| 10.0 * value)).collect();
    let mean = scores.iter().fold(Array2::zeros((n, d)), |sum, s| sum + s) / 3.0;
    let form = SteinForm::new(&Kernel::Rbf(fixed(2.0 * lambda * lambda)), &particles(&x, &session)).unwrap().unwrap();
    let sets: Vec<_> = scores.iter().map(|s| particles(s, &session)).collect();
    let floor = d as f64 / (lambda * lambda);
    let limit = |a: &Array2<f64>, b: &Array2<f64>| ((a * b).sum() / n as f64 + floor) / n as f64;
    let exact = Tolerance { rtol: 1e-12, atol: 0.0 };
    let ksd: Vec<f64> = sets.iter().map(|s| form.product(s, s).unwrap().v).collect();
    assert_close(&ksd, &scores.iter().map(|s| limit(s, s)).collect::<Vec<_>>(), exact, "KSD");
    let (hip, constant) = (inner_products(&form, &sets).unwrap(), form.constant());
    assert_close(&hip, &scores.iter().map(|s| limit(s, &mean)).collect::<Vec<_>>(), exact, "HIP");
    assert_close(&[constant], &[floor / n as f64], exact, "the constant");
    assert!(form.off_diagonal_mass() < 1e-30, "{}", form.off_diagonal_mass());
}

#[test]
fn kernels_without_a_trace_have_no_discrepancy() {
    let x = particles(&Array2::zeros((2, 2)), &Session::open::<Flex>(Precision::F64).unwrap());
    for kernel in [
        Kernel::Laplacian(Bandwidth::default()),
        Kernel::Polynomial { degree: 2, offset: 1.0, gradient: Default::default() },
        Kernel::Sigmoid { slope: 1.0, offset: 0.0, gradient: Default::default() },
    ] {
        assert!(SteinForm::new(&kernel, &x).unwrap().is_none(), "{kernel:?}");
    }
}

// --------------------------------------------------------------------------------------------- what always holds

fn kernels() -> impl Strategy<Value = Kernel> {
    let bandwidth = prop_oneof![Just(Bandwidth::default()), (0.2f64..20.0).prop_map(fixed)];
    bandwidth.prop_flat_map(|bandwidth| {
        prop_oneof![
            Just(Kernel::Rbf(bandwidth)),
            (-0.9f64..-0.1).prop_map(move |exponent| Kernel::Imq { bandwidth, exponent }),
            Just(Kernel::Mixture(bandwidth)),
        ]
    })
}

/// Σ_j [k(x_j, y) s_j + ∇_{x_j} k(x_j, y)]/N: the direction as a function of y, coordinate by coordinate.
fn slow_direction(h: f64, x: &Array2<f64>, s: &Array2<f64>, y: &Array1<f64>) -> Array1<f64> {
    let mut phi = Array1::zeros(y.len());
    for (xj, sj) in x.rows().into_iter().zip(s.rows()) {
        let offset = y - &xj;
        let k = (-offset.dot(&offset) / h).exp();
        phi = phi + &sj * k + offset * (2.0 / h * k);
    }
    phi / x.nrows() as f64
}

/// An orthogonal matrix `[d, d]`: Gram-Schmidt on random rows.
fn rotation(d: usize, rng: &mut ChaCha12Rng) -> Array2<f64> {
    let mut q = normal((d, d), rng);
    for i in 0..d {
        for j in 0..i {
            let along = q.row(i).dot(&q.row(j));
            let row = &q.row(i) - &(&q.row(j) * along);
            q.row_mut(i).assign(&row);
        }
        let norm = q.row(i).dot(&q.row(i)).sqrt();
        q.row_mut(i).mapv_inplace(|value| value / norm);
    }
    q
}

fn phi(kernel: &Kernel, x: &Array2<f64>, s: &Array2<f64>) -> Array2<f64> {
    let session = Session::open::<Flex>(Precision::F64).unwrap();
    let at = particles(x, &session);
    let phi = direction(kernel, &at, Score::dense(particles(s, &session))).unwrap().evaluate(&at);
    Array2::from_shape_vec(x.raw_dim(), values(&phi)).unwrap()
}

/// Values of either sign and any size, some of them equal.
fn indicators() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![-1e3f64..1e3, Just(0.0), Just(-2.5), 0.0f64..1e12, -1e-9f64..1e-9];
    prop::collection::vec(value, 1..9)
}

fn negatives() -> impl Strategy<Value = Negative> {
    prop_oneof![
        Just(Negative::Clip),
        Just(Negative::Shift),
        Just(Negative::Softmax { temperature: None }),
        (1e-3f64..1e3).prop_map(|temperature| Negative::Softmax { temperature: Some(temperature) }),
    ]
}

/// Indicators that only have values.
fn measured(measure: Measure, values: Vec<f64>) -> Indicators {
    Indicators { measure, values, absent: Vec::new(), constant_share: 0.0, off_diagonal_mass: 0.0, bandwidth: 1.0 }
}

fn draw(per_round: usize, floor: f64) -> Draw {
    Draw { per_round, floor, streams: Streams::new(17) }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn the_absent_have_probability_0_and_the_others_what_they_would_have_without_them(
        values in indicators(), negative in negatives(), gone in any::<u64>(), floor in 0.0f64..1.0, count in 1usize..9,
    ) {
        let absent: Vec<usize> = (0..values.len()).filter(|k| gone >> k & 1 == 1).collect();
        let known: Vec<f64> = (0..values.len()).filter(|k| !absent.contains(k)).map(|k| values[k]).collect();
        let mut all = measured(Measure::Hip, values.clone());
        all.absent.clone_from(&absent);
        absent.iter().for_each(|k| all.values[*k] = 0.0);
        let got = draw(count, floor).select(4, &all, negative);
        let reasons = got.reasons.unwrap();
        if known.is_empty() {
            let uniform = 1.0 / values.len() as f64;
            prop_assert!(reasons.probabilities.iter().all(|p| (p - uniform).abs() < 1e-12));
            return Ok(());
        }
        let want = draw(count, floor).select(4, &measured(Measure::Hip, known.clone()), negative);
        let names: Vec<usize> = (0..values.len()).filter(|k| !absent.contains(k)).collect();
        prop_assert_eq!(got.clients, want.clients.iter().map(|place| names[*place]).collect::<Vec<_>>());
        let expected = want.reasons.unwrap();
        prop_assert!(absent.iter().all(|k| reasons.probabilities[*k] == 0.0));
        prop_assert_eq!(names.iter().map(|k| reasons.probabilities[*k]).collect::<Vec<_>>(), expected.probabilities);
        prop_assert_eq!((reasons.gain, reasons.entropy), (expected.gain, expected.entropy));
        prop_assert_eq!((reasons.negative, reasons.action), (expected.negative, expected.action));
    }

    #[test]
    fn a_discrepancy_is_not_negative_and_a_product_is_symmetric(
        kernel in kernels(), n in 1usize..8, d in 1usize..6, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (x, s, t) = (normal((n, d), &mut rng), normal((n, d), &mut rng), normal((n, d), &mut rng));
        let own = product(&kernel, &x, &s, &s);
        // Rounding of a sum of n² terms no larger than the diagonal's.
        let unit = 1e-13 * own.matrix.diag().sum();
        prop_assert!(own.v >= -unit, "{}", own.v);
        let at = particles(&x, &Session::open::<Flex>(Precision::F64).unwrap());
        let form = SteinForm::new(&kernel, &at).unwrap().unwrap();
        let constant = form.constant();
        prop_assert!(constant > 0.0 || (n == 1 && constant == 0.0), "{}", constant);
        prop_assert!(own.u.is_some() == (n > 1));
        let (there, back) = (product(&kernel, &x, &s, &t), product(&kernel, &x, &t, &s));
        prop_assert!((there.v - back.v).abs() < 1e-12 * (1.0 + there.v.abs()), "{} {}", there.v, back.v);
        for ((i, j), value) in there.matrix.indexed_iter() {
            prop_assert!((value - back.matrix[[j, i]]).abs() < 1e-11 * (1.0 + value.abs()));
        }
    }

    #[test]
    fn a_discrepancy_is_the_squared_length_of_the_direction(
        h in 0.5f64..20.0, n in 1usize..6, d in 1usize..4, seed in any::<u64>(),
    ) {
        // ⟨φ, φ⟩ = (1/N) Σ_j [s_j·φ(x_j) + div φ(x_j)] by the reproducing property, with div φ by central differences.
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (x, s) = (normal((n, d), &mut rng), normal((n, d), &mut rng));
        let step = 1e-5;
        let mut length = 0.0;
        for (xj, sj) in x.rows().into_iter().zip(s.rows()) {
            let at = xj.to_owned();
            length += sj.dot(&slow_direction(h, &x, &s, &at));
            for c in 0..d {
                let mut ends = [at.clone(), at.clone()];
                ends[0][c] += step;
                ends[1][c] -= step;
                let [up, down] = ends.map(|end| slow_direction(h, &x, &s, &end)[c]);
                length += (up - down) / (2.0 * step);
            }
        }
        length /= n as f64;
        let got = product(&Kernel::Rbf(fixed(h)), &x, &s, &s).v;
        // Central differences: 1e-10 of truncation and 1e-11 of rounding, with derivatives of order 10.
        prop_assert!((got - length).abs() < 1e-7 * (1.0 + length), "{got}, not {length}");
    }

    #[test]
    fn products_with_all_clients_add_up_to_that_with_their_mean(
        kernel in kernels(), clients in 1usize..6, n in 1usize..6, d in 1usize..5, seed in any::<u64>(),
    ) {
        // Lemma 3: Σ_m ⟨φ_k, φ_m⟩ = K ⟨φ_k, φ'⟩. And Σ_k HIP_k = K ‖φ'‖² ≥ 0.
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let session = Session::open::<Flex>(Precision::F64).unwrap();
        let form = SteinForm::new(&kernel, &particles(&normal((n, d), &mut rng), &session)).unwrap().unwrap();
        let scores: Vec<_> = (0..clients).map(|_| particles(&normal((n, d), &mut rng), &session)).collect();
        let hip = inner_products(&form, &scores).unwrap();
        for (score, hip) in scores.iter().zip(&hip) {
            let sum: f64 = scores.iter().map(|other| form.product(score, other).unwrap().v).sum();
            prop_assert!((sum - clients as f64 * hip).abs() < 1e-10 * (1.0 + sum.abs()), "{sum}, {hip}");
        }
        prop_assert!(hip.iter().sum::<f64>() > -1e-10);
        if clients == 1 {
            let own = form.product(&scores[0], &scores[0]).unwrap().v;
            prop_assert!((hip[0] - own).abs() < 1e-12 * (1.0 + own));
        }
    }

    #[test]
    fn the_direction_turns_with_the_particles_of_an_isotropic_target(
        kernel in kernels(), n in 1usize..8, d in 1usize..6, variance in 0.1f64..5.0, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let x = normal((n, d), &mut rng);
        let turn = rotation(d, &mut rng);
        let of = |x: &Array2<f64>| phi(&kernel, x, &x.mapv(|value| -value / variance));
        let difference = of(&x.dot(&turn.t())) - of(&x).dot(&turn.t());
        // Scores of order 10 at most, sums over six coordinates and eight particles.
        prop_assert!(difference.iter().all(|value| value.abs() < 1e-11 / variance), "{difference}");
    }

    #[test]
    fn probabilities_are_a_distribution_under_every_policy(
        given in indicators(), negative in negatives(), floor in 0.0f64..1.0,
    ) {
        let (plain, _) = probabilities(&given, negative);
        let measure = measured(Measure::Hip, given.clone());
        let reasons = draw(1, floor).select(1, &measure, negative).reasons.unwrap();
        for p in [&plain, &reasons.probabilities] {
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{p:?}");
            prop_assert!(p.iter().all(|p| *p >= 0.0), "{p:?}");
        }
        let least = floor / given.len() as f64;
        prop_assert!(reasons.probabilities.iter().all(|p| *p >= least * (1.0 - 1e-12)), "{reasons:?}");
        // A larger indicator is never less likely, so the bound never loses (Chebyshev's sum inequality).
        let (mean, variance) = moments(&given);
        prop_assert!(reasons.gain >= -1e-9 * (mean.abs() + variance.sqrt()), "{reasons:?}");
        prop_assert!((-1e-12..=1.0 + 1e-12).contains(&reasons.entropy), "{reasons:?}");
        prop_assert!(reasons.negative == given.iter().filter(|value| **value < 0.0).count());
        for (i, a) in given.iter().enumerate() {
            for (j, b) in given.iter().enumerate() {
                prop_assert!(a > b || plain[i] <= plain[j] + 1e-15, "{given:?}: {plain:?}");
            }
        }
    }

    #[test]
    fn the_gain_of_a_discrepancy_is_its_variance_over_its_mean(
        given in prop::collection::vec(0.01f64..100.0, 1..9), floor in 0.0f64..1.0,
    ) {
        // (18): Δ/ε = Var S/mean S, of which a uniform share of the draw takes its part.
        let (mean, variance) = moments(&given);
        let want = variance / mean;
        let gain = |floor| {
            let selection = draw(1, floor).select(1, &measured(Measure::Ksd, given.clone()), Negative::Clip);
            selection.reasons.unwrap().gain
        };
        prop_assert!((gain(0.0) - want).abs() < 1e-10 * (1.0 + want), "{}, not {want}", gain(0.0));
        prop_assert!((gain(floor) - (1.0 - floor) * want).abs() < 1e-10 * (1.0 + want));
    }

    #[test]
    fn a_draw_repeats_no_client_and_takes_those_of_positive_probability_first(
        given in indicators(), per_round in 1usize..12, round in 1usize..1000,
    ) {
        let selection = draw(per_round, 0.0).select(round, &measured(Measure::Hip, given.clone()), Negative::Clip);
        let drawn = selection.clients;
        prop_assert_eq!(drawn.len(), per_round.min(given.len()));
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(sorted.len(), drawn.len());
        let p = selection.reasons.unwrap().probabilities;
        let likely = p.iter().filter(|p| **p > 0.0).count();
        for (place, client) in drawn.iter().enumerate() {
            prop_assert!(p[*client] > 0.0 || place >= likely, "{p:?}: {drawn:?}");
        }
    }
}

#[test]
fn the_entropy_of_a_selection_is_a_share_of_that_of_a_uniform_one() {
    // numpy: −Σ p ln p/ln K of p = (.4, 0, .3, .2, .1) with K = 5; the gain Σ p S − mean S is 3 − 2.
    let measure = measured(Measure::Ksd, vec![4.0, 0.0, 3.0, 2.0, 1.0]);
    let reasons = draw(1, 0.0).select(1, &measure, Negative::Clip).reasons.unwrap();
    let close = Tolerance { rtol: 1e-12, atol: 0.0 };
    assert_close(&[reasons.entropy, reasons.gain], &[0.7952181416542043, 1.0], close, "entropy and gain");
    let reasons = draw(1, 0.0).select(1, &measured(Measure::Ksd, vec![2.5; 7]), Negative::Clip).reasons.unwrap();
    assert_close(&[reasons.entropy], &[1.0], close, "entropy of a uniform selection");
}

#[test]
fn uninformative_values_leave_the_selection_uniform() {
    for values in [vec![f64::NAN, 1.0], vec![1.0, f64::INFINITY], vec![0.0, 0.0], vec![-1.0, -3.0]] {
        let (p, action) = probabilities(&values, Negative::Clip);
        assert_eq!((p, action), (vec![0.5, 0.5], Action::Uniform), "{values:?}");
    }
    let (p, action) = probabilities(&[3.0, 3.0], Negative::Shift);
    assert_eq!((p, action), (vec![0.5, 0.5], Action::Uniform));
    let (p, action) = probabilities(&[3.0, 3.0], Negative::Softmax { temperature: None });
    assert_eq!((p, action), (vec![0.5, 0.5], Action::Uniform));
    assert_eq!(probabilities(&[4.0, -1.0], Negative::Clip), (vec![1.0, 0.0], Action::Clipped));
}

#[test]
fn the_softmax_over_standard_deviations_does_not_depend_on_units() {
    let given = [-3.0, 0.5, 2.0, 7.0];
    let (_, variance) = moments(&given);
    let of = |scale: f64| probabilities(&given.map(|value| scale * value), Negative::Softmax { temperature: None }).0;
    let weights = given.map(|value| (value / variance.sqrt()).exp());
    let want = weights.map(|weight| weight / weights.iter().sum::<f64>());
    for scale in [1.0, 1e-6, 1e9] {
        assert_close(&of(scale), &want, Tolerance { rtol: 1e-12, atol: 0.0 }, "softmax");
    }
}

#[test]
fn the_keys_of_a_config_say_what_becomes_of_negative_inner_products() {
    // Of 3, 1 and −2: cut, 3/4 and 1/4; shifted by 2, 5/8 and 3/8; e^(x/2) over their sum; the same over the standard
    // deviation √(38/9) = 2.0548.
    let halves = [0.6896720861, 0.2537161816, 0.0566117322];
    let deviations = [0.6823291842, 0.2577998966, 0.0598709193];
    for (keys, want, action) in [
        ("", [0.75, 0.25, 0.0], Action::Clipped),
        ("negative = \"clip\"\nsoftmax_temperature = 2.0", [0.75, 0.25, 0.0], Action::Clipped),
        ("negative = \"shift\"", [0.625, 0.375, 0.0], Action::Shifted),
        ("negative = \"softmax\"\nsoftmax_temperature = 2.0", halves, Action::Softmax),
        ("negative = \"softmax\"\nsoftmax_temperature = \"sd\"", deviations, Action::Softmax),
        ("negative = \"softmax\"", deviations, Action::Softmax),
        // A share of the draw is uniform.
        ("negative = \"shift\"\nfloor = 0.3", [0.5375, 0.3625, 0.1], Action::Shifted),
    ] {
        let text = format!("[algorithm]\nkind = \"dsvgd\"\n[schedule]\nkind = \"hip\"\n{keys}");
        let setup =
            ScheduleSetup { clients: 3, per_round: 1, streams: Streams::new(17), svgd_bandwidth: Bandwidth::default() };
        let mut schedule = experiment(&text).config.schedule.build(setup);
        let selection = schedule.select(1, Some(&measured(Measure::Hip, vec![3.0, 1.0, -2.0]))).unwrap();
        let reasons = selection.reasons.unwrap();
        assert_eq!(reasons.action, action, "{keys}");
        assert_close(&reasons.probabilities, &want, Tolerance { rtol: 0.0, atol: 1e-10 }, keys);
    }
}

/// Pearson's statistic of counts over those that can occur.
fn chi_square(counts: &[f64], probabilities: &[f64]) -> f64 {
    let total: f64 = counts.iter().sum();
    let terms = counts.iter().zip(probabilities).filter(|(_, p)| **p > 0.0);
    terms.map(|(count, p)| (count - total * p).powi(2) / (total * p)).sum()
}

#[test]
fn clients_are_drawn_as_often_as_their_probabilities_say() {
    const ROUNDS: usize = 20_000;
    let measure = measured(Measure::Ksd, vec![4.0, 0.0, 3.0, 2.0, 1.0]);
    for floor in [0.0, 0.3] {
        let (mut counts, mut p) = ([0.0; 5], Vec::new());
        for round in 1..=ROUNDS {
            let selection = draw(1, floor).select(round, &measure, Negative::Clip);
            counts[selection.clients[0]] += 1.0;
            p = selection.reasons.unwrap().probabilities;
        }
        // Four degrees of freedom at most: 23.5 is exceeded with probability 1e-4. The seed is fixed.
        let statistic = chi_square(&counts, &p);
        assert!(statistic < 23.5, "floor {floor}: {counts:?}, χ² = {statistic}");
        assert!(floor > 0.0 || counts[1] == 0.0, "{counts:?}");
    }
}

#[test]
fn the_second_of_two_is_drawn_from_the_rest() {
    const ROUNDS: usize = 20_000;
    let p = [0.5, 0.3, 0.2];
    let measure = measured(Measure::Ksd, p.to_vec());
    let mut counts = [0.0; 9];
    for round in 1..=ROUNDS {
        let drawn = draw(2, 0.0).select(round, &measure, Negative::Clip).clients;
        counts[3 * drawn[0] + drawn[1]] += 1.0;
    }
    let pair = |at: usize| if at / 3 == at % 3 { 0.0 } else { p[at / 3] * p[at % 3] / (1.0 - p[at / 3]) };
    let want: Vec<f64> = (0..9).map(pair).collect();
    // Five degrees of freedom: 25.7 is exceeded with probability 1e-4.
    let statistic = chi_square(&counts, &want);
    assert!(statistic < 25.7, "{counts:?}, χ² = {statistic}");
}

#[test]
fn of_one_particle_the_discrepancy_is_the_norm_of_its_score_and_the_inner_product_that_of_two() {
    let (x, s, t) = (array![[0.3, -2.0, 7.0]], array![[1.0, 2.0, -2.0]], array![[4.0, 0.5, 1.0]]);
    let by_median = Bandwidth::default();
    for kernel in
        [Kernel::Rbf(by_median), Kernel::Imq { bandwidth: by_median, exponent: -0.5 }, Kernel::Mixture(by_median)]
    {
        assert_eq!(product(&kernel, &x, &s, &s).v, 9.0, "{kernel:?}");
        assert_eq!(product(&kernel, &x, &s, &t).v, 3.0, "{kernel:?}");
    }
    // A bandwidth of the config stays: with h = 2 the trace adds 2d/h = 3.
    assert_close(
        &[product(&Kernel::Rbf(fixed(2.0)), &x, &s, &s).v],
        &[12.0],
        Tolerance { rtol: 1e-12, atol: 0.0 },
        "fixed",
    );
}
