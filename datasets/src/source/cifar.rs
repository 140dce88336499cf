//! CIFAR-10 and CIFAR-100 (A. Krizhevsky, *Learning multiple layers of features from tiny images*, 2009): the binary
//! version's files, or a part of the training images under the name `train_20pct.bin`. Whether the rows are the whole
//! set is decided by counting them: a result on a part is not one on the set, so the name says so and a note does.

use super::files::{find_file, find_gzipped_file};
use super::kind::Rows;
use crate::format::cifar::{self, Layout, PIXELS};
use crate::format::{first_file, read_text};
use crate::{DataError, Dataset, Targets};
use ndarray::Array2;
use std::path::{Path, PathBuf};

/// The number of channels, the height and the width.
const SHAPE: [usize; 3] = [3, 32, 32];
/// A file with a part of the training images, which is used if the whole set is missing.
const PART: &str = "train_20pct.bin";
/// The numbers of images of the whole sets.
const TRAIN: usize = 50_000;
const TEST: usize = 10_000;

/// A set and the names of its files.
pub(super) struct Set {
    pub name: &'static str,
    pub layout: Layout,
    pub train: &'static [&'static str],
    pub test: &'static str,
    /// The file of the class names, one per line, which is optional.
    pub names: &'static str,
    pub classes: &'static [&'static str],
}

/// The training and test images `[rows, 3072]` with pixels from 0 to 255, and a note if they are not the whole set.
///
/// # Errors
/// A missing or damaged file, a wrong number of class names.
pub(super) fn read(set: &Set, data_dir: &Path) -> Result<Rows, DataError> {
    let test = find_gzipped_file(data_dir, set.name, set.test)?;
    let train = training_files(set, data_dir)?;
    let classes = class_names(set, data_dir)?;
    let (mut train, mut test) = (half(set, &train, &classes)?, half(set, &[test], &classes)?);
    let mut notes = Vec::new();
    if (train.rows(), test.rows()) != (TRAIN, TEST) {
        let name = set.name;
        notes.push(format!(
            "{name}: {} of {TRAIN} training and {} of {TEST} test images; results are not those of the whole set",
            train.rows(),
            test.rows()
        ));
        train.name = format!("{name} (part: {} of {TRAIN} training images)", train.rows());
        test.name.clone_from(&train.name);
    }
    Ok(Rows { notes, ..(train, test).into() })
}

/// The files of the whole set, or the file with a part.
fn training_files(set: &Set, data_dir: &Path) -> Result<Vec<PathBuf>, DataError> {
    let whole: Result<Vec<PathBuf>, DataError> =
        set.train.iter().map(|name| find_gzipped_file(data_dir, set.name, name)).collect();
    let part = || find_file(data_dir, set.name, PART, &[&format!("{PART}.gz")]).map(|path| vec![path]);
    // If both are missing, the error names the files of the whole set.
    whole.or_else(|missing| part().map_err(|_| missing))
}

/// The publisher's names, or those of the user's file.
fn class_names(set: &Set, data_dir: &Path) -> Result<Vec<String>, DataError> {
    let Some(path) = first_file(&data_dir.join(set.name), &[set.names]) else {
        return Ok(set.classes.iter().map(|&name| name.to_owned()).collect());
    };
    let text = read_text(&path)?;
    let text = String::from_utf8_lossy(&text);
    let names: Vec<String> = text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.len() != set.classes.len() {
        let problem = format!("{} names, one a line; `{}` has {} classes", names.len(), set.name, set.classes.len());
        return Err(DataError::Columns { path, problem });
    }
    Ok(names)
}

/// The rows of these files, one file after the other.
fn half(set: &Set, files: &[PathBuf], classes: &[String]) -> Result<Dataset, DataError> {
    let (mut labels, mut pixels) = (Vec::new(), Vec::new());
    for path in files {
        let records = cifar::read(path, set.layout)?;
        labels.extend(records.labels());
        pixels.reserve_exact(records.rows() * PIXELS);
        records.pixels().for_each(|image| pixels.extend(image.iter().map(|&byte| f32::from(byte))));
    }
    Ok(Dataset {
        name: set.name.to_owned(),
        features: Array2::from_shape_vec((labels.len(), PIXELS), pixels).expect("a record has PIXELS pixels"),
        feature_shape: SHAPE.to_vec(),
        feature_names: None,
        targets: Targets::Classes { labels, names: classes.to_vec() },
        clients: None,
        client_names: None,
        groups: None,
        lines: None,
    })
}

/// A file of CIFAR's training images, whose checksum is not known, and the part that may be used instead.
macro_rules! cifar_train {
    ($set:literal, $name:literal) => {
        $crate::source::DataFile {
            path: concat!($set, "/", $name),
            bytes: 0,
            sha256: "",
            mirrors: &[],
            alternatives: &[concat!($set, "/", $name, ".gz")],
            part: &[concat!($set, "/train_20pct.bin"), concat!($set, "/train_20pct.bin.gz")],
        }
    };
}

pub(super) use cifar_train;
