//! Data that are drawn, not read.

pub mod breiman;
pub mod mixture;
