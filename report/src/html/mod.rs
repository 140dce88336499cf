//! `report.html`: one file without script and network, readable on a phone, light and dark.

mod binary;
mod calibrated;
mod classification;
mod confusion;
mod groups;
mod regression;
mod sites;

use std::fmt::Write as _;

use crate::analysis::Analysis;
use crate::definitions::{self, Definition};
use crate::groups::Groups;
use crate::metrics::{Interval, Unit, View};
use crate::report::Report;
use crate::run::{Comparison, PersonalRow, PersonalTable, RunSummary};
use crate::svg::{Picture, SERIES, STYLE};
use crate::text::{escape, number, percent, points, thousands};
use crate::verdict::CalibrationVerdict;

const PAGE_STYLE: &str = include_str!("page.css");

/// The pictures of a report.
#[derive(Debug)]
pub(super) struct Pictures<'a> {
    pub(super) reliability: &'a Picture,
    pub(super) curves: Option<&'a Picture>,
    /// The curves of further runs.
    pub(super) more_curves: &'a [Picture],
    /// Of other runs, where they are too many for one picture.
    pub(super) runs: Option<&'a Picture>,
    pub(super) partition: Option<&'a Picture>,
    /// Of two classes.
    pub(super) positive: Option<&'a Picture>,
    /// Of two classes that both have rows.
    pub(super) decision: Option<&'a Picture>,
    /// Of the sites, or of the clients' personal predictors.
    pub(super) clients: Option<&'a Picture>,
    /// Of three classes or more, but not too many.
    pub(super) confusion: Option<&'a Picture>,
}

/// The whole page.
pub(super) fn page(report: &Report<'_>, analysis: &Analysis, pictures: &Pictures<'_>) -> String {
    let mut body = Body::default();
    let (verdict, left_out, definitions) = match analysis {
        Analysis::Classification(a) => (&a.verdict, a.left_out, definitions::of_classes()),
        Analysis::Regression(a) => (&a.verdict, a.left_out, definitions::of_targets()),
    };
    body.raw(&format!("<header><h1>{}</h1></header>", escape(&report.title)));
    let personal = report.run.as_ref().and_then(|run| Some((run.personal.as_ref()?, run.personal_first)));
    if let Some((table, true)) = personal {
        personal_section(&mut body, table, true);
        body.heading("The server's particles");
    }
    verdict_box(&mut body, verdict);
    match analysis {
        Analysis::Classification(a) => classification::cards(&mut body, a),
        Analysis::Regression(a) => regression::cards(&mut body, a),
    }
    if let Some(left_out) = left_out {
        body.note(left_out);
    }
    body.picture(pictures.reliability);
    if let Analysis::Classification(a) = analysis {
        classification::bins(&mut body, a);
        if let Some(of) = &a.binary {
            binary::section(&mut body, a, of, pictures);
        }
    }
    if !analysis.groups().is_empty() {
        groups::section(&mut body, analysis.groups(), report.groups.is_some_and(Groups::are_worst_first));
    }
    if let Some(run) = report.run.as_ref().filter(|run| !run.sites.is_empty()) {
        sites::section(&mut body, analysis.overall(), &run.sites, pictures);
    }
    if let Some(results) = report.run.as_ref().and_then(|run| run.calibration.as_ref()) {
        calibrated::section(&mut body, results);
    }
    if let Some(run) = &report.run {
        comparison(&mut body, &report.title, analysis, &run.compare, pictures.runs);
    }
    if let Some((table, false)) = personal {
        personal_section(&mut body, table, false);
    }
    if let Some(run) = report.run.as_ref().filter(|run| !run.clients.is_empty()) {
        sites::clients(&mut body, &run.clients, pictures);
    }
    for other in report.run.iter().flat_map(|run| &run.compare) {
        if let Some(clients) = &other.clients {
            sites::compared(&mut body, clients, &other.name);
        }
    }
    if let Some(curves) = pictures.curves {
        body.heading("Metrics over rounds");
        body.picture(curves);
        pictures.more_curves.iter().for_each(|curves| body.picture(curves));
    }
    match analysis {
        Analysis::Classification(a) => {
            let name = |class: usize| report.class_name(class, a.classwise_ece.len());
            if let Some(of) = &a.confusion {
                confusion::section(&mut body, of, pictures.confusion, name);
            }
            classification::details(&mut body, a, name);
        }
        Analysis::Regression(a) => regression::details(&mut body, a),
    }
    if let Some(partition) = pictures.partition {
        body.heading("Partition of the data");
        body.picture(partition);
    }
    if let Some(run) = &report.run {
        run_section(&mut body, run);
    }
    meanings(&mut body, &definitions);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
         <footer>Made by fedstein. The same numbers are in report.json.</footer>\n</body>\n</html>\n",
        escape(&report.title),
        body.text
    )
}

fn verdict_box(body: &mut Body, verdict: &CalibrationVerdict) {
    let class = match verdict.kind {
        "over-confident" | "biased" => "over",
        "under-confident" => "under",
        _ => "level",
    };
    body.raw(&format!(
        "<section class=\"verdict {class}\"><h2>{}</h2><p>{}</p></section>",
        escape(&verdict.headline),
        escape(&verdict.text)
    ));
}

fn comparison(body: &mut Body, title: &str, analysis: &Analysis, others: &[Comparison], runs: Option<&Picture>) {
    if others.is_empty() {
        return;
    }
    body.heading("Comparison with other runs");
    let own = analysis.overall().in_view(View::Comparison);
    let header: Vec<&str> = std::iter::once("Run").chain(own.iter().map(|(metric, _)| metric.heading())).collect();
    let mut rows = vec![Vec::from_iter(
        std::iter::once(escape(title)).chain(own.iter().map(|(metric, value)| shown(metric.unit, *value))),
    )];
    rows.extend(others.iter().map(|other| {
        let values = own.iter().map(|(metric, _)| shown(metric.unit, other.evaluation.value(metric)));
        Vec::from_iter(std::iter::once(escape(&other.name)).chain(values))
    }));
    body.table(&header, &rows);
    if let Some(runs) = runs {
        body.note(&format!("The diagram above has lines for {} other runs; here is each by itself.", SERIES - 1));
        body.picture(runs);
    }
}

fn personal_section(body: &mut Body, table: &PersonalTable, is_first: bool) {
    body.heading("Personalised predictions");
    body.paragraph(match is_first {
        true => {
            "Every client's personal predictor on that client's own test rows: what this method is for. Everything below, up to the \
             section on the clients, is about the server's global particles on all test rows, which no client predicts with."
        }
        false => {
            "Every client's personal predictor on that client's own test rows. The numbers above are those of the server's global \
             particles on all test rows."
        }
    });
    if let Some((scored, clients)) = table.scored {
        body.paragraph(&format!(
            "Of the {clients} clients, {scored} sent their scores in round {}; its numbers leave out the others.",
            table.last_round
        ));
    }
    let last = format!("Round {}", table.last_round);
    let best = table.best_round.map(|round| format!("Round {round}, lowest validation NLL"));
    let header: Vec<&str> = ["", &last].into_iter().chain(best.as_deref()).chain([""]).collect();
    let row = |PersonalRow { name, about, last, best }: &PersonalRow| {
        let best = table.best_round.map(|_| or_dash(*best));
        [escape(name), number(*last)].into_iter().chain(best).chain([escape(about)]).collect()
    };
    body.table_of_words(&header, &table.rows.iter().map(row).collect::<Vec<_>>());
}

fn run_section(body: &mut Body, run: &RunSummary) {
    if !run.facts.is_empty() || !run.notes.is_empty() {
        body.heading("The run");
        run.notes.iter().for_each(|note| body.note(&escape(note)));
    }
    if !run.facts.is_empty() {
        let rows: Vec<Vec<String>> = run.facts.iter().map(|(name, fact)| vec![escape(name), escape(fact)]).collect();
        body.table_of_words(&[], &rows);
    }
    if !run.config_toml.trim().is_empty() {
        body.raw(&format!(
            "<details><summary>Resolved config (TOML)</summary><pre>{}</pre></details>",
            escape(run.config_toml.trim())
        ));
    }
}

fn meanings(body: &mut Body, definitions: &[Definition]) {
    body.raw("<details><summary>What every number means</summary><dl>");
    for definition in definitions {
        body.raw(&format!("<dt>{}</dt><dd>{}</dd>", escape(definition.name), escape(definition.meaning)));
    }
    body.raw("</dl></details>");
}

/// The text in the place of a missing value.
const NOTHING: &str = "\u{2013}";

/// A value in its unit.
fn shown(unit: Unit, value: Option<f64>) -> String {
    match (unit, value) {
        (_, None) => NOTHING.to_owned(),
        (Unit::Share, Some(share)) => percent(share),
        (Unit::Points, Some(gap)) => format!("{} points", points(gap)),
        (Unit::Rows, Some(rows)) => count(rows as usize),
        (Unit::One | Unit::Nats | Unit::Target, Some(value)) => number(value),
    }
}

/// An interval in the unit of its metric; empty for none.
fn interval(unit: Unit, range: Option<Interval>) -> String {
    let end = match unit {
        Unit::Share => percent,
        Unit::Points => points,
        Unit::One | Unit::Nats | Unit::Target | Unit::Rows => number,
    };
    range.map_or(String::new(), |range| format!("{} to {}", end(range.lo), end(range.hi)))
}

/// The ends of an interval of a share, in percent.
fn shares(range: Interval) -> String {
    format!("{:.1} to {:.1}", 100.0 * range.lo, 100.0 * range.hi)
}

/// A value with an interval in small print below it, if there is one.
fn with_range(value: String, range: &str) -> String {
    if range.is_empty() { value } else { format!("{value}<br><small>{range}</small>") }
}

fn or_dash(value: Option<f64>) -> String {
    value.map_or(NOTHING.to_owned(), number)
}

/// A headline number: name, value, a note below.
struct Card {
    name: &'static str,
    value: String,
    note: String,
}

impl Card {
    fn new(name: &'static str, value: String, note: String) -> Self {
        Self { name, value, note }
    }
}

/// The page's content so far. Cells and notes are HTML, which the functions that make them escape.
#[derive(Debug, Default)]
struct Body {
    text: String,
}

impl Body {
    fn raw(&mut self, html: &str) {
        self.text.push_str(html);
        self.text.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.raw(&format!("<h2>{}</h2>", escape(title)));
    }

    fn paragraph(&mut self, text: &str) {
        self.raw(&format!("<p>{}</p>", escape(text)));
    }

    fn note(&mut self, text: &str) {
        self.raw(&format!("<p class=\"note\">{}</p>", escape(text)));
    }

    fn picture(&mut self, picture: &Picture) {
        self.raw(&format!("<figure>{}</figure>", picture.inline()));
    }

    fn cards(&mut self, cards: &[Card]) {
        self.raw("<section class=\"cards\">");
        for Card { name, value, note } in cards {
            let note = if note.is_empty() { String::new() } else { format!("<small>{}</small>", escape(note)) };
            self.raw(&format!("<div><b>{}</b><strong>{}</strong>{note}</div>", escape(name), escape(value)));
        }
        self.raw("</section>");
    }

    /// A table that scrolls sideways on its own; the first column is text, the others numbers.
    fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll", header, rows);
    }

    /// A table whose last column is text too.
    fn table_of_words(&mut self, header: &[&str], rows: &[Vec<String>]) {
        self.table_of("scroll words", header, rows);
    }

    fn table_of(&mut self, class: &str, header: &[&str], rows: &[Vec<String>]) {
        let _ = write!(self.text, "<div class=\"{class}\"><table>");
        if !header.is_empty() {
            let cells: String = header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
            let _ = write!(self.text, "<thead><tr>{cells}</tr></thead>");
        }
        self.text.push_str("<tbody>");
        for row in rows {
            let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            let _ = writeln!(self.text, "<tr>{cells}</tr>");
        }
        self.raw("</tbody></table></div>");
    }
}

fn count(n: usize) -> String {
    thousands(n)
}
