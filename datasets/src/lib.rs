//! Data for federated learning, without a tensor library: data sets are read, split into training and test rows, scaled
//! with the statistics of the training rows, and assigned to clients. Arrays are `ndarray`'s, on the host.
//!
//! ```
//! use fedstein_datasets::partition::{Cut, LabelsPerClient};
//! use fedstein_datasets::source::Digits;
//! use fedstein_datasets::{Normalise, PartitionConfig, load, partition};
//! use rand::{SeedableRng, rngs::ChaCha8Rng};
//!
//! # fn main() -> Result<(), fedstein_datasets::DataError> {
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let config = Digits {
//!     classes: vec![], // all
//!     normalise: Normalise::Auto,
//!     test_fraction: 0.2,
//!     train_limit: 0,
//!     test_limit: 0,
//! };
//! let data = load(&config.into(), "data".as_ref(), &mut rng)?; // digits are embedded: no file is read
//! assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (1438, 359, 64));
//!
//! let scheme = LabelsPerClient { clients: 10, labels: 5, cut: Cut::Equal }.into();
//! let config = PartitionConfig { scheme, validation: 0.1, calibration: 0.1 };
//! let shards = partition(&config, &data.train, &mut rng)?.with_tests(&config, &data.train, &data.test, &mut rng)?;
//! println!("{}", shards.table(&data.train.targets));
//! # Ok(())
//! # }
//! ```
//!
//! The data sets are in [`source`], the partitions in [`partition`](mod@partition). [`Dataset::new`] and
//! [`TrainTest::from_rows`] are for your own rows.
//!
//! All randomness comes from the generator that the caller passes in: the same seed gives the same rows in the same
//! order. This crate does not read the clock or the environment, and only [`fetch()`] uses the network.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod card;
pub mod columns;
pub mod dataset;
mod equal_rows;
mod error;
mod exact_sum;
pub mod fetch;
pub mod format;
mod gives_away;
mod leave_out;
pub mod moments;
pub mod normalize;
pub mod partition;
mod positive;
mod prepare;
mod properties;
mod quiet;
mod recalibration;
pub mod registry;
mod rotation;
pub mod share;
pub mod source;
pub mod split;
pub mod synthetic;
mod train_test;
mod units;

pub use card::{ModelCard, NumberedColumns};
pub use columns::{Encoding, Reading};
pub use dataset::{Dataset, Targets};
pub use equal_rows::note as note_on_equal_rows;
pub use error::DataError;
pub use exact_sum::ExactSum;
pub use fetch::{Progress, fetch};
pub use format::csv::Task;
pub use format::header::Header;
pub use format::new_rows::{
    AskedColumn, Beside, MissingAnswer, NewRows, NewRowsOptions, RowsOfClient, read_features, read_new_rows,
};
pub use format::survey::{Survey, SurveyColumn, survey};
pub use normalize::{ColumnScale, FeatureScale, Normalisation, TargetScale};
pub use partition::{Cut, PARTITION_KINDS, Partition, PartitionConfig, PartitionScheme, SchemeProperties, partition};
pub use positive::{is_without_event, make_second, note_on_event};
pub use prepare::Normalise;
pub use properties::{DataProperties, TargetKind};
#[doc(hidden)]
pub use quiet::quietly;
pub use recalibration::{KeptSets, KeptVector, Recalibration};
pub use registry::{FileStatus, sets, status};
pub use rotation::{Rotation, SecondMoment, features_together};
pub use source::{
    DATA_KINDS, DataConfig, DataFile, DataSet, Origin, RaetschSet, RaetschSplit, UciSet, delimiter, load,
};
pub use train_test::TrainTest;
pub use units::{count as unit_count, note as note_on_groups, note_on_shared as note_on_shared_groups};
