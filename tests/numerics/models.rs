//! What golden numbers of the models cannot show: autodiff against closed forms and against ordinary modules, priors
//! against finite differences and against their own draws.

use crate::common::{Tolerance, assert_close, blocks, host, normal, with_layout};
use crate::golden_models::{batch, one_hot, regression_network, rows};
use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::{Device, Tensor, activation};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::models::{
    Activation, Architecture, BlrConfig, BnnConfig, Forward, Layout, MixtureConfig, MixturePrior, Model, Network,
    Prior, PriorTerm, ReplicatedConfig, WeightPrecision,
};
use ndarray::{Array1, Array2, Axis};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

// ----------------------------------------------------------------------------------- autodiff against closed forms

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
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
    let theta = 0.5 * normal((n, p + 1), &mut rng);
    let x = normal((rows_in_batch, p), &mut rng);
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
    let x = normal((9, 3), &mut rng);
    let ones = ndarray::concatenate![Axis(1), x, Array2::ones((9, 1))];
    let labels: Vec<usize> = (0..9).map(|row| row % 2).collect();
    let theta = normal((4, 5), &mut rng);
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
    let theta = normal((2, model.layout().dim()), &mut rng);
    let batch = batch(&normal((5, 2), &mut rng), &one_hot(&[0, 2, 1, 1, 0], 3), &session);
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
        // Burn's own sigmoid is in f32 here.
        #[cfg(feature = "ndarray")]
        {
            let (_, other, _) = score_with::<NdArray>(activation);
            assert_close(&other, &score, Tolerance { rtol: 1e-12, atol: 1e-12 }, &format!("{activation:?} on ndarray"));
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
    let theta = 0.7 * normal((3, ours.layout().dim()), &mut rng);
    let transposed: Vec<f64> =
        theta.rows().into_iter().flat_map(|row| transpose_weights(row.as_slice().unwrap(), ours.layout())).collect();
    let transposed = Array2::from_shape_vec(theta.raw_dim(), transposed).unwrap();
    let x = normal((11, 7), &mut rng);
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
        let theta = 0.8 * normal((3, layout.dim()), &mut rng);
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

#[test]
fn the_learned_precision_of_a_network_starts_with_the_rate_as_a_scale() {
    // Gamma(a, scale b) has the mean a·b and the variance a·b²: 0.1 for the paper's a = 1 and b = 0.1. Its prior, with the
    // rate b, has the mean a/b = 10.
    const DRAWS: usize = 4000;
    for (shape, rate) in [(1.0, 0.1), (2.5, 3.0)] {
        let weight_precision = WeightPrecision::Learned { shape, rate };
        let model = Network::new(BnnConfig { weight_precision, ..BnnConfig::classifier(3, &[2], 2) });
        let layout = model.layout();
        let at = layout.blocks()[layout.position("log_precision").unwrap()].offset;
        let mut rng = rng(21);
        let precisions: Vec<f64> = (0..DRAWS).map(|_| model.initial(&mut rng)[at].exp()).collect();
        let (mean, variance) = moments(&precisions);
        // Five standard errors of the mean, 1/√(a n) of it; the variance has a long tail.
        let bound = 5.0 / (shape * DRAWS as f64).sqrt();
        assert!((mean / (shape * rate) - 1.0).abs() < bound, "a = {shape}, b = {rate}: mean {mean}");
        assert!((variance / (shape * rate * rate) - 1.0).abs() < 0.3, "a = {shape}, b = {rate}: variance {variance}");
    }
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
