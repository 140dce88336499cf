//! Federated Bayesian learning with Stein particles, on Burn.
//!
//! Every model is a set of N *particles*, whole parameter vectors that Stein variational gradient descent moves.
//! Clients and server exchange particles, never data. A run writes predictions with their uncertainty, and a report on
//! how well that uncertainty is calibrated.
//!
//! | to | begin with |
//! |---|---|
//! | run an experiment from a config | [`experiment::run()`] |
//! | use your own model | [`models`], `Experiment::with_model`, `examples/own_model.rs` |
//! | use your own data | [`datasets::TrainTest`], `Experiment::with_data`, `examples/own_data.rs` |
//! | do all this inside your own program | [`experiment::Outcome`], [`experiment::Observer`], [`experiment::Finished`], `examples/embed.rs` |
//! | use your own algorithm | [`algorithm::Algorithm`], `Experiment::with_algorithm`, `examples/own_algorithm.rs` |
//! | select the clients of a round yourself | [`schedule::Schedule`], `Experiment::with_selection` |
//! | write the calibration report of a finished run | [`experiment::write_report`] |
//! | predict with a finished run, at the temperature that it keeps | [`experiment::Finished::forecast`], [`experiment::Finished::recalibrated`] |
//! | score predictions and write a calibration report | [`report`] |
//!
//! Kernels, step rules and partitions are closed: a new one needs a fork. Rows of a program's own say which client each is
//! of ([`datasets::Dataset::with_clients`]).
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![recursion_limit = "256"]

pub mod algorithm;
pub mod array;
pub mod backend;
pub mod checkpoint;
pub mod density;
pub mod error;
pub mod experiment;
pub mod particles;
pub mod protocol;
pub mod random;
pub mod rows;
pub mod schedule;
pub mod stein;

// Used by this repository's own command, tests and benchmarks. These modules are not part of the library's interface
// and may change.
#[doc(hidden)]
pub mod bench;
#[doc(hidden)]
pub mod cli;
#[doc(hidden)]
pub mod command;
#[doc(hidden)]
pub mod federation;
#[doc(hidden)]
pub mod linalg;
#[doc(hidden)]
pub mod ot;
#[doc(hidden)]
pub mod remote;
#[doc(hidden)]
pub mod site;

#[cfg(feature = "flower")]
mod flower;
mod machine;
mod reproduce;
mod shell;
mod simd;
mod statistics;
mod study;
mod tensor_file;

pub use fedstein_datasets as datasets;
pub use fedstein_models as models;
pub use fedstein_report as report;
pub use fedstein_report::metrics;
