//! The headline in plain language: whether the model is too sure or not sure enough, by how much, in which range of
//! confidence, and on how many rows.

use serde::Serialize;

use crate::metrics::{Bin, Calibration, CoverageRow, Estimate, Interval, ScoredClasses};
use crate::skill::Skill;
use crate::text::{number, percent, points, rows};

/// The smallest gap that is reported: half a point.
const NOTABLE: f64 = 0.005;
/// An interval that reaches further than this to either side does not tell.
const WIDE: f64 = 0.05;

/// Fewer rows have no verdict: the intervals of shares are approximations.
pub(crate) const FEWEST_ROWS: usize = 10;

/// The headline in words, with the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibrationVerdict {
    /// `over-confident`, `under-confident`, `calibrated on average` or `too few rows`; of a regression or of two classes also `biased`.
    pub kind: &'static str,
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
    /// * `second`: what is known of the probabilities of the second class, where there are two
    /// * `skill`: compares the accuracy of the rows with a prediction without skill, where that is known
    pub(super) fn of_classes(
        calibration: &Calibration,
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
        let slope = second.and_then(SecondClass::notable_slope).filter(|_| calibration.rows() >= FEWEST_ROWS);
        let points_off = format!("{:.1} points", 100.0 * gap.abs());
        let too_few = || ("too few rows", "Too few rows to tell".to_owned());
        let (kind, headline) = match () {
            () if calibration.rows() < FEWEST_ROWS => too_few(),
            () if let Some(second) = shift => ("biased", second.headline()),
            () if certain && gap >= NOTABLE => ("over-confident", format!("Over-confident by {points_off}")),
            () if certain && gap <= -NOTABLE => ("under-confident", format!("Under-confident by {points_off}")),
            () if let Some(slope) = slope.filter(|slope| slope.value < 1.0) => {
                let slope = number(slope.value);
                (
                    "over-confident",
                    format!("Over-confident: the probabilities are too extreme (calibration slope {slope})"),
                )
            }
            () if let Some(slope) = slope => {
                let slope = number(slope.value);
                let what = "the probabilities are too close to each other";
                ("under-confident", format!("Under-confident: {what} (calibration slope {slope})"))
            }
            () if !certain && is_wide => too_few(),
            () => ("calibrated on average", "No systematic over- or under-confidence".to_owned()),
        };
        let Skill { warning, better } = skill(accuracy);
        let mut text = beginning(warning.as_deref());
        text += &format!(
            "On average the model is {} sure and {} right on {}.",
            percent(confidence),
            percent(accuracy),
            rows(calibration.rows()),
        );
        if let Some(Interval { lo, hi }) = interval {
            text +=
                &format!(" The difference is {} points (95 % interval {} to {}).", points(gap), points(lo), points(hi));
        }
        if let Some(second) = shift.filter(|_| kind == "biased") {
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
        Self { kind: "too few rows", headline: "\u{2013}".to_owned(), text: String::new(), warning: None }
    }

    /// The verdict on the 90 % intervals of n rows. A difference counts only beyond two standard errors of the coverage, that
    /// of the 50 % intervals beyond three. Predictions that are too high or too low come first.
    pub(super) fn of_intervals(coverage: &[CoverageRow], n: usize, bias: Option<Bias>, skill: Skill) -> Self {
        let Skill { warning, .. } = skill;
        let mut text = beginning(warning.as_deref());
        let Some(row) = coverage.iter().find(|row| row.level == 0.9).or(coverage.last()) else {
            return Self { kind: "calibrated on average", headline: "No intervals".into(), text, warning };
        };
        let miss = row.coverage - row.level;
        let deviation = |level: f64| (level * (1.0 - level) / n as f64).sqrt();
        let noise = 2.0 * deviation(row.level);
        let middle = coverage.iter().find(|row| row.level == 0.5);
        let middle_miss = middle.map_or(0.0, |row| row.coverage - row.level);
        let is_middle_off = middle_miss.abs() > (3.0 * deviation(0.5)).max(4.0 * NOTABLE);
        let bias = bias.filter(|bias| bias.is_notable(n));
        // Rounding decides nothing where the difference is exactly two standard errors.
        let within = |bound: f64| miss.abs() <= bound + 1e-9;
        let holds = within(noise.max(NOTABLE));
        let (kind, headline) = match () {
            () if n < FEWEST_ROWS || (within(noise) && noise > 2.0 * WIDE) => ("too few rows", "Too few rows to tell"),
            () if holds && is_middle_off && middle_miss > 0.0 => {
                ("under-confident", "The 90 % intervals hold what they promise, the 50 % intervals are too wide")
            }
            () if holds && is_middle_off => {
                ("over-confident", "The 90 % intervals hold what they promise, the 50 % intervals are too narrow")
            }
            () if holds => ("calibrated on average", "The intervals hold what they promise"),
            () if miss < 0.0 => ("over-confident", "Over-confident: the intervals are too narrow"),
            () => ("under-confident", "Under-confident: the intervals are too wide"),
        };
        let (kind, headline) = bias.map_or_else(|| (kind, headline.to_owned()), |bias| ("biased", bias.headline()));
        text += &format!(
            "The central {:.0} % intervals contain {} of the {} targets, {} points from what they promise (chance alone moves this \
             by up to {:.1}).",
            100.0 * row.level,
            percent(row.coverage),
            super::text::thousands(n),
            points(miss),
            100.0 * noise
        );
        if let Some(row) = middle {
            text += &format!(" The central 50 % intervals contain {}.", percent(row.coverage));
        }
        if let Some(bias) = bias {
            text += &format!(" {}", bias.sentence(n));
        }
        Self { kind, headline, text, warning }
    }
}

/// The probabilities of the second of two classes.
#[derive(Debug, Clone)]
pub(super) struct SecondClass {
    /// Its name.
    pub name: String,
    /// The number of rows n.
    pub rows: usize,
    /// The mean of the probability, less the share of rows of the class.
    pub difference: f64,
    /// The mean of the squared differences between probability and outcome: half the Brier score.
    pub squared: f64,
    /// The share of rows of the class, where it is known.
    pub share: Option<f64>,
    /// The calibration slope, where it is known.
    pub slope: Option<Estimate>,
}

/// The level at which a difference of the second class or its slope counts. Above the 95 % of the gap, so that three
/// questions find little more by chance than one.
const SECOND_LEVEL: f64 = 0.99;
/// The smallest distance of the slope from 1 that is reported.
const NOTABLE_SLOPE: f64 = 0.1;
/// The smallest difference that is reported of a rare class, as a part of its share.
const NOTABLE_PART: f64 = 0.25;

impl SecondClass {
    /// What single rows tell.
    pub fn of_rows(scored: &ScoredClasses<'_>, name: impl FnOnce() -> String) -> Option<Self> {
        let slope = scored.recalibration()?.slope;
        let rows = scored.rows().count();
        let mean = |of: fn(f64, f64) -> f64| {
            scored.rows().map(|(row, label)| of(row[1], f64::from(u8::from(label == 1)))).sum::<f64>() / rows as f64
        };
        let (difference, squared) = (mean(|p, y| p - y), mean(|p, y| (p - y).powi(2)));
        Some(Self { name: name(), rows, difference, squared, share: Some(mean(|_, y| y)), slope })
    }

    /// Whether the probability is too high or too low on average: beyond chance, and by no small amount.
    fn is_shifted(&self) -> bool {
        let variance = (self.squared - self.difference.powi(2)).max(0.0) / (self.rows.max(2) - 1) as f64;
        let rare = self.share.map_or(f64::INFINITY, |share| NOTABLE_PART * share.min(1.0 - share));
        let Interval { lo, hi } =
            Estimate { value: self.difference, standard_error: variance.sqrt() }.interval(SECOND_LEVEL);
        (lo > 0.0 || hi < 0.0) && self.difference.abs() >= NOTABLE.min(rare)
    }

    /// The slope, where it is beyond chance and no small amount from 1.
    fn notable_slope(&self) -> Option<Estimate> {
        let is_notable = |slope: &Estimate| {
            let Interval { lo, hi } = slope.interval(SECOND_LEVEL);
            (lo > 1.0 || hi < 1.0) && (slope.value - 1.0).abs() >= NOTABLE_SLOPE
        };
        self.slope.filter(is_notable)
    }

    fn headline(&self) -> String {
        let direction = if self.difference > 0.0 { "too high" } else { "too low" };
        format!(
            "Biased: the probability of `{}` is {direction} by {:.1} points on average",
            self.name,
            100.0 * self.difference.abs()
        )
    }

    fn sentence(&self) -> String {
        match self.share {
            Some(share) => format!(
                "The mean probability of `{}` is {}, and {} of the rows are of this class.",
                self.name,
                percent(share + self.difference),
                percent(share)
            ),
            None => format!(
                "The mean probability of `{}` is {} points from the share of rows of this class.",
                self.name,
                points(self.difference)
            ),
        }
    }
}

/// The mean error of the predictions of a regression, in the unit of the target.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bias {
    /// The mean of prediction minus target.
    pub mean: f64,
    /// The root mean squared error.
    pub rmse: f64,
    /// The root of the mean predictive variance.
    pub sd: f64,
}

/// A mean error is notable from this share of the mean squared error on, and from this many predictive standard deviations.
const NOTABLE_BIAS: (f64, f64) = (0.1, 1.0 / 3.0);

impl Bias {
    /// The standard error of the mean of n errors.
    fn standard_error(self, n: usize) -> f64 {
        ((self.rmse.powi(2) - self.mean.powi(2)).max(0.0) / (n.max(2) - 1) as f64).sqrt()
    }

    fn share(self) -> f64 {
        (self.mean / self.rmse).powi(2)
    }

    /// Whether the mean error is beyond two standard errors, and no small part of the errors and of what is predicted of them.
    fn is_notable(self, n: usize) -> bool {
        let (share, deviations) = NOTABLE_BIAS;
        let is_certain = n > 1 && self.mean.abs() > 2.0 * self.standard_error(n);
        is_certain && self.share() >= share && self.mean.abs() >= deviations * self.sd
    }

    fn direction(self) -> &'static str {
        if self.mean > 0.0 { "too high" } else { "too low" }
    }

    fn headline(self) -> String {
        format!("Biased: the predictions are {} by {} on average", self.direction(), number(self.mean.abs()))
    }

    fn sentence(self, n: usize) -> String {
        format!(
            "On average the predictions are {} by {} \u{00b1} {} (one standard error), which is {} of the mean squared error.",
            self.direction(),
            number(self.mean.abs()),
            number(self.standard_error(n)),
            percent(self.share())
        )
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
        " What weighs most are the {} with a confidence between {:.2} and {:.2}: {} sure, {} right, {:.1} points too {}.",
        rows(bin.n),
        bin.lo,
        bin.hi,
        percent(confidence),
        percent(accuracy),
        100.0 * gap.abs(),
        if gap > 0.0 { "sure" } else { "modest" },
    )
}
