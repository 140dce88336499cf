//! Bayesian models as Burn modules whose parameters carry a particle axis.
//!
//! From particle blocks `[N, ...]` and a batch of rows, a model computes per-particle log-likelihoods, their gradients
//! (the *scores* that move the particles) and per-particle predictions. This crate does not depend on clients, rounds
//! or files.
//!
//! | for | implement | cost |
//! |---|---|---|
//! | another width, depth, convolution | a [`BnnConfig`] or [`StackConfig`] | one batched pass for all particles |
//! | an ordinary Burn network | [`Forward`] and [`Replicated`] | one forward pass per particle |
//! | a network with a particle axis | [`ParticleModel`] and [`Architecture`] | one batched pass for all particles |
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![recursion_limit = "256"]

mod blr;
mod bnn;
mod curvature;
mod elementwise;
mod error;
mod factored;
pub mod head;
mod hierarchical;
mod init;
mod kind;
mod kinds;
mod layer;
mod layout;
mod logistic;
mod mean;
mod mixture;
mod model;
mod obstacle;
mod prior;
mod replicated;
pub mod simd;
mod softplus;
mod stack;

pub use blr::{Blr, BlrConfig, BlrSpec, Predictive, Probit};
pub use bnn::{Bnn, BnnConfig, BnnSpec};
pub use curvature::{
    LayerCurvature, LayerInputs, LayerRows, LayerTrace, OutputGradients, RowCurvature, drawn_residual,
};
pub use error::ModelError;
pub use factored::{FactoredScore, SharedGradient};
pub use head::{Head, WeightPrecision};
pub use init::WeightInit;
pub use kind::{DataShape, ModelKind, ModelTargets, PrecisionRule, TargetShape};
pub use kinds::{MODEL_KINDS, ModelConfig};
pub use layer::{Activation, LayerSpec, ParticleConv, ParticleLinear, Pool};
pub use layout::{Block, Layout};
pub use mean::logistic;
pub use mixture::{Mixture, MixtureConfig, MixturePrior, MixtureSpec};
pub use model::{Architecture, Batch, Model, Network, ParticleModel, Task};
pub use prior::{Prior, PriorTerm};
pub use replicated::{Forward, Replicated, ReplicatedConfig};
pub use softplus::softplus;
pub use stack::{Stack, StackConfig, StackPlan, StackSpec};
