//! A site of a federation: a machine with rows of its own, which a server asks. This module has what a site is
//! ([`SiteConfig`]) and what is said before round 1:
//!
//! | step | at | gives |
//! |---|---|---|
//! | [`describe()`] | every site | a [`Description`] of its rows |
//! | [`agree()`] | server | an [`Agreement`] on columns and classes, with the means over all rows |
//! | [`measure()`] | every site | the [`Deviations`] of its rows from the means, where [`means_for`] asks for them |
//! | [`scale()`], [`Agreement::card`] | server | the description of a model's rows |
//! | [`unlike()`] | server | notes on columns that sites may have in different units |
//! | [`SiteRows::prepared`] | every site | its rows in the form that the model takes |
//!
//! Nothing here sends anything, and nothing computes with tensors.

mod agree;
mod check;
pub mod class_prior;
mod config;
mod describe;
mod disagreement;
mod disk;
mod encode;
mod fit;
mod kept;
mod measure;
mod prepare;
mod rows;
mod rows_key;
mod scale;
mod terms;
mod units;

#[cfg(test)]
mod pooled;
#[cfg(test)]
mod pooled_tables;

pub use agree::{Agreement, Means, agree};
pub use check::MOST_ROWS;
pub(crate) use check::is_formula;
pub(crate) use config::states_are_apart;
pub use config::{MOST_INDEX, NO_PRODUCTS, NO_SUMS, NO_TEXTS, SiteConfig, SiteData, SiteLimits, Tell, schema};
pub use describe::{ColumnsTold, Description, Sums, TargetDescription, describe, is_scored, print, problems};
pub use disagreement::Disagreement;
pub use disk::{Disk, DiskError, MEANS, PRODUCTS, RESIDUALS};
pub use fit::{Holder, Misfit};
pub use measure::{Deviations, measure};
pub use prepare::{agreed_form, fits};
pub use rows::SiteRows;
pub use scale::{ScaleError, means_for, scale};
pub use terms::{Squares, Terms};
pub use units::unlike;
