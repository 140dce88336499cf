//! The assignment of rows to clients: a [`PartitionConfig`], the training rows and a random generator in, a
//! [`Partition`] out. It is a disjoint cover of the training rows: every row belongs to exactly one client, and no
//! client is empty (only `fedwba-reference` assigns the same rows to several clients). A share of each client's rows
//! can be held out for its own validation, another one for calibration, and [`Partition::with_tests`] selects the test
//! rows on which each client's own model is evaluated.
//!
//! A partition scheme is one file with its config struct, its keys and its rule. A new scheme needs its file, a `mod`
//! line and a line in the list `schemes!`.

mod by_column;
mod calibration;
mod classes;
mod cyclic_labels;
mod dirichlet;
mod fedwba_reference;
mod holders;
mod iid;
mod kind;
mod label_ratio;
mod labels_per_client;
mod pfedgp;
mod rows;
mod superclass_labels;
mod table;
mod test_rows;
mod validation;

use crate::{DataError, Dataset, units};
use fedstein_schema::Kind;
use kind::Scheme;
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use test_rows::TestRows;

pub use kind::SchemeProperties;
pub use labels_per_client::Cut;
pub use rows::Partition;

/// The configuration of a partition. No key has a default here: the caller sets all of them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PartitionConfig {
    /// The scheme by which training rows are assigned to clients.
    #[serde(flatten)]
    pub scheme: PartitionScheme,
    /// The share of each client's rows that is held out from its training, at least 0 and less than 1. At least one row
    /// remains for training.
    pub validation: f64,
    /// The share of each client's rows that is held out from its training for calibration, beside those for validation.
    pub calibration: f64,
}

/// Declares the partition schemes of a list: each with its value of `kind`, its module and its config struct.
macro_rules! schemes {
    ($($word:literal => $module:ident::$variant:ident),+ $(,)?) => {
        $(pub use $module::$variant;)+

        /// The scheme by which rows are assigned to clients.
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
                /// A partition without validation and calibration rows.
                fn from(scheme: $variant) -> Self {
                    PartitionScheme::$variant(scheme).into()
                }
            }
        )+

        /// The values of `kind` in `[partition]`, with the keys of each.
        pub const PARTITION_KINDS: &[Kind] = &[$(<$variant as Scheme>::KIND),+];

        impl PartitionScheme {
            /// The value of `kind`.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$variant as Scheme>::KIND.name),+ }
            }

            /// The requirements of the scheme.
            pub fn properties(&self) -> SchemeProperties {
                match self { $(Self::$variant(_) => <$variant as Scheme>::PROPERTIES),+ }
            }

            /// The configured number of clients; `None` where it depends on the data.
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
    /// A partition without validation and calibration rows.
    fn from(scheme: PartitionScheme) -> Self {
        PartitionConfig { scheme, validation: 0.0, calibration: 0.0 }
    }
}

/// Assigns the training rows to clients, and holds out the configured shares for validation and calibration. The rows of
/// a client, all three together, are the same with any shares, and its validation rows are the same with and without
/// calibration.
///
/// # Errors
/// There are no clients or more clients than rows, or groups; the kind cannot use these targets (all but `iid` and
/// `by-column` need classes), or separates the rows of a group (the same kinds), or a parameter is out of range.
pub fn partition(config: &PartitionConfig, train: &Dataset, rng: &mut impl Rng) -> Result<Partition, DataError> {
    let scheme = &config.scheme;
    if train.groups.is_some() && scheme.properties().by_class {
        let problem =
            "assigns rows by their class, and would separate the rows of a group; use `iid` or `by-column`".to_owned();
        return Err(DataError::Partition { kind: scheme.kind(), problem });
    }
    if let Some(clients) = scheme.clients() {
        if clients == 0 {
            return Err(DataError::config("partition.clients", clients, "must be at least 1"));
        }
        // If clients share rows, there may be more clients than rows.
        let most = units::count(train);
        if clients > most && scheme.properties().disjoint {
            if train.groups.is_none() {
                return Err(DataError::TooManyClients { clients, rows: most });
            }
            let problem = format!("must be at most {most}, the number of groups of the training rows");
            return Err(DataError::config("partition.clients", clients, problem));
        }
    }
    let mut partition = scheme.assign(train, rng)?;
    if config.validation > 0.0 || config.calibration > 0.0 {
        partition.notes.extend(shared_groups(train, &partition.clients));
    }
    let partition = validation::hold_out(partition, config.validation, train, rng)?;
    calibration::hold_out(partition, (config.calibration, config.validation), train, rng)
}

/// A note on the groups whose rows belong to several clients, each of which holds out rows on its own.
fn shared_groups(train: &Dataset, clients: &[Vec<usize>]) -> Option<String> {
    let groups = train.groups.as_ref()?;
    let mut client_of = BTreeMap::new();
    let of_rows = clients.iter().zip(0..).flat_map(|(rows, client)| rows.iter().map(move |&row| (groups[row], client)));
    let crossing = of_rows.filter(|&(group, client)| *client_of.entry(group).or_insert(client) != client);
    let shared = crossing.map(|(group, _)| group).collect::<BTreeSet<_>>().len();
    (shared > 0).then(|| {
        format!(
            "{shared} of {} groups have rows at several clients, each of which holds out rows on its own: rows of these \
             groups can be training rows of one client and held out by another",
            client_of.len()
        )
    })
}

impl Partition {
    /// Selects the test rows of each client. A note lists the clients without test rows.
    ///
    /// - `labels-per-client`, `cyclic-labels`, `superclass-labels`, `fedwba-reference`: all test rows of the classes of
    ///   which the client holds rows; clients with the same class share them.
    /// - `pfedgp`: the test rows of a class in the shares of its training rows, disjoint.
    /// - `dirichlet`, `label-ratio`: the largest sample of the test rows with the client's proportions of classes. The
    ///   samples of clients overlap.
    /// - `by-column`: the test rows of the same natural client.
    /// - `iid`: all test rows.
    ///
    /// The rows are indices into `test`, those of training, validation and calibration indices into `train`. The two sets are
    /// separate; equal rows in both of them are not detected.
    ///
    /// # Arguments
    /// - `config`, `train`: those of [`partition`].
    ///
    /// # Errors
    /// The test rows have other classes than the training rows, or no clients although the training rows have them.
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
