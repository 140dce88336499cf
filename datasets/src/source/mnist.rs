//! MNIST (Y. LeCun, C. Cortes, C. Burges, 1998): handwritten digits.

use super::idx_images::{self, idx_file};
use super::kind::{CLASSES, Rows, Source};
use super::{DataSet, Origin};
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, FeatureScale, Normalise};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// MNIST: 60,000 + 10,000 images of 28×28, classes `0` to `9`, the publisher's split.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Mnist {
    /// Classes to keep, in train and test; an empty list keeps all. Classes are not renumbered: there remain ten.
    pub classes: Vec<usize>,
    /// The scale of the pixels; `auto` is `mnist`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for Mnist {
    const KIND: Kind = Kind {
        name: "mnist",
        about: "Handwritten digits: 60,000 + 10,000 images of 28x28, 10 classes, in the publisher's split. Scale `auto`: `mnist`.",
        keys: &[CLASSES, NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "handwritten digits: 60,000 + 10,000 images of 28x28, 10 classes",
        source: "Y. LeCun, C. Cortes, C. Burges, The MNIST database of handwritten digits, 1998",
        licence: "CC BY-SA 3.0 (as usually stated)",
        origin: Origin::Download,
        files: &[
            mnist_file!(
                "train-images-idx3-ubyte",
                "train-images.idx3-ubyte",
                9912422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            mnist_file!(
                "train-labels-idx1-ubyte",
                "train-labels.idx1-ubyte",
                28881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            mnist_file!(
                "t10k-images-idx3-ubyte",
                "t10k-images.idx3-ubyte",
                1648877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            mnist_file!(
                "t10k-labels-idx1-ubyte",
                "t10k-labels.idx1-ubyte",
                4542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        ],
        manual_download: None,
    };

    fn properties(&self) -> DataProperties {
        DataProperties::classes(10)
    }

    fn auto_scale(&self) -> Normalise {
        Normalise::Mnist
    }

    fn largest_value(&self) -> Option<f64> {
        Some(255.0)
    }

    fn published_scale(&self) -> Option<FeatureScale> {
        Some(FeatureScale::of_gray_pixels(0.1307, 0.3081))
    }

    fn read(&self, data_dir: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        let names = (0..10).map(|digit| digit.to_string()).collect();
        Rows::from(idx_images::read(Self::KIND.name, data_dir, names)?).of_classes(&self.classes)
    }
}

macro_rules! mnist_file {
    ($stem:literal, $dotted:literal, $bytes:literal, $sha256:literal) => {
        idx_file!(
            "mnist",
            $stem,
            $dotted,
            $bytes,
            $sha256,
            ["https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"]
        )
    };
}

use mnist_file;
