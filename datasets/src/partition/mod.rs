//! Which client holds which rows. In: a [`PartitionConfig`], the training rows, a random source. Out: a [`Partition`], a
//! disjoint cover of the training rows: every row belongs to exactly one client, and no client is empty
//! (`fedwba-reference` alone assigns the same rows to many). A share of each client's rows can be held out for its own
//! validation, and [`Partition::with_tests`] names the test rows on which each client's own model is judged.
//!
//! A partition scheme is one file: its config struct, its keys, its rule. A new one is such a file, its `mod` line and its
//! line in the list `schemes!`.

mod by_column;
mod classes;
mod cyclic_labels;
mod dirichlet;
mod fedwba_reference;
mod holders;
mod iid;
mod label_ratio;
mod labels_per_client;
mod pfedgp;
mod rows;
mod superclass_labels;
mod table;
mod test_rows;
mod validation;

use crate::{DataError, Dataset};
use fedstein_schema::Literal::{Float, Int};
use fedstein_schema::{Accepts, COUNT, Interval, Key, Kind, key};
use rand::Rng;
use serde::{Deserialize, Serialize};
use test_rows::TestRows;

pub use labels_per_client::Cut;
pub use rows::Partition;

/// Which rows are whose (ALGORITHMS.md section 1.6). No key has a default here: the caller writes all of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PartitionConfig {
    /// How the training rows are assigned to clients.
    #[serde(flatten)]
    pub scheme: PartitionScheme,
    /// Share of each client's rows that is held out from its training, at least 0 and less than 1. One row stays for
    /// training, however large the share.
    pub validation: f64,
}

/// `validation`, the last key of every kind.
const VALIDATION: Key = key(
    "validation",
    Accepts::Float(Interval::DECAY),
    Float(0.0),
    "Share of each client's rows, label by label, that is held out from its training; 0: none.",
);

/// `clients`
const CLIENTS: Key = key("clients", COUNT, Int(10), "Number of clients K.");

/// `labels`
const LABELS: Key = key("labels", COUNT, Int(3), "Number of distinct labels per client.");

/// What a partition scheme needs of the data, and what can be said of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeProperties {
    /// Whether it assigns rows by their class, so that the targets must be classes.
    pub by_class: bool,
    /// Whether its clients are those that the data come with.
    pub natural_clients: bool,
    /// Whether the classes must belong to superclasses.
    pub superclasses: bool,
    /// Whether no two clients hold the same row.
    pub disjoint: bool,
}

impl SchemeProperties {
    /// Any rows in disjoint shares.
    const PLAIN: Self = Self { by_class: false, natural_clients: false, superclasses: false, disjoint: true };
    /// Rows of classes in disjoint shares.
    const BY_CLASS: Self = Self { by_class: true, ..Self::PLAIN };
}

/// How rows are assigned to clients (ALGORITHMS.md section 1.6).
pub(crate) trait Scheme {
    /// Its word after `kind =` and its config keys, in the order of a resolved config.
    const KIND: Kind;
    /// What it needs of the data.
    const PROPERTIES: SchemeProperties;
    /// Which test rows are whose.
    const TEST_ROWS: TestRows;

    /// Number of clients asked for, `None` where the data decide.
    fn clients(&self) -> Option<usize>;

    /// Assigns the training rows; `clients` is at least 1 and at most the number of rows where the shares are disjoint.
    ///
    /// # Errors
    /// Targets that the scheme cannot work with, parameters out of range.
    fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError>;
}

/// Makes known the partition schemes of a list: each with its word after `kind =`, its module and its config struct.
macro_rules! schemes {
    ($($word:literal => $module:ident::$variant:ident),+ $(,)?) => {
        $(pub use $module::$variant;)+

        /// How rows are assigned to clients (ALGORITHMS.md section 1.6).
        #[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
        #[serde(tag = "kind")]
        pub enum PartitionScheme {
            $(
                #[doc = concat!("`", $word, "`")]
                #[serde(rename = $word)]
                $variant($variant),
            )+
        }

        $(
            impl From<$variant> for PartitionScheme {
                fn from(scheme: $variant) -> Self {
                    Self::$variant(scheme)
                }
            }

            impl From<$variant> for PartitionConfig {
                /// Nothing is held out for validation.
                fn from(scheme: $variant) -> Self {
                    PartitionScheme::$variant(scheme).into()
                }
            }
        )+

        /// What `kind` may name in `[partition]`, with the keys of each.
        pub const PARTITION_KINDS: &[Kind] = &[$(<$variant as Scheme>::KIND),+];

        impl PartitionScheme {
            /// The word after `kind =`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$variant as Scheme>::KIND.name),+ }
            }

            /// What it needs of the data.
            pub fn properties(&self) -> SchemeProperties {
                match self { $(Self::$variant(_) => <$variant as Scheme>::PROPERTIES),+ }
            }

            /// Number of clients asked for, `None` where the data decide.
            pub fn clients(&self) -> Option<usize> {
                match self { $(Self::$variant(scheme) => scheme.clients()),+ }
            }

            fn test_rows(&self) -> TestRows {
                match self { $(Self::$variant(_) => <$variant as Scheme>::TEST_ROWS),+ }
            }

            fn assign(&self, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
                match self { $(Self::$variant(scheme) => scheme.assign(train, rng)),+ }
            }
        }
    };
}

schemes! {
    "iid" => iid::Iid,
    "labels-per-client" => labels_per_client::LabelsPerClient,
    "superclass-labels" => superclass_labels::SuperclassLabels,
    "pfedgp" => pfedgp::Pfedgp,
    "fedwba-reference" => fedwba_reference::FedwbaReference,
    "cyclic-labels" => cyclic_labels::CyclicLabels,
    "label-ratio" => label_ratio::LabelRatio,
    "dirichlet" => dirichlet::Dirichlet,
    "by-column" => by_column::ByColumn,
}

impl From<PartitionScheme> for PartitionConfig {
    /// Nothing is held out for validation.
    fn from(scheme: PartitionScheme) -> Self {
        PartitionConfig { scheme, validation: 0.0 }
    }
}

/// Assigns the training rows to clients, and holds out what is asked for validation. The rows of a client, training and
/// validation together, are the same with and without validation.
///
/// # Errors
/// No clients, more clients than rows, targets that the kind cannot work with (all but `iid` and `by-column` need
/// classes), parameters out of range.
pub fn partition(config: &PartitionConfig, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
    let scheme = &config.scheme;
    if let Some(clients) = scheme.clients() {
        let rows = train.rows();
        if clients == 0 {
            return Err(DataError::config("partition.clients", clients, "must be at least 1"));
        }
        // Where clients share rows, there are enough for all of them.
        if clients > rows && scheme.properties().disjoint {
            return Err(DataError::TooManyClients { clients, rows });
        }
    }
    validation::hold_out(scheme.assign(train, rng)?, config.validation, &train.targets, rng)
}

impl Partition {
    /// Names the test rows of each client, and says in a note which clients have none.
    ///
    /// - `labels-per-client`, `cyclic-labels`, `superclass-labels`, `fedwba-reference`: all test rows of the classes of
    ///   which the client holds rows; clients with the same class share them.
    /// - `pfedgp`: the test rows of a class in the shares of its training rows, disjoint.
    /// - `dirichlet`, `label-ratio`: a sample of the test rows, as large as can be, whose mix of classes is the client's.
    ///   Clients' samples overlap.
    /// - `by-column`: the test rows of the same natural client.
    /// - `iid`: all test rows.
    ///
    /// The rows are numbers within `test`, those of training and validation within `train`: no row is in both, since the
    /// sets are separate (of two files that hold equal rows nothing is known).
    ///
    /// # Arguments
    /// - `config`, `train`: those of [`partition`].
    ///
    /// # Errors
    /// Test rows with other classes than the training rows, or without the clients that the training rows have.
    pub fn with_tests(
        mut self,
        config: &PartitionConfig,
        train: &Dataset,
        test: &Dataset,
        rng: &mut impl Rng,
    ) -> Result<Partition, DataError> {
        let scheme = &config.scheme;
        let (tests, notes) = test_rows::of_clients(scheme.test_rows(), scheme.kind(), &self, train, test, rng)?;
        self.tests = tests;
        self.notes.extend(notes);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::{Table, Value};

    #[test]
    fn each_kind_reads_exactly_its_keys() {
        for kind in PARTITION_KINDS {
            let mut table = Table::from_iter([("kind".to_owned(), Value::from(kind.name))]);
            for key in kind.keys {
                let value = key.default.unwrap().to_value();
                assert_eq!(key.accepts.check(&value).as_ref(), Ok(&value), "{} {}", kind.name, key.name);
                table.insert(key.name.to_owned(), value);
            }
            let config: PartitionConfig = table.clone().try_into().unwrap();
            assert_eq!(Table::try_from(&config).unwrap(), table, "{}", kind.name);
            assert_eq!(config.scheme.kind(), kind.name);
            assert_eq!(config.scheme.clients().is_none(), config.scheme.properties().natural_clients);
            for key in kind.keys {
                let mut without = table.clone();
                without.remove(key.name);
                assert!(without.try_into::<PartitionConfig>().is_err(), "{}: `{}` is not read", kind.name, key.name);
            }
        }
    }
}
