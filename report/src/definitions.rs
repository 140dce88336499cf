//! The definitions of all numbers of a report, in a sentence each, for `report.json` and the page.

use crate::metrics::{Metric, View};

/// The meaning of a number of the report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Definition {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
}

/// A definition at a place among those of the metrics.
type Placed = (u16, Definition);

const fn of(place: u16, key: &'static str, name: &'static str, meaning: &'static str) -> Placed {
    (place, Definition { key, name, meaning })
}

/// The definitions of a classification report.
pub(super) fn of_classes() -> Vec<Definition> {
    with_metrics(CLASSES, |metric| in_report(metric.classes?.meaning))
}

/// The definitions of a regression report.
pub(super) fn of_targets() -> Vec<Definition> {
    with_metrics(TARGETS, |metric| in_report(metric.targets?.meaning))
}

/// The meaning of a metric, where the report has it.
fn in_report(meaning: &'static str) -> Option<&'static str> {
    Some(meaning).filter(|meaning| !meaning.is_empty())
}

fn with_metrics(others: &[Placed], meaning: impl Fn(&Metric) -> Option<&'static str>) -> Vec<Definition> {
    let of_metric =
        |metric: &'static Metric| Some(of(metric.place(View::Definition)?, metric.key, metric.name, meaning(metric)?));
    let mut all: Vec<Placed> = Metric::all().filter_map(of_metric).chain(others.iter().copied()).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, definition)| definition).collect()
}

/// The definitions of a classification report besides the metrics.
const CLASSES: &[Placed] = &[
    of(10, "n", "Rows", "Number of labelled rows in the report."),
    of(
        15,
        "clusters",
        "Clusters",
        "Number of clusters, such as patients, to which the rows belong; in reports of independent rows there is none.",
    ),
    of(
        20,
        "confidence",
        "Confidence",
        "Largest class probability of a row, max_c p_c, for two classes too; the predicted class is the argmax, the lowest index on ties.",
    ),
    of(
        120,
        "bins",
        "Bins",
        "B intervals ((j-1)/B, j/B] of the confidence; 0 belongs to the first; an empty bin has no accuracy, which is not 0.",
    ),
    of(
        220,
        "gap",
        "Gap",
        "Mean confidence minus accuracy within a bin, or confidence minus precision of a predicted class.",
    ),
    of(
        230,
        "brier_decomposition",
        "Brier decomposition",
        "mean (confidence - correct)^2 = uncertainty - resolution + reliability + within, exact over the same bins: the variance of the outcomes, the variance of the accuracy over bins, the calibration error, and inside the bins the variance of the confidence less twice its covariance with being right.",
    ),
    of(
        280,
        "auroc_misclassification",
        "AUROC of mistakes",
        "Probability that a wrong row has a lower confidence than a right one, ties count half; 0.5 is chance level.",
    ),
    of(
        290,
        "auroc_mutual_information",
        "AUROC of mistakes by MI",
        "The same with the mutual information as the score.",
    ),
    of(
        300,
        "fpr95",
        "FPR at 95 % TPR",
        "Share of wrong rows that pass the confidence threshold which 95 % of the right rows pass.",
    ),
    of(
        310,
        "aurc",
        "AURC",
        "Area under the risk-coverage curve: mean over i of the error rate among the i most confident rows, the first given first where some are equally confident, so that with many of them another order gives another number; lower is better.",
    ),
    of(
        320,
        "confidence_intervals",
        "Intervals",
        "95 % percentile bootstrap over rows, seeded; of the ECE, which chance makes larger, from the error of gaps that are nearer to 0 to that of gaps farther from it, in every bin by so many of their standard errors that an ECE as large, or as small, as that of the rows has a probability of 2.5 %, and from 0 where a calibrated model has one as large by chance; of the accuracy Wilson's interval; of calibration slope, intercept and calibration in the large Wald's interval; they cover the sampling of the rows, not the variation between training runs. Of rows with clusters, clusters are resampled, Wilson's interval has the rows over the design effect in the place of the rows, and Wald's and that of the ECE the variance by clusters.",
    ),
    of(
        330,
        "temperature_scaling",
        "Temperature",
        "T minimises the NLL of softmax(ln p / T) on a seeded half of the rows; before and after are measured on the other half; all other numbers of the report are at T = 1.",
    ),
];

/// The definitions of a regression report besides the metrics.
const TARGETS: &[Placed] = &[
    of(10, "n", "Rows", "Number of rows with a target in the report."),
    of(
        15,
        "clusters",
        "Clusters",
        "Number of clusters, such as patients, to which the rows belong; in reports of independent rows there is none.",
    ),
    of(
        20,
        "predictive",
        "Predictive",
        "p(y|x) = (1/N) sum_n N(y; mean_n, 1/precision_n), an equal-weight mixture over N particles; every number is on the scale of the data.",
    ),
    of(
        140,
        "coverage",
        "Coverage (PICP)",
        "Share of targets inside the central interval of a level, between the quantiles 1/2 - level/2 and 1/2 + level/2 of the mixture.",
    ),
    of(150, "mean_width", "Mean width (MPIW)", "Mean length of that interval, in the unit of the target."),
    of(
        160,
        "pit",
        "PIT",
        "Probability integral transform: the mixture's distribution function at the target; uniform when calibrated, humped when too wide, U-shaped when too narrow.",
    ),
    of(
        170,
        "quantile_calibration",
        "Quantile calibration",
        "Mean absolute and root mean squared distance between a level and the share of PIT values at or below it, over 100 levels from 0 to 1.",
    ),
    of(
        180,
        "interval_calibration",
        "Interval calibration",
        "The same for central intervals: the share of targets inside against the level.",
    ),
    of(
        190,
        "confidence_intervals",
        "Intervals",
        "95 % percentile bootstrap over rows, seeded; of coverages Wilson's; they cover the sampling of the rows, not the variation between training runs. Of rows with clusters, clusters are resampled, and Wilson's interval has the rows over the design effect in the place of the rows.",
    ),
];
