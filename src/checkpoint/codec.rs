//! Encodes a [`State`] as the bytes of a safetensors file, and decodes it: floats as F32 and F64, whole numbers as U64,
//! texts as U8. No float is converted, so decoded values have the same bits.

use safetensors::tensor::{Dtype, SafeTensors};

use super::{CheckpointError, State};
use crate::array::Array;
use crate::report::files::quoted;
use crate::tensor_file::{self, NamedTensor, elements, floats};

/// The entry of the metadata that marks a safetensors file as a state of this layout.
const MARK: (&str, &str) = ("fedstein-state", "1");

/// The bytes of a state's file; equal states have equal bytes.
///
/// # Errors
/// The number of an array's elements does not match its shape.
pub fn encode(state: &State) -> Result<Vec<u8>, CheckpointError> {
    let arrays = state.arrays.iter().map(|(name, array)| NamedTensor::of(name, array));
    let counts = state.counts.iter().map(|(name, counts)| NamedTensor {
        name: name.clone(),
        dtype: Dtype::U64,
        shape: vec![counts.len()],
        bytes: counts.iter().flat_map(|count| count.to_le_bytes()).collect(),
    });
    let words = state.words.iter().map(|(name, words)| NamedTensor {
        name: name.clone(),
        dtype: Dtype::U8,
        shape: vec![words.len()],
        bytes: words.as_bytes().to_vec(),
    });
    let tensors: Vec<NamedTensor> = arrays.chain(counts).chain(words).collect();
    tensor_file::encode(&tensors, MARK).map_err(|error| CheckpointError::Content(error.to_string()))
}

/// Decodes the bytes that [`encode`] wrote.
///
/// # Errors
/// The bytes are not the file of a state. The error is the reason in words.
pub fn decode(bytes: &[u8]) -> Result<State, String> {
    let wrong = |error: safetensors::SafeTensorError| quoted(&error.to_string());
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
    let mark = header.metadata().as_ref().and_then(|metadata| metadata.get(MARK.0));
    if mark.map(String::as_str) != Some(MARK.1) {
        return Err("this safetensors file is not a state that fedstein wrote".into());
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(wrong)?;
    let mut state = State::default();
    for (name, view) in tensors.iter() {
        let (name, shape, bytes) = (name.to_owned(), view.shape().to_vec(), view.data());
        if let Some(values) = floats(&view) {
            state.arrays.insert(name, Array { shape, values });
            continue;
        }
        match view.dtype() {
            Dtype::U64 => {
                state.counts.insert(name, elements(bytes).map(u64::from_le_bytes).collect());
            }
            Dtype::U8 => {
                let text = std::str::from_utf8(bytes).map_err(|error| format!("\"{}\": {error}", quoted(&name)))?;
                state.words.insert(name, text.to_owned());
            }
            other => return Err(format!("tensor \"{}\" is {other:?}, which no state holds", quoted(&name))),
        }
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::array::Values;

    #[test]
    fn every_bit_is_read_back() {
        let strange = [f32::NAN, -0.0, f32::MIN_POSITIVE / 2.0, f32::INFINITY, 0.1];
        let state = State::default()
            .with_array("particles", Array { shape: vec![1, 5], values: Values::F32(strange.to_vec()) })
            .with_numbers("numbers", [0.1, -0.0, 5e-324])
            .with_numbers("none", [])
            .with_counts("counts", [0, usize::MAX])
            .with_words("words", "accuracy,ν".into());
        let back = decode(&encode(&state).unwrap()).unwrap();
        let Values::F32(values) = &back.arrays["particles"].values else { panic!("not F32") };
        assert!(values.iter().zip(strange).all(|(got, want)| got.to_bits() == want.to_bits()));
        assert_eq!(back.arrays["particles"].shape, [1, 5]);
        let numbers = back.numbers("numbers").unwrap();
        assert!(numbers.iter().zip([0.1, -0.0, 5e-324]).all(|(got, want)| got.to_bits() == f64::to_bits(want)));
        assert!(back.numbers("none").unwrap().is_empty());
        assert_eq!((back.counts, back.words), (state.counts, state.words));
    }

    #[test]
    fn other_files_are_refused() {
        let foreign = safetensors::serialize(
            [("particles", TensorView::new(Dtype::F32, vec![1], &[0, 0, 128, 63]).unwrap())],
            None,
        );
        assert!(decode(&foreign.unwrap()).unwrap_err().contains("not a state"));
        assert!(decode(b"").is_err() && decode(b"{}").is_err());
        let whole = encode(&State::default().with_numbers("x", [1.0, 2.0])).unwrap();
        (0..whole.len()).for_each(|length| assert!(decode(&whole[..length]).is_err(), "{length} bytes"));
    }
}
