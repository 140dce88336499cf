//! The section on calibration rows: the probabilities before and after a temperature or another map, and what prediction sets hold.

use super::body::{Body, count, or_dash};
use super::groups;
use crate::calibrated::{CalibrationResults, SetLine, SetResults};
use crate::text::{escape, number, percent};

pub(super) fn section(body: &mut Body, results: &CalibrationResults) {
    body.heading("Calibration rows");
    results.sentences().iter().for_each(|sentence| body.paragraph(sentence));
    let of_temperature = results.temperature.as_ref().and_then(|of| Some((["T = 1", "at T"], of.test.as_ref()?)));
    let of_map = results.map.as_ref().and_then(|of| Some((["without the map", "with the map"], of.test.as_ref()?)));
    if let Some(([without, with], (before, after))) = of_temperature.or(of_map) {
        let share = |value: Option<f64>| value.map_or_else(|| or_dash(None), percent);
        let rows = [(without, before), (with, after)].map(|(name, of)| {
            vec![name.to_owned(), or_dash(of.nll), share(of.ece), share(of.mce), or_dash(of.brier), share(of.accuracy)]
        });
        body.table(&["Test rows", "NLL", "ECE", "MCE", "Brier score", "Accuracy"], &rows);
    }
    if let Some(sets) = &results.sets {
        tables(body, sets);
    }
}

fn tables(body: &mut Body, sets: &SetResults) {
    let is_real = sets.classes.is_empty();
    let size = if is_real { "Mean width" } else { "Mean size" };
    let table = |body: &mut Body, first: &str, lines: &[SetLine]| {
        let header = match is_real {
            true => vec![first, "Rows", "Covered", "95 % interval", size, "Empty"],
            false => vec![first, "Rows", "Covered", "95 % interval", size, "Empty", "One class"],
        };
        body.table(&header, &lines.iter().map(|line| row(line, is_real)).collect::<Vec<_>>());
    };
    if let Some(all) = &sets.all {
        table(body, "Test rows", std::slice::from_ref(all));
    }
    let parts = [
        ("Group, worst first", &sets.groups),
        ("Client, worst first", &sets.clients),
        ("Class, worst first", &sets.classes),
    ];
    for (first, lines) in parts {
        let lines = worst_first(lines);
        let shown = &lines[..lines.len().min(groups::SHOWN)];
        if !shown.is_empty() {
            table(body, first, shown);
        }
        if shown.len() < lines.len() {
            body.note(&format!(
                "The table has the first {} of {}; report.json has all.",
                shown.len(),
                count(lines.len())
            ));
        }
    }
}

/// The lines with rows from the smallest coverage on.
fn worst_first(lines: &[SetLine]) -> Vec<SetLine> {
    let mut lines: Vec<SetLine> = lines.iter().filter(|line| line.coverage.is_some()).cloned().collect();
    lines.sort_by(|a, b| a.coverage.unwrap_or(1.0).total_cmp(&b.coverage.unwrap_or(1.0)));
    lines
}

fn row(line: &SetLine, is_real: bool) -> Vec<String> {
    let counts = &line.counts;
    let share = |value: Option<f64>| value.map_or_else(|| or_dash(None), percent);
    let interval =
        line.coverage_interval.map_or_else(String::new, |of| format!("{} to {}", percent(of.lo), percent(of.hi)));
    let mut cells = vec![
        escape(&line.name),
        count(counts.rows),
        share(line.coverage),
        interval,
        line.mean_size.map_or_else(|| or_dash(None), number),
        share(counts.share(counts.empty)),
    ];
    if !is_real {
        cells.push(share(counts.share(counts.single)));
    }
    cells
}
