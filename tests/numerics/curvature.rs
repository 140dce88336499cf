//! Gauss-Newton curvature of dense layers and convolutions, against squares of the scores of single rows and against
//! second moments of patches that plain loops cut out of the images.

use burn::tensor::Tensor;
use fedstein::backend::{Flex, Precision, Session};
use fedstein::models::{
    Activation, Batch, Block, Head, LayerSpec, Layout, Model, Pool, RowCurvature, StackConfig, Task,
};
use ndarray::{Array2, Array3, array, s};
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};

use crate::common::{blocks, host, normal};
use crate::stack::{assert_near, network, specs};

const ROWS: usize = 4;
const CLASSES: usize = 3;

/// Sums of at most some hundred terms, in units of 1e-16.
const TOLERANCE: f64 = 1e-12;

struct Case {
    name: &'static str,
    input: &'static [usize],
    layers: &'static [&'static str],
    particles: usize,
}

const CASES: [Case; 8] = [
    Case { name: "dense layers", input: &[7], layers: &["dense 6", "tanh", "dense 5", "relu"], particles: 3 },
    Case {
        name: "two blocks",
        input: &[2, 8, 9],
        layers: &["conv 3 3x3", "relu", "max-pool 2", "conv 4 2x2", "relu", "dense 5", "tanh"],
        particles: 3,
    },
    Case {
        name: "strides and zeros",
        input: &[2, 9, 8],
        layers: &["conv 3 3x3 stride 2 pad 1", "tanh", "conv 2 3x2 stride 2 pad 1", "relu"],
        particles: 2,
    },
    Case {
        name: "images that all particles share",
        input: &[8, 8],
        layers: &["avg-pool 2", "tanh", "conv 3 2x2", "max-pool 2"],
        particles: 2,
    },
    Case {
        name: "global average",
        input: &[2, 5, 6],
        layers: &["conv 3 3x3 same", "silu", "conv 4 2x2", "relu", "global-avg-pool"],
        particles: 3,
    },
    Case {
        name: "no convolution",
        input: &[2, 4, 6],
        layers: &["max-pool 2", "relu", "dense 5", "tanh"],
        particles: 3,
    },
    // One channel a particle, before and after: Burn takes this for a depthwise convolution.
    Case { name: "depthwise", input: &[6, 6], layers: &["conv 1 3x3", "silu", "conv 1 2x2", "tanh"], particles: 4 },
    Case { name: "one particle", input: &[2, 6, 6], layers: &["conv 3 3x3", "tanh", "conv 2 2x2"], particles: 1 },
];

/// A network with particles, rows and uniform numbers, in f64.
struct Network {
    model: Box<dyn Model>,
    on: Session,
    theta: Array2<f64>,
    inputs: Array2<f64>,
    /// `[N, B]`
    uniforms: Array2<f64>,
}

impl Network {
    fn of(case: &Case, head: Head) -> Self {
        let config = StackConfig { head, ..StackConfig::classifier(case.input, specs(case.layers), CLASSES) };
        let model = network(config);
        let mut rng = ChaCha12Rng::seed_from_u64(17);
        let theta = 0.4 * normal((case.particles, model.layout().dim()), &mut rng);
        let inputs = normal((ROWS, case.input.iter().product()), &mut rng);
        let uniforms = Array2::from_shape_simple_fn((case.particles, ROWS), || rng.random::<f64>());
        Self { model: Box::new(model), on: Session::open::<Flex>(Precision::F64).unwrap(), theta, inputs, uniforms }
    }

    fn blocks(&self) -> Vec<Tensor<2>> {
        blocks(&self.theta, &*self.model, &self.on)
    }

    /// The curvature of these rows.
    fn curvature(&self, rows: std::ops::Range<usize>) -> RowCurvature {
        let inputs = self.on.matrix(&self.inputs.slice(s![rows.clone(), ..]).to_owned());
        let uniforms = self.on.matrix(&self.uniforms.slice(s![.., rows]).to_owned());
        self.model.row_curvature(&self.blocks(), inputs, uniforms).unwrap()
    }

    /// The label or the target that the uniform number draws from a particle's prediction: class c where it lies between
    /// the probabilities of all classes below c and of all classes up to c; one standard deviation below or above the mean.
    fn drawn(&self, predicted: &[f64], uniform: f64) -> Array2<f64> {
        match self.model.task() {
            Task::Classification { classes } => {
                let mut reached = 0.0;
                let below = predicted[..classes - 1].iter().filter(|log_probability| {
                    reached += log_probability.exp();
                    uniform >= reached
                });
                let label = below.count();
                Array2::from_shape_fn((1, classes), |(_, class)| f64::from(u8::from(class == label)))
            }
            _ => {
                let deviation = (-0.5 * predicted[1]).exp();
                array![[predicted[0] + if uniform < 0.5 { -deviation } else { deviation }]]
            }
        }
    }

    /// ∂ log p(drawn label | row)/∂θ of every row, `[N, d]` each, from the score of one row and one label at a time.
    fn row_scores(&self) -> Vec<Array2<f64>> {
        let (theta, (particles, dim)) = (self.blocks(), self.theta.dim());
        let predicted = host(self.model.predict(&theta, self.on.matrix(&self.inputs)));
        let width = predicted.len() / (particles * ROWS);
        let mut scores = vec![Array2::zeros((particles, dim)); ROWS];
        for (n, row) in (0..particles).flat_map(|n| (0..ROWS).map(move |row| (n, row))) {
            let targets = self.drawn(&predicted[(n * ROWS + row) * width..][..width], self.uniforms[[n, row]]);
            let inputs = self.inputs.slice(s![row..=row, ..]).to_owned();
            let batch = Batch::new(self.on.matrix(&inputs), self.on.matrix(&targets));
            let score = host(Tensor::cat(self.model.likelihood_score(&theta, &batch, 1.0), 1));
            scores[row].row_mut(n).iter_mut().zip(&score[n * dim..][..dim]).for_each(|(own, score)| *own = *score);
        }
        scores
    }
}

/// Every network with both likelihoods.
fn networks() -> impl Iterator<Item = (String, &'static Case, Network)> {
    let heads = [Head::Classes(CLASSES), Head::Real { gamma_shape: 1.0, gamma_rate: 0.1 }];
    CASES.iter().flat_map(move |case| {
        heads.into_iter().map(move |head| (format!("{}, {head:?}", case.name), case, Network::of(case, head)))
    })
}

/// Weights and biases, layer by layer.
fn layers(layout: &Layout) -> &[[Block; 2]] {
    layout.blocks().as_chunks::<2>().0
}

#[test]
fn the_diagonal_is_the_sum_of_squared_scores_of_single_rows() {
    for (what, _, network) in networks() {
        let curvature = network.curvature(0..ROWS);
        let scores = network.row_scores();
        let squares = scores.iter().fold(Array2::<f64>::zeros(network.theta.dim()), |sum, score| sum + score * score);
        let layout = network.model.layout();
        assert_eq!(curvature.layers.len(), layers(layout).len(), "{what}");
        for ((index, layer), blocks) in curvature.layers.iter().enumerate().zip(layers(layout)) {
            assert_eq!((layer.weight, layer.bias), (2 * index, Some(2 * index + 1)), "{what}");
            let of = |block: &Block| squares.slice(s![.., block.offset..block.offset + block.size()]).to_owned();
            let [weights, biases] = blocks.each_ref().map(of);
            let (got_weights, got_biases) = layer.diagonal();
            let what = format!("{what}, layer {index}");
            assert_near(&host(got_weights), &weights.iter().copied().collect::<Vec<_>>(), TOLERANCE, &what);
            assert_near(&host(got_biases.unwrap()), &biases.iter().copied().collect::<Vec<_>>(), TOLERANCE, &what);

            // The trace of each output's block: its weights and its bias.
            let (particles, outputs) = biases.dim();
            let width = weights.ncols() / outputs;
            let trace = |n: usize, h: usize| weights.slice(s![n, h * width..(h + 1) * width]).sum() + biases[[n, h]];
            let traces: Vec<f64> = (0..particles).flat_map(|n| (0..outputs).map(move |h| trace(n, h))).collect();
            assert_near(&host(layer.trace_weights()), &traces, TOLERANCE, &what);

            // Σ_i g_i g_iᵀ, with g_i the scores of the row's weights and biases, a line for each output.
            let [weight, bias] = blocks.each_ref().map(|block| block.offset);
            let mut moments = vec![0.0; particles * outputs * outputs];
            for (at, sum) in moments.iter_mut().enumerate() {
                let (n, h, other) = (at / (outputs * outputs), at / outputs % outputs, at % outputs);
                for score in &scores {
                    let line = |h: usize| score.slice(s![n, weight + h * width..weight + (h + 1) * width]);
                    *sum += line(h).dot(&line(other)) + score[[n, bias + h]] * score[[n, bias + other]];
                }
            }
            assert_near(&host(layer.output_moments().unwrap()), &moments, TOLERANCE, &what);
        }
        let noise = layout.position("log_gamma").map(|block| (block, 0.5));
        assert_eq!(curvature.noise, noise, "{what}");
    }
}

#[test]
fn second_moments_are_those_of_patches_cut_out_by_loops() {
    for (what, case, network) in networks() {
        let curvature = network.curvature(0..ROWS);
        let (particles, _) = network.theta.dim();
        for n in 0..particles {
            let of_rows: Vec<Vec<Vec<Vec<f64>>>> = (0..ROWS)
                .map(|row| {
                    let (theta, row) = (network.theta.row(n).to_vec(), network.inputs.row(row).to_vec());
                    read_by_layers(network.model.layout(), &theta, case, &row)
                })
                .collect();
            for (index, layer) in curvature.layers.iter().enumerate() {
                let width = of_rows[0][index][0].len();
                let mut want = Array2::<f64>::zeros((width, width));
                for x in of_rows.iter().flat_map(|layers| &layers[index]) {
                    want += &Array2::from_shape_fn((width, width), |(i, j)| x[i] * x[j]);
                }
                let what = format!("{what}, layer {index}, particle {n}");
                match layer.moment_diagonal() {
                    Some(diagonal) => assert_near(&host(diagonal), &want.diag().to_vec(), TOLERANCE, &what),
                    None => {
                        let got = layer.moments();
                        let [sets, ..] = got.dims();
                        assert_eq!(sets, if index == 0 { 1 } else { particles }, "{what}");
                        let got = host(got.narrow(0, n.min(sets - 1), 1));
                        assert_near(&got, &want.iter().copied().collect::<Vec<_>>(), TOLERANCE, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn groups_of_rows_add_up_to_all_rows() {
    for (what, _, network) in networks() {
        let all = network.curvature(0..ROWS);
        let parts = [network.curvature(0..1), network.curvature(1..ROWS)];
        for (index, layer) in all.layers.iter().enumerate() {
            let sum = |of: &dyn Fn(&RowCurvature) -> Vec<f64>| -> Vec<f64> {
                of(&parts[0]).into_iter().zip(of(&parts[1])).map(|(a, b)| a + b).collect()
            };
            let what = format!("{what}, layer {index}");
            let diagonal = sum(&|part| host(part.layers[index].diagonal().0));
            assert_near(&host(layer.diagonal().0), &diagonal, TOLERANCE, &what);
            let moments = sum(&|part| host(part.layers[index].moments()));
            assert_near(&host(layer.moments()), &moments, TOLERANCE, &what);
        }
    }
}

#[test]
fn the_memory_of_a_row_is_that_of_patches_gradients_and_their_product() {
    let network = Network::of(&CASES[1], Head::Classes(CLASSES));
    // 2×8×9 → conv 3 3x3 at 6×7 positions → 3×3×3 → conv 4 2x2 at 2×2 positions → dense 5 → dense 3, of three particles.
    let first = 18 * 42 + 3 * (3 * 42 + 3 * 18);
    let second = 3 * (12 * 4 + 4 * 4 + 4 * 12);
    let dense = 3 * (16 + 5) + 3 * (5 + 3);
    for rows in [1, ROWS] {
        assert_eq!(network.curvature(0..rows).elements_per_row(), first + second + dense, "{rows} rows");
    }
}

/// What each layer with weights reads of a row, with the 1 of the bias: the patches of a convolution, or one vector of a
/// dense layer. Layers come in the order in which they are listed, by their definitions.
fn read_by_layers(layout: &Layout, theta: &[f64], case: &Case, row: &[f64]) -> Vec<Vec<Vec<f64>>> {
    let shape = match *case.input {
        [height, width] => (1, height, width),
        [channels, height, width] => (channels, height, width),
        _ => (row.len(), 1, 1),
    };
    let mut image = Array3::from_shape_vec(shape, row.to_vec()).unwrap();
    let last = LayerSpec::Dense { outputs: 0 }; // its outputs are read off the layout
    let mut blocks = layers(layout).iter();
    let mut read = Vec::new();
    for layer in specs(case.layers).into_iter().chain([last]) {
        let (channels, height, width) = image.dim();
        image = match layer {
            LayerSpec::Conv { kernel, stride, pad, .. } => {
                let [weights, biases] = blocks.next().unwrap().each_ref().map(|block| values(theta, block));
                let pixel = |c: usize, y: usize, x: usize| {
                    let pixel = image.get((c, y.wrapping_sub(pad[0]), x.wrapping_sub(pad[1])));
                    pixel.copied().unwrap_or(0.0) // outside the image
                };
                let positions = |side: usize, axis: usize| (side + 2 * pad[axis] - kernel[axis]) / stride + 1;
                let mut patches = Vec::new();
                let mut output = Array3::zeros((biases.len(), positions(height, 0), positions(width, 1)));
                for (y, x) in (0..positions(height, 0)).flat_map(|y| (0..positions(width, 1)).map(move |x| (y, x))) {
                    let mut patch = Vec::new();
                    for c in 0..channels {
                        for i in 0..kernel[0] {
                            patch.extend((0..kernel[1]).map(|j| pixel(c, y * stride + i, x * stride + j)));
                        }
                    }
                    for (o, value) in affine(weights, biases, &patch).into_iter().enumerate() {
                        output[[o, y, x]] = value;
                    }
                    patch.push(1.0);
                    patches.push(patch);
                }
                read.push(patches);
                output
            }
            LayerSpec::Dense { .. } => {
                let [weights, biases] = blocks.next().unwrap().each_ref().map(|block| values(theta, block));
                let mut units: Vec<f64> = image.iter().copied().collect();
                let output = affine(weights, biases, &units);
                units.push(1.0);
                read.push(vec![units]);
                Array3::from_shape_vec((output.len(), 1, 1), output).unwrap()
            }
            LayerSpec::Pool(pool) => {
                let [size, stride] = match pool {
                    Pool::Max { size, stride } | Pool::Average { size, stride } => [[size; 2], [stride; 2]],
                    Pool::GlobalAverage => [[height, width], [1; 2]],
                };
                let windows = [(height - size[0]) / stride[0] + 1, (width - size[1]) / stride[1] + 1];
                Array3::from_shape_fn((channels, windows[0], windows[1]), |(c, y, x)| {
                    let (top, left) = (y * stride[0], x * stride[1]);
                    let window = image.slice(s![c, top..top + size[0], left..left + size[1]]);
                    match pool {
                        Pool::Max { .. } => window.fold(f64::NEG_INFINITY, |most, pixel| most.max(*pixel)),
                        Pool::Average { .. } | Pool::GlobalAverage => window.mean().unwrap(),
                    }
                })
            }
            LayerSpec::Activation(activation) => image.mapv(|z| match activation {
                Activation::Relu => z.max(0.0),
                Activation::Tanh => z.tanh(),
                Activation::Silu => z / (1.0 + (-z).exp()),
                Activation::Sigmoid | Activation::Gelu => unreachable!("no case has it"),
            }),
        };
    }
    read
}

fn values<'a>(theta: &'a [f64], block: &Block) -> &'a [f64] {
    &theta[block.offset..][..block.size()]
}

/// W x + b.
fn affine(weights: &[f64], biases: &[f64], x: &[f64]) -> Vec<f64> {
    let product = |row: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
    weights.chunks_exact(x.len()).zip(biases).map(|(row, bias)| product(row) + bias).collect()
}
