//! The sections that only a regression has.

use super::body::{Body, Card, count, interval, or_dash, resampled, shown};
use crate::analysis::RegressionAnalysis;
use crate::metrics::{Metric, View};
use crate::text::{number, percent, points, rows};

pub(super) fn cards(body: &mut Body, analysis: &RegressionAnalysis) {
    let (overall, intervals) = (&analysis.overall, analysis.confidence_intervals.as_ref());
    let range = |key: &str| intervals.and_then(|intervals| intervals.get(key));
    let small_print = |metric: &Metric| match metric.key {
        key if range(key).is_some() => interval(metric.unit, range(key)),
        "nll" => format!("nats, {}", rows(overall.n)),
        "epistemic_sd" => analysis.particles.map_or_else(String::new, |particles| format!("of {particles} particles")),
        _ => metric.small_print.to_owned(),
    };
    let card = |(metric, value): (&'static Metric, Option<f64>)| {
        Card::new(metric.name, shown(metric.unit, value), small_print(metric))
    };
    let distance = or_dash(analysis.interval_calibration.mean_absolute);
    let calibration = Card::new("Interval calibration", distance, "mean distance from perfect".into());
    body.cards(&overall.in_view(View::Card).into_iter().map(card).chain([calibration]).collect::<Vec<_>>());
    if let Some(no_skill) = &analysis.no_skill {
        body.note(&format!(
            "Without features, predicting every row with the normal distribution of all targets: RMSE {}, NLL {}, CRPS {}.",
            number(no_skill.rmse),
            number(no_skill.nll),
            number(no_skill.crps)
        ));
    }
    if let Some(intervals) = intervals {
        body.note(&format!(
            "In small print below RMSE, MAE, mean error, CRPS and NLL: the 95 % interval over {} resamples of the {}.",
            count(intervals.resamples),
            resampled(overall)
        ));
    }
}

pub(super) fn details(body: &mut Body, analysis: &RegressionAnalysis) {
    body.heading("Central intervals");
    let table: Vec<Vec<String>> = analysis
        .coverage
        .iter()
        .map(|row| {
            vec![percent(row.level), percent(row.coverage), points(row.coverage - row.level), or_dash(row.mean_width)]
        })
        .collect();
    body.table_of_values(&["Nominal", "Observed", "Difference (points)", "Mean width"], &table);
}
