//! Convolutional Bayesian networks from a list of layers: f(x; θ) = layers, then a dense layer to the outputs.
//!
//! In: the shape of a row (`[C, H, W]`, `[H, W]` or `[p]`) and the layers ([`LayerSpec`]); [`StackConfig::check`]
//! reports a layer that does not fit. Out: N networks evaluated at once. The first convolution sees the same images for
//! all particles, later ones are grouped by particle, dense layers are those of [`Bnn`](crate::Bnn); a stack of dense
//! layers is that network, bit for bit. On flex, in `f32`, a convolution with what follows it is one operation
//! (`layer/lanes`). Weights and biases ~ N(0, 1/λ_w); the likelihood is the [`Head`]'s.

use std::sync::Arc;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};
use fedstein_schema::Accepts::TextList;
use fedstein_schema::{Kind, NumberOr, UnusedKeys, required};
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::curvature::{LayerInputs, LayerTrace};
use crate::error::ModelError;
use crate::head::{self, Head, WeightPrecision};
use crate::init::WeightInit;
use crate::kind::{
    DataShape, GAMMA_RATE, GAMMA_SHAPE, INIT, ModelKind, PrecisionRule, WEIGHT_PRECISION, precision,
    prior_and_start_keys, unused_gamma,
};
use crate::layer::{Activation, Lanes, LayerSpec, ParticleConv, ParticleLinear, Pool, Shape};
use crate::layout::Layout;
use crate::model::{Architecture, Batch, Model, Network, ParticleModel, Task};
use crate::prior::Prior;

/// The largest number of coordinates of a particle: tensors count them in 32 bits.
pub(crate) const MOST_PARAMETERS: usize = i32::MAX as usize;

/// The message for the layer with which a particle has more coordinates.
pub(crate) fn too_many_parameters() -> String {
    format!("with it a particle has more than {MOST_PARAMETERS} parameters, which is the maximum")
}

/// A network as a list of layers; the dense layer to the outputs is implied.
#[derive(Clone, Debug, PartialEq)]
pub struct StackConfig {
    /// Shape of a row of features: `[H, W]`, `[C, H, W]`, or `[p]` where it is not an image.
    pub input: Vec<usize>,
    /// The layers in order, without the dense layer to the outputs.
    pub layers: Vec<LayerSpec>,
    /// The likelihood: of classes or of a real target.
    pub head: Head,
    /// Prior precision λ_w of weights and biases (e in the papers).
    pub weight_precision: WeightPrecision,
    /// The initial weights.
    pub init: WeightInit,
}

/// A [`StackConfig`] whose layers fit together.
#[derive(Clone, Debug, PartialEq)]
pub struct StackPlan {
    config: StackConfig,
    convs: Vec<ConvSize>,
    steps: Vec<ImageStep>,
    /// Inputs and outputs of each dense layer.
    dense: Vec<[usize; 2]>,
    /// The functions after each dense layer but the last.
    activations: Vec<Vec<Activation>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConvSize {
    /// Channels of input and output.
    channels: [usize; 2],
    kernel: [usize; 2],
    stride: usize,
    pad: [usize; 2],
}

/// One operation on images, before the first dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImageStep {
    /// The convolution of this index, without its bias.
    Convolve(usize),
    /// The bias of the convolution of this index.
    AddBias(usize),
    Pool(Pool),
    Activate(Activation),
}

impl ImageStep {
    /// Whether a maximum may be taken before it as well as after it.
    fn commutes_with_max(self) -> bool {
        match self {
            Self::AddBias(_) => true,
            Self::Activate(activation) => activation.is_nondecreasing(),
            Self::Convolve(_) | Self::Pool(_) => false,
        }
    }
}

impl StackConfig {
    /// A classifier with the papers' prior (λ_w = e) and scaled normal start.
    pub fn classifier(input: &[usize], layers: Vec<LayerSpec>, classes: usize) -> Self {
        let (head, init) = (Head::Classes(classes), WeightInit::ScaledNormal);
        Self {
            input: input.to_vec(),
            layers,
            head,
            weight_precision: WeightPrecision::Fixed(std::f64::consts::E),
            init,
        }
    }

    /// The plan of a network whose layers fit together.
    ///
    /// # Errors
    /// A size is 0; a layer does not fit the shape of its input; a particle would have more than 2³¹ − 1 coordinates.
    pub fn check(self) -> Result<StackPlan, ModelError> {
        if self.input.contains(&0) {
            return Err(ModelError::Empty { what: "every side of a row's shape" });
        }
        if self.head.outputs() == 0 {
            return Err(ModelError::Empty { what: "the number of outputs" });
        }
        let last = LayerSpec::Dense { outputs: self.head.outputs() };
        let layers: Vec<LayerSpec> = self.layers.iter().copied().chain([last]).collect();
        let (convs, steps, dense, activations) = Default::default();
        let mut plan = StackPlan { config: self, convs, steps, dense, activations };
        let mut shape = Shape::of_row(&plan.config.input);
        let mut parameters = 0usize;
        for (i, layer) in layers.into_iter().enumerate() {
            let wrong = |problem| ModelError::Layer { number: i + 1, text: layer.to_string(), problem };
            let output = layer.output(shape).map_err(wrong)?;
            let total = layer.parameters(shape).and_then(|own| own.checked_add(parameters));
            let total = total.filter(|total| *total <= MOST_PARAMETERS);
            parameters = total.ok_or_else(|| wrong(too_many_parameters()))?;
            plan.push(layer, shape);
            shape = output;
        }
        // The last dense layer ends the network: nothing follows it.
        plan.activations.pop();
        Ok(plan)
    }
}

impl StackPlan {
    /// Adds a layer that fits its input.
    fn push(&mut self, layer: LayerSpec, input: Shape) {
        match layer {
            LayerSpec::Conv { outputs, kernel, stride, pad } => {
                let [inputs, ..] = input.image().expect("the layer's output shape was found from an image");
                let index = self.convs.len();
                self.convs.push(ConvSize { channels: [inputs, outputs], kernel, stride, pad });
                self.steps.extend([ImageStep::Convolve(index), ImageStep::AddBias(index)]);
            }
            LayerSpec::Pool(pool) => self.pool(pool),
            LayerSpec::Dense { outputs } => {
                let inputs = input.size().expect("the layer's parameters were counted");
                self.dense.push([inputs, outputs]);
                self.activations.push(Vec::new());
            }
            LayerSpec::Activation(activation) => match self.activations.last_mut() {
                Some(after) => after.push(activation),
                None => self.steps.push(ImageStep::Activate(activation)),
            },
        }
    }

    /// A maximum goes before the bias and the non-decreasing functions that precede it: the same numbers and the same
    /// gradients, from size² times fewer pixels (LeNet on 3×32×32, N = 10, B = 250: a first block in 0.66 s, not 0.78).
    fn pool(&mut self, pool: Pool) {
        let mut place = self.steps.len();
        if matches!(pool, Pool::Max { .. }) {
            place -= self.steps.iter().rev().take_while(|step| step.commutes_with_max()).count();
        }
        self.steps.insert(place, ImageStep::Pool(pool));
    }
}

/// Steps that one operation can do: a convolution, the maximum that may follow it, the bias, max(z, 0).
struct ConvBlock {
    conv: usize,
    /// Side of a window and pixels to the next.
    pool: Option<[usize; 2]>,
    relu: bool,
}

impl ConvBlock {
    /// The largest side of a window: a byte has to hold the index of a pixel in it.
    const WIDEST: usize = 16;

    /// The block that these steps begin with, and the steps after it.
    fn first_of(steps: &[ImageStep]) -> Option<(Self, &[ImageStep])> {
        let [ImageStep::Convolve(conv), rest @ ..] = steps else { return None };
        let (pool, rest) = match rest {
            [ImageStep::Pool(Pool::Max { size, stride }), rest @ ..] if *size <= Self::WIDEST => {
                (Some([*size, *stride]), rest)
            }
            rest => (None, rest),
        };
        let [ImageStep::AddBias(_), rest @ ..] = rest else { return None };
        let (relu, rest) = match rest {
            [ImageStep::Activate(Activation::Relu), rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        Some((Self { conv: *conv, pool, relu }, rest))
    }
}

/// N stacks of layers.
#[derive(Module, Debug)]
pub struct Stack {
    /// The convolutions in order.
    pub convs: Vec<ParticleConv>,
    /// The dense layers in order, the one to the outputs included.
    pub dense: Vec<ParticleLinear>,
    /// log γ, `[N, 1, 1]`, of a regression.
    pub log_gamma: Option<Param<Tensor<3>>>,
    /// log λ_w, `[N, 1, 1]`, where it is learned.
    pub log_precision: Option<Param<Tensor<3>>>,
    #[module(skip)]
    input: [usize; 3],
    #[module(skip)]
    steps: Vec<ImageStep>,
    #[module(skip)]
    activations: Vec<Vec<Activation>>,
}

/// Images between two steps of the convolutional part.
enum Images {
    /// The same for every particle, `[B, C, H, W]`.
    Shared(Tensor<4>),
    /// Each particle's own, side by side as channels, `[B, N·C, H, W]`.
    Own(Tensor<4>),
    /// Each particle's own, with rows of data side by side in vectors.
    Lanes(Lanes),
}

impl Images {
    fn map(self, f: impl FnOnce(Tensor<4>) -> Tensor<4>) -> Self {
        match self {
            Self::Shared(images) => Self::Shared(f(images)),
            Self::Own(images) => Self::Own(f(images)),
            Self::Lanes(images) => Self::Own(f(images.into_images())),
        }
    }

    fn activate(self, activation: Activation) -> Self {
        match self {
            Self::Lanes(images) => Self::Lanes(images.map(|images| activation.forward(images))),
            images => images.map(|images| activation.forward(images)),
        }
    }

    fn convolve(self, layer: &ParticleConv) -> Self {
        match self {
            Self::Shared(images) => Self::Own(layer.convolve_shared(images)),
            Self::Own(images) => Self::Own(layer.convolve(images)),
            Self::Lanes(images) => Self::Own(layer.convolve(images.into_images())),
        }
    }

    /// With rows of data in lanes, or the images themselves where [`Lanes::can_hold`] is false.
    #[allow(clippy::result_large_err)] // `Err` is not an error: it returns the images themselves.
    fn into_lanes(self, layer: &ParticleConv) -> Result<Lanes, Self> {
        let weight = layer.weight.val();
        match self {
            Self::Shared(images) if Lanes::can_hold(&images, &weight) => Ok(Lanes::new(images, 1)),
            Self::Own(images) if Lanes::can_hold(&images, &weight) => Ok(Lanes::new(images, weight.dims()[0])),
            Self::Lanes(images) => Ok(images),
            images => Err(images),
        }
    }

    /// The images themselves, off the tape: `[B, C, H, W]` or `[B, N·C, H, W]`.
    fn pixels(&self) -> Tensor<4> {
        match self {
            Self::Shared(images) | Self::Own(images) => images.clone().without_autodiff(),
            Self::Lanes(images) => images.clone().into_images().without_autodiff(),
        }
    }

    /// What the first dense layer of N = `particles` reads: rows of C·H·W numbers.
    fn into_features(self, particles: usize) -> LayerInputs {
        match self {
            Self::Shared(images) => LayerInputs::Shared(images.flatten(1, 3)),
            Self::Own(images) => {
                let [rows, channels, height, width] = images.dims();
                let features = images.reshape([rows, particles, channels / particles * height * width]);
                LayerInputs::Own(features.permute([1, 2, 0]))
            }
            Self::Lanes(images) => LayerInputs::Own(images.into_features()),
        }
    }
}

impl Stack {
    /// The outputs of the last layer.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`, each row an image `[C, H, W]` in row-major order where the input is one
    /// - returns `[N, outputs, B]`
    pub fn forward(&self, inputs: Tensor<2>) -> Tensor<3> {
        let (first, rest) = self.dense.split_first().expect("the layer to the outputs is always there");
        self.through(inputs, first, rest)
    }

    /// Applies the convolutions and the first dense layers, without the functions after the last of these. Returns
    /// `[N, out, B]`.
    fn through(&self, inputs: Tensor<2>, first: &ParticleLinear, rest: &[ParticleLinear]) -> Tensor<3> {
        let features = self.convolutions(self.images(inputs)).into_features(first.particles());
        self.after_first(dense(first, features), rest)
    }

    /// The outputs of the last of some dense layers from those of the first, `[N, out, B]` both.
    fn after_first(&self, outputs: Tensor<3>, rest: &[ParticleLinear]) -> Tensor<3> {
        let layers = rest.iter().zip(&self.activations);
        layers.fold(outputs, |hidden, (layer, after)| layer.forward(activated(hidden, after)))
    }

    /// Rows `[B, p]` as images.
    fn images(&self, inputs: Tensor<2>) -> Images {
        let [channels, height, width] = self.input;
        let rows = inputs.dims()[0];
        Images::Shared(inputs.reshape([rows, channels, height, width]))
    }

    /// Applies all steps to the images: a block as one operation where that is possible, else step by step.
    fn convolutions(&self, mut images: Images) -> Images {
        let mut steps = &self.steps[..];
        while let [step, rest @ ..] = steps {
            (images, steps) = match ConvBlock::first_of(steps) {
                Some((block, after)) => {
                    let conv = &self.convs[block.conv];
                    match images.into_lanes(conv) {
                        Ok(lanes) => (Images::Lanes(conv.block(lanes, block.pool, block.relu)), after),
                        Err(images) => (self.step(images, *step), rest),
                    }
                }
                None => (self.step(images, *step), rest),
            };
        }
        images
    }

    fn step(&self, images: Images, step: ImageStep) -> Images {
        match step {
            ImageStep::Convolve(index) => images.convolve(&self.convs[index]),
            ImageStep::AddBias(index) => images.map(|images| self.convs[index].add_bias(images)),
            ImageStep::Pool(pool) => images.map(|images| pool.forward(images)),
            ImageStep::Activate(activation) => images.activate(activation),
        }
    }

    /// [`Self::step`] that records a convolution. The bias comes after it, maybe after a maximum: the gradient in what the
    /// convolution returns is that in its outputs with the bias all the same.
    fn traced_step(&self, images: Images, step: ImageStep, trace: &mut LayerTrace) -> Images {
        let ImageStep::Convolve(index) = step else { return self.step(images, step) };
        let conv = &self.convs[index];
        let [particles, outputs, ..] = conv.weight.val().dims();
        let patches = conv.unfold(images.pixels());
        images.convolve(conv).map(|convolved| {
            let shape @ [rows, _, height, width] = convolved.dims();
            let convolved = convolved.reshape([rows, particles, outputs, height * width]);
            trace.convolution(patches, convolved).reshape(shape)
        })
    }
}

/// A dense layer on shared inputs or on each particle's own: `[N, out, B]`.
fn dense(layer: &ParticleLinear, inputs: LayerInputs) -> Tensor<3> {
    match inputs {
        LayerInputs::Shared(x) => layer.forward_shared(x),
        LayerInputs::Own(x) => layer.forward(x),
    }
}

fn activated(hidden: Tensor<3>, activations: &[Activation]) -> Tensor<3> {
    activations.iter().fold(hidden, |hidden, activation| activation.forward(hidden))
}

impl ParticleModel for Stack {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        head::log_likelihood(self.forward(batch.inputs.clone()), self.log_gamma.as_ref(), batch)
    }

    fn log_likelihood_slope(&self, batch: &Batch) -> Tensor<1> {
        head::log_likelihood_slope(self.forward(batch.inputs.clone()), self.log_gamma.as_ref(), batch)
    }

    fn first_outputs(&self, inputs: Tensor<2>) -> Option<Tensor<3>> {
        let first = self.dense.first().filter(|_| self.steps.is_empty())?;
        Some(first.forward_shared(inputs))
    }

    fn slope_from_first(&self, outputs: Tensor<3>, batch: &Batch) -> Option<Tensor<1>> {
        let (_, rest) = self.dense.split_first()?;
        Some(head::log_likelihood_slope(self.after_first(outputs, rest), self.log_gamma.as_ref(), batch))
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        head::predict(self.forward(inputs), self.log_gamma.as_ref())
    }

    fn drawn_gradient(
        &self,
        inputs: Tensor<2>,
        uniforms: Tensor<2>,
        trace: &mut LayerTrace,
    ) -> Option<(Tensor<3>, Tensor<3>)> {
        let (first, rest) = self.dense.split_first()?;
        let steps = self.steps.iter();
        let images = steps.fold(self.images(inputs), |images, step| self.traced_step(images, *step, trace));
        let features = images.into_features(first.particles());
        let start = trace.dense(features.clone(), dense(first, features));
        let outputs = rest.iter().zip(&self.activations).fold(start, |hidden, (layer, after)| {
            let hidden = activated(hidden, after);
            trace.dense(LayerInputs::Own(hidden.clone()), layer.forward(hidden))
        });
        let gradient = head::drawn_gradient(outputs.clone().without_autodiff(), self.log_gamma.as_ref(), uniforms);
        Some((outputs, gradient))
    }

    /// Only dense layers have an embedding: `None` for a head of all dense layers or more.
    fn embed(&self, inputs: Tensor<2>, head_layers: usize) -> Option<Tensor<3>> {
        let below = self.dense.len().checked_sub(head_layers)?;
        let (first, rest) = self.dense[..below].split_first()?;
        let top = activated(self.through(inputs, first, rest), self.activations.get(below - 1)?);
        Some(top.swap_dims(1, 2))
    }
}

impl Architecture for StackPlan {
    type Module = Stack;

    fn module(&self, particles: usize, device: &Device) -> Stack {
        let conv =
            |conv: &ConvSize| ParticleConv::new(particles, conv.channels, conv.kernel, conv.stride, conv.pad, device);
        let dense = |[inputs, outputs]: &[usize; 2]| ParticleLinear::new(particles, *inputs, *outputs, device);
        let input = match Shape::of_row(&self.config.input) {
            Shape::Image(image) => image,
            Shape::Features(size) | Shape::Units(size) => [size, 1, 1],
        };
        Stack {
            convs: self.convs.iter().map(conv).collect(),
            dense: self.dense.iter().map(dense).collect(),
            log_gamma: self.config.head.log_gamma(particles, device),
            log_precision: self.config.weight_precision.log_precision(particles, device),
            input,
            steps: self.steps.clone(),
            activations: self.activations.clone(),
        }
    }

    fn task(&self) -> Task {
        self.config.head.task()
    }

    fn prior(&self, layout: &Layout) -> Prior {
        self.config.head.prior(layout, self.config.weight_precision)
    }

    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut particle = self.config.init.particle(layout, rng);
        self.config.weight_precision.start(layout, &mut particle, rng);
        particle
    }

    fn log_noise_precision(&self, layout: &Layout) -> Option<usize> {
        self.config.head.log_noise_precision(layout)
    }
}

/// `[model] kind = "stack"`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackSpec {
    /// The layers from first to last, without the one to the outputs.
    pub layers: Vec<String>,
    /// The prior precision λ_w of weights and biases.
    pub weight_precision: NumberOr<PrecisionRule>,
    /// The shape of the Gamma prior of a precision.
    pub gamma_shape: f64,
    /// The rate of that prior.
    pub gamma_rate: f64,
    /// The distribution of the initial weights.
    pub init: WeightInit,
}

impl StackSpec {
    /// The name of the kind, its description and its keys.
    pub const KIND: Kind = Kind {
        name: "stack",
        about: "Bayesian network of listed layers, with convolutions and pooling.",
        keys: &[
            required(
                "layers",
                TextList { example: r#"["conv 16 5x5", "relu", "max-pool 2", "dense 84", "relu"]"# },
                "The layers from first to last: `conv OUT KxK [stride S] [pad P | same]`, `max-pool K [stride S]`, `avg-pool K [stride S]` (stride K by default), `global-avg-pool`, `dense OUT`, `relu`, `tanh`, `sigmoid`, `gelu`, `silu`. The first dense layer flattens; the dense layer to the classes, or to the target, is implied.",
            ),
            WEIGHT_PRECISION,
            GAMMA_SHAPE,
            GAMMA_RATE,
            INIT,
        ],
    };
}

impl ModelKind for StackSpec {
    fn build(&self, data: &DataShape) -> Result<Arc<dyn Model>, ModelError> {
        let Self { layers, weight_precision, gamma_shape, gamma_rate, init } = self;
        let head = data.head(Self::KIND.name, *gamma_shape, *gamma_rate)?;
        let wrong = |error| ModelError::Layers { data: data.name.clone(), error: Box::new(error) };
        let (input, layers) = (data.input.clone(), LayerSpec::read(layers).map_err(wrong)?);
        let weight_precision = precision(*weight_precision, *gamma_shape, *gamma_rate);
        let stack = StackConfig { input, layers, head, weight_precision, init: *init };
        Ok(Arc::new(Network::new(stack.check().map_err(wrong)?)))
    }

    fn check(&self) -> Result<(), String> {
        LayerSpec::read(&self.layers).map(|_| ()).map_err(|error| format!("`model.layers`: {error}"))
    }

    fn reads_images(&self) -> bool {
        let is_image = |layer: &LayerSpec| matches!(layer, LayerSpec::Conv { .. } | LayerSpec::Pool(_));
        LayerSpec::read(&self.layers).is_ok_and(|layers| layers.iter().any(is_image))
    }

    fn prior_and_start_keys(&self) -> [&'static [&'static str]; 2] {
        prior_and_start_keys(self.weight_precision)
    }

    fn unused_keys(&self, is_classification: bool) -> Vec<UnusedKeys> {
        unused_gamma(self.weight_precision, is_classification)
    }

    fn has_curvature(&self) -> bool {
        true
    }
}
