//! Kernels of SVGD, on the host in f64 from distances or inner products, `[N, N]`.
//!
//! A kernel is evaluated to two small matrices: K with K_ij = k(θ_j, θ_i), and M with Σ_j ∇_{θ_j} k(θ_j, θ_i) = Σ_j
//! M_ij θ_j. All work on the long particles is then a matrix product. The bandwidth counts as a constant in the
//! gradient.

use burn::tensor::TensorReadError;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::bandwidth::Bandwidth;
use super::distances::Distances;
use crate::particles::Particles;
use crate::simd;

fedstein_schema::words! {
    /// The gradient of the dot-product kernels.
    #[derive(Default)]
    pub enum Gradient {
        /// ∇_{θ_j} k(θ_j, θ_i) = f'_ij θ_i.
        #[default]
        Correct = "correct",
        /// f'_ij θ_j, as in the public FedWBA code; only to reproduce its figures.
        Reference = "reference",
    }
}

/// k(x, y) with r = ‖x − y‖.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kernel {
    /// exp(−r²/h).
    Rbf(Bandwidth),
    /// (1 + r²/h)^exponent with exponent < 0.
    Imq {
        /// The rule of h.
        bandwidth: Bandwidth,
        /// The exponent b < 0.
        exponent: f64,
    },
    /// exp(−r/h).
    Laplacian(Bandwidth),
    /// ⅓ Σ_s exp(−r²/(s·h)) with s ∈ {¼, 1, 4}.
    Mixture(Bandwidth),
    /// (x·y + offset)^degree, which has no repulsion.
    Polynomial {
        /// The degree m ≥ 1.
        degree: i32,
        /// The offset c.
        offset: f64,
        /// The correct gradient, or that of the public code.
        gradient: Gradient,
    },
    /// tanh(slope·x·y + offset), which is not positive definite.
    Sigmoid {
        /// The slope a.
        slope: f64,
        /// The offset c.
        offset: f64,
        /// The correct gradient, or that of the public code.
        gradient: Gradient,
    },
}

/// A kernel at N particles.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelMatrix {
    /// K, `[N, N]`.
    pub values: Array2<f64>,
    /// M, `[N, N]`: row i of M·Θ is Σ_j ∇_{θ_j} k(θ_j, θ_i).
    pub drift: Array2<f64>,
    /// The bandwidth h; `None` for a kernel without one.
    pub bandwidth: Option<f64>,
}

/// A kernel k and its derivatives at N particles, for the discrepancy: ∇_{x_j}k = G_ij (x_i − x_j) = −∇_{x_i}k.
#[derive(Clone, Debug, PartialEq)]
pub struct SteinKernel {
    /// K, `[N, N]`.
    pub values: Array2<f64>,
    /// G, `[N, N]`.
    pub slope: Array2<f64>,
    /// tr ∇_{x_i}∇_{x_j}k, `[N, N]`.
    pub trace: Array2<f64>,
    /// The bandwidth h; infinite for one particle, unless it is fixed.
    pub bandwidth: f64,
}

impl Default for Kernel {
    fn default() -> Self {
        Self::Rbf(Bandwidth::default())
    }
}

impl Kernel {
    /// Whether k depends on θ only through distances. The other kernels need inner products of particles that are not
    /// centred.
    pub fn is_stationary(&self) -> bool {
        !matches!(self, Self::Polynomial { .. } | Self::Sigmoid { .. })
    }

    /// K, G and the trace of the mixed second derivative at N particles. `None` for kernels whose trace is singular
    /// (Laplacian) or that depend on the origin (dot products).
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn stein(&self, particles: &Particles) -> Result<Option<SteinKernel>, TensorReadError> {
        if !matches!(self, Self::Rbf(_) | Self::Imq { .. } | Self::Mixture(_)) {
            return Ok(None);
        }
        let (d, distances) = (particles.dim() as f64, Distances::between(particles)?);
        // (k, G, trace) at r² and h.
        let rbf = |r2: f64, h: f64| {
            let k = (-r2 / h).exp();
            [k, 2.0 / h * k, k * (2.0 * d / h - 4.0 * r2 / (h * h))]
        };
        let of = |bandwidth: Bandwidth, terms: &dyn Fn(f64, f64) -> [f64; 3]| {
            // One particle has no distances: in the limit of a wide kernel the discrepancy is the norm of its score.
            let h = match distances.count() == 1 && !bandwidth.is_fixed() {
                true => f64::INFINITY,
                false => bandwidth.evaluate(&distances, 2),
            };
            let [values, slope, trace] = distances.map(|r2| terms(r2, h));
            Some(SteinKernel { values, slope, trace, bandwidth: h })
        };
        Ok(match *self {
            Self::Rbf(bandwidth) => of(bandwidth, &rbf),
            Self::Imq { bandwidth, exponent: b } => of(bandwidth, &|r2, h| {
                let q = 1.0 + r2 / h;
                let g = -2.0 * b / h * q.powf(b - 1.0);
                [q.powf(b), g, d * g - 4.0 * b * (b - 1.0) / (h * h) * r2 * q.powf(b - 2.0)]
            }),
            Self::Mixture(bandwidth) => of(bandwidth, &|r2, h| {
                let parts = [0.25, 1.0, 4.0].map(|s| rbf(r2, s * h));
                [0, 1, 2].map(|index| parts.iter().map(|part| part[index]).sum::<f64>() / 3.0)
            }),
            Self::Laplacian(_) | Self::Polynomial { .. } | Self::Sigmoid { .. } => None,
        })
    }

    /// K and M at N particles `[N, d]`.
    ///
    /// # Errors
    /// Reading from the device fails.
    pub fn evaluate(&self, particles: &Particles) -> Result<KernelMatrix, TensorReadError> {
        let distances = || Distances::between(particles);
        let products = || particles.gram(particles);
        Ok(match *self {
            Self::Rbf(bandwidth) => rbf(&distances()?, bandwidth),
            Self::Imq { bandwidth, exponent } => radial(&distances()?, bandwidth, 2, |r2, h| {
                let q = 1.0 + r2 / h;
                (q.powf(exponent), -2.0 * exponent / h * q.powf(exponent - 1.0))
            }),
            Self::Laplacian(bandwidth) => radial(&distances()?, bandwidth, 1, |r2, h| {
                let r = r2.sqrt();
                let k = (-r / h).exp();
                (k, if r > 0.0 { k / (h * r) } else { 0.0 })
            }),
            Self::Mixture(bandwidth) => radial(&distances()?, bandwidth, 2, |r2, h| {
                let parts = [0.25, 1.0, 4.0].map(|s| ((-r2 / (s * h)).exp() / 3.0, s * h));
                parts.iter().fold((0.0, 0.0), |(k, g), (part, h)| (k + part, g + 2.0 / h * part))
            }),
            Self::Polynomial { degree, offset, gradient } => dot_product(&products()?, gradient, |xy| {
                let base = xy + offset;
                (base.powi(degree), f64::from(degree) * base.powi(degree - 1))
            }),
            Self::Sigmoid { slope, offset, gradient } => dot_product(&products()?, gradient, |xy| {
                let k = (slope * xy + offset).tanh();
                (k, slope * (1.0 - k * k))
            }),
        })
    }
}

/// [`radial`] with k = e^(−r²/h) and G = 2k/h, with all exponentials taken at once.
fn rbf(distances: &Distances, bandwidth: Bandwidth) -> KernelMatrix {
    let h = bandwidth.evaluate(distances, 2);
    let mut k: Vec<f64> = distances.pairs().iter().map(|r2| -r2 / h).collect();
    simd::exponentials(&mut k);
    let values = distances.symmetric(1.0, &k);
    let drift = drift(values.mapv(|k| -2.0 / h * k));
    KernelMatrix { values, drift, bandwidth: Some(h) }
}

/// M = diag(G·1) − G from −G `[N, N]`.
fn drift(mut drift: Array2<f64>) -> Array2<f64> {
    for (i, mut row) in drift.outer_iter_mut().enumerate() {
        row[i] = 0.0;
        row[i] = -row.sum();
    }
    drift
}

/// ∇_{θ_j} k(θ_j, θ_i) = G_ij (θ_i − θ_j), so M = diag(G·1) − G. `f(r², h)` gives (k, G).
fn radial(distances: &Distances, bandwidth: Bandwidth, power: i32, f: impl Fn(f64, f64) -> (f64, f64)) -> KernelMatrix {
    let h = bandwidth.evaluate(distances, power);
    let [values, slopes] = distances.map(|r2| {
        let (k, g) = f(r2, h);
        [k, -g]
    });
    KernelMatrix { values, drift: drift(slopes), bandwidth: Some(h) }
}

/// ∇_{θ_j} k(θ_j, θ_i) = f'_ij θ_i, so M = diag(F'·1). `f(x·y)` gives (k, f').
fn dot_product(gram: &Array2<f64>, gradient: Gradient, f: impl Fn(f64) -> (f64, f64)) -> KernelMatrix {
    let values = gram.mapv(|xy| f(xy).0);
    let slopes = gram.mapv(|xy| f(xy).1);
    let drift = match gradient {
        Gradient::Correct => Array2::from_diag(&slopes.sum_axis(ndarray::Axis(1))),
        Gradient::Reference => slopes,
    };
    KernelMatrix { values, drift, bandwidth: None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fedstein_models::Layout;

    use super::*;
    use crate::array::{Array, Values};
    use crate::backend::{Flex, Precision, Session};

    #[test]
    fn a_particle_that_is_not_finite_makes_the_kernel_nan() {
        let gram = ndarray::array![[1.0, f64::NAN], [f64::NAN, f64::NAN]];
        assert!(rbf(&Distances::of_gram(&gram), Bandwidth::default()).values[[0, 1]].is_nan());
        for bad in [f32::NAN, f32::INFINITY] {
            let session = Session::open::<Flex>(Precision::F32).unwrap();
            let layout = Arc::new(Layout::new([("theta", [2].as_slice())]));
            let array = Array { shape: vec![3, 2], values: Values::F32(vec![0.0, 1.0, 0.5, bad, 2.0, 3.0]) };
            let particles = Particles::from_array(&array, &layout, &session).unwrap();
            let values = Kernel::default().evaluate(&particles).unwrap().values;
            assert!(values[[0, 1]].is_nan() && values[[1, 2]].is_nan(), "{bad}: {values}");
        }
    }
}
