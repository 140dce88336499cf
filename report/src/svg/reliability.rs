//! Reliability diagrams: what happened against what was predicted, the gaps shaded, the number of rows below. One is of
//! accuracy against confidence, the other, of two classes, of the share of class 1 against its probability.

use super::{Axis, Picture, SERIES, WIDTH, nice_ticks};
use crate::analysis::{BinaryAnalysis, ClassAnalysis};
use crate::metrics::{Bin, Interval};
use crate::run::Comparison;
use crate::text::{compact, number, percent, thousands};

const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 18.0;
const PLOT_HEIGHT: f64 = 410.0;
const COUNT_HEIGHT: f64 = 96.0;
/// Beyond this number of bins their counts no longer fit above the bars.
const MOST_COUNTED_BINS: usize = 20;
/// The most letters of a class's name in a label.
const LONGEST_NAME: usize = 24;

/// What a diagram shows.
struct Diagram<'a> {
    /// Start of the ids of its hatchings, which are unique in a page.
    id: &'static str,
    title: String,
    /// Its numbers, in a line.
    facts: String,
    /// Its content for those who do not see it.
    label: String,
    /// The value at which the x axis begins.
    start: f64,
    bins: Vec<&'a Bin>,
    /// The 95 % interval of each bin's bar.
    intervals: Vec<Option<Interval>>,
    others: Vec<&'a Comparison>,
    words: Words,
}

/// The words of a diagram.
struct Words {
    /// What the bars are.
    bar: &'static str,
    /// A prediction above the bar, and one below.
    over: &'static str,
    under: &'static str,
    x: String,
    y: String,
}

/// Draws the diagram of accuracy against confidence; other runs lie over it as lines with markers.
pub(crate) fn reliability(title: &str, analysis: &ClassAnalysis, compare: &[Comparison]) -> Picture {
    let start = least(analysis);
    let with_intervals = analysis.bins.iter().zip(&analysis.bin_intervals);
    let (bins, intervals) = with_intervals.filter(|(bin, _)| bin.lo >= start).unzip();
    Diagram {
        id: "rel",
        title: title.to_owned(),
        facts: facts(analysis),
        label: format!("Reliability diagram of {title}. {} {}", analysis.verdict.headline, analysis.verdict.text),
        start,
        bins,
        intervals,
        others: compare.iter().filter(|c| c.bins.iter().any(|b| b.n > 0)).take(SERIES - 1).collect(),
        words: Words {
            bar: "accuracy",
            over: "too sure",
            under: "not sure enough",
            x: "Confidence (probability of the predicted class)".into(),
            y: "Accuracy".into(),
        },
    }
    .draw()
}

/// Draws the diagram of the share of class 1 against its probability.
pub(crate) fn positive(analysis: &BinaryAnalysis) -> Picture {
    let BinaryAnalysis { positive, mean_probability, recalibration, bins, bin_intervals, .. } = analysis;
    let n: usize = bins.iter().map(|bin| bin.n).sum();
    let (name, share) = (shorten(&positive.name, LONGEST_NAME), percent(positive.rows as f64 / n as f64));
    let slope = recalibration.slope.map_or(String::new(), |slope| format!(" \u{b7} slope {}", number(slope.value)));
    let facts = format!(
        "{} rows \u{b7} share {share} \u{b7} mean probability {}{slope}",
        thousands(n),
        percent(*mean_probability)
    );
    Diagram {
        id: "pos",
        title: format!("Probability of class {name}"),
        label: format!("Reliability diagram of the probability of class {name}: {facts}"),
        facts,
        start: 0.0,
        bins: bins.iter().collect(),
        intervals: bin_intervals.clone(),
        others: Vec::new(),
        words: Words {
            bar: "share of rows",
            over: "probability too high",
            under: "probability too low",
            x: format!("Probability of class {name}"),
            y: format!("Share of rows of class {name}"),
        },
    }
    .draw()
}

impl Diagram<'_> {
    fn draw(&self) -> Picture {
        let legend_rows = 2 + self.others.len().div_ceil(2);
        let top = 74.0 + 20.0 * legend_rows as f64;
        let bottom = top + PLOT_HEIGHT;
        let count_top = bottom + 22.0;
        let count_bottom = count_top + COUNT_HEIGHT;
        let mut picture = Picture::new(count_bottom + 48.0, &self.label);
        self.patterns(&mut picture);
        // About 44 letters of the title's size fit into the width.
        picture.text("fs-title", LEFT, 30.0, "start", &shorten(&self.title, 44));
        picture.text("fs-muted", LEFT, 51.0, "start", &self.facts);
        self.legend(&mut picture);

        let x = Axis::new((self.start, 1.0), (LEFT, RIGHT));
        let y = Axis::new((0.0, 1.0), (bottom, top));
        frame(&mut picture, &x, &y, &self.words.y);
        for bin in &self.bins {
            self.draw_bin(&mut picture, bin, &x, &y);
        }
        picture.line("fs-ideal", (x.at(self.start), y.at(self.start)), (x.at(1.0), y.at(1.0)));
        for (bin, interval) in self.bins.iter().zip(&self.intervals) {
            interval.iter().for_each(|interval| whisker(&mut picture, bin, interval, &x, &y));
        }
        for (index, other) in self.others.iter().enumerate() {
            let point = |bin: &Bin| Some((x.at(bin.confidence?), y.at(bin.accuracy?)));
            let points: Vec<(f64, f64)> = other.bins.iter().filter_map(point).collect();
            picture.polyline(&format!("fs-series{}", index + 1), &points);
            points.iter().for_each(|(px, py)| picture.marker(index + 1, *px, *py));
        }
        counts(&mut picture, &self.bins, &x, (count_top, count_bottom), &self.words.x);
        picture
    }

    /// Hatching by pattern.
    fn patterns(&self, picture: &mut Picture) {
        let pattern = |kind: &str, side: u32, angle: i32| {
            let id = self.id;
            format!(
                "<pattern id=\"{id}-{kind}\" width=\"{side}\" height=\"{side}\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate({angle})\"><rect class=\"fs-{kind}-ground\" width=\"{side}\" \
                 height=\"{side}\"/><line class=\"fs-{kind}-line\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"{side}\"/></pattern>"
            )
        };
        let all = [pattern("over", 7, 45), pattern("under", 7, -45), pattern("empty", 9, 45)];
        picture.raw(&format!("<defs>\n{}\n</defs>", all.join("\n")));
    }
}

/// The confidence at which the diagram begins. The predicted one of two classes has at least one half, so that the bins
/// below that of one half have no rows.
fn least(analysis: &ClassAnalysis) -> f64 {
    if analysis.overall.size("classes") != Some(2) {
        return 0.0;
    }
    let filled = analysis.bins.iter().find(|bin| bin.n > 0).map_or(0.0, |bin| bin.lo);
    analysis.bins.iter().map(|bin| bin.lo).filter(|lo| *lo <= 0.5).fold(0.0, f64::max).min(filled)
}

/// The ticks of an axis of confidence: every tenth where it begins near one half, else every fifth.
fn ticks(x: &Axis) -> Vec<f64> {
    let all = if x.start() > 0.3 { [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] } else { [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] };
    all.into_iter().filter(|tick| *tick >= x.start()).collect()
}

/// The headline numbers in a line.
fn facts(analysis: &ClassAnalysis) -> String {
    let overall = &analysis.overall;
    let share = |value: Option<f64>| value.map_or("no value".to_owned(), percent);
    let ece = overall.get("ece").map_or("no value".to_owned(), |ece| format!("{ece:.4}"));
    format!(
        "{} rows \u{b7} accuracy {} \u{b7} mean confidence {} \u{b7} ECE {ece}",
        thousands(overall.n),
        share(overall.get("accuracy")),
        share(overall.get("mean_confidence"))
    )
}

/// A title that fits its line.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('\u{2026}');
    short
}

impl Diagram<'_> {
    fn legend(&self, picture: &mut Picture) {
        let columns = [LEFT, LEFT + 132.0, LEFT + 300.0];
        let first = 76.0;
        let fill = |kind: &str| format!("url(#{}-{kind})", self.id);
        let mut swatch = |column: usize, row: usize, fill: &str, edge: &str, text: &str| {
            let (x, y) = (columns[column], first + 20.0 * row as f64);
            if fill.starts_with("url") {
                picture.raw(&format!(r#"<rect x="{x}" y="{}" width="18" height="12" fill="{fill}"/>"#, y - 10.0));
            } else {
                picture.rect(fill, x, y - 10.0, 18.0, 12.0);
            }
            if !edge.is_empty() {
                picture.rect(edge, x, y - 10.0, 18.0, 12.0);
            }
            picture.text("fs-muted", x + 25.0, y, "start", text);
        };
        swatch(0, 0, "fs-bar", "", self.words.bar);
        swatch(1, 0, &fill("over"), "fs-over-edge", self.words.over);
        swatch(1, 1, &fill("under"), "fs-under-edge", self.words.under);
        swatch(2, 1, &fill("empty"), "", "no rows");
        let line = |picture: &mut Picture, class: &str, x: f64, row: usize| {
            let y = first + 20.0 * row as f64 - 4.0;
            picture.line(class, (x, y), (x + 18.0, y));
            y
        };
        line(picture, "fs-ideal", columns[2], 0);
        picture.text("fs-muted", columns[2] + 25.0, first, "start", "perfect calibration");
        let y = first + 16.0;
        picture.line("fs-whisker", (columns[0] + 9.0, y - 6.0), (columns[0] + 9.0, y + 6.0));
        picture.line("fs-whisker", (columns[0] + 5.0, y - 6.0), (columns[0] + 13.0, y - 6.0));
        picture.line("fs-whisker", (columns[0] + 5.0, y + 6.0), (columns[0] + 13.0, y + 6.0));
        picture.text("fs-muted", columns[0] + 25.0, first + 20.0, "start", "95 % interval");
        for (index, other) in self.others.iter().enumerate() {
            let (x, row) = (LEFT + 250.0 * (index % 2) as f64, 2 + index / 2);
            let y = line(picture, &format!("fs-series{}", index + 1), x, row);
            picture.marker(index + 1, x + 9.0, y);
            picture.text("fs-muted", x + 25.0, y + 4.0, "start", &shorten(&other.name, 30));
        }
    }
}

fn frame(picture: &mut Picture, x: &Axis, y: &Axis, label: &str) {
    let left = x.at(x.start());
    for tick in [0.0, 0.2, 0.4, 0.6, 0.8, 1.0] {
        picture.line("fs-grid", (left, y.at(tick)), (x.at(1.0), y.at(tick)));
        picture.text("fs-tick", left - 8.0, y.at(tick) + 4.0, "end", &format!("{tick:.1}"));
    }
    for tick in ticks(x) {
        picture.line("fs-grid", (x.at(tick), y.at(0.0)), (x.at(tick), y.at(1.0)));
    }
    picture.line("fs-axis", (left, y.at(0.0)), (left, y.at(1.0)));
    picture.line("fs-axis", (left, y.at(0.0)), (x.at(1.0), y.at(0.0)));
    picture.text_upwards("fs-text", 18.0, y.at(0.5), label);
}

impl Diagram<'_> {
    /// The bar reaches the accuracy; the shading spans accuracy and confidence.
    fn draw_bin(&self, picture: &mut Picture, bin: &Bin, x: &Axis, y: &Axis) {
        let inset = (0.04 * (x.at(bin.hi) - x.at(bin.lo))).min(1.0);
        let (left, width) = (x.at(bin.lo) + inset, x.at(bin.hi) - x.at(bin.lo) - 2.0 * inset);
        let hatched = |picture: &mut Picture, kind: &str, low: f64, high: f64| {
            let (top, height) = (super::round(y.at(high)), super::round(y.at(low) - y.at(high)));
            let (left, width, id) = (super::round(left), super::round(width), self.id);
            picture.raw(&format!(
                r#"<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="url(#{id}-{kind})"/>"#
            ));
        };
        let (Some(accuracy), Some(confidence)) = (bin.accuracy, bin.confidence) else {
            hatched(picture, "empty", 0.0, 1.0);
            return;
        };
        let (low, high) = (accuracy.min(confidence), accuracy.max(confidence));
        picture.rect("fs-bar", left, y.at(low), width, y.at(0.0) - y.at(low));
        let (kind, edge) = if confidence > accuracy { ("over", "fs-over-edge") } else { ("under", "fs-under-edge") };
        if high > low {
            hatched(picture, kind, low, high);
            picture.rect(edge, left, y.at(high), width, y.at(low) - y.at(high));
        }
        picture.line("fs-level", (left, y.at(accuracy)), (left + width, y.at(accuracy)));
    }
}

/// 95 % interval of a bin's accuracy: how much of the gap the rows of a bin can show by chance.
fn whisker(picture: &mut Picture, bin: &Bin, interval: &Interval, x: &Axis, y: &Axis) {
    let (low, high) = (y.at(interval.lo), y.at(interval.hi));
    let middle = x.at(0.5 * (bin.lo + bin.hi));
    let cap = (0.18 * (x.at(bin.hi) - x.at(bin.lo))).min(4.0);
    picture.line("fs-whisker", (middle, low), (middle, high));
    for end in [low, high] {
        picture.line("fs-whisker", (middle - cap, end), (middle + cap, end));
    }
}

fn counts(picture: &mut Picture, bins: &[&Bin], x: &Axis, (top, bottom): (f64, f64), label: &str) {
    let most = bins.iter().map(|bin| bin.n).max().unwrap_or(0).max(1);
    // Room for the number above the highest bar.
    let y = Axis::new((0.0, most as f64), (bottom, top + 14.0));
    let heights: Vec<f64> = nice_ticks(0.0, most as f64, 2).into_iter().filter(|t| *t <= most as f64).collect();
    let start = x.at(x.start());
    for tick in &heights {
        picture.line("fs-grid", (start, y.at(*tick)), (x.at(1.0), y.at(*tick)));
        picture.text("fs-tick", start - 8.0, y.at(*tick) + 4.0, "end", &compact(*tick as usize));
    }
    for bin in bins.iter().filter(|bin| bin.n > 0) {
        let inset = (0.04 * (x.at(bin.hi) - x.at(bin.lo))).min(1.0);
        let (left, width) = (x.at(bin.lo) + inset, x.at(bin.hi) - x.at(bin.lo) - 2.0 * inset);
        let height = (bottom - y.at(bin.n as f64)).max(1.0);
        picture.rect("fs-count", left, bottom - height, width, height);
        if bins.len() <= MOST_COUNTED_BINS {
            picture.text("fs-small", left + 0.5 * width, bottom - height - 3.5, "middle", &compact(bin.n));
        }
    }
    picture.line("fs-axis", (start, bottom), (x.at(1.0), bottom));
    for tick in ticks(x) {
        picture.line("fs-axis", (x.at(tick), bottom), (x.at(tick), bottom + 4.0));
        picture.text("fs-tick", x.at(tick), bottom + 18.0, "middle", &format!("{tick:.1}"));
    }
    picture.text("fs-text", 0.5 * (start + x.at(1.0)), bottom + 38.0, "middle", label);
    picture.text_upwards("fs-text", 18.0, 0.5 * (top + bottom), "Rows");
}
