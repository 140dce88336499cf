//! A binary Gaussian process classifier by Pólya-Gamma augmentation, in its mean field: p(y | f) = σ(y f), y = ±1,
//! f ~ N(0, K).
//!
//! Given ω_i ~ PG(1, 0) the likelihood is Gaussian in f, so with κ_i = y_i/2, Ω = diag(ω) and z = Ω⁻¹κ
//!
//! q(f) = N(m, S),  S = (K⁻¹ + Ω)⁻¹ = K − K(K + Ω⁻¹)⁻¹K,  m = Kα,  α = (K + Ω⁻¹)⁻¹z,
//! q(ω_i) = PG(1, c_i),  c_i² = E f_i² = m_i² + S_ii,  ω_i = E ω_i = tanh(c_i/2)/(2c_i).
//!
//! The two are updated in turn. Each update raises the bound of Jaakkola & Jordan on log p(y),
//!
//! L(K, c) = Σ_i [log σ(c_i) − c_i/2 + ω_i c_i²/2] + ½ κᵀm − ½ log |I + ΩK|,
//!
//! whose gradient at fixed c is ∂L/∂K = ½(ααᵀ − (K + Ω⁻¹)⁻¹), that of log N(z; 0, K + Ω⁻¹). Where c has converged ∂L/∂c
//! is 0, and this is the gradient of the bound itself.
//!
//! All solves use the Cholesky factor of I + Ω^½KΩ^½ (Rasmussen & Williams 2006, section 3.4.3): its eigenvalues are at
//! least 1, so neither repeated rows nor rows of weight 0 need a jitter. Source: Polson et al. 2013; Wenzel et al.
//! 2019; Achituve et al. 2021, who draw ω by Gibbs sampling instead.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use crate::linalg::Cholesky;

/// The posterior q(f) at n rows.
#[derive(Clone, Debug)]
pub struct Posterior {
    /// The tilting parameters c, `[n]`.
    tilt: Array1<f64>,
    /// The roots √ω of the expected weights, `[n]`.
    root: Array1<f64>,
    /// The Cholesky factor of I + Ω^½KΩ^½, `[n, n]`.
    factor: Cholesky,
    /// The vector α = (K + Ω⁻¹)⁻¹z, `[n]`.
    alpha: Array1<f64>,
    /// The mean m, `[n]`.
    mean: Array1<f64>,
    /// The vector κ = y/2, `[n]`.
    kappa: Array1<f64>,
}

impl Posterior {
    /// The posterior after `steps` updates from the prior, where c_i² = K_ii.
    ///
    /// # Arguments
    /// - `covariance`: K `[n, n]`
    /// - `labels`: whether y_i = 1, `[n]`
    ///
    /// `None` where K is not finite, or so large that I + Ω^½KΩ^½ is singular in f64.
    pub fn fit(covariance: &Array2<f64>, labels: &[bool], steps: usize) -> Option<Self> {
        let kappa: Array1<f64> = labels.iter().map(|label| if *label { 0.5 } else { -0.5 }).collect();
        let mut posterior = Self::given(covariance, &kappa, covariance.diag().mapv(f64::sqrt))?;
        for _ in 0..steps {
            let tilt = (posterior.mean.mapv(|m| m * m) + posterior.variance()).mapv(f64::sqrt);
            posterior = Self::given(covariance, &kappa, tilt)?;
        }
        Some(posterior)
    }

    /// The optimal q(f) at this c.
    fn given(covariance: &Array2<f64>, kappa: &Array1<f64>, tilt: Array1<f64>) -> Option<Self> {
        let root = tilt.mapv(|c| expected_weight(c).sqrt());
        let mut inner = scaled(covariance, &root, &root);
        inner.diag_mut().mapv_inplace(|value| value + 1.0);
        let factor = Cholesky::of(&inner)?;
        // α = κ − Ω^½(I + Ω^½KΩ^½)⁻¹Ω^½Kκ: z itself would divide by ω.
        let alpha = kappa - &root * &factor.solve(&root * &covariance.dot(kappa));
        let mean = covariance.dot(&alpha);
        Some(Self { tilt, root, factor, alpha, mean, kappa: kappa.clone() })
    }

    /// The mean m at the rows, `[n]`.
    pub fn mean(&self) -> &Array1<f64> {
        &self.mean
    }

    /// The variances diag S at the rows, `[n]`: with M = I + Ω^½KΩ^½ it is Ω^½SΩ^½ = I − M⁻¹.
    pub fn variance(&self) -> Array1<f64> {
        let mut variance = 1.0 - self.factor.inverse_diagonal();
        // Values below 0 come from rounding.
        variance.zip_mut_with(&self.root, |value, root| *value = (*value / (root * root)).max(0.0));
        variance
    }

    /// The bound L ≤ log p(y).
    pub fn bound(&self) -> f64 {
        let fixed = |(c, root): (&f64, &f64)| log_sigmoid(*c) - 0.5 * c + 0.5 * (root * c).powi(2);
        let fixed: f64 = self.tilt.iter().zip(&self.root).map(fixed).sum();
        fixed + 0.5 * self.kappa.dot(&self.mean) - 0.5 * self.factor.log_determinant()
    }

    /// The gradient ∂L/∂K at fixed c, `[n, n]`.
    pub fn gradient(&self) -> Array2<f64> {
        let precision = scaled(&self.factor.inverse(), &self.root, &self.root);
        let column = self.alpha.view().insert_axis(Axis(1));
        (column.dot(&column.t()) - precision) * 0.5
    }

    /// Mean and variance of f at T other rows, `[T]` each.
    ///
    /// # Arguments
    /// - `cross`: covariances with the rows of the fit, `[T, n]`
    /// - `prior`: the prior variance of f
    pub fn predict(&self, cross: ArrayView2<f64>, prior: f64) -> (Array1<f64>, Array1<f64>) {
        let mean = cross.dot(&self.alpha);
        // The diagonal of C(K + Ω⁻¹)⁻¹Cᵀ, for C = `cross`.
        let mut half = cross.t().as_standard_layout().into_owned();
        half *= &self.root.view().insert_axis(Axis(1));
        let half = self.factor.solve_lower(half);
        let explained = half.fold_axis(Axis(0), 0.0, |sum, value| sum + value * value);
        // Values below 0 come from rounding.
        (mean, explained.mapv(|explained| (prior - explained).max(0.0)))
    }
}

/// The product diag(a)·M·diag(b).
fn scaled(matrix: &Array2<f64>, a: &Array1<f64>, b: &Array1<f64>) -> Array2<f64> {
    let mut scaled = matrix * &a.view().insert_axis(Axis(1));
    scaled *= b;
    scaled
}

/// The expectation E ω under PG(1, c): tanh(c/2)/(2c), and 1/4 at c = 0.
fn expected_weight(c: f64) -> f64 {
    if c < 1e-6 { 0.25 } else { (0.5 * c).tanh() / (2.0 * c) }
}

/// The value log σ(x), without overflow.
fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}
