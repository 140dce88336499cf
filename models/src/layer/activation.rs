//! Element-wise non-linearities.

use std::f64::consts::SQRT_2;

use burn::tensor::{DType, Tensor, activation};

fedstein_schema::words! {
    /// An elementwise non-linearity.
    #[derive(Default)]
    pub enum Activation {
        /// max(z, 0), as in the papers.
        #[default]
        Relu = "relu",
        /// tanh z.
        Tanh = "tanh",
        /// 1 / (1 + e^−z).
        Sigmoid = "sigmoid",
        /// z·Φ(z), with the normal distribution function Φ.
        Gelu = "gelu",
        /// z·σ(z), with the logistic function σ.
        Silu = "silu",
    }
}

impl Activation {
    /// Whether z ≤ z' makes f(z) ≤ f(z'): then f(max z) = max f(z).
    pub(crate) fn is_nondecreasing(self) -> bool {
        match self {
            Self::Relu | Self::Tanh | Self::Sigmoid => true,
            Self::Gelu | Self::Silu => false,
        }
    }

    /// Applies the function to every element; the shape stays.
    pub fn forward<const D: usize>(self, z: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu => activation::relu(z),
            Self::Tanh => z.tanh(),
            Self::Sigmoid => sigmoid(z),
            // Burn's own gelu has the derivative of another function (the tanh approximation) on every backend but
            // flex: scores were off by 1e-3. The derivative of erf is right everywhere.
            Self::Gelu => z.clone().div_scalar(SQRT_2).erf().add_scalar(1.0).mul_scalar(0.5) * z,
            Self::Silu => match z.dtype() {
                DType::F64 => z.clone() * sigmoid(z),
                _ => activation::silu(z),
            },
        }
    }
}

/// σ(z). Burn's own is in f32 on ndarray, whatever the format.
fn sigmoid<const D: usize>(z: Tensor<D>) -> Tensor<D> {
    match z.dtype() {
        // This form's derivative is finite for any z.
        DType::F64 => z.mul_scalar(0.5).tanh().add_scalar(1.0).mul_scalar(0.5),
        _ => activation::sigmoid(z),
    }
}
