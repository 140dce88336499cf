//! `[algorithm]`: one struct a kind, its fields named as its keys; docs/configuration.md says what they mean.

use serde::{Deserialize, Serialize};

use crate::algorithm::dsgld::{ChainShare, GradientScale};
use crate::algorithm::dsvgd::Factors;
use crate::algorithm::fedavg::Mix;
use crate::algorithm::fedwba::{Over, Start, Weights};
use crate::algorithm::gaussian::Family;
use crate::algorithm::langevin::Noise;
use crate::density::{KdeMode, LikelihoodScale};
use crate::ot::{Eq5, Iterate};
use crate::rows::Order;

use super::{FactorDampingRule, KdeRule, NumberOr};

/// `[algorithm]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AlgorithmConfig {
    /// Distributed SVGD.
    Dsvgd(DsvgdConfig),
    /// DSVGD with factors remembered exactly.
    UDsvgd(UDsvgdConfig),
    /// DSVGD of many clients at once.
    PDsvgd(PDsvgdConfig),
    /// SVGD in one place.
    Svgd(SvgdConfig),
    /// Langevin dynamics in one place.
    Sgld(SgldConfig),
    /// Langevin chains that travel.
    Dsgld(DsgldConfig),
    /// Partitioned variational inference.
    Pvi(GaussianConfig),
    /// Gaussian variational inference in one place.
    Gvi(GaussianConfig),
    /// Particle mirror descent in one place.
    Pmd(PmdConfig),
    /// Nonparametric variational inference in one place.
    Npv(NpvConfig),
    /// Federated averaging.
    Fedavg(FedavgConfig),
    /// Federated gradient steps.
    Fedsgd {},
    /// Particles and Wasserstein barycenters.
    Fedwba(FedwbaConfig),
    /// Averaging with a proximal term.
    Fedprox(FedproxConfig),
    /// Averaging with control variates.
    Scaffold(ScaffoldConfig),
    /// Averaging below a personal head.
    Fedper(FedperConfig),
    /// Averaging of a start from which a client adapts.
    PerFedavg(PerFedavgConfig),
    /// Personal parameters around a shared centre.
    Pfedme(PfedmeConfig),
    /// Personal Gaussians around a shared Gaussian.
    Pfedbayes(PfedbayesConfig),
    /// Gaussian heads on a shared base.
    Pfedvem(PfedvemConfig),
    /// Gaussian processes on a shared embedding.
    Pfedgp(PfedgpConfig),
}

/// The steps of a client and the rows they see: what most algorithms have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct LocalConfig {
    pub local_steps: usize,
    pub batch: usize,
    pub minibatch: Order,
    pub likelihood_scale: LikelihoodScale,
}

/// How particles become densities.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DensityConfig {
    pub kde: KdeMode,
    pub kde_bandwidth: NumberOr<KdeRule>,
    pub kde_damping: f64,
    /// 0: no clipping.
    pub kde_clip: f64,
}

/// `[algorithm] kind = "dsvgd"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DsvgdConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub distill_steps: usize,
    pub temperature: f64,
    #[serde(flatten)]
    pub density: DensityConfig,
    pub factors: Factors,
}

/// `[algorithm] kind = "u-dsvgd"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct UDsvgdConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
    #[serde(flatten)]
    pub density: DensityConfig,
}

/// `[algorithm] kind = "p-dsvgd"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PDsvgdConfig {
    #[serde(flatten)]
    pub client: DsvgdConfig,
    pub server_steps: usize,
    pub factor_damping: NumberOr<FactorDampingRule>,
}

/// `[algorithm] kind = "svgd"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SvgdConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
}

/// `[algorithm] kind = "sgld"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct SgldConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
    pub step_size: f64,
    pub step_power: f64,
    pub noise: Noise,
}

/// `[algorithm] kind = "dsgld"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DsgldConfig {
    #[serde(flatten)]
    pub chains_of: SgldConfig,
    pub gradient_scale: GradientScale,
    pub chains: ChainShare,
}

/// `[algorithm] kind = "pvi"` and `kind = "gvi"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct GaussianConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
    pub family: Family,
    pub damping: f64,
    pub samples: usize,
}

/// `[algorithm] kind = "pmd"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PmdConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
    pub kde_bandwidth: NumberOr<KdeRule>,
    pub max_step: f64,
    pub step_decay: f64,
}

/// `[algorithm] kind = "npv"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NpvConfig {
    pub particles: usize,
    pub local_steps: usize,
    pub temperature: f64,
}

/// `[algorithm] kind = "fedavg"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FedavgConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub mix: Mix,
}

/// `[algorithm] kind = "fedwba"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FedwbaConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub temperature: f64,
    #[serde(flatten)]
    pub density: DensityConfig,
    pub start: Start,
    pub over: Over,
    pub weights: Weights,
    pub iterate: Iterate,
    pub eq5: Eq5,
    pub shared_layers: Vec<usize>,
}

/// `[algorithm] kind = "fedprox"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FedproxConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub proximal: f64,
}

/// `[algorithm] kind = "scaffold"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ScaffoldConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub server_lr: f64,
}

/// `[algorithm] kind = "fedper"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FedperConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub personal_layers: usize,
}

/// `[algorithm] kind = "per-fedavg"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PerFedavgConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub inner_lr: f64,
}

/// `[algorithm] kind = "pfedme"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PfedmeConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub inner_steps: usize,
    pub inner_lr: f64,
    pub proximal: f64,
    pub server_mix: f64,
}

/// `[algorithm] kind = "pfedbayes"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PfedbayesConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub samples: usize,
    pub kl_weight: f64,
    pub initial_rho: f64,
    pub initial_sd: f64,
    pub noise_variance: f64,
    pub server_mix: f64,
}

/// `[algorithm] kind = "pfedvem"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PfedvemConfig {
    pub particles: usize,
    #[serde(flatten)]
    pub local: LocalConfig,
    pub personal_layers: usize,
    pub head_steps: usize,
    pub head_lr: f64,
    pub head_momentum: f64,
    pub samples: usize,
}

/// `[algorithm] kind = "pfedgp"`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PfedgpConfig {
    #[serde(flatten)]
    pub local: LocalConfig,
    pub personal_layers: usize,
    pub output_scale: f64,
    pub length_scale: f64,
    pub inference_steps: usize,
    pub inducing_rows: usize,
}

impl AlgorithmConfig {
    /// The word for it in a config.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dsvgd(_) => "dsvgd",
            Self::UDsvgd(_) => "u-dsvgd",
            Self::PDsvgd(_) => "p-dsvgd",
            Self::Svgd(_) => "svgd",
            Self::Sgld(_) => "sgld",
            Self::Dsgld(_) => "dsgld",
            Self::Pvi(_) => "pvi",
            Self::Gvi(_) => "gvi",
            Self::Pmd(_) => "pmd",
            Self::Npv(_) => "npv",
            Self::Fedavg(_) => "fedavg",
            Self::Fedsgd {} => "fedsgd",
            Self::Fedwba(_) => "fedwba",
            Self::Fedprox(_) => "fedprox",
            Self::Scaffold(_) => "scaffold",
            Self::Fedper(_) => "fedper",
            Self::PerFedavg(_) => "per-fedavg",
            Self::Pfedme(_) => "pfedme",
            Self::Pfedbayes(_) => "pfedbayes",
            Self::Pfedvem(_) => "pfedvem",
            Self::Pfedgp(_) => "pfedgp",
        }
    }

    /// Particles N; 1 for a method with one parameter vector.
    pub fn particles(&self) -> usize {
        match self {
            Self::Dsvgd(config) => config.particles,
            Self::UDsvgd(config) => config.particles,
            Self::PDsvgd(config) => config.client.particles,
            Self::Svgd(config) => config.particles,
            Self::Sgld(config) => config.particles,
            Self::Dsgld(config) => config.chains_of.particles,
            Self::Pvi(config) | Self::Gvi(config) => config.particles,
            Self::Pmd(config) => config.particles,
            Self::Npv(config) => config.particles,
            Self::Fedwba(config) => config.particles,
            Self::Pfedbayes(config) => config.particles,
            Self::Pfedvem(config) => config.particles,
            Self::Fedavg(_)
            | Self::Fedsgd {}
            | Self::Fedprox(_)
            | Self::Scaffold(_)
            | Self::Fedper(_)
            | Self::PerFedavg(_)
            | Self::Pfedme(_)
            | Self::Pfedgp(_) => 1,
        }
    }

    /// α of its target, 1 for a method without a prior.
    pub fn temperature(&self) -> f64 {
        match self {
            Self::Dsvgd(config) => config.temperature,
            Self::UDsvgd(config) => config.temperature,
            Self::PDsvgd(config) => config.client.temperature,
            Self::Svgd(config) => config.temperature,
            Self::Sgld(config) => config.temperature,
            Self::Dsgld(config) => config.chains_of.temperature,
            Self::Pvi(config) | Self::Gvi(config) => config.temperature,
            Self::Pmd(config) => config.temperature,
            Self::Npv(config) => config.temperature,
            Self::Fedwba(config) => config.temperature,
            Self::Fedavg(_)
            | Self::Fedsgd {}
            | Self::Fedprox(_)
            | Self::Scaffold(_)
            | Self::Fedper(_)
            | Self::PerFedavg(_)
            | Self::Pfedme(_)
            | Self::Pfedbayes(_)
            | Self::Pfedvem(_)
            | Self::Pfedgp(_) => 1.0,
        }
    }

    /// How its particles become densities, where they do.
    pub fn density(&self) -> Option<&DensityConfig> {
        match self {
            Self::Dsvgd(config) => Some(&config.density),
            Self::UDsvgd(config) => Some(&config.density),
            Self::PDsvgd(config) => Some(&config.client.density),
            Self::Fedwba(config) => Some(&config.density),
            _ => None,
        }
    }

    /// What the factors hold beside the likelihood, where there are factors of particles that must carry it.
    pub(in crate::experiment) fn factors(&self) -> Option<Factors> {
        match self {
            Self::Dsvgd(config) => Some(config.factors),
            Self::PDsvgd(config) => Some(config.client.factors),
            _ => None,
        }
    }

    /// Whether its clients have a tilted density that selection can ask about.
    pub(super) fn has_tilted_targets(&self) -> bool {
        matches!(self, Self::Dsvgd(_) | Self::UDsvgd(_) | Self::PDsvgd(_))
    }

    /// Whether its clients predict with parameters of their own.
    pub fn is_personalised(&self) -> bool {
        matches!(
            self,
            Self::Fedwba(_)
                | Self::Fedper(_)
                | Self::PerFedavg(_)
                | Self::Pfedme(_)
                | Self::Pfedbayes(_)
                | Self::Pfedvem(_)
                | Self::Pfedgp(_)
        )
    }

    /// Whether its formulas presuppose plain gradient steps.
    pub(super) fn needs_sgd(&self) -> bool {
        matches!(self, Self::Scaffold(_) | Self::PerFedavg(_) | Self::Pfedme(_))
    }
}
