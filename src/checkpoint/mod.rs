//! Checkpoints: what a run needs to go on to the same bits as if it had never stopped.
//!
//! Every half says what it keeps between rounds as a [`State`]. `RUN_DIR/checkpoint/` holds one safetensors file for
//! each half that has something to keep and a manifest `round-<R>.json` that names them with their sha256. A file is
//! written once: to a temporary name, to the disk, and only then under its own. The manifest comes last, and its rename
//! is the commit: whatever happens before it leaves the checkpoints before as they were. Clients that did not train
//! since are named again, not written again. Two generations are kept.
//!
//! Random numbers need no state: every draw has a stream of its own by purpose, round and client ([`crate::random`]).

pub mod codec;
pub mod digest;
mod error;
mod manifest;
mod state;
mod store;
mod tensors;

pub use error::CheckpointError;
pub use manifest::{Identity, Manifest};
pub use state::State;
pub use store::{Position, Store};
