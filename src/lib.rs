//! Federated Bayesian learning with Stein particles, on Burn.
//!
//! Every model is a set of N *particles*, whole parameter vectors moved by Stein variational gradient descent. Clients
//! and server exchange particles, never data. Out come predictions with calibrated uncertainty, and a report on how far
//! that uncertainty can be trusted.
//!
//! | to | begin with |
//! |---|---|
//! | run an experiment from a config | [`experiment::run()`] |
//! | bring a model of one's own | [`models`], `Experiment::with_model`, `examples/own_model.rs` |
//! | bring rows of one's own | [`datasets::TrainTest`], `Experiment::with_data`, `examples/own_data.rs` |
//! | bring an algorithm of one's own | [`algorithm::Algorithm`], `Experiment::with_algorithm`, `examples/own_algorithm.rs` |
//! | write the calibration report of a finished run | [`experiment::write_report`] |
//! | score predictions and write a calibration report | [`report`] |
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
pub mod stein;

// Reached by this repository's own command, tests and benchmarks; no part of the library, and free to change.
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
pub mod schedule;

mod reproduce;
mod simd;
mod statistics;
mod tensor_file;

pub use fedstein_datasets as datasets;
pub use fedstein_models as models;
pub use fedstein_report as report;
pub use fedstein_report::metrics;
