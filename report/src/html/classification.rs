//! The sections that only a classification has.

use super::body::{Body, Card, NOTHING, count, interval, or_dash, resampled, shown};
use crate::analysis::{ClassAnalysis, Selective};
use crate::calibrated::effect_of;
use crate::metrics::{Bin, Metric, View};
use crate::text::{escape, number, percent, points, rows};

pub(super) fn cards(body: &mut Body, analysis: &ClassAnalysis) {
    let (overall, intervals) = (&analysis.overall, analysis.confidence_intervals.as_ref());
    let range = |key: &str| intervals.and_then(|intervals| intervals.get(key));
    let small_print = |metric: &Metric| match metric.key {
        "mean_confidence" => format!("{} in all", rows(overall.n)),
        "mce" => overall.get("mce").map_or(String::new(), |_| format!("in a bin of {}", rows(overall.count("mce_n")))),
        "classwise_ece" => format!("{} classes", analysis.classwise_ece.len()),
        "nll" => {
            let floored = match overall.count("nll_clamped") {
                0 => String::new(),
                n => format!("; {} at the floor", rows(n)),
            };
            interval(metric.unit, range(metric.key)) + &floored
        }
        key => match range(key) {
            Some(range) => interval(metric.unit, Some(range)),
            None => metric.small_print.to_owned(),
        },
    };
    let card = |(metric, value): (&'static Metric, Option<f64>)| {
        Card::new(metric.name, shown(metric.unit, value), small_print(metric))
    };
    body.cards(&overall.in_view(View::Card).into_iter().map(card).collect::<Vec<_>>());
    if let Some(no_skill) = &analysis.no_skill {
        body.note(&format!(
            "Without features, predicting every row with the frequencies of the classes: accuracy {}, NLL {}, Brier score {}{}.",
            percent(no_skill.accuracy),
            number(no_skill.nll),
            number(no_skill.brier),
            skill(overall.get("brier"), no_skill.brier)
        ));
    }
    if let Some(intervals) = intervals {
        body.note(&format!(
            "In small print below a number: its 95 % interval over {} resamples of the {}, of the accuracy Wilson's, of the ECE \
             from the standard errors of its bins.",
            count(intervals.resamples),
            resampled(overall)
        ));
    }
}

/// The Brier skill score, to complete a sentence.
fn skill(brier: Option<f64>, without: f64) -> String {
    let skill = brier.filter(|_| without > 0.0).map(|brier| 1.0 - brier / without);
    skill.map_or_else(String::new, |skill| format!("; the Brier skill of these predictions is {}", percent(skill)))
}

pub(super) fn bins(body: &mut Body, analysis: &ClassAnalysis) {
    body.details("The bins as a table", |body| bin_table(body, CONFIDENCE, &analysis.bins));
    if !analysis.equal_mass_bins.is_empty() {
        body.details("Bins of equal mass", |body| bin_table(body, CONFIDENCE, &analysis.equal_mass_bins));
    }
}

/// The headings of bins of the confidence.
const CONFIDENCE: [&str; 3] = ["Confidence", "Accuracy", "Confidence"];

/// Bins under headings for their range, for what happened, and for what was predicted.
pub(super) fn bin_table(body: &mut Body, [range, happened, predicted]: [&str; 3], bins: &[Bin]) {
    let share = |value: Option<f64>| value.map_or(NOTHING.to_owned(), percent);
    let row = |bin: &Bin| {
        vec![
            format!("{:.3} to {:.3}", bin.lo, bin.hi),
            count(bin.n),
            share(bin.accuracy),
            share(bin.confidence),
            bin.gap.map_or(NOTHING.to_owned(), points),
        ]
    };
    let table: Vec<Vec<String>> = bins.iter().map(row).collect();
    body.table_of_values(&[range, "Rows", happened, predicted, "Gap (points)"], &table);
}

pub(super) fn details(body: &mut Body, analysis: &ClassAnalysis, name: impl Fn(usize) -> String) {
    temperature(body, analysis);
    uncertainty(body, analysis);
    brier(body, analysis);
    classes(body, analysis, name);
}

fn temperature(body: &mut Body, analysis: &ClassAnalysis) {
    let Some(t) = &analysis.temperature_scaling else {
        return;
    };
    body.heading("Temperature scaling");
    let helps = t.evaluated_nll_after < t.evaluated_nll_before;
    let mut text = format!(
        "Fitted on {}, evaluated on the other {}: T = {} {} and changes the NLL from {} to {} and the ECE \
         from {} to {}. ",
        rows(t.fit_rows),
        rows(t.evaluated_rows),
        number(t.fit.temperature),
        effect_of(t.fit.temperature),
        number(t.evaluated_nll_before),
        number(t.evaluated_nll_after),
        or_dash(t.evaluated_ece_before),
        or_dash(t.evaluated_ece_after),
    );
    if t.fit.at_limit {
        text += "The search ended at its limit: the optimum is beyond it. ";
    }
    text += if helps { "The NLL improves. " } else { "The NLL does not improve. " };
    text += "The accuracy does not change, and no other number in this report uses the temperature.";
    body.paragraph(&text);
}

fn uncertainty(body: &mut Body, analysis: &ClassAnalysis) {
    body.heading(if analysis.selective.is_some() { "Uncertainty and mistakes" } else { "Uncertainty" });
    let mut cards = analysis.selective.as_ref().map_or_else(Vec::new, mistakes);
    match &analysis.uncertainty {
        None => {
            cards.push(Card::new("Entropy", or_dash(analysis.overall.get("entropy")), "nats, mean over rows".into()))
        }
        Some(u) => cards.extend([
            Card::new("Entropy", or_dash(u.entropy), "nats: aleatoric + epistemic".into()),
            Card::new("Aleatoric", or_dash(u.aleatoric), "nats: noise in the data".into()),
            Card::new("Epistemic", or_dash(u.mutual_information), "nats: disagreement of particles".into()),
            Card::new(
                "Disagreement",
                u.disagreement.map_or(NOTHING.to_owned(), percent),
                format!("of pairs among {} particles", u.particles),
            ),
            Card::new("Accuracy, one particle", percent(u.accuracy_mean_particle), "mean over particles".into()),
            Card::new("NLL, one particle", number(u.nll_mean_particle), "mean over particles".into()),
        ]),
    }
    body.cards(&cards);
}

/// How well the uncertainty ranks the mistakes.
fn mistakes(of: &Selective) -> Vec<Card> {
    let mut cards = vec![
        Card::new(
            "AUROC of mistakes",
            or_dash(of.auroc_misclassification),
            "by confidence; 0.5 is chance level".into(),
        ),
        Card::new("FPR at 95 % TPR", or_dash(of.fpr95), "mistakes that pass".into()),
        Card::new("AURC", or_dash(of.aurc), "lower is better".into()),
    ];
    if of.auroc_mutual_information.is_some() {
        let value = or_dash(of.auroc_mutual_information);
        cards.push(Card::new("AUROC by MI", value, "by the particles' disagreement".into()));
    }
    cards
}

fn brier(body: &mut Body, analysis: &ClassAnalysis) {
    let Some(d) = &analysis.brier_decomposition else {
        return;
    };
    body.heading("Decomposition of the top-label Brier score");
    let row = |name: &str, value: f64, meaning: &str| vec![escape(name), number(value), escape(meaning)];
    body.table_of_words(
        &["Part", "Value", "Meaning"],
        &[
            row("Uncertainty", d.uncertainty, "variance of the outcomes"),
            row("\u{2212} Resolution", d.resolution, "variance of the accuracy over bins"),
            row("+ Reliability", d.reliability, "calibration error"),
            row("+ Within bins", d.within, "variance less twice the covariance inside the bins"),
            row("= Brier, top label", d.brier, "mean (confidence \u{2212} correct)\u{b2}"),
        ],
    );
}

fn classes(body: &mut Body, analysis: &ClassAnalysis, name: impl Fn(usize) -> String) {
    body.heading("Class by class");
    let share = |value: Option<f64>| value.map_or(NOTHING.to_owned(), percent);
    let name = |class: usize| escape(&name(class));
    if analysis.classes.is_empty() {
        let of_class = analysis.classwise_ece.iter().enumerate();
        let table: Vec<Vec<String>> = of_class.map(|(class, ece)| vec![name(class), number(*ece)]).collect();
        body.table(&["Class", "ECE of p_c"], &table);
        return;
    }
    let table: Vec<Vec<String>> = analysis
        .classes
        .iter()
        .zip(&analysis.classwise_ece)
        .map(|(row, ece)| {
            vec![
                name(row.class),
                count(row.n),
                share(row.recall),
                count(row.predicted),
                share(row.precision),
                share(row.confidence),
                row.gap.map_or(NOTHING.to_owned(), points),
                number(*ece),
            ]
        })
        .collect();
    body.table(
        &["Class", "Rows", "Recall", "Predicted", "Precision", "Confidence", "Gap (points)", "ECE of p_c"],
        &table,
    );
}
