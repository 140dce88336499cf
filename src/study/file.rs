//! Reads a study's file. `docs/study.md` describes the format.

use std::path::Path;

use fedstein_schema::Accepts::{Text, TextList};
use fedstein_schema::Literal::{Int as I, Text as T, Texts};
use toml::{Table, Value};

use super::claims::Claim;
use super::keys::Keys;
use super::output::COLUMNS;
use crate::experiment::config::schema;
use crate::experiment::schema::{ConfigError, Key, Lines, Overrides, Source, key, list, nearest, parse, whole};
use crate::report::files::{quoted, read_text};
use crate::reproduce::figure::known_metric;

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
    /// Orders that the study is to check.
    pub claims: Vec<Claim>,
    lines: Lines,
}

/// Something that varies.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its variants: at least one.
    pub variants: Vec<Variant>,
}

/// A value of an axis.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Its keys.
    pub keys: Keys,
}

const TITLE: Key = key("title", Text { may_be_empty: true }, T(""), "The heading of tables and pictures.");
const BASE: Key = key("base", Text { may_be_empty: false }, T(""), "The config from which all runs start.");
const SEEDS: Key = key("seeds", whole(1, 1_000_000), I(5), "Every variant is run with the seeds 1 to N.");
const METRICS: Key =
    key("metrics", TextList { example: "[\"accuracy\", \"nll\"]" }, Texts(&[]), "The metrics that are reported.");
const BASELINE: Key =
    key("baseline", Text { may_be_empty: false }, T(""), "The variant from which differences are taken.");
const CLAIMS: Key = key(
    "claims",
    TextList { example: "[\"newton better than fedavg in nll\"]" },
    Texts(&[]),
    "Orders that the study is to check.",
);

/// The keys at the top of the file.
const TOP: [Key; 6] = [TITLE, BASE, SEEDS, METRICS, BASELINE, CLAIMS];

/// The tables of the file.
const SET: &str = "set";
const VARY: &str = "vary";

/// The keys of an axis of one key.
const KEY: &str = "key";
const VALUES: &str = "values";

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
        let claims = words(&CLAIMS);
        study.claims = claims.iter().map(|text| Claim::parse(&study, text)).collect::<Result<_, _>>()?;
        Ok(study)
    }

    /// The error about a key of the file.
    pub fn wrong(&self, key: &str, problem: &str) -> ConfigError {
        ConfigError::Conflict(format!("{}: `{key}`: {problem}", self.lines.at(key)))
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

    /// Checks that no two axes set the same key: one of them would have no effect.
    fn no_key_twice(&self) -> Result<(), ConfigError> {
        for (at, axis) in self.axes.iter().enumerate() {
            for written in axis.variants.iter().flat_map(|variant| variant.keys.iter()) {
                let sets = |other: &&Axis| other.variants.iter().any(|v| v.keys.place(&written.path).is_some());
                if let Some(other) = self.axes[..at].iter().find(sets) {
                    return Err(ConfigError::Conflict(format!(
                        "{}: `{}` varies in [vary.{}] and in [vary.{}]; one of them would have no effect",
                        written.place, written.path, other.name, axis.name
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

impl Axis {
    /// The names of its variants.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variants.iter().map(|variant| variant.name.as_str())
    }
}

/// The known names, to complete a message about one that is not among them.
pub(super) fn or_near(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; there are {}", list(known)),
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
    let hint = match nearest(name, names.iter().copied().chain([SET, VARY])) {
        _ if of_runs => "; keys of all runs stand in [set]".to_owned(),
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
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
        ConfigError::Conflict(format!("{at}: `base`: cannot read the config `{path}`: {error}"))
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

fn axes(vary: &Table, lines: &Lines) -> Result<Vec<Axis>, ConfigError> {
    if vary.is_empty() {
        return Err(ConfigError::Conflict(format!(
            "{}: nothing varies; a study has at least one variant, such as [vary.method.newton]",
            lines.at(VARY)
        )));
    }
    vary.iter().map(|(name, value)| axis(name, value, lines)).collect()
}

fn axis(name: &str, value: &Value, lines: &Lines) -> Result<Axis, ConfigError> {
    let path = format!("{VARY}.{name}");
    let refuse = |path: &str, given: &Value, allowed: &str| ConfigError::Value {
        at: lines.at(path),
        path: path.to_owned(),
        given: quoted(&given.to_string()),
        allowed: allowed.to_owned(),
    };
    let forms = format!("a table of variants, such as [{path}.NAME], or `key` and `values`");
    named(name, &lines.at(&path))?;
    if COLUMNS.contains(&name) || known_metric(name).is_ok() {
        let problem =
            format!("{}: an axis cannot be named `{name}`, which is a column of the results", lines.at(&path));
        return Err(ConfigError::Conflict(problem));
    }
    let Some(table) = value.as_table() else { return Err(refuse(&path, value, &forms)) };
    let variants = match table.values().all(Value::is_table) {
        true => table.iter().map(|(name, keys)| variant(&format!("{path}.{name}"), name, keys, lines)).collect(),
        false => of_values(&path, table, lines),
    }?;
    if variants.is_empty() {
        return Err(ConfigError::Conflict(format!("{}: `{path}` has no variants; it is {forms}", lines.at(&path))));
    }
    Ok(Axis { name: name.to_owned(), variants })
}

/// A variant by its name, with its keys.
fn variant(path: &str, name: &str, keys: &Value, lines: &Lines) -> Result<Variant, ConfigError> {
    named(name, &lines.at(path))?;
    let empty = Table::new();
    let keys = Keys::of(keys.as_table().unwrap_or(&empty), &|key| lines.at(&format!("{path}.{key}")));
    keys.check()?;
    Ok(Variant { name: name.to_owned(), keys })
}

/// The variants of an axis that is one key and its values.
fn of_values(path: &str, table: &Table, lines: &Lines) -> Result<Vec<Variant>, ConfigError> {
    if let Some((name, _)) = table.iter().find(|(name, _)| ![KEY, VALUES].contains(&name.as_str())) {
        return Err(ConfigError::UnknownKey {
            at: lines.at(&format!("{path}.{name}")),
            path: format!("{path}.{}", quoted(name)),
            hint: String::new(),
            known: format!(
                "[{path}] takes `{KEY}` and `{VALUES}`, or tables that are variants, such as [{path}.{name}]"
            ),
        });
    }
    let missing = |name: &str, allowed: &str| ConfigError::Missing {
        at: lines.at(path),
        path: format!("{path}.{name}"),
        section: "".into(),
        kind: "".into(),
        allowed: allowed.to_owned(),
    };
    let key = table.get(KEY).and_then(Value::as_str);
    let key = key.ok_or_else(|| missing(KEY, "a key of the config, such as \"algorithm.particles\""))?;
    let values = table.get(VALUES).and_then(Value::as_array).filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| missing(VALUES, "a list of one or more values of that key, such as [5, 20]"))?;
    let place = lines.at(&format!("{path}.{VALUES}"));
    let mut variants: Vec<Variant> = Vec::new();
    for value in values {
        let name = shown(value);
        named(&name, &place)?;
        if variants.iter().any(|variant| variant.name == name) {
            return Err(ConfigError::Conflict(format!("{place}: `{path}.{VALUES}` has {} twice", quoted(&name))));
        }
        let keys = Keys::one(key, value.clone(), place.clone());
        keys.check()?;
        variants.push(Variant { name, keys });
    }
    Ok(variants)
}

/// A value as it is typed.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Rust's form with an exponent where that is the shorter one.
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// Checks a name that stands in tables and pictures.
fn named(name: &str, place: &str) -> Result<(), ConfigError> {
    match name.trim().is_empty() || name.chars().any(char::is_control) {
        false => Ok(()),
        true => Err(ConfigError::Conflict(format!("{place}: `{}` is not a name; it is a line of text", quoted(name)))),
    }
}
