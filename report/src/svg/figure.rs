//! A figure of a paper: lines with bands over linear or logarithmic axes.

use super::reliability::shorten;
use super::{Axis, Picture, WIDTH, nice_ticks, round, tick_label};

pub(super) const LEFT: f64 = 74.0;
pub(super) const RIGHT: f64 = WIDTH - 18.0;
const PLOT_HEIGHT: f64 = 330.0;
/// Room for the outermost markers.
const INSET: f64 = 9.0;
/// Letters that fit into half of the legend's width.
pub(super) const LEGEND_LETTERS: usize = 33;
/// Colours of the style; more series than that begin again with another dash.
const COLOURS: usize = 10;
const STYLE: &str = include_str!("figure.css");

/// An axis of a figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AxisSpec {
    /// The label, with the unit.
    pub label: String,
    /// Logarithmic, base 10; values that are not positive are left out.
    pub log: bool,
    /// The ends of the axis; `None` for those of the data.
    pub range: Option<(f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stroke {
    /// A line with a marker on its points and a band around it.
    #[default]
    Marked,
    /// A line without markers, with its band.
    Plain,
    /// Markers with whiskers, no line.
    Points,
    /// A thin dashed line.
    Dashed,
    /// The ground between the line and 0.
    Area,
    /// A horizontal line at the first point's height, with its band, from end to end.
    Level,
}

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigurePoint {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The position on the vertical axis.
    pub y: f64,
    /// Half of the band's height; 0 for no band.
    pub spread: f64,
}

/// One series of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureLine {
    /// The name in the legend.
    pub name: String,
    /// The style of the line.
    pub stroke: Stroke,
    /// The points, in the order of the line.
    pub points: Vec<FigurePoint>,
}

/// Lines over two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineFigure {
    /// The heading.
    pub title: String,
    /// A description in one line.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: AxisSpec,
    /// The vertical axis.
    pub y: AxisSpec,
    /// The series, in the order of their colours.
    pub lines: Vec<FigureLine>,
    /// Whether the line y = x is drawn.
    pub diagonal: bool,
}

impl LineFigure {
    /// The figure as an SVG file; `None` without a point to draw.
    pub fn svg(&self) -> Option<String> {
        let (x, y) = (self.scale_x()?, self.scale_y()?);
        let top = 66.0 + 20.0 * self.lines.len().div_ceil(2) as f64 + 14.0;
        let bottom = top + PLOT_HEIGHT;
        let (x, y) = (x.over(LEFT + INSET, RIGHT - INSET), y.over(bottom, top));
        let mut picture = opened(bottom + 52.0, &self.title, &self.subtitle);
        for (index, line) in self.lines.iter().enumerate() {
            let at = (LEFT + 0.5 * (RIGHT - LEFT) * (index % 2) as f64, 76.0 + 20.0 * (index / 2) as f64);
            legend(&mut picture, index, line, at);
        }
        frame(&mut picture, (&x, &self.x.label), (&y, &self.y.label), (top, bottom));
        let (width, height) = (round(RIGHT - LEFT), round(bottom - top));
        picture.raw(&format!(
            r#"<clipPath id="fg-plot"><rect x="{LEFT}" y="{top}" width="{width}" height="{height}"/></clipPath>"#
        ));
        picture.raw(r#"<g clip-path="url(#fg-plot)">"#);
        if self.diagonal {
            let from = x.ends.0.max(y.ends.0);
            let to = x.ends.1.min(y.ends.1);
            picture.line("fs-ideal", (x.at(from), y.at(from)), (x.at(to), y.at(to)));
        }
        // Bands first, so that no line disappears under one; then the first series on top.
        for (index, line) in self.lines.iter().enumerate() {
            band(&mut picture, index, line, &x, &y);
        }
        for (index, line) in self.lines.iter().enumerate().rev() {
            draw(&mut picture, index, line, &x, &y);
        }
        picture.raw("</g>");
        Some(picture.standalone())
    }

    fn scale_x(&self) -> Option<Scale> {
        let points = || self.lines.iter().filter(|line| line.stroke != Stroke::Level).flat_map(|line| &line.points);
        // With nothing but levels, any width will do.
        let only_levels = points().next().is_none();
        let all = || self.lines.iter().filter(move |_| only_levels).flat_map(|line| &line.points);
        Scale::new(&self.x, points().chain(all()).map(|point| point.x), false)
    }

    fn scale_y(&self) -> Option<Scale> {
        let ends = |point: &FigurePoint| [point.y - point.spread, point.y, point.y + point.spread];
        let from_zero = self.lines.iter().any(|line| line.stroke == Stroke::Area);
        let zero = from_zero.then_some(0.0);
        let values = self.lines.iter().flat_map(|line| &line.points).flat_map(ends);
        Scale::new(&self.y, values.chain(zero), true)
    }
}

/// Data to pixels, straight or by the logarithm.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    log: bool,
    /// The ends in the units of the data.
    ends: (f64, f64),
    pub(super) ticks: Vec<f64>,
    axis: Axis,
}

impl Scale {
    /// `wide` widens the ends to the ticks around the data; `None` without a value.
    pub(super) fn new(spec: &AxisSpec, values: impl Iterator<Item = f64>, wide: bool) -> Option<Self> {
        let usable = values.filter(|value| value.is_finite() && (!spec.log || *value > 0.0));
        let found =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = spec.range.unwrap_or(found);
        if !(low.is_finite() && high.is_finite()) || (spec.log && low <= 0.0) {
            return None;
        }
        let (low, high) =
            if high > low { (low, high) } else { (low - 0.5 * low.abs().max(0.01), high + 0.5 * high.abs().max(0.01)) };
        let log = spec.log && low > 0.0;
        let around = if log { decades(low, high) } else { nice_ticks(low, high, 5) };
        let ends = match (wide && spec.range.is_none(), around.first(), around.last()) {
            (true, Some(first), Some(last)) => (first.min(low), last.max(high)),
            _ => (low, high),
        };
        let slack = 1e-9 * (ends.1 - ends.0);
        let ticks = around.into_iter().filter(|tick| (ends.0 - slack..=ends.1 + slack).contains(tick)).collect();
        let through = |value: f64| if log { value.log10() } else { value };
        Some(Self { log, ends, ticks, axis: Axis::new((through(ends.0), through(ends.1)), (0.0, 1.0)) })
    }

    /// Between two pixels.
    pub(super) fn over(mut self, from: f64, to: f64) -> Self {
        self.axis.to = (from, to);
        self
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        // Below every logarithmic axis lies 0.
        let value = if self.log { value.max(1e-3 * self.ends.0).log10() } else { value };
        self.axis.at(value)
    }

    pub(super) fn label(&self, tick: f64) -> String {
        if !self.log {
            return tick_label(tick, &self.ticks);
        }
        let text = if (1e-3..1e5).contains(&tick) { format!("{tick}") } else { format!("{tick:.0e}") };
        text.replacen('-', "\u{2212}", 1)
    }
}

/// Powers of ten that lie in or around a range, with 2 and 5 times of them where there are few.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let steps: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let ticks = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
    let all: Vec<f64> = ticks.collect();
    // The nearest outside of the range on either side, and all between.
    let from = all.iter().rposition(|tick| *tick <= low).unwrap_or(0);
    let to = all.iter().position(|tick| *tick >= high).unwrap_or(all.len() - 1);
    all[from..=to].to_vec()
}

pub(super) fn opened(height: f64, title: &str, subtitle: &str) -> Picture {
    let mut picture = Picture::new(height, &format!("{title}. {subtitle}"));
    picture.raw(&format!("<style>{STYLE}</style>"));
    picture.text("fs-title", 20.0, 30.0, "start", &shorten(title, 48));
    picture.text("fs-muted", 20.0, 51.0, "start", &shorten(subtitle, 84));
    picture
}

pub(super) fn frame(
    picture: &mut Picture,
    (x, x_label): (&Scale, &str),
    (y, y_label): (&Scale, &str),
    (top, bottom): (f64, f64),
) {
    for tick in &y.ticks {
        picture.line("fs-grid", (LEFT, y.at(*tick)), (RIGHT, y.at(*tick)));
        picture.text("fs-tick", LEFT - 8.0, y.at(*tick) + 4.0, "end", &y.label(*tick));
    }
    for tick in &x.ticks {
        picture.line("fs-axis", (x.at(*tick), bottom), (x.at(*tick), bottom + 4.0));
        picture.text("fs-tick", x.at(*tick), bottom + 18.0, "middle", &x.label(*tick));
    }
    picture.line("fs-axis", (LEFT, bottom), (RIGHT, bottom));
    picture.line("fs-axis", (LEFT, bottom), (LEFT, top));
    picture.text("fs-text", 0.5 * (LEFT + RIGHT), bottom + 40.0, "middle", x_label);
    picture.text_upwards("fs-text", 18.0, 0.5 * (top + bottom), y_label);
}

fn legend(picture: &mut Picture, index: usize, line: &FigureLine, (x, y): (f64, f64)) {
    let middle = y - 4.0;
    match line.stroke {
        Stroke::Area => picture.rect("fg-area", x, y - 10.0, 26.0, 12.0),
        Stroke::Points => mark(picture, index, x + 13.0, middle),
        _ => picture.line(&stroke(index, line.stroke), (x, middle), (x + 26.0, middle)),
    }
    if line.stroke == Stroke::Marked {
        mark(picture, index, x + 13.0, middle);
    }
    picture.text("fs-muted", x + 33.0, y, "start", &shorten(&line.name, LEGEND_LETTERS));
}

/// The classes of a series' line.
fn stroke(index: usize, stroke: Stroke) -> String {
    let (weight, dash) = match stroke {
        Stroke::Dashed => ("fg-thin", 1),
        _ => ("fg", (index + index / COLOURS) % 4),
    };
    format!("{weight} fg-s{} fg-d{dash}", index % COLOURS)
}

/// The marker of a series: five shapes, filled for the first five colours and hollow for the others.
pub(super) fn mark(picture: &mut Picture, index: usize, x: f64, y: f64) {
    let (x, y, colour) = (round(x), round(y), index % COLOURS);
    let class = if colour < 5 { format!("fg-solid fg-f{colour}") } else { format!("fg-hollow fg-s{colour}") };
    let shape = match index % 5 {
        0 => format!(r#"<circle cx="{x}" cy="{y}" r="3.5""#),
        1 => format!(r#"<path d="M{} {}h6.6v6.6h-6.6z""#, round(x - 3.3), round(y - 3.3)),
        2 => format!(r#"<path d="M{x} {}l4.3 7.6h-8.6z""#, round(y - 4.8)),
        3 => format!(r#"<path d="M{x} {}l4.3 4.3l-4.3 4.3l-4.3 -4.3z""#, round(y - 4.3)),
        _ => format!(r#"<path d="M{x} {}l4.3 -7.6h-8.6z""#, round(y + 4.8)),
    };
    picture.raw(&format!(r#"{shape} class="{class}"/>"#));
}

fn band(picture: &mut Picture, index: usize, line: &FigureLine, x: &Scale, y: &Scale) {
    let point = |x: f64, y: f64| format!("{},{}", round(x), round(y));
    let class = format!("fg-band fg-f{}", index % COLOURS);
    let corners: Vec<String> = match (line.stroke, line.points.first()) {
        (Stroke::Area, Some(first)) => {
            let (last, ground) = (line.points[line.points.len() - 1], y.at(y.ends.0.max(0.0)));
            let along = line.points.iter().map(|p| point(x.at(p.x), y.at(p.y)));
            along.chain([point(x.at(last.x), ground), point(x.at(first.x), ground)]).collect()
        }
        (Stroke::Level, Some(first)) if first.spread > 0.0 => {
            let (low, high) = (y.at(first.y - first.spread), y.at(first.y + first.spread));
            [(LEFT, high), (RIGHT, high), (RIGHT, low), (LEFT, low)].map(|(x, y)| point(x, y)).to_vec()
        }
        (Stroke::Marked | Stroke::Plain, _) if line.points.iter().any(|p| p.spread > 0.0) => {
            let above = line.points.iter().map(|p| point(x.at(p.x), y.at(p.y + p.spread)));
            let below = line.points.iter().rev().map(|p| point(x.at(p.x), y.at(p.y - p.spread)));
            above.chain(below).collect()
        }
        _ => return,
    };
    let class = if line.stroke == Stroke::Area { "fg-area" } else { &class };
    picture.raw(&format!(r#"<polygon class="{class}" points="{}"/>"#, corners.join(" ")));
}

fn draw(picture: &mut Picture, index: usize, line: &FigureLine, x: &Scale, y: &Scale) {
    let points: Vec<(f64, f64)> = line.points.iter().map(|p| (x.at(p.x), y.at(p.y))).collect();
    match line.stroke {
        Stroke::Area => {}
        Stroke::Level => {
            if let Some((_, height)) = points.first() {
                picture.line(&stroke(index, line.stroke), (LEFT, *height), (RIGHT, *height));
            }
        }
        Stroke::Points => {
            for (p, (px, py)) in line.points.iter().zip(&points) {
                if p.spread > 0.0 {
                    picture.line("fs-whisker", (*px, y.at(p.y - p.spread)), (*px, y.at(p.y + p.spread)));
                }
                mark(picture, index, *px, *py);
            }
        }
        Stroke::Marked | Stroke::Plain | Stroke::Dashed => {
            if points.len() > 1 {
                picture.polyline(&stroke(index, line.stroke), &points);
            }
            // Markers on every point of a long line would hide it.
            let every = points.len().div_ceil(20).max(1);
            for (at, (px, py)) in points.iter().enumerate() {
                if line.stroke == Stroke::Marked && (at % every == 0 || at + 1 == points.len()) {
                    mark(picture, index, *px, *py);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stroke: Stroke, points: &[(f64, f64)]) -> FigureLine {
        let points = points.iter().map(|(x, y)| FigurePoint { x: *x, y: *y, spread: 0.1 }).collect();
        FigureLine { name: "a & b".into(), stroke, points }
    }

    fn figure(lines: Vec<FigureLine>) -> LineFigure {
        LineFigure { title: "T".into(), lines, ..LineFigure::default() }
    }

    #[test]
    fn a_figure_without_a_point_is_not_drawn() {
        assert_eq!(figure(vec![]).svg(), None);
        assert_eq!(figure(vec![line(Stroke::Marked, &[])]).svg(), None);
        assert_eq!(figure(vec![line(Stroke::Marked, &[(1.0, f64::NAN)])]).svg(), None);
    }

    #[test]
    fn bands_lines_and_markers_are_drawn_and_names_escaped() {
        let svg = figure(vec![line(Stroke::Marked, &[(1.0, 0.5), (2.0, 0.7)])]).svg().unwrap();
        assert_eq!(svg.matches("<polyline").count(), 1);
        assert_eq!(svg.matches("<polygon class=\"fg-band fg-f0\"").count(), 1);
        // One in the legend, two on the line.
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("a &amp; b"));
    }

    #[test]
    fn a_level_reaches_from_end_to_end_and_does_not_stretch_the_axis() {
        let lines = vec![line(Stroke::Marked, &[(1.0, 0.5), (4.0, 0.7)]), line(Stroke::Level, &[(800.0, 0.6)])];
        let svg = figure(lines).svg().unwrap();
        assert!(!svg.contains(">800<"));
        assert!(svg.contains(&format!(r#"x1="{LEFT}""#)) && svg.contains(&format!(r#"x2="{RIGHT}""#)));
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_with_steps_between_where_there_is_room() {
        assert_eq!(decades(3.0, 40.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(decades(0.5, 3e5), [0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        let spec = AxisSpec { log: true, ..AxisSpec::default() };
        let scale = Scale::new(&spec, [1.0, 100.0].into_iter(), false).unwrap().over(0.0, 200.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!(Scale::new(&spec, [0.0].into_iter(), false).is_none());
    }
}
