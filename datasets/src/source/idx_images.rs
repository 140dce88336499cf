//! Data sets in the layout of MNIST: four idx files, images and labels for training and test.

use crate::format::{first_file, idx};
use crate::{DataError, Dataset, Targets};
use ndarray::Array2;
use std::path::Path;

/// Training and test images `[rows, height * width]`, pixels 0 to 255: `train-*` and `t10k-*` in `<data_dir>/<name>/`,
/// gzipped or not.
///
/// # Errors
/// A missing or damaged file, images of two sizes.
pub(super) fn read(name: &str, data_dir: &Path, classes: Vec<String>) -> Result<(Dataset, Dataset), DataError> {
    let directory = data_dir.join(name);
    let find = |stem: &str| {
        let packed = format!("{stem}.gz");
        // Some mirrors unpack to `train-images.idx3-ubyte`.
        let dotted = stem.replace("-idx", ".idx");
        first_file(&directory, &[&packed, stem, &dotted])
            .ok_or_else(|| DataError::Missing { set: name.to_owned(), path: directory.join(packed) })
    };
    let half = |part: &str| -> Result<Dataset, DataError> {
        let images = find(&format!("{part}-images-idx3-ubyte"))?;
        let labels = find(&format!("{part}-labels-idx1-ubyte"))?;
        let (pixels, labels) = idx::read_pair(&images, &labels, classes.len())?;
        if labels.is_empty() {
            return Err(DataError::Empty { path: images });
        }
        let shape = pixels.dims[1..].to_vec();
        let width = shape.iter().product();
        if width == 0 {
            return Err(DataError::Columns { path: images, problem: format!("images of {shape:?} have no pixels") });
        }
        let flat: Vec<f32> = pixels.data.iter().map(|&byte| f32::from(byte)).collect();
        Ok(Dataset {
            name: name.to_owned(),
            features: Array2::from_shape_vec((labels.len(), width), flat).expect("idx checks its dimensions"),
            feature_shape: shape,
            feature_names: None,
            targets: Targets::Classes { labels, names: classes.clone() },
            clients: None,
            client_names: None,
            groups: None,
            lines: None,
        })
    };
    let (train, test) = (half("train")?, half("t10k")?);
    if train.feature_shape != test.feature_shape {
        let problem = format!("test images are {:?}, training images {:?}", test.feature_shape, train.feature_shape);
        return Err(DataError::Columns { path: directory, problem });
    }
    Ok((train, test))
}

/// One of the four files: `$base` are the mirrors' directories.
macro_rules! idx_file {
    ($set:literal, $stem:literal, $dotted:literal, $bytes:literal, $sha256:literal, [$($base:literal),+]) => {
        $crate::source::DataFile {
            path: concat!($set, "/", $stem, ".gz"),
            bytes: $bytes,
            sha256: $sha256,
            mirrors: &[$(concat!($base, $stem, ".gz")),+],
            alternatives: &[concat!($set, "/", $stem), concat!($set, "/", $dotted)],
            part: &[],
        }
    };
}

pub(super) use idx_file;
