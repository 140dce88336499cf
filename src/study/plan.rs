//! From a study to a figure: one series for each compared variant, one panel for each setting of the other axes and each
//! metric. All mistakes that show without the data are found here; [`super::tables`] finds those in tables.

use std::collections::{BTreeMap, BTreeSet};

use toml::Table;

use super::axes::Axis;
use super::file::Study;
use super::keys::Keys;
use crate::datasets::source::FILE_KEYS;
use crate::error::RunError;
use crate::experiment::Config;
use crate::experiment::config::schema;
use crate::experiment::schema::{ConfigError, Given, list, places};
use crate::metrics::Metric;
use crate::reproduce::curve::label;
use crate::reproduce::figure::{Along, Claim, Panel, Seeds, Series, Statistic, Term};
use crate::reproduce::grid::Run;
use crate::reproduce::{Figure, Grid, Scale, Wanted};

/// The metrics of a study that names none, by task.
const OF_CLASSES: [&str; 4] = ["accuracy", "nll", "ece", "brier"];
const OF_TARGETS: [&str; 4] = ["rmse", "nll", "crps", "coverage_90"];
const OF_TOYS: [&str; 1] = ["kl"];

/// A study whose runs are known and valid.
#[derive(Debug)]
pub struct Plan<'s> {
    /// The study.
    pub study: &'s Study,
    /// The reported metrics.
    pub metrics: Vec<String>,
    /// The settings: for each of the axes that are not compared, in their order, the index of a variant.
    pub settings: Vec<Vec<usize>>,
    /// The figure that the engine carries out.
    pub figure: Figure,
    /// Its runs.
    pub grid: Grid,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// What the command line chooses.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The number of seeds; `None` for the study's.
    pub seeds: Option<u64>,
    /// The backend; `None` for that of the configs.
    pub backend: Option<String>,
    /// The name of the only runs, or a part of the names of several.
    pub only: Option<String>,
}

impl<'s> Plan<'s> {
    /// Plans the runs of a study.
    ///
    /// # Errors
    /// A config is invalid, a key has no effect, two variants are the same, no run has one of the metrics, or a table
    /// cannot be read.
    pub fn new(study: &'s Study, chosen: Chosen) -> Result<Self, ConfigError> {
        let Chosen { seeds, backend, only } = chosen;
        not_too_many(study, seeds.unwrap_or(study.seeds))?;
        let settings = settings(study);
        let wanted = Wanted { scale: Scale::Full, seeds: seeds.map(|seeds| 1..=seeds), backend, only };
        let checked = Checked::of(study, &settings, &Wanted { only: None, ..wanted.clone() })?;
        let metrics = checked.metrics()?;
        let figure = figure(study, &settings, &metrics);
        let grid = Grid::new(&figure, &wanted).stamped(concat!("fedstein ", env!("CARGO_PKG_VERSION")));
        let grid = grid.with_tables(&figure).map_err(|error| error.placed(&study.file))?;
        Ok(Self { study, metrics, notes: checked.notes(), settings, figure, grid })
    }

    /// An error about the rows of a run, at the file and the line that wrote the key which it names, else that of the table.
    pub fn located(&self, run: &Run, error: &RunError) -> ConfigError {
        let message = error.to_string();
        let cell = &self.grid.cells[run.cell];
        let place = self.place(cell.panel / self.metrics.len(), cell.series);
        let keys = || layers(self.study, &place).flat_map(Keys::iter);
        let is_of_table = |key: &&Given| {
            let is_table = key.path.strip_prefix("data.").is_some_and(|key| FILE_KEYS.contains(&key));
            let path = key.value.as_str().filter(|path| is_table && !path.is_empty());
            path.and_then(|path| std::path::absolute(path).ok())
                .is_some_and(|path| message.contains(&path.display().to_string()))
        };
        let written = places(&message, keys()).or_else(|| Some(keys().find(is_of_table)?.at.clone()));
        ConfigError::conflict(message).placed(&written.unwrap_or_else(|| named(self.study, &place)))
    }

    /// The index of the cell of a variant in a setting.
    pub fn cell(&self, setting: usize, variant: usize) -> usize {
        setting * self.metrics.len() * self.study.compared().variants.len() + variant
    }

    /// The index of the panel of a metric in a setting.
    pub fn panel(&self, setting: usize, metric: usize) -> usize {
        setting * self.metrics.len() + metric
    }

    /// The name of a setting; empty where nothing else varies.
    pub fn setting(&self, setting: usize) -> String {
        setting_name(self.study, &self.settings[setting])
    }

    /// The index of a run's variant in each axis.
    pub fn place(&self, setting: usize, variant: usize) -> Vec<usize> {
        let mut place = self.settings[setting].clone();
        place.insert(self.study.compared, variant);
        place
    }

    /// The names of a run's variants, in the order of the axes.
    pub fn names(&self, setting: usize, variant: usize) -> Vec<&'s str> {
        let name = |(axis, variant): (&'s Axis, usize)| axis.variants[variant].name.as_str();
        self.study.axes.iter().zip(self.place(setting, variant)).map(name).collect()
    }
}

/// The largest number of runs: a typing error exceeds it, and all of them are in memory.
const MOST_RUNS: u64 = 100_000;

fn not_too_many(study: &Study, seeds: u64) -> Result<(), ConfigError> {
    let variants = study.axes.iter().map(|axis| axis.variants.len() as u64);
    let runs = variants.fold(seeds, u64::saturating_mul);
    if runs <= MOST_RUNS {
        return Ok(());
    }
    Err(ConfigError::conflict(format!(
        "{}: every combination of variants with every seed is {runs} runs; a study has at most {MOST_RUNS}",
        study.file
    )))
}

/// All combinations of the variants of the axes that are not compared, the last axis fastest.
fn settings(study: &Study) -> Vec<Vec<usize>> {
    study.others().fold(vec![Vec::new()], |settings, axis| {
        let variants = 0..study.axes[axis].variants.len();
        let longer = |setting: Vec<usize>| variants.clone().map(move |variant| [&setting[..], &[variant]].concat());
        settings.into_iter().flat_map(longer).collect()
    })
}

fn names<'s>(study: &'s Study, setting: &[usize]) -> Vec<&'s str> {
    let name = |(axis, variant): (usize, &usize)| study.axes[axis].variants[*variant].name.as_str();
    study.others().zip(setting).map(name).collect()
}

/// The name of a setting, such as `labels=2/data=north`; empty where nothing else varies.
fn setting_name(study: &Study, setting: &[usize]) -> String {
    let axes = study.others().map(|axis| study.axes[axis].name.as_str());
    let named = axes.zip(names(study, setting)).map(|(axis, variant)| format!("{axis}={variant}"));
    named.collect::<Vec<_>>().join("/")
}

fn figure(study: &Study, settings: &[Vec<usize>], metrics: &[String]) -> Figure {
    let series = study.compared().variants.iter().map(|variant| Series {
        id: variant.name.clone(),
        name: variant.name.clone(),
        set: Table::new(),
        quick: Table::new(),
        middle: Table::new(),
        flat: false,
        round: None,
        axis: variant.keys.table(),
    });
    let panels = settings.iter().flat_map(|setting| metrics.iter().map(|metric| panel(study, setting, metric)));
    let claim = |claim: &super::claims::Claim, setting: usize| Claim {
        what: claim.text.clone(),
        source: String::new(),
        terms: claim
            .variants
            .iter()
            .map(|variant| Term { panel: setting * metrics.len(), series: Some(*variant), at: None })
            .collect(),
        order: claim.order,
        metric: claim.metric.clone(),
        statistic: Statistic::Last,
        note: String::new(),
    };
    Figure {
        id: study.name.clone(),
        title: study.title.clone(),
        paper: study.title.clone(),
        choices: Vec::new(),
        seeds: Seeds { full: study.seeds, middle: 1, quick: 1 },
        base: study.base.table(),
        quick: Table::new(),
        middle: None,
        series: series.collect(),
        panels: panels.collect(),
        targets: Vec::new(),
        claims: study
            .claims
            .iter()
            .flat_map(|text| (0..settings.len()).map(move |setting| claim(text, setting)))
            .collect(),
        also: Vec::new(),
    }
}

fn panel(study: &Study, setting: &[usize], metric: &str) -> Panel {
    let names = setting_name(study, setting);
    let title = if names.is_empty() { label(metric) } else { format!("{}: {names}", label(metric)) };
    Panel {
        id: if names.is_empty() { study.name.clone() } else { names },
        title,
        x: Along::Round,
        x_label: None,
        log_x: false,
        y: metric.to_owned(),
        log_y: false,
        y_range: None,
        set: study.set.table(),
        quick: Table::new(),
        middle: Table::new(),
        axes: study.others().zip(setting).map(|(axis, at)| study.axes[axis].variants[*at].keys.table()).collect(),
        series: (0..study.compared().variants.len()).collect(),
        overrides: BTreeMap::new(),
        sweep: None,
        cases: Vec::new(),
        against: None,
    }
}

/// The configs of a study, each valid: one for each setting and variant.
struct Checked<'s> {
    study: &'s Study,
    /// For each cell the index of its variant, by axis.
    places: Vec<Vec<usize>>,
    configs: Vec<(Config, String)>,
}

impl<'s> Checked<'s> {
    fn of(study: &'s Study, settings: &[Vec<usize>], wanted: &Wanted) -> Result<Self, ConfigError> {
        let figure = figure(study, settings, &["nll".to_owned()]);
        let grid = Grid::new(&figure, wanted);
        let mut checked = Self { study, places: Vec::new(), configs: Vec::new() };
        for cell in &grid.cells {
            let mut place = settings[cell.panel].clone();
            place.insert(study.compared, cell.series);
            let config = grid.config(&figure, cell, 1);
            checked.configs.push(config.map_err(|error| located(study, &place, error))?);
            checked.places.push(place);
        }
        checked.every_key_has_an_effect(&grid)?;
        checked.no_variant_twice()?;
        Ok(checked)
    }

    /// Checks that every key of `[set]` is used by a run, and every key of a variant by one of its own.
    fn every_key_has_an_effect(&self, grid: &Grid) -> Result<(), ConfigError> {
        self.have_an_effect(grid, &self.study.set, |_| true)?;
        for (axis, of) in self.study.axes.iter().enumerate() {
            for (at, variant) in of.variants.iter().enumerate() {
                self.have_an_effect(grid, &variant.keys, |place| place[axis] == at)?;
            }
        }
        Ok(())
    }

    /// Checks that every key is used by one of these runs.
    fn have_an_effect(&self, grid: &Grid, keys: &Keys, of: impl Fn(&[usize]) -> bool) -> Result<(), ConfigError> {
        let cells = || (0..self.places.len()).filter(|cell| of(&self.places[*cell]));
        let unused = keys.iter().find(|key| !cells().any(|cell| grid.cells[cell].sets(&key.path)));
        let (Some(key), Some(first)) = (unused, cells().next()) else { return Ok(()) };
        let (section, name) = key.path.split_once('.').unwrap_or_default();
        let table: Table = self.configs[first].1.parse().unwrap_or_default();
        let kind = table.get(section).and_then(|keys| keys.get("kind")?.as_str());
        let users = schema().section(section).map(|section| section.users(name)).unwrap_or_default();
        Err(ConfigError::NotUsed {
            at: key.at.clone(),
            path: key.path.clone(),
            section: section.into(),
            kind: kind.unwrap_or_default().into(),
            kinds: list(&users),
        })
    }

    /// Checks that no two variants of an axis have the same config in all settings.
    fn no_variant_twice(&self) -> Result<(), ConfigError> {
        for (axis, of) in self.study.axes.iter().enumerate() {
            let texts = |variant: usize| -> Vec<&str> {
                let cells = self.places.iter().zip(&self.configs).filter(move |(place, _)| place[axis] == variant);
                cells.map(|(_, (_, text))| text.as_str()).collect()
            };
            for late in 0..of.variants.len() {
                if let Some(early) = (0..late).find(|early| texts(*early) == texts(late)) {
                    let [early, late] = [early, late].map(|variant| of.variants[variant].name.as_str());
                    let problem = format!(
                        "`{early}` and `{late}` are the same experiment: with all defaults written out, none of their keys differs"
                    );
                    return Err(self.study.wrong(&format!("vary.{}", of.name), &problem));
                }
            }
        }
        Ok(())
    }

    /// The reported metrics, each of which some run has.
    fn metrics(&self) -> Result<Vec<String>, ConfigError> {
        let mut tasks = BTreeSet::new();
        for (config, _) in &self.configs {
            let data = config.data()?.properties();
            tasks.insert(if data.is_toy() {
                Task::Toy
            } else {
                if data.is_regression() { Task::Targets } else { Task::Classes }
            });
        }
        let personal = self.configs.iter().any(|(config, _)| config.evaluation.personal);
        let claimed = self.study.claims.iter().map(|claim| ("claims", &claim.metric));
        for (key, metric) in self.study.metrics.iter().map(|metric| ("metrics", metric)).chain(claimed) {
            if metric.starts_with("personal_") && !personal {
                let problem =
                    format!("`{metric}` is of the clients' personal predictors; it needs `evaluation.personal = true`");
                return Err(self.study.wrong(key, &problem));
            }
            let Some(known) = Metric::of_column(metric) else { continue };
            let has = |task: &Task| match task {
                Task::Classes => known.classes.is_some(),
                Task::Targets => known.targets.is_some(),
                Task::Toy => known.key == "kl",
            };
            if !tasks.iter().any(has) {
                let task = if known.classes.is_some() { "a classification" } else { "a regression" };
                let task = if known.key == "kl" { "a toy density" } else { task };
                let problem = format!("`{metric}` is a metric of {task}, and no run of the study is one");
                return Err(self.study.wrong(key, &problem));
            }
        }
        Ok(match self.study.metrics.is_empty() {
            true => usual_metrics(&tasks),
            false => self.study.metrics.clone(),
        })
    }

    /// What a reader should know of the grid.
    fn notes(&self) -> Vec<String> {
        let different: BTreeSet<&str> = self.configs.iter().map(|(_, text)| text.as_str()).collect();
        let (all, different) = (self.configs.len(), different.len());
        let note = format!(
            "{different} of the {all} combinations of variants are different experiments: a key that a method does not use \
             changes nothing for it"
        );
        if different < all { vec![note] } else { Vec::new() }
    }
}

/// The metrics of a study that names none.
fn usual_metrics(tasks: &BTreeSet<Task>) -> Vec<String> {
    let of = |task: &Task| match task {
        Task::Classes => &OF_CLASSES[..],
        Task::Targets => &OF_TARGETS[..],
        Task::Toy => &OF_TOYS[..],
    };
    let mut metrics: Vec<String> = Vec::new();
    for metric in tasks.iter().flat_map(of) {
        if !metrics.iter().any(|known| known == metric) {
            metrics.push((*metric).to_owned());
        }
    }
    metrics
}

/// What a run predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Classes,
    Targets,
    Toy,
}

/// The keys that a cell's config is made of, those that count first.
fn layers<'s>(study: &'s Study, place: &[usize]) -> impl Iterator<Item = &'s Keys> {
    let variants = study.axes.iter().zip(place).map(|(axis, variant)| &axis.variants[*variant].keys);
    variants.chain([&study.set, &study.base])
}

/// The study's file and the names of a cell's variants.
fn named(study: &Study, place: &[usize]) -> String {
    let variants = study.axes.iter().zip(place).map(|(axis, variant)| (axis, &axis.variants[*variant]));
    let names: Vec<String> = variants.map(|(axis, variant)| format!("{}={}", axis.name, variant.name)).collect();
    format!("{}, {}", study.file, names.join(" "))
}

/// An error about a cell's config at the file and line that wrote the key.
fn located(study: &Study, place: &[usize], error: ConfigError) -> ConfigError {
    let written = match &error {
        ConfigError::Conflict { problem, .. } => places(problem, layers(study, place).flat_map(Keys::iter)),
        other => other.key().and_then(|key| layers(study, place).find_map(|keys| keys.place(key))).map(str::to_owned),
    };
    error.placed(&written.unwrap_or_else(|| named(study, place)))
}
