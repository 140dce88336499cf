//! The section on classes that are taken for one another.

use super::body::{Body, shares, with_range};
use crate::analysis::ConfusionAnalysis;
use crate::metrics::ConfusedPair;
use crate::svg::Picture;
use crate::text::{escape, percent, thousands};

/// The matrix, where it is not too large, and the most confused pairs.
pub(super) fn section(
    body: &mut Body,
    analysis: &ConfusionAnalysis,
    picture: Option<&Picture>,
    name: impl Fn(usize) -> String,
) {
    body.heading("Classes that are taken for one another");
    if let Some(picture) = picture {
        body.picture(picture);
    }
    if let Some(counts) = &analysis.counts {
        matrix(body, counts, &name);
    } else {
        body.paragraph("There are too many classes for the whole matrix; confusion.csv has it.");
    }
    if analysis.pairs.is_empty() {
        body.paragraph("No row is predicted as another class.");
        return;
    }
    pairs(body, analysis, &name);
}

fn matrix(body: &mut Body, counts: &[Vec<usize>], name: &impl Fn(usize) -> String) {
    let names: Vec<String> = (0..counts.len()).map(name).collect();
    let header: Vec<&str> = ["Class \\ predicted"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let line = |(class, row): (usize, &Vec<usize>)| {
        [escape(&names[class])].into_iter().chain(row.iter().map(|count| thousands(*count))).collect()
    };
    let lines: Vec<Vec<String>> = counts.iter().enumerate().map(line).collect();
    body.details("The numbers of rows as a table", |body| body.table(&header, &lines));
}

fn pairs(body: &mut Body, analysis: &ConfusionAnalysis, name: &impl Fn(usize) -> String) {
    body.paragraph(&match analysis.all_pairs - analysis.pairs.len() {
        0 => "The pairs of classes with confused rows, those with the most rows first:".to_owned(),
        _ => format!(
            "The {} pairs of classes with the most confused rows, of {}:",
            analysis.pairs.len(),
            thousands(analysis.all_pairs)
        ),
    });
    let line = |pair: &ConfusedPair| {
        vec![
            escape(&name(pair.label)),
            escape(&name(pair.predicted)),
            thousands(pair.n),
            with_range(percent(pair.share), &shares(pair.share_interval)),
            percent(pair.confidence),
        ]
    };
    let table: Vec<Vec<String>> = analysis.pairs.iter().map(line).collect();
    body.table_of_values(&["Class", "Predicted as", "Rows", "Of the class", "Mean confidence"], &table);
    body.note("In small print: the 95 % interval of the share. The confidence is that of the wrong predictions.");
}
