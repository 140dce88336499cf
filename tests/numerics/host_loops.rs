//! The CPU's own loops over coordinates against general tensor operations in f64: Gram matrices, SVGD steps, every
//! optimiser; the same bits at any number of threads.

use std::sync::Arc;

use crate::common::{particles, values, with_layout};
use fedstein::backend::{Flex, Precision, Session};
use fedstein::datasets::{Dataset, FeatureScale, Normalisation, Targets};
use fedstein::density::{Kde, KdeBandwidth, KdeConfig, KdeMode, Likelihood, LikelihoodScale, LogDensity};
use fedstein::error::RunError;
use fedstein::models::{BlrConfig, BnnConfig, Layout, Model, Network};
use fedstein::particles::Particles;
use fedstein::random::Streams;
use fedstein::rows::{Minibatches, Order, Shard, Table};
use fedstein::stein::{
    AccumulatorStart, Bandwidth, EpsilonPlace, Kernel, Optimizer, OptimizerState, Precisions, Score, Svgd, direction,
    reference,
};
use ndarray::{Array2, s};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;
use rand_distr::{Distribution, StandardNormal};

/// Blocks of 4,097·3, 3, 6 and 2 columns: whole and broken tiles and vectors, and threads for all but the fewest
/// particles.
fn layout() -> Arc<Layout> {
    Network::new(BnnConfig::classifier(4097, &[3], 2)).layout().clone()
}

/// Around a mean that is large against the spread, so that lost digits would show.
fn rows(count: usize, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let d = layout().dim();
    Array2::from_shape_simple_fn((count, d), || {
        let z: f64 = StandardNormal.sample(&mut rng);
        // Rounded to f32, so that both precisions start from the same numbers.
        f64::from((0.7 + 0.05 * z) as f32)
    })
}

fn session(precision: Precision) -> Session {
    Session::open::<Flex>(precision).unwrap()
}

fn set(rows: &Array2<f64>, precision: Precision) -> Particles {
    with_layout(rows, &layout(), &session(precision))
}

fn largest_relative(got: &[f64], want: &[f64]) -> f64 {
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |most: f64, value| most.max(value.abs()));
    let error = largest(&mut got.iter().zip(want).map(|(a, b)| a - b));
    error / largest(&mut want.iter().copied())
}

const COUNTS: [usize; 8] = [1, 2, 4, 5, 9, 11, 20, 26];

#[test]
fn gram_matrices_agree_with_f64() {
    for count in COUNTS {
        let (x, y, centre) = (rows(count, 1), rows(count + 1, 2), rows(1, 3));
        let of = |precision| {
            let [x, y, centre] = [&x, &y, &centre].map(|rows| set(rows, precision));
            [x.gram(&y), x.centred_gram(), x.gram_with_offsets(&y, &centre)].map(|gram| gram.unwrap())
        };
        for (kind, (got, want)) in of(Precision::F32).iter().zip(of(Precision::F64)).enumerate() {
            assert_eq!(got.dim(), want.dim());
            if count > 1 || got.ncols() > 1 {
                let (got, want): (Vec<_>, Vec<_>) = (got.iter().copied().collect(), want.iter().copied().collect());
                let error = largest_relative(&got, &want);
                assert!(error < 1e-6, "{count} particles, product {kind}: {error}");
            }
        }
        // Not one digit is lost to the mean of 0.7: against the products of the differences themselves.
        let offsets = &x - &x.mean_axis(ndarray::Axis(0)).unwrap();
        let (got, want) = (set(&x, Precision::F32).centred_gram().unwrap(), offsets.dot(&offsets.t()));
        let error = got.iter().zip(&want).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
        assert!(error < 1e-6 * want.diag().sum().max(1e-3), "{count} particles: {error}");
    }
}

/// Rows no longer than a vector or two, and many of them: products are formed otherwise there.
#[test]
fn gram_matrices_of_many_short_rows_agree_with_f64() {
    let layout = Network::new(BlrConfig::new(54)).layout().clone();
    for count in [31, 32, 33, 65, 100] {
        let mut rng = ChaCha12Rng::seed_from_u64(9);
        let rows = Array2::from_shape_simple_fn((count, 55), || {
            let z: f64 = StandardNormal.sample(&mut rng);
            f64::from((0.7 + 0.5 * z) as f32)
        });
        let [short, exact] = [Precision::F32, Precision::F64].map(|precision| {
            let x = with_layout(&rows, &layout, &session(precision));
            [x.gram(&x), x.centred_gram()].map(|gram| gram.unwrap())
        });
        for (got, want) in short.iter().zip(&exact) {
            let (got, want): (Vec<_>, Vec<_>) = (got.iter().copied().collect(), want.iter().copied().collect());
            assert!(largest_relative(&got, &want) < 1e-6, "{count} particles");
        }
    }
}

#[test]
fn products_of_rows_and_distances_from_a_centre_agree_with_f64() {
    for count in COUNTS {
        let (x, y, centre) = (rows(count, 1), rows(count, 2), rows(1, 3));
        let of = |precision| {
            let [x, y, centre] = [&x, &y, &centre].map(|rows| set(rows, precision));
            [x.row_products(&y), x.squared_norms(), x.squared_distances_from(&centre)].map(|numbers| numbers.unwrap())
        };
        for (got, want) in of(Precision::F32).iter().zip(of(Precision::F64)) {
            assert!(largest_relative(got, &want) < 1e-6, "{count} particles");
        }
        // From the rows themselves.
        let want: Vec<f64> = x.outer_iter().zip(y.outer_iter()).map(|(x, y)| x.dot(&y)).collect();
        assert!(largest_relative(&of(Precision::F64)[0], &want) < 1e-12, "{count} particles");
    }
}

#[test]
fn sums_of_matched_sets_agree_with_f64_and_take_the_named_rows() {
    let sets: Vec<_> = (0..5).map(|seed| rows(4, seed)).collect();
    let weights = [0.1, 0.4, 0.0, 0.25, 0.25];
    let matched: Vec<Vec<usize>> =
        [[0, 1, 2, 3], [3, 2, 1, 0], [1, 1, 1, 1], [2, 0, 3, 1], [0, 2, 1, 3]].map(Vec::from).into();
    let mut want = Array2::<f64>::zeros(sets[0].dim());
    for ((set, weight), rows) in sets.iter().zip(weights).zip(&matched) {
        for (to, from) in rows.iter().enumerate() {
            want.row_mut(to).scaled_add(weight, &set.row(*from));
        }
    }
    for (precision, tolerance) in [(Precision::F32, 1e-6), (Precision::F64, 1e-14)] {
        let sets: Vec<_> = sets.iter().map(|rows| set(rows, precision)).collect();
        let sum = Particles::weighted_sum(&sets, &weights, Some(&matched));
        let got: Vec<f64> = values(&sum);
        let wanted: Vec<f64> = want.iter().copied().collect();
        assert!(largest_relative(&got, &wanted) < tolerance, "{precision:?}");
        // With their own rows and weights of one it is the sum, and N times the mean by index.
        let [sum, mean] = [Particles::weighted_sum(&sets, &[1.0; 5], None), Particles::mean_of(&sets).unwrap()];
        let apart = sum.zip(mean, |sum, mean| sum - mean.mul_scalar(5.0)).squared_norms().unwrap();
        assert!(apart.iter().all(|norm| *norm < 1e-8), "{apart:?}");
    }
    assert!(Particles::mean_of(&[]).is_none());
}

fn optimizers() -> Vec<Optimizer> {
    let (lr, epsilon) = (0.01, 1e-6);
    let adam = |beta1, beta2| Optimizer::Adam { lr, epsilon: 1e-8, beta1, beta2 };
    // 1 − β of the last one has one digit of a 32-bit β.
    let mut all = vec![Optimizer::Sgd { lr }, adam(0.9, 0.999), adam(1.0 - 1e-6, 1.0 - 1e-7)];
    for place in [EpsilonPlace::Outside, EpsilonPlace::Inside] {
        all.push(Optimizer::AdaGradSum { lr, epsilon, place });
        for init in [AccumulatorStart::G2, AccumulatorStart::Zero] {
            all.push(Optimizer::AdaGrad { lr, epsilon, momentum: 0.9, init, place });
        }
    }
    all
}

/// Where Θ starts.
const START: u64 = 7;

/// λ with which many centres have weight at each particle, and with which a single one has all of it.
const LAMBDAS: [f64; 2] = [4.0, 0.1];

/// A density of centres anywhere, or with the small λ of one centre near each particle's start.
fn density(count: usize, seed: u64, precision: Precision, lambda: f64) -> Kde {
    let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(lambda) };
    let centres = rows(count, seed);
    let near = |from: f64, to: f64| f64::from((from + 0.02 * (to - from)) as f32);
    let centres = if lambda < 1.0 {
        ndarray::Zip::from(&rows(count, START)).and(&centres).map_collect(|a, b| near(*a, *b))
    } else {
        centres
    };
    Kde::new(&set(&centres, precision), config).unwrap()
}

/// Precisions near 20, `[N, d]`, 0 in the third block, and the factors of those of the first block: a number for each
/// output, `[N, 3]`, and one for each input, `[1, 4097]`.
fn precisions(count: usize) -> [Array2<f64>; 3] {
    let mut precisions = rows(count, 9).mapv(|value| f64::from((30.0 * value) as f32));
    let (outputs, inputs) = (precisions.slice(s![.., ..3]).to_owned(), rows(1, 10).slice(s![.., ..4097]).to_owned());
    for ((n, output), w) in outputs.indexed_iter() {
        precisions.slice_mut(s![n, output * 4097..(output + 1) * 4097]).assign(&(&inputs.row(0) * *w));
    }
    precisions.slice_mut(s![.., 3 * 4098..3 * 4098 + 6]).fill(0.0);
    [precisions, outputs, inputs]
}

/// Gaussians around other rows, with these precisions.
fn gaussian(count: usize, precision: Precision) -> Score {
    let [whole, outputs, inputs] = precisions(count);
    let [outputs, inputs] = [outputs, inputs].map(|factor| session(precision).matrix(&factor));
    let whole = set(&whole, precision);
    let mut blocks: Vec<_> = whole.blocks().iter().cloned().map(Precisions::of_coordinates).map(Some).collect();
    blocks[0] = Some(Precisions::of_layer(outputs, inputs));
    blocks[2] = None;
    Score::gaussian(set(&rows(count, 8), precision), Arc::new(blocks))
}

/// A score with all terms of a cavity's, and more: two dense scores, a multiple of Θ, two densities, Gaussians.
fn score(at: &Particles, precision: Precision, lambda: f64) -> Score {
    let count = at.count();
    let kde = |seed| density(count, seed, precision, lambda).score(at).unwrap();
    let dense = |seed| Score::dense(set(&rows(count, seed).mapv(|value| 40.0 * (value - 0.7)), precision));
    let linear = dense(4).plus(dense(3)).plus(Score::multiple(count, -2.5));
    let gaussians = gaussian(count, precision).minus(gaussian(count, precision).times(0.3));
    linear.plus(kde(5)).minus(kde(6)).plus(gaussians)
}

/// Θ after three steps, by the CPU's loop where it has one, or by `evaluate` and `step`.
fn walk(count: usize, optimizer: Optimizer, precision: Precision, lambda: f64, in_one_pass: bool) -> Vec<f64> {
    let (mut x, mut state) = (set(&rows(count, START), precision), OptimizerState::default());
    for _ in 0..3 {
        let phi = direction(&Kernel::default(), &x, score(&x, precision, lambda)).unwrap();
        x = if in_one_pass {
            optimizer.follow(x, phi, &mut state)
        } else {
            let phi = phi.evaluate(&x);
            optimizer.step(x, phi, &mut state)
        };
    }
    assert_eq!(state.steps, 3);
    values(&x)
}

#[test]
fn a_step_in_one_pass_is_the_step_of_tensor_operations() {
    for (count, lambda) in COUNTS.into_iter().flat_map(|count| LAMBDAS.map(|lambda| (count, lambda))) {
        for optimizer in optimizers() {
            let want = walk(count, optimizer, Precision::F64, lambda, false);
            for (precision, in_one_pass) in [(Precision::F32, true), (Precision::F32, false), (Precision::F64, true)] {
                let got = walk(count, optimizer, precision, lambda, in_one_pass);
                // A φ near 0 loses its digits, and an adaptive rule moves by its sign: in the mean, not the worst case.
                let moved = |from: &[f64]| from.iter().zip(&want).map(|(a, b)| (a - b).abs()).sum::<f64>();
                let error = moved(&got) / moved(&values(&set(&rows(count, START), Precision::F64)));
                let bound = if precision == Precision::F64 { 1e-12 } else { 2e-4 };
                assert!(
                    error < bound,
                    "{count} particles, λ = {lambda}, {optimizer:?}, one pass {in_one_pass}: {error}"
                );
            }
        }
    }
}

/// Where particles are more than coordinates, the centres of a density are summed before the kernel is applied.
#[test]
fn a_density_moves_many_particles_of_few_coordinates_by_the_gradient_of_its_logarithm() {
    let (d, lambda, lr) = (3, 0.5, 0.1);
    for (count, centres) in [(2, 5), (3, 3), (4, 40), (40, 5), (150, 150)] {
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        let [x, c] = [count, centres].map(|rows| {
            let draw = |z: f64| f64::from((0.7 + z) as f32);
            Array2::from_shape_simple_fn((rows, d), || draw(StandardNormal.sample(&mut rng)))
        });
        // Σ_j w_ij (c_j − x_i)/λ² with w_ij in proportion to exp(−|c_j − x_i|²/(2λ²)).
        let score = Array2::from_shape_fn((count, d), |(i, k)| {
            let weight = |j: usize| (-(&c.row(j) - &x.row(i)).pow2().sum() / (2.0 * lambda * lambda)).exp();
            let total: f64 = (0..centres).map(weight).sum();
            (0..centres).map(|j| weight(j) / total * (c[[j, k]] - x[[i, k]]) / (lambda * lambda)).sum()
        });
        let [theta, of_theta] = [&x, &score].map(|rows| session(Precision::F64).matrix(rows));
        let want = reference::direction(&theta, of_theta, Bandwidth::default()).unwrap();
        let want = want.try_into_vec_as::<f64>().unwrap();
        for (precision, bound) in [(Precision::F32, 2e-5), (Precision::F64, 1e-12)] {
            let [x, c] = [&x, &c].map(|rows| particles(rows, &session(precision)));
            let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(lambda) };
            let score = Kde::new(&c, config).unwrap().score(&x).unwrap();
            let phi = direction(&Kernel::default(), &x, score).unwrap();
            let error = largest_relative(&values(&phi.evaluate(&x)), &want);
            assert!(error < bound, "{count} particles, {centres} centres, {precision:?}: {error}");
            let from = values(&x);
            let moved = values(&Optimizer::Sgd { lr }.follow(x, phi, &mut OptimizerState::default()));
            let step: Vec<f64> = moved.iter().zip(from).map(|(to, from)| (to - from) / lr).collect();
            let error = largest_relative(&step, &want);
            assert!(error < bound, "{count} particles, {centres} centres, {precision:?}, a step: {error}");
        }
    }
}

/// Classifiers with three hidden units, and a client's rows of `inputs` features.
fn client(inputs: usize, rows: usize, precision: Precision) -> (Arc<dyn Model>, Likelihood) {
    let model: Arc<dyn Model> = Arc::new(Network::new(BnnConfig::classifier(inputs, &[3], 2)));
    let mut rng = ChaCha12Rng::seed_from_u64(3);
    let features = Array2::from_shape_simple_fn((rows, inputs), || StandardNormal.sample(&mut rng));
    let targets =
        Targets::Classes { labels: (0..rows).map(|row| row % 2).collect(), names: vec!["a".into(), "b".into()] };
    let train = Dataset::new("rows", features, targets).unwrap();
    let table = Table::new(train, &Normalisation { features: FeatureScale::Identity, target: None });
    let shard = Shard::new(table, (0..rows).collect(), session(precision));
    let minibatches = Minibatches::new(Order::SequentialRestart, rows, rows, Streams::new(1), 0);
    (model.clone(), Likelihood::new(model, shard, minibatches, LikelihoodScale::Full, 1.0))
}

/// Two steps along a client's score and a density's, in one pass. The rows are fewer than the inputs, so that the first
/// layer's gradient stays a product in f32.
fn follow_likelihood(count: usize, inputs: usize, rows: usize, optimizer: Optimizer, precision: Precision) -> Vec<f64> {
    let (model, mut likelihood) = client(inputs, rows, precision);
    let mut rng = ChaCha12Rng::seed_from_u64(4);
    let layout = model.layout();
    let mut rows_of = |scale: f64| {
        let value = || scale * f64::from(Distribution::<f32>::sample(&StandardNormal, &mut rng));
        Array2::from_shape_simple_fn((count, layout.dim()), value).mapv(|value| f64::from(value as f32))
    };
    let [mut x, centres] = [rows_of(0.1), rows_of(0.1)].map(|rows| with_layout(&rows, layout, &session(precision)));
    let config = KdeConfig { mode: KdeMode::Exact, bandwidth: KdeBandwidth::Fixed(4.0) };
    let (density, mut state) = (Kde::new(&centres, config).unwrap(), OptimizerState::default());
    for _ in 0..2 {
        let score = likelihood.next_score(&x, 1.0).times(0.5).plus(density.score(&x).unwrap());
        let phi = direction(&Kernel::default(), &x, score).unwrap();
        x = optimizer.follow(x, phi, &mut state);
    }
    values(&x)
}

#[test]
fn a_gradient_that_is_never_stored_moves_particles_as_one_that_is() {
    // Groups of particles of every size; whole and broken vectors, one and several tiles of an output; one and many rows.
    for (count, inputs, rows) in [(4, 40, 5), (5, 97, 1), (9, 64, 33), (11, 2100, 7), (20, 97, 96), (26, 1024, 6)] {
        for optimizer in optimizers() {
            let [got, want] = [Precision::F32, Precision::F64]
                .map(|precision| follow_likelihood(count, inputs, rows, optimizer, precision));
            let mean = |of: &mut dyn Iterator<Item = f64>| of.map(f64::abs).sum::<f64>() / want.len() as f64;
            let error = mean(&mut got.iter().zip(&want).map(|(got, want)| got - want));
            // A step of an adaptive rule is about 0.01 for each coordinate, as in the test above.
            let step = mean(&mut want.iter().copied()).min(0.01);
            assert!(error < 2e-4 * step, "{count} particles, {inputs} inputs, {rows} rows, {optimizer:?}: {error}");
        }
    }
}

#[test]
fn the_norms_of_a_gradient_that_is_not_stored_are_those_of_the_gradient() {
    let (model, mut likelihood) = client(97, 33, Precision::F32);
    let values = rows(6, 2).slice(s![.., ..model.layout().dim()]).mapv(|value| value - 0.7);
    let x = with_layout(&values, model.layout(), &session(Precision::F32));
    let score = likelihood.next_score(&x, 0.0);
    let (got, want) = (score.row_norms().unwrap(), score.evaluate(&x).row_norms().unwrap());
    assert!(want.iter().all(|norm| *norm > 1.0) && largest_relative(&got, &want) < 1e-5, "{got:?}, not {want:?}");
}

#[test]
fn the_scores_of_gaussians_are_precisions_times_distances_from_the_means() {
    for (count, factor) in [1, 2, 20].into_iter().flat_map(|count| [1.0, -0.5].map(|factor| (count, factor))) {
        let at = rows(count, START);
        let [precisions, ..] = precisions(count);
        let closed = (&rows(count, 8) - &at) * &precisions * factor;
        let x = set(&at, Precision::F64);
        let score = gaussian(count, Precision::F64).times(factor).evaluate(&x);
        let error = values(&score).iter().zip(&closed).fold(0.0f64, |most, (got, want)| most.max((got - want).abs()));
        assert!(error < 1e-12, "{count} particles, times {factor}: {error}");

        // A step along them as the only term, in one pass, is that along their rows.
        let optimizer = Optimizer::Sgd { lr: 0.01 };
        let step = |x: Particles, score: Score| {
            let phi = direction(&Kernel::default(), &x, score).unwrap();
            values(&optimizer.follow(x, phi, &mut OptimizerState::default()))
        };
        let want = step(x, Score::dense(set(&closed, Precision::F64)));
        let got = step(set(&at, Precision::F32), gaussian(count, Precision::F32).times(factor));
        let moved = want.iter().zip(&at).fold(0.0f64, |most, (to, from)| most.max((to - from).abs()));
        let error = got.iter().zip(&want).fold(0.0f64, |most, (got, want)| most.max((got - want).abs()));
        // Θ is near 0.7, whose last digit in f32 is 6e-8.
        assert!(error < 1e-6 && moved > 1e-4, "{count} particles, times {factor}: {error} of {moved}");
    }
}

#[test]
fn weights_that_an_evaluator_reuses_change_no_bit() {
    for (count, lambda) in COUNTS.into_iter().flat_map(|count| LAMBDAS.map(|lambda| (count, lambda))) {
        let svgd = Svgd { kernel: Kernel::default(), optimizer: optimizers()[3] };
        let (towards, from) = (density(count, 5, Precision::F32, lambda), density(count, 6, Precision::F32, lambda));
        let score =
            |at: &Particles| -> Result<_, RunError> { Ok(towards.score(at)?.minus(from.score(at)?.times(0.5))) };
        let start = set(&rows(count, START), Precision::F32);
        let longest_step = svgd.optimizer.longest_step(start.dim());
        let [mut to, mut off] = [&towards, &from].map(|density| density.evaluator(longest_step));
        let reusing = |at: &Particles| Ok(to.score(at)?.minus(off.score(at)?.times(0.5)));
        let got = svgd.run::<RunError>(start.clone(), 30, &mut OptimizerState::default(), reusing, |_| {}).unwrap();
        let (mut want, mut state) = (start, OptimizerState::default());
        for _ in 0..30 {
            let phi = direction(&svgd.kernel, &want, score(&want).unwrap()).unwrap();
            want = svgd.optimizer.follow(want, phi, &mut state);
        }
        assert_eq!(values(&got), values(&want), "{count} particles, λ = {lambda}");
    }
}

#[test]
fn results_are_the_same_bits_at_any_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let optimizer = optimizers()[1];
            let mut moved = LAMBDAS.map(|lambda| walk(20, optimizer, Precision::F32, lambda, true)).concat();
            moved.extend(follow_likelihood(20, 2100, 40, optimizer, Precision::F32));
            let x = set(&rows(20, START), Precision::F32);
            let gram = x.centred_gram().unwrap();
            moved.into_iter().chain(gram).map(f64::to_bits).collect::<Vec<_>>()
        })
    };
    let one = on(1);
    for threads in [2, 3, 5] {
        assert!(on(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_set_that_is_shared_is_not_changed() {
    let x = set(&rows(5, 1), Precision::F32);
    let (held, before) = (x.clone(), values(&x));
    let phi = direction(&Kernel::default(), &x, score(&x, Precision::F32, 4.0)).unwrap();
    let moved = Optimizer::Sgd { lr: 1.0 }.follow(x, phi, &mut OptimizerState::default());
    assert_eq!(values(&held), before);
    assert_ne!(values(&moved), before);
}
