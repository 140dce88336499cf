//! The final metrics of the clients' personal predictors as text: the last round beside the round that the validation rows
//! choose.

use crate::report::{PersonalRow, PersonalTable, decimals};

/// Formats the table for a terminal.
pub(super) fn text(table: &PersonalTable) -> String {
    let mut text =
        format!("\neach client's personal predictor on its own test rows\n  {:<24}{:>10}", "round", table.last_round);
    if let Some(best) = table.best_round {
        text += &format!("{best:>10}   the second: lowest validation NLL");
    }
    text += "\n";
    if let Some((scored, clients)) = table.scored {
        text += &format!("  {scored} of {clients} clients gave their scores in round {}\n", table.last_round);
    }
    for PersonalRow { name, about, last, best } in &table.rows {
        let best = best.map_or_else(String::new, |best| format!("{:>10}", decimals(best, 4)));
        text += format!("  {name:<24}{:>10}{best}   {about}", decimals(*last, 4)).trim_end();
        text += "\n";
    }
    text
}
