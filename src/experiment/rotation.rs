//! The basis of the features in a run: computed from the training rows, kept as a file, applied to rows that come later.

use std::path::Path;

use ndarray::Array2;
use safetensors::tensor::SafeTensors;

use super::config::{Config, Rotate, RotateFrom};
use crate::array::{Array, Values};
use crate::datasets::{DataError, Dataset, Partition, Rotation, TrainTest};
use crate::error::RunError;
use crate::report::files::read_whole;
use crate::tensor_file::{self, NamedTensor, floats};

/// The name of the matrix Q in its file.
const MATRIX: &str = "rotation";

/// The basis that `data.rotate` asks for; `None` where features stay as they are.
///
/// # Errors
/// The training rows have no principal axes: there is no row, or a feature is not finite.
pub(super) fn of(config: &Config, data: &TrainTest, partition: &Partition) -> Result<Option<Rotation>, RunError> {
    let asked = config.rotation()?;
    let features = data.train.features.view();
    Ok(match (asked.rotate, asked.rotate_from) {
        (Rotate::None, _) => None,
        (Rotate::Principal, RotateFrom::AllClients) => Some(Rotation::principal(features)?),
        (Rotate::Principal, RotateFrom::FirstClient) => {
            let first: &[usize] = partition.clients().first().map_or(&[], Vec::as_slice);
            Some(Rotation::principal(features.select(ndarray::Axis(0), first).view())?)
        }
    })
}

/// Training and test rows in that basis. Their features are no longer an image's.
///
/// # Errors
/// The rows have another number of features than the basis.
pub(super) fn applied(rotation: &Rotation, data: TrainTest) -> Result<TrainTest, DataError> {
    let rotated = |mut rows: Dataset| -> Result<Dataset, DataError> {
        rotation.apply(&mut rows.features)?;
        rows.feature_shape = vec![rows.width()];
        Ok(rows)
    };
    Ok(TrainTest { train: rotated(data.train)?, test: rotated(data.test)?, ..data })
}

/// The matrix Q as a safetensors file.
///
/// # Errors
/// The file cannot be encoded.
pub(super) fn to_safetensors(rotation: &Rotation) -> Result<Vec<u8>, RunError> {
    let matrix = rotation.matrix();
    let array =
        Array { shape: vec![matrix.nrows(), matrix.ncols()], values: Values::F32(matrix.iter().copied().collect()) };
    let version = ("fedstein", env!("CARGO_PKG_VERSION"));
    let encoded = tensor_file::encode(&[NamedTensor::of(MATRIX, &array)], version);
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
