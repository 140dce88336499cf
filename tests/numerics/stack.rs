//! Convolutional stacks: parameter counts and the order of a flat particle, scores against ordinary Burn modules and
//! against finite differences, the shapes that meet and those that do not, and the words of a config.

use crate::common::place::{Place, TINY, cells, numbers};
use crate::common::{Tolerance, assert_close, blocks, host, normal};
use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AvgPool2dConfig, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
#[cfg(feature = "ndarray")]
use fedstein::backend::NdArray;
use fedstein::backend::{Backend, Flex, Precision, Session};
use fedstein::experiment::Config;
use fedstein::experiment::schema::{Overrides, Source};
use fedstein::models::{
    Activation, Batch, BnnConfig, Forward, Head, LayerSpec, Layout, Model, Network, Pool, ReplicatedConfig,
    StackConfig, WeightInit,
};
use ndarray::Array2;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

const CLASSES: usize = 3;
const LENET: [&str; 10] =
    ["conv 16 5x5", "relu", "max-pool 2", "conv 32 5x5", "relu", "max-pool 2", "dense 120", "relu", "dense 84", "relu"];

/// A network with the shape of a row, a number of particles and a number of rows.
struct Case {
    name: &'static str,
    input: &'static [usize],
    layers: &'static [&'static str],
    particles: usize,
    rows: usize,
}

const fn case(
    name: &'static str,
    input: &'static [usize],
    layers: &'static [&'static str],
    particles: usize,
    rows: usize,
) -> Case {
    Case { name, input, layers, particles, rows }
}

const CASES: [Case; 12] = [
    case(
        "two blocks",
        &[3, 12, 14],
        &["conv 4 3x3", "relu", "max-pool 2", "conv 5 2x2", "relu", "max-pool 2", "dense 6", "relu"],
        3,
        5,
    ),
    case("one particle", &[2, 7, 7], &["conv 3 3x3", "relu", "conv 4 3x3", "relu", "dense 5", "tanh"], 1, 4),
    case("one row", &[2, 7, 7], &["conv 3 3x3", "relu", "conv 4 3x3", "relu", "dense 5", "tanh"], 3, 1),
    case("one channel, odd sizes", &[7, 9], &["conv 3 2x2", "tanh", "max-pool 2", "conv 2 3x3", "silu"], 3, 4),
    case(
        "strides and zeros",
        &[2, 9, 8],
        &["conv 3 3x3 stride 2 pad 1", "gelu", "conv 4 3x3 stride 2 pad 2", "relu", "dense 4", "sigmoid"],
        2,
        4,
    ),
    case("same", &[2, 5, 6], &["conv 3 5x3 same", "relu", "conv 3 3x1 same", "relu", "avg-pool 2"], 2, 3),
    case(
        "steps beyond the kernel",
        &[2, 11, 10],
        &["conv 3 2x2 stride 3", "relu", "conv 2 1x1 stride 2", "relu"],
        3,
        3,
    ),
    case(
        "windows that overlap",
        &[2, 9, 9],
        &["conv 3 3x3", "relu", "max-pool 3 stride 2", "avg-pool 2 stride 1"],
        2,
        3,
    ),
    // One channel a particle, before and after: Burn takes this for a depthwise convolution.
    case("depthwise", &[1, 6, 6], &["conv 1 3x3", "relu", "conv 1 2x2", "relu"], 4, 3),
    case("global average", &[2, 6, 7], &["conv 4 3x3 same", "relu", "conv 5 3x3", "relu", "global-avg-pool"], 3, 4),
    case("images that all particles share", &[2, 8, 8], &["avg-pool 2", "tanh", "conv 3 2x2", "max-pool 2"], 2, 3),
    case("no convolution", &[3, 4, 6], &["max-pool 2", "relu", "dense 5", "relu", "tanh", "dense 4"], 3, 4),
];

pub fn specs(layers: &[&str]) -> Vec<LayerSpec> {
    LayerSpec::read(layers).unwrap()
}

fn stack(input: &[usize], layers: &[&str], classes: usize) -> StackConfig {
    StackConfig::classifier(input, specs(layers), classes)
}

pub fn network(config: StackConfig) -> impl Model {
    Network::new(config.check().unwrap())
}

/// What goes into the models of a case: particles, features, classes.
fn material(case: &Case, d: usize) -> [Array2<f64>; 3] {
    let mut rng = ChaCha12Rng::seed_from_u64(31);
    let theta = 0.4 * normal((case.particles, d), &mut rng);
    let inputs = normal((case.rows, case.input.iter().product()), &mut rng);
    let labels: Vec<usize> = (0..case.rows).map(|_| rng.random_range(0..CLASSES)).collect();
    [theta, inputs, Array2::from_shape_fn((case.rows, CLASSES), |(row, c)| f64::from(u8::from(labels[row] == c)))]
}

// ---------------------------------------------------------------------------------------------- flat particles

#[test]
fn a_network_has_as_many_parameters_as_in_the_paper() {
    let d = |input: &[usize], layers: &[&str], classes| network(stack(input, layers, classes)).layout().dim();
    assert_eq!(d(&[3, 32, 32], &LENET, 10), 1_216 + 12_832 + 96_120 + 10_164 + 850);
    assert_eq!(d(&[3, 32, 32], &LENET, 100), 128_832);
    // The same on 28×28: 32 maps of 4×4 reach the first dense layer.
    assert_eq!(d(&[28, 28], &LENET, 10), (25 + 1) * 16 + 12_832 + (512 + 1) * 120 + 10_164 + 850);
    // Whatever is padded and pooled.
    let plain = "conv 32 3x3, relu, conv 64 3x3, relu, conv 128 3x3, relu, conv 256 3x3, relu, conv 100 3x3, relu, global-avg-pool";
    let pooled = "conv 32 3x3 same, relu, max-pool 2, conv 64 3x3 same, relu, max-pool 2, conv 128 3x3 same, relu, \
                  max-pool 2, conv 256 3x3 same, relu, conv 100 3x3 same, relu, global-avg-pool";
    for layers in [plain, pooled] {
        let layers: Vec<&str> = layers.split(", ").collect();
        assert_eq!(d(&[3, 32, 32], &layers, 100), 896 + 18_496 + 73_856 + 295_168 + 230_500 + 10_100);
    }
}

#[test]
fn a_flat_particle_holds_layer_by_layer_weight_then_bias() {
    let model = network(stack(&[3, 32, 32], &LENET, 10));
    let blocks: Vec<_> = model.layout().blocks().iter().map(|b| (b.name.as_str(), b.shape.clone(), b.offset)).collect();
    let want = [
        ("convs.0.weight", vec![16, 3, 5, 5], 0),
        ("convs.0.bias", vec![16], 1_200),
        ("convs.1.weight", vec![32, 16, 5, 5], 1_216),
        ("convs.1.bias", vec![32], 14_016),
        ("dense.0.weight", vec![120, 800], 14_048),
        ("dense.0.bias", vec![120, 1], 110_048),
        ("dense.1.weight", vec![84, 120], 110_168),
        ("dense.1.bias", vec![84, 1], 120_248),
        ("dense.2.weight", vec![10, 84], 120_332),
        ("dense.2.bias", vec![10, 1], 121_172),
    ];
    assert_eq!(blocks, want);
}

#[test]
fn first_weights_have_the_variance_of_their_rule_and_biases_are_zero() {
    // conv 64 3x3 on 16 channels of 3x3 pixels, then dense 64 -> 3: 9,216 weights make the sd of a variance 1.5 %.
    let (fan_in, fan_out) = (16.0 * 9.0, 64.0 * 9.0);
    for (init, variance, bound) in [
        (WeightInit::ScaledNormal, 1.0 / (fan_in + 1.0), f64::INFINITY),
        (WeightInit::KaimingUniform, 2.0 / fan_in, (6.0_f64 / fan_in).sqrt()),
        (WeightInit::XavierUniform, 2.0 / (fan_in + fan_out), (6.0_f64 / (fan_in + fan_out)).sqrt()),
    ] {
        let model = network(StackConfig { init, ..stack(&[16, 3, 3], &["conv 64 3x3", "relu"], CLASSES) });
        let theta = model.initial(&mut ChaCha12Rng::seed_from_u64(5));
        let of = |name: &str| {
            let block = &model.layout().blocks()[model.layout().position(name).unwrap()];
            &theta[block.offset..block.offset + block.size()]
        };
        let weights = of("convs.0.weight");
        let got = weights.iter().map(|w| w * w).sum::<f64>() / weights.len() as f64;
        assert!((got / variance - 1.0).abs() < 0.06, "{init:?}: {got}, not {variance}"); // four such sd
        assert!(weights.iter().all(|w| w.abs() <= bound), "{init:?}");
        assert!(of("convs.0.bias").iter().chain(of("dense.0.bias")).all(|b| *b == 0.0), "{init:?}");
    }
}

// ------------------------------------------------------------------------------- the particle axis against a loop

/// The same network as a user of Burn writes it, layer after layer as they are listed.
#[derive(Module, Debug)]
struct Ordinary {
    convs: Vec<Conv2d>,
    dense: Vec<Linear>,
    #[module(skip)]
    input: Vec<usize>,
    #[module(skip)]
    layers: Vec<LayerSpec>,
}

impl Ordinary {
    /// Sizes are read off our layout, which the tests above pin.
    fn new(input: &[usize], layers: &[LayerSpec], ours: &Layout, device: &Device) -> Self {
        let weights = || ours.blocks().iter().filter(|block| block.name.ends_with("weight"));
        let specs = layers.iter().filter_map(|layer| match *layer {
            LayerSpec::Conv { stride, pad, .. } => Some((stride, pad)),
            _ => None,
        });
        let conv = |(shape, (stride, [top, left])): (&Vec<usize>, (usize, [usize; 2]))| {
            Conv2dConfig::new([shape[1], shape[0]], [shape[2], shape[3]])
                .with_stride([stride; 2])
                .with_padding(PaddingConfig2d::Explicit(top, left, top, left))
                .init(device)
        };
        let convs = weights().map(|block| &block.shape).filter(|shape| shape.len() == 4).zip(specs).map(conv).collect();
        let dense = weights().filter(|block| block.shape.len() == 2);
        let dense = dense.map(|block| LinearConfig::new(block.shape[1], block.shape[0]).init(device)).collect();
        let input = if input.len() == 2 { [&[1], input].concat() } else { input.to_vec() };
        Self { convs, dense, input, layers: layers.to_vec() }
    }
}

impl Forward for Ordinary {
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let (mut convs, mut dense) = (self.convs.iter(), self.dense.iter());
        let [rows, _] = inputs.dims();
        let mut images = inputs.reshape([rows, self.input[0], self.input[1], self.input[2]]);
        for layer in &self.layers {
            images = match *layer {
                LayerSpec::Conv { .. } => convs.next().unwrap().forward(images),
                LayerSpec::Pool(Pool::Max { size, stride }) => {
                    MaxPool2dConfig::new([size; 2]).with_strides([stride; 2]).init().forward(images)
                }
                LayerSpec::Pool(Pool::Average { size, stride }) => {
                    AvgPool2dConfig::new([size; 2]).with_strides([stride; 2]).init().forward(images)
                }
                LayerSpec::Pool(Pool::GlobalAverage) => images.mean_dim(2).mean_dim(3),
                LayerSpec::Dense { .. } => {
                    let units = dense.next().unwrap().forward(images.flatten::<2>(1, 3));
                    units.unsqueeze_dim::<3>(2).unsqueeze_dim(3)
                }
                LayerSpec::Activation(activation) => activation.forward(images),
            };
        }
        dense.next().unwrap().forward(images.flatten(1, 3))
    }
}

/// A flat row of ours as Burn's modules lay it out: the weights of dense layers are transposed, and nothing else moves.
fn as_ordinary(row: &[f64], ours: &Layout) -> Vec<f64> {
    let block = |block: &fedstein::models::Block| {
        let values = row[block.offset..block.offset + block.size()].to_vec();
        if block.name.starts_with("dense") {
            let matrix = Array2::from_shape_vec((block.shape[0], block.shape[1]), values).unwrap();
            return matrix.t().iter().copied().collect();
        }
        values
    };
    ours.blocks().iter().flat_map(block).collect()
}

/// Log-likelihood, predictions and scores, the scores as flat rows.
fn answers<B: Backend>(model: &dyn Model, material: [&Array2<f64>; 3], precision: Precision) -> [Vec<f64>; 3] {
    let on = Session::open::<B>(precision).unwrap();
    let [theta, inputs, targets] = material;
    let theta = blocks(theta, model, &on);
    let batch = Batch::new(on.matrix(inputs), on.matrix(targets));
    let score = model.likelihood_score(&theta, &batch, 5.0);
    [
        host(model.log_likelihood(&theta, &batch)),
        host(model.predict(&theta, batch.inputs.clone())),
        host(Tensor::cat(model.prior().add_score(&theta, score, 1.0), 1)),
    ]
}

/// Relative to the largest number: sums that cancel have no relative error of their own.
pub fn assert_near(got: &[f64], want: &[f64], tolerance: f64, what: &str) {
    let largest = want.iter().fold(0.0_f64, |top, value| top.max(value.abs()));
    assert_close(got, want, Tolerance { rtol: 0.0, atol: tolerance * largest }, what);
}

fn compare_with_ordinary<B: Backend>(case: &Case, precision: Precision, tolerance: f64) {
    let ours = network(stack(case.input, case.layers, CLASSES));
    let (layout, layers) = (ours.layout().clone(), specs(case.layers));
    let looped = {
        let layout = layout.clone();
        let input = case.input;
        let build = move |device: &Device| Ordinary::new(input, &layers, &layout, device);
        Network::new(ReplicatedConfig::new(CLASSES, build))
    };
    assert_eq!(layout.dim(), looped.layout().dim(), "{}", case.name);
    let [theta, inputs, targets] = material(case, layout.dim());
    let rows = |theta: &[f64]| -> Vec<f64> {
        theta.chunks_exact(layout.dim()).flat_map(|row| as_ordinary(row, &layout)).collect()
    };
    let ordinary = Array2::from_shape_vec(theta.raw_dim(), rows(theta.as_slice().unwrap())).unwrap();

    let got = answers::<B>(&ours, [&theta, &inputs, &targets], precision);
    let want = answers::<Flex>(&looped, [&ordinary, &inputs, &targets], Precision::F64);
    let got = [got[0].clone(), got[1].clone(), rows(&got[2])];
    for ((got, want), part) in got.iter().zip(&want).zip(["log-likelihood", "predictions", "scores"]) {
        assert_near(got, want, tolerance, &format!("{} ({}, {precision:?}): {part}", case.name, B::NAME));
    }
}

#[test]
fn particles_in_one_pass_and_ordinary_modules_one_by_one_have_the_same_scores() {
    for case in &CASES {
        // Sums of at most some hundred terms, in units of 1e-16 and 6e-8.
        compare_with_ordinary::<Flex>(case, Precision::F64, 1e-12);
        compare_with_ordinary::<Flex>(case, Precision::F32, 1e-5);
        #[cfg(feature = "ndarray")]
        compare_with_ordinary::<NdArray>(case, Precision::F32, 1e-5);
    }
}

#[test]
fn the_score_of_a_stack_is_the_slope_of_its_log_likelihood() {
    let on = Session::open::<Flex>(Precision::F64).unwrap();
    for case in &CASES {
        let model = network(stack(case.input, case.layers, CLASSES));
        let d = model.layout().dim();
        let [theta, inputs, targets] = material(case, d);
        let batch = Batch::new(on.matrix(&inputs), on.matrix(&targets));
        let score = host(Tensor::cat(model.likelihood_score(&blocks(&theta, &model, &on), &batch, 1.0), 1));
        let moved = |j: usize, by: f64| {
            let mut theta = theta.clone();
            theta.column_mut(j).mapv_inplace(|value| value + by);
            host(model.log_likelihood(&blocks(&theta, &model, &on), &batch))
        };
        let h = 1e-6;
        for j in 0..d {
            for (n, (up, down)) in moved(j, h).into_iter().zip(moved(j, -h)).enumerate() {
                let (got, want) = (score[n * d + j], (up - down) / (2.0 * h));
                // Central differences of values of order 10: h² and ε/h, together some 1e-9.
                assert!((got - want).abs() < 1e-7, "{}, [{n}, {j}]: {got}, not {want}", case.name);
            }
        }
    }
}

#[test]
fn a_stack_of_dense_layers_is_the_bnn_bit_for_bit() {
    for init in [WeightInit::ScaledNormal, WeightInit::KaimingUniform, WeightInit::XavierUniform] {
        for head in [Head::Classes(CLASSES), Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 }] {
            for input in [&[12][..], &[3, 4], &[2, 2, 3]] {
                let layers = ["dense 6", "tanh", "dense 5", "tanh"];
                let ours = network(StackConfig { init, head, ..stack(input, &layers, CLASSES) });
                let hidden = BnnConfig::classifier(12, &[6, 5], CLASSES);
                let bnn = Network::new(BnnConfig { init, head, activation: Activation::Tanh, ..hidden });
                let first = |model: &dyn Model| model.initial(&mut ChaCha12Rng::seed_from_u64(7));
                assert_eq!(first(&ours), first(&bnn), "{init:?}, {head:?}, {input:?}");
                assert_eq!(ours.log_noise_precision(), bnn.log_noise_precision());
                assert_eq!(ours.prior(), bnn.prior());

                let mut rng = ChaCha12Rng::seed_from_u64(8);
                let theta = 0.5 * normal((3, bnn.layout().dim()), &mut rng);
                let inputs = normal((7, 12), &mut rng);
                let columns = if matches!(head, Head::Classes(_)) { CLASSES } else { 1 };
                let targets = Array2::from_shape_fn((7, columns), |(row, c)| f64::from(u8::from(row % columns == c)));
                let answers = |model: &dyn Model| answers::<Flex>(model, [&theta, &inputs, &targets], Precision::F32);
                assert_eq!(answers(&ours), answers(&bnn), "{init:?}, {head:?}, {input:?}");
            }
        }
    }
}

#[test]
fn an_embedding_is_what_the_last_layer_reads_and_there_is_none_below_the_first_dense_one() {
    let on = Session::open::<Flex>(Precision::F64).unwrap();
    let mut embedded = 0;
    for case in &CASES {
        let model = network(stack(case.input, case.layers, CLASSES));
        let [theta, inputs, _] = material(case, model.layout().dim());
        let (particles, inputs) = (blocks(&theta, &model, &on), on.matrix(&inputs));
        let hidden = case.layers.iter().filter(|layer| layer.starts_with("dense")).count();
        assert!(model.embed(&particles, inputs.clone(), hidden + 1).is_none(), "{}", case.name);
        let Some(embedding) = model.embed(&particles, inputs.clone(), 1) else {
            assert_eq!(hidden, 0, "{}", case.name);
            continue;
        };
        let [count, _, width] = embedding.dims();
        let [weight, bias] = [2, 1].map(|from_end| particles[particles.len() - from_end].clone());
        let weight = weight.reshape([count, CLASSES, width]).swap_dims(1, 2);
        let logits = embedding.matmul(weight) + bias.reshape([count, 1, CLASSES]);
        let got = host(burn::tensor::activation::log_softmax(logits, 2));
        assert_near(&got, &host(model.predict(&particles, inputs)), 1e-12, case.name);
        embedded += 1;
    }
    assert!(embedded > 3, "{embedded}");
}

// --------------------------------------------------------------------------------------------------- layers in words

#[test]
fn a_layer_reads_as_it_is_written() {
    let conv = |kernel, stride, pad| LayerSpec::Conv { outputs: 16, kernel, stride, pad };
    for (text, layer, written) in [
        ("conv 16 5x5", conv([5, 5], 1, [0, 0]), "conv 16 5x5"),
        ("conv 16 5x3 stride 2 pad 1", conv([5, 3], 2, [1, 1]), "conv 16 5x3 stride 2 pad 1"),
        ("conv 16 5x5 pad 1 stride 2", conv([5, 5], 2, [1, 1]), "conv 16 5x5 stride 2 pad 1"),
        ("conv 16 5x5 same", conv([5, 5], 1, [2, 2]), "conv 16 5x5 pad 2"),
        ("conv 16 5x3 same", conv([5, 3], 1, [2, 1]), "conv 16 5x3 same"),
        ("  max-pool   2 ", LayerSpec::Pool(Pool::Max { size: 2, stride: 2 }), "max-pool 2"),
        ("max-pool 3 stride 2", LayerSpec::Pool(Pool::Max { size: 3, stride: 2 }), "max-pool 3 stride 2"),
        ("avg-pool 2 stride 1", LayerSpec::Pool(Pool::Average { size: 2, stride: 1 }), "avg-pool 2 stride 1"),
        ("global-avg-pool", LayerSpec::Pool(Pool::GlobalAverage), "global-avg-pool"),
        ("dense 120", LayerSpec::Dense { outputs: 120 }, "dense 120"),
        ("silu", LayerSpec::Activation(Activation::Silu), "silu"),
    ] {
        assert_eq!(text.parse(), Ok(layer), "{text}");
        assert_eq!(layer.to_string(), written);
        assert_eq!(layer.to_string().parse(), Ok(layer), "{written}");
    }
}

#[test]
fn an_invalid_layer_is_refused_with_the_valid_forms() {
    let form = "it must read `conv OUT KxK [stride S] [pad P | same]`";
    for (text, problem) in [
        (
            "convolution 16 5x5",
            "it is not a layer; a layer is one of `conv OUT KxK [stride S] [pad P | same]`, `max-pool K",
        ),
        ("Relu", "`global-avg-pool`, `dense OUT`, `relu`, `tanh`, `sigmoid`, `gelu`, `silu`"),
        ("", "it is not a layer"),
        ("relu 2", "it is not a layer"),
        ("flatten", "a dense layer flattens its input by itself"),
        ("conv 16", form),
        ("conv 16 5x5 padding 1", form),
        ("conv 16 5x5 pad 1 same", form),
        ("conv 16 5x5 stride 1 stride 1", form),
        ("conv 16 5", "`5` must be the kernel's height and width, such as 5x5"),
        ("conv 16 5x", "`` must be a whole number from 1 to 1000000"),
        ("conv 0 5x5", "`0` must be a whole number from 1 to 1000000"),
        ("conv 16 0x5", "`0` must be a whole number from 1"),
        ("conv 16 5x5 stride 0", "`0` must be a whole number from 1"),
        ("conv 16 5x5 pad 5", "`pad 5` must be smaller than the kernel"),
        ("conv 16 5x5 pad -1", "`-1` must be a whole number from 0"),
        ("conv 16 4x4 same", "`same` needs a kernel of odd height and width"),
        ("max-pool", "it must read `max-pool K [stride S]`"),
        ("max-pool 2 2", "it must read `max-pool K [stride S]`"),
        ("max-pool 0", "`0` must be a whole number from 1"),
        ("avg-pool two", "`two` must be a whole number"),
        ("global-avg-pool 2", "it must read `global-avg-pool`"),
        ("dense", "it must read `dense OUT`"),
        ("dense +5", "`+5` must be a whole number"),
        ("dense 99999999999999999999999", "must be a whole number from 1 to 1000000"),
    ] {
        let message = LayerSpec::read(&["relu", text]).unwrap_err().to_string();
        assert!(message.starts_with(&format!("layer 2 `{text}`: ")), "{message}");
        assert!(message.contains(problem), "\"{problem}\" is not in \"{message}\"");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused_with_the_layer_and_its_input() {
    let wide = "conv 1000000 3x3";
    for (input, layers, problem) in [
        (
            &[1, 8, 10][..],
            &["conv 4 3x3", "max-pool 2", "conv 32 5x5"][..],
            "layer 3 `conv 32 5x5`: its input is 3×4 (height × width), smaller than the 5×5 kernel",
        ),
        (
            &[3, 2],
            &["conv 4 9x9 pad 2"],
            "layer 1 `conv 4 9x9 pad 2`: its input is 3×2 (height × width), smaller than the 9×9 kernel even with its padding",
        ),
        (
            &[3, 9],
            &["relu", "max-pool 4"],
            "layer 2 `max-pool 4`: its input is 3×9 (height × width), smaller than its 4×4 window",
        ),
        (
            &[54],
            &["conv 16 5x5"],
            "layer 1 `conv 16 5x5`: it needs an image, but a row has 54 features and no image shape",
        ),
        (
            &[54],
            &["tanh", "global-avg-pool"],
            "layer 2 `global-avg-pool`: it needs an image, but a row has 54 features",
        ),
        (&[2, 3, 4, 5], &["avg-pool 2"], "it needs an image, but a row has 120 features and no image shape"),
        (
            &[8, 8],
            &["dense 20", "relu", "conv 4 3x3"],
            "layer 3 `conv 4 3x3`: its input is 20 units, not an image; convolutions and pools must be before the first dense layer",
        ),
        (
            &[32, 32],
            &[wide, wide],
            "layer 2 `conv 1000000 3x3`: with it a particle has more than 2147483647 parameters",
        ),
        (
            &[1_000, 1_000],
            &["dense 2000", "dense 1000000"],
            "layer 2 `dense 1000000`: with it a particle has more than",
        ),
        (&[0, 4], &[], "every side of a row's shape must be at least 1"),
    ] {
        let message = stack(input, layers, CLASSES).check().unwrap_err().to_string();
        assert!(message.contains(problem), "\"{problem}\" is not in \"{message}\"");
    }
}

#[test]
fn shapes_that_just_fit_are_accepted() {
    for (input, layers, to_dense) in [
        (&[5, 5][..], &["conv 4 5x5"][..], 4),
        (&[3, 3], &["conv 4 5x5 pad 1"], 4),
        (&[1, 2], &["conv 2 3x3 same"], 2 * 2),
        (&[7, 5], &["max-pool 2"], 3 * 2),
        (&[7, 5], &["max-pool 3 stride 1"], 5 * 3),
        (&[2, 7, 8], &["conv 3 3x3 stride 2"], 3 * 3 * 3),
        (&[2, 7, 8], &["conv 3 3x3 stride 2 same"], 3 * 4 * 4),
        (&[2, 7, 8], &["conv 3 3x3 stride 9"], 3),
        (&[2, 7, 8], &["global-avg-pool"], 2),
        (&[9], &["relu"], 9),
        (&[9], &[], 9),
    ] {
        let model = network(stack(input, layers, CLASSES));
        let last = model.layout().blocks().iter().rfind(|block| block.name.ends_with("weight")).unwrap();
        assert_eq!(last.shape, [CLASSES, to_dense], "{input:?}, {layers:?}");
    }
}

// ------------------------------------------------------------------------------------------------- from a config

const SMALL: &str = "kind = \"stack\"\nlayers = [\"conv 4 3x3\", \"relu\", \"max-pool 2\", \"conv 6 2x2\", \"relu\", \"dense 12\", \"relu\"]";

#[test]
fn a_config_with_an_invalid_layer_is_refused_by_its_key() {
    let check = |model: &str| {
        let text = format!("[model]\nkind = \"stack\"\n{model}\n");
        Config::load(Source { name: "mine.toml", text: &text }, &Overrides::default()).map(|_| ()).map_err(Box::new)
    };
    assert!(check("layers = [\"conv 4 3x3\", \"relu\"]").is_ok());
    assert!(check("layers = []\ninit = \"xavier-uniform\"").is_ok());
    for (model, words) in [
        ("layers = [\"relu\", \"conw 4 3x3\"]", &["`model.layers`: layer 2 `conw 4 3x3`: it is not a layer"][..]),
        (
            "layers = \"relu\"",
            &["mine.toml, line 3", "`model.layers` cannot be", "a list of texts, such as [\"conv 16"],
        ),
        ("layers = [3]", &["`model.layers` cannot be [3]", "a list of texts"]),
        ("init = \"xavier-uniform\"", &["`model.layers` is missing", "a list of texts"]),
        ("layers = []\nactivation = \"relu\"", &["`model.activation` is not used by model kind `stack`"]),
    ] {
        let message = check(model).unwrap_err().to_string();
        words.iter().for_each(|word| assert!(message.contains(word), "\"{word}\" is not in \"{message}\""));
    }
}

#[test]
fn layers_that_do_not_fit_the_data_end_a_run_before_it_writes_files() {
    let refused = |data: &str, layers: &str, words: &[&str]| {
        let place = Place::new();
        place.write("mine.toml", format!("[data]\nkind = \"{data}\"\n[model]\nkind = \"stack\"\nlayers = {layers}\n"));
        place.refuses("train mine.toml --out run", words);
    };
    let small = "layer 2 `conv 4 7x7`: its input is 4×4 (height × width), smaller than the 7×7 kernel";
    refused("digits", "[\"max-pool 2\", \"conv 4 7x7\"]", &["model.layers, for the data `digits`", small]);
    let flat = "layer 1 `conv 4 3x3`: it needs an image, but a row has 20 features and no image shape";
    refused("twonorm", "[\"conv 4 3x3\"]", &["model.layers, for the data `twonorm`", flat]);
    refused("digits", "[\"conv 4 3\"]", &["`model.layers`: layer 1 `conv 4 3`", "such as 5x5"]);
    refused("mixture-1d", "[]", &["data kind `mixture-1d` is a toy density; it needs model kind `mixture`"]);
}

#[test]
fn a_run_learns_the_digits_and_predicts_from_what_it_left() {
    let place = Place::new();
    let digits = "[data]\nkind = \"digits\"\n[partition]\nclients = 2\n[algorithm]\nlocal_steps = 40\n";
    place.write("mine.toml", format!("{digits}[optimizer]\nlr = 0.01\n[model]\n{SMALL}\n"));
    place.works("train mine.toml --set rounds=2 --set algorithm.particles=4 --quiet --out run");
    let accuracy = place.json("run/summary.json")["evaluation"]["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.8, "accuracy {accuracy} on ten classes");
    assert_eq!(place.json("run/model.json")["feature_shape"], serde_json::json!([8, 8]));

    let row = vec!["7"; 64].join(",");
    place.write("new.csv", format!("{row}\n{row}\n"));
    let table = cells(&place.works("predict run --input new.csv").stdout);
    assert_eq!(table.len(), 3);
    let probabilities = numbers(&table[1][2..]);
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{probabilities:?}");
    // The run's own config repeats it.
    place.works(&format!("{TINY} --quiet --out again run/config.toml"));
}
