//! Arrays that an object of Python goes back to later, without a copy of them.

use numpy::{PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::arrays::Floats;

/// An array of 32-bit or 64-bit floats that is kept: a reference, not a copy.
pub enum KeptFloats {
    /// 64 bits.
    F64(Py<PyArrayDyn<f64>>),
    /// 32 bits.
    F32(Py<PyArrayDyn<f32>>),
}

impl KeptFloats {
    /// Keeps an array.
    pub fn new(array: &Floats<'_>) -> Self {
        match array {
            Floats::F64(array) => Self::F64((**array).clone().unbind()),
            Floats::F32(array) => Self::F32((**array).clone().unbind()),
        }
    }

    /// The array, to read it.
    ///
    /// # Errors
    /// Another extension module writes into it.
    pub fn read<'py>(&self, py: Python<'py>) -> PyResult<Floats<'py>> {
        Ok(match self {
            Self::F64(array) => Floats::F64(array.bind(py).try_readonly()?),
            Self::F32(array) => Floats::F32(array.bind(py).try_readonly()?),
        })
    }
}

/// An array of whole numbers that is kept: a reference, not a copy.
pub struct KeptNumbers(Py<PyArray1<i64>>);

impl KeptNumbers {
    /// Keeps an array.
    pub fn new(array: &PyReadonlyArray1<'_, i64>) -> Self {
        Self((**array).clone().unbind())
    }

    /// The array, to read it.
    ///
    /// # Errors
    /// Another extension module writes into it.
    pub fn read<'py>(&self, py: Python<'py>) -> PyResult<PyReadonlyArray1<'py, i64>> {
        Ok(self.0.bind(py).try_readonly()?)
    }
}

/// A number that tells whether arrays still have the same shapes and values: any change of one value changes it, and
/// several changes do, but for a chance of about 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// That of no array.
    pub const EMPTY: Self = Self(0);

    /// With one more array of floats.
    pub fn floats(self, array: &Floats<'_>) -> Self {
        let with_shape = array.shape().iter().fold(self, |found, length| found.and(*length as u64));
        match array {
            Floats::F64(array) => with_shape.values(array.as_array(), |value| value.to_bits()),
            Floats::F32(array) => with_shape.values(array.as_array(), |value| u64::from(value.to_bits())),
        }
    }

    /// With one more array of whole numbers.
    pub fn numbers(self, array: &PyReadonlyArray1<'_, i64>) -> Self {
        self.values(array.as_array(), i64::cast_unsigned)
    }

    fn values<T: Copy, D: ndarray::Dimension>(self, array: ndarray::ArrayView<'_, T, D>, bits: fn(T) -> u64) -> Self {
        match array.as_slice() {
            Some(values) => values.iter().fold(self, |found, value| found.and(bits(*value))),
            None => array.iter().fold(self, |found, value| found.and(bits(*value))),
        }
    }

    /// With 64 more bits. Each step is one to one in what was found and in the bits.
    fn and(self, bits: u64) -> Self {
        // An odd number near 2^64 divided by the golden ratio, as in Fibonacci hashing (Knuth, volume 3, 6.4).
        Self((self.0.rotate_left(5) ^ bits).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}
