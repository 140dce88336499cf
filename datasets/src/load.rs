//! From the `[data]` table of a config to training and test rows, scaled: in comes a [`DataConfig`], out goes a
//! [`TrainTest`].

use crate::format::csv::{CsvOptions, Header, Task};
use crate::source::cifar;
use crate::source::raetsch::{self, RaetschSet, RaetschSplit};
use crate::source::uci_regression::{self as uci, UciSet};
use crate::source::{self, vehicle, year_prediction as year};
use crate::synthetic::{breiman, mixture};
use crate::{DataError, Dataset, FeatureScale, Normalisation, TargetScale, split};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which data, and how they are prepared. No key has a default here: the caller writes all of them.
///
/// `train_limit` and `test_limit` keep a seeded random subset of that many rows; 0 keeps all.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DataConfig {
    /// MNIST: 60,000 + 10,000 images of 28×28, classes `0` to `9`, the publisher's split.
    Mnist {
        /// Classes to keep, in train and test; empty for all. Classes are not renumbered: there are still ten.
        classes: Vec<usize>,
        /// Scale of the pixels; `auto` is `mnist`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Fashion-MNIST: as MNIST, ten kinds of clothes.
    FashionMnist {
        /// Classes to keep, in train and test; empty for all. Classes are not renumbered: there are still ten.
        classes: Vec<usize>,
        /// Scale of the pixels; `auto` is `mnist`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// CIFAR-10: 50,000 + 10,000 images of 3×32×32, ten kinds of things, the publisher's split. Put there by hand; a part
    /// of the training images will do and is called so.
    Cifar10 {
        /// Classes to keep, in train and test; empty for all. Classes are not renumbered: there are still ten.
        classes: Vec<usize>,
        /// Scale of the pixels; `auto` is `published`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// CIFAR-100: as CIFAR-10, a hundred classes in twenty superclasses.
    Cifar100 {
        /// Classes to keep, in train and test; empty for all. Classes are not renumbered: there are still a hundred.
        classes: Vec<usize>,
        /// Scale of the pixels; `auto` is `published`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Covertype in two classes: 581,012 rows of 54 numbers. Class 0 (−1 in the papers) is lodgepole pine (UCI's
    /// class 2, LIBSVM's label 2), class 1 (+1) the other six (LIBSVM's label 1).
    Covertype {
        /// Scale of the features; `auto` is `minmax`.
        normalise: Normalise,
        /// Share of the rows for testing.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// One of Rätsch's thirteen benchmarks, two classes: class 0 is his −1, class 1 his +1. Put there by hand.
    Raetsch {
        /// Which one.
        set: RaetschSet,
        /// Keep each distinct (features, label) row once, before the split: the sizes of the repackaged
        /// `benchmarks.mat`, which papers quote (breast cancer 263, image 2,086, splice 2,991, flare solar 144,
        /// titanic 24). The other sets have no row twice.
        distinct: bool,
        /// A share of the rows, or Rätsch's sizes; his need all rows.
        split: RaetschSplit,
        /// Share of the rows for testing; not used with Rätsch's sizes.
        test_fraction: f64,
        /// Scale of the features; `auto` is `standard` for the sets of measured values or codes (diabetis,
        /// flare-solar, heart, splice), whose columns are of very different sizes, and `none` for the others, which
        /// are of unit variance already. (The DSVGD paper used all of them as they are.)
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// One of nine regression sets with the standard test splits. Put there by hand.
    UciRegression {
        /// Which one.
        set: UciSet,
        /// Standard test split: 0 to 19, for `protein` 0 to 4; −1 for a split of `test_fraction`, drawn with the seed.
        test_split: i64,
        /// Share of the rows for testing; used with `test_split` −1 only.
        test_fraction: f64,
        /// Scale of the features; `auto` is `standard`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Vehicles by 23 sensors, two classes: 1,860 rows of 100 numbers with their natural clients, split within each
    /// client. Put there by hand. Only the training part that one repository once held: published numbers cannot be
    /// reproduced with it.
    Vehicle {
        /// Share of each client's rows for testing; a client keeps at least one for training.
        test_fraction: f64,
        /// Scale of the features; `auto` is `none`: the publisher standardised each client's.
        normalise: Normalise,
        /// Training rows to keep, 0 for all; drawn from all clients together, so that one may lose all its rows.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// YearPredictionMSD: the year of a song from 90 numbers, 463,715 + 51,630 rows, the publisher's split. Put there
    /// by hand.
    YearPrediction {
        /// Scale of the features; `auto` is `standard`.
        normalise: Normalise,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// 8×8 digits, embedded in the crate: 1,797 rows of 64 pixels from 0 to 16.
    Digits {
        /// Classes to keep; empty for all. Classes are not renumbered: there are still ten.
        classes: Vec<usize>,
        /// Scale of the pixels; `auto` is `unit`: x / 16.
        normalise: Normalise,
        /// Share of the rows for testing.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Any table of numbers.
    Csv {
        /// The file, gzipped or not.
        path: PathBuf,
        /// A separate file of test rows with the same columns; empty for none, then `test_fraction` splits.
        test_path: String,
        /// Target column: its name, or its index from 0, negative from the end (`-1` is the last).
        target: String,
        /// Whether the first line names the columns.
        header: Header,
        /// What the target column holds.
        task: Task,
        /// One character between the fields; `tab` is accepted.
        delimiter: String,
        /// Column of each row's natural client, as `target`; empty for none. It is no feature.
        client_column: String,
        /// Scale of the features; `auto` is `standard`.
        normalise: Normalise,
        /// Share of the rows for testing; not used with `test_path`.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Breiman's twonorm, drawn ([`breiman::twonorm`]).
    Twonorm {
        /// Rows to draw, train and test together.
        rows: usize,
        /// Scale of the features; `auto` is `none`.
        normalise: Normalise,
        /// Share of the rows for testing.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Breiman's ringnorm, drawn ([`breiman::ringnorm`]).
    Ringnorm {
        /// Rows to draw, train and test together.
        rows: usize,
        /// Scale of the features; `auto` is `none`.
        normalise: Normalise,
        /// Share of the rows for testing.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// Breiman's waveform, drawn ([`breiman::waveform`]).
    Waveform {
        /// Rows to draw, train and test together.
        rows: usize,
        /// Scale of the features; `auto` is `standard`.
        normalise: Normalise,
        /// Share of the rows for testing.
        test_fraction: f64,
        /// Training rows to keep, 0 for all.
        train_limit: usize,
        /// Test rows to keep, 0 for all.
        test_limit: usize,
    },
    /// The 1-D toy of the DSVGD paper: two rows, one likelihood each ([`mixture`]); train and test are the same.
    #[serde(rename = "mixture-1d")]
    Mixture1d {
        /// `auto` or `none`: a row is a likelihood, not a sample.
        normalise: Normalise,
        /// 0: both rows are needed.
        train_limit: usize,
        /// 0: both rows are needed.
        test_limit: usize,
    },
    /// The 2-D toy of the DSVGD paper: two rows, one likelihood each ([`mixture`]); train and test are the same.
    #[serde(rename = "mixture-2d")]
    Mixture2d {
        /// `auto` or `none`: a row is a likelihood, not a sample.
        normalise: Normalise,
        /// 0: both rows are needed.
        train_limit: usize,
        /// 0: both rows are needed.
        test_limit: usize,
    },
}

/// Scale of the features. What depends on data is taken from the training rows alone, after `train_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalise {
    /// What suits the data set: see each kind of [`DataConfig`].
    Auto,
    /// As they are.
    None,
    /// (x − min) / (max − min) per column.
    Minmax,
    /// (x − mean) / sd per column; a constant column is only centred.
    Standard,
    /// x · 0.99 / 255 + 0.01: the DSVGD and client-selection papers on images.
    Mnist,
    /// x / 255 for images of bytes, x / 16 for digits.
    Unit,
    /// (x / 255 − m) / s with the published mean and deviation of each channel of the whole training set: MNIST,
    /// Fashion-MNIST, CIFAR-10 and CIFAR-100 (ALGORITHMS.md section 3.6).
    Published,
}

/// Training and test rows of one data set.
#[derive(Clone, Debug)]
pub struct TrainTest {
    /// Training rows, features scaled, real targets in the original scale.
    pub train: Dataset,
    /// Test rows, scaled by the same numbers, real targets in the original scale.
    pub test: Dataset,
    /// The scales, for rows that come later and for predictions that go back.
    pub normalisation: Normalisation,
    /// What a reader of results should know, one sentence each: that the files hold a part of the set.
    pub notes: Vec<String>,
}

/// Loads, splits, limits and scales, in this order.
///
/// # Arguments
/// - `data_dir`: the directory that holds `mnist/`, `covertype/` and the like, one directory a kind.
/// - `rng`: the only source of randomness (split, limits, generators).
///
/// # Errors
/// A missing or damaged file, a value that cannot work, a file that is not what the config says it is.
pub fn load(config: &DataConfig, data_dir: &Path, rng: &mut impl Rng) -> Result<TrainTest, DataError> {
    use DataConfig::*;
    let limits = config.limits();
    let mut notes = Vec::new();
    let (train, test) = match config {
        Mnist { classes, .. } => of_classes(source::mnist(data_dir)?, classes)?,
        FashionMnist { classes, .. } => of_classes(source::fashion_mnist(data_dir)?, classes)?,
        Cifar10 { classes, .. } => of_classes(noted(cifar::cifar10(data_dir)?, &mut notes), classes)?,
        Cifar100 { classes, .. } => of_classes(noted(cifar::cifar100(data_dir)?, &mut notes), classes)?,
        Covertype { test_fraction, .. } => split::train_test(&source::covertype(data_dir)?, *test_fraction, rng)?,
        Raetsch { set, distinct, split, test_fraction, .. } => {
            set.split(&raetsch::read(*set, *distinct, data_dir)?, *split, *test_fraction, rng)?
        }
        UciRegression { set, test_split, test_fraction, .. } => {
            uci::read(*set, *test_split, *test_fraction, data_dir, rng)?
        }
        Vehicle { test_fraction, .. } => split::within_clients(&vehicle::read(data_dir)?, *test_fraction, rng)?,
        YearPrediction { .. } => year::read(data_dir)?,
        Digits { classes, test_fraction, .. } => {
            split::train_test(&split::only_classes(source::digits()?, classes)?, *test_fraction, rng)?
        }
        Csv { path, test_path, target, header, task, delimiter, client_column, test_fraction, .. } => {
            let delimiter = source::delimiter(delimiter)?;
            let columns = CsvOptions { target, header: *header, task: *task, delimiter, client: client_column };
            match source::csv(path, test_path, &columns)? {
                (train, Some(test)) => (train, test),
                (all, None) => split::train_test(&all, *test_fraction, rng)?,
            }
        }
        Twonorm { rows, test_fraction, .. } => {
            split::train_test(&breiman::twonorm(enough(*rows)?, rng), *test_fraction, rng)?
        }
        Ringnorm { rows, test_fraction, .. } => {
            split::train_test(&breiman::ringnorm(enough(*rows)?, rng), *test_fraction, rng)?
        }
        Waveform { rows, test_fraction, .. } => {
            split::train_test(&breiman::waveform(enough(*rows)?, rng), *test_fraction, rng)?
        }
        Mixture1d { .. } | Mixture2d { .. } => return toy(config),
    };
    let train = split::limit(train, limits.0, rng);
    let test = split::limit(test, limits.1, rng);
    scaled(config, train, test, notes)
}

impl DataConfig {
    /// The word after `kind =`.
    pub fn kind(&self) -> &'static str {
        use DataConfig::*;
        match self {
            Mnist { .. } => "mnist",
            FashionMnist { .. } => "fashion-mnist",
            Cifar10 { .. } => "cifar10",
            Cifar100 { .. } => "cifar100",
            Covertype { .. } => "covertype",
            Raetsch { .. } => "raetsch",
            UciRegression { .. } => "uci-regression",
            Vehicle { .. } => "vehicle",
            YearPrediction { .. } => "year-prediction",
            Digits { .. } => "digits",
            Csv { .. } => "csv",
            Twonorm { .. } => "twonorm",
            Ringnorm { .. } => "ringnorm",
            Waveform { .. } => "waveform",
            Mixture1d { .. } => "mixture-1d",
            Mixture2d { .. } => "mixture-2d",
        }
    }

    /// The scale asked for.
    pub fn normalise(&self) -> Normalise {
        use DataConfig::*;
        match self {
            Mnist { normalise, .. }
            | FashionMnist { normalise, .. }
            | Cifar10 { normalise, .. }
            | Cifar100 { normalise, .. }
            | Covertype { normalise, .. }
            | Raetsch { normalise, .. }
            | UciRegression { normalise, .. }
            | Vehicle { normalise, .. }
            | YearPrediction { normalise, .. }
            | Digits { normalise, .. }
            | Csv { normalise, .. }
            | Twonorm { normalise, .. }
            | Ringnorm { normalise, .. }
            | Waveform { normalise, .. }
            | Mixture1d { normalise, .. }
            | Mixture2d { normalise, .. } => *normalise,
        }
    }

    /// `(train_limit, test_limit)`.
    pub fn limits(&self) -> (usize, usize) {
        use DataConfig::*;
        match self {
            Mnist { train_limit, test_limit, .. }
            | FashionMnist { train_limit, test_limit, .. }
            | Cifar10 { train_limit, test_limit, .. }
            | Cifar100 { train_limit, test_limit, .. }
            | Covertype { train_limit, test_limit, .. }
            | Raetsch { train_limit, test_limit, .. }
            | UciRegression { train_limit, test_limit, .. }
            | Vehicle { train_limit, test_limit, .. }
            | YearPrediction { train_limit, test_limit, .. }
            | Digits { train_limit, test_limit, .. }
            | Csv { train_limit, test_limit, .. }
            | Twonorm { train_limit, test_limit, .. }
            | Ringnorm { train_limit, test_limit, .. }
            | Waveform { train_limit, test_limit, .. }
            | Mixture1d { train_limit, test_limit, .. }
            | Mixture2d { train_limit, test_limit, .. } => (*train_limit, *test_limit),
        }
    }

    /// The scale's numbers, from the training rows where they depend on data.
    fn scale(&self, train: &Dataset) -> Result<FeatureScale, DataError> {
        use DataConfig::*;
        let asked = match (self.normalise(), self) {
            (Normalise::Auto, Mnist { .. } | FashionMnist { .. }) => Normalise::Mnist,
            (Normalise::Auto, Cifar10 { .. } | Cifar100 { .. }) => Normalise::Published,
            (Normalise::Auto, Covertype { .. }) => Normalise::Minmax,
            (Normalise::Auto, Digits { .. }) => Normalise::Unit,
            (Normalise::Auto, Csv { .. } | Waveform { .. }) => Normalise::Standard,
            (Normalise::Auto, UciRegression { .. } | YearPrediction { .. }) => Normalise::Standard,
            (Normalise::Auto, Raetsch { set, .. }) if set.is_raw() => Normalise::Standard,
            (Normalise::Auto, _) => Normalise::None,
            (asked, _) => asked,
        };
        let affine = |scale, offset| FeatureScale::AffineAll { scale, offset };
        // Mean and deviation of x / 255, as the FedWBA code has them.
        let published = |mean: f64, sd: f64| affine(1.0 / (255.0 * sd), -mean / sd);
        let wrong = |only: &str| {
            let problem = format!("is for {only} only; `{}` takes auto, none, minmax or standard", self.kind());
            Err(DataError::config("data.normalise", format!("{asked:?}").to_lowercase(), problem))
        };
        Ok(match (asked, self) {
            (Normalise::Auto | Normalise::None, _) => FeatureScale::Identity,
            (Normalise::Minmax, _) => FeatureScale::minmax(&train.features),
            (Normalise::Standard, _) => FeatureScale::standard(&train.features),
            (Normalise::Mnist, _) => affine(0.99 / 255.0, 0.01),
            (Normalise::Unit, Mnist { .. } | FashionMnist { .. } | Cifar10 { .. } | Cifar100 { .. }) => {
                affine(1.0 / 255.0, 0.0)
            }
            (Normalise::Unit, Digits { .. }) => affine(1.0 / 16.0, 0.0),
            (Normalise::Unit, _) => return wrong("mnist, fashion-mnist, cifar10, cifar100 and digits"),
            (Normalise::Published, Mnist { .. }) => published(0.1307, 0.3081),
            (Normalise::Published, FashionMnist { .. }) => published(0.2860, 0.3530),
            (Normalise::Published, Cifar10 { .. }) => {
                FeatureScale::of_pixels(&[0.4914, 0.4822, 0.4465], &[0.2470, 0.2435, 0.2616])
            }
            (Normalise::Published, Cifar100 { .. }) => {
                FeatureScale::of_pixels(&[0.5071, 0.4865, 0.4409], &[0.2673, 0.2564, 0.2762])
            }
            (Normalise::Published, _) => return wrong("mnist, fashion-mnist, cifar10 and cifar100"),
        })
    }
}

/// The rows of a set, its notes put to the others.
fn noted((train, test, said): (Dataset, Dataset, Vec<String>), notes: &mut Vec<String>) -> (Dataset, Dataset) {
    notes.extend(said);
    (train, test)
}

/// Only the rows of some classes, of a set that its publisher split.
fn of_classes((train, test): (Dataset, Dataset), classes: &[usize]) -> Result<(Dataset, Dataset), DataError> {
    Ok((split::only_classes(train, classes)?, split::only_classes(test, classes)?))
}

/// Rows that a generator may be asked for; more would not fit into most machines.
fn enough(rows: usize) -> Result<usize, DataError> {
    const MOST: usize = 20_000_000;
    if (2..=MOST).contains(&rows) {
        return Ok(rows);
    }
    Err(DataError::config("data.rows", rows, format!("must be from 2 to {MOST}")))
}

fn scaled(
    config: &DataConfig,
    mut train: Dataset,
    mut test: Dataset,
    notes: Vec<String>,
) -> Result<TrainTest, DataError> {
    let features = config.scale(&train)?;
    features.apply(&mut train.features)?;
    features.apply(&mut test.features)?;
    let target = TargetScale::of(&train.targets);
    Ok(TrainTest { train, test, normalisation: Normalisation { features, target }, notes })
}

fn toy(config: &DataConfig) -> Result<TrainTest, DataError> {
    if !matches!(config.normalise(), Normalise::Auto | Normalise::None) {
        let problem = "a row of a mixture is a likelihood; it takes auto or none";
        return Err(DataError::config("data.normalise", format!("{:?}", config.normalise()).to_lowercase(), problem));
    }
    if config.limits() != (0, 0) {
        let problem = "a mixture has one row a client and needs them all; it takes 0";
        return Err(DataError::config("data.train_limit, data.test_limit", format!("{:?}", config.limits()), problem));
    }
    let likelihoods = match config {
        DataConfig::Mixture1d { .. } => mixture::paper_1d(),
        _ => mixture::paper_2d(),
    };
    let data = mixture::dataset(config.kind(), &likelihoods);
    let normalisation = Normalisation { features: FeatureScale::Identity, target: None };
    Ok(TrainTest { train: data.clone(), test: data, normalisation, notes: Vec::new() })
}
