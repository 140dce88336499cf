//! `report.html`: one file without script and network, readable on a phone, light and dark.

mod binary;
mod body;
mod calibrated;
mod classification;
mod confusion;
mod groups;
mod pictures;
mod regression;
mod sites;

use crate::analysis::Analysis;
use crate::definitions::{self, Definition};
use crate::groups::Groups;
use crate::metrics::View;
use crate::report::Report;
use crate::run::{PersonalRow, PersonalTable, RunSummary};
use crate::svg::{Picture, SERIES, STYLE};
use crate::text::{escape, number};
use crate::verdict::CalibrationVerdict;
use body::{Body, or_dash, shown};

pub(crate) use pictures::Pictures;

const PAGE_STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn page(report: &Report<'_>, analysis: &Analysis, pictures: &Pictures<'_>) -> String {
    let mut body = Body::default();
    body.raw(&format!("<header><h1>{}</h1></header>", escape(&report.title)));
    let personal = report.run.as_ref().and_then(|run| Some((run.personal.as_ref()?, run.personal_first)));
    if let Some((table, true)) = personal {
        personal_section(&mut body, table, true);
        body.heading("The server's particles");
    }
    headline(&mut body, report, analysis, pictures);
    if let Some(run) = &report.run {
        if !run.sites.is_empty() {
            sites::section(&mut body, analysis.overall(), (&run.sites, run.not_judged.is_none()), pictures);
        }
        if let Some(results) = &run.calibration {
            calibrated::section(&mut body, results);
        }
        comparison(&mut body, &report.title, analysis, run, pictures.runs);
    }
    if let Some((table, false)) = personal {
        personal_section(&mut body, table, false);
    }
    if let Some(run) = &report.run {
        clients(&mut body, run, pictures);
    }
    details(&mut body, report, analysis, pictures);
    if let Some(run) = &report.run {
        run_section(&mut body, run);
    }
    let definitions = match analysis {
        Analysis::Classification(_) => definitions::of_classes(),
        Analysis::Regression(_) => definitions::of_targets(),
    };
    meanings(&mut body, &definitions);
    framed(&report.title, &body)
}

/// The verdict, the headline numbers, the diagram, and the sections on classes and groups of rows.
fn headline(body: &mut Body, report: &Report<'_>, analysis: &Analysis, pictures: &Pictures<'_>) {
    let (verdict, left_out) = match analysis {
        Analysis::Classification(a) => (&a.verdict, a.left_out.as_deref()),
        Analysis::Regression(a) => (&a.verdict, a.left_out.as_deref()),
    };
    verdict_box(body, verdict);
    match analysis {
        Analysis::Classification(a) => classification::cards(body, a),
        Analysis::Regression(a) => regression::cards(body, a),
    }
    if let Some(left_out) = left_out {
        body.note(left_out);
    }
    body.picture(pictures.reliability);
    if let Analysis::Classification(a) = analysis {
        classification::bins(body, a);
        if let Some(of) = &a.binary {
            binary::section(body, a, of, pictures);
        }
    }
    if !analysis.groups().is_empty() {
        groups::section(body, analysis.groups(), report.groups.is_some_and(Groups::are_worst_first));
    }
}

/// The clients' personal predictors, one by one, and beside those of other runs.
fn clients(body: &mut Body, run: &RunSummary, pictures: &Pictures<'_>) {
    if !run.clients.is_empty() {
        sites::clients(body, &run.clients, pictures);
    }
    for other in &run.compare {
        if let Some(clients) = &other.clients {
            sites::compared(body, clients, &other.name);
        }
    }
}

/// The curves over rounds, the details of the task and the partition.
fn details(body: &mut Body, report: &Report<'_>, analysis: &Analysis, pictures: &Pictures<'_>) {
    if let Some(curves) = pictures.curves {
        body.heading("Metrics over rounds");
        body.picture(curves);
        pictures.more_curves.iter().for_each(|curves| body.picture(curves));
    }
    match analysis {
        Analysis::Classification(a) => {
            let name = |class: usize| report.class_name(class, a.classwise_ece.len());
            if let Some(of) = &a.confusion {
                confusion::section(body, of, pictures.confusion, name);
            }
            classification::details(body, a, name);
        }
        Analysis::Regression(a) => regression::details(body, a),
    }
    if let Some(partition) = pictures.partition {
        body.heading("Partition of the data");
        body.picture(partition);
    }
}

/// The content as a page.
fn framed(title: &str, body: &Body) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n{}</main>\n\
         <footer>Made by fedstein. The same numbers are in report.json.</footer>\n</body>\n</html>\n",
        escape(title),
        body.text
    )
}

fn verdict_box(body: &mut Body, verdict: &CalibrationVerdict) {
    body.raw(&format!(
        "<section class=\"verdict {}\"><h2>{}</h2><p>{}</p></section>",
        verdict.kind.style(),
        escape(&verdict.headline),
        escape(&verdict.text)
    ));
}

fn comparison(body: &mut Body, title: &str, analysis: &Analysis, run: &RunSummary, runs: Option<&Picture>) {
    let others = &run.compare;
    if others.is_empty() {
        return;
    }
    body.heading("Comparison with other runs");
    let own = analysis.overall().in_view(View::Comparison);
    let header: Vec<&str> = std::iter::once("Run").chain(own.iter().map(|(metric, _)| metric.heading())).collect();
    let line = |name: &str, is_judged: bool, values: Vec<Option<f64>>| -> Vec<String> {
        let cells = own.iter().zip(values).map(|((metric, _), value)| shown(metric.unit, value.filter(|_| is_judged)));
        std::iter::once(escape(name)).chain(cells).collect()
    };
    let mut rows = vec![line(title, run.not_judged.is_none(), own.iter().map(|(_, value)| *value).collect())];
    rows.extend(others.iter().map(|other| {
        let values = own.iter().map(|(metric, _)| other.evaluation.value(metric)).collect();
        line(&other.name, other.not_judged.is_none(), values)
    }));
    body.table(&header, &rows);
    for other in others {
        if let Some(reason) = &other.not_judged {
            body.note(&format!("{}: {reason}", other.name));
        }
    }
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
        run.notes.iter().for_each(|note| body.note(note));
    }
    if !run.facts.is_empty() {
        let rows: Vec<Vec<String>> = run.facts.iter().map(|(name, fact)| vec![escape(name), escape(fact)]).collect();
        body.table_of_words(&[], &rows);
    }
    if !run.config_toml.trim().is_empty() {
        body.details("Resolved config (TOML)", |body| body.preformatted(run.config_toml.trim()));
    }
}

fn meanings(body: &mut Body, definitions: &[Definition]) {
    body.details("What every number means", |body| {
        body.raw("<dl>");
        for definition in definitions {
            body.raw(&format!("<dt>{}</dt><dd>{}</dd>", escape(definition.name), escape(definition.meaning)));
        }
        body.raw("</dl>");
    });
}
