//! Keys of a configuration: merges TOML text and command-line overrides into a table in which every key is written out.
//!
//! A [`Key`] holds the accepted values, the meaning and the default. A [`Kind`] (an algorithm, a model, a data set) lists
//! its keys, a [`Section`] its kinds, a [`Schema`] its sections. [`Schema::resolve`] merges and checks, and
//! [`Schema::reference`] writes the user's reference. The precedence, lowest first: defaults, preset, file, `--set`,
//! `--seed` and `--backend`.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod error;
mod flat;
mod given;
mod key;
mod kinds;
mod layer;
mod lines;
mod reference;
mod resolve;
mod suggest;
mod value;
mod words;

pub use error::ConfigError;
pub use flat::flat;
pub use given::{Overrides, Source};
pub use key::{Key, Kind, Schema, Section, joined, key, required};
#[doc(hidden)]
pub use kinds::{Tagged, untag};
pub use lines::{Given, Lines, parse, places};
pub use resolve::Resolved;
pub use suggest::{did_you_mean, first, list, nearest};
pub use value::{Accepts, Interval, Literal, NumberOr};

#[doc(hidden)]
pub use serde;

/// Keys of a kind that have no effect, because of what its other keys say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedKeys {
    /// The keys, without their section.
    pub keys: &'static [&'static str],
    /// The reason, which names the key that decides.
    pub why: String,
}

/// Accepts a count of at least 1. Only a typing error exceeds the upper limit.
pub const COUNT: Accepts = whole(1, 1_000_000_000);
/// Accepts a count of at least 0.
pub const COUNT_OR_ZERO: Accepts = whole(0, 1_000_000_000);
/// Accepts a number above 0.
pub const POSITIVE: Accepts = Accepts::Float(Interval::POSITIVE);

/// Accepts a whole number from `min` to `max`.
pub const fn whole(min: i64, max: i64) -> Accepts {
    Accepts::Int { min, max }
}

#[cfg(test)]
mod tests;
