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

use std::fmt;

use fedstein_schema::Kind;
pub use fedstein_schema::UnusedKeys;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use crate::backend::Backend;
use crate::density::KdeBandwidth;
use crate::error::RunError;
use crate::protocol::{Halves, Setup};

/// A federated algorithm: its configuration, what it can do, and how its two halves are built.
pub trait Algorithm: Clone + fmt::Debug + Send + Sync {
    /// The value of `kind`, a sentence that describes the algorithm, and its keys.
    fn kind(&self) -> Kind;

    /// The capabilities and the requirements of the algorithm.
    fn capabilities(&self) -> Capabilities;

    /// The number of particles N; 1 for a method with one parameter vector.
    fn particles(&self) -> usize {
        1
    }

    /// The temperature α of its target; 1 for a method without a temperature.
    fn temperature(&self) -> f64 {
        1.0
    }

    /// The bandwidth λ of the kernel density estimate of its particles; `None` for a method without one.
    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        None
    }

    /// Checks the combinations of keys; each key by itself has been checked when the config was read.
    ///
    /// # Errors
    /// Two keys contradict each other; the message names both and the values that would be right.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// The number of clients in a round, out of `clients`; `None` for an algorithm that leaves it to the schedule.
    fn clients_per_round(&self, _clients: usize) -> Option<usize> {
        None
    }

    /// A sentence for the user: the effect of `algorithm.kde_bandwidth` where one centre has all the weight of a
    /// density.
    fn one_hot_advice(&self) -> &'static str {
        HELD
    }

    /// The cost of a visit to a client with so many training rows. A site refuses a run whose cost is beyond its `[limits]`,
    /// and one of a method that does not say it.
    fn visit_cost(&self, _rows: usize) -> VisitCost {
        VisitCost { steps: usize::MAX, draws: usize::MAX }
    }

    /// How many numbers a client keeps besides its rows and its particles, known before they are computed: a site refuses a run
    /// in which they are more than its `[limits]`.
    fn kept_numbers<B: Backend>(&self, _setup: &Setup<B>) -> usize {
        0
    }

    /// The keys that have no effect, because of what others say.
    fn unused_keys(&self) -> Vec<UnusedKeys> {
        Vec::new()
    }

    /// Builds the server half and the client halves.
    ///
    /// # Errors
    /// The algorithm cannot work on this model or with these clients.
    fn build<B: Backend>(&self, setup: Setup<B>) -> Result<Halves<B>, RunError>;
}

/// The largest cost of a visit to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitCost {
    /// The number of steps. Where a step has steps of its own, these count.
    pub steps: usize,
    /// The number of draws of all parameters that a step holds in memory; 0 for a method that draws none.
    pub draws: usize,
}

/// The capabilities and the requirements of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// All rows are in one place: there is one client with any partition.
    pub centralised: bool,
    /// Clients predict with parameters of their own.
    pub personal: bool,
    /// The published parameters have a part that no client trains, such as a head that each has for itself: their scores say
    /// nothing of the method.
    pub untrained_part: bool,
    /// The model's prior is a part of the target. The others have a prior of their own, or none.
    pub model_prior: bool,
    /// Clients have a tilted density, whose score the client selection can request.
    pub tilted: bool,
    /// The algorithm is defined for one client per round.
    pub one_client_per_round: bool,
    /// The algorithm itself sets the number of clients in a round; see [`Algorithm::clients_per_round`].
    pub chooses_clients: bool,
    /// The algorithm's formulas hold for plain gradient steps only.
    pub plain_gradient_steps: bool,
    /// Its steps are those of `[optimizer]`, with the step size of each round (`[lr_schedule]`).
    pub scheduled_steps: bool,
    /// Its clients train on the model's likelihood, in which rows may count differently (`data.class_weights`).
    pub weighted_rows: bool,
    /// Its particles interact through matrices `[N, N]`, such as that of `[kernel]`.
    pub pairs: bool,
    /// Messages hold natural parameters of Gaussians: their differences cancel, and rounded to 16 bits they need not be a
    /// density.
    pub natural_parameters: bool,
    /// The method needs the curvature of the clients' likelihoods ([`Model::row_curvature`]).
    ///
    /// [`Model::row_curvature`]: crate::models::Model::row_curvature
    pub curvature: bool,
    /// How the replies of a round relate to each other.
    pub replies: Replies,
    /// Why a reply must arrive as it was sent; `None` where the server may shorten its change.
    pub unclipped: Option<&'static str>,
    /// The arrays of a reply that hold changes, and not new values of the arrays sent under the same names.
    pub changes: &'static [&'static str],
    /// Those of them that are sums over the client's rows.
    pub row_sums: &'static [&'static str],
    /// The names of the server's numbers that are columns of `rounds.csv`.
    pub columns: &'static [&'static str],
}

impl Capabilities {
    /// A method whose clients update the arrays that they receive, and whose server averages their replies.
    pub const FEDERATED: Self = Self {
        centralised: false,
        personal: false,
        untrained_part: false,
        model_prior: false,
        tilted: false,
        one_client_per_round: false,
        chooses_clients: false,
        plain_gradient_steps: false,
        scheduled_steps: true,
        weighted_rows: true,
        pairs: true,
        natural_parameters: false,
        curvature: false,
        replies: Replies::Estimates,
        unclipped: None,
        changes: &[],
        row_sums: &[],
        columns: &[],
    };
}

impl Capabilities {
    /// A method with all rows in one place, whose target has the model's prior.
    pub const CENTRALISED: Self = Self { centralised: true, model_prior: true, ..Self::FEDERATED };
}

/// How the replies of a round relate to each other, which decides which robust rules are defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Estimates of one quantity, of which coordinate-wise medians and trimmed means are estimates too.
    Estimates,
    /// Estimates of one quantity, for which the algorithm's server has robust rules of its own.
    OwnRule,
    /// Not estimates of one quantity, for the reason given.
    Different(&'static str),
}

/// The effect of λ where one centre has all the weight of a density that represents the other clients.
const HELD: &str = "algorithm.kde_bandwidth then says how strongly Θ is held where other clients moved it; a smaller one forgets less \
     and learns more slowly";
/// The reason why no robust rule is defined where one client's reply replaces Θ.
const REPLACES: &str = "one client a round replaces the global particles";
/// The reason why no robust rule is defined where every client sends its factor.
const ONE_FACTOR_EACH: &str = "every reply is the factor of other rows, and the server multiplies them";

/// The list of algorithms: the enum of their configurations, their kinds, and the dispatch.
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

        /// Evaluates the same expression for the configuration of every kind.
        macro_rules! with_config {
            ($algorithm:expr, $name:ident => $value:expr) => {
                match $algorithm {
                    $(AlgorithmConfig::$variant($name) => $value,)+
                    AlgorithmConfig::Own($name) => $value,
                }
            };
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

// Every method of the trait is here, those with a default too.
impl Algorithm for AlgorithmConfig {
    fn kind(&self) -> Kind {
        with_config!(self, config => config.kind())
    }

    fn capabilities(&self) -> Capabilities {
        with_config!(self, config => config.capabilities())
    }

    fn particles(&self) -> usize {
        with_config!(self, config => config.particles())
    }

    fn temperature(&self) -> f64 {
        with_config!(self, config => config.temperature())
    }

    fn kde_bandwidth(&self) -> Option<KdeBandwidth> {
        with_config!(self, config => config.kde_bandwidth())
    }

    fn check(&self) -> Result<(), String> {
        with_config!(self, config => config.check())
    }

    fn clients_per_round(&self, clients: usize) -> Option<usize> {
        with_config!(self, config => config.clients_per_round(clients))
    }

    fn one_hot_advice(&self) -> &'static str {
        with_config!(self, config => config.one_hot_advice())
    }

    fn visit_cost(&self, rows: usize) -> VisitCost {
        with_config!(self, config => config.visit_cost(rows))
    }

    fn kept_numbers<B: Backend>(&self, setup: &Setup<B>) -> usize {
        with_config!(self, config => config.kept_numbers(setup))
    }

    fn unused_keys(&self) -> Vec<UnusedKeys> {
        with_config!(self, config => config.unused_keys())
    }

    fn build<B: Backend>(&self, setup: Setup<B>) -> Result<Halves<B>, RunError> {
        with_config!(self, config => config.build(setup))
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

    fn build<B: Backend>(&self, _: Setup<B>) -> Result<Halves<B>, RunError> {
        Err(RunError::Config(format!(
            "algorithm kind `{}` comes from outside this crate; hand it over with `Experiment::with_algorithm`",
            self.kind
        )))
    }
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
