//! The groups of rows as a table.

use std::fmt::Write as _;

use super::{cell, text_cell};
use crate::analysis::GroupAnalysis;
use crate::metrics::View;

/// The groups as a table `group,n,verdict,...`, with a column for each number of `overall` in `report.json`; a number
/// without a value is blank. `None` without groups.
pub(crate) fn groups_csv(groups: &[GroupAnalysis]) -> Option<String> {
    let mut text = String::from("group,n,verdict");
    groups.first()?.overall.in_view(View::Overall).iter().for_each(|(metric, _)| {
        let _ = write!(text, ",{}", metric.key);
    });
    for group in groups {
        let _ = write!(text, "\n{},{},{}", text_cell(&group.name), group.overall.n, group.verdict.kind);
        group.overall.in_view(View::Overall).iter().for_each(|(_, value)| {
            let _ = write!(text, ",{}", cell(*value));
        });
    }
    Some(text + "\n")
}
