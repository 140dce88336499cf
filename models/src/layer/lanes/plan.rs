//! The sizes of a convolution block and the offsets that its loops read: in lanes of 16 rows, from the start of an
//! image.

/// Rows of data in a vector.
pub(super) const LANES: usize = 16;

/// A convolution with the maximum and the function that may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOptions {
    /// Pixels from one position of the kernel to the next.
    pub stride: usize,
    /// Rows and columns of zeros on each side of the image.
    pub pad: [usize; 2],
    /// Side of the pooled window and pixels to the next one; `[1, 1]` where nothing is pooled.
    pub pool: [usize; 2],
    /// Whether max(z, 0) ends the block.
    pub relu: bool,
}

/// [`BlockOptions`] with the sizes of its tensors.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub block: BlockOptions,
    /// Channels of the input.
    pub channels: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Height and width of the kernel.
    pub kernel: [usize; 2],
    /// Height and width of the image.
    pub image: [usize; 2],
    /// Height and width of the image with the zeros around it.
    pub padded: [usize; 2],
    /// Height and width of the convolution's output.
    pub map: [usize; 2],
    /// Height and width of the block's output.
    pub pooled: [usize; 2],
    /// For each weight of one output, the offset of its pixel from the kernel's position; `[channels · kernel]`.
    pub taps: Vec<usize>,
    /// For each pixel of the map, the kernel's position in the padded image.
    pub positions: Vec<usize>,
    /// The index of each pixel of the map.
    pub pixels: Vec<usize>,
    /// For each output, the start of its map.
    pub maps: Vec<usize>,
}

impl Plan {
    /// The plan for a weight of shape `[out, in, kernel height, kernel width]` and images of this height and width.
    pub fn new(block: BlockOptions, weight: [usize; 4], image: [usize; 2]) -> Self {
        let [outputs, channels, high, wide] = weight;
        let [height, width] = [0, 1].map(|side| image[side] + 2 * block.pad[side]);
        let map = [(height - high) / block.stride + 1, (width - wide) / block.stride + 1];
        let [window, step] = block.pool;
        let pooled = map.map(|side| (side - window) / step + 1);
        let grid = |[rows, columns]: [usize; 2], stride: usize, start: usize| {
            (0..rows).flat_map(move |y| (0..columns).map(move |x| start + y * stride * width + x * stride))
        };
        let area = map[0] * map[1];
        Self {
            block,
            channels,
            outputs,
            kernel: [high, wide],
            image,
            padded: [height, width],
            map,
            pooled,
            taps: (0..channels).flat_map(|c| grid([high, wide], 1, c * height * width)).collect(),
            positions: grid(map, block.stride, 0).collect(),
            pixels: (0..area).collect(),
            maps: (0..outputs).map(|o| o * area).collect(),
        }
    }

    /// Numbers of an image with all channels, of 16 rows.
    pub fn image_len(&self) -> usize {
        self.channels * self.image[0] * self.image[1] * LANES
    }

    /// Numbers of an image with the zeros around it, with all channels, of 16 rows.
    pub fn padded_len(&self) -> usize {
        self.channels * self.padded[0] * self.padded[1] * LANES
    }

    /// Numbers of the convolution's output, of 16 rows.
    pub fn map_len(&self) -> usize {
        self.outputs * self.map[0] * self.map[1] * LANES
    }

    /// Numbers of the block's output, of 16 rows.
    pub fn pooled_len(&self) -> usize {
        self.outputs * self.pooled[0] * self.pooled[1] * LANES
    }

    /// The number of weights of a particle.
    pub fn weights(&self) -> usize {
        self.outputs * self.taps.len()
    }

    /// Copies an image into the middle of a zero one.
    pub fn pad(&self, image: &[f32], padded: &mut [f32]) {
        if self.padded == self.image {
            return padded.copy_from_slice(image);
        }
        padded.fill(0.0);
        self.rows(|inner, outer, len| padded[outer..outer + len].copy_from_slice(&image[inner..inner + len]));
    }

    /// Copies the middle of a padded image.
    pub fn crop(&self, padded: &[f32], image: &mut [f32]) {
        self.rows(|inner, outer, len| image[inner..inner + len].copy_from_slice(&padded[outer..outer + len]));
    }

    /// Start in the image, start in the padded image and length of every row of pixels.
    fn rows(&self, mut copy: impl FnMut(usize, usize, usize)) {
        let ([height, width], [high, wide], [top, left]) = (self.image, self.padded, self.block.pad);
        for (channel, y) in (0..self.channels).flat_map(|c| (0..height).map(move |y| (c, y))) {
            let inner = (channel * height + y) * width;
            let outer = (channel * high + y + top) * wide + left;
            copy(inner * LANES, outer * LANES, width * LANES);
        }
    }
}
