//! Layers whose parameters carry a particle axis.

mod activation;
mod conv;
mod lanes;
mod linear;
mod pool;
pub(crate) mod shared;
mod spec;

pub use activation::Activation;
pub use conv::ParticleConv;
pub(crate) use lanes::Lanes;
pub use linear::ParticleLinear;
pub(crate) use linear::unset;
pub use pool::Pool;
pub use spec::LayerSpec;
pub(crate) use spec::Shape;
