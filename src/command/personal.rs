//! The final metrics of the clients' own predictors as a table: the last round beside the round that the validation
//! rows choose.

use crate::experiment::personal::{PersonalPoint, PersonalResults};
use crate::metrics::{Metric, PersonalColumn, View};
use crate::report::{PersonalRow, PersonalTable};

/// Builds the table from the metrics that have a value.
pub(super) fn table(results: &PersonalResults) -> PersonalTable {
    let value = |point: &PersonalPoint, name: &str| point.numbers.get(name).copied().flatten();
    let best = results.best_validation.as_ref();
    let row = |column: &PersonalColumn| {
        let last = value(&results.last, column.key)?;
        let best = best.and_then(|best| value(best, column.key));
        Some(PersonalRow { name: column.name.to_owned(), about: column.note.to_owned(), last, best })
    };
    let columns = Metric::in_view(View::Personal).into_iter().filter_map(|metric| metric.personal);
    let shown = columns.flat_map(|metric| metric.columns).filter(|column| !column.name.is_empty());
    PersonalTable {
        last_round: results.last.round,
        best_round: best.map(|best| best.round),
        scored: results
            .last
            .scored()
            .filter(|scored| *scored < results.clients)
            .map(|scored| (scored, results.clients)),
        rows: shown.filter_map(row).collect(),
    }
}

/// Formats the table for a terminal.
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
