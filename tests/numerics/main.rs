//! The parts that algorithms are made of: models, kernels, densities, transport, selection and metrics against golden
//! cases, closed forms and slow loops.

mod assignments;
#[path = "../common/mod.rs"]
mod common;
mod curvature;
mod golden_models;
mod golden_stein;
mod host_loops;
mod kernels;
mod models;
mod numerics;
mod selection;
mod stack;
mod transport;
mod weights;
