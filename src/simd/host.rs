//! Tensors of the `flex` backend as slices.

use burn::backend::Flex;
use burn::backend::tensor::FloatTensor;
use burn::tensor::Tensor;
use fedstein_models::simd::on_flex;

/// A matrix of f32 in this process's memory, row-major and without gaps.
#[derive(Debug)]
pub(crate) struct Host {
    tensor: FloatTensor<Flex>,
    rows: usize,
    columns: usize,
}

impl Host {
    /// The values of a tensor; `None` where they are on another device, are not f32, or there are none. They are copied
    /// only where the tensor is a view with gaps.
    pub fn of(tensor: Tensor<2>) -> Option<Self> {
        let [rows, columns] = tensor.dims();
        let tensor = on_flex(tensor)?;
        (rows * columns > 0).then_some(Self { tensor, rows, columns })
    }

    /// Every block of a set; `None` where one of them is not on the host.
    pub fn all(blocks: impl IntoIterator<Item = Tensor<2>>) -> Option<Vec<Self>> {
        blocks.into_iter().map(Self::of).collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The values, row-major.
    pub fn values(&self) -> &[f32] {
        self.tensor.storage()
    }

    /// The values, row-major, for changes; they are copied first where another tensor shares them.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.tensor.storage_mut()
    }

    /// The values as a tensor again.
    pub fn into_tensor(self) -> Tensor<2> {
        Tensor::from_primitive::<Flex>(self.tensor)
    }
}
