//! The sections on the sites that hold the rows, and on the clients' personal predictors, each by its name.

use super::body::{Body, shown};
use super::groups;
use super::pictures::Pictures;
use crate::analysis::GroupAnalysis;
use crate::clients_compared::{ClientPair, ClientsCompared};
use crate::metrics::{Metric, View};
use crate::overall::Overall;
use crate::site_scores::SiteScores;
use crate::text::{escape, number, rows, thousands};

const INTERVALS: &str = "In small print: 95 % intervals, Wilson's of shares, and of the signed gap that of a normal distribution, or \
     the accuracy's where all rows are right. Few rows have wide ones.";

/// The tables of all sites: the global particles, unless they are not judged, and the sites' personal predictors where these
/// were scored.
pub(super) fn section(
    body: &mut Body,
    overall: &Overall,
    (sites, are_judged): (&[SiteScores], bool),
    pictures: &Pictures<'_>,
) {
    body.heading("Sites");
    body.paragraph(&format!(
        "Each site scored the server's global particles on its own test rows and sent sums. The numbers above are those of \
         all {} together.",
        rows(overall.n)
    ));
    silent(body, sites);
    if are_judged {
        table(body, "Site", sites);
    }
    if let Some(picture) = pictures.clients {
        body.picture(picture);
    }
    if sites.iter().any(|site| site.own.is_some()) {
        body.paragraph("Each site's personal predictor on the same rows:");
        let own = |site: &SiteScores| {
            let evaluation = site.own.clone()?;
            let clusters = site.own_clusters.clone();
            Some(SiteScores { evaluation, bins: Vec::new(), gap_interval: None, own: None, clusters, ..site.clone() })
        };
        table(body, "Site", &sites.iter().filter_map(own).collect::<Vec<_>>());
    } else if !are_judged {
        body.paragraph(
            "These particles are not judged, and no site scored a personal predictor: evaluation.personal = true lets the \
             sites do so.",
        );
    }
}

/// The table of the clients' personal predictors, on the clients' own test rows.
pub(super) fn clients(body: &mut Body, clients: &[SiteScores], pictures: &Pictures<'_>) {
    body.heading("Clients");
    body.paragraph("Each client's personal predictor after the last round, on the client's own test rows.");
    silent(body, clients);
    table(body, "Client", clients);
    if let Some(picture) = pictures.clients {
        body.picture(picture);
    }
}

/// The predictors of the clients in this run and in another one.
pub(super) fn compared(body: &mut Body, of: &ClientsCompared, other: &str) {
    body.heading(&format!("Clients, compared with {other}"));
    body.paragraph(&of.sentence(other));
    let has_value = |metric: &&Metric| of.clients.iter().any(|client| client.here.value(metric).is_some());
    let metrics: Vec<&Metric> =
        ["accuracy", "rmse", "nll"].into_iter().filter_map(Metric::of_key).filter(has_value).collect();
    let heads =
        metrics.iter().flat_map(|metric| [format!("{}, here", metric.name), format!("{}, {other}", metric.name)]);
    let header: Vec<String> =
        ["Client".into(), "Rows".into()].into_iter().chain(heads).chain(["NLL, difference".into()]).collect();
    let line = |client: &ClientPair| {
        let values = metrics.iter().flat_map(|metric| {
            [&client.here, &client.there].map(|evaluation| shown(metric.unit, evaluation.value(metric)))
        });
        let start = [escape(&client.name), thousands(client.rows)];
        start.into_iter().chain(values).chain([number(client.difference)]).collect()
    };
    let first = &of.clients[..of.clients.len().min(groups::SHOWN)];
    body.table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &first.iter().map(line).collect::<Vec<_>>());
    if first.len() < of.clients.len() {
        body.note(&format!("The table has the first {} of {}; report.json has all.", first.len(), of.clients.len()));
    }
    body.note(
        "Each client's predictor on its own test rows: its own one, where it has one, and otherwise that of all clients. The \
         client that loses most here is first; a difference below 0 is a gain. The difference of one client with few rows may \
         be chance.",
    );
}

fn silent(body: &mut Body, sites: &[SiteScores]) {
    let silent: Vec<&str> = sites.iter().filter(|site| site.evaluation.rows == 0).map(|site| &*site.name).collect();
    if !silent.is_empty() {
        body.paragraph(&format!("No scores of test rows came from {}; the numbers leave them out.", silent.join(", ")));
    }
}

/// One line for each: the worst calibrated first, or where nothing says which these are, the highest NLL.
fn table(body: &mut Body, what: &str, sites: &[SiteScores]) {
    let found: Vec<GroupAnalysis> = SiteScores::worst_first(sites).into_iter().map(GroupAnalysis::of_scores).collect();
    let shown: Vec<&GroupAnalysis> = found.iter().take(groups::SHOWN).collect();
    let compared = Metric::in_view(View::Comparison).into_iter().chain(Metric::of_key("signed_gap"));
    let has_value = |metric: &&Metric| shown.iter().any(|of| of.overall.get(metric.key).is_some());
    groups::table(body, what, &compared.filter(has_value).collect::<Vec<_>>(), &shown);
    if shown.len() < found.len() {
        body.note(&format!("The table has the first {} of {}.", shown.len(), found.len()));
    }
    let is_judged = |scores: &SiteScores| scores.gap_interval.is_some() || scores.evaluation.coverage_90.is_some();
    match sites.iter().any(is_judged) {
        true => body.note(&format!("{}; {} {INTERVALS}", groups::ORDER, groups::FEW_LAST)),
        // A client tells sums of its own predictor that say nothing of calibration beyond chance.
        false => body.note(&format!("Those with the highest NLL are first; {}", groups::FEW_LAST)),
    }
}
