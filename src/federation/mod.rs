//! Server, clients and what passes between them.

pub mod combine;
pub mod event;
pub mod exam;
mod exchange;
pub mod faults;
pub mod fleet;
pub mod guard;
pub mod inquiry;
mod memory;
mod outlier;
pub mod quarantine;
mod roster;
pub mod server;
pub mod validate;
mod visit;
