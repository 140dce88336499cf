//! A figure: the runs it needs, how they are drawn, and the values and orders to check. `docs/reproducing.md` describes
//! the format of its definition.
//!
//! Overrides (`set`, `quick`, `middle`) have the form of an ordinary config: `set = { algorithm.particles = 6 }`.

mod file;

pub(crate) use file::known_metric;

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

/// The name of the metric "density".
pub const DENSITY: &str = "density";

/// The reason why a figure cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// No figure has this name.
    #[error("there is no figure `{0}`")]
    Unknown(String),
    /// The definition is invalid: a mistake in `configs/paper/`.
    #[error("figure {id}: {problem}")]
    Definition {
        /// The figure's name.
        id: String,
        /// The problem.
        problem: String,
    },
}

/// The scale at which a figure is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A coarse run of some minutes, to see the shape; its numbers are not judged.
    Quick,
    /// A reduced setting, for figures whose full setting is too expensive.
    Middle,
    /// The paper's setting.
    Full,
}

impl Scale {
    /// The scale's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Middle => "middle",
            Self::Full => "full",
        }
    }
}

/// The runs that a figure needs, how they are drawn, and the values and orders to check.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The figure's name, `paper/figN`.
    pub id: String,
    /// One line on what the figure shows.
    pub title: String,
    /// The paper of the figure.
    pub paper: String,
    /// The settings that the paper leaves open, and our choices.
    pub choices: Vec<String>,
    /// The number of seeds at each scale.
    pub seeds: Seeds,
    /// The config that all runs share.
    pub base: Table,
    /// The overrides of `--quick`.
    pub quick: Table,
    /// The overrides of `--middle`; `None` if the figure has no such scale.
    pub middle: Option<Table>,
    /// The compared methods.
    pub series: Vec<Series>,
    /// The plots.
    pub panels: Vec<Panel>,
    /// Reference values from the paper, or from an independent run.
    pub targets: Vec<Target>,
    /// The paper's assertions about its curves.
    pub claims: Vec<Claim>,
    /// Additional statistics that the table shows for each target's curve.
    pub also: Vec<Also>,
}

/// The number of seeds at each scale: the seeds are 1, 2, ….
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// The number with the paper's setting.
    pub full: u64,
    /// The number with `--middle`.
    #[serde(default = "one")]
    pub middle: u64,
    /// The number with `--quick`.
    #[serde(default = "one")]
    pub quick: u64,
}

fn one() -> u64 {
    1
}

impl Seeds {
    /// The number of seeds at a scale.
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
    /// The series' name in files.
    pub id: String,
    /// The series' name in legends.
    pub name: String,
    /// Overrides of the base config.
    #[serde(default)]
    pub set: Table,
    /// Further overrides with `--quick`.
    #[serde(default)]
    pub quick: Table,
    /// Further overrides with `--middle`.
    #[serde(default)]
    pub middle: Table,
    /// Whether the series is drawn as a horizontal line, because it has no comparable rounds.
    #[serde(default)]
    pub flat: bool,
    /// The round whose values a sweep shows; by default the last.
    pub round: Option<usize>,
    /// Overrides by an axis of a study; see [`Panel::axes`].
    #[serde(skip)]
    pub axis: Table,
}

/// The quantity on the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// The number of the round.
    Round,
    /// Cumulative bytes from the clients to the server.
    UplinkBytes,
    /// Cumulative bytes from the server to the clients.
    DownlinkBytes,
    /// The values of the panel's `sweep`, with the metric of the last round.
    Sweep,
    /// The metric of the series `against`, with one point for each `case` of the panel.
    Series,
    /// The confidence of the last round's predictions, for a reliability diagram.
    Confidence,
    /// θ of a toy in one dimension, for densities after the last round.
    Theta,
    /// θ of a toy in two dimensions, for contours of one series after the last round.
    Plane,
}

impl Along {
    /// Whether a curve has a point for each round.
    pub fn is_of_rounds(self) -> bool {
        matches!(self, Self::Round | Self::UplinkBytes | Self::DownlinkBytes)
    }
}

/// The values of a swept parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The keys that are set to the value; a series whose method does not use a key is the same for all values.
    pub keys: Vec<String>,
    /// The values with the paper's setting.
    pub full: Vec<Value>,
    /// The values with `--middle`; by default those of `full`.
    pub middle: Option<Vec<Value>>,
    /// The values with `--quick`.
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

/// One of the settings, such as a data set, on which a panel compares the series.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The case's name.
    pub id: String,
    /// Overrides of the config.
    #[serde(default)]
    pub set: Table,
    /// Further overrides with `--quick`.
    #[serde(default)]
    pub quick: Table,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The panel's name in files.
    pub id: String,
    /// The panel's heading.
    pub title: String,
    /// The quantity on the horizontal axis.
    pub x: Along,
    /// The label of the horizontal axis, where it does not follow from `x`.
    pub x_label: Option<String>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// The metric on the vertical axis: a column of `rounds.csv`.
    pub y: String,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The ends of the vertical axis.
    pub y_range: Option<(f64, f64)>,
    /// Overrides of the base config.
    pub set: Table,
    /// Further overrides with `--quick`.
    pub quick: Table,
    /// Further overrides with `--middle`.
    pub middle: Table,
    /// Overrides by the other axes of a study, one table each. A key of one that the kind chosen by another does not use
    /// is dropped; they take precedence over all of the above. Empty in a figure of a paper.
    pub axes: Vec<Table>,
    /// The panel's series, by their indices in [`Figure::series`].
    pub series: Vec<usize>,
    /// Overrides for single series, by the series' names.
    pub overrides: BTreeMap<String, Table>,
    /// The swept parameter, for [`Along::Sweep`].
    pub sweep: Option<Sweep>,
    /// The points of the panel, for [`Along::Series`].
    pub cases: Vec<Case>,
    /// The series on the horizontal axis, for [`Along::Series`].
    pub against: Option<usize>,
}

/// A series of a panel, at one of its values where it has several.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The index in [`Figure::panels`].
    pub panel: usize,
    /// The index in [`Figure::series`]; `None` for the exact density of a toy.
    pub series: Option<usize>,
    /// The sweep's value or the case's name after `@`; `None` for the last.
    pub at: Option<String>,
}

/// A statistic of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The value at this round.
    Round(usize),
    /// The value of the last round.
    Last,
    /// The best value of all rounds.
    Best,
    /// The mean over rounds: the area under the curve over its length.
    Mean,
    /// The standard deviation of the change from round to round, over the last half of the rounds: small is stable.
    Stability,
    /// The first round at which the value reaches this.
    Reach(f64),
    /// The value after this many visits: of the last round until which no more clients were asked.
    Visits(usize),
    /// The value at the largest number of uplink bytes that all compared series reach.
    EqualUplink,
    /// The height of the density's highest point.
    Peak,
    /// The place of that point.
    PeakAt,
}

/// A statistic that the table shows beside every target, such as the calibration behind an accuracy.
#[derive(Clone, Debug, PartialEq)]
pub struct Also {
    /// The metric.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The column heading: the metric, and the statistic where it is not the last value.
    pub name: String,
}

/// A reference value that a run should reproduce.
#[derive(Clone, Debug)]
pub struct Target {
    /// A description of the value.
    pub what: String,
    /// Where it comes from: `[T]` a table, `[X]` text, `[E]` read off a figure by eye, `[R]` an independent run,
    /// `[ours]` a question that the paper does not ask.
    pub source: String,
    /// The curve.
    pub term: Term,
    /// The metric; by default the panel's.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The interval in which a peak is searched.
    pub between: Option<(f64, f64)>,
    /// The expected value.
    pub value: Expected,
    /// A remark for the reader.
    pub note: String,
}

/// The value of a target, and what counts as meeting it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// This number; judged only if a tolerance is given.
    Near(f64, Option<f64>),
    /// This number up to the given factor.
    Factor(f64, f64),
    /// Any value in this interval.
    Between(f64, f64),
}

/// An order or an equality that the paper asserts.
#[derive(Clone, Debug)]
pub struct Claim {
    /// A description of the assertion.
    pub what: String,
    /// The source, as in [`Target::source`].
    pub source: String,
    /// The compared curves.
    pub terms: Vec<Term>,
    /// The asserted order.
    pub order: Order,
    /// The metric; by default that of the first term's panel.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// A remark for the reader.
    pub note: String,
}

/// An order of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Each value is greater than the next.
    Greater,
    /// Each value is smaller than the next.
    Smaller,
    /// All values lie within this distance of each other.
    Close(f64),
}
