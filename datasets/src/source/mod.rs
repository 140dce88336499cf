//! The data sources. Each is one file with its config keys, the properties of its rows, the files that it needs and the
//! code that reads them. A new source needs its file, a `mod` line and a line in the list `data_sources!`.
//!
//! Every config struct has the fields `normalise`, `train_limit` and `test_limit`. No key has a default here: the
//! caller writes all of them. `train_limit` and `test_limit` keep a seeded random subset of that many rows; 0 keeps
//! all.

mod cifar;
mod cifar10;
mod cifar100;
mod covertype;
mod csv;
mod digits;
mod drawn;
mod fashion_mnist;
mod files;
mod idx_images;
mod kind;
mod mixture;
mod mnist;
mod raetsch;
mod ringnorm;
mod set;
mod signs;
mod site_table;
mod sites;
mod twonorm;
mod uci_regression;
mod vehicle;
mod waveform;
mod year_prediction;

use crate::columns::Reading;
use crate::prepare::Normalise;
use crate::properties::TargetKind;
use crate::{DataError, DataProperties, Dataset, FeatureScale, Targets, TrainTest, split};
use fedstein_schema::Kind;
use kind::{Rows, Source};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub use csv::{Cells, FILE_KEYS, HeldOutFiles, TestSplit, delimiter};
pub use raetsch::{RaetschSet, RaetschSplit};
pub use set::{DataFile, DataSet, Origin};
pub use site_table::SITE_KEYS;
pub use uci_regression::UciSet;

/// Declares the data sources of a list: each with its value of `kind`, its module and its config struct.
macro_rules! data_sources {
    ($($word:literal => $module:ident::$variant:ident),+ $(,)?) => {
        $(pub use $module::$variant;)+

        /// The configuration of the data and their preparation.
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
        #[serde(tag = "kind")]
        pub enum DataConfig {
            $(
                #[doc = concat!("`", $word, "`")]
                #[serde(rename = $word)]
                $variant($variant),
            )+
        }

        $(impl From<$variant> for DataConfig {
            fn from(config: $variant) -> Self {
                Self::$variant(config)
            }
        })+

        /// The values of `kind` in `[data]`, with the keys of each.
        pub const DATA_KINDS: &[Kind] = &[$(<$variant as Source>::KIND),+];

        /// The data set of each kind.
        pub(crate) static DATA_SETS: &[DataSet] = &[$(<$variant as Source>::SET),+];

        impl DataConfig {
            /// The value of `kind`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$variant as Source>::KIND.name),+ }
            }

            /// The properties of the rows, which are known before they are read.
            pub fn properties(&self) -> DataProperties {
                match self { $(Self::$variant(config) => config.properties()),+ }
            }

            /// The configured scale.
            pub fn normalise(&self) -> Normalise {
                match self { $(Self::$variant(config) => config.normalise),+ }
            }

            /// The scale that is used: the configured one, with the data set's own in the place of `auto`.
            pub fn scale(&self) -> Normalise {
                match (self.normalise(), self) {
                    $((Normalise::Auto, Self::$variant(config)) => config.auto_scale(),)+
                    (configured, _) => configured,
                }
            }

            /// `(train_limit, test_limit)`.
            pub fn limits(&self) -> (usize, usize) {
                match self { $(Self::$variant(config) => (config.train_limit, config.test_limit)),+ }
            }
        }

        /// Reads, splits, limits and scales, in this order.
        ///
        /// # Arguments
        /// - `data_dir`: the directory that holds `mnist/`, `covertype/` and so on, one directory for each kind.
        /// - `rng`: the only source of randomness (split, limits, generators).
        ///
        /// # Errors
        /// A file is missing, damaged or does not fit the config, or a value of the config is invalid.
        pub fn load(config: &DataConfig, data_dir: &Path, rng: &mut impl Rng) -> Result<TrainTest, DataError> {
            match config { $(DataConfig::$variant(source) => prepared(config, source, data_dir, rng)),+ }
        }
    };
}

data_sources! {
    "mnist" => mnist::Mnist,
    "fashion-mnist" => fashion_mnist::FashionMnist,
    "cifar10" => cifar10::Cifar10,
    "cifar100" => cifar100::Cifar100,
    "covertype" => covertype::Covertype,
    "raetsch" => raetsch::Raetsch,
    "uci-regression" => uci_regression::UciRegression,
    "vehicle" => vehicle::Vehicle,
    "year-prediction" => year_prediction::YearPrediction,
    "digits" => digits::Digits,
    "csv" => csv::Csv,
    "sites" => sites::Sites,
    "twonorm" => twonorm::Twonorm,
    "ringnorm" => ringnorm::Ringnorm,
    "waveform" => waveform::Waveform,
    "mixture-1d" => mixture::Mixture1d,
    "mixture-2d" => mixture::Mixture2d,
}

impl DataConfig {
    /// How the columns of a table are read; `None` where the data are no table.
    pub fn reading(&self) -> Option<&Reading> {
        match self {
            Self::Csv(csv) => Some(&csv.reading),
            Self::Sites(sites) => Some(&sites.reading),
            _ => None,
        }
    }

    /// The kind whose rows are at the sites of a federation.
    pub const AT_SITES: &'static str = sites::Sites::KIND.name;

    /// Whether the rows are at the sites of a federation.
    pub fn rows_are_at_sites(&self) -> bool {
        matches!(self, Self::Sites(_))
    }

    /// The column of a table that is predicted, as its key names it; empty where the data are no table or name none.
    pub fn target_column(&self) -> &str {
        match self {
            Self::Csv(csv) => &csv.target,
            Self::Sites(sites) => &sites.target,
            _ => "",
        }
    }
}

// This is not in the file of the type, because it depends on the class names of CIFAR-100.
impl DataProperties {
    /// The properties of rows that have been read.
    pub fn of(data: &Dataset) -> Self {
        let target = match &data.targets {
            Targets::Classes { names, .. } => TargetKind::Classes(Some(names.len())),
            Targets::Real { .. } => TargetKind::Real,
            Targets::None { .. } => TargetKind::Likelihoods,
        };
        Self {
            natural_clients: data.clients.is_some(),
            superclasses: data.superclasses().is_some(),
            groups: data.groups.is_some(),
            ..Self::of_target(target)
        }
    }
}

fn prepared<S: Source>(
    config: &DataConfig,
    source: &S,
    data_dir: &Path,
    rng: &mut impl Rng,
) -> Result<TrainTest, DataError> {
    let Rows { train, test, notes, encoding, numbered_columns } = source.read(data_dir, rng)?;
    let (train_limit, test_limit) = config.limits();
    let train = split::limit(train, train_limit, rng);
    let test = split::limit(test, test_limit, rng);
    let scale = scale(source, config.normalise(), &train)?.of_numbers_alone(encoding.as_ref());
    let data = TrainTest::scaled(train, test, scale)?;
    Ok(TrainTest { notes: notes.into_iter().chain(data.notes).collect(), encoding, numbered_columns, ..data })
}

/// The configured scale, with its statistics from the training rows.
fn scale<S: Source>(source: &S, asked: Normalise, train: &Dataset) -> Result<FeatureScale, DataError> {
    let normalise = if asked == Normalise::Auto { source.auto_scale() } else { asked };
    let known = match normalise {
        Normalise::Unit => {
            source.largest_value().map(|most| FeatureScale::AffineAll { scale: 1.0 / most, offset: 0.0 })
        }
        Normalise::Published => source.published_scale(),
        _ => normalise.of_any_data(&train.features),
    };
    known.ok_or_else(|| {
        let reason = match normalise {
            Normalise::Published => {
                "is for sets with a published mean and deviation of their pixels only, such as mnist and cifar10"
            }
            _ => "is for images only",
        };
        let problem = format!("{reason}; `{}` takes auto, none, minmax or standard", S::KIND.name);
        DataError::config("data.normalise", asked.word(), problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use toml::{Table, Value};

    #[test]
    fn each_kind_reads_exactly_its_keys_and_is_one_data_set() {
        for (kind, set) in DATA_KINDS.iter().zip(DATA_SETS) {
            let mut table = Table::from_iter([("kind".to_owned(), Value::from(kind.name))]);
            for key in kind.keys {
                // A key that must be given is text: the path and the target of a table.
                let value = key.default.map_or(Value::from("x"), |default| default.to_value());
                assert_eq!(key.accepts.check(&value).as_ref(), Ok(&value), "{} {}", kind.name, key.name);
                table.insert(key.name.to_owned(), value);
            }
            let config: DataConfig = table.clone().try_into().unwrap();
            assert_eq!(Table::try_from(&config).unwrap(), table, "{}", kind.name);
            assert_eq!((config.kind(), set.name), (kind.name, kind.name));
            for key in kind.keys {
                let mut without = table.clone();
                without.remove(key.name);
                assert!(without.try_into::<DataConfig>().is_err(), "{}: `{}` is not read", kind.name, key.name);
            }
        }
    }

    #[test]
    fn properties_known_before_the_rows_are_read_are_correct() {
        let (normalise, rows, test_fraction, train_limit, test_limit) = (Normalise::Auto, 99, 0.2, 0, 0);
        let configs: [DataConfig; 6] = [
            Digits { classes: vec![], normalise, test_fraction, train_limit, test_limit }.into(),
            Twonorm { rows, normalise, test_fraction, train_limit, test_limit }.into(),
            Ringnorm { rows, normalise, test_fraction, train_limit, test_limit }.into(),
            Waveform { rows, normalise, test_fraction, train_limit, test_limit }.into(),
            Mixture1d { normalise, train_limit, test_limit }.into(),
            Mixture2d { normalise, train_limit, test_limit }.into(),
        ];
        for config in configs {
            let mut rng = rand::rngs::ChaCha8Rng::from_seed([1; 32]);
            let data = load(&config, Path::new(""), &mut rng).unwrap();
            assert_eq!(config.properties(), DataProperties::of(&data.train), "{}", config.kind());
        }
    }
}
