//! Compares a block with the four operations that it replaces, and with itself on other numbers of threads.

use burn::module::Param;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use pulp::{Scalar, WithSimd};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use super::backward::{BackwardTask, Output, turned};
use super::forward::{ForwardTask, packed};
use super::plan::Plan;
use super::scratch::Scratch;
use super::{BlockOptions, Lanes};
use crate::layer::{ParticleConv, Pool};
use crate::simd::dispatch;

/// Sizes of a block: particles, inputs, outputs, rows; height and width; kernel; stride; zeros; window and step; relu.
struct Case {
    sizes: [usize; 4],
    image: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    pad: [usize; 2],
    pool: Option<[usize; 2]>,
    relu: bool,
}

const fn case(
    sizes: [usize; 4],
    image: [usize; 2],
    [kernel, pad]: [[usize; 2]; 2],
    stride: usize,
    pool: Option<[usize; 2]>,
    relu: bool,
) -> Case {
    Case { sizes, image, kernel, stride, pad, pool, relu }
}

const CASES: [Case; 12] = [
    case([3, 2, 4, 20], [12, 14], [[3, 3], [0, 0]], 1, Some([2, 2]), true),
    case([1, 3, 5, 33], [9, 7], [[5, 5], [0, 0]], 1, Some([2, 2]), true),
    case([2, 16, 32, 16], [14, 14], [[5, 5], [0, 0]], 1, Some([2, 2]), true),
    case([2, 3, 6, 1], [8, 8], [[3, 3], [1, 1]], 1, None, false),
    case([2, 5, 3, 17], [9, 8], [[3, 3], [1, 1]], 2, None, true),
    case([2, 5, 3, 17], [9, 8], [[3, 5], [2, 2]], 2, Some([2, 1]), true),
    case([3, 1, 1, 100], [6, 6], [[3, 3], [0, 0]], 1, None, true),
    case([2, 4, 7, 15], [11, 10], [[2, 2], [0, 0]], 3, None, false),
    case([2, 7, 9, 70], [5, 6], [[1, 1], [0, 0]], 1, None, true),
    case([1, 2, 3, 5], [9, 9], [[3, 3], [0, 0]], 1, Some([3, 2]), false),
    case([2, 2, 3, 5], [9, 9], [[2, 4], [1, 2]], 1, Some([2, 3]), true),
    case([2, 3, 4, 40], [13, 3], [[5, 3], [2, 1]], 1, Some([2, 2]), true),
];

fn device() -> Device {
    Device::flex()
}

fn random<const D: usize>(shape: [usize; D], rng: &mut ChaCha12Rng) -> Tensor<D> {
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.0..1.0)).collect();
    Tensor::from_data(TensorData::new(numbers, shape), &device())
}

impl Case {
    fn layer(&self, rng: &mut ChaCha12Rng) -> ParticleConv {
        let [particles, inputs, outputs, _] = self.sizes;
        let mut layer = ParticleConv::new(particles, [inputs, outputs], self.kernel, self.stride, self.pad, &device());
        let leaf = |tensor: Tensor<5>| tensor.autodiff().require_grad();
        let [high, wide] = self.kernel;
        layer.weight = Param::from_tensor(leaf(random([particles, outputs, inputs, high, wide], rng)));
        layer.bias = Param::from_tensor(random([particles, outputs], rng).autodiff().require_grad());
        layer
    }

    fn images(&self, particles: usize, rng: &mut ChaCha12Rng) -> Tensor<4> {
        let [_, inputs, _, rows] = self.sizes;
        random([rows, particles * inputs, self.image[0], self.image[1]], rng)
    }

    fn in_lanes(&self, layer: &ParticleConv, images: Tensor<4>, particles: usize) -> Tensor<4> {
        layer.block(Lanes::new(images, particles), self.pool, self.relu).into_images()
    }

    fn step_by_step(&self, layer: &ParticleConv, images: Tensor<4>, shared: bool) -> Tensor<4> {
        let map = if shared { layer.convolve_shared(images) } else { layer.convolve(images) };
        let map = match self.pool {
            Some([size, stride]) => Pool::Max { size, stride }.forward(map),
            None => map,
        };
        let map = layer.add_bias(map);
        if self.relu { relu(map) } else { map }
    }
}

fn host<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().unwrap()
}

/// Values, then gradients of weight, bias and, where they have one, images, of Σ values · c.
fn values_and_gradients(
    layer: &ParticleConv,
    images: &Tensor<4>,
    forward: impl FnOnce(Tensor<4>) -> Tensor<4>,
    rng: &mut ChaCha12Rng,
) -> Vec<Vec<f32>> {
    let values = forward(images.clone());
    let cotangent = random(values.dims(), rng);
    let gradients = (values.clone() * cotangent).sum().backward();
    let mut found = vec![host(values)];
    found.push(host(layer.weight.val().grad(&gradients).unwrap()));
    found.push(host(layer.bias.val().grad(&gradients).unwrap()));
    found.extend(images.is_tracked().then(|| host(images.grad(&gradients).unwrap())));
    found
}

#[test]
fn a_block_and_its_steps_have_the_same_values_and_gradients() {
    for (i, case) in CASES.iter().enumerate() {
        for shared in [true, false] {
            let particles = if shared { 1 } else { case.sizes[0] };
            let mut rng = ChaCha12Rng::seed_from_u64(i as u64);
            let layer = case.layer(&mut rng);
            let images = case.images(particles, &mut rng);
            let images = if shared { images } else { images.autodiff().require_grad() };
            let got = values_and_gradients(
                &layer,
                &images,
                |images| case.in_lanes(&layer, images, particles),
                &mut ChaCha12Rng::seed_from_u64(6),
            );
            let want = values_and_gradients(
                &layer,
                &images,
                |images| case.step_by_step(&layer, images, shared),
                &mut ChaCha12Rng::seed_from_u64(6),
            );
            assert_eq!(got.len(), if shared { 3 } else { 4 });
            for (part, (got, want)) in got.iter().zip(&want).enumerate() {
                let largest = want.iter().fold(0.0f32, |top, value| top.max(value.abs()));
                assert_eq!(got.len(), want.len());
                for (got, want) in got.iter().zip(want) {
                    // Sums of up to some thousand terms of order 1, in another order, in units of 6e-8.
                    assert!((got - want).abs() <= 1e-5 * largest, "case {i}, {shared}, part {part}: {got}, not {want}");
                }
            }
        }
    }
}

#[test]
fn a_block_without_a_tape_has_the_values_of_one_on_it() {
    for case in &CASES {
        let mut rng = ChaCha12Rng::seed_from_u64(3);
        let (tracked, images) = (case.layer(&mut rng), case.images(1, &mut rng));
        let mut plain = tracked.clone();
        plain.weight = Param::initialized(plain.weight.id, tracked.weight.val().without_autodiff());
        plain.bias = Param::initialized(plain.bias.id, tracked.bias.val().without_autodiff());
        let values = case.in_lanes(&plain, images.clone(), 1);
        assert!(!values.is_autodiff());
        assert_eq!(host(values), host(case.in_lanes(&tracked, images, 1)));
    }
}

#[test]
fn a_block_has_the_same_bits_at_any_number_of_threads() {
    let case = &CASES[2];
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut rng = ChaCha12Rng::seed_from_u64(9);
            let layer = case.layer(&mut rng);
            let rows = 16 * 9 + 1;
            let images = random([rows, case.sizes[0] * case.sizes[1], case.image[0], case.image[1]], &mut rng);
            let images = images.autodiff().require_grad();
            values_and_gradients(&layer, &images, |images| case.in_lanes(&layer, images, case.sizes[0]), &mut rng)
        })
    };
    let one = bits(1);
    for threads in [2, 3, 7] {
        assert_eq!(bits(threads), one, "{threads} threads");
    }
}

#[test]
fn a_maximum_that_is_nan_is_not_hidden() {
    let case = &CASES[0];
    let mut rng = ChaCha12Rng::seed_from_u64(4);
    let (layer, images) = (case.layer(&mut rng), case.images(1, &mut rng));
    let [rows, channels, height, width] = images.dims();
    let mut numbers = host(images);
    numbers[5 * width + 6] = f32::NAN;
    let images = Tensor::from_data(TensorData::new(numbers, [rows, channels, height, width]), &device());
    let got = host(case.in_lanes(&layer, images.clone(), 1));
    let want = host(case.step_by_step(&layer, images, true));
    let lost = |values: &[f32]| values.iter().map(|value| value.is_nan()).collect::<Vec<_>>();
    assert!(lost(&got).contains(&true));
    assert_eq!(lost(&got), lost(&want));
}

#[test]
fn a_processor_without_wide_registers_gets_the_same_numbers() {
    let block = BlockOptions { stride: 1, pad: [1, 0], pool: [2, 2], relu: true };
    let plan = Plan::new(block, [6, 5, 3, 2], [7, 9]);
    let mut rng = ChaCha12Rng::seed_from_u64(2);
    let mut random = |len: usize| -> Vec<f32> { (0..len).map(|_| rng.random_range(-1.0..1.0)).collect() };
    let (images, cotangent) = (random(2 * plan.image_len()), random(2 * plan.pooled_len()));
    let (weights, bias) = (random(plan.weights()), random(plan.outputs));
    let both = |narrow: bool| {
        let scratch = &mut Scratch::default();
        let (mut values, mut picks) = (vec![0.0; 2 * plan.pooled_len()], vec![0; 2 * plan.pooled_len()]);
        for part in 0..2 {
            let image = &images[part * plan.image_len()..][..plan.image_len()];
            let range = part * plan.pooled_len()..(part + 1) * plan.pooled_len();
            let (out, picks) = (&mut values[range.clone()], &mut picks[range]);
            let forward =
                ForwardTask { plan: &plan, image, weights: &packed(&plan, &weights), bias: &bias, scratch, out, picks };
            if narrow { forward.with_simd(Scalar::new()) } else { dispatch(forward) }
        }
        let (mut gradient, mut sums) = (vec![0.0; images.len()], vec![0.0; weights.len() + bias.len()]);
        let output = Output { values: &values, picks: &picks, gradient: &cotangent };
        let turned = &turned(&plan, &weights);
        let backward = BackwardTask {
            plan: &plan,
            images: &images,
            output,
            turned,
            scratch,
            gradient: &mut gradient,
            sums: &mut sums,
        };
        if narrow {
            backward.with_simd(Scalar::new())
        } else {
            dispatch(backward)
        }
        [values, gradient, sums]
    };
    for (narrow, wide) in both(true).iter().flatten().zip(both(false).iter().flatten()) {
        // Sums of some hundred terms of order 1, in units of 6e-8.
        assert!((narrow - wide).abs() < 1e-4, "{narrow}, not {wide}");
    }
}
