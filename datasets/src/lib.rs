//! Data for federated learning, without a tensor library: bytes become rows, rows are split into train and test,
//! scaled by what the training rows say, and assigned to clients. Arrays are `ndarray`'s, on the host.
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
//! let config = PartitionConfig { scheme, validation: 0.1 };
//! let shards = partition(&config, &data.train, &mut rng)?.with_tests(&config, &data.train, &data.test, &mut rng)?;
//! println!("{}", shards.table(&data.train.targets));
//! # Ok(())
//! # }
//! ```
//!
//! Where rows come from is [`source`], which client holds which is [`partition`](mod@partition); one's own rows are
//! [`Dataset::new`] and [`TrainTest::from_rows`].
//!
//! All randomness comes from the generator that the caller passes in: the same seed gives the same rows in the same
//! order. Nothing here reads the clock, the environment or, [`fetch()`] apart, the network.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod dataset;
mod error;
pub mod fetch;
pub mod format;
pub mod normalize;
pub mod partition;
mod prepare;
mod properties;
pub mod registry;
mod rotation;
pub mod source;
pub mod split;
pub mod synthetic;
mod train_test;

pub use dataset::{Dataset, Targets};
pub use error::DataError;
pub use fetch::{Progress, fetch};
pub use format::csv::{Task, read_features};
pub use format::header::Header;
pub use normalize::{FeatureScale, Normalisation, TargetScale};
pub use partition::{Cut, PARTITION_KINDS, Partition, PartitionConfig, PartitionScheme, SchemeProperties, partition};
pub use prepare::Normalise;
pub use properties::{DataProperties, TargetKind};
pub use registry::{FileStatus, sets, status};
pub use rotation::Rotation;
pub use source::{
    DATA_KINDS, DataConfig, DataFile, DataSet, Origin, RaetschSet, RaetschSplit, UciSet, delimiter, load,
};
pub use train_test::TrainTest;
