//! A site of a federation: a machine with rows of its own, which a server asks. This module has what a site is
//! ([`SiteConfig`]), what it tells a server about its rows (`describe`), and what follows from what all sites tell
//! ([`agree()`]). Nothing here sends anything, and nothing computes with tensors.

mod agree;
mod config;
mod describe;

pub use agree::{Agreement, Disagreement, Means, agree};
pub use config::{SiteConfig, SiteData, Tell, schema};
pub use describe::{ColumnSum, Description, SiteRows, Sums, TargetDescription, describe, problems};
