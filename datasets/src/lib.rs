//! Data for federated learning, without a tensor library: bytes become rows, rows are split into train and test,
//! scaled by what the training rows say, and dealt to clients. Arrays are `ndarray`'s, on the host.
//!
//! ```
//! use fedstein_datasets::{Cut, DataConfig, Deal, Normalise, PartitionConfig, load, partition};
//! use rand::{SeedableRng, rngs::ChaCha8Rng};
//!
//! # fn main() -> Result<(), fedstein_datasets::DataError> {
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let config = DataConfig::Digits {
//!     classes: vec![], // all
//!     normalise: Normalise::Auto,
//!     test_fraction: 0.2,
//!     train_limit: 0,
//!     test_limit: 0,
//! };
//! let data = load(&config, "data".as_ref(), &mut rng)?; // digits are embedded: no file is read
//! assert_eq!((data.train.rows(), data.test.rows(), data.train.width()), (1438, 359, 64));
//!
//! let config = PartitionConfig { deal: Deal::LabelsPerClient { clients: 10, labels: 5, cut: Cut::Equal }, validation: 0.1 };
//! let shards = partition(&config, &data.train, &mut rng)?.with_tests(&config, &data.train, &data.test, &mut rng)?;
//! println!("{}", shards.table(&data.train.targets));
//! # Ok(())
//! # }
//! ```
//!
//! All randomness comes from the generator that the caller passes in: the same seed gives the same rows in the same
//! order. Nothing here reads the clock, the environment or, [`fetch()`] apart, the network.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod dataset;
mod error;
pub mod fetch;
pub mod format;
pub mod load;
pub mod normalize;
pub mod partition;
pub mod registry;
mod source;
pub mod split;
pub mod synthetic;

pub use dataset::{Dataset, Targets};
pub use error::DataError;
pub use fetch::{Progress, fetch};
pub use format::csv::{Header, Task, read_features};
pub use load::{DataConfig, Normalise, TrainTest, load};
pub use normalize::{FeatureScale, Normalisation, TargetScale};
pub use partition::{Cut, Deal, Partition, PartitionConfig, partition};
pub use registry::{DataFile, DataSet, FileStatus, Origin, sets, status};
pub use source::delimiter;
pub use source::raetsch::{RaetschSet, RaetschSplit};
pub use source::uci_regression::UciSet;
