use burn::tensor::{Tensor, activation};
use serde::{Deserialize, Serialize};

/// An elementwise non-linearity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// max(z, 0), the papers' choice.
    #[default]
    Relu,
    /// tanh z
    Tanh,
    /// 1 / (1 + e^-z)
    Sigmoid,
    /// z Φ(z)
    Gelu,
    /// z σ(z)
    Silu,
}

impl Activation {
    /// Applies the function to every element; the shape stays.
    pub fn forward<const D: usize>(self, z: Tensor<D>) -> Tensor<D> {
        match self {
            Self::Relu => activation::relu(z),
            Self::Tanh => z.tanh(),
            Self::Sigmoid => activation::sigmoid(z),
            Self::Gelu => activation::gelu(z),
            Self::Silu => activation::silu(z),
        }
    }
}
