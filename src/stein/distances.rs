//! Squared distances between N particles, each pair once: from the differences of few numbers, from the Gram matrix of many.
//!
//! ‖a‖² + ‖b‖² − 2a·b of offsets from the mean loses the digits in which the spread exceeds the distance: in f64 two
//! particles .0039 apart in a spread of 5 have r² to 10⁻¹⁰, and the Laplacian kernel's repulsion divides by r. Differences
//! lose none. They cost N²·d/2 operations in f64, and on a device other than the host the readback of N·d numbers in the
//! place of N².

use burn::tensor::{Tensor, TensorReadError};
use ndarray::Array2;

use crate::backend::Backend;
use crate::particles::{Particles, read_matrix};
use crate::simd;

/// N²·d up to which distances are taken from differences, in every precision and on every device, so that all see the same.
///
/// A logistic regression with N = 100 and d = 55 has half of it and loses no time by it; a network with N = 20 and
/// d = 79,510 has thirty times as many, whose differences in f64 would take longer than the rest of its step's kernel.
/// No more than 2²⁰/N numbers are read back.
const MOST_DIFFERENCES: usize = 1 << 20;

/// r² of every pair of N particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    count: usize,
    /// Pairs (1,0), (2,0), (2,1), (3,0), …
    pairs: Vec<f64>,
}

impl Distances {
    /// Of particles: from differences where N²·d ≤ 2²⁰, else from the centred Gram matrix. A distance that is not finite is
    /// NaN, as in [`Self::of_gram`]. Waits for the device.
    ///
    /// # Errors
    /// The device does not answer.
    pub fn between<B: Backend>(particles: &Particles<B>) -> Result<Self, TensorReadError> {
        let (count, dim) = (particles.count(), particles.dim());
        if count * count * dim > MOST_DIFFERENCES {
            return Ok(Self::of_gram(&particles.centred_gram()?));
        }
        let mut pairs = simd::squared_distances(&columns(particles)?, count);
        pairs.iter_mut().filter(|r2| r2.is_infinite()).for_each(|r2| *r2 = f64::NAN);
        Ok(Self { count, pairs })
    }

    /// From the Gram matrix `[N, N]`. Rounding below 0 is cut; NaN stays NaN, for it is how the loop notices particles that
    /// are no longer numbers.
    pub fn of_gram(gram: &Array2<f64>) -> Self {
        let count = gram.nrows();
        let norms = gram.diag().to_vec();
        let mut pairs = Vec::with_capacity(count * count.saturating_sub(1) / 2);
        let gram = gram.as_standard_layout();
        let rows = gram.as_slice().expect("standard layout").chunks_exact(count.max(1));
        for (i, (row, norm)) in rows.zip(&norms).enumerate() {
            pairs.extend(row[..i].iter().zip(&norms[..i]).map(|(product, other)| {
                let r2 = norm + other - 2.0 * product;
                if r2 < 0.0 { 0.0 } else { r2 }
            }));
        }
        Self { count, pairs }
    }

    /// N.
    pub fn count(&self) -> usize {
        self.count
    }

    /// r² of every pair, in no order to rely on.
    pub fn pairs(&self) -> &[f64] {
        &self.pairs
    }

    /// M symmetric matrices `[N, N]` of functions of r², with r² = 0 on the diagonal.
    pub fn map<const M: usize>(&self, f: impl Fn(f64) -> [f64; M]) -> [Array2<f64>; M] {
        let diagonal = f(0.0);
        let mut values = diagonal.map(|_| Vec::with_capacity(self.pairs.len()));
        for r2 in &self.pairs {
            values.iter_mut().zip(f(*r2)).for_each(|(values, value)| values.push(value));
        }
        std::array::from_fn(|matrix| self.symmetric(diagonal[matrix], &values[matrix]))
    }

    /// The symmetric matrix `[N, N]` with these values of the pairs, in their order, and this number on the diagonal.
    pub fn symmetric(&self, diagonal: f64, values: &[f64]) -> Array2<f64> {
        let n = self.count;
        let mut matrix = Array2::from_elem((n, n), diagonal);
        let mut rest = values;
        for i in 0..n {
            let (row, others) = rest.split_at(i);
            rest = others;
            for (j, value) in row.iter().enumerate() {
                matrix[[i, j]] = *value;
                matrix[[j, i]] = *value;
            }
        }
        matrix
    }

    /// r² as a matrix, `[N, N]`.
    pub fn matrix(&self) -> Array2<f64> {
        let [matrix] = self.map(|r2| [r2]);
        matrix
    }
}

/// The coordinates in f64, `[d, N]`.
fn columns<B: Backend>(particles: &Particles<B>) -> Result<Vec<f64>, TensorReadError> {
    let (count, dim) = (particles.count(), particles.dim());
    let mut columns = vec![0.0; count * dim];
    let Some(blocks) = particles.host() else {
        // One readback, however many blocks.
        let rows = read_matrix(Tensor::cat(particles.blocks().to_vec(), 1))?;
        columns.iter_mut().zip(rows.t()).for_each(|(to, value)| *to = *value);
        return Ok(columns);
    };
    let mut start = 0;
    for block in &blocks {
        let width = block.columns();
        for (n, row) in block.values().chunks_exact(width).enumerate() {
            let to = columns[start * count + n..].iter_mut().step_by(count);
            to.zip(row).for_each(|(to, value)| *to = f64::from(*value));
        }
        start += width;
    }
    Ok(columns)
}
