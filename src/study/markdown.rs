//! The tables of a study in Markdown: for each metric the means and the differences, and the claims.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::claims::{answer, reason};
use super::plan::Plan;
use super::pooled::Pooled;
use super::summary::{BETTER, Estimate, Paired, Row, WORSE};
use crate::metrics::Direction;
use crate::reproduce::curve::{Results, label};
use crate::reproduce::judge::{self, better, number, signed};
use crate::reproduce::output::said_by_runs;

/// The page: what was run, then a table for each metric.
pub fn table(
    plan: &Plan<'_>,
    results: &Results<'_>,
    (rows, pooled): (&[Row], &[Pooled]),
    pictures: &[PathBuf],
) -> String {
    let study = plan.study;
    let mut text = format!("# {}\n\n", cell(&study.title));
    let done: usize = rows.iter().filter(|row| row.metric == 0).map(|row| kept(plan, results, row)).sum();
    let (seeds, cells) = (plan.grid.trials(), plan.settings.len() * study.compared().variants.len());
    let plural = if seeds == 1 { "" } else { "s" };
    // Writing to a String cannot fail.
    let _ =
        writeln!(text, "{}, {seeds} seed{plural}: {done} of {} results are there.", axes(plan), cells as u64 * seeds);
    for (metric, name) in plan.metrics.iter().enumerate() {
        let of_metric: Vec<&Row> = rows.iter().filter(|row| row.metric == metric).collect();
        metric_table(&mut text, plan, name, &of_metric);
        let of_metric: Vec<&Pooled> = pooled.iter().filter(|of| of.metric == metric).collect();
        pooled_table(&mut text, plan, &of_metric);
        for picture in pictures.iter().filter(|picture| is_of(picture, name)) {
            let file = picture.file_name().unwrap_or_default().to_string_lossy();
            let _ = writeln!(text, "\n![{file}]({file})");
        }
    }
    text += NUMBERS;
    if study.baseline.is_some() {
        text += DIFFERENCES;
    }
    if study.pooled.is_some() {
        text += POOLED;
    }
    let notes = plan.notes.iter().cloned();
    list(&mut text, "Notes", notes.chain(said_by_runs(&results.notes)));
    list(&mut text, "Runs that failed", results.failures.iter().cloned());
    text
}

/// Whether a picture shows a metric; their names end with it.
fn is_of(picture: &std::path::Path, metric: &str) -> bool {
    let stem = picture.file_stem().unwrap_or_default().to_string_lossy();
    stem == metric || stem.ends_with(&format!("-{metric}"))
}

fn kept(plan: &Plan<'_>, results: &Results<'_>, row: &Row) -> usize {
    results.kept[plan.cell(row.setting, row.variant)].len()
}

/// What varies, such as `3 variants of method × 2 variants of labels`.
fn axes(plan: &Plan<'_>) -> String {
    let axes = plan.study.axes.iter().map(|axis| {
        let count = axis.variants.len();
        format!("{count} variant{} of {}", if count == 1 { "" } else { "s" }, cell(&axis.name))
    });
    axes.collect::<Vec<_>>().join(" × ")
}

fn metric_table(text: &mut String, plan: &Plan<'_>, metric: &str, rows: &[&Row]) {
    let better = match better(metric) {
        Some(Direction::HigherIsBetter) => " (higher is better)",
        Some(Direction::LowerIsBetter) => " (lower is better)",
        None => "",
    };
    let _ = writeln!(text, "\n## {}{better}\n", label(metric));
    let mut heads: Vec<String> = plan.study.axes.iter().map(|axis| cell(&axis.name)).collect();
    heads.extend(["seeds", "mean", "sd", "95 % interval"].map(str::to_owned));
    heads.extend(heads_of_differences(plan));
    headline(text, &heads);
    for row in rows {
        let mut cells: Vec<String> = plan.names(row.setting, row.variant).into_iter().map(cell).collect();
        cells.extend(means(row.estimate));
        if plan.study.baseline.is_some() {
            cells.extend(difference(row.difference));
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

/// The names of the columns, over a line.
fn headline(text: &mut String, heads: &[String]) {
    let _ = writeln!(text, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
}

/// The names of the columns of differences; none without a baseline.
fn heads_of_differences(plan: &Plan<'_>) -> Vec<String> {
    let Some(baseline) = plan.study.baseline else { return Vec::new() };
    let less = format!("less {}", cell(&plan.study.compared().variants[baseline].name));
    [less.as_str(), "95 % interval", "p", "verdict"].map(str::to_owned).to_vec()
}

/// The means of a metric over the variants of the pooled axis.
fn pooled_table(text: &mut String, plan: &Plan<'_>, pooled: &[&Pooled]) {
    let (Some(axis), false) = (plan.study.pooled, pooled.is_empty()) else { return };
    let others = plan.study.axes.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, axis)| cell(&axis.name));
    let mut heads: Vec<String> = others.collect();
    let of = ["variants", "mean", "sd", "smallest", "largest", "95 % interval", "a further one"];
    heads.extend(of.map(str::to_owned));
    heads.extend(heads_of_differences(plan));
    let _ = writeln!(text, "\nOver all of {}:\n", cell(&plan.study.axes[axis].name));
    headline(text, &heads);
    for of in pooled {
        let Pooled { estimate, range, further, .. } = of;
        let mut cells: Vec<String> = of.names(plan).into_iter().map(cell).collect();
        let [variants, mean, sd, ends] = means(Some(*estimate));
        cells.extend([variants, mean, sd, number(range.0), number(range.1), ends]);
        cells.push(further.map_or_else(none, |ends| between(ends, number)));
        if plan.study.baseline.is_some() {
            cells.extend(difference(of.difference));
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn means(estimate: Option<Estimate>) -> [String; 4] {
    let Some(estimate) = estimate else { return ["0", "-", "-", "-"].map(str::to_owned) };
    let sd = estimate.sd.map_or_else(none, number);
    [estimate.n.to_string(), number(estimate.mean), sd, interval(&estimate, number)]
}

fn difference(paired: Option<Paired>) -> [String; 4] {
    let Some(paired) = paired else { return ["", "", "", ""].map(str::to_owned) };
    let verdict = match paired.verdict {
        BETTER | WORSE => format!("**{}**", paired.verdict),
        other => other.to_owned(),
    };
    [signed(paired.estimate.mean), interval(&paired.estimate, signed), paired.p.map_or_else(none, p_value), verdict]
}

fn interval(estimate: &Estimate, number: fn(f64) -> String) -> String {
    estimate.interval().map_or_else(none, |ends| between(ends, number))
}

fn between((low, high): (f64, f64), number: fn(f64) -> String) -> String {
    format!("{} to {}", number(low), number(high))
}

fn none() -> String {
    "-".to_owned()
}

fn p_value(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The claims of a study, each in each setting.
pub fn claims(plan: &Plan<'_>, judged: &[judge::Row]) -> String {
    let mut text = format!("# Claims of {}\n\n", cell(&plan.study.title));
    text += "| claim | setting | answer | difference of neighbours ± standard error | why |\n|---|---|---|---|---|\n";
    for (at, row) in judged.iter().enumerate() {
        let setting = cell(&plan.setting(at % plan.settings.len()));
        let (answer, reason) = (answer(row.verdict), reason(row.verdict));
        let _ = writeln!(text, "| {} | {setting} | **{answer}** | {} | {reason} |", cell(&row.what), row.difference);
    }
    text + CLAIMS
}

/// A list below a heading; each item is one line, whatever a message holds.
fn list(text: &mut String, heading: &str, items: impl Iterator<Item = String>) {
    let one_line = |item: String| item.split_whitespace().collect::<Vec<_>>().join(" ");
    let items: String = items.map(|item| format!("- {}\n", one_line(item))).collect();
    if !items.is_empty() {
        let _ = write!(text, "\n## {heading}\n\n{items}");
    }
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

const NUMBERS: &str = "
Mean over seeds; sd: the standard deviation over seeds; 95 % interval: of the mean, by Student's t over seeds. One seed \
has no interval. The interval covers what the seeds change: first particles, partition, order of clients, and test rows \
where the seed splits them off; not another choice of test rows that have a file of their own.
";

const DIFFERENCES: &str = "
Differences are taken seed by seed, over the seeds that both variants have; their interval and p (of the paired t-test, \
two-sided) are by Student's t. Fewer than three seeds, and differences that are all equal, have neither. *By over 2 SE*: \
the mean difference exceeds two standard errors, over three seeds or more. With few seeds this rule is weaker than the \
interval, which may contain 0: with three, one difference in five exceeds it by chance. No p is corrected for the number \
of comparisons.
";

const POOLED: &str = "
Over all of an axis each variant counts once, with its mean over seeds: sd is the standard deviation over the variants, the \
interval is of the mean over all that the variants are a sample of, and in *a further one* lies the value of another such \
variant (the 95 % prediction interval, mean ± t·sd·√(1 + 1/n)), which may go beyond the values that the metric can have. \
Both take the variants as independent draws from a normal distribution. Differences are paired by variant; fewer than three \
variants have no interval of a further one or of a difference, and no verdict.
";

const CLAIMS: &str = "
A claim has *held* where each variant is better than the next by more than two standard errors of the difference, seed by \
seed, over three seeds or more; it has *not held* where one is worse by as much; otherwise the runs do not tell.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_lines_is_one_item_of_a_list() {
        let items = ["rate = 1: a.toml, line 2\n\n  # not a heading\r\n- not an item\n", "rate = 2: stopped"];
        let mut text = String::new();
        list(&mut text, "Runs that failed", items.map(String::from).into_iter());
        let lines = "- rate = 1: a.toml, line 2 # not a heading - not an item\n- rate = 2: stopped\n";
        assert_eq!(text, format!("\n## Runs that failed\n\n{lines}"));
        list(&mut text, "Notes", std::iter::empty());
        assert!(!text.contains("Notes"));
    }
}
