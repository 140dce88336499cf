//! Kernelized Stein discrepancy and Hilbert inner product from Gram matrices, by O(N²d) products without an N×N×d
//! array.
//!
//! With scores S¹, S² at the particles X, ⟨φ¹, φ²⟩_H = (1/N²) Σ_ij H_ij where
//!
//! H_ij = k s¹_i·s²_j + s¹_i·∇_{x_j}k + ∇_{x_i}k·s²_j + tr ∇_{x_i}∇_{x_j}k = K_ij C_ij + G_ij E_ij + T_ij,
//!
//! C = S¹S²ᵀ and E_ij = (s¹_i − s²_j)·(x_i − x_j). The squared discrepancy is the product of a direction with itself,
//! the squared norm of SVGD's direction. Source: Yang et al. eq. (13)-(24).
//!
//! The sum is linear in S¹: Σ_ij H_ij = ⟨S¹, N φ²⟩ + c with SVGD's direction φ² = (K S² + R)/N of the other score, the
//! repulsion R_i = Σ_j G_ij (x_i − x_j), and c = ⟨R, S²⟩ + Σ_ij T_ij. Many scores with one other thus take one product of
//! N·d numbers each.

use burn::tensor::TensorReadError;
use ndarray::{Array2, Axis};

use super::kernel::{Kernel, SteinKernel};
use crate::particles::Particles;

/// The inner product ⟨φ¹, φ²⟩_H at N particles with a given kernel.
#[derive(Debug)]
pub struct SteinForm {
    /// X minus its mean, `[N, d]`.
    offsets: Particles,
    kernel: SteinKernel,
}

/// ⟨φ¹, φ²⟩_H and the terms of its sum.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinProduct {
    /// H, `[N, N]`.
    pub matrix: Array2<f64>,
    /// The mean of H with its diagonal. Where S¹ = S² this is the squared discrepancy, ≥ 0.
    pub v: f64,
    /// The mean of H without its diagonal, which may be negative even where S¹ = S². `None` for N = 1.
    pub u: Option<f64>,
}

impl SteinForm {
    /// The inner product at these particles; `None` for a kernel without a trace term (see [`Kernel::stein`]).
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn new(kernel: &Kernel, at: &Particles) -> Result<Option<Self>, TensorReadError> {
        let kernel = kernel.stein(at)?;
        Ok(kernel.map(|kernel| Self { offsets: at.centred().0, kernel }))
    }

    /// The bandwidth h of the kernel.
    pub fn bandwidth(&self) -> f64 {
        self.kernel.bandwidth
    }

    /// Σ_{i≠j} K_ij / N²: how much the particles interact.
    pub fn off_diagonal_mass(&self) -> f64 {
        let k = &self.kernel.values;
        (k.sum() - k.diag().sum()) / (k.nrows() as f64).powi(2)
    }

    /// The contribution of the diagonal's trace terms to every product, which does not depend on the scores.
    pub fn constant(&self) -> f64 {
        let trace = &self.kernel.trace;
        trace.diag().sum() / (trace.nrows() as f64).powi(2)
    }

    /// ⟨φ¹, φ²⟩_H of two scores `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn product(&self, first: &Particles, second: &Particles) -> Result<SteinProduct, TensorReadError> {
        let x = &self.offsets;
        let a = first.gram(x)?;
        let b = second.gram(x)?;
        let c = first.gram(second)?;
        let SteinKernel { values, slope, trace, .. } = &self.kernel;
        let matrix = Array2::from_shape_fn(values.raw_dim(), |(i, j)| {
            let e = a[[i, i]] - a[[i, j]] - b[[j, i]] + b[[j, j]];
            values[[i, j]] * c[[i, j]] + slope[[i, j]] * e + trace[[i, j]]
        });
        let n = matrix.nrows() as f64;
        let (sum, diagonal) = (matrix.sum(), matrix.diag().sum());
        let u = (n > 1.0).then(|| (sum - diagonal) / (n * (n - 1.0)));
        Ok(SteinProduct { v: sum / (n * n), u, matrix })
    }

    /// ⟨φ, φ²⟩_H of many scores with one other `[N, d]`: [`SteinProduct::v`] of each, but for rounding.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn products(&self, firsts: &[Particles], second: &Particles) -> Result<Vec<f64>, TensorReadError> {
        let SteinKernel { values, slope, trace, .. } = &self.kernel;
        let repulsion = self.offsets.combine(&(Array2::from_diag(&slope.sum_axis(Axis(1))) - slope));
        let constant = inner(&repulsion, second)? + trace.sum();
        let direction = second.combine(values).zip(repulsion, |attraction, repulsion| attraction + repulsion);
        let n = values.nrows() as f64;
        firsts.iter().map(|first| Ok((inner(first, &direction)? + constant) / (n * n))).collect()
    }
}

/// ⟨X, Y⟩, the sum of all products of numbers in the same place.
fn inner(x: &Particles, y: &Particles) -> Result<f64, TensorReadError> {
    Ok(x.row_products(y)?.into_iter().sum())
}
