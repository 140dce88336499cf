//! Arrays in host memory, which messages and checkpoints consist of and which are copied to devices.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The elements of an array, row-major.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Values {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

impl Values {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in f64.
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(values) => values.iter().map(|value| f64::from(*value)).collect(),
            Self::F64(values) => values.clone(),
        }
    }

    /// The index of the first element that is not finite.
    pub fn first_non_finite(&self) -> Option<usize> {
        match self {
            Self::F32(values) => values.iter().position(|value| !value.is_finite()),
            Self::F64(values) => values.iter().position(|value| !value.is_finite()),
        }
    }
}

/// A host array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Array {
    /// The sizes of the axes; particles are `[N, d]`.
    pub shape: Vec<usize>,
    /// The elements, row-major.
    pub values: Values,
}

impl Array {
    /// The number of bytes of the elements.
    pub fn bytes(&self) -> u64 {
        let width = match self.values {
            Values::F32(_) => 4,
            Values::F64(_) => 8,
        };
        self.values.len() as u64 * width
    }
}

/// The reason why an array of a message cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// There is no array of this name.
    #[error("the message has no array \"{0}\"")]
    Missing(String),
    /// Particles that are not a matrix.
    #[error("particles must be a matrix [N, d], not {0:?}")]
    NotMatrix(Vec<usize>),
    /// Particles of another dimension, or no particles.
    #[error("particles must be [N, {dim}] with N ≥ 1, not [{rows}, {columns}]")]
    Particles {
        /// The dimension d of the model.
        dim: usize,
        /// The rows found.
        rows: usize,
        /// The columns found.
        columns: usize,
    },
    /// An array of another shape.
    #[error("array \"{name}\" must be {expected:?}, not {found:?}")]
    Shape {
        /// The name of the array.
        name: String,
        /// The expected shape.
        expected: Vec<usize>,
        /// The actual shape.
        found: Vec<usize>,
    },
    /// An array with another number of values than its shape says.
    #[error("an array of the shape {shape:?} has {} numbers, not {found}", shape.iter().product::<usize>())]
    Values {
        /// The shape.
        shape: Vec<usize>,
        /// The number of values found.
        found: usize,
    },
    /// Particles of a layout without parameter blocks.
    #[error("the layout has no parameter blocks, so that there is nothing that a particle could hold")]
    NoBlocks,
    /// Another number of blocks than the layout has.
    #[error("{found} blocks of particles for a layout of {expected}")]
    Blocks {
        /// The number of blocks of the layout.
        expected: usize,
        /// The number of blocks found.
        found: usize,
    },
    /// A block of particles with another shape, type or place.
    #[error("block `{name}` of particles must be {expected}, not {found}")]
    Block {
        /// The name of the block.
        name: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// An array with invalid values.
    #[error("{0}")]
    Content(String),
}
