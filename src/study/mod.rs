//! Studies: a user's own grid of variants over seeds, carried out and kept by the engine of [`crate::reproduce`].
//!
//! [`file`] reads a study, [`axes`] what varies in it, [`keys`] the keys of configs in it with their places, [`plan`] makes
//! a figure of it and checks every run before the first begins, [`tables`] reads the rows of each once, [`summary`]
//! computes means, intervals and paired differences ([`student`]), [`pooled`] summarises over an axis that is a sample,
//! [`output`] writes the files, and [`directory`] keeps studies out of each other's directories.

pub mod axes;
pub mod claims;
pub mod columns;
pub mod directory;
pub mod file;
pub mod keys;
pub mod latex;
pub mod markdown;
pub mod output;
pub mod plan;
pub mod pooled;
pub mod student;
pub mod summary;
pub mod tables;

pub use file::{Study, is_study};
pub use plan::Plan;
