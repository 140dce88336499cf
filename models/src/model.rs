//! What a model must answer, and the one place where particles are lifted onto the autodiff tape.

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Device, Gradients, Tensor};
use rand::Rng;

use crate::layout::Layout;
use crate::prior::Prior;

/// Rows of data on the device.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Features `[B, p]`.
    pub inputs: Tensor<2>,
    /// Classification: one-hot classes `[B, C]`. Regression: standardised targets `[B, 1]`. Densities: `[B, 1]`, unused.
    pub targets: Tensor<2>,
}

/// What the predictions of a model mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `predict` returns log-probabilities `[N, B, C]`.
    Classification {
        /// Number of classes C.
        classes: usize,
    },
    /// `predict` returns mean and log precision of a Gaussian, `[N, B, 2]`, in the standardised scale.
    Regression,
    /// The particles themselves are the answer; `predict` returns the log-likelihood of each row, `[N, B, 1]`.
    Density,
}

/// A Burn module whose parameters are `[N, ...]`: N networks evaluated at once.
pub trait ParticleModel: Module {
    /// Sum over the rows of log p(y | x, θ_n).
    ///
    /// # Shapes
    /// - returns `[N]`
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1>;

    /// Predictive parameters of every particle; [`Task`] says what they mean.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, B, outputs]`
    fn predict(&self, inputs: Tensor<2>) -> Tensor<3>;
}

/// How to make a [`ParticleModel`] and its prior: the part of a model that needs no tensor.
pub trait Architecture: Debug + Send + Sync + 'static {
    /// The module that this architecture builds.
    type Module: ParticleModel;

    /// A module for N particles whose parameters have shapes but need no values.
    fn module(&self, particles: usize, device: &Device) -> Self::Module;

    /// What `predict` returns.
    fn task(&self) -> Task;

    /// p0(θ).
    fn prior(&self, layout: &Layout) -> Prior;

    /// One initial flat particle, length d. Default: a draw from the prior.
    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        self.prior(layout).sample(layout, rng)
    }

    /// Blocks, names and shapes of one particle. Default: read off the module.
    fn layout(&self) -> Layout {
        Layout::of_particles(&self.module(1, &Device::flex()))
    }

    /// Index of the block that holds log γ, the log noise precision of a regression, if there is one: it starts at
    /// −log MSE of the initial network (ALGORITHMS 3.2).
    fn log_noise_precision(&self, _layout: &Layout) -> Option<usize> {
        None
    }
}

/// A model whose architecture is chosen at run time. Made by [`Network::new`] for every [`Architecture`].
///
/// Particles come as one `[N, size]` tensor a block, in the order of [`Model::layout`].
pub trait Model: Debug + Send + Sync {
    /// Blocks of one particle.
    fn layout(&self) -> &Arc<Layout>;

    /// What `predict` returns.
    fn task(&self) -> Task;

    /// p0(θ).
    fn prior(&self) -> &Prior;

    /// One initial flat particle, length d.
    fn initial(&self, rng: &mut dyn Rng) -> Vec<f64>;

    /// `scale` · ∇_θ Σ_rows log p(y | x, θ_n), one `[N, size]` tensor a block. **The only function of fedstein that
    /// lifts tensors onto the autodiff tape**; its one backward pass frees the tape again.
    fn likelihood_score(&self, particles: &[Tensor<2>], batch: &Batch, scale: f64) -> Vec<Tensor<2>>;

    /// Σ_rows log p(y | x, θ_n), `[N]`, without a tape.
    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1>;

    /// Predictive parameters `[N, B, outputs]`, without a tape.
    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3>;

    /// See [`Architecture::log_noise_precision`].
    fn log_noise_precision(&self) -> Option<usize>;
}

/// The [`Model`] of an [`Architecture`].
#[derive(Debug)]
pub struct Network<A> {
    architecture: A,
    layout: Arc<Layout>,
    prior: Prior,
}

impl<A: Architecture> Network<A> {
    /// Reads layout and prior off the architecture.
    pub fn new(architecture: A) -> Self {
        let layout = Arc::new(architecture.layout());
        let prior = architecture.prior(&layout);
        Self { architecture, layout, prior }
    }

    fn load(&self, particles: &[Tensor<2>], tracked: bool) -> A::Module {
        let template = self.architecture.module(particles[0].dims()[0], &particles[0].device());
        template.map(&mut LoadBlocks { blocks: particles.iter(), tracked })
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
        let model = self.load(particles, true);
        // Particles are independent, so the gradient of the sum holds every particle's own gradient in its row.
        let total = model.log_likelihood(batch).mul_scalar(scale).sum();
        let mut take = TakeGradients { gradients: total.backward(), scores: Vec::with_capacity(particles.len()) };
        model.visit(&mut take);
        take.scores
    }

    fn log_likelihood(&self, particles: &[Tensor<2>], batch: &Batch) -> Tensor<1> {
        self.load(particles, false).log_likelihood(batch)
    }

    fn predict(&self, particles: &[Tensor<2>], inputs: Tensor<2>) -> Tensor<3> {
        self.load(particles, false).predict(inputs)
    }

    fn log_noise_precision(&self) -> Option<usize> {
        self.architecture.log_noise_precision(&self.layout)
    }
}

/// Puts one block after the other into a module's parameters; on the tape each block is a leaf of its own, because
/// slices of one big leaf would cost a zero-filled `[N, d]` each on the way back.
struct LoadBlocks<'a> {
    blocks: std::slice::Iter<'a, Tensor<2>>,
    tracked: bool,
}

impl ModuleMapper for LoadBlocks<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let block = self.blocks.next().expect("the layout was read off this module: a block for every parameter");
        let value = block.clone().reshape(param.lazy_shape());
        let value = if self.tracked { value.autodiff().require_grad() } else { value };
        Param::initialized(param.id, value)
    }
}

struct TakeGradients {
    gradients: Gradients,
    scores: Vec<Tensor<2>>,
}

impl ModuleVisitor for TakeGradients {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let particles = value.dims()[0] as i32;
        let gradient = value.grad_remove(&mut self.gradients);
        // A parameter that the likelihood does not touch has no gradient: its score is 0.
        let gradient = gradient.unwrap_or_else(|| value.without_autodiff().zeros_like());
        self.scores.push(gradient.reshape([particles, -1]));
    }
}
