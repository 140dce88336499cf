//! Squared distances between N particles, each pair once: from coordinate differences where N²·d is small, else from
//! the Gram matrix.
//!
//! ‖a‖² + ‖b‖² − 2a·b of offsets from the mean loses digits where the distance is much smaller than the spread: in f64,
//! two particles at distance 0.0039 in a spread of 5 have r² with an error of 10⁻¹⁰, and the Laplacian kernel's
//! repulsion divides by r. Differences lose no digits. They take N²·d/2 operations in f64, and on a device other than
//! the host N·d numbers are read back instead of N².

use burn::tensor::{Tensor, TensorReadError};
use ndarray::Array2;

use crate::particles::{Particles, read_matrix};
use crate::simd;

/// Largest N²·d for which distances are taken from differences. It is the same in every precision and on every device,
/// so that results agree.
///
/// A logistic regression with N = 100 and d = 55 has half of this N²·d, and the differences take no noticeable time. A
/// network with N = 20 and d = 79,510 has thirty times as much; its differences in f64 would take longer than the rest
/// of the kernel. No more than 2²⁰/N numbers are read back.
const MOST_DIFFERENCES: usize = 1 << 20;

/// r² of every pair of N particles.
#[derive(Clone, Debug, PartialEq)]
pub struct Distances {
    count: usize,
    /// Pairs (1,0), (2,0), (2,1), (3,0), …
    pairs: Vec<f64>,
}

impl Distances {
    /// The distances of particles, from differences where N²·d ≤ 2²⁰, else from the centred Gram matrix. A distance
    /// that is not finite becomes NaN, as in [`Self::of_gram`]. Waits for the device.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn between(particles: &Particles) -> Result<Self, TensorReadError> {
        let (count, dim) = (particles.count(), particles.dim());
        if count * count * dim > MOST_DIFFERENCES {
            return Ok(Self::of_gram(&particles.centred_gram()?));
        }
        let mut pairs = simd::squared_distances(&columns(particles)?, count);
        pairs.iter_mut().filter(|r2| r2.is_infinite()).for_each(|r2| *r2 = f64::NAN);
        Ok(Self { count, pairs })
    }

    /// The distances from a Gram matrix `[N, N]`. Values below 0 by rounding become 0. NaN stays NaN: by it the SVGD
    /// loop detects particles that are not finite.
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

    /// Number of particles N.
    pub fn count(&self) -> usize {
        self.count
    }

    /// r² of every pair, `[N·(N − 1)/2]`, in unspecified order.
    pub fn pairs(&self) -> &[f64] {
        &self.pairs
    }

    /// M symmetric matrices `[N, N]` of functions of r², where r² = 0 on the diagonal.
    pub fn map<const M: usize>(&self, f: impl Fn(f64) -> [f64; M]) -> [Array2<f64>; M] {
        let diagonal = f(0.0);
        let mut values = diagonal.map(|_| Vec::with_capacity(self.pairs.len()));
        for r2 in &self.pairs {
            values.iter_mut().zip(f(*r2)).for_each(|(values, value)| values.push(value));
        }
        std::array::from_fn(|matrix| self.symmetric(diagonal[matrix], &values[matrix]))
    }

    /// The symmetric matrix `[N, N]` with these values of the pairs, in the order of [`Self::pairs`], and this
    /// diagonal.
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
///
/// # Errors
/// Reading from the device fails.
fn columns(particles: &Particles) -> Result<Vec<f64>, TensorReadError> {
    let (count, dim) = (particles.count(), particles.dim());
    let mut columns = vec![0.0; count * dim];
    let Some(blocks) = particles.host() else {
        // One readback for all blocks.
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
