//! A resolved table of keys in, the typed experiment out; [`Config::check`] finds what is wrong only in combination.
//!
//! What each key means stands in the table of keys (`schema`, `docs/configuration.md`); the fields here bear the same names.

mod algorithm;

use serde::{Deserialize, Serialize};
use toml::Table;

pub use algorithm::*;

use crate::algorithm::dsvgd::Factors;
use crate::backend::Precision;
use crate::density::KdeMode;
use crate::federation::faults::Fault;
use crate::models::{Activation, LayerSpec, MixturePrior, WeightInit};
use crate::protocol::RequestKind;
use crate::rows::Rows;
use crate::statistics::trimmed;
use crate::stein::{AccumulatorStart, EpsilonPlace, Gradient, MedianOfEven};

use super::schema::{self, ConfigError, Overrides, Resolved, Source};

/// An experiment: what a config file says once every default is written out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Config {
    pub name: String,
    pub preset: Preset,
    pub seed: u64,
    pub rounds: usize,
    /// One of [`schema::BACKENDS`].
    pub backend: String,
    pub precision: Precision,
    /// For the crate `fedstein-datasets`, which has its own types; tagged by `kind`.
    pub data: Table,
    /// Likewise.
    pub partition: Table,
    pub model: ModelConfig,
    pub algorithm: AlgorithmConfig,
    pub kernel: KernelConfig,
    pub optimizer: OptimizerConfig,
    pub schedule: ScheduleConfig,
    pub federation: FederationConfig,
    pub faults: FaultsConfig,
    pub evaluation: EvaluationConfig,
    pub checkpoint: CheckpointConfig,
}

/// Declares enums of unit variants that are read and written in kebab case.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }
    )+};
}

words! {
    /// Which set of defaults was used.
    Preset {
        /// Sound methods.
        Sound,
        /// The papers' text.
        Paper,
        /// The papers' public code.
        Reference,
    }
    /// Predictive probability of logistic regression.
    Predictive {
        /// Mean over particles.
        Mean,
        /// Mean over Gaussians around the particles.
        Probit,
    }
    /// How a network's prior precision comes about, where it is no number.
    PrecisionRule {
        /// As a coordinate of every particle.
        Learned,
    }
    /// Rule for the standard deviation of the density's kernel.
    KdeRule {
        /// Median heuristic on the centres.
        Median,
        /// Scott's.
        Scott,
    }
    /// Rule for the share of its change that a factor takes.
    FactorDampingRule {
        /// One over the number of clients in the round.
        ByClients,
    }
    /// Rule for the bandwidth of Stein's kernel.
    BandwidthRule {
        /// median of all r² / log(N+1)
        Reference,
        /// (median of r over pairs)² / log N
        Paper,
        /// median of r² over pairs / log(N+1)
        Pyro,
        /// (median of all r)² / log N
        FullMatrix,
    }
    /// The density from which a toy's divergence is computed.
    SameKde {
        /// The density that the algorithm itself uses.
        Same,
    }
    /// Kernel in which clients are compared.
    SelectionKernel {
        /// exp(-r²/h)
        Rbf,
        /// (1 + r²/h)^(-1/2)
        Imq,
    }
    /// Rule for the standard deviation of that kernel.
    SelectionRule {
        /// Median heuristic: the kernel in which SVGD moves.
        Median,
    }
    /// What becomes of negative inner products.
    NegativePolicy {
        /// Cut to 0.
        Clip,
        /// All raised by the smallest.
        Shift,
        /// A softmax.
        Softmax,
    }
    /// Rule for the temperature of the softmax.
    SoftmaxRule {
        /// The standard deviation of the values.
        Sd,
    }
    /// What poisoned replies are kept from doing.
    RobustRule {
        /// Nothing.
        None,
        /// Moving far.
        NormClip,
        /// Moving the median.
        Median,
        /// Moving the mean of the middle ones.
        Trimmed,
    }
    /// When a client forgets its optimiser's averages.
    Reset {
        /// At the start of every loop of every visit.
        PerVisit,
        /// Never.
        Never,
    }
}

/// A positive number, or the rule that computes one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NumberOr<Rule> {
    /// This number.
    Fixed(f64),
    /// What this rule yields.
    Rule(Rule),
}

/// `[model]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ModelConfig {
    /// Bayesian network of dense layers.
    Bnn {
        hidden: Vec<usize>,
        activation: Activation,
        weight_precision: NumberOr<PrecisionRule>,
        gamma_shape: f64,
        gamma_rate: f64,
        init: WeightInit,
    },
    /// Bayesian network of convolutions, pools and dense layers.
    Stack {
        layers: Vec<String>,
        weight_precision: NumberOr<PrecisionRule>,
        gamma_shape: f64,
        gamma_rate: f64,
        init: WeightInit,
    },
    /// Bayesian logistic regression.
    Blr { gamma_shape: f64, gamma_rate: f64, bias: bool, predictive: Predictive, probit_lambda: f64 },
    /// The toy densities.
    Mixture { prior: MixturePrior },
}

impl ModelConfig {
    /// The word for it in a config.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Bnn { .. } => "bnn",
            Self::Stack { .. } => "stack",
            Self::Blr { .. } => "blr",
            Self::Mixture { .. } => "mixture",
        }
    }
}

/// `[kernel]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum KernelConfig {
    /// exp(-r²/h)
    Rbf(RadialConfig),
    /// (1 + r²/h)^exponent
    Imq {
        #[serde(flatten)]
        radial: RadialConfig,
        exponent: f64,
    },
    /// exp(-r/h)
    Laplacian(RadialConfig),
    /// (x·y + offset)^degree
    Polynomial { degree: u32, offset: f64, gradient: Gradient },
    /// tanh(slope x·y + offset)
    Sigmoid { slope: f64, offset: f64, gradient: Gradient },
    /// Three RBF.
    Mixture(RadialConfig),
}

/// Bandwidth of a kernel of the distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct RadialConfig {
    pub bandwidth: NumberOr<BandwidthRule>,
    pub median: MedianOfEven,
}

/// `[optimizer]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum OptimizerConfig {
    /// With a moving average of squares.
    Adagrad { lr: f64, epsilon: f64, momentum: f64, init: AccumulatorStart, epsilon_place: EpsilonPlace, reset: Reset },
    /// With their sum.
    AdagradSum { lr: f64, epsilon: f64, epsilon_place: EpsilonPlace, reset: Reset },
    /// RMSProp.
    Rmsprop { lr: f64, epsilon: f64, momentum: f64, reset: Reset },
    /// Adam.
    Adam { lr: f64, epsilon: f64, beta1: f64, beta2: f64, reset: Reset },
    /// Plain ascent.
    Sgd { lr: f64, reset: Reset },
}

/// `[schedule]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum ScheduleConfig {
    /// In turn, from client `first` modulo K.
    RoundRobin { first: usize, clients: usize },
    /// Drawn every round.
    Random { clients: usize },
    /// By the Stein discrepancy of each client.
    Ksd(InformedConfig),
    /// By the inner product of each client's direction with the mean one.
    Hip {
        #[serde(flatten)]
        informed: InformedConfig,
        negative: NegativePolicy,
        softmax_temperature: NumberOr<SoftmaxRule>,
    },
}

/// How clients are compared and drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct InformedConfig {
    pub clients: usize,
    pub kernel: SelectionKernel,
    /// Standard deviation: h = 2·bandwidth².
    pub bandwidth: NumberOr<SelectionRule>,
    pub rows: Rows,
    pub floor: f64,
}

impl ScheduleConfig {
    /// Clients a round.
    pub fn clients(&self) -> usize {
        match self {
            Self::RoundRobin { clients, .. } | Self::Random { clients } => *clients,
            Self::Ksd(informed) | Self::Hip { informed, .. } => informed.clients,
        }
    }

    /// The word for it in a config.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RoundRobin { .. } => "round-robin",
            Self::Random { .. } => "random",
            Self::Ksd(_) => "ksd",
            Self::Hip { .. } => "hip",
        }
    }
}

/// `[federation]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FederationConfig {
    /// 0: none.
    pub deadline: f64,
    pub min_replies: usize,
    pub repeats: usize,
    pub backoff: usize,
    pub robust: RobustRule,
    pub robust_clip: f64,
    pub robust_trim: f64,
    pub outlier_scores: bool,
}

/// `[faults]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FaultsConfig {
    /// Words of [`Fault`].
    pub kinds: Vec<String>,
    /// Words of [`RequestKind`].
    pub requests: Vec<String>,
    pub share: f64,
    pub probability: f64,
    pub factor: f64,
    pub delay: f64,
}

/// `[evaluation]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct EvaluationConfig {
    pub every: usize,
    pub bins: usize,
    pub chunk: usize,
    pub kde_bandwidth: NumberOr<SameKde>,
    pub discrepancy: bool,
    pub personal: bool,
}

/// `[checkpoint]`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct CheckpointConfig {
    pub enabled: bool,
    pub every_seconds: f64,
    pub keep: bool,
}

impl Config {
    /// Reads, merges and checks a config; also returns it as the table that goes to the run's `config.toml`.
    ///
    /// # Errors
    /// Whatever is wrong with the file or the overrides and can be seen without the data.
    pub fn load(source: Source<'_>, overrides: &Overrides) -> Result<(Self, Resolved), ConfigError> {
        let resolved = schema::resolve(source, overrides)?;
        let config = Self::from_resolved(&resolved)?;
        config.check()?;
        Ok((config, resolved))
    }

    /// The typed form of a resolved table.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the table of keys and these types disagree.
    pub fn from_resolved(resolved: &Resolved) -> Result<Self, ConfigError> {
        let config = resolved.table.clone().try_into();
        config.map_err(|error: toml::de::Error| ConfigError::Internal(error.to_string()))
    }

    /// `[data] kind`
    pub fn data_kind(&self) -> &str {
        word(&self.data, "kind")
    }

    /// `[partition] kind`
    pub fn partition_kind(&self) -> &str {
        word(&self.partition, "kind")
    }

    /// Finds keys that are right one by one and wrong together.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`], with both keys and what would be right.
    pub fn check(&self) -> Result<(), ConfigError> {
        let conflicts = [
            self.schedule_conflict(),
            self.model_conflict(),
            self.partition_conflict(),
            self.density_conflict(),
            self.optimizer_conflict(),
            self.federation_conflict(),
            self.faults_conflict(),
        ];
        match conflicts.into_iter().flatten().next() {
            Some(conflict) => Err(ConfigError::Conflict(conflict)),
            None => Ok(()),
        }
    }

    fn schedule_conflict(&self) -> Option<String> {
        let (scheduled, algorithm, schedule) = (self.schedule.clients(), self.algorithm.kind(), self.schedule.kind());
        if matches!(self.algorithm, AlgorithmConfig::Dsvgd(_) | AlgorithmConfig::UDsvgd(_)) && scheduled != 1 {
            return Some(format!(
                "algorithm kind `{algorithm}` moves one client a round, but `schedule.clients` is {scheduled}; it must be 1 \
                 (`p-dsvgd` moves several)"
            ));
        }
        let informed = matches!(self.schedule, ScheduleConfig::Ksd(_) | ScheduleConfig::Hip { .. });
        if informed && !self.algorithm.has_tilted_targets() {
            return Some(format!(
                "schedule kind `{schedule}` compares the clients' tilted densities, which algorithm kind `{algorithm}` does not \
                 have; use `dsvgd`, `u-dsvgd` or `p-dsvgd`, or schedule kind `round-robin` or `random`"
            ));
        }
        if self.evaluation.discrepancy && !self.algorithm.has_tilted_targets() {
            return Some(format!(
                "`evaluation.discrepancy` asks for the clients' tilted densities, which algorithm kind `{algorithm}` does not have"
            ));
        }
        let clients = self.partition.get("clients").and_then(toml::Value::as_integer);
        let clients = clients.and_then(|clients| usize::try_from(clients).ok())?;
        (scheduled > clients).then(|| {
            format!("`schedule.clients` is {scheduled}, but there are only `partition.clients` = {clients} clients")
        })
    }

    /// The public code's densities shrink to next to nothing: factors that rely on them for most of the prior lose it.
    fn density_conflict(&self) -> Option<String> {
        let (density, factors) = (self.algorithm.density()?, self.algorithm.factors()?);
        if density.kde == KdeMode::Off && matches!(self.algorithm, AlgorithmConfig::PDsvgd(_)) {
            return Some(
                "algorithm kind `p-dsvgd` learns through its clients' densities alone; `algorithm.kde` must be \"exact\"".into(),
            );
        }
        (density.kde == KdeMode::Reference && matches!(factors, Factors::SharedPrior | Factors::Growing)).then(|| {
            "`algorithm.kde` = \"reference\" reproduces the public code, whose factors hold the whole prior; it needs \
             `algorithm.factors` = \"with-prior\" (both come with `preset` = \"reference\")"
                .into()
        })
    }

    /// Step sizes that appear in an algorithm's own formulas must be those of the steps.
    fn optimizer_conflict(&self) -> Option<String> {
        let plain = matches!(self.optimizer, OptimizerConfig::Sgd { .. });
        (self.algorithm.needs_sgd() && !plain).then(|| {
            format!(
                "algorithm kind `{}` is defined by plain gradient steps; it needs optimizer kind `sgd`",
                self.algorithm.kind()
            )
        })
    }

    /// Medians of what has no median, of too few, or a quorum that no round has.
    fn federation_conflict(&self) -> Option<String> {
        let FederationConfig { min_replies, robust, robust_trim, .. } = self.federation;
        let (algorithm, scheduled) = (self.algorithm.kind(), self.schedule.clients());
        let one_place = self.algorithm().is_centralised();
        let own_choice = matches!(self.algorithm, AlgorithmConfig::Dsgld(_));
        if min_replies > scheduled && !one_place && !own_choice {
            return Some(format!(
                "`federation.min_replies` is {min_replies}, but a round has only `schedule.clients` = {scheduled} clients"
            ));
        }
        let word = match robust {
            RobustRule::None => return None,
            RobustRule::NormClip => "norm-clip",
            RobustRule::Median => "median",
            RobustRule::Trimmed => "trimmed",
        };
        if one_place {
            return Some(format!(
                "`federation.robust` = \"{word}\" protects a server from some of its clients, but algorithm kind `{algorithm}` has \
                 all rows in one place; it must be \"none\""
            ));
        }
        if robust == RobustRule::NormClip {
            return None;
        }
        let why = match self.algorithm {
            AlgorithmConfig::Dsvgd(_) | AlgorithmConfig::UDsvgd(_) => {
                "one client a round replaces the global particles"
            }
            AlgorithmConfig::PDsvgd(_) | AlgorithmConfig::Pvi(_) => {
                "every reply is the factor of other rows, and the server multiplies them"
            }
            AlgorithmConfig::Dsgld(_) => "every reply is other chains",
            _ if scheduled < 3 => {
                return Some(format!(
                    "`federation.robust` = \"{word}\" of {scheduled} replies is their mean; `schedule.clients` must be at least 3"
                ));
            }
            _ if robust == RobustRule::Trimmed && trimmed(robust_trim, scheduled) == 0 => {
                return Some(format!(
                    "`federation.robust_trim` = {robust_trim} of {scheduled} replies is not even one; it must be at least 1/`schedule.clients`"
                ));
            }
            _ => return None,
        };
        Some(format!(
            "`federation.robust` = \"{word}\" has no meaning with algorithm kind `{algorithm}`: {why}; use \"norm-clip\" or \"none\""
        ))
    }

    fn faults_conflict(&self) -> Option<String> {
        let FaultsConfig { kinds, requests, .. } = &self.faults;
        let unknown = unknown_word("faults.kinds", kinds, &Fault::ALL.map(Fault::word))
            .or_else(|| unknown_word("faults.requests", requests, &RequestKind::ALL.map(RequestKind::word)));
        if unknown.is_some() {
            return unknown;
        }
        let late = self.faults.kinds.iter().any(|word| word == Fault::Straggler.word());
        (late && self.federation.deadline == 0.0).then(|| {
            "`faults.kinds` has \"straggler\", but nothing is late without a `federation.deadline`; it must be greater than 0"
                .into()
        })
    }

    fn model_conflict(&self) -> Option<String> {
        let data = self.data_kind();
        let toy = data.starts_with("mixture-");
        match &self.model {
            ModelConfig::Mixture { .. } if !toy => Some(format!(
                "model kind `mixture` is the density of the data `mixture-1d` and `mixture-2d`; it cannot be fitted to `{data}`"
            )),
            ModelConfig::Mixture { .. } if self.evaluation.personal => Some(format!(
                "`evaluation.personal` scores predictions on test rows, but data kind `{data}` is a toy density without any"
            )),
            ModelConfig::Mixture { .. } if ["train_limit", "test_limit"].iter().any(|key| self.limits(key)) => {
                Some(format!(
                    "data kind `{data}` is two likelihoods, and its posterior is that of both; `data.train_limit` and \
                 `data.test_limit` must be 0"
                ))
            }
            ModelConfig::Bnn { .. } | ModelConfig::Stack { .. } | ModelConfig::Blr { .. } if toy => {
                Some(format!("data kind `{data}` is a toy density; it needs model kind `mixture`"))
            }
            ModelConfig::Blr { .. } if ["digits", "mnist", "fashion-mnist", "cifar10"].contains(&data) => Some(format!(
                "model kind `blr` tells two classes apart, but `{data}` has ten; model kind `bnn` takes any number"
            )),
            ModelConfig::Blr { .. } if data == "cifar100" => Some(
                "model kind `blr` tells two classes apart, but `cifar100` has a hundred; model kind `bnn` takes any number"
                    .into(),
            ),
            ModelConfig::Blr { .. } if self.is_regression() => {
                Some("model kind `blr` tells two classes apart; data task `regression` needs model kind `bnn`".into())
            }
            ModelConfig::Stack { layers, .. } => {
                LayerSpec::read(layers).err().map(|error| format!("`model.layers`: {error}"))
            }
            _ => None,
        }
    }

    fn partition_conflict(&self) -> Option<String> {
        match self.partition_kind() {
            "by-column"
                if word(&self.data, "client_column").is_empty()
                    && self.data_kind() != "vehicle"
                    && !self.data_kind().starts_with("mixture-") =>
            {
                Some(
                    "partition kind `by-column` needs data kind `vehicle`, or data kind `csv` with `data.client_column`, the \
                     column that tells whose row it is"
                        .into(),
                )
            }
            kind if self.is_regression() && !["iid", "by-column"].contains(&kind) => {
                Some(format!("partition kind `{kind}` deals by label, but data task `regression` has none; use `iid`"))
            }
            "superclass-labels" if self.data_kind() != "cifar100" => Some(format!(
                "partition kind `superclass-labels` needs data kind `cifar100`; `{}` has no superclasses, use `labels-per-client`",
                self.data_kind()
            )),
            _ => None,
        }
    }

    /// Whether `data.<key>` leaves rows out.
    fn limits(&self, key: &str) -> bool {
        self.data.get(key).and_then(toml::Value::as_integer).is_some_and(|limit| limit > 0)
    }

    fn is_regression(&self) -> bool {
        word(&self.data, "task") == "regression" || ["uci-regression", "year-prediction"].contains(&self.data_kind())
    }
}

/// A key that is text, `""` where there is none.
fn word<'a>(section: &'a Table, key: &str) -> &'a str {
    section.get(key).and_then(toml::Value::as_str).unwrap_or_default()
}

/// What to say of a list that has a word which is none of these.
fn unknown_word(key: &str, list: &[String], words: &[&'static str]) -> Option<String> {
    let word = list.iter().find(|word| !words.contains(&word.as_str()))?;
    let hint = schema::nearest(word, words.iter().copied());
    let hint = hint.map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
    Some(format!("`{key}` has \"{word}\"; it takes {}{hint}", schema::list(words)))
}
