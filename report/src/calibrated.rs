//! What a run learned from calibration rows, and what it does on test rows, as a report shows it.

use serde::{Deserialize, Serialize};

use crate::conformal::{SetCounts, expected_coverage, expected_share, fewest_rows};
use crate::maps::MapKind;
use crate::metrics::{Evaluation, Interval};
use crate::text::{counted, number, percent, rows};

/// The results of the calibration rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationResults {
    /// The number of calibration rows.
    pub rows: usize,
    /// The number of clients that hold them out.
    pub clients: usize,
    /// The temperature, where one was fitted.
    pub temperature: Option<TemperatureResults>,
    /// The map that was fitted in the place of a temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<MapResults>,
    /// The sets, where there are any.
    pub sets: Option<SetResults>,
}

impl CalibrationResults {
    /// The same results without what is said of test rows.
    #[must_use]
    pub fn without_test_rows(self) -> Self {
        let temperature = self.temperature.map(|of| TemperatureResults { test: None, ..of });
        let map = self.map.map(|of| MapResults { test: None, ..of });
        Self { temperature, map, sets: None, ..self }
    }
}

/// A temperature, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemperatureResults {
    /// T, by which the logarithms of the probabilities are divided.
    pub temperature: f64,
    /// Whether the search ended at a limit: the lower one, where T is then 1, or the upper one.
    pub at_limit: bool,
    /// Mean NLL of the calibration rows at T = 1, in nats.
    pub nll_before: f64,
    /// The same at T.
    pub nll_after: f64,
    /// The scores of the test rows at T = 1 and at T, where they are known.
    pub test: Option<(Evaluation, Evaluation)>,
}

/// A map of probabilities with more numbers than a temperature, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapResults {
    /// The kind of the map.
    pub kind: MapKind,
    /// Mean NLL of the calibration rows without the map, in nats.
    pub nll_before: f64,
    /// The same with it.
    pub nll_after: f64,
    /// The scores of the test rows without and with the map, where they are known.
    pub test: Option<(Evaluation, Evaluation)>,
}

/// Prediction sets on test rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetResults {
    /// The name of the score.
    pub score: String,
    /// Whether it has its random form.
    pub random: bool,
    /// The level.
    pub level: f64,
    /// The threshold of the score; `None` where the calibration rows are too few and every set is everything.
    pub threshold: Option<f64>,
    /// All test rows; `None` where they are not known.
    pub all: Option<SetLine>,
    /// The test rows of each class, in the order of the classes; none of a regression.
    pub classes: Vec<SetLine>,
    /// The test rows of each client, in the order of the clients; none where all clients share the test rows.
    pub clients: Vec<SetLine>,
    /// The test rows of each group, in the order of the groups; none without groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<SetLine>,
}

/// The sets of some rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetLine {
    /// The class or the client.
    pub name: String,
    /// What was counted.
    #[serde(flatten)]
    pub counts: SetCounts,
    /// The share of rows whose set holds the truth.
    pub coverage: Option<f64>,
    /// Its 95 % binomial interval (Wilson 1927), by clusters where the rows have them.
    pub coverage_interval: Option<Interval>,
    /// The number of independent rows that tell as much of the coverage; `None` where rows are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub independent_rows: Option<f64>,
    /// The mean number of classes of a set, or the mean width of an interval.
    pub mean_size: Option<f64>,
}

impl SetLine {
    /// The line of some counts.
    pub fn new(name: impl Into<String>, counts: SetCounts) -> Self {
        Self {
            name: name.into(),
            coverage: counts.coverage(),
            coverage_interval: counts.interval(),
            independent_rows: counts.independent_rows(),
            mean_size: counts.mean_size(),
            counts,
        }
    }
}

impl CalibrationResults {
    /// The results in words, a few sentences for each part.
    pub fn sentences(&self) -> Vec<String> {
        let (rows, holders) = (rows(self.rows), counted(self.clients, "client"));
        let verb = if self.rows == 1 { "was" } else { "were" };
        let held = format!("{rows} of {holders} {verb} held out for calibration.");
        let temperature = self.temperature.as_ref().map(TemperatureResults::sentences);
        let map = self.map.as_ref().map(MapResults::sentences);
        let sets = self.sets.as_ref().map(|sets| sets.sentences(self.rows));
        [Some(held), temperature, map, sets].into_iter().flatten().collect()
    }
}

/// What a temperature does.
pub(crate) fn effect_of(temperature: f64) -> &'static str {
    match temperature {
        1.0 => "leaves every probability as it is",
        t if (t - 1.0).abs() < 0.005 => "hardly changes a probability",
        t if t > 1.0 => "makes every probability softer",
        _ => "makes every probability sharper",
    }
}

impl TemperatureResults {
    fn sentences(&self) -> String {
        let Self { temperature, at_limit, nll_before, nll_after, test } = self;
        let direction = effect_of(*temperature);
        let mut text = format!(
            "The temperature T = {} {direction}: on the calibration rows it changes the NLL from {} to {}",
            number(*temperature),
            number(*nll_before),
            number(*nll_after)
        );
        text += &on_scored_rows(test.as_ref());
        text += ". `fedstein predict` uses it; the other sections of this report are at T = 1.";
        if *at_limit {
            text += match *temperature > 1.0 {
                true => {
                    " The search ended at its upper limit: on the calibration rows the model is confident and wrong, and almost \
                     equal probabilities of all classes are better."
                }
                false => {
                    " The search ended at its lower limit: the calibration rows do not determine a temperature, as where all of \
                     them are right."
                }
            };
        }
        text
    }
}

impl MapResults {
    fn sentences(&self) -> String {
        let Self { kind, nll_before, nll_after, test } = self;
        let what = match kind {
            MapKind::Vector => "a factor and an offset for the logarithm of each class's probability",
            MapKind::Isotonic => "a function of each class's probability that does not fall",
        };
        format!(
            "{} ({what}): on the calibration rows it changes the NLL from {} to {}{}. `fedstein predict` uses it; the sets \
             and the other sections of this report are without it.",
            kind.title(),
            number(*nll_before),
            number(*nll_after),
            on_scored_rows(test.as_ref())
        )
    }
}

/// The NLL of the rows that are scored before and after, as the end of a sentence; nothing where it is not known.
fn on_scored_rows(test: Option<&(Evaluation, Evaluation)>) -> String {
    match test.and_then(|(before, after)| Some((before.nll?, after.nll?))) {
        Some((before, after)) => {
            format!(", on the scored rows from {} to {}", number(before), number(after))
        }
        None => String::new(),
    }
}

impl SetResults {
    /// The range in which the coverage lies by chance, as a sentence; `None` where there are too few rows for calibration.
    fn range_by_chance(&self, calibration_rows: usize) -> Option<String> {
        let with = rows(calibration_rows);
        let tested = self.all.as_ref().map_or(0, |all| all.counts.rows);
        // Of clusters, calibration rows are taken to be as alike as the test rows.
        let independent = self.all.as_ref().and_then(|all| all.counts.independent_rows());
        let part = independent.map_or(1.0, |independent| independent / tested as f64);
        let of = |rows: usize| (rows as f64 * part).round() as usize;
        let (fitted, judged) = (of(calibration_rows), of(tested));
        let as_much = match independent {
            Some(_) => format!(" (which belong together, and tell as much as {fitted} and {judged} independent ones)"),
            None => String::new(),
        };
        let Some(Interval { lo, hi }) = expected_share(fitted, self.level, judged) else {
            let Interval { lo, hi } = expected_coverage(fitted, self.level)?;
            let range = format!("between {} and {}", percent(lo), percent(hi));
            return Some(format!(" With {with} for calibration, a coverage {range} is to be expected by chance."));
        };
        Some(format!(
            " With {with} for calibration and {} to test{as_much}, a share between {} and {} is to be expected by chance.",
            rows(tested),
            percent(lo),
            percent(hi)
        ))
    }

    fn sentences(&self, calibration_rows: usize) -> String {
        let (form, level) = (if self.random { ", random form" } else { "" }, percent(self.level));
        let what = if self.classes.is_empty() { "intervals" } else { "sets" };
        let mut text =
            format!("Conformal {what} ({}{form}) are made to hold the truth for {level} of new rows", self.score);
        if self.threshold.is_none() {
            return text
                + &format!(
                    "; that takes at least {}, so that with these few every one of them holds everything.",
                    rows(fewest_rows(self.level))
                );
        }
        if let Some(all) = &self.all
            && let (Some(coverage), Some(Interval { lo, hi })) = (all.coverage, all.coverage_interval)
        {
            let tested = rows(all.counts.rows);
            text += &format!(
                "; they do for {} of {tested} (95\u{a0}% interval {} to {})",
                percent(coverage),
                percent(lo),
                percent(hi)
            );
        }
        text += ".";
        if matches!(self.score.as_str(), "aps" | "raps") && !self.random {
            text += " Sets of this form hold the truth more often than the level says, because the class at which the \
                     sum reaches the threshold is in them too; `lac`, and the random form of this score, keep to the level.";
        } else {
            text += &self.range_by_chance(calibration_rows).unwrap_or_default();
        }
        let part = if self.classes.is_empty() { "client or of a range of targets" } else { "class or client" };
        text + &format!(
            " The level is meant for rows like those of all clients together; that of a single {part} may lie below."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_calibration_rows_is_a_sentence() {
        let sentences =
            |rows, clients| CalibrationResults { rows, clients, temperature: None, map: None, sets: None }.sentences();
        assert_eq!(sentences(1, 1), ["1 row of 1 client was held out for calibration."]);
        assert_eq!(sentences(2400, 1200), ["2,400 rows of 1,200 clients were held out for calibration."]);
    }
}
