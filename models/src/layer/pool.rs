//! Pooling of images.

use burn::tensor::Tensor;
use burn::tensor::module::{avg_pool2d, max_pool2d};
use burn::tensor::ops::{AvgPoolOptions, MaxPoolOptions};

/// Pooling over square windows without padding; a window that would leave the image is dropped. Each channel is pooled
/// by itself, so those of all particles lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The largest value of a window.
    Max {
        /// Height and width of a window.
        size: usize,
        /// Pixels from one window to the next.
        stride: usize,
    },
    /// The mean of a window.
    Average {
        /// Height and width of a window.
        size: usize,
        /// Pixels from one window to the next.
        stride: usize,
    },
    /// The mean of each channel: the output has one pixel.
    GlobalAverage,
}

impl Pool {
    /// Pools every channel.
    ///
    /// # Shapes
    /// - `images`: `[B, channels, H, W]`, H and W at least the window's
    /// - returns `[B, channels, H', W']`, H' = (H − size)/stride + 1, rounded down
    pub fn forward(self, images: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Max { size, stride } => max_pool2d(images, MaxPoolOptions::new([size; 2]).with_stride([stride; 2])),
            Self::Average { size, stride } => {
                avg_pool2d(images, AvgPoolOptions::new([size; 2]).with_stride([stride; 2]))
            }
            Self::GlobalAverage => images.mean_dim(3).mean_dim(2),
        }
    }
}
