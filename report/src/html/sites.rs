//! The section on the sites that hold the rows, each by its name.

use super::{Body, shown};
use crate::metrics::{Evaluation, Metric, View};
use crate::overall::Overall;
use crate::run::SiteScores;
use crate::text::{escape, rows, thousands};

/// The tables of all sites: the published particles, and the sites' own predictors where these were scored.
pub(super) fn section(body: &mut Body, overall: &Overall, sites: &[SiteScores]) {
    body.heading("Sites");
    body.paragraph(&format!(
        "Each site scored the server's global particles on its own test rows and sent sums. The numbers above are those of \
         all {} together.",
        rows(overall.n)
    ));
    let silent: Vec<&str> = sites.iter().filter(|site| site.evaluation.rows == 0).map(|site| &*site.name).collect();
    if !silent.is_empty() {
        body.paragraph(&format!("No scores of test rows came from {}; the numbers leave them out.", silent.join(", ")));
    }
    let known = overall.in_view(View::Comparison).into_iter().filter(|(_, value)| value.is_some());
    let metrics: Vec<&Metric> = known.map(|(metric, _)| metric).collect();
    table(body, &metrics, sites, |site| Some(&site.evaluation));
    if sites.iter().any(|site| site.own.is_some()) {
        body.paragraph("Each site's own predictor on the same rows:");
        table(body, &metrics, sites, |site| site.own.as_ref());
    }
}

/// One line for each site, with the metrics in the order given.
fn table(body: &mut Body, metrics: &[&Metric], sites: &[SiteScores], of: impl Fn(&SiteScores) -> Option<&Evaluation>) {
    let heads = metrics.iter().map(|metric| metric.heading());
    let header: Vec<&str> = ["Site", "Rows"].into_iter().chain(heads).collect();
    let line = |site: &SiteScores| {
        let of = of(site);
        let values = metrics.iter().map(|metric| shown(metric.unit, of.and_then(|of| of.value(metric))));
        [escape(&site.name), thousands(of.map_or(0, |of| of.rows))].into_iter().chain(values).collect()
    };
    body.table(&header, &sites.iter().map(line).collect::<Vec<_>>());
}
