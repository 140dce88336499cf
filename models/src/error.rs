//! The error of this crate.

use thiserror::Error;

/// An error in building a model or in reading its configuration.
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
        /// The kind of the model.
        kind: &'static str,
        /// The requirement of the model.
        needs: &'static str,
        /// The name of the data set.
        data: String,
        /// The targets of the data set.
        has: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// A layer of a stack that cannot be read, or that does not fit the layer before it.
    #[error("layer {number} `{text}`: {problem}")]
    Layer {
        /// The number of the layer, from 1.
        number: usize,
        /// The text of the layer.
        text: String,
        /// The problem and a remedy.
        problem: String,
    },
    /// The layers of a stack do not fit the data.
    #[error("model.layers, for the data `{data}`: {error}")]
    Layers {
        /// The name of the data set.
        data: String,
        /// The first problem.
        error: Box<ModelError>,
    },
}
