//! The headline of results on standard output.

use std::io::{self, IsTerminal};

use crate::metrics::{Evaluation, Metric, View};
use crate::report::decimals;

/// The metrics, one per line, under a line that says of which rows they are.
pub(super) fn table(evaluation: &Evaluation, rows: &str) -> String {
    // For classes the log-likelihood is the NLL with the opposite sign, so only one is shown.
    let shown =
        |metric: &&Metric| !metric.note.is_empty() && (metric.key != "log_likelihood" || evaluation.accuracy.is_none());
    let lines = Metric::in_view(View::Column).into_iter().filter(shown).filter_map(|metric| {
        let value = evaluation.value(metric)?;
        Some(format!("  {:<24}{:>10}   {}\n", metric.key.replace('_', " "), decimals(value, 4), metric.note))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { String::new() } else { format!("\n{rows}\n{lines}") }
}

/// Formats a path in bold where standard output is a terminal.
pub(super) fn link(path: &str) -> String {
    if io::stdout().is_terminal() { format!("\x1b[1m{path}\x1b[0m") } else { path.to_owned() }
}
