//! Server, clients and what passes between them.

pub mod exam;
pub mod fleet;
pub mod message;
pub mod server;
pub mod shard;
pub mod validate;
