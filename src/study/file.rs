//! Reads a study's file. `docs/study.md` describes the format.

use std::path::Path;

use fedstein_schema::Accepts::{Text, TextList};
use fedstein_schema::Literal::{Int as I, Text as T, Texts};
use toml::{Table, Value};

use super::axes::{Axis, VARY, axes, or_near};
use super::claims::Claim;
use super::columns::OF_POOLED;
use super::keys::Keys;
use crate::experiment::config::schema;
use crate::experiment::schema::{ConfigError, Key, Lines, Overrides, Source, did_you_mean, key, list, parse, whole};
use crate::report::files::{quoted, read_text};
use crate::reproduce::figure::known_metric;
use crate::reproduce::verdict::ENOUGH_SEEDS;

/// A study: variants of an experiment, and what is compared.
#[derive(Clone, Debug)]
pub struct Study {
    /// The name: the stem of the file's name.
    pub name: String,
    /// The file's name in messages.
    pub file: String,
    /// The file's text.
    pub text: String,
    /// The heading of tables and pictures.
    pub title: String,
    /// The number of seeds: 1, 2, ….
    pub seeds: u64,
    /// The metrics; empty for those of the task.
    pub metrics: Vec<String>,
    /// The keys of the config that all runs start from.
    pub base: Keys,
    /// The keys that all runs share, over those of the base.
    pub set: Keys,
    /// What varies, in the order of the file: at least one axis.
    pub axes: Vec<Axis>,
    /// The axis whose variants are compared with each other.
    pub compared: usize,
    /// The variant of that axis from which differences are taken.
    pub baseline: Option<usize>,
    /// The axis whose variants are a sample of more, over which the tables have means; `None` without one.
    pub pooled: Option<usize>,
    /// Orders that the study is to check.
    pub claims: Vec<Claim>,
    lines: Lines,
}

const TITLE: Key = key("title", Text { may_be_empty: true }, T(""), "The heading of tables and pictures.");
const BASE: Key = key("base", Text { may_be_empty: false }, T(""), "The config from which all runs start.");
const SEEDS: Key = key("seeds", whole(1, 1_000_000), I(5), "Every variant is run with the seeds 1 to N.");
const METRICS: Key =
    key("metrics", TextList { example: "[\"accuracy\", \"nll\"]" }, Texts(&[]), "The metrics that are reported.");
const BASELINE: Key =
    key("baseline", Text { may_be_empty: false }, T(""), "The variant from which differences are taken.");
const POOLED: Key = key(
    "pooled",
    Text { may_be_empty: false },
    T(""),
    "An axis whose variants are a sample of more, such as clients: the tables have means over it.",
);
const CLAIMS: Key = key(
    "claims",
    TextList { example: "[\"newton better than fedavg in nll\"]" },
    Texts(&[]),
    "Orders that the study is to check.",
);

/// The keys at the top of the file.
const TOP: [Key; 7] = [TITLE, BASE, SEEDS, METRICS, BASELINE, POOLED, CLAIMS];

/// The table of keys that all runs share.
const SET: &str = "set";

/// Whether a text is that of a study, right or wrong: a config has no `[vary]`.
pub fn is_study(text: &str) -> bool {
    text.parse::<Table>().is_ok_and(|table| table.contains_key(VARY))
}

impl Study {
    /// Reads a study and the config that it starts from.
    ///
    /// # Errors
    /// A file cannot be read, or the first key of it that is unknown, does not accept its value or contradicts another.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Read { path: path.to_path_buf(), source };
        let text = read_text(path).map_err(unreadable)?;
        let file = path.display().to_string();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, file, text, path.parent().unwrap_or(Path::new("")))
    }

    fn parse(name: String, file: String, text: String, directory: &Path) -> Result<Self, ConfigError> {
        let source = Source { name: &file, text: &text };
        let (table, lines) = (parse(source)?, Lines::new(source));
        for (key, value) in &table {
            top_level(key, value, &lines)?;
        }
        let word = |key: &Key| table.get(key.name).and_then(Value::as_str).map(str::to_owned);
        let words = |key: &Key| -> Vec<String> {
            let items = table.get(key.name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
        };
        let seeds = table.get(SEEDS.name).or(SEEDS.default_for("").as_ref()).and_then(Value::as_integer);
        let base = word(&BASE).map(|path| base(&directory.join(path), &lines)).transpose()?.unwrap_or_default();
        let empty = Table::new();
        let set = Keys::of(table.get(SET).and_then(Value::as_table).unwrap_or(&empty), &|path| {
            lines.at(&format!("{SET}.{path}"))
        });
        set.check()?;
        let axes = axes(table.get(VARY).and_then(Value::as_table).unwrap_or(&empty), &lines)?;
        let mut study = Self {
            title: word(&TITLE).filter(|title| !title.is_empty()).unwrap_or_else(|| name.clone()),
            seeds: seeds.and_then(|seeds| u64::try_from(seeds).ok()).unwrap_or(1),
            metrics: words(&METRICS),
            base,
            set,
            axes,
            compared: 0,
            baseline: None,
            pooled: None,
            claims: Vec::new(),
            name,
            file,
            text,
            lines,
        };
        study.no_key_twice()?;
        study.metrics_exist()?;
        if let Some(baseline) = word(&BASELINE) {
            (study.compared, study.baseline) = study.variant(&baseline).map(|(axis, variant)| (axis, Some(variant)))?;
        }
        study.pooled = word(&POOLED).map(|name| study.sample(&name)).transpose()?;
        let claims = words(&CLAIMS);
        let claim = |text: &String| {
            let wrong = |problem: String| study.wrong(CLAIMS.name, &format!("\"{}\": {problem}", quoted(text)));
            Claim::parse(study.compared(), text).map_err(wrong)
        };
        study.claims = claims.iter().map(claim).collect::<Result<_, _>>()?;
        Ok(study)
    }

    /// The error about a key of the file.
    pub fn wrong(&self, key: &str, problem: &str) -> ConfigError {
        ConfigError::conflict(format!("{}: `{key}`: {problem}", self.lines.at(key)))
    }

    /// The axis whose variants are compared.
    pub fn compared(&self) -> &Axis {
        &self.axes[self.compared]
    }

    /// The indices of the other axes.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let compared = self.compared;
        (0..self.axes.len()).filter(move |axis| *axis != compared)
    }

    /// The variant that the baseline names: `variant`, or `axis=variant`.
    fn variant(&self, named: &str) -> Result<(usize, usize), ConfigError> {
        let (of, name) = match named.split_once('=') {
            Some((axis, name)) if self.axes.iter().any(|known| known.name == axis) => (Some(axis), name),
            _ => (None, named),
        };
        let axes = || self.axes.iter().enumerate().filter(|(_, axis)| of.is_none_or(|of| of == axis.name));
        let found: Vec<(usize, usize)> = axes()
            .filter_map(|(at, axis)| Some((at, axis.variants.iter().position(|variant| variant.name == name)?)))
            .collect();
        match found[..] {
            [found] => Ok(found),
            [] => {
                let names: Vec<&str> = axes().flat_map(|(_, axis)| axis.names()).collect();
                let problem = format!("there is no variant `{}`{}", quoted(name), or_near(name, &names));
                Err(self.wrong(BASELINE.name, &problem))
            }
            [(first, _), ..] => {
                let problem = format!(
                    "several axes have a variant `{}`; name one, such as \"{}={}\"",
                    quoted(name),
                    self.axes[first].name,
                    quoted(name)
                );
                Err(self.wrong(BASELINE.name, &problem))
            }
        }
    }

    /// The axis that `pooled` names.
    fn sample(&self, named: &str) -> Result<usize, ConfigError> {
        let names: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
        let wrong = |problem: String| self.wrong(POOLED.name, &problem);
        let Some(at) = names.iter().position(|name| *name == named) else {
            return Err(wrong(format!("there is no axis `{}`{}", quoted(named), or_near(named, &names))));
        };
        if let Some(name) = names.iter().find(|name| **name != named && OF_POOLED.contains(name)) {
            return Err(wrong(format!("pooled.csv has a column `{name}`; give the axis of this name another one")));
        }
        let variants = self.axes[at].variants.len();
        if variants < ENOUGH_SEEDS {
            let has = if variants == 1 { "one variant".to_owned() } else { format!("{variants} variants") };
            return Err(wrong(format!("[vary.{named}] has {has}; a sample has {ENOUGH_SEEDS} or more")));
        }
        if self.baseline.is_some() && self.compared == at {
            let problem =
                format!("the baseline is one of [vary.{named}]; name a variant of another axis, or no baseline");
            return Err(wrong(problem));
        }
        Ok(at)
    }

    /// Checks that no two axes set the same key: one of them would have no effect.
    fn no_key_twice(&self) -> Result<(), ConfigError> {
        for (at, axis) in self.axes.iter().enumerate() {
            for written in axis.variants.iter().flat_map(|variant| variant.keys.iter()) {
                let sets = |other: &&Axis| other.variants.iter().any(|v| v.keys.place(&written.path).is_some());
                if let Some(other) = self.axes[..at].iter().find(sets) {
                    return Err(ConfigError::conflict(format!(
                        "{}: `{}` varies in [vary.{}] and in [vary.{}]; one of them would have no effect",
                        written.at, written.path, other.name, axis.name
                    )));
                }
            }
        }
        Ok(())
    }

    fn metrics_exist(&self) -> Result<(), ConfigError> {
        for (at, metric) in self.metrics.iter().enumerate() {
            known_metric(metric).map_err(|problem| self.wrong(METRICS.name, &problem))?;
            if self.metrics[..at].contains(metric) {
                return Err(self.wrong(METRICS.name, &format!("`{metric}` stands there twice")));
            }
        }
        Ok(())
    }
}

/// Checks a key at the top of the file.
fn top_level(name: &str, value: &Value, lines: &Lines) -> Result<(), ConfigError> {
    let refuse = |allowed: &str| ConfigError::Value {
        at: lines.at(name),
        path: name.to_owned(),
        given: quoted(&value.to_string()),
        allowed: allowed.to_owned(),
    };
    if let Some(key) = TOP.iter().find(|key| key.name == name) {
        return key.accepts.check(value).map(|_| ()).map_err(|allowed| refuse(&allowed));
    }
    match (name, value.is_table()) {
        (SET | VARY, true) => return Ok(()),
        (SET, false) => return Err(refuse("a table of keys, [set]")),
        (VARY, false) => return Err(refuse("a table of axes, such as [vary.method.newton]")),
        _ => {}
    }
    let names: Vec<&str> = TOP.iter().map(|key| key.name).collect();
    // A section of a config or one of its first keys.
    let of_runs = schema().section(name).is_some() || schema().keys().any(|(path, _)| path == name);
    let hint = match of_runs {
        true => "; keys of all runs stand in [set]".to_owned(),
        false => did_you_mean(name, names.iter().copied().chain([SET, VARY])),
    };
    Err(ConfigError::UnknownKey {
        at: lines.at(name),
        path: quoted(name),
        hint,
        known: format!("a study takes {}, [set] and [vary.…]", list(&names)),
    })
}

/// Reads the config that all runs start from. Keys that it lacks may follow from the study.
fn base(path: &Path, lines: &Lines) -> Result<Keys, ConfigError> {
    let text = read_text(path).map_err(|error| {
        let (at, path) = (lines.at(BASE.name), path.display());
        ConfigError::conflict(format!("{at}: `base`: cannot read the config `{path}`: {error}"))
    })?;
    let name = path.display().to_string();
    let source = Source { name: &name, text: &text };
    match schema().resolve(source, &Overrides::default()) {
        Ok(_) | Err(ConfigError::Missing { .. }) => {}
        Err(error) => return Err(error),
    }
    let lines = Lines::new(source);
    Ok(Keys::of(&parse(source)?, &|path| lines.at(path)))
}
