//! Any ordinary Burn module as a Bayesian model, with one forward pass per particle.
//!
//! This is the interface for users' own networks, and the reference in the tests of the layers with a particle axis.

use std::fmt;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor, activation};
use rand::Rng;

use crate::init::standard_normal;
use crate::layer::unset;
use crate::layout::Layout;
use crate::model::{Architecture, Batch, ParticleModel, Task};
use crate::obstacle;
use crate::prior::Prior;

/// An ordinary network, from rows to logits.
pub trait Forward: Module {
    /// The logits of some rows.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[B, C]`
    fn forward(&self, inputs: Tensor<2>) -> Tensor<2>;
}

/// A classifier made of N copies of an ordinary module.
pub struct ReplicatedConfig<M> {
    build: Arc<dyn Fn(&Device) -> M + Send + Sync>,
    classes: usize,
    weight_precision: f64,
}

impl<M: Forward> ReplicatedConfig<M> {
    /// `build` makes one network on a device; its outputs are logits of `classes` classes.
    /// Every parameter gets the prior N(0, 1/e) and starts at N(0, 1/(fan_in + 1)), whatever `build` has set it to;
    /// vectors start at 0, the gains of normalisation layers (Burn's `gamma`) at 1.
    pub fn new(classes: usize, build: impl Fn(&Device) -> M + Send + Sync + 'static) -> Self {
        Self { build: Arc::new(build), classes, weight_precision: std::f64::consts::E }
    }

    /// Sets the prior precision of every parameter, a finite number greater than 0; a run refuses any other.
    pub fn with_weight_precision(mut self, precision: f64) -> Self {
        self.weight_precision = precision;
        self
    }
}

impl<M> fmt::Debug for ReplicatedConfig<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicatedConfig")
            .field("classes", &self.classes)
            .field("weight_precision", &self.weight_precision)
            .finish_non_exhaustive()
    }
}

/// N ordinary modules whose parameters are rows of shared `[N, size]` blocks.
#[derive(Module, Debug)]
pub struct Replicated<M: Forward> {
    /// One `[N, size]` tensor per parameter of M, in visiting order.
    pub blocks: Vec<Param<Tensor<2>>>,
    #[module(skip)]
    template: M,
}

impl<M: Forward> Replicated<M> {
    /// Logits of every particle.
    ///
    /// # Shapes
    /// - `inputs`: `[B, p]`
    /// - returns `[N, B, C]`
    pub fn forward(&self, inputs: &Tensor<2>) -> Tensor<3> {
        let particles = self.blocks.first().map_or(0, |block| block.val().dims()[0]);
        let logits = (0..particles).map(|n| self.particle(n).forward(inputs.clone())).collect();
        Tensor::stack(logits, 0)
    }

    /// The ordinary module of particle `n`, counted from 0.
    ///
    /// # Panics
    /// There is no such particle.
    pub fn particle(&self, n: usize) -> M {
        let rows = self.blocks.iter().map(|block| block.val().narrow(0, n, 1)).collect::<Vec<_>>();
        self.template.clone().map(&mut LoadRow { rows: rows.into_iter() })
    }
}

/// Loads one particle's rows into an ordinary module and keeps them on the tape.
struct LoadRow {
    rows: std::vec::IntoIter<Tensor<2>>,
}

impl ModuleMapper for LoadRow {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let row = self.rows.next().expect("one block was made for every parameter of the template");
        Param::initialized(param.id, row.reshape(param.lazy_shape()))
    }
}

impl<M: Forward> ParticleModel for Replicated<M> {
    fn log_likelihood(&self, batch: &Batch) -> Tensor<1> {
        let logits = self.forward(&batch.inputs);
        let targets = batch.targets.clone().unsqueeze_dim::<3>(0);
        (activation::log_softmax(logits, 2) * targets).sum_dims_squeeze::<1, _>(&[1, 2])
    }

    fn predict(&self, inputs: Tensor<2>) -> Tensor<3> {
        activation::log_softmax(self.forward(&inputs), 2)
    }
}

impl<M: Forward + Send + Sync + 'static> Architecture for ReplicatedConfig<M> {
    type Module = Replicated<M>;

    fn module(&self, particles: usize, device: &Device) -> Replicated<M> {
        let template = (self.build)(device);
        let layout = Layout::of_module(&template);
        let blocks = layout.blocks().iter().map(|block| unset([particles, block.size()], device)).collect();
        Replicated { blocks, template }
    }

    fn task(&self) -> Task {
        Task::Classification { classes: self.classes }
    }

    fn prior(&self, layout: &Layout) -> Prior {
        Prior::normal(layout, self.weight_precision)
    }

    fn initial(&self, layout: &Layout, rng: &mut dyn Rng) -> Vec<f64> {
        let mut theta = vec![0.0; layout.dim()];
        for block in layout.blocks() {
            let range = block.offset..block.offset + block.size();
            if block.shape.len() == 1 {
                // With a gain of 0 the layer's output and all gradients before it would stay 0.
                let start = if block.name.ends_with("gamma") { 1.0 } else { 0.0 };
                theta[range].fill(start);
                continue;
            }
            // Burn's `Linear` keeps its weight as [in, out], its convolutions as [out, in, ...].
            let fan_in: usize = if block.shape.len() == 2 { block.shape[0] } else { block.shape[1..].iter().product() };
            let sd = (fan_in as f64 + 1.0).powf(-0.5);
            theta[range].iter_mut().for_each(|value| *value = sd * standard_normal(rng));
        }
        theta
    }

    fn layout(&self) -> Layout {
        Layout::of_module(&(self.build)(&Device::flex()))
    }

    fn obstacle(&self) -> Option<String> {
        obstacle::of(&(self.build)(&Device::flex()))
    }
}
