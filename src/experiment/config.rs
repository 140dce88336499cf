//! Reads a resolved table of keys into the typed experiment; [`Config::check`] finds keys that are invalid only in
//! combination.
//!
//! The keys of a section are declared in the file of the struct that they are read into: each algorithm, model,
//! schedule, data set and partition has its own file; the other sections are in this folder.

mod calibration;
mod checkpoint;
mod class_weights;
mod conflicts;
mod evaluation;
mod faults;
mod federation;
mod kernel;
mod lr_schedule;
mod optimizer;
mod rotation;
mod stop;
mod unsuited;
mod unused;
mod values;

use std::sync::LazyLock;

use fedstein_schema::Accepts::{Choice, Name};
use fedstein_schema::Literal::{Int as I, Text as T};
use fedstein_schema::{COUNT, ConfigError, Key, Kind, Overrides, Resolved, Schema, Section, Source, key, whole};
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
pub(super) use values::{BACKEND, flat};

use crate::algorithm::{ALGORITHM_KINDS, Algorithm};
use crate::backend::{KNOWN, Precision};
use crate::datasets::source::FILE_KEYS;
use crate::datasets::{DATA_KINDS, DataConfig, DataProperties, PARTITION_KINDS, PartitionConfig, TrainTest};
use crate::models::MODEL_KINDS;
use crate::schedule::SCHEDULE_KINDS;

/// An experiment: the content of a config file with all defaults written out. The fields are public to be read. A run whose
/// files another content describes is refused: set keys with [`Overrides`] before the config is loaded.
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
    /// The backend, one of [`KNOWN`].
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

fedstein_schema::words! {
    /// A set of defaults.
    pub enum Preset {
        /// The project's recommended settings.
        Sound = "sound",
        /// The settings in the papers' text.
        Paper = "paper",
        /// The settings in the papers' public code.
        Reference = "reference",
    }
}

const TOP: &[Key] = &[
    key("name", Name, T("run"), "The run's name; without `--out` the run goes to `runs/<name>`."),
    key(
        "preset",
        Choice(Preset::WORDS),
        T(Preset::Sound.word()),
        "Sets the defaults of the keys on which the papers' text (`paper`), their public code (`reference`) and a sound method differ; a key that is set explicitly takes precedence over the preset.",
    ),
    key("seed", whole(0, i64::MAX), I(1), "All random numbers of the run follow from it, the same on every backend."),
    key("rounds", COUNT, I(10), "Rounds of communication I; with `svgd`, which has none, it multiplies `local_steps`."),
    key(
        BACKEND,
        Choice(&KNOWN),
        T("flex"),
        "Device of the tensors: `flex` and `ndarray` on the CPU, `wgpu` (Vulkan, Metal, DX12) and `cuda` on a GPU; `--backend` overrides it.",
    ),
    key(
        "precision",
        Choice(Precision::WORDS),
        T(Precision::F32.word()),
        "Floating point type of the particles; f64 on `flex` and `ndarray` only. Features are kept in f32 in either case, predictions are rounded to f32, and metrics of them are computed in f64.",
    ),
];

/// The keys of `[data]` that every data set has, in the order of a resolved config.
const DATA_KEYS: &[Key] = &[rotation::ROTATE, rotation::ROTATE_FROM, class_weights::CLASS_WEIGHTS];

/// What a program has brought in the place of sections of its config, for the run's `config.toml`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brings<'a> {
    /// Whether the rows are its own.
    pub rows: bool,
    /// Whether the model is.
    pub model: bool,
    /// The name of its client selection, if it has one.
    pub selection: Option<&'a str>,
}

/// Whether a key, as `section.key`, is one of `[data]` that has no effect where a program brings the rows.
pub fn is_of_data_set(path: &str) -> bool {
    path.strip_prefix("data.").is_some_and(|name| DATA_KEYS.iter().all(|key| key.name != name))
}

/// The content of `config.toml`. It says of each section whether the program has brought something in its place; of `[data]`
/// it then has only the keys that have an effect.
pub(super) fn to_toml(resolved: &Resolved, brings: Brings<'_>) -> String {
    let mut shown = resolved.clone();
    let mut remarks = Vec::new();
    if brings.rows {
        if let Some(toml::Value::Table(data)) = shown.table.get_mut("data") {
            data.retain(|name, _| !is_of_data_set(&format!("data.{name}")));
        }
        let rows =
            "The rows are the program's own, and no data set: `kind` and its keys have no effect and are left out.";
        remarks.push(("data", rows.to_owned()));
    }
    if brings.model {
        remarks.push(("model", "The model is the program's own: these keys have no effect.".to_owned()));
    }
    if let Some(name) = brings.selection {
        let name = crate::report::quoted(name);
        let selection =
            format!("The program selects the clients, by `{name}`: of these keys only `clients` has an effect.");
        remarks.push(("schedule", selection));
    }
    shown.to_toml_with(&remarks)
}

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

/// What a program brings in the place of sections of its config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// The properties of the rows in the place of `[data]`.
    pub data: Option<DataProperties>,
    /// Whether a model is in the place of `[model]`.
    pub model: bool,
    /// Whether a client selection is in the place of the kind of `[schedule]`.
    pub selection: bool,
}

/// Loads configs for a program with an algorithm, a model or data of its own.
#[derive(Clone, Debug, Default)]
pub struct ConfigLoader {
    algorithm: Option<Kind>,
    own: Own,
}

impl ConfigLoader {
    /// Adds an algorithm from outside this crate to the kinds of `[algorithm]`: its keys are checked, written and
    /// documented like those of any other. [`Config::own_algorithm`] reads them. Its name must be another one than those of
    /// [`ALGORITHM_KINDS`], and its keys must differ; [`Self::load`] refuses others.
    #[must_use]
    pub fn with_algorithm(self, kind: Kind) -> Self {
        Self { algorithm: Some(kind), ..self }
    }

    /// Uses these rows in place of `[data]`: model and partition are checked against them.
    #[must_use]
    pub fn with_data(self, data: &TrainTest) -> Self {
        Self { own: Own { data: Some(DataProperties::of(&data.train)), ..self.own }, ..self }
    }

    /// Leaves `[model]` unchecked, for a program that brings a model in its place
    /// ([`Experiment::with_model`](super::Experiment::with_model)): the keys are read, and nothing asks whether they fit the
    /// data.
    #[must_use]
    pub fn with_model(self) -> Self {
        Self { own: Own { model: true, ..self.own }, ..self }
    }

    /// Leaves the kind of `[schedule]` unchecked, for a program that brings a client selection in its place
    /// ([`Experiment::with_selection`](super::Experiment::with_selection)).
    #[must_use]
    pub fn with_selection(self) -> Self {
        Self { own: Own { selection: true, ..self.own }, ..self }
    }

    /// Reads, merges and checks a config; also returns it as the table that goes to the run's `config.toml`. Its `notes` are
    /// sentences about keys without effect and about defaults that do not suit the rest, which a run with `Artifacts` keeps; a
    /// program without them shows them itself.
    ///
    /// # Errors
    /// The file or an override is invalid in a way that shows without the data, or the program's algorithm cannot be
    /// added.
    pub fn load(&self, source: Source<'_>, overrides: &Overrides) -> Result<(Config, Resolved), ConfigError> {
        self.algorithm.map_or(Ok(()), can_be_added)?;
        let mut resolved = match self.algorithm {
            Some(kind) => schema().clone().with_kind("algorithm", kind).resolve(source, overrides)?,
            None => schema().resolve(source, overrides)?,
        };
        make_paths_absolute(&mut resolved.table);
        let config = Config::from_resolved(&resolved)?;
        config.check_for(&*config.algorithm, self.own).map_err(|error| resolved.located(error, source.name))?;
        let notes = config.without_effect(&resolved.changed, self.own);
        let unsuited = config.unsuited(&resolved, self.own);
        resolved.notes.extend(notes.into_iter().chain(unsuited));
        Ok((config, resolved))
    }
}

/// Checks that a program's own algorithm can be one of the kinds of `[algorithm]`.
fn can_be_added(kind: Kind) -> Result<(), ConfigError> {
    let refuse = |problem: String| Err(ConfigError::conflict(format!("ConfigLoader::with_algorithm: {problem}")));
    is_name_of_kind(kind.name)
        .map_err(|problem| ConfigError::conflict(format!("ConfigLoader::with_algorithm: {problem}")))?;
    if ALGORITHM_KINDS.iter().any(|known| known.name == kind.name) {
        return refuse(format!("there is an algorithm kind `{}` already; give yours a name of its own", kind.name));
    }
    let names = || kind.keys.iter().map(|key| key.name);
    let repeated =
        names().enumerate().find(|(at, name)| *name == "kind" || names().take(*at).any(|before| before == *name));
    for key in kind.keys {
        is_name_of_kind(key.name).or_else(|problem| refuse(format!("a key of kind `{}`: {problem}", kind.name)))?;
        for preset in Preset::WORDS {
            if let Some(default) = key.default_for(preset)
                && let Err(valid) = key.accepts.check(&default)
            {
                return refuse(format!("the default of `{}` of kind `{}` must be {valid}", key.name, kind.name));
            }
        }
    }
    match repeated {
        Some((_, name)) => refuse(format!("kind `{}` has two keys `{name}`; each needs a name of its own", kind.name)),
        None => Ok(()),
    }
}

/// Checks that a program's own kind or selection is called as those of fedstein are.
///
/// # Errors
/// A sentence that names the name.
pub(super) fn is_name_of_kind(name: &str) -> Result<(), String> {
    let is_part_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(is_part_of_name) {
        true => Ok(()),
        false => {
            Err(format!("the name `{}` must be of small letters, digits, `-` and `_`", crate::report::quoted(name)))
        }
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
        match table {
            Some(table) if is_own => Self::of_own_algorithm(table, source.name),
            _ => Self::from_resolved(&schema().resolve(source, &Overrides::default())?),
        }
    }

    /// The config of a run with an algorithm that is not known here. Its keys that are missing have no defaults; those of the
    /// other sections have theirs.
    fn of_own_algorithm(mut table: Table, name: &str) -> Result<Self, ConfigError> {
        let algorithm = table.remove("algorithm");
        let mut rest = schema().resolve(Source { name, text: &table.to_string() }, &Overrides::default())?.table;
        rest.extend(algorithm.map(|algorithm| ("algorithm".to_owned(), algorithm)));
        read(&rest).map_err(|error| match error {
            ConfigError::Internal(reason) => ConfigError::conflict(format!("{name}: {reason}")),
            other => other,
        })
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
            other => Err(ConfigError::conflict(format!(
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

    /// Whether the rows are at the sites of a federation.
    pub fn rows_are_at_sites(&self) -> bool {
        self.data_kind() == DataConfig::AT_SITES
    }

    /// The kind of `[data]`.
    pub fn data_kind(&self) -> &str {
        word(&self.data, "kind")
    }

    /// Whether the algorithm is one of fedstein's. What a program's own one uses is not known before the program hands it over.
    fn knows_algorithm(&self) -> bool {
        !matches!(self.algorithm, AlgorithmConfig::Own(_))
    }

    /// The kind of `[partition]`.
    pub fn partition_kind(&self) -> &str {
        word(&self.partition, "kind")
    }

    /// The key that needs a value of the validation rows in every evaluated round, if there is one.
    pub(super) fn validation_key(&self) -> Option<&'static str> {
        let patience = (self.stop.patience > 0).then_some("stop.patience");
        patience.or_else(|| self.lr_schedule.validation_key())
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
