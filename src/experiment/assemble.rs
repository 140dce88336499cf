//! From the words of a config to the values that they name.

use std::sync::Arc;

use crate::algorithm::langevin::Langevin;
use crate::algorithm::{
    Algorithm, dsgld, dsvgd, fedavg, fedper, fedprox, fedsgd, fedwba, gaussian, gvi, npv, p_dsvgd, per_fedavg,
    pfedbayes, pfedgp, pfedme, pfedvem, pmd, pvi, scaffold, sgld, svgd, u_dsvgd,
};
use crate::array::{Array, Values};
use crate::backend::{Backend, Session};
use crate::datasets::{DataConfig, Dataset, PartitionConfig, Targets};
use crate::density::KdeMode;
use crate::density::kde::{KdeBandwidth, KdeConfig};
use crate::error::RunError;
use crate::federation::combine::Robust;
use crate::federation::faults::{self, Fault, Faulty};
use crate::federation::guard::{Guard, Rules};
use crate::models::{
    BlrConfig, BnnConfig, Head, LayerSpec, MixtureConfig, Model, Network, Probit, StackConfig, Task, WeightPrecision,
};
use crate::ot::RobustBarycenter;
use crate::particles::Particles;
use crate::protocol::{LocalData, Message, Question, RequestKind};
use crate::random::{Purpose, Streams};
use crate::rows::{Rows, Table};
use crate::schedule::{Draw, Hip, Ksd, Negative, Random, RoundRobin, Schedule};
use crate::stein::{AccumulatorStart, Bandwidth, EpsilonPlace, Kernel, Optimizer, Rule, Svgd};

use super::config::{
    AlgorithmConfig, BandwidthRule, Config, DensityConfig, DsgldConfig, DsvgdConfig, FactorDampingRule, FaultsConfig,
    FedavgConfig, FederationConfig, FedperConfig, FedproxConfig, GaussianConfig, InformedConfig, KdeRule, KernelConfig,
    LocalConfig, ModelConfig, NegativePolicy, NpvConfig, NumberOr, OptimizerConfig, PDsvgdConfig, PerFedavgConfig,
    PmdConfig, PrecisionRule, Predictive, RadialConfig, Reset, RobustRule, SameKde, ScaffoldConfig, ScheduleConfig,
    SelectionKernel, SelectionRule, SgldConfig, SoftmaxRule, SvgdConfig, UDsvgdConfig,
};

/// Rows from which the noise of an untrained regression network is measured.
const NOISE_ROWS: usize = 1000;
/// Most numbers of all particles together: tensors count them in 32 bits.
const MOST_NUMBERS: usize = i32::MAX as usize;

impl Config {
    /// `[data]`.
    pub fn data(&self) -> Result<DataConfig, RunError> {
        self.data.clone().try_into().map_err(|error| RunError::Config(format!("[data]: {error}")))
    }

    /// `[partition]`.
    pub fn partition(&self) -> Result<PartitionConfig, RunError> {
        self.partition.clone().try_into().map_err(|error| RunError::Config(format!("[partition]: {error}")))
    }

    /// `[model]` for a data set of this shape.
    ///
    /// # Errors
    /// A model that does not fit the data, or that is too large to be counted.
    pub fn model(&self, data: &Dataset) -> Result<Arc<dyn Model>, RunError> {
        let model = self.network(data)?;
        let (particles, dim) = (self.algorithm.particles(), model.layout().dim());
        if particles.checked_mul(dim).is_none_or(|numbers| numbers > MOST_NUMBERS) {
            return Err(RunError::Config(format!(
                "algorithm.particles = {particles}: with the model's {dim} parameters each, the particles are more than \
                 {MOST_NUMBERS} numbers, the most that a tensor counts"
            )));
        }
        // The chains and the Gaussian methods look at each particle by itself.
        let by_itself = matches!(
            self.algorithm,
            AlgorithmConfig::Sgld(_) | AlgorithmConfig::Dsgld(_) | AlgorithmConfig::Pvi(_) | AlgorithmConfig::Gvi(_)
        );
        if !by_itself && particles.checked_mul(particles).is_none_or(|pairs| pairs > MOST_NUMBERS) {
            return Err(RunError::Config(format!(
                "algorithm.particles = {particles}: the kernel between all of them has more than {MOST_NUMBERS} numbers, \
                 the most that a tensor counts; at most {} particles",
                MOST_NUMBERS.isqrt()
            )));
        }
        Ok(model)
    }

    fn network(&self, data: &Dataset) -> Result<Arc<dyn Model>, RunError> {
        let features = data.width();
        match &self.model {
            ModelConfig::Bnn { hidden, activation, weight_precision, gamma_shape, gamma_rate, init } => {
                let head = head(data, "bnn", *gamma_shape, *gamma_rate)?;
                let (activation, init) = (*activation, *init);
                let weight_precision = weight_precision.build(*gamma_shape, *gamma_rate);
                let network = BnnConfig { features, hidden: hidden.clone(), activation, head, weight_precision, init };
                Ok(Arc::new(Network::new(network.check()?)))
            }
            ModelConfig::Stack { layers, weight_precision, gamma_shape, gamma_rate, init } => {
                let head = head(data, "stack", *gamma_shape, *gamma_rate)?;
                let wrong = |error| RunError::Config(format!("model.layers, for the data `{}`: {error}", data.name));
                let (input, layers) = (data.feature_shape.clone(), LayerSpec::read(layers).map_err(wrong)?);
                let weight_precision = weight_precision.build(*gamma_shape, *gamma_rate);
                let stack = StackConfig { input, layers, head, weight_precision, init: *init };
                Ok(Arc::new(Network::new(stack.check().map_err(wrong)?)))
            }
            ModelConfig::Blr { gamma_shape, gamma_rate, bias, predictive, probit_lambda } => {
                match data.classes() {
                    Some(2) => {}
                    Some(classes) => {
                        return Err(RunError::Config(format!(
                            "model.kind = \"blr\" separates two classes, but {} has {classes}; use model.kind = \"bnn\"",
                            data.name
                        )));
                    }
                    None => return Err(no_targets("blr")),
                }
                let probit = (*predictive == Predictive::Probit).then_some(Probit { lambda: *probit_lambda });
                let (gamma_shape, gamma_rate, bias) = (*gamma_shape, *gamma_rate, *bias);
                let regression = BlrConfig { features, gamma_shape, gamma_rate, bias, probit };
                Ok(Arc::new(Network::new(regression.check()?)))
            }
            ModelConfig::Mixture { prior } => {
                // Both toys have at most two components a row.
                Ok(Arc::new(Network::new(MixtureConfig::new(features, 2, *prior)?)))
            }
        }
    }

    /// `[algorithm]`.
    pub fn algorithm(&self) -> Algorithm {
        match &self.algorithm {
            AlgorithmConfig::Dsvgd(config) => Algorithm::Dsvgd(config.build(self.evaluation.personal)),
            AlgorithmConfig::UDsvgd(UDsvgdConfig { particles, local, temperature, density }) => {
                Algorithm::UDsvgd(u_dsvgd::UDsvgdConfig {
                    particles: *particles,
                    local_steps: local.local_steps,
                    data: local.data(*temperature),
                    kde: density.kde(),
                    damping: density.kde_damping,
                    clip: density.clip(),
                    personal: self.evaluation.personal,
                })
            }
            AlgorithmConfig::PDsvgd(PDsvgdConfig { client, server_steps, factor_damping }) => {
                Algorithm::PDsvgd(p_dsvgd::PDsvgdConfig {
                    local: client.build(false),
                    server_steps: *server_steps,
                    factor_damping: match factor_damping {
                        NumberOr::Fixed(share) => Some(*share),
                        NumberOr::Rule(FactorDampingRule::ByClients) => None,
                    },
                })
            }
            AlgorithmConfig::Svgd(SvgdConfig { particles, local, temperature }) => {
                let (particles, local_steps) = (*particles, local.local_steps);
                Algorithm::Svgd(svgd::SvgdConfig { particles, local_steps, data: local.data(*temperature) })
            }
            AlgorithmConfig::Sgld(config) => Algorithm::Sgld(config.build()),
            AlgorithmConfig::Dsgld(DsgldConfig { chains_of, gradient_scale, chains }) => {
                let sgld::SgldConfig { particles, local_steps, data, langevin } = chains_of.build();
                let (gradient_scale, chains) = (*gradient_scale, *chains);
                Algorithm::Dsgld(dsgld::DsgldConfig { particles, local_steps, data, langevin, gradient_scale, chains })
            }
            AlgorithmConfig::Pvi(config) => {
                let (particles, local_steps) = (config.particles, config.local.local_steps);
                let (data, gaussian) = (config.local.data(config.temperature), config.build());
                Algorithm::Pvi(pvi::PviConfig { particles, local_steps, data, gaussian })
            }
            AlgorithmConfig::Gvi(config) => {
                let (particles, local_steps) = (config.particles, config.local.local_steps);
                let (data, gaussian) = (config.local.data(config.temperature), config.build());
                Algorithm::Gvi(gvi::GviConfig { particles, local_steps, data, gaussian })
            }
            AlgorithmConfig::Pmd(PmdConfig { particles, local, temperature, kde_bandwidth, max_step, step_decay }) => {
                Algorithm::Pmd(pmd::PmdConfig {
                    particles: *particles,
                    local_steps: local.local_steps,
                    data: local.data(*temperature),
                    bandwidth: (*kde_bandwidth).into(),
                    max_step: *max_step,
                    step_decay: *step_decay,
                })
            }
            AlgorithmConfig::Npv(NpvConfig { particles, local_steps, temperature }) => {
                let (particles, local_steps, temperature) = (*particles, *local_steps, *temperature);
                Algorithm::Npv(npv::NpvConfig { particles, local_steps, temperature })
            }
            AlgorithmConfig::Fedavg(FedavgConfig { local, mix }) => {
                let (local_steps, mix) = (local.local_steps, *mix);
                Algorithm::FedAvg(fedavg::FedAvgConfig { local_steps, data: local.data(1.0), mix })
            }
            AlgorithmConfig::Fedsgd {} => Algorithm::FedSgd(fedsgd::FedSgdConfig),
            AlgorithmConfig::Fedwba(config) => Algorithm::FedWba(fedwba::FedWbaConfig {
                particles: config.particles,
                local_steps: config.local.local_steps,
                data: config.local.data(config.temperature),
                kde: config.density.kde(),
                damping: config.density.kde_damping,
                clip: config.density.clip(),
                start: config.start,
                over: config.over,
                weights: config.weights,
                iterate: config.iterate,
                eq5: config.eq5,
                shared_layers: config.shared_layers.clone(),
                robust: match self.federation.robust {
                    RobustRule::None | RobustRule::NormClip => None,
                    RobustRule::Median => Some(RobustBarycenter::Median),
                    RobustRule::Trimmed => Some(RobustBarycenter::Trimmed(self.federation.robust_trim)),
                },
            }),
            AlgorithmConfig::Fedprox(FedproxConfig { local, proximal }) => {
                let (local_steps, proximal) = (local.local_steps, *proximal);
                Algorithm::FedProx(fedprox::FedProxConfig { local_steps, data: local.data(1.0), proximal })
            }
            AlgorithmConfig::Scaffold(ScaffoldConfig { local, server_lr }) => {
                let (local_steps, server_lr) = (local.local_steps, *server_lr);
                Algorithm::Scaffold(scaffold::ScaffoldConfig { local_steps, data: local.data(1.0), server_lr })
            }
            AlgorithmConfig::Fedper(FedperConfig { local, personal_layers }) => {
                let (local_steps, personal_layers) = (local.local_steps, *personal_layers);
                Algorithm::FedPer(fedper::FedPerConfig { local_steps, data: local.data(1.0), personal_layers })
            }
            AlgorithmConfig::PerFedavg(PerFedavgConfig { local, inner_lr }) => {
                let (local_steps, inner_lr) = (local.local_steps, *inner_lr);
                Algorithm::PerFedAvg(per_fedavg::PerFedAvgConfig { local_steps, data: local.data(1.0), inner_lr })
            }
            AlgorithmConfig::Pfedme(config) => Algorithm::PFedMe(pfedme::PFedMeConfig {
                local_steps: config.local.local_steps,
                data: config.local.data(1.0),
                inner_steps: config.inner_steps,
                inner_lr: config.inner_lr,
                proximal: config.proximal,
                server_mix: config.server_mix,
            }),
            AlgorithmConfig::Pfedbayes(config) => Algorithm::PFedBayes(pfedbayes::PFedBayesConfig {
                particles: config.particles,
                local_steps: config.local.local_steps,
                data: config.local.data(1.0),
                samples: config.samples,
                kl_weight: config.kl_weight,
                initial_rho: config.initial_rho,
                initial_sd: config.initial_sd,
                noise_variance: config.noise_variance,
                server_mix: config.server_mix,
            }),
            AlgorithmConfig::Pfedvem(config) => Algorithm::PFedVem(pfedvem::PFedVemConfig {
                particles: config.particles,
                local_steps: config.local.local_steps,
                data: config.local.data(1.0),
                personal_layers: config.personal_layers,
                head_steps: config.head_steps,
                head_lr: config.head_lr,
                head_momentum: config.head_momentum,
                samples: config.samples,
            }),
            AlgorithmConfig::Pfedgp(config) => Algorithm::PFedGp(pfedgp::PFedGpConfig {
                local_steps: config.local.local_steps,
                data: config.local.data(1.0),
                personal_layers: config.personal_layers,
                output_scale: config.output_scale,
                length_scale: config.length_scale,
                inference_steps: config.inference_steps,
                inducing_rows: config.inducing_rows,
            }),
        }
    }

    /// `[kernel]` and `[optimizer]`.
    pub fn svgd(&self) -> Svgd {
        Svgd { kernel: self.kernel.build(), optimizer: self.optimizer.build() }
    }

    /// `optimizer.reset`.
    pub fn reset_optimizer(&self) -> bool {
        self.optimizer.reset() == Reset::PerVisit
    }

    /// `[schedule]` over K clients.
    pub fn schedule(&self, clients: usize, streams: Streams) -> Box<dyn Schedule> {
        if let Some(per_round) = self.algorithm().clients_a_round(clients) {
            return Box::new(Random::new(clients, per_round, streams));
        }
        let draw = |informed: InformedConfig| Draw { per_round: informed.clients, floor: informed.floor, streams };
        match self.schedule {
            ScheduleConfig::RoundRobin { first, clients: per_round } => {
                Box::new(RoundRobin::new(clients, per_round, first))
            }
            ScheduleConfig::Random { clients: per_round } => Box::new(Random::new(clients, per_round, streams)),
            ScheduleConfig::Ksd(informed) => {
                Box::new(Ksd { kernel: informed.kernel(&self.kernel), rows: informed.rows, draw: draw(informed) })
            }
            ScheduleConfig::Hip { informed, negative, softmax_temperature } => Box::new(Hip {
                kernel: informed.kernel(&self.kernel),
                rows: informed.rows,
                negative: match (negative, softmax_temperature) {
                    (NegativePolicy::Clip, _) => Negative::Clip,
                    (NegativePolicy::Shift, _) => Negative::Shift,
                    (NegativePolicy::Softmax, NumberOr::Fixed(tau)) => Negative::Softmax { temperature: Some(tau) },
                    (NegativePolicy::Softmax, NumberOr::Rule(SoftmaxRule::Sd)) => {
                        Negative::Softmax { temperature: None }
                    }
                },
                draw: draw(informed),
            }),
        }
    }

    /// `[federation]`, and a number of the whole configuration.
    pub fn guard(&self) -> Guard {
        let FederationConfig { deadline, min_replies, repeats, backoff, robust, outlier_scores, .. } = self.federation;
        let algorithm = self.algorithm();
        let robust = match (robust, &algorithm) {
            (RobustRule::None, _) => Robust::None,
            (RobustRule::NormClip, _) => Robust::NormClip(self.federation.robust_clip),
            // FedWBA's server has its own.
            (_, Algorithm::FedWba(_)) => Robust::None,
            (RobustRule::Median, _) => Robust::Median,
            (RobustRule::Trimmed, _) => Robust::Trimmed(self.federation.robust_trim),
        };
        let deadline = (deadline > 0.0).then_some(deadline);
        let changes = algorithm.changes();
        let rules = Rules { deadline, min_replies, repeats, backoff, robust, changes, outlier_scores };
        Guard::new(rules, Message::default().with_scalar(&format!("{self:?}"), 0.0).fingerprint())
    }

    /// `[faults]` between the server and a fleet of K clients.
    pub fn faulty<F>(&self, fleet: F, clients: usize, streams: Streams) -> Faulty<F> {
        let FaultsConfig { kinds, requests, share, probability, factor, delay } = &self.faults;
        let kinds = kinds.iter().filter_map(|word| Fault::named(word)).collect();
        let requests = requests.iter().filter_map(|word| RequestKind::named(word)).collect();
        let (share, probability, factor, delay) = (*share, *probability, *factor, *delay);
        let config = faults::FaultsConfig { kinds, requests, share, probability, factor, delay };
        Faulty::new(fleet, config, clients, self.algorithm().changes(), streams)
    }

    /// What clients are asked each round where the schedule asks nothing: `evaluation.discrepancy`.
    pub fn diagnosis(&self) -> Option<Question> {
        let question = Question::Discrepancy { kernel: Kernel::Rbf(self.kernel.median_rule()), rows: Rows::Full };
        self.evaluation.discrepancy.then_some(question)
    }

    /// How the particles' density is estimated where a toy's divergence is computed.
    pub fn evaluation_kde(&self) -> KdeConfig {
        let own = match &self.algorithm {
            AlgorithmConfig::Pmd(config) => Some(config.kde_bandwidth),
            algorithm => algorithm.density().map(|density| density.kde_bandwidth),
        };
        let bandwidth = match (self.evaluation.kde_bandwidth, own) {
            (NumberOr::Fixed(lambda), _) => KdeBandwidth::Fixed(lambda),
            (NumberOr::Rule(SameKde::Same), Some(own)) => own.into(),
            // The papers' λ, for algorithms without a density of their own.
            (NumberOr::Rule(SameKde::Same), None) => KdeBandwidth::Fixed(0.55),
        };
        KdeConfig { mode: KdeMode::Exact, bandwidth }
    }
}

/// Θ^(0), drawn on the host: the same numbers on every backend.
pub(super) fn initial_particles<B: Backend>(
    model: &dyn Model,
    count: usize,
    train: &Table,
    streams: Streams,
    session: &Session<B>,
) -> Result<Particles<B>, RunError> {
    let layout = model.layout();
    let mut rng = streams.rng(Purpose::InitialParticles, 0, 0);
    let mut rows: Vec<f64> = (0..count).flat_map(|_| model.initial(&mut rng)).collect();
    let upload = |rows: &[f64]| {
        let array = Array { shape: vec![count, layout.dim()], values: Values::F64(rows.to_vec()) };
        Particles::from_array(&array, layout, session).map_err(RunError::Device)
    };
    let particles = upload(&rows)?;
    let (Task::Regression, Some(block)) = (model.task(), model.log_noise_precision()) else {
        return Ok(particles);
    };
    // log γ = −log MSE of the initial network on some training rows (ALGORITHMS 3.2).
    let mut sample: Vec<usize> =
        rand::seq::index::sample(&mut rng, train.rows(), NOISE_ROWS.min(train.rows())).into_vec();
    sample.sort_unstable();
    let batch = train.batch(sample.iter().copied(), session);
    let targets = batch.targets.try_into_vec_as::<f64>()?;
    let outputs = model.predict(particles.blocks(), batch.inputs).try_into_vec_as::<f64>()?;
    let log_gamma = layout.blocks()[block].offset;
    for (n, outputs) in outputs.chunks_exact(2 * targets.len()).enumerate() {
        let squares = outputs.chunks_exact(2).zip(&targets).map(|(output, target)| (output[0] - target).powi(2));
        let mse = squares.sum::<f64>() / targets.len() as f64;
        rows[n * layout.dim() + log_gamma] = -mse.max(1e-12).ln();
    }
    upload(&rows)
}

/// What the targets of a data set ask of a network's last layer.
fn head(data: &Dataset, model: &str, gamma_shape: f64, gamma_rate: f64) -> Result<Head, RunError> {
    match &data.targets {
        Targets::Classes { names, .. } => Ok(Head::Classes(names.len())),
        Targets::Real { .. } => Ok(Head::Real { gamma_shape, gamma_rate }),
        Targets::None { .. } => Err(no_targets(model)),
    }
}

fn no_targets(model: &str) -> RunError {
    RunError::Config(format!("model.kind = \"{model}\" needs labels, and this data set has none it can learn"))
}

impl DsvgdConfig {
    /// `personal`: whether clients predict with what they uploaded.
    fn build(&self, personal: bool) -> dsvgd::DsvgdConfig {
        dsvgd::DsvgdConfig {
            particles: self.particles,
            local_steps: self.local.local_steps,
            distill_steps: self.distill_steps,
            data: self.local.data(self.temperature),
            kde: self.density.kde(),
            damping: self.density.kde_damping,
            clip: self.density.clip(),
            factors: self.factors,
            personal,
        }
    }
}

impl DensityConfig {
    fn kde(&self) -> KdeConfig {
        KdeConfig { mode: self.kde, bandwidth: self.kde_bandwidth.into() }
    }

    fn clip(&self) -> Option<f64> {
        (self.kde_clip > 0.0).then_some(self.kde_clip)
    }
}

impl SgldConfig {
    fn build(&self) -> sgld::SgldConfig {
        sgld::SgldConfig {
            particles: self.particles,
            local_steps: self.local.local_steps,
            data: self.local.data(self.temperature),
            langevin: Langevin { step_size: self.step_size, power: self.step_power, noise: self.noise },
        }
    }
}

impl GaussianConfig {
    fn build(&self) -> gaussian::GaussianConfig {
        gaussian::GaussianConfig { family: self.family, damping: self.damping, samples: self.samples }
    }
}

impl InformedConfig {
    /// `moving`: the kernel in which SVGD moves, whose median rule is that of `bandwidth = "median"`.
    fn kernel(&self, moving: &KernelConfig) -> Kernel {
        let bandwidth = match self.bandwidth {
            NumberOr::Rule(SelectionRule::Median) => moving.median_rule(),
            NumberOr::Fixed(sd) => Bandwidth { rule: Rule::Fixed(2.0 * sd * sd), ..Bandwidth::default() },
        };
        match self.kernel {
            SelectionKernel::Rbf => Kernel::Rbf(bandwidth),
            SelectionKernel::Imq => Kernel::Imq { bandwidth, exponent: -0.5 },
        }
    }
}

impl LocalConfig {
    fn data(&self, temperature: f64) -> LocalData {
        LocalData { batch: self.batch, order: self.minibatch, scale: self.likelihood_scale, temperature }
    }
}

impl From<NumberOr<KdeRule>> for KdeBandwidth {
    fn from(value: NumberOr<KdeRule>) -> Self {
        match value {
            NumberOr::Fixed(lambda) => Self::Fixed(lambda),
            NumberOr::Rule(KdeRule::Median) => Self::Median,
            NumberOr::Rule(KdeRule::Scott) => Self::Scott,
        }
    }
}

impl NumberOr<PrecisionRule> {
    fn build(self, shape: f64, rate: f64) -> WeightPrecision {
        match self {
            Self::Fixed(precision) => WeightPrecision::Fixed(precision),
            Self::Rule(PrecisionRule::Learned) => WeightPrecision::Learned { shape, rate },
        }
    }
}

impl From<RadialConfig> for Bandwidth {
    fn from(config: RadialConfig) -> Self {
        let rule = match config.bandwidth {
            NumberOr::Fixed(h) => Rule::Fixed(h),
            NumberOr::Rule(BandwidthRule::Reference) => Rule::Reference,
            NumberOr::Rule(BandwidthRule::Paper) => Rule::Paper,
            NumberOr::Rule(BandwidthRule::Pyro) => Rule::Pyro,
            NumberOr::Rule(BandwidthRule::FullMatrix) => Rule::FullMatrix,
        };
        Self { rule, median: config.median }
    }
}

impl KernelConfig {
    /// The rule by which its bandwidth follows from the distances; the default where it is a number or there is none.
    fn median_rule(&self) -> Bandwidth {
        match *self {
            Self::Rbf(radial) | Self::Imq { radial, .. } | Self::Laplacian(radial) | Self::Mixture(radial)
                if matches!(radial.bandwidth, NumberOr::Rule(_)) =>
            {
                radial.into()
            }
            _ => Bandwidth::default(),
        }
    }

    fn build(&self) -> Kernel {
        match *self {
            Self::Rbf(radial) => Kernel::Rbf(radial.into()),
            Self::Imq { radial, exponent } => Kernel::Imq { bandwidth: radial.into(), exponent },
            Self::Laplacian(radial) => Kernel::Laplacian(radial.into()),
            Self::Mixture(radial) => Kernel::Mixture(radial.into()),
            Self::Polynomial { degree, offset, gradient } => {
                Kernel::Polynomial { degree: degree.min(i32::MAX as u32) as i32, offset, gradient }
            }
            Self::Sigmoid { slope, offset, gradient } => Kernel::Sigmoid { slope, offset, gradient },
        }
    }
}

impl OptimizerConfig {
    fn build(&self) -> Optimizer {
        match *self {
            Self::Adagrad { lr, epsilon, momentum, init, epsilon_place: place, .. } => {
                Optimizer::AdaGrad { lr, epsilon, momentum, init, place }
            }
            Self::AdagradSum { lr, epsilon, epsilon_place: place, .. } => Optimizer::AdaGradSum { lr, epsilon, place },
            // RMSProp is AdaGrad with momentum whose average starts at zero.
            Self::Rmsprop { lr, epsilon, momentum, .. } => {
                Optimizer::AdaGrad { lr, epsilon, momentum, init: AccumulatorStart::Zero, place: EpsilonPlace::Outside }
            }
            Self::Adam { lr, epsilon, beta1, beta2, .. } => Optimizer::Adam { lr, epsilon, beta1, beta2 },
            Self::Sgd { lr, .. } => Optimizer::Sgd { lr },
        }
    }

    fn reset(&self) -> Reset {
        match self {
            Self::Adagrad { reset, .. }
            | Self::AdagradSum { reset, .. }
            | Self::Rmsprop { reset, .. }
            | Self::Adam { reset, .. }
            | Self::Sgd { reset, .. } => *reset,
        }
    }
}
