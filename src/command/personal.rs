//! What the clients' own predictors came to, as a table: the last round beside the one that validation rows choose.

use crate::experiment::personal::{PersonalPoint, PersonalResults};
use crate::report::{PersonalRow, PersonalTable};

/// Column of `rounds.csv` without its prefix, what a reader calls it, what it is.
const ROWS: &[(&str, &str, &str)] = &[
    ("accuracy", "accuracy", "all clients' test rows"),
    ("accuracy_macro", "accuracy, by client", "mean over clients"),
    ("accuracy_worst", "accuracy, worst client", ""),
    ("accuracy_mean_particle", "accuracy, by particle", "mean over particles"),
    ("nll", "nll", "negative log-likelihood, nats"),
    ("nll_macro", "nll, by client", "mean over clients"),
    ("ece", "ece", "expected calibration error"),
    ("ece_macro", "ece, by client", "mean over clients"),
    ("brier", "brier", "Brier score, 0 to 2"),
    ("rmse", "rmse", "root mean squared error, units of the data"),
    ("rmse_macro", "rmse, by client", "mean over clients"),
];

/// The rows that have a value.
pub(super) fn table(results: &PersonalResults) -> PersonalTable {
    let value = |point: &PersonalPoint, name: &str| point.numbers.get(&format!("personal_{name}")).copied().flatten();
    let best = results.best_validation.as_ref();
    let row = |(name, label, about): &(&str, &str, &str)| {
        let last = value(&results.last, name)?;
        let best = best.and_then(|best| value(best, name));
        Some(PersonalRow { name: (*label).to_owned(), about: (*about).to_owned(), last, best })
    };
    PersonalTable {
        last_round: results.last.round,
        best_round: best.map(|best| best.round),
        scored: results
            .last
            .scored()
            .filter(|scored| *scored < results.clients)
            .map(|scored| (scored, results.clients)),
        rows: ROWS.iter().filter_map(row).collect(),
    }
}

/// The table for a terminal.
pub(super) fn text(table: &PersonalTable) -> String {
    let mut text =
        format!("\neach client's own predictor on its own test rows\n  {:<24}{:>10}", "round", table.last_round);
    if let Some(best) = table.best_round {
        text += &format!("{best:>10}   the second: lowest validation NLL");
    }
    text += "\n";
    if let Some((scored, clients)) = table.scored {
        text += &format!("  {scored} of {clients} clients gave their scores in round {}\n", table.last_round);
    }
    for PersonalRow { name, about, last, best } in &table.rows {
        let best = best.map_or_else(String::new, |best| format!("{best:>10.4}"));
        text += format!("  {name:<24}{last:>10.4}{best}   {about}").trim_end();
        text += "\n";
    }
    text
}
