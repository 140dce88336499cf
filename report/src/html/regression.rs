//! The sections that only a regression has.

use super::{Body, Card, or_dash};
use crate::RegressionAnalysis;
use crate::text::{percent, points, rows};

pub(super) fn cards(body: &mut Body, analysis: &RegressionAnalysis) {
    let o = &analysis.overall;
    body.cards(&[
        Card::new("RMSE", or_dash(o.rmse), "unit of the target".into()),
        Card::new("MAE", or_dash(o.mae), "unit of the target".into()),
        Card::new("CRPS", or_dash(o.crps), "unit of the target".into()),
        Card::new("NLL", or_dash(o.nll), format!("nats, {}", rows(o.n))),
        Card::new("Sharpness", or_dash(o.sharpness), "predictive standard deviation".into()),
        Card::new("Aleatoric sd", or_dash(o.aleatoric_sd), "the data's noise".into()),
        Card::new("Epistemic sd", or_dash(o.epistemic_sd), format!("of {} particles", o.particles)),
        Card::new(
            "Interval calibration",
            or_dash(analysis.interval_calibration.mean_absolute),
            "mean distance from perfect".into(),
        ),
    ]);
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
    body.table(&["Promised", "Observed", "Difference (points)", "Mean width"], &table);
}
