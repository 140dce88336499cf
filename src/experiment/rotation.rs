//! The basis of the features in a run: computed from the training rows, kept as a file, applied to rows that come later.

use std::path::Path;

use ndarray::{Array2, Axis};
use safetensors::tensor::SafeTensors;

use super::config::{Config, Rotate, RotateFrom};
use crate::array::{Array, Values};
use crate::datasets::{DataError, Dataset, Partition, Rotation, SecondMoment, TrainTest};
use crate::error::RunError;
use crate::report::files::read_whole;
use crate::tensor_file::{self, NamedTensor, floats};

/// The name of the matrix Q in its file, and in a message.
pub(super) const MATRIX: &str = "rotation";

/// The basis that `data.rotate` asks for; `None` where features stay as they are.
///
/// # Errors
/// The training rows have no principal axes: there is no row, or a feature is not finite.
pub(super) fn of(config: &Config, data: &TrainTest, partition: &Partition) -> Result<Option<Rotation>, RunError> {
    let Some(count) = sources(config, partition.clients().len())? else { return Ok(None) };
    let features = &data.train.features;
    let moment = |rows: &Vec<usize>| SecondMoment::of(features.select(Axis(0), rows).view());
    let moments = partition.clients().iter().take(count).map(moment);
    Ok(Some(of_sums(features.ncols(), moments)?))
}

/// The number of clients, from client 0 on, from whose rows the basis is computed; `None` where features stay as they are.
///
/// # Errors
/// The keys and the type that they are read into disagree.
pub(super) fn sources(config: &Config, clients: usize) -> Result<Option<usize>, RunError> {
    let asked = config.rotation()?;
    Ok(match (asked.rotate, asked.rotate_from) {
        (Rotate::None, _) => None,
        (Rotate::Principal, RotateFrom::AllClients) => Some(clients),
        (Rotate::Principal, RotateFrom::FirstClient) => Some(1),
    })
}

/// The basis that follows from the clients' sums of x xᵀ, added in the order of the clients.
///
/// # Errors
/// As [`of`].
pub(super) fn of_sums(width: usize, moments: impl Iterator<Item = SecondMoment>) -> Result<Rotation, RunError> {
    let sum = moments.fold(SecondMoment::zero(width), |mut sum, moment| {
        sum.add(&moment);
        sum
    });
    Ok(Rotation::principal(&sum)?)
}

/// Training and test rows in that basis. Their features are no longer an image's.
///
/// # Errors
/// The rows have another number of features than the basis.
pub(super) fn applied(rotation: &Rotation, data: TrainTest) -> Result<TrainTest, DataError> {
    Ok(TrainTest { train: rotated(rotation, data.train)?, test: rotated(rotation, data.test)?, ..data })
}

/// Some rows in that basis. Their features are no longer an image's.
///
/// # Errors
/// As [`applied`].
pub(super) fn rotated(rotation: &Rotation, mut rows: Dataset) -> Result<Dataset, DataError> {
    rotation.apply(&mut rows.features)?;
    rows.feature_shape = vec![rows.width()];
    Ok(rows)
}

/// The matrix Q as an array `[p, p]` of a message.
pub(super) fn to_array(rotation: &Rotation) -> Array {
    let matrix = rotation.matrix();
    Array { shape: vec![matrix.nrows(), matrix.ncols()], values: Values::F32(matrix.iter().copied().collect()) }
}

/// The basis of an array that [`to_array`] has made. It may come from an untrusted sender.
///
/// # Errors
/// A sentence, where it is not an orthogonal matrix in f32.
pub(super) fn from_array(array: &Array) -> Result<Rotation, String> {
    let ([rows, columns], Values::F32(values)) = (&array.shape[..], &array.values) else {
        return Err(format!("the array \"{MATRIX}\" is {:?}, not a matrix in f32", array.shape));
    };
    let matrix = Array2::from_shape_vec((*rows, *columns), values.clone()).map_err(|error| error.to_string())?;
    Rotation::from_matrix(matrix)
}

/// The matrix Q as a safetensors file.
///
/// # Errors
/// The file cannot be encoded.
pub(super) fn to_safetensors(rotation: &Rotation) -> Result<Vec<u8>, RunError> {
    let version = ("fedstein", env!("CARGO_PKG_VERSION"));
    let encoded = tensor_file::encode(&[NamedTensor::of(MATRIX, &to_array(rotation))], version);
    encoded.map_err(|error| RunError::Output(error.to_string()))
}

/// Reads the file that [`to_safetensors`] writes. It may come from an untrusted source.
///
/// # Errors
/// The file cannot be read, or does not hold an orthogonal matrix.
pub(super) fn read(path: &Path) -> Result<Rotation, RunError> {
    let wrong = |reason: String| RunError::Config(format!("{}: {reason}", path.display()));
    let bytes = read_whole(path).map_err(|error| wrong(error.to_string()))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
    let view = tensors.tensor(MATRIX).map_err(|error| wrong(error.to_string()))?;
    let [rows, columns] = view.shape() else {
        return Err(wrong(format!("tensor \"{MATRIX}\" is {:?}, not a matrix", view.shape())));
    };
    let Some(Values::F32(values)) = floats(&view) else {
        return Err(wrong(format!("tensor \"{MATRIX}\" is {:?}, not F32", view.dtype())));
    };
    let matrix = Array2::from_shape_vec((*rows, *columns), values).map_err(|error| wrong(error.to_string()))?;
    Rotation::from_matrix(matrix).map_err(wrong)
}
