//! The decision curve: net benefit against the threshold, beside flagging every row and flagging none.

use super::reliability::shorten;
use super::{Axis, Picture, WIDTH, nice_ticks, round, tick_label};
use crate::analysis::BinaryAnalysis;
use crate::metrics::ThresholdRow;
use crate::text::thousands;

const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 116.0;
const BOTTOM: f64 = 446.0;
/// The least end of the axis of thresholds.
const LEAST_END: f64 = 0.05;
/// The part of the axis of net benefit below 0, as a share of the part above.
const BELOW: f64 = 0.12;

/// Draws the curve.
pub(crate) fn decision(analysis: &BinaryAnalysis) -> Picture {
    let name = shorten(&analysis.positive.name, 24);
    let mut picture = Picture::new(BOTTOM + 50.0, &format!("Decision curve for class {name}"));
    picture.text("fs-title", LEFT, 30.0, "start", &format!("Decision curve for class {name}"));
    let rows = thousands(analysis.bins.iter().map(|bin| bin.n).sum());
    let positives = thousands(analysis.positive.rows);
    picture.text("fs-muted", LEFT, 51.0, "start", &format!("{rows} rows \u{b7} {positives} of class {name}"));
    legend(&mut picture);

    let shown = shown(&analysis.thresholds);
    let x = Axis::new((0.0, shown.end), (LEFT, RIGHT));
    let y = Axis::new((-BELOW * shown.highest, shown.highest), (BOTTOM, TOP));
    frame(&mut picture, &x, &y, &shown);
    picture.raw(&format!(
        r#"<clipPath id="dec-plot"><rect x="{LEFT}" y="{TOP}" width="{}" height="{}"/></clipPath><g clip-path="url(#dec-plot)">"#,
        RIGHT - LEFT,
        BOTTOM - TOP
    ));
    band(&mut picture, &shown.rows, &x, &y);
    let of = |value: fn(&ThresholdRow) -> f64| -> Vec<(f64, f64)> {
        shown.rows.iter().map(|row| (x.at(row.threshold), y.at(value(row)))).collect()
    };
    picture.line("fs-ideal", (LEFT, y.at(0.0)), (RIGHT, y.at(0.0)));
    picture.polyline("fs-series1", &of(|row| row.net_benefit_all));
    picture.polyline("fs-series0", &of(|row| row.net_benefit));
    picture.raw("</g>");
    picture
}

/// The part of the curve that is shown.
struct Shown<'a> {
    rows: Vec<&'a ThresholdRow>,
    /// The end of the axis of thresholds: beyond it no row is flagged, and flagging every row is worse than flagging none.
    end: f64,
    /// The end of the axis of net benefit.
    highest: f64,
}

fn shown(rows: &[ThresholdRow]) -> Shown<'_> {
    let flagged = rows.iter().filter(|row| row.true_positives + row.false_positives > 0);
    let last = flagged.map(|row| row.threshold).fold(LEAST_END, f64::max);
    let worth = rows.iter().filter(|row| row.net_benefit_all > 0.0).map(|row| row.threshold);
    let last = worth.fold(last, f64::max);
    let end = nice_ticks(0.0, last, 5).last().copied().unwrap_or(1.0).min(1.0);
    let highest = rows.iter().map(|row| row.net_benefit.max(row.net_benefit_all)).fold(0.0, f64::max);
    let highest = nice_ticks(0.0, highest, 4).last().copied().unwrap_or(1.0);
    Shown { rows: rows.iter().filter(|row| row.threshold <= end + 1e-9).collect(), end, highest }
}

fn legend(picture: &mut Picture) {
    let entry = |picture: &mut Picture, class: &str, x: f64, y: f64, text: &str| {
        picture.line(class, (x, y - 4.0), (x + 26.0, y - 4.0));
        picture.text("fs-muted", x + 34.0, y, "start", text);
    };
    entry(picture, "fs-series0", LEFT, 76.0, "flag by the model");
    picture.rect("fs-band", LEFT + 190.0, 66.0, 26.0, 12.0);
    picture.text("fs-muted", LEFT + 224.0, 76.0, "start", "its 95 % interval");
    entry(picture, "fs-series1", LEFT, 96.0, "flag every row");
    entry(picture, "fs-ideal", LEFT + 190.0, 96.0, "flag none");
}

fn frame(picture: &mut Picture, x: &Axis, y: &Axis, shown: &Shown<'_>) {
    let heights = nice_ticks(0.0, shown.highest, 4);
    for tick in &heights {
        picture.line("fs-grid", (LEFT, y.at(*tick)), (RIGHT, y.at(*tick)));
        picture.text("fs-tick", LEFT - 8.0, y.at(*tick) + 4.0, "end", &tick_label(*tick, &heights));
    }
    let thresholds = nice_ticks(0.0, shown.end, 5);
    for tick in thresholds.iter().filter(|tick| **tick <= shown.end + 1e-9) {
        picture.line("fs-grid", (x.at(*tick), TOP), (x.at(*tick), BOTTOM));
        picture.line("fs-axis", (x.at(*tick), BOTTOM), (x.at(*tick), BOTTOM + 4.0));
        picture.text("fs-tick", x.at(*tick), BOTTOM + 18.0, "middle", &tick_label(*tick, &thresholds));
    }
    picture.line("fs-axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
    picture.line("fs-axis", (LEFT, BOTTOM), (LEFT, TOP));
    picture.text("fs-text", 0.5 * (LEFT + RIGHT), BOTTOM + 38.0, "middle", "Threshold of the probability");
    picture.text_upwards("fs-text", 14.0, 0.5 * (TOP + BOTTOM), "Net benefit");
}

/// The 95 % interval of the net benefit, as an area.
fn band(picture: &mut Picture, rows: &[&ThresholdRow], x: &Axis, y: &Axis) {
    let end = |row: &ThresholdRow, upper: bool| {
        let value = row.net_benefit_interval.map_or(row.net_benefit, |of| if upper { of.hi } else { of.lo });
        format!("{},{}", round(x.at(row.threshold)), round(y.at(value)))
    };
    let there = rows.iter().map(|row| end(row, true));
    let points: Vec<String> = there.chain(rows.iter().rev().map(|row| end(row, false))).collect();
    picture.raw(&format!(r#"<polygon class="fs-band" points="{}"/>"#, points.join(" ")));
}
