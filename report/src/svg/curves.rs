//! Metrics over rounds, one panel for each metric, with other runs beside this one.

use super::reliability::shorten;
use super::{Axis, Picture, SERIES, WIDTH, nice_ticks, tick_label};
use crate::metrics::Metric;
use crate::record::{HEADLINE, RoundRecord};
use crate::run::Comparison;

const LEFT: f64 = 70.0;
const RIGHT: f64 = WIDTH - 18.0;
const PANEL_HEIGHT: f64 = 150.0;
const PANEL_STEP: f64 = 192.0;

/// The heading of a curve's panel.
fn heading(key: &str) -> String {
    let label = Metric::of_key(key).map_or(key.to_owned(), Metric::axis_label);
    if key == "accuracy" { label + " of the ensemble" } else { label }
}

/// The curves as an SVG file; `None` when no round has a number.
pub fn curves_svg(title: &str, rounds: &[RoundRecord], compare: &[Comparison]) -> Option<String> {
    curves(title, rounds, compare).map(|picture| picture.standalone())
}

pub(crate) fn curves(title: &str, rounds: &[RoundRecord], compare: &[Comparison]) -> Option<Picture> {
    let others: Vec<&Comparison> = compare.iter().filter(|c| !c.rounds.is_empty()).collect();
    of_group(title, rounds, others.chunks(SERIES - 1).next().unwrap_or_default())
}

/// The same picture with every further group of other runs, where they are too many for one.
pub(crate) fn more_curves(title: &str, rounds: &[RoundRecord], compare: &[Comparison]) -> Vec<Picture> {
    let others: Vec<&Comparison> = compare.iter().filter(|c| !c.rounds.is_empty()).collect();
    others.chunks(SERIES - 1).skip(1).filter_map(|group| of_group(title, rounds, group)).collect()
}

fn of_group(title: &str, rounds: &[RoundRecord], others: &[&Comparison]) -> Option<Picture> {
    let mut series: Vec<(&str, &[RoundRecord])> = vec![("this run", rounds)];
    series.extend(others.iter().map(|c| (c.name.as_str(), c.rounds.as_slice())));
    let has_a_value = |key: &&str| rounds.iter().any(|record| record.metric(key).is_some());
    let shown: Vec<&str> = HEADLINE.into_iter().filter(has_a_value).collect();
    if shown.is_empty() {
        return None;
    }
    let legend = if series.len() > 1 { 22.0 * series.len().div_ceil(2) as f64 } else { 0.0 };
    let first = 66.0 + legend;
    let height = first + PANEL_STEP * shown.len() as f64 + 22.0;
    let mut picture = Picture::new(height, &format!("Metrics over rounds of {title}"));
    picture.text("fs-title", 20.0, 30.0, "start", &shorten(title, 50));
    picture.text("fs-muted", 20.0, 51.0, "start", "over the rounds");
    if series.len() > 1 {
        for (index, (name, _)) in series.iter().enumerate() {
            let (x, y) = (20.0 + 260.0 * (index % 2) as f64, 75.0 + 22.0 * (index / 2) as f64);
            picture.line(&format!("fs-series{index}"), (x, y - 4.0), (x + 26.0, y - 4.0));
            picture.marker(index, x + 13.0, y - 4.0);
            picture.text("fs-muted", x + 34.0, y, "start", &shorten(name, 30));
        }
    }
    let all_rounds = || series.iter().flat_map(|(_, records)| records.iter().map(|record| record.round as f64));
    let (from, to) = (all_rounds().fold(f64::INFINITY, f64::min), all_rounds().fold(0.0, f64::max));
    let x = if to > from { (from, to) } else { (from - 0.5, from + 0.5) };
    let x = Axis::new(x, (LEFT + 8.0, RIGHT - 8.0));
    for (at, key) in shown.into_iter().enumerate() {
        panel(&mut picture, key, &series, &x, first + PANEL_STEP * at as f64);
    }
    picture.text("fs-text", 0.5 * (LEFT + RIGHT), height - 14.0, "middle", "Round");
    Some(picture)
}

fn panel(picture: &mut Picture, key: &str, series: &[(&str, &[RoundRecord])], x: &Axis, top: f64) {
    let (top, bottom) = (top + 22.0, top + 22.0 + PANEL_HEIGHT - 8.0);
    let points_of = |records: &[RoundRecord]| -> Vec<(f64, f64)> {
        records.iter().filter_map(|record| Some((record.round as f64, record.metric(key)?))).collect()
    };
    let values = || series.iter().flat_map(|(_, records)| points_of(records)).map(|(_, value)| value);
    let (lo, hi) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let mut ticks = nice_ticks(lo, hi, 4);
    if key == "accuracy" && hi <= 1.0 && ticks.len() > 2 {
        // A share does not exceed 1, nor does its axis.
        ticks.retain(|tick| *tick <= 1.0 + 1e-9);
    }
    let y = Axis::new((ticks[0], ticks[ticks.len() - 1]), (bottom, top));
    picture.text("fs-text", LEFT, top - 9.0, "start", &heading(key));
    for tick in &ticks {
        picture.line("fs-grid", (LEFT, y.at(*tick)), (RIGHT, y.at(*tick)));
        picture.text("fs-tick", LEFT - 8.0, y.at(*tick) + 4.0, "end", &tick_label(*tick, &ticks));
    }
    picture.line("fs-axis", (LEFT, bottom), (RIGHT, bottom));
    let rounds = nice_ticks(x.from.0, x.from.1, 8);
    for round in rounds.iter().filter(|r| r.fract() == 0.0 && **r >= x.from.0 && **r <= x.from.1) {
        picture.line("fs-axis", (x.at(*round), bottom), (x.at(*round), bottom + 4.0));
        picture.text("fs-tick", x.at(*round), bottom + 17.0, "middle", &format!("{round:.0}"));
    }
    // This run is drawn last, on top.
    for (index, (_, records)) in series.iter().enumerate().rev() {
        let points: Vec<(f64, f64)> = points_of(records).iter().map(|(r, v)| (x.at(*r), y.at(*v))).collect();
        if points.len() > 1 {
            picture.polyline(&format!("fs-series{index}"), &points);
        }
        // Markers on every point of a long run would hide its line.
        let every = points.len().div_ceil(30).max(1);
        for (at, (px, py)) in points.iter().enumerate() {
            if at % every == 0 || at + 1 == points.len() {
                picture.marker(index, *px, *py);
            }
        }
    }
}
