//! Server, clients and what passes between them.

pub mod combine;
pub mod event;
pub mod exam;
mod exchange;
pub mod faults;
mod fingerprint;
pub mod fleet;
pub mod guard;
pub mod inquiry;
pub mod message;
mod outlier;
pub mod quarantine;
pub mod robust;
mod roster;
pub mod server;
pub mod shard;
pub mod validate;
mod visit;
