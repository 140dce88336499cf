//! The section on two classes, for somebody who decides with the probability of one of them.

use super::body::{Body, Card, First, NOTHING, interval, shares, shown, with_range};
use super::classification;
use super::pictures::Pictures;
use crate::analysis::{BinaryAnalysis, ClassAnalysis};
use crate::metrics::{Estimate, Metric, ThresholdRow, View};
use crate::text::{number, percent, rows, thousands};

/// The thresholds of the page's table; `thresholds.csv` has all.
const SHOWN: [f64; 16] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// Smaller thresholds than 0.01 are shown for classes with a smaller share than this.
const RARE: f64 = 0.02;

/// The whole section.
pub(super) fn section(body: &mut Body, all: &ClassAnalysis, binary: &BinaryAnalysis, pictures: &Pictures<'_>) {
    body.heading("The probability of one class");
    body.paragraph(&introduction(all.overall.n, binary));
    if !binary.has_both() {
        body.paragraph(
            "All rows have the same class. How the probability ranks rows of two classes, the calibration slope and the use \
             of thresholds cannot be judged on them.",
        );
    } else {
        cards(body, all);
        body.paragraph(&recalibration(binary));
    }
    if let Some(positive) = pictures.positive {
        body.picture(positive);
    }
    body.details("The bins of this probability as a table", |body| {
        classification::bin_table(body, ["Probability", "Share", "Mean probability"], &binary.bins);
    });
    if let Some(decision) = pictures.decision {
        thresholds(body, binary);
        body.picture(decision);
        body.paragraph(&useful(binary));
    }
}

fn introduction(n: usize, binary: &BinaryAnalysis) -> String {
    let positive = &binary.positive;
    format!(
        "The positive class is {} (index 1 of the two classes), the other one {}. Of {}, {} are of class {}{}: a share of {}; \
         its mean probability is {}.",
        positive.name,
        positive.other,
        rows(n),
        thousands(positive.rows),
        positive.name,
        match positive.clusters {
            Some(1) => ", all of one cluster".to_owned(),
            Some(clusters) => format!(", of {} clusters", thousands(clusters)),
            None => String::new(),
        },
        percent(positive.rows as f64 / n as f64),
        percent(binary.mean_probability)
    )
}

fn cards(body: &mut Body, all: &ClassAnalysis) {
    let card = |(metric, value): (&'static Metric, Option<f64>)| {
        let range = interval(metric.unit, all.confidence_intervals.as_ref().and_then(|of| of.get(metric.key)));
        let parts: Vec<&str> =
            [range.as_str(), metric.small_print].into_iter().filter(|part| !part.is_empty()).collect();
        Card::new(metric.name, shown(metric.unit, value), parts.join("; "))
    };
    body.cards(&all.overall.in_view(View::Decision).into_iter().map(card).collect::<Vec<_>>());
}

/// What slope and calibration in the large say, in words.
fn recalibration(binary: &BinaryAnalysis) -> String {
    let of = &binary.recalibration;
    let against = |estimate: Estimate, perfect: f64, below: &'static str, above: &'static str, level: &'static str| {
        let range = estimate.interval(0.95);
        match () {
            () if range.hi < perfect => below,
            () if range.lo > perfect => above,
            () => level,
        }
    };
    let name = &binary.positive.name;
    let other = of.missing_in_the_large.filter(|missing| of.missing != Some(*missing));
    let mut sentences: Vec<String> =
        of.missing.into_iter().chain(other).map(|missing| missing.sentence().to_owned()).collect();
    if let Some(slope) = of.slope {
        sentences.push(
            against(
                slope,
                1.0,
                "The probabilities are too extreme: the interval of the slope is below 1.",
                "The probabilities are not extreme enough: the interval of the slope is above 1.",
                "The interval of the slope contains 1: these rows do not show probabilities that are too extreme, or not \
                 extreme enough.",
            )
            .to_owned(),
        );
    }
    if let Some(large) = of.in_the_large {
        let words = against(large, 0.0, "too high on average", "too low on average", "");
        sentences.push(match words {
            "" => format!("The probabilities of class {name} are neither too high nor too low on average, as far as these rows tell."),
            words => format!("The probabilities of class {name} are {words}."),
        });
    }
    if of.floored > 0 {
        let verb = if of.floored == 1 { "has" } else { "have" };
        sentences.push(format!(
            "{} {verb} a probability of 0 or 1, or closer to it than 1e-12; for slope and intercepts this distance is taken \
             as 1e-12, and a single such row that is wrong can set them.",
            rows(of.floored)
        ));
    }
    sentences.join(" ")
}

fn thresholds(body: &mut Body, binary: &BinaryAnalysis) {
    let name = &binary.positive.name;
    body.heading("Decisions by a threshold");
    body.paragraph(&format!(
        "A row is flagged as {name} where its probability is at least the threshold. A threshold of 0.2 is right for whoever \
         accepts four false alarms for one hit: the odds of the threshold are what a false alarm costs, in hits. The net \
         benefit counts this way, in hits per row, less the false alarms at their cost; flagging no row has 0.",
    ));
    let header = ["Threshold", "Flagged", "Sensitivity", "Specificity", "PPV", "NPV", "Net benefit", "Flag all"];
    let lines: Vec<Vec<String>> = shown_rows(binary).into_iter().map(line).collect();
    body.table_of("scroll numbers", First::Value, &header, &lines);
    body.note(
        "Sensitivity: share of the positive rows that are flagged. Specificity: share of the others that are not. PPV: share \
         of the flagged rows that are positive. NPV: share of the others that are negative. Flag all: the net \
         benefit of flagging every row. In small print: 95 % intervals, of shares in percent. All thresholds are in \
         thresholds.csv.",
    );
}

/// The rows of the table: those of [`SHOWN`], up to the first at which no row is flagged.
fn shown_rows(binary: &BinaryAnalysis) -> Vec<&ThresholdRow> {
    let n: usize = binary.bins.iter().map(|bin| bin.n).sum();
    let least = if (binary.positive.rows as f64) < RARE * n as f64 { 0.0 } else { 0.01 };
    let all = binary.thresholds.iter().filter(|row| row.threshold >= least && SHOWN.contains(&row.threshold));
    let mut shown: Vec<&ThresholdRow> = all.collect();
    let flags = |row: &&&ThresholdRow| row.true_positives + row.false_positives > 0;
    shown.truncate(shown.iter().take_while(flags).count() + 1);
    shown
}

/// The line of a threshold.
fn line(row: &ThresholdRow) -> Vec<String> {
    let share = |at: usize, share: Option<f64>| match share.zip(row.share_intervals[at]) {
        None => NOTHING.to_owned(),
        Some((share, interval)) => with_range(percent(share), &shares(interval)),
    };
    let benefit =
        row.net_benefit_interval.map_or(String::new(), |of| format!("{} to {}", number(of.lo), number(of.hi)));
    vec![
        row.threshold.to_string(),
        thousands(row.true_positives + row.false_positives),
        share(0, row.sensitivity),
        share(1, row.specificity),
        share(2, row.ppv),
        share(3, row.npv),
        with_range(number(row.net_benefit), &benefit),
        number(row.net_benefit_all),
    ]
}

/// The thresholds at which the model is worth more than flagging all or none.
fn useful(binary: &BinaryAnalysis) -> String {
    let ranges = |is: fn((bool, bool)) -> bool| runs(&binary.thresholds, |row| is(row.is_useful()));
    let any = ranges(|(any, _)| any);
    if any.is_empty() {
        return "At no threshold is the net benefit of the model above that of flagging every row or none.".to_owned();
    }
    let beyond = match ranges(|(_, beyond)| beyond) {
        beyond if beyond.is_empty() => "at no threshold is that beyond what chance explains.".to_owned(),
        beyond => format!("beyond what chance explains it is so {}.", listed(&beyond)),
    };
    format!(
        "The net benefit of the model is above that of flagging every row and of flagging none {}; {beyond}",
        listed(&any)
    )
}

/// The runs of consecutive thresholds for which a condition holds.
fn runs(rows: &[ThresholdRow], holds: impl Fn(&ThresholdRow) -> bool) -> Vec<(f64, f64)> {
    let runs = rows.chunk_by(|a, b| holds(a) == holds(b)).filter(|run| holds(&run[0]));
    runs.map(|run| (run[0].threshold, run[run.len() - 1].threshold)).collect()
}

/// The widest ranges of thresholds, ascending.
fn listed(ranges: &[(f64, f64)]) -> String {
    const MOST: usize = 3;
    let mut widest = ranges.to_vec();
    widest.sort_by(|a, b| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    widest.truncate(MOST);
    widest.sort_by(|a, b| a.0.total_cmp(&b.0));
    let range = |(from, to): &(f64, f64)| match from == to {
        true => format!("at {from}"),
        false => format!("from {from} to {to}"),
    };
    let shown: Vec<String> = widest.iter().map(range).collect();
    let more = if ranges.len() > MOST { ", and in shorter ranges between" } else { "" };
    shown.join(", ") + more
}
