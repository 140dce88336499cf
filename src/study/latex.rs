//! The table of a study in LaTeX: a plain `tabular` that needs no package.

use std::fmt::Write as _;

use super::plan::Plan;
use super::summary::{BETTER, DIFFERS, Row, WORSE};
use crate::metrics::Direction;
use crate::reproduce::judge::{better, number};

/// The table: a line for each variant in each setting, a column for each metric.
pub fn table(plan: &Plan<'_>, rows: &[Row]) -> String {
    let study = plan.study;
    let mut text =
        format!("% {}: mean over seeds, with half of the 95 % interval (Student's t).\n", comment(&study.title));
    if let Some(baseline) = study.baseline {
        let name = comment(&study.compared().variants[baseline].name);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "% +, - and *: better than, worse than, different from {name} by more than two standard errors of the"
        );
        text += "% paired difference, over three seeds or more.\n";
    }
    let columns = "l".repeat(study.axes.len()) + &"r".repeat(plan.metrics.len());
    let _ = writeln!(text, "\\begin{{tabular}}{{{columns}}}\n\\hline");
    let heads = study.axes.iter().map(|axis| escape(&axis.name)).chain(plan.metrics.iter().map(|metric| head(metric)));
    text += &line(heads);
    for setting in 0..plan.settings.len() {
        text += "\\hline\n";
        for variant in 0..study.compared().variants.len() {
            let own = |metric: usize| {
                rows.iter().find(|row| (row.setting, row.variant, row.metric) == (setting, variant, metric))
            };
            let cells = (0..plan.metrics.len()).map(|metric| own(metric).map_or_else(String::new, cell));
            text += &line(plan.names(setting, variant).into_iter().map(escape).chain(cells));
        }
    }
    text + "\\hline\n\\end{tabular}\n"
}

/// A line of the table. A bracket or a star at its begin would belong to the end of the line before.
fn line(cells: impl Iterator<Item = String>) -> String {
    let line = cells.collect::<Vec<_>>().join(" & ");
    let begin = if line.starts_with(['[', '*']) { "{}" } else { "" };
    format!("{begin}{line} \\\\\n")
}

fn head(metric: &str) -> String {
    let arrow = match better(metric) {
        Some(Direction::HigherIsBetter) => " $\\uparrow$",
        Some(Direction::LowerIsBetter) => " $\\downarrow$",
        None => "",
    };
    escape(metric) + arrow
}

/// A mean with half of its interval, and the verdict on its difference.
fn cell(row: &Row) -> String {
    let Some(estimate) = row.estimate else { return "--".to_owned() };
    let half = estimate.half_width.map_or_else(String::new, |half| format!(" \\pm {}", scientific(&number(half))));
    let sign = match row.difference.map(|paired| paired.verdict) {
        Some(BETTER) => "^{+}",
        Some(WORSE) => "^{-}",
        Some(DIFFERS) => "^{*}",
        _ => "",
    };
    format!("${}{half}{sign}$", scientific(&number(estimate.mean)))
}

/// `2.0e-5` as LaTeX writes it.
fn scientific(number: &str) -> String {
    match number.split_once('e') {
        Some((digits, power)) => format!("{digits} \\cdot 10^{{{power}}}"),
        None => number.to_owned(),
    }
}

/// A text of a comment: on one line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A text with LaTeX's own characters escaped.
pub fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '<' => escaped += "\\textless{}",
            '>' => escaped += "\\textgreater{}",
            '|' => escaped += "\\textbar{}",
            '"' => escaped += "''",
            '{' | '}' | '$' | '&' | '#' | '%' | '_' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_that_latex_reads_as_its_own_is_escaped() {
        assert_eq!(escape("a_b & 5% of #1 {x} $y$"), "a\\_b \\& 5\\% of \\#1 \\{x\\} \\$y\\$");
        assert_eq!(
            escape("\\~^<>|"),
            "\\textbackslash{}\\textasciitilde{}\\textasciicircum{}\\textless{}\\textgreater{}\\textbar{}"
        );
        assert_eq!(escape("Größe"), "Größe");
        assert_eq!(scientific("2.0e-5"), "2.0 \\cdot 10^{-5}");
    }
}
