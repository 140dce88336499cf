//! A set of N particles on a backend, held as parameter blocks and converted from and to flat vectors.

use std::marker::PhantomData;
use std::sync::Arc;

use burn::tensor::{DType, Tensor, TensorData, TensorReadError};
use fedstein_models::Layout;
use ndarray::Array2;

use crate::array::{Array, ArrayError, Values};
use crate::backend::{Backend, Session, upload_matrix};
use crate::simd::{self, Host};

/// N particles, held as one `[N, size]` tensor for each parameter block.
#[derive(Clone, Debug)]
pub struct Particles<B: Backend> {
    blocks: Vec<Tensor<2>>,
    layout: Arc<Layout>,
    backend: PhantomData<B>,
}

impl<B: Backend> Particles<B> {
    /// Particles from blocks `[N, size]` on B's device, in the layout's order.
    pub(crate) fn from_blocks(blocks: Vec<Tensor<2>>, layout: Arc<Layout>) -> Self {
        debug_assert_eq!(blocks.len(), layout.blocks().len());
        Self { blocks, layout, backend: PhantomData }
    }

    /// Particles from flat host rows `[N, d]`.
    ///
    /// # Errors
    /// The array is not `[N, d]` for this layout.
    pub fn from_array(array: &Array, layout: &Arc<Layout>, session: &Session<B>) -> Result<Self, ArrayError> {
        let [rows, dim] = array.shape[..] else { return Err(ArrayError::NotMatrix(array.shape.clone())) };
        if dim != layout.dim() || rows == 0 {
            return Err(ArrayError::Particles { dim: layout.dim(), rows, columns: dim });
        }
        let blocks = layout.blocks().iter().map(|block| {
            let columns = block.offset..block.offset + block.size();
            let data = array.values.columns(rows, dim, columns);
            Tensor::from_data(data, (session.device(), session.dtype()))
        });
        Ok(Self::from_blocks(blocks.collect(), layout.clone()))
    }

    /// The particles as flat host rows `[N, d]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn to_array(&self) -> Result<Array, TensorReadError> {
        let (rows, dim) = (self.count(), self.dim());
        let values = if self.dtype() == DType::F64 {
            Values::F64(self.gather::<f64>(rows, dim)?)
        } else {
            Values::F32(self.gather::<f32>(rows, dim)?)
        };
        Ok(Array { shape: vec![rows, dim], values })
    }

    fn gather<E: burn::tensor::Element>(&self, rows: usize, dim: usize) -> Result<Vec<E>, TensorReadError> {
        let mut flat = vec![E::from_elem(0.0); rows * dim];
        for (tensor, block) in self.blocks.iter().zip(self.layout.blocks()) {
            let values = tensor.clone().try_into_vec_as::<E>()?;
            let size = block.size();
            for (from, to) in values.chunks_exact(size).zip(flat.chunks_exact_mut(dim)) {
                to[block.offset..block.offset + size].copy_from_slice(from);
            }
        }
        Ok(flat)
    }

    /// The number of particles N.
    pub fn count(&self) -> usize {
        self.blocks[0].dims()[0]
    }

    /// The dimension d of a particle.
    pub fn dim(&self) -> usize {
        self.layout.dim()
    }

    /// The blocks, `[N, size]` each.
    pub fn blocks(&self) -> &[Tensor<2>] {
        &self.blocks
    }

    /// Names, shapes and offsets of the blocks.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.blocks[0].dtype()
    }

    /// The number of bytes of all coordinates.
    pub fn bytes(&self) -> u64 {
        (self.count() * self.dim() * self.dtype().size()) as u64
    }

    /// The root mean square over coordinates of the particles' standard deviation; 0 for N = 1. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn spread(&self) -> Result<f64, TensorReadError> {
        let squares: f64 = self.centred().0.squared_norms()?.iter().sum();
        let freedom = (self.count() as f64 - 1.0).max(1.0);
        Ok((squares / (freedom * self.dim() as f64)).sqrt())
    }

    /// The particles whose blocks are the function of these blocks, each `[N, size]`.
    pub fn map(&self, mut f: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        let blocks = self.blocks.iter().map(|block| f(block.clone())).collect();
        Self::from_blocks(blocks, self.layout.clone())
    }

    /// [`Self::map`] that gives its blocks away, so that they can be changed in place.
    pub fn map_into(self, f: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self::from_blocks(self.blocks.into_iter().map(f).collect(), self.layout)
    }

    /// The particles whose blocks are the function of the pairs of blocks of two sets.
    pub fn zip(self, other: Self, mut f: impl FnMut(Tensor<2>, Tensor<2>) -> Tensor<2>) -> Self {
        let layout = self.layout;
        let blocks = self.blocks.into_iter().zip(other.blocks).map(|(a, b)| f(a, b)).collect();
        Self::from_blocks(blocks, layout)
    }

    /// The mean particle as a set of one, `[1, d]`.
    pub fn mean(&self) -> Self {
        self.map(|block| block.mean_dim(0))
    }

    /// X·Yᵀ, `[N, M]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn gram(&self, other: &Self) -> Result<Array2<f64>, TensorReadError> {
        if let (Some(x), Some(y)) = (self.host(), other.host()) {
            return Ok(simd::gram(&x, &y));
        }
        let products = self.blocks.iter().zip(&other.blocks).map(|(x, y)| x.clone().matmul(y.clone().transpose()));
        read_matrix(products.reduce(|sum, product| sum + product).expect("a layout has at least one block"))
    }

    /// X_c·X_cᵀ, `[N, N]`, of the offsets X_c from the mean particle; see [`Self::centred`]. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn centred_gram(&self) -> Result<Array2<f64>, TensorReadError> {
        if let Some(x) = self.host() {
            return Ok(simd::centred_gram(&x));
        }
        let (offsets, _) = self.centred();
        offsets.gram(&offsets)
    }

    /// X·(Y − 1·centre)ᵀ, `[N, M]`; `centre` is a set of one. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn gram_with_offsets(&self, other: &Self, centre: &Self) -> Result<Array2<f64>, TensorReadError> {
        if let (Some(x), Some(y), Some(centre)) = (self.host(), other.host(), centre.host()) {
            return Ok(simd::gram_with_offsets(&x, &y, &centre));
        }
        self.gram(&other.clone().zip(centre.clone(), |block, centre| block - centre))
    }

    /// Whether the blocks are in this process's memory in f32, and none is empty; then so are those of every set of the same
    /// session and layout.
    pub(crate) fn is_on_host(&self) -> bool {
        B::SLICES && self.dtype() == DType::F32 && self.layout.blocks().iter().all(|block| block.size() > 0)
    }

    /// The blocks as slices; `None` where they are not in this process's memory in f32.
    pub(crate) fn host(&self) -> Option<Vec<Host>> {
        self.is_on_host().then(|| Host::all(self.blocks.iter().cloned())).flatten()
    }

    /// [`Self::host`] that gives its blocks away.
    pub(crate) fn into_host(self) -> Option<Vec<Host>> {
        Host::all(self.blocks)
    }

    /// x_n·y_n of the particles of two sets, `[N]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn row_products(&self, other: &Self) -> Result<Vec<f64>, TensorReadError> {
        if let (Some(x), Some(y)) = (self.host(), other.host()) {
            return Ok(simd::row_products(&x, &y));
        }
        let products = self.blocks.iter().zip(&other.blocks).map(|(x, y)| (x.clone() * y.clone()).sum_dim(1));
        let total = products.reduce(|sum, block| sum + block).expect("a layout has at least one block");
        total.try_into_vec_as::<f64>()
    }

    /// ‖θ_n‖², `[N]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn squared_norms(&self) -> Result<Vec<f64>, TensorReadError> {
        self.row_products(self)
    }

    /// ‖θ_n − centre‖², `[N]`; `centre` is a set of one. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn squared_distances_from(&self, centre: &Self) -> Result<Vec<f64>, TensorReadError> {
        if let (Some(x), Some(centre)) = (self.host(), centre.host()) {
            return Ok(simd::row_offsets(&x, &centre));
        }
        self.clone().zip(centre.clone(), |block, centre| block - centre).squared_norms()
    }

    /// Σ_k w_k X_k of sets `[N, d]` of one layout, in their order: `weights` are w `[K]`. With `rows`, row i of the sum
    /// has the rows `rows[k][i]` of the sets; without, their rows i. There must be at least one set.
    pub fn weighted_sum(sets: &[Self], weights: &[f64], rows: Option<&[Vec<usize>]>) -> Self {
        let hosts: Option<Vec<Vec<Host>>> = sets.iter().map(Self::host).collect();
        let Some(hosts) = hosts else {
            let terms = sets.iter().zip(weights).enumerate().map(|(k, (set, weight))| {
                let matched = rows.map_or_else(|| set.clone(), |rows| set.rows(&rows[k]));
                matched.map_into(|block| block.mul_scalar(*weight))
            });
            return terms.reduce(|sum, term| sum.zip(term, |sum, term| sum + term)).expect("there is a set");
        };
        let weights: Vec<f32> = weights.iter().map(|weight| *weight as f32).collect();
        let row = |k: usize, i: usize| rows.map_or(i, |rows| rows[k][i]);
        let blocks = sets[0].blocks.iter().enumerate().map(|(b, block)| {
            let parts: Vec<&Host> = hosts.iter().map(|blocks| &blocks[b]).collect();
            let sum = simd::weighted_sum(&parts, &weights, row);
            Tensor::from_data(TensorData::new(sum, block.dims()), &block.device())
        });
        Self::from_blocks(blocks.collect(), sets[0].layout.clone())
    }

    /// The mean of sets of one layout by index, `[N, d]`; `None` of none.
    pub fn mean_of(sets: &[Self]) -> Option<Self> {
        match sets {
            [] => None,
            [only] => Some(only.clone()),
            _ => {
                let sum = Self::weighted_sum(sets, &vec![1.0; sets.len()], None);
                Some(sum.map_into(|block| block.div_scalar(sets.len() as f64)))
            }
        }
    }

    /// ‖θ_n‖, `[N]`. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn row_norms(&self) -> Result<Vec<f64>, TensorReadError> {
        Ok(self.squared_norms()?.into_iter().map(f64::sqrt).collect())
    }

    /// C·X, `[M, d]`, for a small host matrix C `[M, N]`: M linear combinations of the particles.
    pub fn combine(&self, coefficients: &Array2<f64>) -> Self {
        let c = upload_matrix(coefficients, &self.blocks[0].device(), self.dtype());
        self.map(|block| c.clone().matmul(block))
    }

    /// The particles of these indices, in this order, `[rows, d]`.
    pub fn rows(&self, rows: &[usize]) -> Self {
        let pick = |block: Tensor<2>| {
            let picked = rows.iter().map(|row| block.clone().narrow(0, *row, 1)).collect::<Vec<_>>();
            Tensor::cat(picked, 0)
        };
        self.map(pick)
    }

    /// Several sets of one layout as one set, in this order; there must be at least one.
    pub fn stack(sets: &[Self]) -> Self {
        let blocks = 0..sets[0].blocks.len();
        let stacked = blocks.map(|b| Tensor::cat(sets.iter().map(|set| set.blocks[b].clone()).collect::<Vec<_>>(), 0));
        Self::from_blocks(stacked.collect(), sets[0].layout.clone())
    }

    /// The offsets from the mean particle, `[N, d]`, and the mean, `[1, d]`. Distances between offsets are the same,
    /// and keep the digits that f32 would lose where ‖θ‖ is much larger than the spread.
    pub fn centred(&self) -> (Self, Self) {
        let mean = self.mean();
        let offsets = self.clone().zip(mean.clone(), |block, mean| block - mean);
        (offsets, mean)
    }
}

/// A small device matrix on the host, in f64 and in the same shape. Waits for the device.
///
/// # Errors
/// Reading from the device fails.
pub fn read_matrix(tensor: Tensor<2>) -> Result<Array2<f64>, TensorReadError> {
    let [rows, columns] = tensor.dims();
    let values = tensor.try_into_vec_as::<f64>()?;
    Ok(Array2::from_shape_vec((rows, columns), values).expect("a tensor holds rows x columns values"))
}

impl Values {
    fn columns(&self, rows: usize, dim: usize, range: std::ops::Range<usize>) -> TensorData {
        fn cut<T: Copy>(values: &[T], dim: usize, range: &std::ops::Range<usize>) -> Vec<T> {
            values.chunks_exact(dim).flat_map(|row| row[range.clone()].iter().copied()).collect()
        }
        let shape = [rows, range.len()];
        match self {
            Self::F32(values) => TensorData::new(cut(values, dim, &range), shape),
            Self::F64(values) => TensorData::new(cut(values, dim, &range), shape),
        }
    }
}
