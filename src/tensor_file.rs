//! Named arrays as the bytes of a safetensors file, and back. Numbers are little-endian; no bit of a float changes.

use std::collections::HashMap;

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView};

use crate::array::{Array, Values};

/// One tensor of a file.
#[derive(Clone, Debug)]
pub(crate) struct NamedTensor {
    /// The name in the file.
    pub name: String,
    /// The type of its elements.
    pub dtype: Dtype,
    /// The sizes of its axes.
    pub shape: Vec<usize>,
    /// The elements, row-major and little-endian.
    pub bytes: Vec<u8>,
}

impl NamedTensor {
    /// A host array, as F32 or F64.
    pub fn of(name: &str, array: &Array) -> Self {
        let (dtype, bytes) = match &array.values {
            Values::F32(values) => (Dtype::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
            Values::F64(values) => (Dtype::F64, values.iter().flat_map(|value| value.to_le_bytes()).collect()),
        };
        Self { name: name.to_owned(), dtype, shape: array.shape.clone(), bytes }
    }
}

/// The bytes of a file with these tensors and one entry, key and value, in its metadata.
///
/// # Errors
/// The number of elements of a tensor is not that of its shape.
pub(crate) fn encode(tensors: &[NamedTensor], (key, value): (&str, &str)) -> Result<Vec<u8>, SafeTensorError> {
    let views = tensors.iter().map(|NamedTensor { name, dtype, shape, bytes }| {
        TensorView::new(*dtype, shape.clone(), bytes).map(|view| (name.clone(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    safetensors::serialize(views, Some(HashMap::from([(key.to_owned(), value.to_owned())])))
}

/// The elements of a tensor of F32 or F64; `None` of any other type.
pub(crate) fn floats(view: &TensorView) -> Option<Values> {
    match view.dtype() {
        Dtype::F32 => Some(Values::F32(elements(view.data()).map(f32::from_le_bytes).collect())),
        Dtype::F64 => Some(Values::F64(elements(view.data()).map(f64::from_le_bytes).collect())),
        _ => None,
    }
}

/// The bytes of each element; the number of a tensor's bytes is a multiple of `SIZE`.
pub(crate) fn elements<const SIZE: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; SIZE]> {
    bytes.as_chunks::<SIZE>().0.iter().copied()
}
