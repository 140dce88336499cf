//! The dense layer.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Device, Tensor};

use super::shared;

/// A dense layer for N particles at once: h_n = W_n x + b_n.
///
/// Rows of data lie along the last axis, so that the first layer, whose input all particles share, is one matrix
/// product over all particles without a copy.
#[derive(Module, Debug)]
pub struct ParticleLinear {
    /// `[N, out, in]`
    pub weight: Param<Tensor<3>>,
    /// `[N, out, 1]`
    pub bias: Param<Tensor<3>>,
}

impl ParticleLinear {
    /// A layer for N = `particles` with unset parameters, `outputs` × `inputs` weights each.
    pub fn new(particles: usize, inputs: usize, outputs: usize, device: &Device) -> Self {
        Self { weight: unset([particles, outputs, inputs], device), bias: unset([particles, outputs, 1], device) }
    }

    /// The number of particles N.
    pub(crate) fn particles(&self) -> usize {
        self.weight.val().dims()[0]
    }

    /// Applies the layer of every particle to the same rows.
    ///
    /// # Shapes
    /// - `x`: `[B, in]`
    /// - returns `[N, out, B]`
    pub fn forward_shared(&self, x: Tensor<2>) -> Tensor<3> {
        let [particles, outputs, inputs] = self.weight.val().dims();
        let rows = x.dims()[0];
        let product = shared::outputs(self.weight.val().reshape([particles * outputs, inputs]), x);
        product.reshape([particles, outputs, rows]) + self.bias.val()
    }

    /// Applies the layer of each particle to its own hidden values.
    ///
    /// # Shapes
    /// - `hidden`: `[N, in, B]`
    /// - returns `[N, out, B]`
    pub fn forward(&self, hidden: Tensor<3>) -> Tensor<3> {
        self.weight.val().matmul(hidden) + self.bias.val()
    }
}

/// A parameter that has a shape but no value yet; the particles are loaded into it.
pub(crate) fn unset<const D: usize>(shape: [usize; D], device: &Device) -> Param<Tensor<D>> {
    let zeros = move |device: &Device, _tracked: bool| Tensor::zeros(shape, device);
    Param::uninitialized(ParamId::new(), zeros, device.clone(), true, shape.into())
}
