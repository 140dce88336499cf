//! The interface of a model, and the one place where particles are put on the autodiff tape.

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use rand::Rng;

use crate::curvature::{LayerCurvature, LayerRows, LayerTrace, RowCurvature};
use crate::factored::{FactoredScore, SharedGradient};
use crate::layout::Layout;
use crate::obstacle;
use crate::prior::Prior;

/// Rows of data on the device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Features `[B, p]`.
    pub inputs: Tensor<2>,
    /// Classification: one-hot classes `[B, C]`, times the weights of the rows where they have any. Regression:
    /// standardised targets `[B, 1]`. Densities: `[B, 1]`, unused.
    pub targets: Tensor<2>,
    /// The weight w_i of each row of a classification, `[B, 1]`, by which log p(y_i | x_i, θ) counts; `None` where all
    /// are 1. Σ targets · log p is weighted as it is; a residual is targets − w E\[y\].
    pub weights: Option<Tensor<2>>,
}

impl Batch {
    /// Rows `[B, p]` with their targets, as in [`Self::targets`], that all have the weight 1.
    pub fn new(inputs: Tensor<2>, targets: Tensor<2>) -> Self {
        Self { inputs, targets, weights: None }
    }

    /// Rows of a classification with one-hot targets `[B, C]`, of which row i counts w_i times; `weights` are `[B, 1]`.
    #[must_use]
    pub fn weighted(self, weights: Tensor<2>) -> Self {
        Self { targets: self.targets * weights.clone(), weights: Some(weights), ..self }
    }
}

/// The meaning of a model's predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `predict` returns log-probabilities `[N, B, C]`.
    Classification {
        /// The number of classes C.
        classes: usize,
    },
    /// `predict` returns mean and log precision of a Gaussian, `[N, B, 2]`, in the standardised scale.
    Regression,
    /// The particles themselves are the result; `predict` returns the log-likelihood of each row, `[N, B, 1]`.
    Density,
}

/// A Burn module whose parameters are `[N, ...]`: N networks evaluated at once.
pub trait ParticleModel: Module {
    /// Sum over the rows of log p(y | x, θ_n).
    ///
    /// # Shapes
    /// - returns `[N]`
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1>;

    /// Any function with the same gradient as [`Self::log_likelihood`] at these parameters; its value has no meaning.
    /// Where the outputs z are natural parameters of the likelihood, as logits are, the gradient in z is the residual y
    /// − E[y | z]. Σ z·residual with the residual off the tape has that gradient too, and needs neither the logarithm
    /// of the forward pass nor the exponential of the backward pass.
    ///
    /// # Shapes
    /// - returns `[N]`
    fn log_likelihood_slope(&self, batch: &Batch) -> Tensor<1> {
        self.log_likelihood(batch)
    }

    /// The outputs of the first layer, where it is a dense layer that reads the rows as they are, and its weights and biases
    /// are the first two blocks; `None`, the default, for other modules.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, out, B]`
    fn first_outputs(&self, _inputs: Tensor<2>) -> Option<Tensor<3>> {
        None
    }

    /// [`Self::log_likelihood_slope`] from the outputs of the first layer, for a module that has
    /// [`Self::first_outputs`]; else `None`.
    fn slope_from_first(&self, _outputs: Tensor<3>, _batch: &Batch) -> Option<Tensor<1>> {
        None
    }

    /// Predictive parameters of every particle; see [`Task`] for their meaning.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, B, outputs]`
    fn predict(&self, inputs: Tensor<2>) -> Tensor<3>;

    /// The gradient of the log-likelihood in the outputs of the last layer, for a label of each row drawn from the model's
    /// own prediction ([`head::drawn_gradient`](crate::head::drawn_gradient)), with every dense layer and convolution recorded
    /// in `trace`, in the order of their blocks: weights and biases of the layer that is recorded first are the first two
    /// blocks. `None`, the default, for a module with parameters in other layers: it has no Gauss-Newton curvature here.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - `uniforms`: numbers in [0, 1), `[N, B]`
    /// - returns the outputs, on the tape through `trace`, and the gradient, off the tape, `[N, outputs, B]` each
    fn drawn_gradient(
        &self,
        _inputs: Tensor<2>,
        _uniforms: Tensor<2>,
        _trace: &mut LayerTrace,
    ) -> Option<(Tensor<3>, Tensor<3>)> {
        None
    }

    /// The embedding of the rows: the activations that the last `head_layers` layers read. `None` for a model without
    /// an embedding, and if there is no layer below the head.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, B, E]`
    fn embed(&self, _inputs: Tensor<2>, _head_layers: usize) -> Option<Tensor<3>> {
        None
    }
}

/// Builds a [`ParticleModel`] and its prior: the part of a model that holds no tensor.
pub trait Architecture: Debug + Send + Sync + 'static {
    /// The module that this architecture builds.
    type Module: ParticleModel;

    /// A module for N = `particles` whose parameters have shapes but no values.
    fn module(&self, particles: usize, device: &Device) -> Self::Module;

    /// The meaning of the predictions.
    fn task(&self) -> Task;

    /// The prior p0(θ).
    fn prior(&self, layout: &Layout) -> Prior;

    /// `scale` · ∇_θ Σ_rows log p(y | x, θ_n) by a formula, one `[N, size]` tensor per block. For a small model autodiff
    /// takes longer than the gradient itself. `None`, the default, means autodiff.
    fn likelihood_gradient(&self, _particles: &[Tensor<2>], _batch: &Batch, _scale: f64) -> Option<Vec<Tensor<2>>> {
        None
    }

    /// The Gauss-Newton curvature of the likelihood of these rows by a formula, where the model has one; `None`, the
    /// default, means [`ParticleModel::drawn_gradient`] and autodiff.
    fn row_curvature(&self, _particles: &[Tensor<2>], _inputs: &Tensor<2>) -> Option<RowCurvature> {
        None
    }

    /// One initial flat particle, length d. Default: a draw from the prior.
    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        self.prior(layout).sample(layout, rng)
    }

    /// Blocks, names and shapes of one particle. Default: those of the module.
    fn layout(&self) -> Layout {
        Layout::of_particles(&self.module(1, &Device::flex()))
    }

    /// The index of the block that holds log γ, the log noise precision of a regression, if there is one: it starts at
    /// −log MSE of the initial network.
    fn log_noise_precision(&self, _layout: &Layout) -> Option<usize> {
        None
    }

    /// Why the network has no likelihood of the kind that fedstein trains, one number for each particle that depends on it
    /// and the rows alone; `None` where it has one. Default: what the module's layers and parameters tell.
    fn obstacle(&self) -> Option<String> {
        obstacle::of(&self.module(1, &Device::flex()))
    }
}

/// A model whose architecture is chosen at run time. [`Network::new`] builds it for every [`Architecture`].
///
/// Particles are passed as one `[N, size]` tensor per block, in the order of [`Model::layout`].
pub trait Model: Debug + Send + Sync {
    /// The parameter blocks of one particle.
    fn layout(&self) -> &Arc<Layout>;

    /// The meaning of the predictions.
    fn task(&self) -> Task;

    /// The prior p0(θ).
    fn prior(&self) -> &Prior;

    /// One initial flat particle, length d.
    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64>;

    /// `scale` · ∇_θ Σ_rows log p(y | x, θ_n), one `[N, size]` tensor per block. **This, [`Model::factored_score`],
    /// [`Model::row_curvature`] and [`Model::embedding_score`] are the only functions of fedstein that put tensors on the
    /// autodiff tape**; the one backward pass frees it.
    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>>;

    /// [`Model::likelihood_score`] with the gradient of the first layer's weights as a product; `None`, the default, for a
    /// model whose first blocks are not the weights and the biases of a dense layer that reads the rows.
    fn factored_score(&self, _particles: &[Tensor<2>], _batch: &Batch, _scale: f64) -> Option<FactoredScore> {
        None
    }

    /// The Gauss-Newton curvature of the likelihood of these rows, `[B, p]`; `None` for a model without one. Labels are
    /// drawn from the model's own prediction with `uniforms`, numbers in [0, 1), `[N, B]`.
    fn row_curvature(
        &self,
        _particles: &[Tensor<2>],
        _inputs: Tensor<2>,
        _uniforms: Tensor<2>,
    ) -> Option<RowCurvature> {
        None
    }

    /// Why [`Self::row_curvature`] is `None`, where layers are recorded that are not those of the blocks; in a sentence.
    fn curvature_misfit(&self, _particles: &[Tensor<2>], _inputs: Tensor<2>, _uniforms: Tensor<2>) -> Option<String> {
        None
    }

    /// Σ_rows log p(y | x, θ_n), `[N]`, without a tape.
    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1>;

    /// Predictive parameters `[N, B, outputs]`, without a tape.
    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3>;

    /// See [`Architecture::log_noise_precision`].
    fn log_noise_precision(&self) -> Option<usize>;

    /// Why the model cannot be trained; see [`Architecture::obstacle`].
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// The embedding `[N, B, E]` below the last `head_layers` layers, without a tape; see [`ParticleModel::embed`].
    fn embed(&self, _particles: &[Tensor<2>], _inputs: Tensor<2>, _head_layers: usize) -> Option<Tensor<3>> {
        None
    }

    /// The vector-Jacobian product of [`Model::embed`]: ∇_θ Σ `cotangent` · embedding, one `[N, size]` tensor per
    /// block; 0 in the head's. `cotangent` is `[N, B, E]`.
    fn embedding_score(
        &self,
        _particles: &[Tensor<2>],
        _inputs: Tensor<2>,
        _head_layers: usize,
        _cotangent: Tensor<3>,
    ) -> Option<Vec<Tensor<2>>> {
        None
    }
}

/// The [`Model`] of an [`Architecture`].
#[derive(Debug)]
pub struct Network<A> {
    architecture: A,
    layout: Arc<Layout>,
    prior: Prior,
}

impl<A: Architecture> Network<A> {
    /// The model of an architecture.
    pub fn new(architecture: A) -> Self {
        let layout = Arc::new(architecture.layout());
        let prior = architecture.prior(&layout);
        Self { architecture, layout, prior }
    }

    /// The module with these particles, one `[N, size]` tensor per block: Burn's own way to the particles of a run.
    ///
    /// # Panics
    /// There are no blocks, or other ones than those of [`Model::layout`].
    #[track_caller]
    pub fn module(&self, particles: &[Tensor<2>]) -> A::Module {
        self.load(particles, NONE)
    }

    /// The module with these particles, its blocks from `tracked_from` on as leaves of the tape.
    #[track_caller]
    fn load(&self, particles: &[Tensor<2>], tracked_from: usize) -> A::Module {
        let (found, blocks) = (particles.len(), self.layout.blocks());
        assert!(found == blocks.len() && found > 0, "{found} blocks of particles for a model with {}", blocks.len());
        let rows = particles[0].dims()[0];
        for (tensor, block) in particles.iter().zip(blocks) {
            let (shape, needed) = (tensor.dims(), [rows, block.size()]);
            assert!(shape == needed, "block `{}` of the particles must be {needed:?}, not {shape:?}", block.name);
        }
        let template = self.architecture.module(particles[0].dims()[0], &particles[0].device());
        template.map(&mut LoadBlocks { blocks: particles.iter().enumerate(), tracked_from })
    }
}

impl<A: Architecture> Network<A> {
    /// The layers that the module records, with the blocks of their weights and biases; `None` where it records none.
    ///
    /// # Errors
    /// That of [`Self::layer_blocks`].
    fn traced(
        &self,
        particles: &[Tensor<2>],
        inputs: Tensor<2>,
        uniforms: Tensor<2>,
    ) -> Option<Result<Vec<LayerCurvature>, String>> {
        let mut trace = LayerTrace::default();
        let (outputs, gradient) = self.load(particles, NONE).drawn_gradient(inputs, uniforms, &mut trace)?;
        // Σ z·g with g off the tape has the gradient g in the outputs z.
        Some(self.layer_blocks(trace.rows((outputs * gradient).sum().backward())))
    }

    /// The layers with the blocks of their weights and biases: the first blocks of the layout, two for each layer.
    ///
    /// # Errors
    /// A sentence about the first layer whose blocks have other sizes.
    fn layer_blocks(&self, layers: Vec<LayerRows>) -> Result<Vec<LayerCurvature>, String> {
        let blocks = self.layout.blocks();
        let shown = |index: usize| match blocks.get(index) {
            Some(block) => format!("block {index} is `{}`, {:?}", block.name, block.shape),
            None => format!("there is no block {index}"),
        };
        let layer = |(index, rows): (usize, LayerRows)| {
            let (weight, bias) = (2 * index, 2 * index + 1);
            let layer = LayerCurvature { weight, bias: Some(bias), rows };
            let [outputs, inputs] = layer.sizes();
            let size = |index: usize| blocks.get(index).map(|block| block.size());
            match size(weight) == Some(outputs * (inputs - 1)) && size(bias) == Some(outputs) {
                true => Ok(layer),
                false => Err(format!(
                    "layer {index} (from 0) that `ParticleModel::drawn_gradient` records has {} inputs and {outputs} outputs, so \
                     that its weights, [{outputs}, {0}], must be block {weight} of the layout, and its biases, [{outputs}], block \
                     {bias}; {}, and {}; declare the layers in the module in the order in which they are recorded, weights \
                     before biases, and nothing before them",
                    inputs - 1,
                    shown(weight),
                    shown(bias)
                )),
            }
        };
        layers.into_iter().enumerate().map(layer).collect()
    }
}

impl<A: Architecture> Model for Network<A> {
    fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    fn task(&self) -> Task {
        self.architecture.task()
    }

    fn prior(&self) -> &Prior {
        &self.prior
    }

    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64> {
        self.architecture.initial(&self.layout, rng)
    }

    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>> {
        if let Some(gradient) = self.architecture.likelihood_gradient(particles, batch, scale) {
            return gradient;
        }
        let model = self.load(particles, ALL);
        // Particles are independent, so the gradient of the sum holds every particle's own gradient in its row.
        gradients(&model, model.log_likelihood_slope(batch).mul_scalar(scale).sum())
    }

    fn factored_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Option<FactoredScore> {
        // The first layer's outputs are the leaf, in the place of its weights and biases. A model without such a layer puts
        // nothing on the tape.
        const WEIGHTS_AND_BIASES: usize = 2;
        let outputs = self.load(particles, NONE).first_outputs(batch.inputs.clone())?.autodiff().require_grad();
        let model = self.load(particles, WEIGHTS_AND_BIASES);
        let slope = model.slope_from_first(outputs.clone(), batch)?;
        let mut gradients = slope.mul_scalar(scale).sum().backward();
        let outputs = outputs.grad_remove(&mut gradients)?;
        let biases = outputs.clone().sum_dim(2).squeeze_dim(2);
        let mut take = TakeGradients { gradients, skipped: WEIGHTS_AND_BIASES, scores: vec![biases] };
        model.visit(&mut take);
        let first = SharedGradient { outputs, inputs: batch.inputs.clone() };
        Some(FactoredScore { first, rest: take.scores })
    }

    fn row_curvature(&self, particles: &[Tensor<2>], inputs: Tensor<2>, uniforms: Tensor<2>) -> Option<RowCurvature> {
        if let Some(curvature) = self.architecture.row_curvature(particles, &inputs) {
            return Some(curvature);
        }
        let rows = inputs.dims()[0];
        let layers = self.traced(particles, inputs, uniforms)?.ok()?;
        let noise = self.log_noise_precision().map(|block| (block, 0.5));
        Some(RowCurvature { layers, noise, rows })
    }

    fn curvature_misfit(&self, particles: &[Tensor<2>], inputs: Tensor<2>, uniforms: Tensor<2>) -> Option<String> {
        match self.architecture.row_curvature(particles, &inputs) {
            Some(_) => None,
            None => self.traced(particles, inputs, uniforms)?.err(),
        }
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        self.load(particles, NONE).log_likelihood(batch)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        self.load(particles, NONE).predict(inputs)
    }

    fn log_noise_precision(&self) -> Option<usize> {
        self.architecture.log_noise_precision(&self.layout)
    }

    fn obstacle(&self) -> Option<String> {
        self.architecture.obstacle()
    }

    fn embed(&self, particles: &[Tensor<2>], inputs: Tensor<2>, head_layers: usize) -> Option<Tensor<3>> {
        self.load(particles, NONE).embed(inputs, head_layers)
    }

    fn embedding_score(
        &self,
        particles: &[Tensor<2>],
        inputs: Tensor<2>,
        head_layers: usize,
        cotangent: Tensor<3>,
    ) -> Option<Vec<Tensor<2>>> {
        let model = self.load(particles, ALL);
        let embedding = model.embed(inputs, head_layers)?;
        Some(gradients(&model, (embedding * cotangent).sum()))
    }
}

/// The gradient of a scalar in every parameter of a module that is on the tape, `[N, size]` each.
fn gradients<M: Module>(model: &M, total: Tensor<1>) -> Vec<Tensor<2>> {
    let mut take = TakeGradients { gradients: total.backward(), skipped: 0, scores: Vec::new() };
    model.visit(&mut take);
    take.scores
}

/// The first block that is a leaf of the tape, where all are.
const ALL: usize = 0;

/// The same, where none is.
const NONE: usize = usize::MAX;

/// Loads the blocks in order into a module's parameters. On the tape each block is a leaf of its own, because each
/// slice of one big leaf would cost a zero-filled `[N, d]` in the backward pass.
struct LoadBlocks<'a> {
    blocks: std::iter::Enumerate<std::slice::Iter<'a, Tensor<2>>>,
    tracked_from: usize,
}

impl ModuleMapper for LoadBlocks<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (index, block) =
            self.blocks.next().expect("the layout was read off this module: a block for every parameter");
        let value = block.clone().reshape(param.lazy_shape());
        let value = if index >= self.tracked_from { value.autodiff().require_grad() } else { value };
        Param::initialized(param.id, value)
    }
}

struct TakeGradients {
    gradients: Gradients,
    /// The number of parameters that come before those whose gradients are taken.
    skipped: usize,
    scores: Vec<Tensor<2>>,
}

impl ModuleVisitor for TakeGradients {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        let value = param.val();
        let particles = value.dims()[0] as i32;
        let gradient = value.grad_remove(&mut self.gradients);
        // A parameter that the scalar does not depend on has no gradient: its score is 0.
        let gradient = gradient.unwrap_or_else(|| value.without_autodiff().zeros_like());
        self.scores.push(gradient.reshape([particles, -1]));
    }
}
