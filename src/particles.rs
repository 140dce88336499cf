//! A set of N particles on a backend, held as parameter blocks and converted from and to flat vectors.

use std::sync::Arc;

use burn::tensor::{DType, Device, Tensor, TensorData, TensorReadError};
use fedstein_models::Layout;
use ndarray::Array2;

use crate::array::{Array, ArrayError, Values};
use crate::backend::{Session, is_cpu, is_flex, upload_matrix};
use crate::simd::{self, Host};

/// N particles, held as one `[N, size]` tensor for each parameter block.
#[derive(Clone, Debug)]
pub struct Particles {
    blocks: Vec<Tensor<2>>,
    layout: Arc<Layout>,
}

impl Particles {
    /// Particles from blocks `[N, size]` of the layout, in its order, such as those of
    /// [`Model::likelihood_score`](crate::models::Model::likelihood_score).
    ///
    /// # Errors
    /// There are other blocks than those of the layout, no particles, or a block is not `[N, size]`, or not of the element
    /// type or on the device of the session.
    pub fn new(blocks: Vec<Tensor<2>>, layout: &Arc<Layout>, session: &Session) -> Result<Self, ArrayError> {
        let (found, expected) = (blocks.len(), layout.blocks().len());
        if found != expected {
            return Err(ArrayError::Blocks { expected, found });
        }
        let Some([rows, _]) = blocks.first().map(Tensor::dims) else { return Err(ArrayError::NoBlocks) };
        for (tensor, block) in blocks.iter().zip(layout.blocks()) {
            let wrong =
                |expected: String, found: String| Err(ArrayError::Block { name: block.name.clone(), expected, found });
            let (shape, needed) = (tensor.dims(), [rows.max(1), block.size()]);
            if shape != needed {
                return wrong(format!("{needed:?}"), format!("{shape:?}"));
            }
            if tensor.dtype() != session.dtype() {
                return wrong(format!("{:?}", session.dtype()), format!("{:?}", tensor.dtype()));
            }
            // A device may have several names; that of a new tensor is the one that counts.
            let is_there = |device: &Device| *device == session.upload(vec![0.0], [1, 1]).device();
            let device = tensor.device();
            if device != *session.device() && !is_there(&device) {
                return wrong(format!("on {:?}", session.device()), format!("on {device:?}"));
            }
        }
        Ok(Self::from_blocks(blocks, layout.clone()))
    }

    /// [`Self::new`] for blocks that come from particles.
    ///
    /// # Panics
    /// There are other blocks than those of the layout, or a block is not `[N, size]`.
    #[track_caller]
    pub(crate) fn from_blocks(blocks: Vec<Tensor<2>>, layout: Arc<Layout>) -> Self {
        let (found, expected) = (blocks.len(), layout.blocks().len());
        assert!(found == expected, "{found} blocks of particles for a layout of {expected}");
        let rows = blocks.first().map_or(0, |block| block.dims()[0]);
        for (tensor, block) in blocks.iter().zip(layout.blocks()) {
            let (shape, needed) = (tensor.dims(), [rows, block.size()]);
            assert!(shape == needed, "block `{}` of particles must be {needed:?}, not {shape:?}", block.name);
        }
        Self { blocks, layout }
    }

    /// Checks that every block of another set has the size of this one's.
    #[track_caller]
    fn must_have_blocks_of(&self, other: &Self) {
        if Arc::ptr_eq(&self.layout, &other.layout) {
            return;
        }
        let sizes = |set: &Self| set.layout.blocks().iter().map(|block| block.size()).collect::<Vec<_>>();
        let (own, others) = (sizes(self), sizes(other));
        assert!(own == others, "particles with blocks of {own:?} numbers do not go together with blocks of {others:?}");
    }

    /// Checks that this is a set of one.
    #[track_caller]
    fn must_be_one(&self) {
        assert!(self.count() == 1, "the centre must be one particle, [1, {}], not {:?}", self.dim(), self.shape());
    }

    /// `[N, d]`.
    fn shape(&self) -> [usize; 2] {
        [self.count(), self.dim()]
    }

    /// Particles from flat host rows `[N, d]`.
    ///
    /// # Errors
    /// The array is not `[N, d]` for this layout, or has another number of values than its shape says.
    pub fn from_array(array: &Array, layout: &Arc<Layout>, session: &Session) -> Result<Self, ArrayError> {
        let [rows, dim] = array.shape[..] else { return Err(ArrayError::NotMatrix(array.shape.clone())) };
        if layout.blocks().is_empty() {
            return Err(ArrayError::NoBlocks);
        }
        if dim != layout.dim() || rows == 0 {
            return Err(ArrayError::Particles { dim: layout.dim(), rows, columns: dim });
        }
        let found = array.values.len();
        if rows.checked_mul(dim) != Some(found) {
            return Err(ArrayError::Values { shape: array.shape.clone(), found });
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

    /// The particles whose blocks are the function of these blocks, each `[N, size]`. The function may change N.
    ///
    /// # Panics
    /// The results are not `[M, size]` with one M.
    #[track_caller]
    pub fn map(&self, mut f: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        let blocks = self.blocks.iter().map(|block| f(block.clone())).collect();
        Self::from_blocks(blocks, self.layout.clone())
    }

    /// [`Self::map`], where `f` gets blocks `[N, d_b]` that nobody else holds, so that it can change them in place.
    ///
    /// # Panics
    /// As [`Self::map`].
    #[track_caller]
    pub fn map_into(self, f: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self::from_blocks(self.blocks.into_iter().map(f).collect(), self.layout)
    }

    /// The particles whose blocks are the function of the pairs of blocks of two sets, `[N, d]` both, or one of them `[1, d]`.
    ///
    /// # Panics
    /// The sets have other shapes, or the results are not `[M, size]` with one M.
    #[track_caller]
    pub fn zip(self, other: Self, mut f: impl FnMut(Tensor<2>, Tensor<2>) -> Tensor<2>) -> Self {
        self.must_have_blocks_of(&other);
        let (own, others) = (self.shape(), other.shape());
        let fits = own == others || own[0] == 1 || others[0] == 1;
        assert!(fits, "particles {own:?} and {others:?} have no pairs: both must be [N, d], or one of them [1, d]");
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
    ///
    /// # Panics
    /// The blocks of the sets have other sizes.
    #[track_caller]
    pub fn gram(&self, other: &Self) -> Result<Array2<f64>, TensorReadError> {
        self.must_have_blocks_of(other);
        if let (Some(x), Some(y)) = (self.host(), other.host()) {
            return Ok(simd::gram(&x, &y));
        }
        let product = if is_cpu(&self.blocks[0].device()) { product_of_rows } else { product_in_parts };
        let products = self.blocks.iter().zip(&other.blocks).map(|(x, y)| product(x.clone(), y.clone()));
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
    ///
    /// # Panics
    /// The blocks of the sets have other sizes, or `centre` is no set of one.
    #[track_caller]
    pub fn gram_with_offsets(&self, other: &Self, centre: &Self) -> Result<Array2<f64>, TensorReadError> {
        self.must_have_blocks_of(other);
        self.must_have_blocks_of(centre);
        centre.must_be_one();
        if let (Some(x), Some(y), Some(centre)) = (self.host(), other.host(), centre.host()) {
            return Ok(simd::gram_with_offsets(&x, &y, &centre));
        }
        self.gram(&other.clone().zip(centre.clone(), |block, centre| block - centre))
    }

    /// Whether the blocks are in this process's memory in f32, and none is empty; then so are those of every set of the same
    /// session and layout.
    pub(crate) fn is_on_host(&self) -> bool {
        is_flex(&self.blocks[0].device())
            && self.dtype() == DType::F32
            && self.layout.blocks().iter().all(|block| block.size() > 0)
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
    ///
    /// # Panics
    /// The sets have other shapes.
    #[track_caller]
    pub fn row_products(&self, other: &Self) -> Result<Vec<f64>, TensorReadError> {
        self.must_have_blocks_of(other);
        let (own, others) = (self.shape(), other.shape());
        assert!(own == others, "particles {own:?} and {others:?} have no products row by row: both must be [N, d]");
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
    ///
    /// # Panics
    /// The blocks of the sets have other sizes, or `centre` is no set of one.
    #[track_caller]
    pub fn squared_distances_from(&self, centre: &Self) -> Result<Vec<f64>, TensorReadError> {
        self.must_have_blocks_of(centre);
        centre.must_be_one();
        if let (Some(x), Some(centre)) = (self.host(), centre.host()) {
            return Ok(simd::row_offsets(&x, &centre));
        }
        self.clone().zip(centre.clone(), |block, centre| block - centre).squared_norms()
    }

    /// Σ_k w_k X_k of sets `[N, d]` of one layout, in their order: `weights` are w `[K]`. With `rows`, `[K][N]`, row i of the
    /// sum has the rows `rows[k][i]` of the sets; without, their rows i.
    ///
    /// # Panics
    /// There is no set, another number of weights or lists of rows than of sets, a set of another shape, or a list of another
    /// length than N or with a row that is not there.
    #[track_caller]
    pub fn weighted_sum(sets: &[Self], weights: &[f64], rows: Option<&[Vec<usize>]>) -> Self {
        let count = sets.len();
        assert!(count > 0, "a weighted sum of no sets of particles has no shape");
        assert!(weights.len() == count, "{} weights for {count} sets of particles", weights.len());
        let of_first = sets[0].shape();
        for (k, set) in sets.iter().enumerate() {
            sets[0].must_have_blocks_of(set);
            let of_set = set.shape();
            assert!(
                of_set == of_first,
                "sets of particles that are summed have one shape; set {k} is {of_set:?}, set 0 {of_first:?}"
            );
        }
        if let Some(rows) = rows {
            assert!(rows.len() == count, "{} lists of rows for {count} sets of particles", rows.len());
            for (k, list) in rows.iter().enumerate() {
                let fits = list.len() == of_first[0] && list.iter().all(|row| *row < of_first[0]);
                assert!(fits, "the rows of set {k} must be {} numbers below {0}, not {list:?}", of_first[0]);
            }
        }
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

    /// The mean of sets `[N, d]` of one layout by index, `[N, d]`; `None` of none.
    ///
    /// # Panics
    /// A set has another shape than the first.
    #[track_caller]
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
    ///
    /// # Panics
    /// C has another number of columns than there are particles.
    #[track_caller]
    pub fn combine(&self, coefficients: &Array2<f64>) -> Self {
        let (of_matrix, own) = (coefficients.dim(), self.shape());
        assert!(
            of_matrix.1 == own[0],
            "coefficients {of_matrix:?} of particles {own:?}: there is one column for each particle"
        );
        let c = upload_matrix(coefficients, &self.blocks[0].device(), self.dtype());
        self.map(|block| c.clone().matmul(block))
    }

    /// The particles of these indices, in this order, `[rows, d]`.
    ///
    /// # Panics
    /// There are no indices, or one is not below N.
    #[track_caller]
    pub fn rows(&self, rows: &[usize]) -> Self {
        assert!(!rows.is_empty(), "no rows of particles {:?}: a set has at least one", self.shape());
        if let Some(row) = rows.iter().find(|row| **row >= self.count()) {
            panic!("there is no row {row} in particles {:?}; rows are counted from 0", self.shape());
        }
        let pick = |block: Tensor<2>| {
            let picked = rows.iter().map(|row| block.clone().narrow(0, *row, 1)).collect::<Vec<_>>();
            Tensor::cat(picked, 0)
        };
        self.map(pick)
    }

    /// Several sets `[N_k, d]` of one layout as one set, in this order, `[Σ N_k, d]`.
    ///
    /// # Panics
    /// There is no set, or the blocks of one have other sizes than those of the first.
    #[track_caller]
    pub fn stack(sets: &[Self]) -> Self {
        assert!(!sets.is_empty(), "no sets of particles to stack: a set has at least one particle");
        sets.iter().for_each(|set| sets[0].must_have_blocks_of(set));
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

/// X·Yᵀ `[N, M]` of two blocks `[N, d]` and `[M, d]`.
fn product_of_rows(x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
    x.matmul(y.transpose())
}

/// Columns of one part of [`product_in_parts`], where no width near it divides the columns.
const PART: usize = 256;

/// [`product_of_rows`] as a sum of products of some hundred columns each, for a GPU.
///
/// The product is small and its sums are long. A GPU computes the elements of a product beside each other and the terms
/// of one sum after each other: 20 × 20 sums of 78,400 terms occupy a hundredth of it.
fn product_in_parts(x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
    let [_, columns] = x.dims();
    if columns < 4 * PART {
        return product_of_rows(x, y);
    }
    // Parts of equal width need no copy.
    let width = (PART / 2..=2 * PART).rev().find(|width| columns % width == 0).unwrap_or(PART);
    let whole = columns - columns % width;
    // [N, d] as [parts, N, width].
    let parts = |block: &Tensor<2>| {
        let [rows, _] = block.dims();
        let block = if whole == columns { block.clone() } else { block.clone().slice([0..rows, 0..whole]) };
        block.reshape([rows, whole / width, width]).swap_dims(0, 1)
    };
    let product = parts(&x).matmul(parts(&y).swap_dims(1, 2)).sum_dim(0).squeeze_dim::<2>(0);
    if whole == columns {
        return product;
    }
    let rest = |block: Tensor<2>| {
        let [rows, _] = block.dims();
        block.slice([0..rows, whole..columns])
    };
    product + product_of_rows(rest(x), rest(y))
}

/// A small device matrix `[rows, columns]` on the host, in f64 and in the same shape. Waits for the device.
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

#[cfg(test)]
mod tests;
