//! The file `figN.csv`: every number of every picture, then the other numbers that the table needs, so that pictures
//! and table can be made again without the runs. [`super::kept_csv`] reads it.
//!
//! A row of the second part has a metric that begins with `run:`
//!
//! | metric | x | value |
//! |---|---|---|
//! | `run:accuracy` and other metrics | round | its value; empty where the metric has none in any round |
//! | `run:uplink_bytes`, `run:downlink_bytes`, `run:clients` | round | of this round and the following, until the next row |
//! | `run:seconds` | 0 | of a run, mean over seeds; the seed is 0; all other rows of equal runs are equal |
//! | `run:note: …` | 0 | how many of the curves and points said so; panel and series are empty |
//! | `run:failed: …` | 0 | 1; panel and series are empty |

use super::curve::Results;
use super::figure::Scale;
use super::grid::Cell;
use super::held::{is_shown, needed};
use super::kept::Kept;
use crate::experiment::RoundRecord;

/// The names of the columns.
pub const HEADER: [&str; 8] = ["panel", "series", "case", "seed", "x", "metric", "value", "scale"];

/// The prefix of the metrics of the second part.
pub const RUN: &str = "run:";

/// The prefix of a metric that holds the text of a note.
pub const NOTE: &str = "note: ";
/// The prefix of a metric that holds the text of a failure.
pub const FAILED: &str = "failed: ";

/// A function that reads a whole number of a round.
type Count = fn(&RoundRecord) -> u64;

/// The bytes and the number of clients of a round: metric names and their accessors.
pub const TRAFFIC: [(&str, Count); 3] = [
    ("uplink_bytes", |round| round.uplink_bytes),
    ("downlink_bytes", |round| round.downlink_bytes),
    ("clients", |round| round.clients.len() as u64),
];

/// The place of the number of clients in [`TRAFFIC`].
pub const CLIENTS: usize = 2;

/// The metric for the seconds of a run.
pub const SECONDS: &str = "seconds";

/// A row of the file.
type Row = [String; 8];

/// All rows, the header first.
pub fn rows(results: &Results<'_>, scale: Scale) -> Vec<Row> {
    let mut rows = vec![HEADER.map(str::to_owned)];
    let word = scale.word();
    for (panel, samples) in results.figure.panels.iter().zip(&results.samples) {
        rows.extend(samples.iter().map(|sample| {
            let [x, value] = [sample.x, sample.value].map(|number| number.to_string());
            let (series, seed) = (results.curve_id(sample.curve), sample.seed.to_string());
            [panel.id.clone(), series, sample.case.clone(), seed, x, panel.y.clone(), value, word.to_owned()]
        }));
    }
    for (at, cell) in results.grid.cells.iter().enumerate() {
        for (seed, kept) in &results.kept[at] {
            of_run(results, at, *seed, kept, &mut |metric, x, value| {
                rows.push(row(results, cell, (*seed, x), metric, value, word))
            });
        }
        if let Some(seconds) = results.seconds[at] {
            rows.push(row(results, cell, (0, 0), SECONDS, seconds.to_string(), word));
        }
    }
    let mut text = |kind: &str, said: &str, value: usize| {
        let empty = String::new;
        let metric = format!("{RUN}{kind}{said}");
        rows.push([empty(), empty(), empty(), "0".into(), "0".into(), metric, value.to_string(), word.to_owned()]);
    };
    results.notes.iter().for_each(|(note, runs)| text(NOTE, note, *runs));
    results.failures.iter().for_each(|failure| text(FAILED, failure, 1));
    rows
}

fn row(results: &Results<'_>, cell: &Cell, (seed, x): (u64, usize), metric: &str, value: String, scale: &str) -> Row {
    let (panel, series) = (&results.figure.panels[cell.panel], &results.figure.series[cell.series]);
    let metric = format!("{RUN}{metric}");
    let (seed, x) = (seed.to_string(), x.to_string());
    [panel.id.clone(), series.id.clone(), cell.case.clone(), seed, x, metric, value, scale.to_owned()]
}

/// Writes the numbers of a run that the pictures do not show; `put` takes a metric, a round and a value.
fn of_run(results: &Results<'_>, at: usize, seed: u64, kept: &Kept, put: &mut dyn FnMut(&str, usize, String)) {
    let cell = &results.grid.cells[at];
    let held = |metric: &str| results.held.as_ref().is_none_or(|held| held[at].curves.contains(metric));
    let last = kept.rounds.last().map_or(0, |round| round.round);
    for metric in needed(results.figure, cell).into_iter().filter(|metric| held(metric)) {
        let values = kept.values(metric);
        if values.is_empty() {
            put(metric, last, String::new());
        } else if !(is_shown(results.figure, cell) && metric == results.figure.panels[cell.panel].y) {
            values.into_iter().for_each(|(round, value)| put(metric, round, value.to_string()));
        }
    }
    let known = results.held.as_ref().map_or(TRAFFIC.len(), |held| match &held[at] {
        held if held.traffic => TRAFFIC.len(),
        held => usize::from(held.uplink),
    });
    debug_assert!(kept.rounds.iter().zip(1..).all(|(round, at)| round.round == at), "seed {seed}: rounds count from 1");
    for (name, of) in &TRAFFIC[..known] {
        let mut before = None;
        for round in &kept.rounds {
            let value = of(round);
            if before != Some(value) || round.round == last {
                put(name, round.round, value.to_string());
            }
            before = Some(value);
        }
    }
}
