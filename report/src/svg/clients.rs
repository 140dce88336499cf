//! Small reliability diagrams, one for each client, site or run.

use super::reliability::shorten;
use super::{Axis, Picture, SERIES, WIDTH};
use crate::metrics::{Bin, share_interval};
use crate::run::Comparison;
use crate::site_scores::SiteScores;
use crate::text::rows;

/// Panels beside one another, and the most panels of clients.
const ACROSS: usize = 3;
const MOST: usize = 12;
const LEFT: f64 = 34.0;
const SIDE: f64 = 150.0;
const STEP: f64 = (WIDTH - LEFT - 10.0) / ACROSS as f64;
const TOP: f64 = 90.0;
const DOWN: f64 = SIDE + 52.0;

/// Draws the first of these that have bins with rows, at most twelve; `None` where none has.
pub(crate) fn clients(title: &str, of: &[&SiteScores]) -> Option<Picture> {
    let with_rows = of.iter().filter(|scores| has_rows(&scores.bins)).take(MOST);
    let shown: Vec<Panel> = with_rows.map(|of| (of.name.as_str(), of.evaluation.rows, &of.bins[..])).collect();
    multiples(title, &shown)
}

/// Draws every one of these runs that has bins with rows, where they are too many for the lines of one diagram; `None`
/// where they are not.
pub(crate) fn runs(others: &[Comparison]) -> Option<Picture> {
    let rows = |run: &Comparison| run.bins.iter().map(|bin| bin.n).sum();
    let with_rows = others.iter().filter(|run| has_rows(&run.bins));
    let shown: Vec<Panel> = with_rows.map(|run| (run.name.as_str(), rows(run), &run.bins[..])).collect();
    if shown.len() < SERIES { None } else { multiples("The other runs", &shown) }
}

/// A name, the number of rows and their bins.
type Panel<'a> = (&'a str, usize, &'a [Bin]);

fn has_rows(bins: &[Bin]) -> bool {
    bins.iter().any(|bin| bin.n > 0)
}

fn multiples(title: &str, shown: &[Panel<'_>]) -> Option<Picture> {
    if shown.is_empty() {
        return None;
    }
    let down = shown.len().div_ceil(ACROSS);
    let mut picture = Picture::new(TOP + DOWN * down as f64, title);
    picture.text("fs-title", 20.0, 30.0, "start", title);
    let facts = "accuracy (bars) against confidence, with 95 % intervals; the dashed line is perfect";
    picture.text("fs-muted", 20.0, 51.0, "start", facts);
    for (at, shown) in shown.iter().enumerate() {
        let left = LEFT + STEP * (at % ACROSS) as f64;
        panel(&mut picture, shown, (left, TOP + DOWN * (at / ACROSS) as f64));
    }
    Some(picture)
}

fn panel(picture: &mut Picture, (name, count, bins): &Panel<'_>, (left, top): (f64, f64)) {
    let (x, y) = (Axis::new((0.0, 1.0), (left, left + SIDE)), Axis::new((0.0, 1.0), (top + SIDE, top)));
    let name = shorten(name, 14);
    picture.text("fs-tick", left, top - 8.0, "start", &format!("{name} \u{b7} {}", rows(*count)));
    for tick in [0.0, 0.5, 1.0] {
        picture.line("fs-grid", (x.at(0.0), y.at(tick)), (x.at(1.0), y.at(tick)));
        picture.text("fs-small", x.at(tick), y.at(0.0) + 13.0, "middle", &format!("{tick}"));
        picture.text("fs-small", x.at(0.0) - 5.0, y.at(tick) + 3.0, "end", &format!("{tick}"));
    }
    bins.iter().for_each(|bin| bar(picture, bin, &x, &y));
    picture.line("fs-ideal", (x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(1.0)));
    picture.line("fs-axis", (x.at(0.0), y.at(0.0)), (x.at(1.0), y.at(0.0)));
    picture.line("fs-axis", (x.at(0.0), y.at(0.0)), (x.at(0.0), y.at(1.0)));
}

/// A bar up to the accuracy of a bin, shaded from there to its confidence.
fn bar(picture: &mut Picture, bin: &Bin, x: &Axis, y: &Axis) {
    let (Some(accuracy), Some(confidence)) = (bin.accuracy, bin.confidence) else { return };
    let (left, width) = (x.at(bin.lo) + 0.5, x.at(bin.hi) - x.at(bin.lo) - 1.0);
    let (low, high) = (accuracy.min(confidence), accuracy.max(confidence));
    picture.rect("fs-bar", left, y.at(low), width, y.at(0.0) - y.at(low));
    let ground = if confidence > accuracy { "fs-over" } else { "fs-under" };
    picture.rect(&format!("{ground}-ground"), left, y.at(high), width, y.at(low) - y.at(high));
    picture.rect(&format!("{ground}-edge"), left, y.at(high), width, y.at(low) - y.at(high));
    let (interval, middle) = (share_interval(accuracy, bin.n), left + 0.5 * width);
    picture.line("fs-whisker", (middle, y.at(interval.lo)), (middle, y.at(interval.hi)));
}
