//! Assignments, Wasserstein distances and barycenters against golden cases, and the laws that distances and barycenters obey.
//!
//! The golden file's entropic (Sinkhorn) case is left out: fedstein solves transport exactly. Source: FedWBA eq.
//! (3)-(5).

use std::sync::Arc;

use crate::common::{Case, assert_close, flat, golden, matrix, normal, particles, values, with_layout};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::models::Layout;
use fedstein::ot::{
    Barycenter, BarycenterConfig, Eq5, Iterate, ParticleSet, TransportError, assign, barycenter, cost_matrix,
    index_mean, wasserstein2_squared,
};
use fedstein::particles::Particles;
use ndarray::{Array1, Array2, Axis, array};
use proptest::prelude::*;
use rand::rngs::ChaCha12Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

fn sets(count: usize, shape: (usize, usize), rng: &mut ChaCha12Rng) -> Vec<Array2<f64>> {
    (0..count).map(|_| normal(shape, rng)).collect()
}

fn shuffled(rows: &Array2<f64>, rng: &mut ChaCha12Rng) -> Array2<f64> {
    let mut order: Vec<usize> = (0..rows.nrows()).collect();
    order.shuffle(rng);
    rows.select(Axis(0), &order)
}

/// ω of sum 1, none 0.
fn random_weights(count: usize, rng: &mut ChaCha12Rng) -> Vec<f64> {
    let raw: Vec<f64> = (0..count).map(|_| rng.random_range(0.1..1.0)).collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|weight| weight / sum).collect()
}

pub fn host_costs(x: &Array2<f64>, y: &Array2<f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), y.nrows()), |(i, j)| (&x.row(i) - &y.row(j)).mapv(|v| v * v).sum())
}

fn f64_session() -> Session {
    Session::open::<Flex>(Precision::F64).unwrap()
}

fn try_solve(
    clients: &[Array2<f64>],
    weights: Option<&[f64]>,
    initial: &Array2<f64>,
    config: &BarycenterConfig,
) -> Result<Barycenter, TransportError> {
    let session = f64_session();
    let clients: Vec<_> = clients.iter().map(|rows| particles(rows, &session)).collect();
    barycenter(&clients, weights, &particles(initial, &session), config)
}

fn solve(clients: &[Array2<f64>], weights: Option<&[f64]>, initial: &Array2<f64>) -> Barycenter {
    try_solve(clients, weights, initial, &BarycenterConfig::default()).unwrap()
}

fn rows(particles: &Particles) -> Array2<f64> {
    Array2::from_shape_vec((particles.count(), particles.dim()), values(particles)).unwrap()
}

fn far(got: &Array2<f64>, want: &Array2<f64>) -> f64 {
    (got - want).fold(0.0, |most, value| value.abs().max(most))
}

/// Rows in the order of their first coordinate: a set, whatever its labels.
fn as_set(rows: &Array2<f64>) -> Array2<f64> {
    let mut order: Vec<usize> = (0..rows.nrows()).collect();
    order.sort_by(|a, b| rows[[*a, 0]].total_cmp(&rows[[*b, 0]]));
    rows.select(Axis(0), &order)
}

// ------------------------------------------------------------------------------------------------- golden cases

/// Costs of a case: a matrix, or a formula in words.
fn golden_costs(case: &Case) -> Array2<f64> {
    let (a, b, c, m) = match case.input("cost").as_str() {
        None => return matrix(case.input("cost")),
        Some("(7*i + 13*j + i*j) mod 17, i and j from 0") => (7, 13, 1, 17),
        Some("(31*i + 17*j + 3*i*j) mod 101, i and j from 0") => (31, 17, 3, 101),
        Some(other) => panic!("unknown formula {other}"),
    };
    let n = case.number("N") as usize;
    Array2::from_shape_fn((n, n), |(i, j)| ((a * i + b * j + c * i * j) % m) as f64)
}

fn check_assignment(case: &Case, precision: Precision) {
    let mut cost = golden_costs(case);
    if precision == Precision::F32 {
        cost.mapv_inplace(|value| f64::from(value as f32));
    }
    let got = assign(cost.view()).unwrap();
    assert_close(&[got.total], &flat(case.expected("total")), case.tolerance(precision), case.name());
    check_permutation(&got.permutation, case);
}

fn check_permutation(got: &[usize], case: &Case) {
    let mut columns = got.to_vec();
    columns.sort_unstable();
    assert!(columns.into_iter().eq(0..got.len()), "{}: {got:?} is not a permutation", case.name());
    if !case.expected("perm").is_null() {
        let want: Vec<usize> = flat(case.expected("perm")).into_iter().map(|column| column as usize).collect();
        assert_eq!(got, want, "{}", case.name());
    }
}

fn check_distance<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let [a, b] = ["A", "B"].map(|key| particles(&matrix(case.input(key)), &session));
    let got = wasserstein2_squared(&a, &b).unwrap();
    assert_close(&[got], &flat(case.expected("W2_sq")), case.tolerance(precision), case.name());
    check_permutation(&assign(cost_matrix(&a, &b).unwrap().view()).unwrap().permutation, case);
}

fn check_assignments_and_distances<B: Backend>(precision: Precision) {
    let cases = golden("assignment_ot");
    let (entropic, exact): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.name().starts_with("Sinkhorn"));
    assert_eq!((entropic.len(), exact.len()), (1, 13));
    for case in exact {
        if case.input("cost").is_null() {
            check_distance::<B>(case, precision);
        } else {
            check_assignment(case, precision);
        }
    }
}

#[test]
fn golden_assignments_and_distances_in_f64() {
    check_assignments_and_distances::<Flex>(Precision::F64);
}

#[test]
fn golden_assignments_and_distances_in_f32() {
    check_assignments_and_distances::<Flex>(Precision::F32);
}

#[cfg(feature = "ndarray")]
#[test]
fn golden_assignments_and_distances_on_ndarray() {
    check_assignments_and_distances::<NdArray>(Precision::F32);
}

fn check_barycenter<B: Backend>(case: &Case, precision: Precision) {
    let session = Session::open::<B>(precision).unwrap();
    let of = |rows| particles(&matrix(rows), &session);
    let clients: Vec<_> = case.input("clients").as_array().unwrap().iter().map(of).collect();
    let weights = (!case.input("weights").is_null()).then(|| flat(case.input("weights")));
    let stop = case.input("stop");
    let config = BarycenterConfig {
        tolerance: stop["sum_sq_displacement_le"].as_f64().unwrap(),
        max_iterations: stop["max_iterations"].as_u64().unwrap() as usize,
        ..BarycenterConfig::default()
    };
    let from = |initial: &Particles, config: &BarycenterConfig| {
        barycenter(&clients, weights.as_deref(), initial, config).unwrap()
    };
    let initial = of(case.input("X_init"));
    let check = |got: &[f64], key: &str| {
        let what = format!("{} ({}): {key}", case.name(), B::NAME);
        assert_close(got, &flat(case.expected(key)), case.tolerance(precision), &what);
    };

    let step = from(&initial, &BarycenterConfig { iterate: Iterate::OneStep, ..config });
    check(&values(&step.particles), "one_step");
    assert_eq!(step.iterations(), 1);
    let rest = from(&initial, &config);
    check(&values(&rest.particles), "fixed_point");
    check(&rest.displacement_sq, "displacement_sq");
    check(&[rest.iterations() as f64], "iterations");
    check(&[rest.objective], "objective");
    check(&values(&rest.particles.mean()), "mean_of_all");
    if case.name().contains("X_init = mean over clients of particle i") {
        let got = values(&from(&index_mean(&clients).unwrap(), &config).particles);
        check(&got, "fixed_point");
    }
}

fn check_barycenters<B: Backend>(precision: Precision) {
    let cases = golden("barycenter");
    assert!(cases.iter().any(|case| case.name().contains("X_init = mean over clients of particle i")));
    cases.iter().for_each(|case| check_barycenter::<B>(case, precision));
}

#[test]
fn golden_barycenters_in_f64() {
    check_barycenters::<Flex>(Precision::F64);
}

#[test]
fn golden_barycenters_in_f32() {
    check_barycenters::<Flex>(Precision::F32);
}

#[cfg(feature = "ndarray")]
#[test]
fn golden_barycenters_on_ndarray() {
    check_barycenters::<NdArray>(Precision::F32);
}

// ---------------------------------------------------------------------------------------- distances, barycenters

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_barycenter_keeps_the_weighted_mean(k in 1usize..6, n in 1usize..9, d in 1usize..6, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let weights = random_weights(k, &mut rng);
        let mean_row = |rows: &Array2<f64>| rows.mean_axis(Axis(0)).unwrap();
        let want = clients.iter().zip(&weights).fold(Array1::<f64>::zeros(d), |sum, (rows, w)| sum + *w * mean_row(rows));
        let got = mean_row(&rows(&solve(&clients, Some(&weights), &initial).particles));
        prop_assert!((&got - &want).iter().all(|gap| gap.abs() < 1e-12), "{got} {want}");
    }

    #[test]
    fn the_objective_never_rises(k in 2usize..6, n in 2usize..12, d in 1usize..4, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let weights = random_weights(k, &mut rng);
        let got = solve(&clients, Some(&weights), &initial);
        prop_assert_eq!(got.objectives.len(), got.iterations());
        let path: Vec<f64> = got.objectives.iter().copied().chain([got.objective]).collect();
        for pair in path.windows(2) {
            prop_assert!(pair[1] <= pair[0] * (1.0 + 1e-12), "{path:?}");
        }
        // It is the distance that it claims to be.
        let session = f64_session();
        let distance = |rows| wasserstein2_squared(&got.particles, &particles(rows, &session)).unwrap();
        let want: f64 = clients.iter().zip(&weights).map(|(rows, weight)| weight * distance(rows)).sum();
        prop_assert!((got.objective - want).abs() < 1e-12 * (1.0 + want), "{} {want}", got.objective);
    }

    #[test]
    fn a_barycenter_moves_with_its_clients(k in 1usize..5, n in 1usize..8, d in 1usize..5, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let shift = 10.0 * normal((1, d), &mut rng);
        let moved: Vec<_> = clients.iter().map(|rows| rows + &shift).collect();
        let (here, there) = (solve(&clients, None, &initial), solve(&moved, None, &(&initial + &shift)));
        prop_assert!(far(&rows(&there.particles), &(rows(&here.particles) + &shift)) < 1e-11);
        prop_assert_eq!(here.iterations(), there.iterations());
    }

    #[test]
    fn labels_of_the_initial_set_label_the_result(k in 1usize..5, n in 1usize..8, d in 1usize..5, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut rng);
        let got = solve(&clients, None, &initial.select(Axis(0), &order));
        let want = rows(&solve(&clients, None, &initial).particles).select(Axis(0), &order);
        prop_assert!(far(&rows(&got.particles), &want) < 1e-12);
    }

    #[test]
    fn the_order_of_a_clients_particles_does_not_matter(
        k in 1usize..5, n in 1usize..8, d in 1usize..5, seed in any::<u64>(),
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let others: Vec<_> = clients.iter().map(|rows| shuffled(rows, &mut rng)).collect();
        let (got, want) = (solve(&others, None, &initial), solve(&clients, None, &initial));
        prop_assert!(far(&rows(&got.particles), &rows(&want.particles)) < 1e-12);
    }

    #[test]
    fn copies_of_one_set_give_that_set(k in 1usize..6, n in 1usize..9, d in 1usize..5, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let set = normal((n, d), &mut rng);
        let copies: Vec<_> = (0..k).map(|_| shuffled(&set, &mut rng)).collect();
        let got = solve(&copies, None, &normal((n, d), &mut rng));
        prop_assert!(far(&as_set(&rows(&got.particles)), &as_set(&set)) < 1e-12);
        prop_assert!(got.objective < 1e-12, "{}", got.objective);
    }

    #[test]
    fn a_set_is_at_distance_0_from_its_copies(n in 1usize..12, d in 1usize..6, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (set, session) = (normal((n, d), &mut rng), f64_session());
        let copy = particles(&shuffled(&set, &mut rng), &session);
        prop_assert_eq!(wasserstein2_squared(&particles(&set, &session), &copy).unwrap(), 0.0);
    }

    #[test]
    fn distances_are_symmetric_and_obey_the_triangle(n in 1usize..9, d in 1usize..5, seed in any::<u64>()) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let session = f64_session();
        let [a, b, c] = [0; 3].map(|_| particles(&normal((n, d), &mut rng), &session));
        let distance = |x, y| wasserstein2_squared(x, y).unwrap().sqrt();
        prop_assert!((distance(&a, &b) - distance(&b, &a)).abs() < 1e-12);
        prop_assert!(distance(&a, &c) <= distance(&a, &b) + distance(&b, &c) + 1e-12);
    }

    #[test]
    fn the_printed_factor_shrinks_the_barycenter_by_n_squared(
        k in 1usize..5, n in 2usize..9, d in 1usize..5, one in any::<bool>(), seed in any::<u64>(),
    ) {
        // Matchings are the same, for they do not depend on the scale of X; rest is when they repeat, for the shrunken
        // steps are below any other tolerance earlier.
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let (clients, initial) = (sets(k, (n, d), &mut rng), normal((n, d), &mut rng));
        let iterate = if one { Iterate::OneStep } else { Iterate::FixedPoint };
        let of = |eq5| {
            let config = BarycenterConfig { tolerance: 0.0, iterate, eq5, ..BarycenterConfig::default() };
            try_solve(&clients, None, &initial, &config).unwrap()
        };
        let (right, printed) = (of(Eq5::N), of(Eq5::Paper));
        prop_assert_eq!(right.iterations(), printed.iterations());
        let unshrunken = rows(&printed.particles) * (n * n) as f64;
        prop_assert!(far(&unshrunken, &rows(&right.particles)) < 1e-11);
    }
}

#[test]
fn the_weights_of_clients_that_do_not_count_are_0() {
    let mut rng = ChaCha12Rng::seed_from_u64(5);
    let (clients, initial) = (sets(3, (4, 2), &mut rng), normal((4, 2), &mut rng));
    let got = solve(&clients, Some(&[0.0, 1.0, 0.0]), &initial);
    assert!(far(&as_set(&rows(&got.particles)), &as_set(&clients[1])) < 1e-12);
}

#[test]
fn the_iteration_converges_for_duplicates_and_identical_clients() {
    let twice = array![[1.0, 2.0], [1.0, 2.0], [-3.0, 0.5], [-3.0, 0.5]];
    let clients = vec![twice.clone(); 3];
    let got = solve(&clients, None, &twice);
    assert!(far(&rows(&got.particles), &twice) < 1e-12);
    assert_eq!((got.iterations(), got.identity_share), (1, 1.0));

    let point = Array2::from_elem((4, 2), 0.7);
    let got = solve(&[point.clone(), point.clone()], None, &point);
    assert!(far(&rows(&got.particles), &point) < 1e-12);
    assert_eq!((got.cost_contrast, got.identity_share), (0.0, 1.0));
}

#[test]
fn diagnostics_have_their_definitions() {
    // From 0 and 10 client 0 is met in order, at 1 + 1, and client 1 crosswise, at 4 + 4.
    let clients = [array![[-1.0], [11.0]], array![[12.0], [2.0]]];
    let got = solve(&clients, None, &array![[0.0], [10.0]]);
    assert_eq!(got.identity_share, 0.5);
    let spread = |costs: [f64; 4]| {
        let mean = costs.iter().sum::<f64>() / 4.0;
        (costs.iter().map(|cost| (cost - mean).powi(2)).sum::<f64>() / 4.0).sqrt() / mean
    };
    let want = 0.5 * (spread([1.0, 121.0, 121.0, 1.0]) + spread([144.0, 4.0, 4.0, 64.0]));
    assert!((got.cost_contrast - want).abs() < 1e-12, "{} {want}", got.cost_contrast);
    assert!((got.objectives[0] - 0.5 * (1.0 + 4.0)).abs() < 1e-12);
    // 0.5 and 11.5 are 1.5 and 0.5 from the particles of either client.
    assert_eq!(values(&got.particles), [0.5, 11.5]);
    assert!((got.objective - 0.5 * (1.5f64.powi(2) + 0.5f64.powi(2))).abs() < 1e-12);
}

#[test]
fn a_limit_on_updates_is_kept() {
    let case = golden("barycenter").into_iter().find(|case| case.name().contains("several updates")).unwrap();
    let clients: Vec<_> = case.input("clients").as_array().unwrap().iter().map(matrix).collect();
    let config = BarycenterConfig { max_iterations: 2, ..BarycenterConfig::default() };
    let got = try_solve(&clients, None, &matrix(case.input("X_init")), &config).unwrap();
    assert_eq!(got.iterations(), 2);
    assert!(got.displacement_sq[1] > config.tolerance);
}

// ------------------------------------------------------------------------------------------------- bad input

#[test]
fn sets_that_do_not_belong_together_are_named() {
    let session = f64_session();
    let of = |n, d| particles(&Array2::ones((n, d)), &session);
    let solve = |clients: &[Particles]| {
        barycenter(clients, None, &of(3, 4), &BarycenterConfig::default()).unwrap_err().to_string()
    };
    assert!(solve(&[]).contains("no clients"));
    let message = solve(&[of(3, 4), of(5, 4)]);
    assert!(message.contains("client 1 has 5 particles and the initial set has 3"), "{message}");
    assert!(solve(&[of(3, 6)]).contains("client 0 and the initial set differ in their parameter blocks"));
    let other = with_layout(&Array2::ones((3, 4)), &Layout::new([("c", [4].as_slice())]).into(), &session);
    assert!(solve(&[of(3, 4), of(3, 4), other]).contains("client 2 and the initial set differ"));
    let single = particles(&Array2::ones((3, 4)), &Session::open::<Flex>(Precision::F32).unwrap());
    assert!(solve(&[single]).contains("client 0 holds F32 and the initial set holds F64"));

    assert_eq!(index_mean(&[]).unwrap_err(), TransportError::NoClients);
    let (first, second) = (ParticleSet::Client(0), ParticleSet::Client(1));
    let unequal = TransportError::Count { set: second, got: 2, reference: first, expected: 3 };
    assert_eq!(index_mean(&[of(3, 4), of(2, 4)]).unwrap_err(), unequal);
    let message = wasserstein2_squared(&of(3, 4), &of(2, 4)).unwrap_err().to_string();
    assert!(message.contains("the second set has 2 particles and the first set has 3"), "{message}");
}

#[test]
fn particles_that_are_not_finite_are_named() {
    let good = Array2::from_shape_fn((3, 2), |(i, j)| (i * 2 + j) as f64);
    for value in [f64::NAN, f64::INFINITY, 1e200] {
        let mut bad = good.clone();
        bad[[2, 1]] = value;
        let config = BarycenterConfig::default();
        let of_client = try_solve(&[good.clone(), bad.clone()], None, &good, &config).unwrap_err();
        assert_eq!(of_client, TransportError::NotFinite { set: ParticleSet::Client(1), particle: 2 });
        let of_start = try_solve(std::slice::from_ref(&good), None, &bad, &config).unwrap_err();
        assert_eq!(of_start, TransportError::NotFinite { set: ParticleSet::Initial, particle: 2 });
    }
}

#[test]
fn invalid_settings_of_a_barycenter_are_errors() {
    let set = Array2::from_shape_fn((3, 2), |(i, j)| (i * 2 + j) as f64);
    let two = [set.clone(), set.clone()];
    let weighted =
        |weights: &[f64]| try_solve(&two, Some(weights), &set, &BarycenterConfig::default()).unwrap_err().to_string();
    assert!(weighted(&[1.0]).contains("1 weights for 2 clients"));
    assert!(weighted(&[1.5, -0.5]).contains("client 1 is -0.5"));
    assert!(weighted(&[f64::NAN, 1.0]).contains("client 0 is NaN"));
    assert!(weighted(&[0.5, 0.6]).contains("sum to 1.1"));
    let configured = |config: BarycenterConfig| try_solve(&two, None, &set, &config).unwrap_err().to_string();
    let default = BarycenterConfig::default();
    assert!(configured(BarycenterConfig { max_iterations: 0, ..default }).contains("max_iterations is 0"));
    assert!(configured(BarycenterConfig { tolerance: -1.0, ..default }).contains("tolerance is -1"));
    assert!(configured(BarycenterConfig { tolerance: f64::NAN, ..default }).contains("tolerance is NaN"));
}

// --------------------------------------------------------------------------------------------- high dimension

/// Sets in the dimension of the MNIST network 784-100-10 whose common part is far longer than their differences.
fn networks(count: usize, seed: u64) -> Vec<Array2<f64>> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let common = normal((1, 79_510), &mut rng);
    (0..count).map(|_| (0.01 * normal((10, 79_510), &mut rng) + &common).mapv(|v| f64::from(v as f32))).collect()
}

#[test]
fn costs_keep_their_digits_in_single_precision_and_high_dimension() {
    let [x, y] = networks(2, 3).try_into().unwrap();
    let session = Session::open::<Flex>(Precision::F32).unwrap();
    let (a, b) = (particles(&x, &session), particles(&y, &session));
    let want = host_costs(&x, &y);
    let error = |got: &Array2<f64>| far(&(got / &want), &Array2::ones(want.raw_dim()));
    let centred = error(&cost_matrix(&a, &b).unwrap());
    assert!(centred < 1e-4, "{centred}");
    let total = assign(want.view()).unwrap().total / 10.0;
    assert!((wasserstein2_squared(&a, &b).unwrap() / total - 1.0).abs() < 1e-4);

    // Without the common mean taken off first, this data would not pass.
    let (norms_a, norms_b) = (a.squared_norms().unwrap(), b.squared_norms().unwrap());
    let products = a.gram(&b).unwrap();
    let naive = Array2::from_shape_fn((10, 10), |(i, j)| norms_a[i] + norms_b[j] - 2.0 * products[[i, j]]);
    assert!(error(&naive) > 1e-4, "{}", error(&naive));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let sets = networks(4, 11);
    // One block: its 10 x 79,510 x 10 products are above the size from which Flex shares a matrix among threads.
    let layout = Arc::new(Layout::new([("theta", [79_510].as_slice())]));
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let session = Session::open::<Flex>(Precision::F32).unwrap();
            let sets: Vec<_> = sets.iter().map(|rows| with_layout(rows, &layout, &session)).collect();
            let got = barycenter(&sets[1..], None, &sets[0], &BarycenterConfig::default()).unwrap();
            let bits: Vec<u64> = values(&got.particles).iter().map(|value| value.to_bits()).collect();
            (bits, got.displacement_sq, got.objective)
        })
    };
    let (one, three) = (on(1), on(3));
    assert!(one == three, "{:?} {} against {:?} {}", one.1, one.2, three.1, three.2);
}
