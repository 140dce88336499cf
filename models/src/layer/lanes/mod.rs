//! Convolution blocks on the CPU: convolution, maximum over windows, bias and max(z, 0) in one operation, for all
//! particles, with its own backward pass. In `f32` on Burn's flex backend; elsewhere the layers do the same in four
//! operations.
//!
//! 16 rows of data lie side by side in the lanes of a vector: `[N, blocks of 16 rows, C, H, W, 16]`. A convolution is
//! then a loop over kernel and channels whose every step is a multiply-add of whole vectors, without the copies of
//! patches that a matrix product needs, and a maximum compares whole vectors. What a task reads and writes, one block
//! of one particle, fits the second cache.
//!
//! [`plan`] has the sizes, [`tile`] the sums in registers, [`forward`] and [`backward`] the two passes over slices of
//! numbers, [`tape`] the operation as Burn sees it. `docs/performance.md` has times.

mod backward;
mod forward;
mod plan;
mod scratch;
mod tape;
#[cfg(test)]
mod tests;
mod tile;

use burn::tensor::{DType, Tensor};

pub(crate) use plan::BlockOptions;
use plan::LANES;
pub(super) use tape::is_on_flex;
use tape::on_tape;

/// Images whose rows of data lie in lanes.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    /// `[N, blocks, C, H, W, 16]`, N = 1 where all particles see the same images. The rows that fill up the last block
    /// are zeros at first; their values are never read.
    images: Tensor<6>,
    /// The number of rows B.
    rows: usize,
}

impl Lanes {
    /// Whether a block can run on these images with these weights: at least one row, in `f32`, on flex.
    ///
    /// # Shapes
    /// - `images`: `[B, channels, H, W]`
    /// - `weight`: `[N, out, in, kernel height, kernel width]`
    pub fn can_hold(images: &Tensor<4>, weight: &Tensor<5>) -> bool {
        images.dims()[0] > 0 && images.dtype() == DType::F32 && is_on_flex(images) && is_on_flex(weight)
    }

    /// Images `[B, N·C, H, W]` with their rows in lanes.
    pub fn new(images: Tensor<4>, particles: usize) -> Self {
        let [rows, channels, height, width] = images.dims();
        let blocks = rows.div_ceil(LANES);
        let missing = blocks * LANES - rows;
        let images = match missing {
            0 => images,
            _ => {
                let zeros = Tensor::zeros([missing, channels, height, width], &images.device());
                Tensor::cat(vec![images, zeros], 0)
            }
        };
        let images = images.reshape([blocks, LANES, particles, channels / particles, height, width]);
        Self { images: images.permute([2, 0, 3, 4, 5, 1]), rows }
    }

    /// Convolution, maximum, bias and max(z, 0).
    ///
    /// # Shapes
    /// - `weight`: `[N, out, in, kernel height, kernel width]`
    /// - `bias`: `[N, out]`
    pub fn block(self, weight: Tensor<5>, bias: Tensor<2>, block: BlockOptions) -> Self {
        Self { images: on_tape(self.images, weight, bias, block), rows: self.rows }
    }

    /// Applies an element-wise function.
    pub fn map(self, f: impl FnOnce(Tensor<6>) -> Tensor<6>) -> Self {
        Self { images: f(self.images), rows: self.rows }
    }

    /// Converts back to `[B, N·C, H, W]`.
    pub fn into_images(self) -> Tensor<4> {
        let [particles, blocks, channels, height, width, _] = self.images.dims();
        let images = self.images.permute([1, 5, 0, 2, 3, 4]);
        images.reshape([blocks * LANES, particles * channels, height, width]).narrow(0, 0, self.rows)
    }

    /// The input of a dense layer, `[N, C·H·W, B]`.
    pub fn into_features(self) -> Tensor<3> {
        let [particles, blocks, channels, height, width, _] = self.images.dims();
        let features = self.images.permute([0, 2, 3, 4, 1, 5]);
        features.reshape([particles, channels * height * width, blocks * LANES]).narrow(2, 0, self.rows)
    }
}
