//! The description of a metric: key, name, unit, meaning, better direction and function. `table.rs` lists all metrics.

use super::client_scores::ClientScores;
use super::federated::Direction;
use super::ranking::{Ranking, Times};
use super::recalibration::{Estimate, Recalibration};
use super::scored::{ScoredClasses, ScoredTargets};

/// A metric, with all its properties for evaluation, report, terminal and figures.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Key in JSON and name of the column, such as `nll`.
    pub key: &'static str,
    /// Name on a page, such as `NLL`.
    pub name: &'static str,
    /// Heading of a column where the name is too long; empty for the name.
    pub heading: &'static str,
    /// The name in full, such as `Negative log-likelihood`; empty for the name.
    pub title: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// A short description next to the value in a terminal; empty if the metric is not shown there.
    pub note: &'static str,
    /// A short description below the value on the page, for metrics without an interval.
    pub small_print: &'static str,
    /// Which values are the better ones; `None` where neither small nor large ones are.
    pub better: Option<Direction>,
    /// The metric of class probabilities.
    pub classes: Option<ClassMetric>,
    /// The metric of real targets.
    pub targets: Option<TargetMetric>,
    /// Its function of sums over rows, of either task; `None` where it is not a function of them.
    pub sums: Option<fn(&ClientScores) -> Option<f64>>,
    /// Its columns in `rounds.csv` on the clients' personal predictors.
    pub personal: &'static [PersonalColumn],
    /// The views in which the metric appears, with its place in each: smaller numbers first.
    pub places: &'static [(View, u16)],
}

/// The unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// None.
    One,
    /// A share of rows or pairs, shown in percent.
    Share,
    /// A difference of two shares, shown in points of a hundred.
    Points,
    /// Natural logarithms.
    Nats,
    /// The unit of the target.
    Target,
    /// A number of rows.
    Rows,
}

/// Where metrics appear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// A column of `rounds.csv` and of the events of a run.
    Column,
    /// The section `overall` of `report.json`.
    Overall,
    /// A card at the top of the page.
    Card,
    /// A column of the page's table of runs.
    Comparison,
    /// A card of the section on decisions between two classes.
    Decision,
    /// A column of the table of groups, besides those of the comparison.
    Group,
    /// The list of definitions in `report.json` and on the page.
    Definition,
    /// Columns of `rounds.csv` on the clients' personal predictors.
    Personal,
}

/// A metric of class probabilities.
#[derive(Debug, Clone, Copy)]
pub struct ClassMetric {
    /// Its function.
    pub of: fn(&ScoredClasses<'_>) -> Option<f64>,
    /// Whether it is about single particles, so that their mean prediction does not give it.
    pub needs_particles: bool,
    /// Its definition in a sentence; empty where a report of this task leaves it out.
    pub meaning: &'static str,
    /// The statistic of rows that its interval is of; `None` without such an interval.
    pub statistic: Option<ClassStatistic>,
    /// The estimate behind it, for a metric with an interval in closed form.
    pub estimate: Option<fn(&Recalibration) -> Option<Estimate>>,
}

/// A statistic of rows that has an interval, from a score of probabilities `[C]` and label.
#[derive(Debug, Clone, Copy)]
pub enum ClassStatistic {
    /// The share of rows whose score is 1 rather than 0; the interval is Wilson's.
    Share(fn(&[f64], usize) -> f64),
    /// The mean of the score; the interval is a bootstrap's.
    Mean(fn(&[f64], usize) -> f64),
    /// The ECE; the interval is from the standard errors of the gaps of its bins.
    CalibrationError,
    /// A statistic of the order of p(y = 1) of two classes, and of how often each row counts; the interval is a bootstrap's.
    Ranked(fn(&Ranking, &Times) -> Option<f64>),
}

/// A metric of real targets.
#[derive(Debug, Clone, Copy)]
pub struct TargetMetric {
    /// Its function.
    pub of: fn(&ScoredTargets<'_>) -> Option<f64>,
    /// Its definition in a sentence; empty where a report of this task leaves it out.
    pub meaning: &'static str,
    /// The statistic of rows that its interval is of; `None` without an interval.
    pub statistic: Option<TargetStatistic>,
}

/// A statistic of rows that has an interval, from a number of each row, `[n]`.
#[derive(Debug, Clone, Copy)]
pub enum TargetStatistic {
    /// The share of rows whose number is 1 rather than 0; the interval is Wilson's, and that of the others a bootstrap's.
    Share(fn(&ScoredTargets<'_>) -> Vec<f64>),
    /// The mean.
    Mean(fn(&ScoredTargets<'_>) -> Vec<f64>),
    /// The square root of the mean.
    RootMean(fn(&ScoredTargets<'_>) -> Vec<f64>),
}

/// A column on the clients' personal predictors.
#[derive(Debug, Clone, Copy)]
pub struct PersonalColumn {
    /// Name of the column.
    pub key: &'static str,
    /// The number that it holds.
    pub over: Over,
    /// Name in a table; empty where it is not shown there.
    pub name: &'static str,
    /// A short description next to the number.
    pub note: &'static str,
}

/// From all clients to one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The metric of the pooled rows (micro).
    Rows,
    /// The mean over clients (macro).
    Clients,
    /// The value of the worst client.
    Worst,
}

impl Metric {
    /// An empty metric, of which the entries of the table set some fields.
    pub(super) const EMPTY: Self = Self {
        key: "",
        name: "",
        heading: "",
        title: "",
        unit: Unit::One,
        note: "",
        small_print: "",
        better: None,
        classes: None,
        targets: None,
        sums: None,
        personal: &[],
        places: &[],
    };

    /// Whether it is a share of rows, so that Wilson's interval is its interval.
    pub fn is_share_of_rows(&self) -> bool {
        matches!(self.classes.and_then(|of| of.statistic), Some(ClassStatistic::Share(_)))
            || matches!(self.targets.and_then(|of| of.statistic), Some(TargetStatistic::Share(_)))
    }

    /// The place in a view; `None` where the metric does not appear.
    pub fn place(&self, view: View) -> Option<u16> {
        self.places.iter().find(|(of, _)| *of == view).map(|(_, place)| *place)
    }

    /// The heading of a column.
    pub fn heading(&self) -> &'static str {
        if self.heading.is_empty() { self.name } else { self.heading }
    }

    /// The name in full.
    pub fn title(&self) -> &'static str {
        if self.title.is_empty() { self.name } else { self.title }
    }

    /// The label of an axis: the name in full, with its unit where that is nats.
    pub fn axis_label(&self) -> String {
        format!("{}{}", self.title(), if self.unit == Unit::Nats { " (nats)" } else { "" })
    }
}

impl ClassMetric {
    /// A metric with its definition.
    pub(super) const fn new(of: fn(&ScoredClasses<'_>) -> Option<f64>, meaning: &'static str) -> Self {
        Self { of, needs_particles: false, meaning, statistic: None, estimate: None }
    }

    /// A metric that is about single particles.
    pub(super) const fn of_particles(of: fn(&ScoredClasses<'_>) -> Option<f64>, meaning: &'static str) -> Self {
        Self { needs_particles: true, ..Self::new(of, meaning) }
    }

    /// The same with the interval of a statistic of rows.
    pub(super) const fn with_interval(self, statistic: ClassStatistic) -> Self {
        Self { statistic: Some(statistic), ..self }
    }

    /// The same with the interval of an estimate.
    pub(super) const fn estimated(self, estimate: fn(&Recalibration) -> Option<Estimate>) -> Self {
        Self { estimate: Some(estimate), ..self }
    }
}

impl TargetMetric {
    /// A metric with its definition.
    pub(super) const fn new(of: fn(&ScoredTargets<'_>) -> Option<f64>, meaning: &'static str) -> Self {
        Self { of, meaning, statistic: None }
    }

    /// The same with the interval of a statistic of rows.
    pub(super) const fn with_interval(self, statistic: TargetStatistic) -> Self {
        Self { statistic: Some(statistic), ..self }
    }
}
