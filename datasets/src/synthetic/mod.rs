//! Generated data.

pub mod breiman;
pub mod mixture;
