//! The headline in plain language: whether the model is too sure or not sure enough, by how much, in which range of
//! confidence, and on how many rows.

mod kind;
mod notable;
mod second_class;
mod targets;

use serde::Serialize;

use crate::metrics::{Bin, Calibration, CoverageRow, Interval};
use crate::skill::Skill;
use crate::text::{number, percent, points, rows};
use notable::NOTABLE;

pub use kind::VerdictKind;
pub(crate) use notable::FEWEST_ROWS;
pub(crate) use second_class::SecondClass;
pub(crate) use targets::{Bias, Thirds};

/// An interval that reaches further than this to either side does not tell.
const WIDE: f64 = 0.05;

/// The headline in words, with the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibrationVerdict {
    /// What it says.
    pub kind: VerdictKind,
    /// One short line.
    pub headline: String,
    /// The explanation, a few sentences; they begin with the warning.
    pub text: String,
    /// In what the model is no better than one prediction for all rows; `None` where it is better, or where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl CalibrationVerdict {
    /// The verdict on the mean gap, which counts only if its 95 % interval excludes 0. With two classes the gaps of the rows that
    /// are given to the one and to the other may cancel: a probability of the second class that is too high or too low on
    /// average comes first, and without a gap probabilities that are too extreme, or too little.
    ///
    /// # Arguments
    /// * `clusters`: their number, where rows are not independent
    /// * `second`: what is known of the probabilities of the second class, where there are two
    /// * `skill`: compares the accuracy of the rows with a prediction without skill, where that is known
    pub(super) fn of_classes(
        calibration: &Calibration,
        clusters: Option<usize>,
        interval: Option<Interval>,
        second: Option<&SecondClass>,
        skill: impl FnOnce(f64) -> Skill,
    ) -> Self {
        let filled = || calibration.bins().iter().filter(|bin| bin.n > 0);
        let mean = |value: fn(&Bin) -> Option<f64>| {
            filled().map(|bin| bin.n as f64 * value(bin).unwrap_or(0.0)).sum::<f64>() / calibration.rows() as f64
        };
        let (confidence, accuracy) = (mean(|bin| bin.confidence), mean(|bin| bin.accuracy));
        let gap = confidence - accuracy;
        let certain = interval.is_some_and(|i| i.lo > 0.0 || i.hi < 0.0);
        let is_wide = interval.is_none_or(|i| (i.hi - i.lo) / 2.0 > WIDE);
        let shift = second.filter(|second| second.is_shifted());
        let are_few = clusters.unwrap_or(calibration.rows()) < FEWEST_ROWS;
        let slope = second.and_then(SecondClass::notable_slope).filter(|_| !are_few);
        let points_off = format!("{:.1} points", 100.0 * gap.abs());
        let too_few = || (VerdictKind::TooFewRows, "Too few rows to tell".to_owned());
        let (kind, headline) = match () {
            () if are_few => too_few(),
            () if let Some(second) = shift => (VerdictKind::Biased, second.headline()),
            () if certain && gap >= NOTABLE => (VerdictKind::OverConfident, format!("Over-confident by {points_off}")),
            () if certain && gap <= -NOTABLE => {
                (VerdictKind::UnderConfident, format!("Under-confident by {points_off}"))
            }
            () if let Some(slope) = slope.filter(|slope| slope.value < 1.0) => {
                let slope = number(slope.value);
                (
                    VerdictKind::OverConfident,
                    format!("Over-confident: the probabilities are too extreme (calibration slope {slope})"),
                )
            }
            () if let Some(slope) = slope => {
                let slope = number(slope.value);
                let what = "the probabilities are too close to each other";
                (VerdictKind::UnderConfident, format!("Under-confident: {what} (calibration slope {slope})"))
            }
            () if !certain && is_wide => too_few(),
            () => (VerdictKind::CalibratedOnAverage, "No systematic over- or under-confidence".to_owned()),
        };
        let Skill { warning, better } = skill(accuracy);
        let mut text = beginning(warning.as_deref());
        text += &format!(
            "On average the model is {} sure and {} right on {}{}.",
            percent(confidence),
            percent(accuracy),
            rows(calibration.rows()),
            of_clusters(clusters)
        );
        if let Some(Interval { lo, hi }) = interval {
            text +=
                &format!(" The difference is {} points (95 % interval {} to {}).", points(gap), points(lo), points(hi));
        }
        if let Some(second) = shift.filter(|_| kind == VerdictKind::Biased) {
            text += &format!(" {}", second.sentence());
        }
        if let Some(slope) = slope {
            let Interval { lo, hi } = slope.interval(0.95);
            let (slope, lo, hi) = (number(slope.value), number(lo), number(hi));
            text += &format!(" The calibration slope is {slope} (95 % interval {lo} to {hi}; 1 is right).");
        }
        if let Some(sentence) = better {
            text += &format!(" {sentence}");
        }
        if let Some(bin) = calibration.heaviest().filter(|bin| bin.gap.is_some_and(|g| g.abs() >= NOTABLE)) {
            text += &range_sentence(bin);
        }
        let too_sure: usize = filled().filter(|bin| bin.gap.is_some_and(|g| g >= NOTABLE)).map(|bin| bin.n).sum();
        let too_modest: usize = filled().filter(|bin| bin.gap.is_some_and(|g| g <= -NOTABLE)).map(|bin| bin.n).sum();
        text += &format!(
            " In all, {} lie in ranges where the confidence is too high, {} where it is too low.",
            rows(too_sure),
            rows(too_modest)
        );
        Self { kind, headline, text, warning }
    }

    /// No verdict, where the interval of the gap is not known.
    pub(super) fn unknown() -> Self {
        Self { kind: VerdictKind::TooFewRows, headline: "\u{2013}".to_owned(), text: String::new(), warning: None }
    }

    /// No verdict, for this reason, a sentence.
    pub(super) fn not_judged(reason: &str) -> Self {
        Self { kind: VerdictKind::NotJudged, headline: "Not judged".to_owned(), text: reason.to_owned(), warning: None }
    }

    /// The verdict on the 90 % intervals of n rows. A difference counts only beyond two standard errors of the coverage, that
    /// of the 50 % intervals beyond three. Predictions that are too high or too low come first, and intervals that hold on
    /// average alone last.
    ///
    /// # Arguments
    /// * `clusters`: where rows are not independent, the number of clusters, and the design effect of the coverage of a level
    pub(super) fn of_intervals(
        coverage: &[CoverageRow],
        n: usize,
        clusters: Option<(usize, &dyn Fn(f64) -> f64)>,
        (bias, thirds): (Option<Bias>, Option<Thirds>),
        skill: Skill,
    ) -> Self {
        let Skill { warning, .. } = skill;
        let mut text = beginning(warning.as_deref());
        let Some(row) = coverage.iter().find(|row| row.level == 0.9).or(coverage.last()) else {
            return Self { kind: VerdictKind::CalibratedOnAverage, headline: "No intervals".into(), text, warning };
        };
        let miss = row.coverage - row.level;
        let effect = |level: f64| clusters.map_or(1.0, |(_, effect)| effect(level));
        let deviation = |level: f64| (effect(level) * level * (1.0 - level) / n as f64).sqrt();
        let (clusters, are_few) =
            (clusters.map(|(count, _)| count), clusters.map_or(n, |(count, _)| count) < FEWEST_ROWS);
        let noise = 2.0 * deviation(row.level);
        let middle = coverage.iter().find(|row| row.level == 0.5);
        let middle_miss = middle.map_or(0.0, |row| row.coverage - row.level);
        let is_middle_off = middle_miss.abs() > (3.0 * deviation(0.5)).max(4.0 * NOTABLE);
        let bias = bias.filter(|bias| !are_few && bias.is_notable(n));
        // Rounding decides nothing where the difference is exactly two standard errors.
        let within = |bound: f64| miss.abs() <= bound + 1e-9;
        let holds = within(noise.max(NOTABLE));
        let (kind, headline) = match () {
            () if are_few || (within(noise) && noise > 2.0 * WIDE) => (VerdictKind::TooFewRows, "Too few rows to tell"),
            () if holds && is_middle_off && middle_miss > 0.0 => (
                VerdictKind::UnderConfident,
                "The 90 % intervals cover as many targets as they should, the 50 % intervals are too wide",
            ),
            () if holds && is_middle_off => (
                VerdictKind::OverConfident,
                "The 90 % intervals cover as many targets as they should, the 50 % intervals are too narrow",
            ),
            () if holds => (VerdictKind::CalibratedOnAverage, "The intervals cover as many targets as they should"),
            () if miss < 0.0 => (VerdictKind::OverConfident, "Over-confident: the intervals are too narrow"),
            () => (VerdictKind::UnderConfident, "Under-confident: the intervals are too wide"),
        };
        let apart = thirds.and_then(Thirds::worst).filter(|_| holds && kind != VerdictKind::TooFewRows);
        let (kind, headline) = match (&bias, &apart) {
            (Some(bias), _) => (VerdictKind::Biased, bias.headline()),
            (None, Some((kind, headline, _))) => (*kind, headline.clone()),
            (None, None) => (kind, headline.to_owned()),
        };
        text += &format!(
            "The central {:.0} % intervals contain {} of the {} targets{}, {} points from what they promise (chance alone moves \
             this by up to {:.1}).",
            100.0 * row.level,
            percent(row.coverage),
            super::text::thousands(n),
            of_clusters(clusters),
            points(miss),
            100.0 * noise
        );
        if let Some(row) = middle {
            text += &format!(" The central 50 % intervals contain {}.", percent(row.coverage));
        }
        if let Some(bias) = bias {
            text += &format!(" {}", bias.sentence(n));
        }
        if let Some((_, _, sentence)) = apart {
            text += &format!(" {sentence}");
        }
        Self { kind, headline, text, warning }
    }
}

/// The clusters of some rows, behind their number; nothing where rows are independent.
fn of_clusters(clusters: Option<usize>) -> String {
    match clusters {
        Some(1) => " of one cluster".to_owned(),
        Some(count) => format!(" of {} clusters", super::text::thousands(count)),
        None => String::new(),
    }
}

/// The warning with a space behind it.
fn beginning(warning: Option<&str>) -> String {
    warning.map_or_else(String::new, |warning| format!("{warning} "))
}

fn range_sentence(bin: &Bin) -> String {
    let (Some(confidence), Some(accuracy), Some(gap)) = (bin.confidence, bin.accuracy, bin.gap) else {
        return String::new();
    };
    format!(
        " What weighs most {} the {} with a confidence between {:.2} and {:.2}: {} sure, {} right, {:.1} points too {}.",
        if bin.n == 1 { "is" } else { "are" },
        rows(bin.n),
        bin.lo,
        bin.hi,
        percent(confidence),
        percent(accuracy),
        100.0 * gap.abs(),
        if gap > 0.0 { "sure" } else { "modest" },
    )
}
