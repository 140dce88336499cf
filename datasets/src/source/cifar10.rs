//! CIFAR-10 (A. Krizhevsky, *Learning multiple layers of features from tiny images*, 2009): small photographs in ten
//! classes.

use super::cifar::{self, Set, cifar_train};
use super::kind::{CLASSES, Rows, Source};
use super::set::manual_file;
use super::{DataFile, DataSet, Origin};
use crate::format::cifar::Layout;
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, FeatureScale, Normalise};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// CIFAR-10: 50,000 + 10,000 images of 3×32×32, ten classes, the publisher's split. Manual download. A part of the
/// training images can be used, which a note then reports.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Cifar10 {
    /// Classes to keep, in train and test; an empty list keeps all. Classes are not renumbered: there remain ten.
    pub classes: Vec<usize>,
    /// The scale of the pixels; `auto` is `published`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Cifar10 {
    const KIND: Kind = Kind {
        name: "cifar10",
        about: "Small photographs: 50,000 + 10,000 images of 3x32x32, 10 classes, in the publisher's split; manual download. Scale `auto`: `published`.",
        keys: &[CLASSES, NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "small photographs: 50,000 + 10,000 images of 3x32x32, 10 classes",
        source: "A. Krizhevsky, Learning multiple layers of features from tiny images, 2009",
        licence: "none stated; its author asks for the citation",
        origin: Origin::Download,
        files: FILES,
        manual_download: Some(HOW),
    };

    fn properties(&self) -> DataProperties {
        DataProperties::classes(10)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Published
    }

    fn largest_value(&self) -> Option<f64> {
        Some(255.0)
    }

    fn published_scale(&self) -> Option<FeatureScale> {
        Some(FeatureScale::of_pixels(&[0.4914, 0.4822, 0.4465], &[0.2470, 0.2435, 0.2616]))
    }

    fn read(&self, data_dir: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        cifar::read(&LAYOUT, data_dir)?.of_classes(&self.classes)
    }
}

const LAYOUT: Set = Set {
    name: Cifar10::KIND.name,
    layout: Layout::Cifar10,
    train: &["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"],
    test: "test_batch.bin",
    names: "batches.meta.txt",
    classes: &NAMES,
};

const NAMES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

const HOW: &str = "\
     get cifar-10-binary.tar.gz (162 MB, md5 c32a1d4ab5d03f1284b67883e8d87530) from \
     https://www.cs.toronto.edu/~kriz/cifar.html and unpack data_batch_1.bin to data_batch_5.bin and test_batch.bin into \
     cifar10/ below the data directory; each may be gzipped\n  \
     a part of the training images may stand for the five batches as cifar10/train_20pct.bin or .bin.gz: \
     docs/data.md, \"Manual downloads\"";

const FILES: &[DataFile] = &[
    cifar_train!("cifar10", "data_batch_1.bin"),
    cifar_train!("cifar10", "data_batch_2.bin"),
    cifar_train!("cifar10", "data_batch_3.bin"),
    cifar_train!("cifar10", "data_batch_4.bin"),
    cifar_train!("cifar10", "data_batch_5.bin"),
    manual_file!(
        "cifar10/test_batch.bin",
        28256339,
        "27ae0e1ce42c156c20a7e87f67dc90a50876ca6a755a60c608fc646a4ec4b937"
    ),
];
