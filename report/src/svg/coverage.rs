//! The calibration plot of a regression: nominal against observed coverage, and the PIT histogram below.

use super::reliability::shorten;
use super::{Axis, Picture, WIDTH, nice_ticks};
use crate::analysis::RegressionAnalysis;
use crate::text::{compact, number, thousands};

const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 18.0;

/// Draws the plot.
pub(crate) fn coverage(title: &str, analysis: &RegressionAnalysis) -> Picture {
    let label = format!("Coverage of {title}. {} {}", analysis.verdict.headline, analysis.verdict.text);
    let mut picture = Picture::new(766.0, &label);
    let overall = &analysis.overall;
    let value = |v: Option<f64>| v.map_or("no value".to_owned(), number);
    picture.text("fs-title", LEFT, 30.0, "start", &shorten(title, 44));
    let facts = format!(
        "{} rows \u{b7} RMSE {} \u{b7} CRPS {} \u{b7} NLL {}",
        thousands(overall.n),
        value(overall.get("rmse")),
        value(overall.get("crps")),
        value(overall.get("nll"))
    );
    picture.text("fs-muted", LEFT, 51.0, "start", &facts);
    for (x, class, text) in
        [(LEFT, "fs-series0", "central intervals"), (LEFT + 170.0, "fs-ideal", "perfect calibration")]
    {
        picture.line(class, (x, 72.0), (x + 22.0, 72.0));
        picture.text("fs-muted", x + 29.0, 76.0, "start", text);
    }
    let x = Axis::new((0.0, 1.0), (LEFT, RIGHT));
    levels(&mut picture, analysis, &x, 96.0, 506.0);
    pit(&mut picture, &analysis.pit_histogram, &x, 588.0, 718.0);
    picture
}

fn levels(picture: &mut Picture, analysis: &RegressionAnalysis, x: &Axis, top: f64, bottom: f64) {
    let y = Axis::new((0.0, 1.0), (bottom, top));
    for tick in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        picture.line("fs-grid", (x.at(0.0), y.at(tick)), (x.at(1.0), y.at(tick)));
        picture.line("fs-grid", (x.at(tick), y.at(0.0)), (x.at(tick), y.at(1.0)));
        picture.text("fs-tick", x.at(0.0) - 8.0, y.at(tick) + 4.0, "end", &format!("{tick:.1}"));
        picture.text("fs-tick", x.at(tick), bottom + 18.0, "middle", &format!("{tick:.1}"));
    }
    let curve: Vec<(f64, f64)> =
        analysis.interval_calibration.curve.iter().map(|(p, q)| (x.at(*p), y.at(*q))).collect();
    let ground = |class: &str, below: bool| {
        let clip = |p: f64, q: f64| if below { q.min(p) } else { q.max(p) };
        let along = analysis.interval_calibration.curve.iter();
        let mut points: Vec<String> =
            along.map(|(p, q)| format!("{},{}", super::round(x.at(*p)), super::round(y.at(clip(*p, *q))))).collect();
        points.push(format!("{},{}", super::round(x.at(1.0)), super::round(y.at(1.0))));
        points.push(format!("{},{}", super::round(x.at(0.0)), super::round(y.at(0.0))));
        format!(r#"<polygon class="{class}" points="{}"/>"#, points.join(" "))
    };
    let (over, under) = (ground("fs-over-ground", true), ground("fs-under-ground", false));
    picture.raw(&over);
    picture.raw(&under);
    picture.line("fs-ideal", (x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(1.0)));
    picture.polyline("fs-series0", &curve);
    for row in &analysis.coverage {
        picture.marker(0, x.at(row.level), y.at(row.coverage));
    }
    picture.text("fs-muted", x.at(0.06), y.at(0.93), "start", "above: too wide, under-confident");
    picture.text("fs-muted", x.at(0.96), y.at(0.05), "end", "below: too narrow, over-confident");
    picture.line("fs-axis", (x.at(0.0), bottom), (x.at(1.0), bottom));
    picture.line("fs-axis", (x.at(0.0), bottom), (x.at(0.0), top));
    picture.text("fs-text", x.at(0.5), bottom + 38.0, "middle", "Nominal level of the central interval");
    picture.text_upwards("fs-text", 18.0, y.at(0.5), "Observed: share of targets inside");
}

fn pit(picture: &mut Picture, counts: &[usize], x: &Axis, top: f64, bottom: f64) {
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let y = Axis::new((0.0, most as f64), (bottom, top));
    picture.text(
        "fs-text",
        x.at(0.0),
        top - 12.0,
        "start",
        "PIT: level when calibrated, U when too narrow, hump when too wide",
    );
    for tick in nice_ticks(0.0, most as f64, 2).into_iter().filter(|t| *t <= most as f64) {
        picture.line("fs-grid", (x.at(0.0), y.at(tick)), (x.at(1.0), y.at(tick)));
        picture.text("fs-tick", x.at(0.0) - 8.0, y.at(tick) + 4.0, "end", &compact(tick as usize));
    }
    let step = 1.0 / counts.len().max(1) as f64;
    for (j, &count) in counts.iter().enumerate() {
        let left = x.at(j as f64 * step);
        picture.rect(
            "fs-count",
            left + 1.0,
            y.at(count as f64),
            x.at((j + 1) as f64 * step) - left - 2.0,
            bottom - y.at(count as f64),
        );
    }
    let uniform = y.at(counts.iter().sum::<usize>() as f64 * step);
    picture.line("fs-ideal", (x.at(0.0), uniform), (x.at(1.0), uniform));
    picture.line("fs-axis", (x.at(0.0), bottom), (x.at(1.0), bottom));
    for tick in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        picture.text("fs-tick", x.at(tick), bottom + 17.0, "middle", &format!("{tick:.1}"));
    }
    picture.text("fs-text", x.at(0.5), bottom + 37.0, "middle", "Probability integral transform");
    picture.text_upwards("fs-text", 18.0, 0.5 * (top + bottom), "Rows");
}
