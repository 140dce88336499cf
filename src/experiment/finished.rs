//! Reads the files of a finished run for reports and predictions: the small files that describe the run, and its
//! particles.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use burn::tensor::DType;
use ndarray::Array2;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::algorithm::{AlgorithmConfig, Capabilities};
use crate::array::{Array, Values};
use crate::backend::Session;
use crate::checkpoint::digest;
use crate::checkpoint::lock::Lock;
use crate::datasets::{Dataset, ModelCard, Rotation};
use crate::error::RunError;
use crate::federation::labelled::Labelled;
use crate::metrics::{ClientScores, Evaluation, UncertaintySummary};
use crate::models::{Layout, Model};
use crate::particles::Particles;
use crate::report::files::{quoted, read_regular, read_whole};
use crate::report::{CalibrationResults, PartitionTable, ReportError, RoundRecord, SiteScores, csv};
use crate::tensor_file::{self, NamedTensor, floats};

use super::config::{Config, Rotate};
use super::personal::PersonalResults;
use super::schema::{ConfigError, Source};
use super::{inventory, rotation, run_dir};

/// Version of the layout of `summary.json`.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// The fact with the round that validation rows have chosen, where `stop.patience` is set.
pub(super) const BEST_ROUND: &str = "best round";

/// The content of `summary.json`: description and results of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    pub(super) schema_version: u32,
    /// The run's name.
    pub name: String,
    /// Whether these are the results that a site of a federation keeps, on its own rows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_site: bool,
    /// The metrics of the published particles: those after the last round, or after the one that `stop.patience` has chosen.
    pub evaluation: Evaluation,
    /// Uncertainty measures of the particles beyond the predictive distribution.
    pub uncertainty: Option<UncertaintySummary>,
    /// Labelled facts for reports: backend, device, seed, seconds, bytes.
    pub facts: Vec<(String, String)>,
    /// The results of every client's personal predictor on its own test rows, where `evaluation.personal` is set.
    #[serde(default)]
    pub personal: Option<PersonalResults>,
    /// Notes on the run for the user, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The records of all rounds. The file holds their headline metrics, so a summary that is read has only these.
    #[serde(with = "crate::report::record::points")]
    pub rounds: Vec<RoundRecord>,
    /// The number of rows of every class at every client.
    pub partition: Option<PartitionTable>,
    /// The sums of scores over the test rows of all sites, of a run whose rows are at sites. Such a run has no file of
    /// predictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scores: Option<ClientScores>,
    /// The scores of each site, of such a run: of the same round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteScores>,
    /// The scores of every client's personal predictor after the last round, of a personalised run in one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<SiteScores>,
    /// What was learned from calibration rows, and what it does on test rows; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationResults>,
    /// What the results of a program's own algorithm are; absent for the kinds of fedstein, which say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_algorithm: Option<OwnAlgorithm>,
    /// sha256 of the configuration's file; `None` in a file written before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) config_sha256: Option<String>,
}

/// What a report must know of an algorithm that the program brought: [`Capabilities`] of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAlgorithm {
    /// Clients predict with parameters of their own.
    pub personal: bool,
    /// The published parameters have a part that no client trains.
    pub untrained_part: bool,
}

impl OwnAlgorithm {
    /// That of a run; `None` for an algorithm that the config describes.
    pub(super) fn of(config: &Config, can: Capabilities) -> Option<Self> {
        let Capabilities { personal, untrained_part, .. } = can;
        matches!(config.algorithm, AlgorithmConfig::Own(_)).then_some(Self { personal, untrained_part })
    }
}

/// A finished run, read from its directory.
#[derive(Debug)]
pub struct Finished {
    /// The run's directory.
    pub path: PathBuf,
    /// The resolved configuration, as text.
    pub config_toml: String,
    /// The content of `summary.json`.
    pub summary: Summary,
    /// The content of `model.json`.
    pub card: ModelCard,
    /// The model that the program has handed over; `None` for that of the configuration.
    pub(super) model: Option<Arc<dyn Model>>,
}

/// What is read of a summary first: one of another version may lack any other field.
#[derive(Deserialize)]
struct Version {
    schema_version: u32,
}

impl Finished {
    /// Reads the small files of a run.
    ///
    /// # Errors
    /// A file is missing, cannot be read, or has invalid content.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let text = |name: &str| {
            let file = path.join(name);
            read_regular(&file).map_err(|error| {
                let run = path.display();
                RunError::Config(match (Lock::holder_of(path), run_dir::stopped(path)) {
                    (Some(holder), _) => format!("`{run}` has a run that {holder} works on; wait for it to end"),
                    (None, Some(round)) => format!(
                        "`{run}` has a run that was stopped after round {round}; `{}` goes on with it (in a program: `Artifacts::resume`)",
                        inventory::resume(path)
                    ),
                    (None, None) => format!("{}: {error}; is this the directory of a finished run?", file.display()),
                })
            })
        };
        fn parse<T: for<'a> Deserialize<'a>>(path: &Path, name: &str, text: &str) -> Result<T, RunError> {
            serde_json::from_str(text)
                .map_err(|error| RunError::Config(format!("{}: {error}", path.join(name).display())))
        }
        let summary = text(run_dir::SUMMARY)?;
        let Version { schema_version } = parse(path, run_dir::SUMMARY, &summary)?;
        if schema_version != SCHEMA_VERSION {
            return Err(RunError::Config(format!(
                "{}: `schema_version` is {schema_version}; this program reads {SCHEMA_VERSION}",
                path.join(run_dir::SUMMARY).display()
            )));
        }
        let mut summary: Summary = parse(path, run_dir::SUMMARY, &summary)?;
        let card: ModelCard = parse(path, run_dir::MODEL, &text(run_dir::MODEL)?)?;
        let in_card = |problem| RunError::Config(format!("{}: {problem}", path.join(run_dir::MODEL).display()));
        card.check().map_err(in_card)?;
        if let (Some(uncertainty), Ok(rows)) = (&mut summary.uncertainty, text(run_dir::UNCERTAINTY)) {
            let file = path.join(run_dir::UNCERTAINTY);
            uncertainty.row_mutual_information = of_each_row(&rows, summary.evaluation.rows)
                .map_err(|problem| RunError::Config(format!("{}: {problem}", file.display())))?;
        }
        let config_toml = text(run_dir::CONFIG)?;
        // With the defaults in its place, rows would be read in another way than those of the training.
        if config_toml.trim().is_empty() {
            let file = path.join(run_dir::CONFIG);
            return Err(RunError::Config(format!(
                "{}: it is empty; a run writes all of its keys there",
                file.display()
            )));
        }
        Ok(Self { path: path.to_owned(), config_toml, summary, card, model: None })
    }

    /// The same run with the model that the program made it with, in place of the one of its configuration: without it, a
    /// run of [`Experiment::with_model`](super::Experiment::with_model) makes no predictions.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn Model>) -> Self {
        Self { model: Some(model), ..self }
    }

    /// Checks that the model is known whose parameters the particles are.
    ///
    /// # Errors
    /// The run has a model of its own and none was handed over, or the other way round.
    pub(super) fn must_know_model(&self) -> Result<(), RunError> {
        let run = self.path.display();
        match (self.card.own_model, self.model.is_some()) {
            (true, false) => Err(RunError::Config(format!(
                "the run in `{run}` has a model of its own, which no config describes; predict in the program that made it, \
                 with `Finished::with_model`"
            ))),
            (false, true) => Err(RunError::Config(format!(
                "the run in `{run}` has the model of its config; leave out `Finished::with_model`"
            ))),
            _ => Ok(()),
        }
    }

    /// The model whose parameters the particles are, for data of this shape; `config` is the run's.
    ///
    /// # Errors
    /// It is not known, or does not fit the data.
    pub(super) fn model(&self, config: &Config, data: &Dataset) -> Result<Arc<dyn Model>, RunError> {
        self.must_know_model()?;
        self.model.clone().map_or_else(|| config.model(data), Ok)
    }

    /// Parses the run's configuration.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let name = self.path.join(run_dir::CONFIG).display().to_string();
        Config::of_run(Source { name: &name, text: &self.config_toml })
    }

    /// The capabilities of the algorithm, of which only some are known where the program brought it; `config` is the run's.
    pub(super) fn capabilities(&self, config: &Config) -> Capabilities {
        let can = config.algorithm.capabilities();
        self.summary.own_algorithm.map_or(can, |OwnAlgorithm { personal, untrained_part }| Capabilities {
            personal,
            untrained_part,
            ..can
        })
    }

    /// What the user should know of new predictions, a sentence each: that `config.toml` was changed since the run has ended, and
    /// that new rows are predicted by another predictor than that of the results, or by one that is not the method's.
    ///
    /// # Arguments
    /// * `config`: the run's, from [`Finished::config`]
    /// * `client`: whether a client's personal predictor predicts
    pub fn notes_on_predictions(&self, config: &Config, client: bool) -> Vec<String> {
        let written = self.summary.config_sha256.as_ref();
        let is_other = written.is_some_and(|written| *written != digest::of_bytes(self.config_toml.as_bytes()));
        let changed = || {
            let file = self.path.join(run_dir::CONFIG);
            format!(
                "{} was changed since the run has ended; new rows are read and predicted as it says now",
                file.display()
            )
        };
        is_other.then(changed).into_iter().chain(self.note_on_predictor(config, client)).collect()
    }

    /// What messages call the data: the kind of `[data]`, or the name of rows that the program brought.
    pub fn data_name<'a>(&'a self, config: &'a Config) -> &'a str {
        if self.card.own_data { &self.card.data } else { config.data_kind() }
    }

    /// An empty data set of the shape that the model was trained on.
    pub fn shape(&self) -> Dataset {
        self.card.shape()
    }

    /// The basis in which the model sees the features, of a run with `data.rotate`; `config` is the run's.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold an orthogonal matrix.
    pub fn rotation(&self, config: &Config) -> Result<Option<Rotation>, RunError> {
        match config.rotation()?.rotate {
            Rotate::None => Ok(None),
            Rotate::Principal => rotation::read(&self.path.join(run_dir::ROTATION)).map(Some),
        }
    }

    /// The predictions of the run's test rows with their outcomes, in the unit of the data, from its file of predictions.
    ///
    /// # Errors
    /// The file is missing, is none of predictions, or has another number of rows than the run has scored.
    pub fn test_predictions(&self) -> Result<Labelled, RunError> {
        let path = self.path.join(run_dir::PREDICTIONS);
        let predictions = match self.card.classes.is_some() {
            true => csv::read_predictions(&path).map(Labelled::Classes),
            false => csv::read_regression(&path).map(Labelled::Real),
        };
        let predictions = predictions.map_err(unreadable)?;
        let (rows, scored) = (predictions.rows(), self.summary.evaluation.rows);
        match rows == scored {
            true => Ok(predictions),
            false => Err(RunError::Config(format!("{}: {}", path.display(), other_rows(rows, scored)))),
        }
    }

    /// Loads the published particles, `[N, d]`: those after the last round, or after the one that `stop.patience` has chosen.
    ///
    /// # Errors
    /// The file cannot be read, or does not hold particles of this model.
    pub fn particles(&self, model: &dyn Model, session: &Session) -> Result<Particles, RunError> {
        let path = self.path.join(run_dir::PARTICLES);
        let wrong = |reason: String| RunError::Config(format!("{}: {reason}", path.display()));
        let bytes = read_whole(&path).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
        from_safetensors(&tensors, model.layout(), session).map_err(wrong)
    }
}

/// The numbers of a file with a header and one number for each of the rows that the run has scored.
///
/// # Errors
/// A sentence on the first line that is not a number, or on another number of lines.
fn of_each_row(text: &str, scored: usize) -> Result<Vec<f64>, String> {
    let number = |(at, line): (usize, &str)| {
        line.parse().map_err(|_| format!("line {}: `{}` is not a number", at + 1, quoted(line)))
    };
    let rows: Vec<f64> = text.lines().enumerate().skip(1).map(number).collect::<Result<_, _>>()?;
    match rows.len() == scored {
        true => Ok(rows),
        false => Err(other_rows(rows.len(), scored)),
    }
}

/// The error of predictions that cannot be read: the input is wrong.
pub(crate) fn unreadable(error: ReportError) -> RunError {
    RunError::Config(error.to_string())
}

/// That a file has another number of rows than the run has scored.
fn other_rows(rows: usize, scored: usize) -> String {
    format!(
        "{rows} row(s); the run has scored {scored} (`evaluation.rows` in {}): the file was cut, or is of another run",
        run_dir::SUMMARY
    )
}

/// Encodes particles as a safetensors file with one tensor per block, `[N, ...]`, under the block's name.
///
/// # Errors
/// Reading from the device fails.
pub(super) fn to_safetensors(particles: &Particles) -> Result<Vec<u8>, RunError> {
    let mut tensors = Vec::with_capacity(particles.blocks().len());
    for (tensor, block) in particles.blocks().iter().zip(particles.layout().blocks()) {
        let values = match particles.dtype() {
            DType::F64 => Values::F64(tensor.clone().try_into_vec_as()?),
            _ => Values::F32(tensor.clone().try_into_vec_as()?),
        };
        let shape = [particles.count()].iter().chain(&block.shape).copied().collect();
        tensors.push(NamedTensor::of(&block.name, &Array { shape, values }));
    }
    let version = ("fedstein", env!("CARGO_PKG_VERSION"));
    tensor_file::encode(&tensors, version).map_err(|error| RunError::Output(error.to_string()))
}

/// Decodes particles from the file that [`to_safetensors`] writes.
///
/// # Errors
/// A message that names the tensor that is missing, has another shape or type, or holds a value that is not finite.
fn from_safetensors(tensors: &SafeTensors, layout: &Arc<Layout>, session: &Session) -> Result<Particles, String> {
    let mut blocks = Vec::with_capacity(layout.blocks().len());
    let mut count = None;
    for block in layout.blocks() {
        let view = tensors.tensor(&block.name).map_err(|error| error.to_string())?;
        let (rows, shape) =
            view.shape().split_first().ok_or_else(|| format!("tensor \"{}\" is a number", block.name))?;
        if shape != block.shape || *count.get_or_insert(*rows) != *rows || *rows == 0 {
            return Err(format!("tensor \"{}\" is {:?}, not [N, {:?}]", block.name, view.shape(), block.shape));
        }
        let values = floats(&view)
            .ok_or_else(|| format!("tensor \"{}\" is {:?}, not F32 or F64", block.name, view.dtype()))?
            .to_f64();
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(format!("tensor \"{}\": number {at} is {}, not finite", block.name, values[at]));
        }
        let matrix = Array2::from_shape_vec((*rows, block.size()), values).map_err(|error| error.to_string())?;
        blocks.push(session.matrix(&matrix));
    }
    Ok(Particles::from_blocks(blocks, layout.clone()))
}
