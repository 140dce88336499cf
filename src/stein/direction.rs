//! The SVGD update direction, Liu & Wang 2016, Kassab & Simeone eq. (9):
//!
//! φ_i = (1/N) Σ_j [ k(θ_j, θ_i) ∇ log p(θ_j) + ∇_{θ_j} k(θ_j, θ_i) ], in matrices: **φ = (K·S + M·Θ)/N**.

use burn::tensor::TensorReadError;
use ndarray::{Array1, Array2, Axis};

use super::kernel::{Kernel, KernelMatrix};
use crate::backend::Backend;
use crate::density::Score;
use crate::particles::{Particles, read_matrix};

/// φ `[N, d]` at the particles, and what the kernel said about them (nothing for N = 1, where φ = S).
pub fn direction<B: Backend>(
    kernel: &Kernel,
    particles: &Particles<B>,
    score: &Score<B>,
) -> Result<(Particles<B>, Option<KernelMatrix>), TensorReadError> {
    let n = particles.count();
    if n == 1 {
        return Ok((score.evaluate(particles), None));
    }
    let (offsets, mean) = particles.centred();
    let gram = if kernel.is_stationary() { offsets.gram(&offsets) } else { particles.gram(particles) };
    let k = kernel.evaluate(&read_matrix(gram)?);
    let scale = 1.0 / n as f64;

    // Everything that multiplies Θ itself: repulsion, and the score's own part. With Θ = Θ_c + 1·mean the large part
    // common to all particles stays out of the cancelling differences; for repulsion alone its weight is exactly 0.
    let own = (&k.values * score.own() + &k.drift) * scale;
    let mut common = (&k.values * score.own()).sum_axis(Axis(1)) * scale;
    if !kernel.is_stationary() {
        common += &(k.drift.sum_axis(Axis(1)) * scale);
    }
    let mut phi = offsets.combine(&own);
    if common.iter().any(|c| *c != 0.0) {
        phi = phi.zip(mean.combine(&column(&common)), |a, b| a + b);
    }
    for (coefficients, of) in score.terms() {
        let weights = k.values.dot(coefficients) * scale;
        phi = phi.zip(of.combine(&weights), |a, b| a + b);
    }
    Ok((phi, Some(k)))
}

fn column(values: &Array1<f64>) -> Array2<f64> {
    values.clone().insert_axis(Axis(1))
}
