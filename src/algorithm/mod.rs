//! Federated algorithms: each a server half and a client half that exchange messages.
//!
//! To add one: a file here that holds its equations, its configuration with its keys, what it can do, its halves and
//! its tests; a line among the modules and a line in the list below. Dispatch, the keys of `[algorithm]`, the reference
//! in docs/configuration.md and the lists that the tests run over follow. A crate that depends on this one implements
//! [`Algorithm`] and hands it to [`Experiment::with_algorithm`](crate::experiment::Experiment::with_algorithm).

pub mod dsgld;
pub mod dsvgd;
pub mod fedadam;
pub mod fedavg;
pub mod fedper;
pub mod fedprox;
pub mod fedsgd;
pub mod fedwba;
pub mod gaussian;
pub mod gvi;
pub mod keys;
mod kind;
pub mod langevin;
mod layers;
mod lbfgs;
pub mod local;
pub mod local_svgd;
pub mod mean_field;
pub mod newton;
pub mod npv;
pub mod p_dsvgd;
pub mod per_fedavg;
pub mod pfedbayes;
pub mod pfedgp;
pub mod pfedme;
pub mod pfedvem;
pub mod pmd;
pub mod pvi;
mod relay;
pub mod scaffold;
pub mod sgld;
mod split;
pub mod svgd;
pub mod u_dsvgd;
mod uploaded;

use std::ops::Deref;

use fedstein_schema::Kind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use crate::error::RunError;
use crate::protocol::{Halves, Setup};

pub use kind::{Algorithm, Capabilities, Replies, UnusedKeys, VisitCost};

/// The list of algorithms: the enum of their configurations, their kinds, and the way from a configuration to its algorithm.
macro_rules! algorithms {
    ($($variant:ident($config:ty)),+ $(,)?) => {
        /// `[algorithm]`: one of the algorithms that a config can name, tagged by `kind`.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AlgorithmConfig {
            $(
                #[doc = concat!("The keys of `", stringify!($config), "`, documented in its own file.")]
                $variant($config),
            )+
            /// An algorithm from outside this crate.
            Own(OwnConfig),
        }

        /// The kinds of `[algorithm]` with their keys, in the order of [`AlgorithmConfig`].
        pub const ALGORITHM_KINDS: &[Kind] = &[$(<$config>::KIND),+];

        /// The capabilities of the kinds of `[algorithm]`, in the same order.
        pub const ALGORITHM_CAPABILITIES: &[Capabilities] = &[$(<$config>::CAPABILITIES),+];

        impl<'de> Deserialize<'de> for AlgorithmConfig {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let (kind, keys) = fedstein_schema::untag::<D>(deserializer)?;
                $(if kind == <$config>::KIND.name {
                    return keys.try_into().map(Self::$variant).map_err(D::Error::custom);
                })+
                Ok(Self::Own(OwnConfig { kind, keys }))
            }
        }

        impl Serialize for AlgorithmConfig {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(keys) => {
                        fedstein_schema::Tagged { kind: <$config>::KIND.name, keys }.serialize(serializer)
                    })+
                    Self::Own(OwnConfig { kind, keys }) => fedstein_schema::Tagged { kind, keys }.serialize(serializer),
                }
            }
        }

        /// The methods are those of the algorithm that is configured.
        impl Deref for AlgorithmConfig {
            type Target = dyn Algorithm;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$variant(config) => config,)+
                    Self::Own(config) => config,
                }
            }
        }
    };
}

algorithms! {
    Dsvgd(dsvgd::DsvgdConfig),
    NewtonDsvgd(newton::NewtonConfig),
    UDsvgd(u_dsvgd::UDsvgdConfig),
    PDsvgd(p_dsvgd::PDsvgdConfig),
    Svgd(svgd::SvgdConfig),
    LocalSvgd(local_svgd::LocalSvgdConfig),
    Sgld(sgld::SgldConfig),
    Dsgld(dsgld::DsgldConfig),
    Pvi(pvi::PviConfig),
    Gvi(gvi::GviConfig),
    Pmd(pmd::PmdConfig),
    Npv(npv::NpvConfig),
    Fedavg(fedavg::FedAvgConfig),
    Fedadam(fedadam::FedAdamConfig),
    Fedsgd(fedsgd::FedSgdConfig),
    Fedwba(fedwba::FedWbaConfig),
    Fedprox(fedprox::FedProxConfig),
    Scaffold(scaffold::ScaffoldConfig),
    Fedper(fedper::FedPerConfig),
    PerFedavg(per_fedavg::PerFedAvgConfig),
    Pfedme(pfedme::PFedMeConfig),
    Pfedbayes(pfedbayes::PFedBayesConfig),
    Pfedvem(pfedvem::PFedVemConfig),
    Pfedgp(pfedgp::PFedGpConfig),
}

/// `[algorithm]` of an algorithm from outside this crate; see
/// [`ConfigLoader::with_algorithm`](crate::experiment::ConfigLoader::with_algorithm).
#[derive(Clone, Debug, PartialEq)]
pub struct OwnConfig {
    /// The value of `kind`.
    pub kind: String,
    /// The other keys, which have been checked.
    pub keys: Table,
}

impl AlgorithmConfig {
    /// The value of `kind`.
    pub fn name(&self) -> &str {
        match self {
            Self::Own(own) => &own.kind,
            _ => self.kind().name,
        }
    }
}

/// What is known of an algorithm before the program hands it over.
impl Algorithm for OwnConfig {
    fn kind(&self) -> Kind {
        Kind { name: "", about: "An algorithm from outside this crate.", keys: &[] }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::FEDERATED
    }

    fn one_hot_advice(&self) -> &'static str {
        ""
    }

    fn build(&self, _: Setup) -> Result<Halves, RunError> {
        Err(RunError::Config(format!(
            "algorithm kind `{}` comes from outside this crate; hand it over with `Experiment::with_algorithm`",
            self.kind
        )))
    }
}

/// The names of the kinds of `[algorithm]` whose capabilities are such, in their order.
pub fn kinds_that(can: impl Fn(&Capabilities) -> bool) -> Vec<&'static str> {
    let kinds = ALGORITHM_KINDS.iter().zip(ALGORITHM_CAPABILITIES);
    kinds.filter(|(_, capabilities)| can(capabilities)).map(|(kind, _)| kind.name).collect()
}

/// The names of the server's numbers that are columns of `rounds.csv`, over all algorithms and without repetition.
pub fn columns() -> Vec<&'static str> {
    let mut columns = Vec::new();
    for column in ALGORITHM_CAPABILITIES.iter().flat_map(|capabilities| capabilities.columns) {
        if !columns.contains(column) {
            columns.push(*column);
        }
    }
    columns
}
