//! Bayesian models as Burn modules whose parameters carry a particle axis.
//!
//! In: particle blocks `[N, ...]` and a batch of rows. Out: per-particle log-likelihoods, their gradients (the
//! *scores* that move the particles) and per-particle predictions. Nothing here knows of clients, rounds or files.
//!
//! | to bring | implement | cost |
//! |---|---|---|
//! | an ordinary Burn network | [`Forward`] and [`Replicated`] | one forward pass a particle |
//! | a network with a particle axis | [`ParticleModel`] and [`Architecture`] | one batched pass for all particles |
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![recursion_limit = "256"]

mod blr;
mod bnn;
mod error;
mod layer;
mod layout;
mod mixture;
mod model;
mod prior;
mod replicated;

pub use blr::{Blr, BlrConfig, Probit};
pub use bnn::{Bnn, BnnConfig, Head, WeightInit};
pub use error::ModelError;
pub use layer::{Activation, ParticleLinear};
pub use layout::{Block, Layout};
pub use mixture::{Mixture, MixtureConfig, MixturePrior};
pub use model::{Architecture, Batch, Model, Network, ParticleModel, Task};
pub use prior::{Prior, PriorTerm};
pub use replicated::{Forward, Replicated, ReplicatedConfig};
