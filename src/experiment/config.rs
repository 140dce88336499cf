//! Reads a resolved table of keys into the typed experiment; [`Config::check`] finds keys that are invalid only in
//! combination.
//!
//! The keys of a section are declared in the file of the struct that they are read into: each algorithm, model,
//! schedule, data set and partition has its own file; the other sections are in this folder.

mod calibration;
mod checkpoint;
mod class_weights;
mod evaluation;
mod faults;
mod federation;
mod kernel;
mod lr_schedule;
mod optimizer;
mod rotation;
mod stop;

use std::sync::LazyLock;

use fedstein_schema::Accepts::{Choice, Name};
use fedstein_schema::Literal::{Int as I, Text as T};
use fedstein_schema::{
    COUNT, ConfigError, Key, Kind, Overrides, Resolved, Schema, Section, Source, key, list, nearest, whole,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Table;

pub use crate::algorithm::AlgorithmConfig;
pub use crate::algorithm::keys::KdeRule;
pub use crate::models::{BlrSpec, BnnSpec, MixtureSpec, ModelConfig, StackSpec};
pub use crate::schedule::{RoundRobinConfig, ScheduleConfig};
pub use calibration::{CalibrationConfig, Conformal, MapChoice};
pub use checkpoint::CheckpointConfig;
pub use class_weights::ClassWeights;
pub use evaluation::{EvaluationConfig, EvaluationRows, SameKde};
pub use faults::FaultsConfig;
pub use federation::{FederationConfig, RobustRule};
pub use fedstein_schema::NumberOr;
pub use kernel::{BandwidthRule, KernelConfig, RadialConfig};
pub use lr_schedule::LrScheduleConfig;
pub use optimizer::{OptimizerConfig, Reset};
pub use rotation::{Rotate, RotateFrom, RotationConfig};
pub use stop::{StopConfig, StopMetric};

use crate::algorithm::{ALGORITHM_CAPABILITIES, ALGORITHM_KINDS, Algorithm, Capabilities, Replies};
use crate::backend::Precision;
use crate::datasets::source::FILE_KEYS;
use crate::datasets::{
    DATA_KINDS, DataConfig, DataProperties, PARTITION_KINDS, PartitionConfig, SchemeProperties, TrainTest,
};
use crate::federation::faults::Fault;
use crate::models::{MODEL_KINDS, ModelKind};
use crate::protocol::{RequestKind, Wire};
use crate::schedule::SCHEDULE_KINDS;
use crate::statistics::trimmed;

/// An experiment: the content of a config file with all defaults written out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// The run's name.
    pub name: String,
    /// The set of defaults that was used.
    pub preset: Preset,
    /// The seed from which all random numbers follow.
    pub seed: u64,
    /// The number of communication rounds I.
    pub rounds: usize,
    /// The backend, one of [`BACKENDS`].
    pub backend: String,
    /// The floating-point type of the particles.
    pub precision: Precision,
    /// The keys of `[data]`, tagged by `kind`. They are read by the crate `fedstein-datasets`, which has its own types.
    pub data: Table,
    /// The keys of `[partition]`, also read by `fedstein-datasets`.
    pub partition: Table,
    /// The model whose parameters are the particles.
    pub model: ModelConfig,
    /// The algorithm of clients and server.
    pub algorithm: AlgorithmConfig,
    /// The kernel of SVGD.
    pub kernel: KernelConfig,
    /// The step rule that moves a particle along its direction.
    pub optimizer: OptimizerConfig,
    /// How the step size changes over the rounds; constant in a run of an earlier version.
    #[serde(default)]
    pub lr_schedule: LrScheduleConfig,
    /// Which clients take part in a round.
    pub schedule: ScheduleConfig,
    /// The server's rules against clients that fail.
    pub federation: FederationConfig,
    /// Faults that are injected.
    pub faults: FaultsConfig,
    /// When and how the particles are evaluated on the test rows.
    pub evaluation: EvaluationConfig,
    /// When the run ends before its last round; never in a run of an earlier version.
    #[serde(default)]
    pub stop: StopConfig,
    /// What is learned from calibration rows after the last round; the defaults in a run of an earlier version.
    #[serde(default)]
    pub calibration: CalibrationConfig,
    /// When checkpoints are written and kept.
    pub checkpoint: CheckpointConfig,
}

/// A set of defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The project's recommended settings.
    Sound,
    /// The settings in the papers' text.
    Paper,
    /// The settings in the papers' public code.
    Reference,
}

/// The values of `--backend`.
pub const BACKENDS: &[&str] = &["flex", "ndarray", "wgpu", "cuda"];

const TOP: &[Key] = &[
    key("name", Name, T("run"), "The run's name; without `--out` the run goes to `runs/<name>`."),
    key(
        "preset",
        Choice(&["sound", "paper", "reference"]),
        T("sound"),
        "Sets the defaults of the keys on which the papers' text (`paper`), their public code (`reference`) and a sound method differ; a key that is set explicitly takes precedence over the preset.",
    ),
    key("seed", whole(0, i64::MAX), I(1), "All random numbers of the run follow from it, the same on every backend."),
    key("rounds", COUNT, I(10), "Rounds of communication I; with `svgd`, which has none, it multiplies `local_steps`."),
    key(
        "backend",
        Choice(BACKENDS),
        T("flex"),
        "Device of the tensors: `flex` and `ndarray` on the CPU, `wgpu` (Vulkan, Metal, DX12) and `cuda` on a GPU; `--backend` overrides it.",
    ),
    key(
        "precision",
        Choice(&["f32", "f64"]),
        T("f32"),
        "Floating point type of the particles; f64 on `flex` and `ndarray` only. Metrics are always f64.",
    ),
];

/// The keys of `[data]` that every data set has, in the order of a resolved config.
const DATA_KEYS: &[Key] = &[rotation::ROTATE, rotation::ROTATE_FROM, class_weights::CLASS_WEIGHTS];

/// All sections with their keys.
pub fn schema() -> &'static Schema {
    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
        let of_kinds =
            |name, about, default, kinds: &[Kind]| Section::of_kinds(name, about, default, kinds.iter().copied());
        Schema {
            sections: vec![
                Section::plain("", "The experiment as a whole. These keys stand above the first section.", TOP),
                of_kinds("data", "Which data, how they are scaled and how many rows are used.", "digits", DATA_KINDS)
                    .with_common(DATA_KEYS),
                of_kinds(
                    "partition",
                    "How the training rows are assigned to the clients. Every row goes to exactly one client, except with `fedwba-reference`.",
                    "iid",
                    PARTITION_KINDS,
                ),
                of_kinds("model", "The model whose parameters are the particles.", "bnn", MODEL_KINDS),
                of_kinds("algorithm", "How clients and server learn together.", "newton-dsvgd", ALGORITHM_KINDS),
                kernel::section(),
                optimizer::section(),
                lr_schedule::section(),
                of_kinds(
                    "schedule",
                    "Which clients take part in a round; methods with all rows in one place, and `dsgld`, ignore this section.",
                    "round-robin",
                    SCHEDULE_KINDS,
                ),
                federation::section(),
                faults::section(),
                evaluation::section(),
                stop::section(),
                calibration::section(),
                checkpoint::section(),
            ],
        }
    });
    &SCHEMA
}

/// Loads configs for a program with an algorithm or data of its own.
#[derive(Clone, Debug, Default)]
pub struct ConfigLoader {
    algorithm: Option<Kind>,
    data: Option<DataProperties>,
}

impl ConfigLoader {
    /// Adds an algorithm from outside this crate to the kinds of `[algorithm]`: its keys are checked, written and
    /// documented like those of any other. [`Config::own_algorithm`] reads them.
    #[must_use]
    pub fn with_algorithm(self, kind: Kind) -> Self {
        Self { algorithm: Some(kind), ..self }
    }

    /// Uses these rows in place of `[data]`: model and partition are checked against them.
    #[must_use]
    pub fn with_data(self, data: &TrainTest) -> Self {
        Self { data: Some(DataProperties::of(&data.train)), ..self }
    }

    /// Reads, merges and checks a config; also returns it as the table that goes to the run's `config.toml`.
    ///
    /// # Errors
    /// The file or an override is invalid in a way that shows without the data.
    pub fn load(&self, source: Source<'_>, overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
        let mut resolved = match self.algorithm {
            Some(kind) => schema().clone().with_kind("algorithm", kind).resolve(source, overrides)?,
            None => schema().resolve(source, overrides)?,
        };
        make_paths_absolute(&mut resolved.table);
        let config = Config::from_resolved(&resolved)?;
        config.check_for(&config.algorithm, self.data)?;
        Ok((config, resolved))
    }
}

/// Makes the paths of a user's own tables absolute: the run's `config.toml` repeats the run from any directory.
fn make_paths_absolute(table: &mut Table) {
    let Some(data) = table.get_mut("data").and_then(toml::Value::as_table_mut) else { return };
    for key in FILE_KEYS {
        if let Some(toml::Value::String(path)) = data.get_mut(key)
            && !path.is_empty()
            && let Ok(absolute) = std::path::absolute(&path)
            && let Some(absolute) = absolute.to_str()
        {
            absolute.clone_into(path);
        }
    }
}

impl Config {
    /// Reads, merges and checks a config; also returns it as the table that goes to the run's `config.toml`.
    ///
    /// # Errors
    /// The file or an override is invalid in a way that shows without the data.
    pub fn load(source: Source<'_>, overrides: &Overrides) -> Result<(Self, Resolved), ConfigError> {
        ConfigLoader::default().load(source, overrides)
    }

    /// Reads the `config.toml` of a run. It may be that of a program with an algorithm of its own, whose keys are then
    /// not checked, or with rows of its own, of which the file knows nothing: keys that conflict were refused when the
    /// run began, and are not looked for again.
    ///
    /// # Errors
    /// The text is not a config, or it names an algorithm that is unknown here and misses keys.
    pub fn of_run(source: Source<'_>) -> Result<Self, ConfigError> {
        let table: Option<Table> = source.text.parse().ok();
        let section = table.as_ref().and_then(|table| table.get("algorithm")?.as_table());
        let kind = section.and_then(|section| section.get("kind")?.as_str());
        let is_own = kind.is_some_and(|kind| ALGORITHM_KINDS.iter().all(|known| known.name != kind));
        // Keys that are missing have no defaults here: those of the algorithm are not known.
        let own = |table: &Table| {
            read(table).map_err(|error| match error {
                ConfigError::Internal(reason) => ConfigError::Conflict(format!("{}: {reason}", source.name)),
                other => other,
            })
        };
        match table {
            Some(table) if is_own => own(&table),
            _ => Self::from_resolved(&schema().resolve(source, &Overrides::default())?),
        }
    }

    /// Reads `[algorithm]` as the configuration of an algorithm from outside this crate; see
    /// [`ConfigLoader::with_algorithm`].
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] where `[algorithm]` names another kind; [`ConfigError::Internal`] where the keys do
    /// not fit the type.
    pub fn own_algorithm<A: Algorithm + DeserializeOwned>(&self, kind: Kind) -> Result<A, ConfigError> {
        match &self.algorithm {
            AlgorithmConfig::Own(own) if own.kind == kind.name => {
                own.keys.clone().try_into().map_err(|error: toml::de::Error| ConfigError::Internal(error.to_string()))
            }
            other => Err(ConfigError::Conflict(format!(
                "`algorithm.kind` is \"{}\", but this program runs \"{}\"",
                other.name(),
                kind.name
            ))),
        }
    }

    /// The typed form of a resolved table.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the table of keys and these types disagree.
    pub fn from_resolved(resolved: &Resolved) -> Result<Self, ConfigError> {
        let config = resolved.table.clone().try_into();
        config.map_err(|error: toml::de::Error| ConfigError::Internal(error.to_string()))
    }

    /// The typed configuration of `[data]`.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the keys and the type that they are read into disagree.
    pub fn data(&self) -> Result<DataConfig, ConfigError> {
        read(&self.data)
    }

    /// The basis of the features, out of `[data]`.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the keys and the type that they are read into disagree.
    pub fn rotation(&self) -> Result<RotationConfig, ConfigError> {
        read(&self.data)
    }

    /// The weights of the classes, out of `[data]`.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the keys and the type that they are read into disagree.
    pub fn class_weights(&self) -> Result<ClassWeights, ConfigError> {
        read::<class_weights::ClassWeightsConfig>(&self.data).map(|config| config.class_weights)
    }

    /// The typed configuration of `[partition]`.
    ///
    /// # Errors
    /// [`ConfigError::Internal`] if the keys and the type that they are read into disagree.
    pub fn partition(&self) -> Result<PartitionConfig, ConfigError> {
        read(&self.partition)
    }

    /// The kind of `[data]`.
    pub fn data_kind(&self) -> &str {
        word(&self.data, "kind")
    }

    /// The kind of `[partition]`.
    pub fn partition_kind(&self) -> &str {
        word(&self.partition, "kind")
    }

    /// Finds keys that are valid one by one and conflict with each other.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`], which names both keys and a valid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_for(&self.algorithm, None)
    }

    /// As [`Self::check`], for an algorithm that need not be the one in `[algorithm]`, and for rows that need not be
    /// those of `[data]`.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn check_for(
        &self,
        algorithm: &impl Algorithm,
        own_data: Option<DataProperties>,
    ) -> Result<(), ConfigError> {
        let (name, can) = (self.algorithm.name(), algorithm.capabilities());
        let data = match own_data {
            Some(data) => data,
            None => self.data()?.properties(),
        };
        let scheme = self.partition()?.scheme;
        let conflicts = [
            self.schedule_conflict(name, can, scheme.clients()),
            self.model_conflict(data),
            self.curvature_conflict(name, can),
            self.rotation_conflict(data)?,
            self.class_weights_conflict((name, can), data)?,
            self.partition_conflict(data, scheme.properties()),
            algorithm.check().err(),
            self.optimizer_conflict(name, can),
            self.lr_schedule_conflict(name, can),
            self.federation_conflict(name, can),
            self.wire_conflict(name, can),
            self.faults_conflict(),
            self.evaluation_conflict()?,
            self.prior_correction_conflict((name, can), data),
            self.stop_conflict(data)?,
            self.calibration_conflict(data)?,
        ];
        match conflicts.into_iter().flatten().next() {
            Some(conflict) => Err(ConfigError::Conflict(conflict)),
            None => Ok(()),
        }
    }

    fn evaluation_conflict(&self) -> Result<Option<String>, ConfigError> {
        // The rows of a federation are held out by its sites.
        let none = self.partition()?.validation == 0.0 && !matches!(self.data()?, DataConfig::Sites(_));
        Ok((none && self.evaluation.rows == EvaluationRows::Validation).then(|| {
            "`evaluation.rows` = \"validation\" needs rows that clients hold out; set `partition.validation` to their \
             share, such as 0.1"
                .to_owned()
        }))
    }

    /// Checks that there are predictors of clients, which have the frequencies of all clients' classes.
    fn prior_correction_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        properties: DataProperties,
    ) -> Option<String> {
        if !self.evaluation.prior_correction {
            return None;
        }
        let why = if !self.evaluation.personal {
            return Some(
                "`evaluation.prior_correction` corrects the predictors of the clients; it needs `evaluation.personal` = true"
                    .into(),
            );
        } else if properties.is_toy() || properties.is_regression() {
            format!("data kind `{}` has no classes here", self.data_kind())
        } else if can.personal {
            format!("the clients of algorithm kind `{algorithm}` learn how frequent their classes are")
        } else {
            return None;
        };
        Some(format!("{why}; `evaluation.prior_correction` must be false"))
    }

    /// Checks that there are validation rows by which a round is the best or the step size becomes smaller.
    fn stop_conflict(&self, properties: DataProperties) -> Result<Option<String>, ConfigError> {
        let (metric, Some(key)) = (self.stop.metric, self.validation_key()) else { return Ok(None) };
        if matches!(self.data()?, DataConfig::Sites(_)) {
            return Ok(Some(format!(
                "`{key}` needs validation rows in this process, but with `data.kind` = \"sites\" they are at the sites; use `rounds` \
                 and the other kinds of `[lr_schedule]`"
            )));
        }
        if properties.is_toy() {
            return Ok(Some(format!(
                "`{key}` needs validation rows, but data kind `{}` is a toy density without any",
                self.data_kind()
            )));
        }
        if self.partition()?.validation == 0.0 {
            return Ok(Some(format!(
                "`{key}` needs rows that clients hold out; set `partition.validation` to their share, such as 0.1"
            )));
        }
        if self.evaluation.personal {
            return Ok(Some(format!(
                "`{key}` looks at the published particles, but `evaluation.personal` scores predictors of the clients, which \
                 are not kept; one of the two must go"
            )));
        }
        let task = |classes| if classes { "classification" } else { "regression" };
        let other = metric.of_classes().filter(|classes| *classes == properties.is_regression());
        Ok(other.map(|classes| {
            format!(
                "`stop.metric` = \"{}\" is one of a {}, but the data are a {}; use \"nll\"",
                metric.key(),
                task(classes),
                task(!classes)
            )
        }))
    }

    fn calibration_conflict(&self, data: DataProperties) -> Result<Option<String>, ConfigError> {
        let has_rows = self.partition()?.calibration > 0.0 || matches!(self.data()?, DataConfig::Sites(_));
        Ok(self.calibration.conflict(data.is_regression(), has_rows))
    }

    fn schedule_conflict(&self, algorithm: &str, can: Capabilities, clients: Option<usize>) -> Option<String> {
        let (scheduled, schedule) = (self.schedule.clients(), self.schedule.kind().name);
        if can.one_client_per_round && scheduled != 1 {
            return Some(format!(
                "algorithm kind `{algorithm}` moves one client a round, but `schedule.clients` is {scheduled}; it must be 1 \
                 (`p-dsvgd` moves several)"
            ));
        }
        if self.schedule.is_informed() && !can.tilted {
            return Some(format!(
                "schedule kind `{schedule}` compares the clients' tilted densities, which algorithm kind `{algorithm}` does not \
                 have; use {}, or schedule kind `round-robin` or `random`",
                either(&tilted_kinds())
            ));
        }
        if self.evaluation.discrepancy && !can.tilted {
            return Some(format!(
                "`evaluation.discrepancy` asks for the clients' tilted densities, which algorithm kind `{algorithm}` does not have"
            ));
        }
        let clients = clients?;
        (scheduled > clients).then(|| {
            format!("`schedule.clients` is {scheduled}, but there are only `partition.clients` = {clients} clients")
        })
    }

    /// Checks that a step size in an algorithm's own formulas equals the optimiser's.
    fn optimizer_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        let plain = matches!(self.optimizer, OptimizerConfig::Sgd { .. });
        (can.plain_gradient_steps && !plain).then(|| {
            format!("algorithm kind `{algorithm}` is defined by plain gradient steps; it needs optimizer kind `sgd`")
        })
    }

    /// Checks that the method's steps are those of `[optimizer]`, where their size changes.
    fn lr_schedule_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (self.lr_schedule != LrScheduleConfig::Constant && !can.scheduled_steps).then(|| {
            format!(
                "algorithm kind `{algorithm}` has steps of its own, which do not use `optimizer.lr`; it needs `lr_schedule.kind` = \"constant\""
            )
        })
    }

    /// The key that needs a value of the validation rows in every evaluated round, if there is one.
    pub(super) fn validation_key(&self) -> Option<&'static str> {
        let by_plateau = matches!(self.lr_schedule, LrScheduleConfig::Plateau { .. });
        let patience = (self.stop.patience > 0).then_some("stop.patience");
        patience.or(by_plateau.then_some("lr_schedule.kind = \"plateau\""))
    }

    /// Checks that the robust rule applies to the algorithm and to enough replies, and that a round can have the
    /// quorum.
    fn federation_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        let FederationConfig { min_replies, robust, robust_trim, .. } = self.federation;
        let scheduled = self.schedule.clients();
        if min_replies > scheduled && !can.centralised && !can.chooses_clients {
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
        if can.centralised {
            return Some(format!(
                "`federation.robust` = \"{word}\" protects a server from some of its clients, but algorithm kind `{algorithm}` has \
                 all rows in one place; it must be \"none\""
            ));
        }
        match (robust, can.replies) {
            (RobustRule::NormClip, _) => None,
            (_, Replies::Different(why)) => Some(format!(
                "`federation.robust` = \"{word}\" has no meaning with algorithm kind `{algorithm}`: {why}; use \"norm-clip\" or \"none\""
            )),
            _ if scheduled < 3 => Some(format!(
                "`federation.robust` = \"{word}\" of {scheduled} replies is their mean; `schedule.clients` must be at least 3"
            )),
            (RobustRule::Trimmed, _) if trimmed(robust_trim, scheduled) == 0 => Some(format!(
                "`federation.robust_trim` = {robust_trim} of {scheduled} replies is not even one; it must be at least 1/`schedule.clients`"
            )),
            _ => None,
        }
    }

    /// Checks that the algorithm's messages are sent, and can be rounded.
    fn wire_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        let (wire, word) = (self.federation.wire, self.federation.wire.word());
        if wire != Wire::Full && can.centralised {
            return Some(format!(
                "`federation.wire` = \"{word}\" rounds what server and clients send, but algorithm kind `{algorithm}` has all \
                 rows in one place; it must be \"full\""
            ));
        }
        (wire.is_half() && can.natural_parameters).then(|| {
            format!(
                "`federation.wire` = \"{word}\" leaves too few digits of the natural parameters that algorithm kind \
                 `{algorithm}` sends, of which clients take differences; it must be \"full\" or \"f32\""
            )
        })
    }

    /// Checks that rotated features are still what the model and the data set need.
    fn rotation_conflict(&self, properties: DataProperties) -> Result<Option<String>, ConfigError> {
        if self.rotation()?.rotate == Rotate::None {
            return Ok(None);
        }
        let data = self.data_kind();
        if properties.is_toy() {
            return Ok(Some(format!(
                "data kind `{data}` is a toy density without features; `data.rotate` must be \"none\""
            )));
        }
        let images = matches!(&self.model, ModelConfig::Stack(stack) if stack.reads_images());
        Ok(images.then(|| {
            "`data.rotate` = \"principal\" mixes the pixels of an image, and `model.layers` has convolutions or pools; use \
             dense layers, or `data.rotate` = \"none\""
                .into()
        }))
    }

    /// Checks that there are classes to weigh, and that the method weighs them.
    fn class_weights_conflict(
        &self,
        (algorithm, can): (&str, Capabilities),
        properties: DataProperties,
    ) -> Result<Option<String>, ConfigError> {
        if self.class_weights()? == ClassWeights::None {
            return Ok(None);
        }
        let why = match (properties.is_toy() || properties.is_regression(), can.weighted_rows) {
            (true, _) => format!("data kind `{}` has no classes here", self.data_kind()),
            (_, false) => {
                format!("algorithm kind `{algorithm}` has no likelihood in which rows could count differently")
            }
            _ => return Ok(None),
        };
        Ok(Some(format!("{why}; `data.class_weights` must be \"none\"")))
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
            "`faults.kinds` has \"straggler\", which has no effect without a `federation.deadline`; it must be greater than 0"
                .into()
        })
    }

    fn curvature_conflict(&self, algorithm: &str, can: Capabilities) -> Option<String> {
        (can.curvature && matches!(self.model, ModelConfig::Mixture(_))).then(|| {
            format!(
                "algorithm kind `{algorithm}` needs the curvature of the likelihood, which model kind `mixture` does not \
                 compute; use `dsvgd`, or model kind `blr`, `bnn` or `stack`"
            )
        })
    }

    fn model_conflict(&self, properties: DataProperties) -> Option<String> {
        let data = self.data_kind();
        match &self.model {
            ModelConfig::Mixture(_) if !properties.is_toy() => Some(format!(
                "model kind `mixture` is the density of the data `mixture-1d` and `mixture-2d`; it cannot be fitted to `{data}`"
            )),
            ModelConfig::Mixture(_) if self.evaluation.personal => Some(format!(
                "`evaluation.personal` scores predictions on test rows, but data kind `{data}` is a toy density without any"
            )),
            ModelConfig::Mixture(_) if ["train_limit", "test_limit"].iter().any(|key| self.limits(key)) => {
                Some(format!(
                    "data kind `{data}` is two likelihoods, and its posterior is that of both; `data.train_limit` and \
                     `data.test_limit` must be 0"
                ))
            }
            ModelConfig::Mixture(_) => None,
            _ if properties.is_toy() => {
                Some(format!("data kind `{data}` is a toy density; it needs model kind `mixture`"))
            }
            ModelConfig::Blr(_) if properties.is_regression() => {
                Some("model kind `blr` tells two classes apart; data task `regression` needs model kind `bnn`".into())
            }
            ModelConfig::Blr(_) => properties.known_classes().filter(|classes| *classes != 2).map(|classes| {
                format!(
                    "model kind `blr` tells two classes apart, but `{data}` has {}; model kind `bnn` takes any number",
                    in_words(classes)
                )
            }),
            model => model.check().err(),
        }
    }

    fn partition_conflict(&self, data: DataProperties, scheme: SchemeProperties) -> Option<String> {
        let kind = self.partition_kind();
        if scheme.natural_clients && !data.natural_clients {
            return Some(format!(
                "partition kind `{kind}` needs data kind `vehicle`, or data kind `csv` with `data.client_column`, the column \
                 with the client of each row"
            ));
        }
        if scheme.by_class && data.is_regression() {
            return Some(format!(
                "partition kind `{kind}` assigns rows by label, but data task `regression` has none; use `iid`"
            ));
        }
        (scheme.superclasses && !data.superclasses).then(|| {
            format!(
                "partition kind `{kind}` needs data kind `cifar100`; `{}` has no superclasses, use `labels-per-client`",
                self.data_kind()
            )
        })
    }

    /// Whether `data.<key>` leaves out rows.
    fn limits(&self, key: &str) -> bool {
        self.data.get(key).and_then(toml::Value::as_integer).is_some_and(|limit| limit > 0)
    }
}

/// The names of the algorithms whose clients have tilted densities.
fn tilted_kinds() -> Vec<&'static str> {
    let kinds = ALGORITHM_KINDS.iter().zip(ALGORITHM_CAPABILITIES);
    kinds.filter(|(_, can)| can.tilted).map(|(kind, _)| kind.name).collect()
}

/// A number of classes as messages spell it.
fn in_words(classes: usize) -> String {
    match classes {
        10 => "ten".into(),
        100 => "a hundred".into(),
        other => other.to_string(),
    }
}

/// Joins words to a list such as "`a`, `b` or `c`".
fn either(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or `{last}`", list(rest)),
        _ => list(words),
    }
}

/// Reads a section as the type to which its keys belong.
fn read<T: DeserializeOwned>(section: &Table) -> Result<T, ConfigError> {
    section.clone().try_into().map_err(|error: toml::de::Error| ConfigError::Internal(error.to_string()))
}

/// The text value of a key; `""` where there is none.
fn word<'a>(section: &'a Table, key: &str) -> &'a str {
    section.get(key).and_then(toml::Value::as_str).unwrap_or_default()
}

/// The message for a list with a word that is not among `words`.
fn unknown_word(key: &str, given: &[String], words: &[&'static str]) -> Option<String> {
    let word = given.iter().find(|word| !words.contains(&word.as_str()))?;
    let hint = nearest(word, words.iter().copied());
    let hint = hint.map_or_else(String::new, |word| format!("; did you mean `{word}`?"));
    Some(format!("`{key}` has \"{word}\"; it takes {}{hint}", list(words)))
}
