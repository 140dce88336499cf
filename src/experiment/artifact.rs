//! What a run leaves behind, written as soon as it exists, and read again for reports and predictions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use burn::tensor::DType;
use ndarray::Array2;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::backend::{Backend, Session};
use crate::datasets::{Dataset, FeatureScale, Normalisation, Partition, Targets, TrainTest};
use crate::error::RunError;
use crate::federation::event::Event;
use crate::federation::message::ClientId;
use crate::metrics::{ClientScores, Evaluation, PersonalScores, UncertaintySummary};
use crate::models::{Layout, Model, Task};
use crate::particles::Particles;
use crate::report::{PartitionTable, ReportError, RoundPoint, csv, read_text, read_whole, write_atomic};

use super::checkpoints::{Checkpoints, Snapshot};
use super::config::{CheckpointConfig, Config};
use super::evaluate::Predicted;
use super::personal::PersonalResults;
use super::record::{RoundRecord, RoundsCsv};
use super::run::Outcome;
use super::run_dir::{self, RunDir, RunDirError};
use super::schema::Resolved;

/// Version of the layout of `summary.json` and `model.json`.
const SCHEMA_VERSION: u32 = 1;

/// Everything that predictions need beside particles and configuration: `model.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ModelCard {
    schema_version: u32,
    /// The data set that the model was trained on.
    pub data: String,
    /// Number of features p.
    pub features: usize,
    /// Shape of a row: `[H, W]` or `[C, H, W]` for an image; empty in a card from before it was kept.
    #[serde(default)]
    pub feature_shape: Vec<usize>,
    /// Their names `[p]`, where the data came with them.
    #[serde(default)]
    pub feature_names: Option<Vec<String>>,
    /// Names of the classes; `None` for a regression.
    pub classes: Option<Vec<String>>,
    /// How features and targets were scaled.
    pub normalisation: Normalisation,
}

/// The most features, classes and the like that a `model.json` may speak of: tensors count them in 32 bits.
const MOST: usize = i32::MAX as usize;

impl ModelCard {
    /// Whether its numbers belong together. A card may come from anywhere.
    ///
    /// # Errors
    /// The first field that cannot be right, and what would be.
    pub fn check(&self) -> Result<(), String> {
        let wrong = |field: &str, problem: String| Err(format!("`{field}` {problem}"));
        if self.schema_version != SCHEMA_VERSION {
            return wrong("schema_version", format!("is {}; this program reads {SCHEMA_VERSION}", self.schema_version));
        }
        if !(1..=MOST).contains(&self.features) {
            return wrong("features", format!("is {}; it must be from 1 to {MOST}", self.features));
        }
        if let Some(names) = self.feature_names.as_ref().filter(|names| names.len() != self.features) {
            return wrong("feature_names", format!("has {} names for {} features", names.len(), self.features));
        }
        if let Some(names) = self.classes.as_ref().filter(|names| names.len() < 2) {
            return wrong("classes", format!("has {}; a classification has at least 2", names.len()));
        }
        let is_scale = |x: &f64| x.is_finite() && *x != 0.0;
        let (widths, finite) = match &self.normalisation.features {
            FeatureScale::Identity => (true, true),
            FeatureScale::AffineAll { scale, offset } => (true, is_scale(scale) && offset.is_finite()),
            FeatureScale::PerColumn { shift, scale } => (
                shift.len() == self.features && scale.len() == self.features,
                shift.iter().all(|x| x.is_finite()) && scale.iter().all(is_scale),
            ),
            FeatureScale::PerChannel { shift, scale } => (
                !shift.is_empty() && shift.len() == scale.len() && self.features.is_multiple_of(shift.len()),
                shift.iter().all(|x| x.is_finite()) && scale.iter().all(is_scale),
            ),
        };
        if !widths {
            return wrong("normalisation.features", format!("does not belong to {} features", self.features));
        }
        let target = self.normalisation.target.as_ref();
        if !finite
            || target.is_some_and(|target| !(target.mean.is_finite() && target.sd.is_finite() && target.sd > 0.0))
        {
            return wrong("normalisation", "divides by a number that is 0 or not finite".into());
        }
        Ok(())
    }

    /// The shape of a row, where it is one: its sides multiply to the number of features.
    fn row_shape(&self) -> Vec<usize> {
        let size = self.feature_shape.iter().try_fold(1usize, |size, side| size.checked_mul(*side));
        if size == Some(self.features) { self.feature_shape.clone() } else { vec![self.features] }
    }
}

/// What a run was and how it ended: `summary.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    schema_version: u32,
    /// The run's name.
    pub name: String,
    /// Numbers after the last round.
    pub evaluation: Evaluation,
    /// What the particles tell beyond the predictive.
    pub uncertainty: Option<UncertaintySummary>,
    /// Backend, device, seed, seconds, bytes.
    pub facts: Vec<(String, String)>,
    /// Every client's own predictor on its own test rows, with `evaluation.personal`.
    #[serde(default)]
    pub personal: Option<PersonalResults>,
    /// Headline numbers of every evaluated round.
    pub rounds: Vec<RoundPoint>,
    /// Rows of every class at every client.
    pub partition: Option<PartitionTable>,
}

/// The files of a run in the making.
#[derive(Debug)]
pub struct Artifacts {
    path: PathBuf,
    force: bool,
    resolved: Resolved,
    dir: Option<RunDir>,
    rounds: Option<RoundsCsv<File>>,
    /// Files to which rounds add lines, once there is something to say in them.
    logs: BTreeMap<&'static str, File>,
    /// `None`: the config wants none, or the run has not begun.
    checkpoints: Option<Checkpoints>,
    facts: Vec<(String, String)>,
    partition: Option<PartitionTable>,
    name: String,
}

impl Artifacts {
    /// Files for a run at `path`; nothing is written yet.
    pub fn new(path: PathBuf, force: bool, resolved: Resolved) -> Self {
        Self {
            path,
            force,
            resolved,
            dir: None,
            rounds: None,
            logs: BTreeMap::new(),
            checkpoints: None,
            facts: Vec::new(),
            partition: None,
            name: String::new(),
        }
    }

    /// Files of a run at `path` that goes on from its newest whole checkpoint; `note` is told of one that is damaged.
    /// Nothing is written yet.
    ///
    /// # Errors
    /// There is no checkpoint, none is whole, or it is of another configuration.
    pub fn resume(path: PathBuf, resolved: Resolved, note: &mut dyn FnMut(&str)) -> Result<Self, RunError> {
        let (checkpoints, damaged) = Checkpoints::open(&path.join(run_dir::CHECKPOINT), &resolved)?;
        let round = checkpoints.round();
        damaged.iter().for_each(|damage| note(&format!("a checkpoint cannot be used: {damage}")));
        if !damaged.is_empty() {
            note(&format!("going on from the checkpoint before it, of round {round}"));
        }
        Ok(Self { checkpoints: Some(checkpoints), ..Self::new(path, false, resolved) })
    }

    /// Creates the directory, once configuration and data have proved good.
    pub(super) fn open<B: Backend>(
        &mut self,
        config: &Config,
        data: &TrainTest,
        partition: &Partition,
        model: &dyn Model,
        session: &Session<B>,
    ) -> Result<(), RunError> {
        let dir = match &mut self.checkpoints {
            Some(checkpoints) => {
                checkpoints.must_be_of(data, partition, config.rounds)?;
                RunDir::reopen(&self.path).map_err(directory)?
            }
            None => RunDir::create(&self.path, self.force).map_err(directory)?,
        };
        if self.checkpoints.is_none() && config.checkpoint.enabled {
            let path = dir.join(run_dir::CHECKPOINT);
            self.checkpoints = Some(Checkpoints::new(path, &self.resolved, data, partition));
        }
        dir.write(run_dir::CONFIG, self.resolved.to_toml().as_bytes()).map_err(directory)?;
        let card = ModelCard {
            schema_version: SCHEMA_VERSION,
            data: data.train.name.clone(),
            features: data.train.width(),
            feature_shape: data.train.feature_shape.clone(),
            feature_names: data.train.feature_names.clone(),
            classes: class_names(&data.train.targets),
            normalisation: data.normalisation.clone(),
        };
        dir.write(run_dir::MODEL, &to_json(&card)?).map_err(directory)?;
        dir.write(run_dir::PARTITION, partition.table(&data.train.targets).as_bytes()).map_err(directory)?;
        if self.past().is_none() {
            let rounds = dir.join(run_dir::ROUNDS);
            self.rounds = Some(RoundsCsv::create(&rounds).map_err(|error| file(&rounds, &error))?);
        }
        self.partition = match model.task() {
            Task::Classification { .. } => Some(PartitionTable {
                class_names: card.classes.unwrap_or_default(),
                counts: partition.counts(&data.train.targets),
                validation: (0..partition.clients().len()).map(|k| partition.validation(k).len()).collect(),
                test: (0..partition.clients().len()).map(|k| partition.test(k).len()).collect(),
            }),
            Task::Regression | Task::Density => None,
        };
        self.name = config.name.clone();
        let fact = |name: &str, value: String| (name.to_owned(), value);
        self.facts = vec![
            fact("data", format!("{}, {} training and {} test rows", card.data, data.train.rows(), data.test.rows())),
            fact("model", format!("{}, d = {}", config.model.kind(), model.layout().dim())),
            fact("algorithm", config.algorithm.kind().to_owned()),
            fact("particles", config.algorithm.particles().to_string()),
            fact("clients", format!("{} ({})", partition.clients().len(), config.partition_kind())),
            fact("backend", format!("{} on {}", B::NAME, session.hardware())),
            fact("seed", config.seed.to_string()),
            fact("fedstein", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        self.dir = Some(dir);
        Ok(())
    }

    /// Adds a row to `rounds.csv`; from the first one on the directory stays, whatever comes.
    pub(super) fn round(&mut self, record: &RoundRecord) -> Result<(), RunError> {
        let (Some(dir), Some(rounds)) = (&mut self.dir, &mut self.rounds) else { return Ok(()) };
        dir.keep().map_err(directory)?;
        rounds.append(record).map_err(|error| file(&dir.join(run_dir::ROUNDS), &error))
    }

    /// Adds a line to `selection.jsonl`.
    pub(super) fn selection(&mut self, line: &str) -> Result<(), RunError> {
        self.log(run_dir::SELECTION, line)
    }

    /// Adds a line an event to `events.jsonl`.
    pub(super) fn events(&mut self, events: &[Event]) -> Result<(), RunError> {
        for event in events {
            let line = serde_json::to_string(event).map_err(|error| RunError::Device(error.to_string()))?;
            self.log(run_dir::EVENTS, &line)?;
        }
        Ok(())
    }

    /// Adds a line to one of [`run_dir::LOGS`].
    fn log(&mut self, name: &'static str, line: &str) -> Result<(), RunError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let path = dir.join(name);
        let out = match self.logs.entry(name) {
            Entry::Occupied(out) => out.into_mut(),
            Entry::Vacant(place) => place.insert(append(&path)?),
        };
        writeln!(out, "{line}").map_err(|error| file(&path, &error))
    }

    /// The checkpoint that the run goes on from, if it does.
    pub(super) fn past(&self) -> Option<&Checkpoints> {
        self.checkpoints.as_ref().filter(|checkpoints| checkpoints.is_resumed())
    }

    /// Cuts the files of a run that goes on back to the rounds of its checkpoint.
    pub(super) fn cut(&mut self, records: &[RoundRecord]) -> Result<(), RunError> {
        let (Some(dir), Some(past)) = (&self.dir, self.past()) else { return Ok(()) };
        let mut logs = BTreeMap::new();
        for name in run_dir::LOGS.iter().copied() {
            let (path, length) = (dir.join(name), past.log_length(name));
            cut(&path, length)?;
            if length.is_some() {
                // The next checkpoint counts it, whether or not there is more to say until then.
                logs.insert(name, append(&path)?);
            }
        }
        let path = dir.join(run_dir::ROUNDS);
        self.rounds = Some(RoundsCsv::continued(&path, records).map_err(|error| file(&path, &error))?);
        self.logs = logs;
        Ok(())
    }

    /// Says that these clients have taken part in a round.
    pub(super) fn trained(&mut self, clients: &[ClientId]) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.trained(clients);
        }
    }

    /// Writes a checkpoint if one is due, or in any case; whether it has.
    pub(super) fn checkpoint<B: Backend>(
        &mut self,
        config: &CheckpointConfig,
        in_any_case: bool,
        snapshot: &Snapshot<'_, B>,
    ) -> Result<bool, RunError> {
        let Some(checkpoints) = &mut self.checkpoints else { return Ok(false) };
        if !config.enabled || !(in_any_case || checkpoints.is_due(config.every_seconds)) {
            return Ok(false);
        }
        let mut lengths = BTreeMap::new();
        for (name, log) in &self.logs {
            // A line that the checkpoint counts must not be lost with the power.
            let length = log.sync_data().and_then(|()| log.metadata());
            let length = length.map_err(|error| file(&self.path.join(name), &error))?.len();
            lengths.insert((*name).to_owned(), length);
        }
        checkpoints.write(snapshot, lengths)?;
        Ok(true)
    }

    /// Writes particles, predictions and the summary; the checkpoint has served its purpose then, but for more rounds.
    pub(super) fn finish<B: Backend>(
        &mut self,
        config: &CheckpointConfig,
        outcome: &Outcome<B>,
    ) -> Result<(), RunError> {
        let Some(dir) = &self.dir else { return Ok(()) };
        dir.write(run_dir::PARTICLES, &to_safetensors(&outcome.particles)?).map_err(directory)?;
        let mut uncertainty = None;
        match &outcome.predicted {
            Predicted::Classes { log_probs, labels } => {
                let path = dir.join(run_dir::PREDICTIONS);
                let predictions = log_probs.predictions(labels).map_err(|error| file(&path, &error))?;
                csv::write_predictions(&path, &predictions).map_err(output)?;
                let summary = UncertaintySummary::new(log_probs, labels).map_err(|error| file(&path, &error))?;
                let rows: String = summary.row_mutual_information.iter().map(|mi| format!("{mi}\n")).collect();
                dir.write(run_dir::UNCERTAINTY, format!("mutual_information\n{rows}").as_bytes()).map_err(directory)?;
                uncertainty = Some(summary);
            }
            Predicted::Real { predictions, scale } => {
                let path = dir.join(run_dir::PREDICTIONS);
                let original = predictions.original_scale(*scale).map_err(|error| file(&path, &error))?;
                csv::write_regression(&path, &original).map_err(output)?;
            }
            Predicted::Density { .. } => {}
        }
        if let Some((_, scores)) = &outcome.personal {
            dir.write(run_dir::CLIENTS, clients_csv(scores).as_bytes()).map_err(directory)?;
            if scores.pooled().accuracy().is_some() {
                let bins = csv::bins_csv(&scores.pooled().bins());
                dir.write(run_dir::CLIENT_BINS, bins.as_bytes()).map_err(directory)?;
            }
        }
        let bytes = |of: fn(&RoundRecord) -> u64| outcome.rounds.iter().map(of).sum::<u64>().to_string();
        let mut facts = self.facts.clone();
        facts.push(("rounds".into(), outcome.rounds.len().to_string()));
        facts.push(("seconds".into(), format!("{:.1}", outcome.seconds)));
        facts.push(("uplink bytes".into(), bytes(|round| round.uplink_bytes)));
        facts.push(("downlink bytes".into(), bytes(|round| round.downlink_bytes)));
        let point = |record: &RoundRecord| RoundPoint {
            round: record.round,
            accuracy: record.metric("accuracy"),
            nll: record.metric("nll"),
            ece: record.metric("ece"),
            rmse: record.metric("rmse"),
        };
        let summary = Summary {
            schema_version: SCHEMA_VERSION,
            name: self.name.clone(),
            evaluation: outcome.evaluation.clone(),
            uncertainty,
            personal: outcome.personal.as_ref().map(|(results, _)| results.clone()),
            facts,
            rounds: outcome.rounds.iter().map(point).collect(),
            partition: self.partition.clone(),
        };
        dir.write(run_dir::SUMMARY, &to_json(&summary)?).map_err(directory)?;
        match &mut self.checkpoints {
            Some(checkpoints) => checkpoints.finish(config.keep),
            None => Ok(()),
        }
    }
}

/// A file to add lines to, new or not.
fn append(path: &Path) -> Result<File, RunError> {
    File::options().create(true).append(true).open(path).map_err(|error| file(path, &error))
}

/// Cuts a file to its first bytes; without a length it was not there. One that is shorter stays as it is.
fn cut(path: &Path, length: Option<u64>) -> Result<(), RunError> {
    let cut = match length {
        None if !path.exists() => Ok(()),
        None => std::fs::remove_file(path),
        Some(length) => File::options().write(true).open(path).and_then(|file| match file.metadata()?.len() > length {
            true => file.set_len(length),
            false => Ok(()),
        }),
    };
    cut.map_err(|error| file(path, &error))
}

/// A finished run, read back.
#[derive(Debug)]
pub struct Finished {
    /// Its directory.
    pub path: PathBuf,
    /// The resolved configuration, as text.
    pub config_toml: String,
    /// `summary.json`.
    pub summary: Summary,
    /// `model.json`.
    pub card: ModelCard,
}

impl Finished {
    /// Reads the small files of a run.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let text = |name: &str| {
            let file = path.join(name);
            read_text(&file).map_err(|error| {
                RunError::Config(format!("{}: {error}; is this the directory of a finished run?", file.display()))
            })
        };
        fn parse<T: for<'a> Deserialize<'a>>(path: &Path, name: &str, text: &str) -> Result<T, RunError> {
            serde_json::from_str(text)
                .map_err(|error| RunError::Config(format!("{}: {error}", path.join(name).display())))
        }
        let mut summary: Summary = parse(path, run_dir::SUMMARY, &text(run_dir::SUMMARY)?)?;
        let card: ModelCard = parse(path, run_dir::MODEL, &text(run_dir::MODEL)?)?;
        let in_card = |problem| RunError::Config(format!("{}: {problem}", path.join(run_dir::MODEL).display()));
        card.check().map_err(in_card)?;
        if let (Some(uncertainty), Ok(rows)) = (&mut summary.uncertainty, text(run_dir::UNCERTAINTY)) {
            uncertainty.row_mutual_information = rows.lines().skip(1).filter_map(|row| row.parse().ok()).collect();
        }
        Ok(Self { path: path.to_owned(), config_toml: text(run_dir::CONFIG)?, summary, card })
    }

    /// An empty data set of the shape that the model was trained on.
    pub fn shape(&self) -> Dataset {
        let targets = match &self.card.classes {
            Some(names) => Targets::Classes { labels: Vec::new(), names: names.clone() },
            None => Targets::Real { values: Vec::new() },
        };
        Dataset {
            name: self.card.data.clone(),
            features: Array2::zeros((0, self.card.features)),
            feature_shape: self.card.row_shape(),
            feature_names: self.card.feature_names.clone(),
            targets,
            clients: None,
        }
    }

    /// The particles after the last round.
    pub fn particles<B: Backend>(&self, model: &dyn Model, session: &Session<B>) -> Result<Particles<B>, RunError> {
        let path = self.path.join(run_dir::PARTICLES);
        let wrong = |reason: String| RunError::Config(format!("{}: {reason}", path.display()));
        let bytes = read_whole(&path).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
        from_safetensors(&tensors, model.layout(), session).map_err(wrong)
    }
}

/// One tensor a block, `[N, ...]`, under the block's name.
fn to_safetensors<B: Backend>(particles: &Particles<B>) -> Result<Vec<u8>, RunError> {
    let layout = particles.layout();
    let mut blocks = Vec::with_capacity(layout.blocks().len());
    for (tensor, block) in particles.blocks().iter().zip(layout.blocks()) {
        let bytes: Vec<u8> = if particles.dtype() == DType::F64 {
            tensor.clone().try_into_vec_as::<f64>()?.iter().flat_map(|value| value.to_le_bytes()).collect()
        } else {
            tensor.clone().try_into_vec_as::<f32>()?.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let shape: Vec<usize> = [particles.count()].iter().chain(&block.shape).copied().collect();
        blocks.push((block.name.clone(), shape, bytes));
    }
    let dtype = if particles.dtype() == DType::F64 { Dtype::F64 } else { Dtype::F32 };
    let views = blocks.iter().map(|(name, shape, bytes)| {
        let view = TensorView::new(dtype, shape.clone(), bytes);
        view.map(|view| (name.clone(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>().map_err(|error| RunError::Device(error.to_string()))?;
    let metadata = HashMap::from([("fedstein".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(|error| RunError::Device(error.to_string()))
}

fn from_safetensors<B: Backend>(
    tensors: &SafeTensors,
    layout: &std::sync::Arc<Layout>,
    session: &Session<B>,
) -> Result<Particles<B>, String> {
    let mut blocks = Vec::with_capacity(layout.blocks().len());
    let mut count = None;
    for block in layout.blocks() {
        let view = tensors.tensor(&block.name).map_err(|error| error.to_string())?;
        let (rows, shape) =
            view.shape().split_first().ok_or_else(|| format!("tensor \"{}\" is a number", block.name))?;
        if shape != block.shape || *count.get_or_insert(*rows) != *rows || *rows == 0 {
            return Err(format!("tensor \"{}\" is {:?}, not [N, {:?}]", block.name, view.shape(), block.shape));
        }
        let values: Vec<f64> = match view.dtype() {
            Dtype::F32 => {
                view.data().chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect()
            }
            Dtype::F64 => {
                let number = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
                view.data().chunks_exact(8).map(number).collect()
            }
            other => return Err(format!("tensor \"{}\" is {other:?}, not F32 or F64", block.name)),
        };
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            return Err(format!("tensor \"{}\": number {at} is {}, not finite", block.name, values[at]));
        }
        let matrix = Array2::from_shape_vec((*rows, block.size()), values).map_err(|error| error.to_string())?;
        blocks.push(session.matrix(&matrix));
    }
    Ok(Particles::from_blocks(blocks, layout.clone()))
}

/// A line a client: its test rows and what its own predictor is worth on them; blank where undefined.
fn clients_csv(scores: &PersonalScores) -> String {
    let line = |(client, scores): (usize, &ClientScores)| {
        let numbers = [scores.accuracy(), scores.nll(), scores.ece(), scores.mce(), scores.brier(), scores.rmse()];
        let cells = numbers.map(|value| value.map_or_else(String::new, |value| value.to_string()));
        format!("{client},{},{}\n", scores.rows(), cells.join(","))
    };
    let lines: String = scores.clients().iter().enumerate().map(line).collect();
    format!("client,rows,accuracy,nll,ece,mce,brier,rmse\n{lines}")
}

/// Names of the classes, if there are classes.
fn class_names(targets: &Targets) -> Option<Vec<String>> {
    match targets {
        Targets::Classes { names, .. } => Some(names.clone()),
        Targets::Real { .. } | Targets::None { .. } => None,
    }
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, RunError> {
    let text = serde_json::to_string_pretty(&json!(value)).map_err(|error| RunError::Device(error.to_string()))?;
    Ok(format!("{text}\n").into_bytes())
}

fn directory(error: RunDirError) -> RunError {
    if error.is_usage() {
        return RunError::Config(error.to_string());
    }
    RunError::Output(error.to_string())
}

fn file(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Output(format!("{}: {error}", path.display()))
}

/// The message of a report's file names it already.
fn output(error: ReportError) -> RunError {
    RunError::Output(error.to_string())
}

/// Writes a text file whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), RunError> {
    write_atomic(path, text.as_bytes()).map_err(output)
}
