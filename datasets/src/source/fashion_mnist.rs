//! Fashion-MNIST (H. Xiao, K. Rasul, R. Vollgraf, 2017): articles of clothing, in the shape of MNIST.

use super::idx_images::{self, idx_file};
use super::kind::{CLASSES, Rows, Source};
use super::{DataSet, Origin};
use crate::prepare::{NORMALISE, TEST_LIMIT, TRAIN_LIMIT};
use crate::{DataError, DataProperties, FeatureScale, Normalise};
use fedstein_schema::Kind;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

const NAMES: [&str; 10] =
    ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"];

/// Fashion-MNIST: 60,000 + 10,000 images of 28×28, ten kinds of clothes, the publisher's split.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct FashionMnist {
    /// Classes to keep, in train and test; an empty list keeps all. Classes are not renumbered: there remain ten.
    pub classes: Vec<usize>,
    /// The scale of the pixels; `auto` is `mnist`.
    pub normalise: Normalise,
    /// The number of training rows to keep; 0 keeps all.
    pub train_limit: usize,
    /// The number of test rows to keep; 0 keeps all.
    pub test_limit: usize,
}

impl Source for FashionMnist {
    const KIND: Kind = Kind {
        name: "fashion-mnist",
        about: "Articles of clothing: 60,000 + 10,000 images of 28x28, 10 classes, in the publisher's split. Scale `auto`: `mnist`.",
        keys: &[CLASSES, NORMALISE, TRAIN_LIMIT, TEST_LIMIT],
    };
    const SET: DataSet = DataSet {
        name: Self::KIND.name,
        summary: "articles of clothing: 60,000 + 10,000 images of 28x28, 10 classes",
        source: "H. Xiao, K. Rasul, R. Vollgraf (Zalando Research), Fashion-MNIST, 2017",
        licence: "MIT",
        origin: Origin::Download,
        files: &[
            fashion_file!(
                "train-images-idx3-ubyte",
                "train-images.idx3-ubyte",
                26421880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
            ),
            fashion_file!(
                "train-labels-idx1-ubyte",
                "train-labels.idx1-ubyte",
                29515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
            ),
            fashion_file!(
                "t10k-images-idx3-ubyte",
                "t10k-images.idx3-ubyte",
                4422102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
            ),
            fashion_file!(
                "t10k-labels-idx1-ubyte",
                "t10k-labels.idx1-ubyte",
                5148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
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
        Some(FeatureScale::of_gray_pixels(0.2860, 0.3530))
    }

    fn read(&self, data_dir: &Path, _: &mut impl Rng) -> Result<Rows, DataError> {
        Rows::from(idx_images::read(Self::KIND.name, data_dir, NAMES.map(str::to_owned).to_vec())?)
            .of_classes(&self.classes)
    }
}

// The publisher's S3 web site supports http only; the checksum makes that safe.
macro_rules! fashion_file {
    ($stem:literal, $dotted:literal, $bytes:literal, $sha256:literal) => {
        idx_file!(
            "fashion-mnist",
            $stem,
            $dotted,
            $bytes,
            $sha256,
            [
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                "https://fashion-mnist.s3.eu-central-1.amazonaws.com/",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
            ]
        )
    };
}

use fashion_file;
