//! Small reliability diagrams, one for each client or site.

use super::reliability::shorten;
use super::{Axis, Picture, WIDTH};
use crate::metrics::{Bin, share_interval};
use crate::run::SiteScores;
use crate::text::rows;

/// Panels beside one another, and the most panels.
const ACROSS: usize = 3;
const MOST: usize = 12;
const LEFT: f64 = 34.0;
const SIDE: f64 = 150.0;
const STEP: f64 = (WIDTH - LEFT - 10.0) / ACROSS as f64;
const TOP: f64 = 90.0;
const DOWN: f64 = SIDE + 52.0;

/// Draws the first of these that have bins with rows, at most twelve; `None` where none has.
pub(crate) fn clients(title: &str, of: &[&SiteScores]) -> Option<Picture> {
    let with_rows = |scores: &&&SiteScores| scores.bins.iter().any(|bin| bin.n > 0);
    let shown: Vec<&SiteScores> = of.iter().filter(with_rows).take(MOST).copied().collect();
    if shown.is_empty() {
        return None;
    }
    let down = shown.len().div_ceil(ACROSS);
    let mut picture = Picture::new(TOP + DOWN * down as f64, title);
    picture.text("fs-title", 20.0, 30.0, "start", title);
    let facts = "accuracy (bars) against confidence, with 95 % intervals; the dashed line is perfect";
    picture.text("fs-muted", 20.0, 51.0, "start", facts);
    for (at, scores) in shown.into_iter().enumerate() {
        let left = LEFT + STEP * (at % ACROSS) as f64;
        panel(&mut picture, scores, (left, TOP + DOWN * (at / ACROSS) as f64));
    }
    Some(picture)
}

fn panel(picture: &mut Picture, scores: &SiteScores, (left, top): (f64, f64)) {
    let (x, y) = (Axis::new((0.0, 1.0), (left, left + SIDE)), Axis::new((0.0, 1.0), (top + SIDE, top)));
    let name = shorten(&scores.name, 14);
    picture.text("fs-tick", left, top - 8.0, "start", &format!("{name} \u{b7} {}", rows(scores.evaluation.rows)));
    for tick in [0.0, 0.5, 1.0] {
        picture.line("fs-grid", (x.at(0.0), y.at(tick)), (x.at(1.0), y.at(tick)));
        picture.text("fs-small", x.at(tick), y.at(0.0) + 13.0, "middle", &format!("{tick}"));
        picture.text("fs-small", x.at(0.0) - 5.0, y.at(tick) + 3.0, "end", &format!("{tick}"));
    }
    scores.bins.iter().for_each(|bin| bar(picture, bin, &x, &y));
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
