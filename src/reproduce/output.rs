//! Writes a figure's files: `figN.csv` with every number, one picture per panel, and the table as Markdown and CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::curve::{Curve, MeanPoint, Results, Sample, label, means, until_a_seed_ends};
use super::figure::{Along, Also, Panel, Scale, Series};
use super::judge::{Row, SUMMARISED, Summary, judge, number, summaries, with_error};
use super::kept::MIB;
use super::numbers;
use super::progress::span;
use super::verdict::Verdict;
use crate::report::csv::text_cell;
use crate::report::files::write_atomic;
use crate::report::{AxisSpec, ContourFigure, FigureLine, FigurePoint, LineFigure, Plane, ReportError, Stroke};

/// The files that were written, and the rows of the table.
#[derive(Debug)]
pub struct Written {
    /// The table as Markdown.
    pub table: PathBuf,
    /// The pictures' files.
    pub pictures: Vec<PathBuf>,
    /// The rows of the table.
    pub rows: Vec<Row>,
}

/// Writes all files of a figure into its directory, which must exist.
///
/// # Errors
/// A file cannot be written.
pub fn write(results: &Results<'_>, scale: Scale, directory: &Path) -> Result<Written, ReportError> {
    let short = results.figure.id.rsplit('/').next().unwrap_or_default();
    let put = |name: &str, text: &str| -> Result<PathBuf, ReportError> {
        let path = directory.join(name);
        write_atomic(&path, text.as_bytes())?;
        Ok(path)
    };
    put(&format!("{short}.csv"), &csv_text(&numbers::rows(results, scale)))?;
    let mut pictures = Vec::new();
    for (at, (panel, samples)) in results.figure.panels.iter().zip(&results.samples).enumerate() {
        if let Some(svg) = picture(results, at, panel, samples, scale) {
            pictures.push(put(&format!("{}.svg", panel.id), &svg)?);
        }
    }
    let (rows, summaries) = (judge(results, scale), summaries(results));
    put("table.csv", &table_csv(&results.figure.also, &rows, &summaries, scale))?;
    let mut text = table_md(results, &rows, &summaries, &pictures, scale);
    if !results.failures.is_empty() {
        text += "\n## Runs that failed\n\n";
        // A message of several lines stays in its item.
        let one_line = |failure: &String| failure.split_whitespace().collect::<Vec<_>>().join(" ");
        results.failures.iter().for_each(|failure| text += &format!("- {}\n", one_line(failure)));
    }
    let table = put("table.md", &text)?;
    Ok(Written { table, pictures, rows })
}

/// The rows of a CSV file as its text.
pub fn csv_text(rows: &[impl AsRef<[String]>]) -> String {
    let cells = |row: &[String]| row.iter().map(|cell| text_cell(cell)).collect::<Vec<_>>().join(",") + "\n";
    let line = |row| cells(AsRef::as_ref(row));
    rows.iter().map(line).collect()
}

/// Draws a panel; `None` where there is nothing to draw.
pub fn picture(results: &Results<'_>, at: usize, panel: &Panel, samples: &[Sample], scale: Scale) -> Option<String> {
    let title = panel.title.clone();
    let subtitle = subtitle(results, at, panel, scale);
    if panel.x == Along::Plane {
        return contours(results, panel, samples, title, subtitle);
    }
    // Each round is a mean over all seeds: where one has ended early, the others are not its mean.
    let shown = if panel.x.is_of_rounds() { until_a_seed_ends(samples) } else { samples.to_vec() };
    let subtitle = match shown.len() < samples.len() {
        true => subtitle + " \u{b7} each curve until its first seed ends",
        false => subtitle,
    };
    let means = means(&shown);
    let lines = means.iter().map(|(curve, points)| line(results, panel, *curve, points)).collect();
    let x = AxisSpec {
        label: panel.x_label.clone().unwrap_or_else(|| x_label(results, panel)),
        log: panel.log_x,
        range: (panel.x == Along::Confidence).then_some((0.0, 1.0)),
    };
    let whole = (panel.x == Along::Confidence).then_some((0.0, 1.0));
    let y = AxisSpec { label: label(&panel.y), log: panel.log_y, range: panel.y_range.or(whole) };
    let diagonal = matches!(panel.x, Along::Confidence | Along::Series);
    LineFigure { title, subtitle, x, y, lines, diagonal }.svg()
}

fn subtitle(results: &Results<'_>, at: usize, panel: &Panel, scale: Scale) -> String {
    let seeds = results.of_panel(at).map(|(_, kept)| kept.len()).max().unwrap_or(0);
    let trials = match (seeds, panel.x) {
        (1, _) | (_, Along::Plane) => "1 seed".to_owned(),
        (n, _) => format!("{n} seeds, mean \u{b1} SEM"),
    };
    let paper = &results.figure.paper;
    match scale {
        Scale::Full => format!("{paper} \u{b7} {trials}"),
        _ => format!("{paper} \u{b7} {}, not the paper's size \u{b7} {trials}", scale.word()),
    }
}

fn x_label(results: &Results<'_>, panel: &Panel) -> String {
    let swept = panel.sweep.as_ref().and_then(|sweep| sweep.keys.first()).map(String::as_str);
    match (panel.x, swept, panel.against) {
        (Along::UplinkBytes, ..) => "Uplink so far (MiB)".into(),
        (Along::DownlinkBytes, ..) => "Downlink so far (MiB)".into(),
        (Along::Confidence, ..) => "Confidence".into(),
        (Along::Theta, ..) => "\u{3b8}".into(),
        (Along::Series, _, Some(series)) => format!("{} of {}", label(&panel.y), results.figure.series[series].name),
        (_, Some("algorithm.particles"), _) => "Particles N".into(),
        (_, Some("algorithm.local_steps"), _) => "Local steps L".into(),
        (_, Some("evaluation.kde_bandwidth"), _) => "Standard deviation \u{3bb} of the density's kernel".into(),
        (_, Some(key), _) => key.to_owned(),
        _ => "Round".into(),
    }
}

fn line(results: &Results<'_>, panel: &Panel, curve: Curve, points: &[MeanPoint]) -> FigureLine {
    let unit = if matches!(panel.x, Along::UplinkBytes | Along::DownlinkBytes) { MIB } else { 1.0 };
    let flat =
        |series: &Series| series.flat && matches!(panel.x, Along::Round | Along::UplinkBytes | Along::DownlinkBytes);
    let stroke = match curve {
        Curve::Exact => Stroke::Area,
        Curve::Local(_) => Stroke::Dashed,
        Curve::Series(series) if flat(&results.figure.series[series]) => Stroke::Level,
        Curve::Series(_) if panel.x == Along::Theta => Stroke::Plain,
        Curve::Series(_) if panel.x == Along::Series => Stroke::Points,
        Curve::Series(_) => Stroke::Marked,
    };
    let point = |point: &MeanPoint| FigurePoint { x: point.x / unit, y: point.y, spread: point.sem.unwrap_or(0.0) };
    FigureLine { name: results.curve_name(curve), stroke, points: points.iter().map(point).collect() }
}

fn contours(
    results: &Results<'_>,
    panel: &Panel,
    samples: &[Sample],
    title: String,
    subtitle: String,
) -> Option<String> {
    let series = Curve::Series(*panel.series.first()?);
    let plane = |curve: Curve| {
        let own = || samples.iter().filter(|sample| sample.curve == curve);
        let mut axis: Vec<f64> = own().map(|sample| sample.x).collect();
        axis.dedup();
        Plane { axis, density: own().map(|sample| sample.value).collect() }
    };
    let (approximate, exact) = (plane(series), plane(Curve::Exact));
    let square = |plane: &Plane| plane.axis.len() * plane.axis.len() == plane.density.len();
    if !square(&approximate) || !square(&exact) || exact.axis.is_empty() {
        return None;
    }
    ContourFigure { title, subtitle, approximate: (results.curve_name(series), approximate), exact }.svg()
}

fn table_csv(also: &[Also], rows: &[Row], summaries: &[Summary], scale: Scale) -> String {
    let header = ["row", "panel", "what", "source", "target", "ours", "difference", "verdict", "note", "scale"];
    let mut cells = vec![header.map(str::to_owned)];
    for row in rows {
        cells.push([
            "target".into(),
            row.panel.clone(),
            row.what.clone(),
            row.source.clone(),
            row.target.clone(),
            row.ours.clone(),
            row.difference.clone(),
            row.verdict.words().into(),
            row.note.clone(),
            scale.word().into(),
        ]);
        for (also, value) in also.iter().zip(&row.also).filter(|(_, value)| !value.is_empty()) {
            let what = format!("{}: beside it {}", row.what, also.name);
            let empty = String::new;
            let (panel, ours, scale) = (row.panel.clone(), value.clone(), scale.word().into());
            cells.push(["also".into(), panel, what, empty(), empty(), ours, empty(), empty(), empty(), scale]);
        }
    }
    for summary in summaries {
        for ((name, _), value) in SUMMARISED.iter().zip(&summary.numbers) {
            let Some((mean, sem)) = value else { continue };
            cells.push([
                "curve".into(),
                summary.panel.clone(),
                format!("{}: {} {name}", summary.series, summary.metric),
                String::new(),
                String::new(),
                with_error(*mean, *sem),
                String::new(),
                String::new(),
                format!("{} seeds", summary.seeds),
                scale.word().into(),
            ]);
        }
    }
    csv_text(&cells)
}

fn table_md(results: &Results<'_>, rows: &[Row], summaries: &[Summary], pictures: &[PathBuf], scale: Scale) -> String {
    let figure = results.figure;
    let mut text = format!("# {}: {}\n\n{}.", figure.id, figure.title, figure.paper);
    let (done, all) =
        results.kept.iter().fold((0, 0), |(done, all), kept| (done + kept.len(), all + results.grid.trials()));
    // Writing to a String cannot fail.
    let seeds = match results.grid.seeds.clone().into_inner() {
        (1, 1) => "1 seed".to_owned(),
        (1, last) => format!("{last} seeds"),
        (first, last) if first == last => format!("seed {first}"),
        (first, last) => format!("seeds {first} to {last}"),
    };
    let _ = write!(text, " Scale: {}, {seeds}; {done} of {all} curves and points are there.", scale.word());
    text += match scale {
        Scale::Quick => " **Quick: much smaller than the paper's setting. Targets are shown, not judged.**\n",
        Scale::Middle => " **Middle: smaller than the paper's setting.**\n",
        Scale::Full => "\n",
    };
    for picture in pictures {
        let name = picture.file_name().unwrap_or_default().to_string_lossy();
        let _ = write!(text, "\n![{name}]({name})");
    }
    text += "\n\n## The paper's numbers and ours\n\n";
    if rows.is_empty() {
        text += "The paper gives no number for this figure.\n";
    } else {
        targets_md(&mut text, &figure.also, rows);
    }
    curves_md(&mut text, summaries);
    if !figure.choices.is_empty() {
        text += "\n## What the paper leaves open, and our choice\n\n";
        figure.choices.iter().for_each(|choice| text += &format!("- {choice}\n"));
    }
    notes_md(&mut text, results);
    text
}

fn targets_md(text: &mut String, also: &[Also], rows: &[Row]) {
    *text += "| panel | target | source | value or order | ours | difference | verdict |";
    also.iter().for_each(|also| *text += &format!(" {} |", also.name));
    *text += " note |\n|---|---|---|---|---|---|---|---|";
    also.iter().for_each(|_| *text += "---|");
    *text += "\n";
    for row in rows {
        let verdict = if row.verdict == Verdict::Confirmed { "**confirmed**" } else { row.verdict.words() };
        let cells = [&row.panel, &row.what, &row.source, &row.target, &row.ours, &row.difference];
        let beside = (0..also.len()).map(|at| row.also.get(at).map_or("", String::as_str));
        let cells = cells.into_iter().map(String::as_str).chain([verdict]).chain(beside).chain([row.note.as_str()]);
        let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    *text += MARKS;
}

fn curves_md(text: &mut String, summaries: &[Summary]) {
    if summaries.is_empty() {
        return;
    }
    *text += "\n## Curves in numbers\n\n| panel | series | metric | seeds |";
    SUMMARISED.iter().for_each(|(name, _)| *text += &format!(" {name} |"));
    *text += " uplink, MiB | seconds a run |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
    for summary in summaries {
        let _ = write!(text, "| {} | {} | {} | {} |", summary.panel, summary.series, summary.metric, summary.seeds);
        for value in &summary.numbers {
            let cell = value.map_or_else(String::new, |(mean, sem)| with_error(mean, sem));
            let _ = write!(text, " {cell} |");
        }
        let uplink = summary.uplink.map_or_else(String::new, |bytes| number(bytes / MIB));
        let _ = writeln!(text, " {uplink} | {} |", summary.seconds.map_or_else(String::new, span));
    }
    *text += CURVES;
}

/// Writes the distinct notes of the runs, with the number of runs that gave each.
fn notes_md(text: &mut String, results: &Results<'_>) {
    let notes = &results.notes;
    if notes.is_empty() {
        return;
    }
    *text += "\n## Said by the runs\n\n";
    for note in said_by_runs(notes) {
        let _ = writeln!(text, "- {note}");
    }
}

/// Notes of runs, with the number of runs that gave each: of those that differ in their numbers alone the first, with how many
/// there are.
pub fn said_by_runs(notes: &BTreeMap<String, usize>) -> Vec<String> {
    let mut alike: BTreeMap<String, (&str, usize, usize)> = BTreeMap::new();
    for (note, count) in notes {
        let without_numbers = note.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect();
        let (_, texts, runs) = alike.entry(without_numbers).or_insert((note, 0, 0));
        (*texts, *runs) = (*texts + 1, *runs + count);
    }
    let text = |(note, texts, runs): &(&str, usize, usize)| match texts {
        1 => format!("{note} ({runs} of the curves and points)"),
        _ => format!("{note} (this and {} with other numbers: {runs} of the curves and points)", texts - 1),
    };
    let mut said: Vec<String> = alike.values().take(MOST_NOTES).map(text).collect();
    if alike.len() > MOST_NOTES {
        said.push(format!("and {} more, in the kept results", alike.len() - MOST_NOTES));
    }
    said
}

/// The explanation below the table of targets.
const MARKS: &str = "
[T] a table of the paper, [X] its text, [E] read off its figure by eye, [R] an independent run of the recipe, \
[ours] a question of ours. Ours: mean over seeds ± one standard error. Of an order, the difference is that of \
neighbours, seed by seed. An order over three seeds or more is confirmed or contradicted where its difference exceeds \
two standard errors; within them it agrees, or is within error where the sign is the other. Numbers and closeness are \
judged by the stated tolerance alone.
";

/// The explanation below the table of curves.
const CURVES: &str = "
Mean over rounds: the area under the curve over its length. Stability: standard deviation of the change from round to \
round over the last half; small is steady. At equal uplink: the value when clients have sent as many bytes as the most \
sparing series of the panel sends in all.
";

/// The number of notes that are printed.
const MOST_NOTES: usize = 20;
