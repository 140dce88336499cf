//! Arrays as `.npy` files, version 1.0, little-endian and in C order: what `numpy.load` reads.
//!
//! An array is sent in the precision of [`Wire`], and keeps its own type at the other end. Elements are `<f4`, `<f8` or
//! `<f2`; numpy has no bf16, whose bits are sent as `<u2`. Decoding takes bytes of any origin: nothing is allocated
//! beyond the size of the input.

use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::array::{Array, Values};
use crate::protocol::{Wire, from_half, half_exponent, to_half};

/// The first bytes of a file: magic and version 1.0.
const MAGIC: &[u8; 8] = b"\x93NUMPY\x01\x00";
/// The header's length is such that the elements begin at a multiple of this.
const ALIGNMENT: usize = 64;
/// The longest header that is read.
const LONGEST: usize = 1024;
/// The largest number of axes.
const AXES: usize = 8;
/// The types of elements: in a header, in numpy's words, and their bytes.
const ELEMENTS: [(&str, &str, usize); 4] =
    [("<f4", "float32", 4), ("<f8", "float64", 8), ("<f2", "float16", 2), ("<u2", "uint16", 2)];

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Real {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
}

/// How an array was sent, besides its `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    /// The name of the array.
    pub name: String,
    /// The type that the array has at both ends.
    pub holds: Real,
    /// The exponent k of an array in f16, whose elements are sent times 2^k; 0 for any other.
    #[serde(default)]
    pub exponent: i32,
}

/// The `.npy` file of an array in this precision.
pub fn encode(name: &str, array: &Array, wire: Wire) -> (Sent, Vec<u8>) {
    let (holds, word) = match array.values {
        Values::F32(_) => (Real::F32, "<f4"),
        Values::F64(_) => (Real::F64, "<f8"),
    };
    let word = match wire {
        Wire::Full => word,
        Wire::F32 => "<f4",
        Wire::F16 => "<f2",
        Wire::Bf16 => "<u2",
    };
    let exponent = if wire == Wire::F16 { half_exponent(&array.values) } else { 0 };
    let mut bytes = header(word, &array.shape);
    match (&array.values, wire) {
        (Values::F32(values), Wire::Full | Wire::F32) => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
        (Values::F64(values), Wire::Full) => bytes.extend(values.iter().flat_map(|x| x.to_le_bytes())),
        (Values::F64(values), Wire::F32) => bytes.extend(values.iter().flat_map(|x| (*x as f32).to_le_bytes())),
        (values, Wire::F16) => {
            bytes.extend(values.to_f64().into_iter().flat_map(|x| to_half(x, exponent).to_le_bytes()));
        }
        (values, Wire::Bf16) => {
            bytes.extend(values.to_f64().into_iter().flat_map(|x| bf16::from_f32(x as f32).to_le_bytes()));
        }
    }
    (Sent { name: name.to_owned(), holds, exponent }, bytes)
}

/// The array of a `.npy` file.
///
/// # Errors
/// The bytes are not such a file. The error is the reason in words, without text of the file.
pub fn decode(sent: &Sent, bytes: &[u8]) -> Result<Array, String> {
    let wrong = |reason: &str| Err(reason.to_owned());
    let (word, shape, elements) = opened(bytes)?;
    let Some((_, _, width)) = ELEMENTS.into_iter().find(|(known, _, _)| *known == word) else {
        return wrong("its elements are not f2, f4, f8 or u2");
    };
    let count = shape.iter().try_fold(1usize, |count, size| count.checked_mul(*size));
    if count.and_then(|count| count.checked_mul(width)) != Some(elements.len()) {
        return Err(format!("its shape {shape:?} does not have the {} bytes that follow", elements.len()));
    }
    let values = match (word, sent.holds) {
        ("<f4", Real::F32) => Values::F32(chunks(elements).map(f32::from_le_bytes).collect()),
        ("<f8", Real::F64) => Values::F64(chunks(elements).map(f64::from_le_bytes).collect()),
        ("<f4", Real::F64) => Values::F64(chunks(elements).map(f32::from_le_bytes).map(f64::from).collect()),
        ("<f2", holds) => {
            let value = |bytes| from_half(f16::from_le_bytes(bytes), sent.exponent);
            let values: Option<Vec<f64>> = chunks(elements).map(value).collect();
            let Some(values) = values else { return Err(format!("the exponent {} is too large", sent.exponent)) };
            of_f64(holds, values)
        }
        ("<u2", holds) => of_f64(holds, chunks(elements).map(|bytes| f64::from(bf16::from_le_bytes(bytes))).collect()),
        _ => return wrong("its elements have more bits than the array holds"),
    };
    Ok(Array { shape, values })
}

fn of_f64(holds: Real, values: Vec<f64>) -> Values {
    match holds {
        Real::F32 => Values::F32(values.into_iter().map(|value| value as f32).collect()),
        Real::F64 => Values::F64(values),
    }
}

/// The type of a file's elements in numpy's words, and its shape; `None` where it is none that [`decode`] reads.
pub fn described(bytes: &[u8]) -> Option<(&'static str, Vec<usize>)> {
    let (word, shape, _) = opened(bytes).ok()?;
    let known = ELEMENTS.into_iter().find(|(known, _, _)| *known == word);
    known.map(|(_, name, _)| (name, shape))
}

/// The type of a file's elements, its shape, and its elements.
fn opened(bytes: &[u8]) -> Result<(&str, Vec<usize>, &[u8]), String> {
    let wrong = |reason: &str| Err(reason.to_owned());
    let Some(rest) = bytes.strip_prefix(MAGIC) else { return wrong("it is not a .npy file of version 1.0") };
    let Some((length, rest)) = rest.split_first_chunk::<2>() else { return wrong("its header is cut off") };
    let length = usize::from(u16::from_le_bytes(*length));
    if length > LONGEST {
        return Err(format!("its header has {length} bytes; at most {LONGEST} are read"));
    }
    let Some((head, elements)) = rest.split_at_checked(length) else { return wrong("its header is cut off") };
    let Some((word, shape)) = std::str::from_utf8(head).ok().and_then(parse) else {
        return wrong("its header is not one that numpy writes for little-endian floats in C order");
    };
    Ok((word, shape, elements))
}

/// The elements of W bytes each.
fn chunks<const W: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; W]> {
    bytes.as_chunks::<W>().0.iter().copied()
}

/// Magic, version, length and header, as numpy writes them.
fn header(word: &str, shape: &[usize]) -> Vec<u8> {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    // A tuple of one element has a comma.
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut text = format!("{{'descr': '{word}', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let prefix = MAGIC.len() + 2;
    while !(prefix + text.len() + 1).is_multiple_of(ALIGNMENT) {
        text.push(' ');
    }
    text.push('\n');
    // Eight axes of twenty digits fit.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [MAGIC.as_slice(), &length.to_le_bytes(), text.as_bytes()].concat()
}

/// Type and shape of a header, with the keys in the order in which numpy writes them.
fn parse(text: &str) -> Option<(&str, Vec<usize>)> {
    let rest = text.trim_end().strip_prefix("{'descr': '")?;
    let (word, rest) = rest.split_once("', 'fortran_order': False, 'shape': (")?;
    let sizes = rest.strip_suffix("), }").or_else(|| rest.strip_suffix(")}"))?;
    let sizes = sizes.strip_suffix(',').unwrap_or(sizes);
    let shape = match sizes.is_empty() {
        true => Vec::new(),
        false => sizes.split(", ").map(|size| size.parse().ok()).collect::<Option<Vec<usize>>>()?,
    };
    (shape.len() <= AXES).then_some((word, shape))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIRES: [Wire; 4] = [Wire::Full, Wire::F32, Wire::F16, Wire::Bf16];

    fn bits(array: &Array) -> Vec<u64> {
        array.values.to_f64().iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn the_bytes_are_those_of_numpy() {
        // np.save of np.array([[1, 2, 3]], "<f4"), of np.array([0.5], "<f8") and of np.array(-2, "<f2").
        let padded = |text: &str, length: usize| format!("{text}{}\n", " ".repeat(length - 1 - text.len()));
        let matrix = Array { shape: vec![1, 3], values: Values::F32(vec![1.0, 2.0, 3.0]) };
        let head = padded("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }", 118);
        let want =
            [b"\x93NUMPY\x01\x00v\x00".as_slice(), head.as_bytes(), b"\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"].concat();
        assert_eq!(encode("a", &matrix, Wire::Full).1, want);
        let vector = Array { shape: vec![1], values: Values::F64(vec![0.5]) };
        let head = padded("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", 118);
        let want = [b"\x93NUMPY\x01\x00v\x00".as_slice(), head.as_bytes(), b"\0\0\0\0\0\0\xe0\x3f"].concat();
        assert_eq!(encode("a", &vector, Wire::Full).1, want);
        let number = [
            b"\x93NUMPY\x01\x00v\x00".as_slice(),
            padded("{'descr': '<f2', 'fortran_order': False, 'shape': (), }", 118).as_bytes(),
            b"\0\xc0",
        ]
        .concat();
        let sent = Sent { name: "a".into(), holds: Real::F32, exponent: 0 };
        assert_eq!(decode(&sent, &number), Ok(Array { shape: vec![], values: Values::F32(vec![-2.0]) }));
    }

    #[test]
    fn bytes_that_are_no_such_file_are_refused_with_the_reason() {
        let array = Array { shape: vec![2, 1], values: Values::F32(vec![1.0, 2.0]) };
        let (sent, good) = encode("a", &array, Wire::Full);
        let replaced = |old: &str, new: &str| {
            let text: Vec<u8> = good.iter().copied().take(128).collect();
            let text = String::from_utf8_lossy(&text[10..]).replace(old, new);
            [&good[..10], &text.as_bytes()[..118], &good[128..]].concat()
        };
        for (bytes, word) in [
            (good[1..].to_vec(), "not a .npy file"),
            (good[..9].to_vec(), "cut off"),
            (good[..60].to_vec(), "cut off"),
            (good[..good.len() - 1].to_vec(), "7 bytes"),
            (replaced("<f4", ">f4"), "f2, f4, f8"),
            (replaced("<f4", "|O "), "f2, f4, f8"),
            (replaced("<f4", "<f8"), "more bits"),
            (replaced("False", "True "), "C order"),
            (replaced("(2, 1), } ", "(2, -1), }"), "C order"),
            (replaced("(2, 1), }              ", "(18446744073709551615, 2), }"), "does not have"),
            (replaced("(2, 1), }              ", "(1, 1, 1, 1, 1, 1, 1, 1, 2), }"), "C order"),
        ] {
            let error = match word {
                "more bits" => {
                    let longer = [&bytes[..], &[0; 8]].concat();
                    decode(&sent, &longer).unwrap_err()
                }
                _ => decode(&sent, &bytes).unwrap_err(),
            };
            assert!(error.contains(word), "{error}, not {word}");
        }
        let long = [MAGIC.as_slice(), &u16::MAX.to_le_bytes(), &[b' '; 70_000]].concat();
        assert!(decode(&sent, &long).unwrap_err().contains("at most 1024"));
        let (sent, half) = encode("a", &array, Wire::F16);
        let far = Sent { exponent: i32::MAX, ..sent };
        assert!(decode(&far, &half).unwrap_err().contains("too large"));
    }

    proptest! {
        #[test]
        fn what_arrives_is_what_the_precision_keeps(
            values in proptest::collection::vec(any::<f64>(), 0..20), single in any::<bool>(), wire in 0usize..4,
        ) {
            let wire = WIRES[wire];
            let shape = vec![values.len(), 1];
            let values = match single {
                true => Values::F32(values.iter().map(|value| *value as f32).collect()),
                false => Values::F64(values),
            };
            let mut array = Array { shape, values };
            wire.round(&mut array);
            let (sent, bytes) = encode("theta", &array, wire);
            let came = decode(&sent, &bytes).unwrap();
            prop_assert_eq!(&came.shape, &array.shape);
            prop_assert_eq!(matches!(came.values, Values::F32(_)), single);
            let (came, array) = (bits(&came), bits(&array));
            for (came, was) in came.into_iter().zip(array) {
                // A NaN stays one, whatever its bits.
                prop_assert!(came == was || f64::from_bits(came).is_nan() && f64::from_bits(was).is_nan());
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), exponent in any::<i32>()) {
            let (sent, good) = encode("a", &Array { shape: vec![2], values: Values::F32(vec![1.0, 2.0]) }, Wire::F16);
            let sent = Sent { exponent, ..sent };
            let _ = decode(&sent, &bytes);
            let mut changed = good;
            for (at, byte) in bytes.iter().enumerate().take(3) {
                let place = (usize::from(*byte) * 7 + at * 31) % changed.len();
                changed[place] ^= byte;
            }
            let _ = decode(&sent, &changed);
        }
    }
}
