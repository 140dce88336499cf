//! Layers whose parameters carry a particle axis.

mod activation;
mod linear;

pub use activation::Activation;
pub use linear::ParticleLinear;
pub(crate) use linear::unset;
