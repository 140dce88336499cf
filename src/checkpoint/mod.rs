//! Checkpoints: the state from which a run resumes with bitwise the same results as an uninterrupted run.
//!
//! Every half returns what it keeps between rounds as a [`State`]. `RUN_DIR/checkpoint/` holds one safetensors file for
//! each half with a non-empty state, and a manifest `round-<R>.json` that lists these files with their sha256. A file
//! is written once: under a temporary name, flushed to the disk, and then renamed. The manifest is written last, and
//! its rename is the commit: a failure before it leaves earlier checkpoints unchanged. The files of clients that have
//! not trained since the last checkpoint are listed again, not written again. Two generations are kept.
//!
//! Random numbers need no state: every draw has a stream determined by purpose, round and client ([`crate::random`]).

pub mod codec;
pub mod digest;
mod error;
pub mod lock;
mod manifest;
mod state;
mod store;
mod tensors;

pub use error::CheckpointError;
pub use manifest::{Identity, Manifest};
pub use state::State;
pub use store::{Position, Store, is_of_store, rounds};
