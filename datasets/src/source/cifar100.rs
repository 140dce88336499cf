//! CIFAR-100 (A. Krizhevsky, *Learning multiple layers of features from tiny images*, 2009): small photographs in a
//! hundred classes, which belong to twenty superclasses.

use super::cifar::{self, Set, cifar_train};
use super::kind::{CLASSES, Rows, Source};
use super::set::manual_file;
use super::{DataFile, DataSet, Origin};
use crate::format::cifar::Layout;
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, Dataset, FeatureScale, Normalise, Targets};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// CIFAR-100: like CIFAR-10, with a hundred classes in twenty superclasses.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Cifar100 {
    /// Classes to keep, in train and test; an empty list keeps all. Classes are not renumbered: there remain a hundred.
    pub classes: Vec<usize>,
    /// The scale of the pixels; `auto` is `published`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Cifar100 {
    const KIND: Kind = Kind {
        name: "cifar100",
        about: "Small photographs: 50,000 + 10,000 images of 3x32x32, 100 classes in 20 superclasses, in the publisher's split; manual download. Scale `auto`: `published`.",
        keys: &[CLASSES, NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "small photographs: 50,000 + 10,000 images of 3x32x32, 100 classes in 20 superclasses",
        source: "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence: "none stated; its author asks for the citation",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        DataProperties { superclasses: true, ..DataProperties::classes(100) }
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Published
    }

    fn largest_value(&self) -> Option<f64> {
        Some(255.0)
    }

    fn published_scale(&self) -> Option<FeatureScale> {
        Some(FeatureScale::of_pixels(&[0.5071, 0.4865, 0.4409], &[0.2673, 0.2564, 0.2762]))
    }

    fn read(&self, data_dir: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        cifar::read(&LAYOUT, data_dir)?.of_classes(&self.classes)
    }
}

const LAYOUT: Set = Set {
    name: Cifar100::KIND.name,
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

/// The superclass of each class of CIFAR-100, 0 to 19 in the order of the publisher's table.
#[rustfmt::skip]
const SUPERCLASS: [usize; 100] = [
     4,  1, 14,  8,  0,  6,  7,  7, 18,  3,  3, 14,  9, 18,  7, 11,  3,  9,  7, 11,
     6, 11,  5, 10,  7,  6, 13, 15,  3, 15,  0, 11,  1, 10, 12, 14, 16,  9, 11,  5,
     5, 19,  8,  8, 15, 13, 14, 17, 18, 10, 16,  4, 17,  4,  2,  0, 17,  4, 18, 17,
    10,  3,  2, 12, 12, 16, 12,  1,  9, 19,  2, 10,  0,  1, 16, 12,  9, 13, 15, 13,
    16, 19,  2,  4,  6, 19,  5,  5,  8, 19, 18,  1,  2, 15,  6,  0, 17,  8, 14, 13,
];

impl Dataset {
    /// The superclass of each class `[C]` of CIFAR-100; `None` for other classes.
    pub fn superclasses(&self) -> Option<&'static [usize]> {
        match &self.targets {
            Targets::Classes { names, .. } => names.iter().eq(&FINE).then_some(&SUPERCLASS),
            _ => None,
        }
    }
}

const HOW: &str = "\
     get cifar-100-binary.tar.gz (161 MB) from https://www.cs.toronto.edu/~kriz/cifar.html and unpack train.bin and \
     test.bin into cifar100/ below the data directory; each may be gzipped\n  \
     a part of the training images may stand for train.bin as cifar100/train_20pct.bin or .bin.gz: docs/data.md, \
     \"Manual downloads\"";

const FILES: &[DataFile] = &[
    cifar_train!("cifar100", "train.bin"),
    manual_file!("cifar100/test.bin", 27979709, "86cd7b10cb12d31e5d18cb66320fc8e4230c191f38c697dbb537454a914c6e68"),
];
