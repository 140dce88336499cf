//! A figure: which runs it needs, how they are drawn, and what they should show. `docs/reproducing.md` describes the
//! format of its definition.
//!
//! Overrides (`set`, `quick`, `middle`) have the form of an ordinary config: `set = { algorithm.particles = 6 }`.

mod file;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

/// The metric of a density.
pub const DENSITY: &str = "density";

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// No figure has this name.
    #[error("there is no figure `{0}`")]
    Unknown(String),
    /// Its definition is no good: a mistake in `configs/paper/`.
    #[error("figure {id}: {problem}")]
    Definition {
        /// Its name.
        id: String,
        /// What is wrong.
        problem: String,
    },
}

/// How much of a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A look at the shape, in minutes; its numbers are not judged.
    Quick,
    /// What is affordable of a figure whose full form is not.
    Middle,
    /// The paper's setting.
    Full,
}

impl Scale {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Middle => "middle",
            Self::Full => "full",
        }
    }
}

/// Which runs a figure needs, how they are drawn, and what they should show.
#[derive(Clone, Debug)]
pub struct Figure {
    /// `paper/figN`.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Whose figure it is.
    pub paper: String,
    /// What the paper leaves open, and what was chosen.
    pub choices: Vec<String>,
    /// Trials.
    pub seeds: Seeds,
    /// The config that all runs share.
    pub base: Table,
    /// What `--quick` changes.
    pub quick: Table,
    /// What `--middle` changes; `None`: it has no such form.
    pub middle: Option<Table>,
    /// The compared methods.
    pub series: Vec<Series>,
    /// The plots.
    pub panels: Vec<Panel>,
    /// Numbers of the paper, or of an independent run.
    pub targets: Vec<Target>,
    /// What the paper says of its curves.
    pub claims: Vec<Claim>,
    /// What else the table says of each target's curve.
    pub also: Vec<Also>,
}

/// Trials at each scale: seeds 1, 2, ….
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// With the paper's setting.
    pub full: u64,
    /// With `--middle`.
    #[serde(default = "one")]
    pub middle: u64,
    /// With `--quick`.
    #[serde(default = "one")]
    pub quick: u64,
}

fn one() -> u64 {
    1
}

impl Seeds {
    /// Trials at a scale.
    pub fn at(self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => self.quick,
            Scale::Middle => self.middle,
            Scale::Full => self.full,
        }
    }
}

/// One of the compared methods.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// Its name in files.
    pub id: String,
    /// Its name in legends.
    pub name: String,
    /// What it changes in the base.
    #[serde(default)]
    pub set: Table,
    /// What it changes besides with `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// What it changes besides with `--middle`.
    #[serde(default)]
    pub middle: Table,
    /// Drawn as a horizontal line: it has no rounds that could be compared.
    #[serde(default)]
    pub flat: bool,
    /// The round that a sweep shows; by default the last.
    pub round: Option<usize>,
}

/// What runs along the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Rounds.
    Round,
    /// Bytes sent by clients so far.
    UplinkBytes,
    /// Bytes sent to clients so far.
    DownlinkBytes,
    /// The values of the panel's `sweep`; the metric of the last round.
    Sweep,
    /// The metric of the series `against`, a point for each of the panel's `case`s.
    Series,
    /// Confidence of the last round's predictions: a reliability diagram.
    Confidence,
    /// θ of a toy in one dimension: densities after the last round.
    Theta,
    /// θ of a toy in two dimensions: contours after the last round, for one series.
    Plane,
}

/// Values that a panel runs through.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Keys that get the value; a series whose method does not use a key is the same for all values.
    pub keys: Vec<String>,
    /// The values.
    pub full: Vec<Value>,
    /// With `--middle`; by default as `full`.
    pub middle: Option<Vec<Value>>,
    /// With `--quick`.
    pub quick: Vec<Value>,
}

impl Sweep {
    /// The values at a scale.
    pub fn at(&self, scale: Scale) -> &[Value] {
        match (scale, &self.middle) {
            (Scale::Quick, _) => &self.quick,
            (Scale::Middle, Some(middle)) => middle,
            _ => &self.full,
        }
    }
}

/// One of the things that a panel compares the series on, such as a data set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// What it changes in the config.
    #[serde(default)]
    pub set: Table,
    /// What it changes besides with `--quick`.
    #[serde(default)]
    pub quick: Table,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its name in files.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Along,
    /// Its label, where that does not follow from `x`.
    pub x_label: Option<String>,
    /// Logarithmic horizontal axis.
    pub log_x: bool,
    /// The metric on the vertical axis: a column of `rounds.csv`.
    pub y: String,
    /// Logarithmic vertical axis.
    pub log_y: bool,
    /// Ends of the vertical axis.
    pub y_range: Option<(f64, f64)>,
    /// What it changes in the base.
    pub set: Table,
    /// What it changes besides with `--quick`.
    pub quick: Table,
    /// What it changes besides with `--middle`.
    pub middle: Table,
    /// Its series, by their places in [`Figure::series`].
    pub series: Vec<usize>,
    /// What it changes for single series, by their names.
    pub overrides: BTreeMap<String, Table>,
    /// What runs along its horizontal axis, for [`Along::Sweep`].
    pub sweep: Option<Sweep>,
    /// What its points are, for [`Along::Series`].
    pub cases: Vec<Case>,
    /// The series on its horizontal axis, for [`Along::Series`].
    pub against: Option<usize>,
}

/// A series of a panel, at one of its values where it has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Place in [`Figure::panels`].
    pub panel: usize,
    /// Place in [`Figure::series`]; `None`: the exact density of a toy.
    pub series: Option<usize>,
    /// The sweep's value or the case's name after `@`; `None`: the last.
    pub at: Option<String>,
}

/// What is read off a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The value of this round.
    Round(usize),
    /// The last round's value.
    Last,
    /// The best value of all rounds.
    Best,
    /// The mean over rounds: the area under the curve over its length.
    Mean,
    /// Standard deviation of the change from round to round, over the last half: small is stable.
    Stability,
    /// The first round at which the value reaches this.
    Reach(f64),
    /// The value at the largest number of uplink bytes that all compared series reach.
    EqualUplink,
    /// The height of the density's highest point.
    Peak,
    /// Where that point is.
    PeakAt,
}

/// A number that stands beside every target, such as the calibration behind an accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct Also {
    /// Which metric.
    pub metric: String,
    /// Read off how.
    pub statistic: Statistic,
    /// What heads its column: the metric, and the statistic where that is not the last.
    pub name: String,
}

/// A number to meet.
#[derive(Clone, Debug)]
pub struct Target {
    /// In words.
    pub what: String,
    /// Where it comes from: `[T]` a table, `[X]` text, `[E]` read off a figure by eye, `[R]` an independent run,
    /// `[ours]` a question that the paper does not ask.
    pub source: String,
    /// On which curve.
    pub term: Term,
    /// Which metric; by default the panel's.
    pub metric: String,
    /// Read off how.
    pub statistic: Statistic,
    /// Where a peak is looked for.
    pub between: Option<(f64, f64)>,
    /// What it should be.
    pub value: Expected,
    /// What else to know.
    pub note: String,
}

/// The value of a target, and what counts as meeting it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// This number; judged within the tolerance, if there is one.
    Near(f64, Option<f64>),
    /// This number up to this factor.
    Factor(f64, f64),
    /// Anything from the one to the other.
    Between(f64, f64),
}

/// An order or an equality that the paper asserts.
#[derive(Clone, Debug)]
pub struct Claim {
    /// In words.
    pub what: String,
    /// As [`Target::source`].
    pub source: String,
    /// The compared curves.
    pub terms: Vec<Term>,
    /// How they should lie.
    pub order: Order,
    /// Which metric; by default that of the first term's panel.
    pub metric: String,
    /// Read off how.
    pub statistic: Statistic,
    /// What else to know.
    pub note: String,
}

/// How values should lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Each greater than the next.
    Greater,
    /// Each smaller than the next.
    Smaller,
    /// All within this of each other.
    Close(f64),
}
