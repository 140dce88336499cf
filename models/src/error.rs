//! The error of this crate.

use thiserror::Error;

/// A model cannot be built, or its configuration cannot be read.
#[derive(Debug, Error)]
pub enum ModelError {
    /// A size that must be at least 1 is 0.
    #[error("{what} must be at least 1")]
    Empty {
        /// The name of the size.
        what: &'static str,
    },
    /// Two sizes that must agree do not.
    #[error("{what} is {got}, but {want} is needed")]
    Mismatch {
        /// The name of the quantity.
        what: String,
        /// The given value.
        got: String,
        /// The required value.
        want: String,
    },
    /// The targets of a data set are not those that the model learns.
    #[error("model.kind = \"{kind}\" {needs}, but the data set `{data}` has {has}; {remedy}")]
    Targets {
        /// The word for the model.
        kind: &'static str,
        /// What it needs.
        needs: &'static str,
        /// The name of the data set.
        data: String,
        /// What that has.
        has: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A layer of a stack that cannot be read, or that does not fit the layer before it.
    #[error("layer {number} `{text}`: {problem}")]
    Layer {
        /// Number of the layer, from 1.
        number: usize,
        /// Text of the layer.
        text: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The layers of a stack do not fit the data.
    #[error("model.layers, for the data `{data}`: {error}")]
    Layers {
        /// The name of the data set.
        data: String,
        /// The first thing that does not fit.
        error: Box<ModelError>,
    },
}
