//! numpy arrays in and out. The Python part hands over numpy arrays of the types named here and nothing else.

use std::borrow::Cow;

use fedstein::metrics::{ClassPredictions, MetricError, RegressionPredictions};
use ndarray::{ArrayViewD, IxDyn};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors::{DataError, of_metric};

/// An array of 32-bit or 64-bit floats, of any layout.
#[derive(FromPyObject)]
pub enum Floats<'py> {
    /// 64 bits.
    F64(PyReadonlyArrayDyn<'py, f64>),
    /// 32 bits.
    F32(PyReadonlyArrayDyn<'py, f32>),
}

impl Floats<'_> {
    /// Its shape.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::F64(array) => array.as_array().shape().to_vec(),
            Self::F32(array) => array.as_array().shape().to_vec(),
        }
    }

    /// The exception of a feature that cannot be used. Rows and features count from 0, as in numpy.
    ///
    /// # Arguments
    /// - `names`: those of the features
    /// - `too_large`: what a finite value is too large for
    pub fn not_finite(&self, (row, column): (usize, usize), names: Option<&[String]>, too_large: &str) -> PyErr {
        let value = match self {
            Self::F64(array) => array.as_array().get([row, column].as_slice()).copied(),
            Self::F32(array) => array.as_array().get([row, column].as_slice()).map(|value| f64::from(*value)),
        };
        let value = value.unwrap_or(f64::NAN);
        let name = names.and_then(|names| names.get(column)).map(|name| format!(" ({name:?})")).unwrap_or_default();
        let why = match value.is_finite() {
            true => format!("is {value:e}, too large {too_large}"),
            false => format!("is {value}; leave such rows out, or fill them"),
        };
        DataError::new_err(format!("features: row {row}, feature {column}{name} {why}"))
    }

    /// Its values in 64 bits, row-major; borrowed if it has them like this.
    pub fn to_f64(&self) -> Cow<'_, [f64]> {
        match self {
            Self::F64(array) => match array.as_slice() {
                // A slice is of any contiguous array, of column-major ones too.
                Ok(values) if array.is_c_contiguous() => Cow::Borrowed(values),
                _ => Cow::Owned(values(array.as_array(), |value| value)),
            },
            Self::F32(array) => Cow::Owned(values(array.as_array(), f64::from)),
        }
    }

    /// Its values in 32 bits, row-major.
    #[allow(clippy::cast_possible_truncation, reason = "features are f32 throughout")]
    pub fn to_f32(&self) -> Vec<f32> {
        match self {
            Self::F64(array) => values(array.as_array(), |value| value as f32),
            Self::F32(array) => values(array.as_array(), |value| value),
        }
    }
}

fn values<T: Copy, U>(array: ArrayViewD<'_, T>, of: impl Fn(T) -> U) -> Vec<U> {
    match array.as_slice() {
        Some(values) => values.iter().map(|value| of(*value)).collect(),
        None => array.iter().map(|value| of(*value)).collect(),
    }
}

/// Whole numbers that count from 0.
///
/// # Errors
/// A number is negative; `what` names it.
pub fn indices(array: &PyReadonlyArray1<'_, i64>, what: &str) -> PyResult<Vec<usize>> {
    let index = |(row, value): (usize, &i64)| {
        usize::try_from(*value).map_err(|_| DataError::new_err(format!("row {row}: {what} {value} is below 0")))
    };
    array.as_array().iter().enumerate().map(index).collect()
}

/// Predictions of classes from `[n, C]`, or from `[n]` probabilities of class 1.
///
/// # Errors
/// They are not the probabilities of labelled rows.
pub fn classes<'a>(
    probabilities: &'a Floats<'_>,
    labels: &PyReadonlyArray1<'_, i64>,
) -> PyResult<ClassPredictions<'a>> {
    let labels = indices(labels, "label")?;
    let (classes, values) = match *probabilities.shape() {
        [_] => (2, probabilities.to_f64().iter().flat_map(|p| [1.0 - p, *p]).collect()),
        [_, classes] => (classes, probabilities.to_f64()),
        ref shape => {
            let message =
                format!("probabilities have the shape {shape:?}; they must be [n, C], or [n] for two classes");
            return Err(DataError::new_err(message));
        }
    };
    ClassPredictions::of(labels, classes, values).map_err(|error| match (error, &*probabilities.shape()) {
        // The one that was given is that of class 1.
        (MetricError::Probability { row, .. }, [_]) => {
            of_metric(MetricError::Probability { row, class: 1, value: probabilities.to_f64()[row] })
        }
        (error, _) => of_metric(error),
    })
}

/// Predictions of a regression from means and standard deviations, `[n]` or `[N, n]`.
///
/// # Errors
/// They are not those of rows with targets.
pub fn reals<'a>(mean: &'a Floats<'_>, sd: &Floats<'_>, target: &'a Floats<'_>) -> PyResult<RegressionPredictions<'a>> {
    let shape = mean.shape();
    let (members, rows) = match *shape {
        [rows] => (1, rows),
        [members, rows] => (members, rows),
        _ => {
            let message = format!("means have the shape {shape:?}; they must be [n], or [N, n] for N members");
            return Err(DataError::new_err(message));
        }
    };
    if sd.shape() != shape {
        let message =
            format!("standard deviations have the shape {:?}, means {shape:?}; they must be equal", sd.shape());
        return Err(DataError::new_err(message));
    }
    if target.shape() != [rows] {
        let message = format!("targets have the shape {:?}; with these means it must be [{rows}]", target.shape());
        return Err(DataError::new_err(message));
    }
    let sd = sd.to_f64();
    if let Some(at) = sd.iter().position(|sd| !(sd.is_finite() && *sd > 0.0)) {
        let message = format!("standard deviation {at} is {}; it must be finite and greater than 0", sd[at]);
        return Err(DataError::new_err(message));
    }
    let precision: Vec<f64> = sd.iter().map(|sd| (sd * sd).recip()).collect();
    RegressionPredictions::of(members, mean.to_f64(), precision, target.to_f64()).map_err(of_metric)
}

/// An array of this shape; `values` are row-major.
///
/// # Errors
/// The shape has another number of values.
pub fn shaped<'py, T: numpy::Element>(
    py: Python<'py>,
    values: Vec<T>,
    shape: &[usize],
) -> PyResult<Bound<'py, numpy::PyArrayDyn<T>>> {
    PyArray1::from_vec(py, values).reshape(IxDyn(shape))
}
