//! Federated Bayesian learning with Stein particles, on Burn.
//!
//! Every model is a set of N *particles*, whole parameter vectors moved by Stein variational gradient descent. Clients
//! and server exchange particles, never data. Out come predictions with calibrated uncertainty, and a report on how far
//! that uncertainty can be trusted. The data path is the layout: `datasets` → [`federation`] → [`metrics`] → [`report`];
//! `experiment::run` shows it on one page.
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![recursion_limit = "256"]

pub mod algorithm;
pub mod array;
pub mod backend;
pub mod bench;
pub mod checkpoint;
pub mod cli;
pub mod command;
pub mod density;
pub mod error;
pub mod experiment;
pub mod federation;
pub mod linalg;
pub mod ot;
pub mod particles;
pub mod protocol;
pub mod random;
pub mod reproduce;
pub mod rows;
pub mod schedule;
mod simd;
mod statistics;
pub mod stein;
mod tensor_file;

pub use fedstein_datasets as datasets;
pub use fedstein_models as models;
pub use fedstein_report as report;
pub use fedstein_report::metrics;
