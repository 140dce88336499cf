//! The numbers of a cell's runs that a kept CSV file provides: files of earlier versions hold only what their pictures
//! show.

use std::collections::BTreeSet;

use super::figure::{Along, DENSITY, Figure, Panel, Statistic};
use super::grid::Cell;
use super::kept::TRAFFIC;

/// The numbers known of a cell's runs.
#[derive(Clone, Debug, Default)]
pub struct Held {
    /// The metrics known for all rounds.
    pub curves: BTreeSet<String>,
    /// The metrics known for the last round, or for the round that the series selects.
    pub last: BTreeSet<String>,
    /// Whether the uplink bytes of every round are known.
    pub uplink: bool,
    /// Whether the downlink bytes and the number of clients are known too.
    pub traffic: bool,
}

impl Held {
    /// Whether a statistic of a metric is available.
    pub fn has(&self, metric: &str, statistic: Statistic) -> bool {
        let curve = if is_traffic(metric) { self.traffic } else { self.curves.contains(metric) };
        match statistic {
            Statistic::Last => curve || self.last.contains(metric),
            Statistic::EqualUplink => curve && self.uplink,
            Statistic::Visits(_) => curve && self.traffic,
            _ => curve,
        }
    }
}

fn is_traffic(metric: &str) -> bool {
    TRAFFIC.iter().any(|(name, _)| *name == metric)
}

/// Whether a picture shows the whole curve of its metric, round by round, for a cell.
pub fn is_shown(figure: &Figure, cell: &Cell) -> bool {
    figure.panels[cell.panel].x == Along::Round && !figure.series[cell.series].flat
}

/// The metrics of a cell's runs from which the figure's table is computed, sorted by name.
pub fn needed<'f>(figure: &'f Figure, cell: &Cell) -> BTreeSet<&'f str> {
    let here = |term: &super::figure::Term| term.panel == cell.panel && term.series == Some(cell.series);
    let panel: &Panel = &figure.panels[cell.panel];
    let targets = figure.targets.iter().filter(|target| here(&target.term));
    let claims = figure.claims.iter().filter(|claim| claim.terms.iter().any(here));
    let beside = if targets.clone().next().is_some() { figure.also.as_slice() } else { &[] };
    let all = std::iter::once(panel.y.as_str())
        .chain(targets.map(|target| target.metric.as_str()))
        .chain(claims.map(|claim| claim.metric.as_str()))
        .chain(beside.iter().map(|also| also.metric.as_str()));
    all.filter(|metric| *metric != DENSITY && !is_traffic(metric)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statistic_needs_the_whole_curve_unless_it_is_the_last_value() {
        let names = |name: &str| BTreeSet::from([name.to_owned()]);
        let held = Held { curves: names("accuracy"), last: names("nll"), uplink: false, traffic: false };
        assert!(held.has("accuracy", Statistic::Mean) && held.has("accuracy", Statistic::Last));
        assert!(held.has("nll", Statistic::Last) && !held.has("nll", Statistic::Best));
        assert!(!held.has("accuracy", Statistic::EqualUplink) && !held.has("uplink_mib", Statistic::Last));
        assert!(!held.has("accuracy", Statistic::Visits(10)));
        let held = Held { uplink: true, traffic: true, ..held };
        assert!(held.has("accuracy", Statistic::EqualUplink) && held.has("uplink_mib", Statistic::Last));
        assert!(held.has("accuracy", Statistic::Visits(10)));
    }
}
