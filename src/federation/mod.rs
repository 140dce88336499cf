//! The server, the clients and the messages between them.

mod attendance;
mod client_calibration;
pub mod client_evaluator;
mod client_map;
mod combine;
pub mod event;
mod exchange;
pub mod fault_policy;
pub mod faults;
pub mod fleet;
pub mod held_out;
pub mod inquiry;
pub mod labelled;
mod outlier;
pub mod parked;
pub mod prior_correction;
pub mod quarantine;
pub mod robust;
mod saved;
pub mod server;
pub mod validate;
mod visit;
