//! Writes the files of a study: every run and every mean as CSV, the tables, the pictures and the claims.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::claims::answer;
use super::columns::{COLUMNS, OF_POOLED};
use super::plan::Plan;
use super::pooled::{Pooled, pooled};
use super::summary::{LEVEL, Paired, Row, rows};
use super::{latex, markdown};
use crate::report::files::{FileError, remove_if_there, write_atomic};
use crate::report::{AxisSpec, IntervalFigure, IntervalGroup, IntervalRow, ReportError};
use crate::reproduce::Scale;
use crate::reproduce::curve::{Results, label};
use crate::reproduce::figure::known_metric;
use crate::reproduce::judge::{self, judge};
use crate::reproduce::kept::{Kept, MIB};
use crate::reproduce::output::{csv_text, picture};

/// The files that were written, and what they say.
#[derive(Debug)]
pub struct Written {
    /// The table as Markdown.
    pub table: PathBuf,
    /// The pictures.
    pub pictures: Vec<PathBuf>,
    /// The claims, each in each setting, with the answer and the difference.
    pub claims: Vec<String>,
}

/// Writes all files of a study into its directory, which must exist.
///
/// # Errors
/// A file cannot be written.
pub fn write(plan: &Plan<'_>, results: &Results<'_>, directory: &Path) -> Result<Written, ReportError> {
    let put = |name: &str, text: &str| -> Result<PathBuf, ReportError> {
        let path = directory.join(name);
        write_atomic(&path, text.as_bytes())?;
        Ok(path)
    };
    let rows = rows(plan, results);
    put("results.csv", &csv_text(&runs(plan, results)))?;
    put("table.csv", &csv_text(&means(plan, &rows)))?;
    let pooled = pooled(plan, &rows);
    match plan.study.pooled {
        Some(axis) => drop(put(POOLED, &csv_text(&over(plan, axis, &pooled)))?),
        None => remove_if_there(&directory.join(POOLED))?,
    }
    put("table.tex", &latex::table(plan, &rows))?;
    let mut pictures = Vec::new();
    for (metric, name) in plan.metrics.iter().enumerate() {
        if let Some(svg) = intervals(plan, &rows, metric) {
            pictures.push(put(&format!("{name}.svg"), &svg)?);
        }
    }
    for (name, svg) in curves(plan, results) {
        pictures.push(put(&name, &svg)?);
    }
    let judged = judge(results, Scale::Full);
    match judged.is_empty() {
        false => drop(put(CLAIMS, &markdown::claims(plan, &judged))?),
        true => remove_if_there(&directory.join(CLAIMS))?,
    }
    remove_former(directory, &pictures)?;
    let table = put("table.md", &markdown::table(plan, results, (&rows, &pooled), &pictures))?;
    let claims = judged.iter().enumerate().map(|(at, row)| claim(plan, at, row)).collect();
    Ok(Written { table, pictures, claims })
}

/// The means over an axis that is a sample.
const POOLED: &str = "pooled.csv";

/// The claims and whether they hold.
const CLAIMS: &str = "claims.md";

/// Removes the pictures of an earlier form of the study: those of metrics, and of rounds, that are not written now.
fn remove_former(directory: &Path, written: &[PathBuf]) -> Result<(), ReportError> {
    let wrong = |source| FileError::new(directory, source);
    for entry in std::fs::read_dir(directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_picture = |stem: &str| stem.starts_with("rounds-") || known_metric(stem).is_ok();
        if name.strip_suffix(".svg").is_some_and(is_picture) && !written.contains(&path) {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}

/// A claim on one line.
fn claim(plan: &Plan<'_>, at: usize, row: &judge::Row) -> String {
    let setting = plan.setting(at % plan.settings.len());
    let setting = if setting.is_empty() { String::new() } else { format!(" ({setting})") };
    let difference = if row.difference.is_empty() { String::new() } else { format!(": {}", row.difference) };
    format!("{:<9} {}{setting}{difference}", answer(row.verdict), row.what)
}

/// A row for each run.
fn runs(plan: &Plan<'_>, results: &Results<'_>) -> Vec<Vec<String>> {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let axes = plan.study.axes.iter().map(|axis| axis.name.as_str());
    let last = ["rounds", "uplink_mib", "downlink_mib", "seconds"];
    // A metric of the traffic has its own column already.
    let last = || last.into_iter().filter(|column| plan.metrics.iter().all(|metric| metric != column));
    let heads = axes.chain(["seed"]).chain(plan.metrics.iter().map(String::as_str)).chain(last());
    let mut table: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    for setting in 0..plan.settings.len() {
        for variant in 0..plan.study.compared().variants.len() {
            for (seed, kept) in &results.kept[plan.cell(setting, variant)] {
                let names = plan.names(setting, variant).into_iter().map(str::to_owned);
                let metrics = plan.metrics.iter().map(|metric| text(kept.result(metric)));
                let cells = names.chain([seed.to_string()]).chain(metrics);
                table.push(cells.chain(last().map(|column| of_run(kept, column).to_string())).collect());
            }
        }
    }
    table
}

fn of_run(kept: &Kept, column: &str) -> f64 {
    let (up, down) = kept.bytes_until(usize::MAX);
    match column {
        "rounds" => kept.rounds.last().map_or(0.0, |round| round.round as f64),
        "uplink_mib" => up / MIB,
        "downlink_mib" => down / MIB,
        _ => kept.seconds,
    }
}

/// A row for each mean.
fn means(plan: &Plan<'_>, rows: &[Row]) -> Vec<Vec<String>> {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let axes = plan.study.axes.iter().map(|axis| axis.name.as_str());
    let heads = axes.chain(COLUMNS[1..13].iter().copied());
    let mut table: Vec<Vec<String>> = vec![heads.map(str::to_owned).collect()];
    for row in rows {
        let own = row.estimate;
        let ends = own.and_then(|own| own.interval());
        let mut cells: Vec<String> = plan.names(row.setting, row.variant).into_iter().map(str::to_owned).collect();
        cells.extend([plan.metrics[row.metric].clone(), own.map_or(0, |own| own.n).to_string()]);
        cells.extend([own.map(|own| own.mean), own.and_then(|own| own.sd)].map(text));
        cells.extend([ends.map(|ends| ends.0), ends.map(|ends| ends.1)].map(text));
        cells.extend(differences(row.difference));
        table.push(cells);
    }
    table
}

/// A difference with its interval, the number of its pairs, p and verdict; six empty cells where there is none.
fn differences(paired: Option<Paired>) -> [String; 6] {
    let Some(Paired { estimate, p, verdict }) = paired else { return Default::default() };
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let ends = estimate.interval();
    let numbers = [Some(estimate.mean), ends.map(|ends| ends.0), ends.map(|ends| ends.1)].map(text);
    let [mean, low, high] = numbers;
    [mean, low, high, estimate.n.to_string(), text(p), verdict.to_owned()]
}

/// A row for each mean over the variants of the pooled axis.
fn over(plan: &Plan<'_>, axis: usize, pooled: &[Pooled]) -> Vec<Vec<String>> {
    let text = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let axes = plan.study.axes.iter().enumerate().filter(|(at, _)| *at != axis).map(|(_, axis)| axis.name.as_str());
    let mut table: Vec<Vec<String>> = vec![axes.chain(OF_POOLED).map(str::to_owned).collect()];
    for of in pooled {
        let Pooled { estimate, range, further, .. } = of;
        let ends = estimate.interval();
        let mut cells: Vec<String> = of.names(plan).into_iter().map(str::to_owned).collect();
        cells.extend([plan.metrics[of.metric].clone(), estimate.n.to_string()]);
        cells.extend([Some(estimate.mean), estimate.sd, Some(range.0), Some(range.1)].map(text));
        cells.extend([ends.map(|ends| ends.0), ends.map(|ends| ends.1)].map(text));
        cells.extend([further.map(|ends| ends.0), further.map(|ends| ends.1)].map(text));
        cells.extend(differences(of.difference));
        table.push(cells);
    }
    table
}

/// The picture of a metric: a mean with its interval for each variant, by setting.
fn intervals(plan: &Plan<'_>, rows: &[Row], metric: usize) -> Option<String> {
    let names: Vec<&str> = plan.study.compared().names().collect();
    let row = |row: &Row| IntervalRow {
        name: names[row.variant].to_owned(),
        mean: row.estimate.map(|estimate| estimate.mean),
        interval: row.estimate.and_then(|estimate| estimate.interval()),
        values: row.values.iter().map(|(_, value)| *value).collect(),
    };
    let group = |setting: usize| IntervalGroup {
        name: plan.setting(setting),
        rows: rows.iter().filter(|of| (of.setting, of.metric) == (setting, metric)).map(row).collect(),
    };
    let most = rows.iter().filter(|row| row.metric == metric).map(|row| row.values.len()).max().unwrap_or(0);
    let subtitle = match most {
        1 => "1 seed".to_owned(),
        seeds => format!("{seeds} seeds: mean with {:.0} % interval, and every seed", 100.0 * LEVEL),
    };
    IntervalFigure {
        title: plan.study.title.clone(),
        subtitle,
        x: AxisSpec { label: label(&plan.metrics[metric]), ..AxisSpec::default() },
        groups: (0..plan.settings.len()).map(group).collect(),
    }
    .svg()
}

/// The curves over rounds, for each setting and metric: the names of the files, and the pictures.
fn curves(plan: &Plan<'_>, results: &Results<'_>) -> Vec<(String, String)> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut pictures = Vec::new();
    for setting in 0..plan.settings.len() {
        let name = unique(&mut taken, &slug(&plan.setting(setting)));
        for (metric, key) in plan.metrics.iter().enumerate() {
            let at = plan.panel(setting, metric);
            let (panel, samples) = (&plan.figure.panels[at], &results.samples[at]);
            if let Some(svg) = picture(results, at, panel, samples, Scale::Full) {
                pictures.push((format!("rounds-{name}{key}.svg"), svg));
            }
        }
    }
    pictures
}

/// A name as a part of a file's name, with a dash after it; empty for an empty one.
fn slug(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    if words.is_empty() { String::new() } else { words.join("-") + "-" }
}

/// The name, or the name with the first number that makes it a new one.
fn unique(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut candidates = (2..).map(|number| format!("{name}{number}-"));
    let mut candidate = name.to_owned();
    while !taken.insert(candidate.clone()) {
        candidate = candidates.next().unwrap_or_default();
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_with_alike_names_have_files_of_their_own() {
        let mut taken = BTreeSet::new();
        let mut of = |name: &str| unique(&mut taken, &slug(name));
        assert_eq!(
            ["tables/north.csv", "tables north csv", "", "ü"].map(&mut of),
            ["tables-north-csv-", "tables-north-csv-2-", "", "2-"]
        );
    }
}
