//! Pictures as text: a small canvas with scales, ticks and a style that follows the reader's light
//! or dark theme.
//!
//! Colours are those of Okabe and Ito, which stay apart for colour-blind readers; hatching shows the direction
//! too, and markers and dashes tell the runs apart.

mod clients;
mod confusion;
mod contour;
mod coverage;
mod curves;
mod decision;
mod figure;
mod heatmap;
mod intervals;
mod reliability;

use std::fmt::Write as _;

pub(super) use clients::{clients, runs};
pub(super) use confusion::confusion;
pub use contour::{ContourFigure, Plane};
pub(super) use coverage::coverage;
pub use curves::curves_svg;
pub(super) use curves::{curves, more_curves};
pub(super) use decision::decision;
pub use figure::{AxisSpec, FigureLine, FigurePoint, LineFigure, Stroke};
pub(super) use heatmap::heatmap;
pub use heatmap::partition_svg;
pub use intervals::{IntervalFigure, IntervalGroup, IntervalRow};
pub(super) use reliability::{positive, reliability};

use crate::text::escape;

/// Width of every picture in user units; narrow, so that its letters stay readable on a phone.
const WIDTH: f64 = 560.0;

/// Classes shared by all pictures, light and dark. No CSS variables: not every SVG renderer knows
/// them.
pub(super) const STYLE: &str = include_str!("style.css");

/// A picture: a body between a known width and height.
#[derive(Debug)]
pub(super) struct Picture {
    height: f64,
    label: String,
    body: String,
}

impl Picture {
    fn new(height: f64, label: &str) -> Self {
        Self { height, label: label.to_owned(), body: String::new() }
    }

    /// A file of its own, with its style and a background.
    pub(super) fn standalone(&self) -> String {
        let background = r#"<rect class="fs-bg" width="100%" height="100%" rx="8"/>"#;
        format!("{}<style>{STYLE}</style>{background}\n{}</svg>\n", self.open(), self.body)
    }

    /// A part of a page that has [`STYLE`] already.
    pub(super) fn inline(&self) -> String {
        format!("{}{}</svg>", self.open(), self.body)
    }

    fn open(&self) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {h}\" width=\"{WIDTH}\" height=\"{h}\" \
             class=\"fs-svg\" role=\"img\" aria-label=\"{label}\">\n",
            h = round(self.height),
            label = escape(&self.label)
        )
    }

    fn raw(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }

    fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let (x, y, width, height) = (round(x), round(y), round(width.max(0.0)), round(height.max(0.0)));
        let _ = writeln!(self.body, r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#);
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(round);
        let _ = writeln!(self.body, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", round(*x), round(*y))).collect();
        let _ = writeln!(self.body, r#"<polyline class="{class}" points="{}"/>"#, points.join(" "));
    }

    /// Text with `anchor` start, middle or end.
    fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let (x, y, text) = (round(x), round(y), escape(text));
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#);
    }

    /// Text that reads upwards, centred on a point.
    fn text_upwards(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (round(x), round(y), escape(text));
        let turn = format!("rotate(-90 {x} {y})");
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x}" y="{y}" transform="{turn}" text-anchor="middle">{text}</text>"#
        );
    }

    /// Text that rises from a point to the right.
    fn text_aslant(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (round(x), round(y), escape(text));
        let turn = format!("rotate(-45 {x} {y})");
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x}" y="{y}" transform="{turn}">{text}</text>"#);
    }

    /// The marker of series `index` at a point.
    fn marker(&mut self, index: usize, x: f64, y: f64) {
        let shape = match index % SERIES {
            0 => format!(r#"<circle cx="{}" cy="{}" r="3.5""#, round(x), round(y)),
            1 => format!(r#"<rect x="{}" y="{}" width="7" height="7""#, round(x - 3.5), round(y - 3.5)),
            2 => format!(r#"<path d="M{} {}l4.5 8h-9z""#, round(x), round(y - 5.0)),
            _ => format!(r#"<path d="M{} {}l4.5 4.5l-4.5 4.5l-4.5 -4.5z""#, round(x), round(y - 4.5)),
        };
        let _ = writeln!(self.body, r#"{shape} class="fs-mark fs-fill{}"/>"#, index % SERIES);
    }
}

/// Series that can be told apart in one picture: this run and three others.
pub(crate) const SERIES: usize = 4;

/// Two decimals are a two-hundredth of a pixel on a screen and keep files small.
fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0 + 0.0
}

/// A linear map from data to pixels.
#[derive(Debug, Clone, Copy)]
struct Axis {
    from: (f64, f64),
    to: (f64, f64),
}

impl Axis {
    fn new(from: (f64, f64), to: (f64, f64)) -> Self {
        Self { from, to }
    }

    /// The value at which it begins.
    fn start(&self) -> f64 {
        self.from.0
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value - self.from.0) / (self.from.1 - self.from.0);
        self.to.0 + share * (self.to.1 - self.to.0)
    }
}

/// About `count` round numbers that enclose `[lo, hi]`: steps of 1, 2 or 5 times a power of ten.
fn nice_ticks(lo: f64, hi: f64, count: usize) -> Vec<f64> {
    let (lo, hi) = if hi - lo > 1e-12 * hi.abs().max(lo.abs()) && hi > lo {
        (lo, hi)
    } else {
        let room = if lo == 0.0 { 0.5 } else { 0.05 * lo.abs() };
        (lo - room, hi + room)
    };
    let rough = (hi - lo) / count.max(1) as f64;
    let power = 10_f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999).unwrap_or(10.0 * power);
    let (first, last) = ((lo / step + 1e-9).floor(), (hi / step - 1e-9).ceil());
    (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect()
}

/// The label of a tick, with as many decimals as the step between ticks needs.
fn tick_label(value: f64, ticks: &[f64]) -> String {
    let step = if ticks.len() > 1 { (ticks[1] - ticks[0]).abs() } else { 1.0 };
    if !(1e-6..1e7).contains(&step) {
        let digits = |value: f64| if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
        let decimals = (digits(value) - (step * 1.001).log10().floor()).clamp(0.0, 17.0) as usize;
        return format!("{value:.decimals$e}").replace('-', "\u{2212}");
    }
    let decimals = (-(step * 1.001).log10().floor()).max(0.0) as usize;
    let rounded = format!("{value:.decimals$}");
    if rounded.trim_start_matches('-').chars().all(|c| c == '0' || c == '.') {
        return rounded.trim_start_matches('-').to_owned();
    }
    rounded.replacen('-', "\u{2212}", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_enclose_the_data() {
        assert_eq!(nice_ticks(0.0, 1.0, 5), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        let ticks = nice_ticks(0.913, 0.968, 4);
        assert!(ticks[0] <= 0.913 && *ticks.last().unwrap() >= 0.968);
        assert_eq!(tick_label(ticks[1], &ticks), "0.92");
        assert!(nice_ticks(3.0, 3.0, 4).len() > 1);
        // Large and small units have as many digits as tell the ticks apart.
        for (low, high) in [(1.1e9, 1.25e9), (3e-9, 3.02e-9), (-2e8, 1e8)] {
            let ticks = nice_ticks(low, high, 5);
            let labels: Vec<String> = ticks.iter().map(|tick| tick_label(*tick, &ticks)).collect();
            let distinct: std::collections::HashSet<_> = labels.iter().collect();
            assert_eq!(distinct.len(), ticks.len(), "{labels:?}");
            assert!(labels.iter().all(|label| !label.contains('-') && label.chars().count() < 10), "{labels:?}");
        }
    }

    #[test]
    fn titles_are_escaped() {
        let mut picture = Picture::new(10.0, "<script>");
        picture.text("fs-text", 0.0, 0.0, "start", "a < b & \"c\"");
        let text = picture.standalone();
        assert!(!text.contains("<script>") && text.contains("a &lt; b &amp; &quot;c&quot;"));
    }
}
