//! CIFAR-10 and CIFAR-100 (A. Krizhevsky, *Learning multiple layers of features from tiny images*, 2009): the binary
//! version's files, or a part of the training images under the name `train_20pct.bin`. Whether the rows are the whole
//! set is decided by counting them: a result on a part is not one on the set, so the name says so and a note does.

use super::{put_there, put_there_packed};
use crate::format::cifar::{self, Layout, PIXELS};
use crate::format::{first_file, read_text};
use crate::{DataError, Dataset, Targets};
use ndarray::Array2;
use std::path::{Path, PathBuf};

/// Channels, height and width.
const SHAPE: [usize; 3] = [3, 32, 32];
/// A part of the training images, where the whole is not there.
const PART: &str = "train_20pct.bin";
/// Images of the whole sets.
const TRAIN: usize = 50_000;
const TEST: usize = 10_000;

/// Which set, and what its files are called.
struct Set {
    name: &'static str,
    layout: Layout,
    train: &'static [&'static str],
    test: &'static str,
    /// File of the class names, one a line; need not be there.
    names: &'static str,
    classes: &'static [&'static str],
}

const CIFAR10: Set = Set {
    name: "cifar10",
    layout: Layout::Cifar10,
    train: &["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"],
    test: "test_batch.bin",
    names: "batches.meta.txt",
    classes: &["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"],
};

const CIFAR100: Set = Set {
    name: "cifar100",
    layout: Layout::Cifar100,
    train: &["train.bin"],
    test: "test.bin",
    names: "fine_label_names.txt",
    classes: &FINE,
};

#[rustfmt::skip]
const FINE: [&str; 100] = [
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur",
    "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard",
    "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain",
    "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
    "plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket",
    "rose", "sea", "seal", "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider",
    "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
];

/// Superclass, 0 to 19 in the order of the publisher's table, of each class of CIFAR-100.
#[rustfmt::skip]
const SUPERCLASS: [usize; 100] = [
     4,  1, 14,  8,  0,  6,  7,  7, 18,  3,  3, 14,  9, 18,  7, 11,  3,  9,  7, 11,
     6, 11,  5, 10,  7,  6, 13, 15,  3, 15,  0, 11,  1, 10, 12, 14, 16,  9, 11,  5,
     5, 19,  8,  8, 15, 13, 14, 17, 18, 10, 16,  4, 17,  4,  2,  0, 17,  4, 18, 17,
    10,  3,  2, 12, 12, 16, 12,  1,  9, 19,  2, 10,  0,  1, 16, 12,  9, 13, 15, 13,
    16, 19,  2,  4,  6, 19,  5,  5,  8, 19, 18,  1,  2, 15,  6,  0, 17,  8, 14, 13,
];

/// The superclass of each class, where the classes are those of CIFAR-100.
pub(crate) fn superclasses(names: &[String]) -> Option<&'static [usize]> {
    names.iter().eq(&FINE).then_some(&SUPERCLASS)
}

/// CIFAR-10: train, test, pixels 0 to 255, and what is to be said of them.
pub fn cifar10(data_dir: &Path) -> Result<(Dataset, Dataset, Vec<String>), DataError> {
    read(&CIFAR10, data_dir)
}

/// CIFAR-100, fine labels: train, test, pixels 0 to 255, and what is to be said of them.
pub fn cifar100(data_dir: &Path) -> Result<(Dataset, Dataset, Vec<String>), DataError> {
    read(&CIFAR100, data_dir)
}

fn read(set: &Set, data_dir: &Path) -> Result<(Dataset, Dataset, Vec<String>), DataError> {
    let test = put_there_packed(data_dir, set.name, set.test)?;
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
    Ok((train, test, notes))
}

/// All files of the whole set, else the part.
fn training_files(set: &Set, data_dir: &Path) -> Result<Vec<PathBuf>, DataError> {
    let whole: Result<Vec<PathBuf>, DataError> =
        set.train.iter().map(|name| put_there_packed(data_dir, set.name, name)).collect();
    let part = || put_there(data_dir, set.name, PART, &[&format!("{PART}.gz")]).map(|path| vec![path]);
    // Without either, what is missing is the whole set.
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

/// The rows of some files, one after the other.
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
    })
}
