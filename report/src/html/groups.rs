//! The section on groups of rows.

use std::cmp::Reverse;

use super::body::{Body, interval, shown, with_range};
use crate::analysis::GroupAnalysis;
use crate::metrics::{Interval, Metric, View};
use crate::text::{counted, escape, thousands};
use crate::verdict::VerdictKind;

/// The number of groups that the page shows.
pub(super) const SHOWN: usize = 50;

/// How groups, sites and clients are ordered that are shown the worst first.
pub(super) const ORDER: &str = "The worst calibrated are first: those whose difference between confidence and accuracy, or between the \
     share inside the 90 % intervals and 90 %, is the furthest from 0 beyond its 95 % interval, then those with the highest NLL";
/// Which come after these.
pub(super) const FEW_LAST: &str = "those with fewer than ten rows, or clusters of rows, are last.";

/// The table of the groups; with very many, of those with the most rows.
pub(super) fn section(body: &mut Body, groups: &[GroupAnalysis], worst_first: bool) {
    body.heading("Groups");
    body.paragraph(&format!("Each line has the numbers of a group's rows alone. {}", findings(groups)));
    let shown = shown_groups(groups);
    if shown.len() < groups.len() {
        body.paragraph(&format!(
            "The table has the {} groups with the most rows, of {}; report.json and groups.csv have all.",
            shown.len(),
            thousands(groups.len())
        ));
    }
    of_rows(body, &shown);
    if worst_first {
        body.note(&format!("{ORDER}; {FEW_LAST}"));
    }
    let of = match shown.first().is_some_and(|group| group.overall.get("rmse").is_some()) {
        true => "of coverages Wilson's; none where all rows give the same.",
        false => {
            "of the accuracy Wilson's, of slope and calibration in the large Wald's; none where all rows give the same. The ECE of \
             few rows is too large by chance; its interval allows for that."
        }
    };
    body.note(&format!("In small print below a number: its 95 % interval over resamples of the group's rows, {of}"));
    body.note("Of well calibrated groups about one in 20 has another verdict by chance, with two classes one in 15.");
}

/// How many groups have each verdict.
fn findings(groups: &[GroupAnalysis]) -> String {
    let count = |kind: &VerdictKind| groups.iter().filter(|group| group.verdict.kind == *kind).count();
    let counts = VerdictKind::ALL.iter().map(|kind| (count(kind), kind.of_groups())).filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, words)| format!("{} {words}", thousands(count))).collect();
    format!("Of {}: {}.", counted(groups.len(), "group"), counts.join(", "))
}

/// At most [`SHOWN`] groups, those with the most rows, in the order given.
fn shown_groups(groups: &[GroupAnalysis]) -> Vec<&GroupAnalysis> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| Reverse(groups[*at].overall.n));
    order.truncate(SHOWN);
    order.sort_unstable();
    order.into_iter().map(|at| &groups[at]).collect()
}

/// One line for each group: of the metrics that runs are compared by, those with an interval.
fn of_rows(body: &mut Body, groups: &[&GroupAnalysis]) {
    let Some(first) = groups.first() else { return };
    let has_interval = |key| first.confidence_intervals.has(key);
    let in_view = [View::Comparison, View::Group].into_iter().flat_map(|view| first.overall.in_view(view));
    let in_view = in_view.map(|(metric, _)| metric);
    let has_value = |metric: &&Metric| groups.iter().any(|group| group.overall.get(metric.key).is_some());
    let metrics: Vec<&Metric> = in_view.filter(|metric| has_interval(metric.key)).filter(has_value).collect();
    table(body, "Group", &metrics, groups);
}

/// One line for each group, site or client under the heading `what`: rows, metrics with their intervals, verdict.
pub(super) fn table(body: &mut Body, what: &str, metrics: &[&Metric], groups: &[&GroupAnalysis]) {
    let heads = metrics.iter().map(|metric| metric.heading());
    let header: Vec<&str> = [what, "Rows"].into_iter().chain(heads).chain(["Verdict"]).collect();
    let line = |group: &&GroupAnalysis| {
        let values = metrics.iter().map(|metric| cell(group, metric));
        let start = [escape(&group.name), thousands(group.overall.n)];
        start.into_iter().chain(values).chain([escape(&group.verdict.headline)]).collect()
    };
    body.table(&header, &groups.iter().map(line).collect::<Vec<_>>());
}

/// A value with its interval below it, if that has a width.
fn cell(group: &GroupAnalysis, metric: &Metric) -> String {
    let range = group.confidence_intervals.get(metric.key);
    let range = interval(metric.unit, range.filter(|Interval { lo, hi }| lo < hi));
    let value = shown(metric.unit, group.overall.get(metric.key));
    with_range(value, &range)
}
