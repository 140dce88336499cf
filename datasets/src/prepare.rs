//! The options of all data sources: the scale of the features, the limits on rows, and the config keys of both.

use crate::FeatureScale;
use fedstein_schema::Literal::{Float, Int, Text};
use fedstein_schema::{Accepts, COUNT_OR_ZERO, Interval, Key, key};
use ndarray::Array2;

fedstein_schema::words! {
    /// The scale of the features. Its statistics are computed from the training rows alone, after `train_limit`.
    pub enum Normalise {
        /// The default of the data set: see each data source in [`crate::source`].
        Auto = "auto",
        /// No scaling.
        None = "none",
        /// (x − min) / (max − min) per column.
        Minmax = "minmax",
        /// (x − mean) / sd per column; a constant column is only centred, and so is one of a text, of yes and no or of missing cells.
        Standard = "standard",
        /// x · 0.99 / 255 + 0.01: the DSVGD and client-selection papers on images.
        Mnist = "mnist",
        /// x / 255 for images of bytes, x / 16 for digits.
        Unit = "unit",
        /// (x / 255 − m) / s with the published mean and deviation of each channel of the whole training set: MNIST,
        /// Fashion-MNIST, CIFAR-10 and CIFAR-100.
        Published = "published",
    }
}

impl Normalise {
    /// The scale for training features `[rows, p]`; `None` for scales that depend on the data source.
    pub(crate) fn of_any_data(self, train: &Array2<f32>) -> Option<FeatureScale> {
        match self {
            Self::Minmax => Some(FeatureScale::minmax(train)),
            Self::Standard => Some(FeatureScale::standard(train)),
            _ => self.without_rows(),
        }
    }

    /// The scale that needs neither rows nor a known data source; `None` for the others.
    pub fn without_rows(self) -> Option<FeatureScale> {
        match self {
            Self::None => Some(FeatureScale::Identity),
            Self::Mnist => Some(FeatureScale::AffineAll { scale: 0.99 / 255.0, offset: 0.01 }),
            Self::Auto | Self::Minmax | Self::Standard | Self::Unit | Self::Published => None,
        }
    }
}

/// The key `normalise`.
pub(crate) const NORMALISE: Key = key(
    "normalise",
    Accepts::Choice(Normalise::WORDS),
    Text(Normalise::Auto.word()),
    "Scaling of the features, learnt on training rows: `minmax` to [0, 1], `standard` to mean 0 and sd 1 (features of texts, of yes and no and of missing cells, which are 0 or 1, to mean 0 alone), `mnist` = x·0.99/255 + 0.01 ([D], [C]), `unit` = a pixel over its largest possible value (images), `published` = pixels by the published mean and sd of each channel ([W]; MNIST and CIFAR sets). `auto` is the scale that the data set's line in the table of kinds names.",
);

/// The key `test_fraction`.
pub(crate) const TEST_FRACTION: Key = key(
    "test_fraction",
    Accepts::Float(Interval::INSIDE_UNIT),
    Float(0.2),
    "Share of the rows held out for the test, drawn with `seed`.",
);

/// The key `train_limit`.
pub(crate) const TRAIN_LIMIT: Key =
    key("train_limit", COUNT_OR_ZERO, Int(0), "Training rows to use, drawn with `seed` after the split; 0: all.");

/// The key `test_limit`.
pub(crate) const TEST_LIMIT: Key =
    key("test_limit", COUNT_OR_ZERO, Int(0), "Test rows to use, drawn with `seed` after the split; 0: all.");
