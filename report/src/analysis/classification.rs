//! All numbers of a classification report, computed once; its fields are those of `report.json`.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use serde::Serialize;

use super::binary::BinaryAnalysis;
use super::class_headline::{Headline, headline, overall};
use super::confusion::ConfusionAnalysis;
use super::groups::{self, GroupAnalysis};
use super::resamples;
use crate::metrics::{
    self, Bin, BrierDecomposition, ClassPredictions, ClassRow, ClassSums, ClientScores, Clusters, Interval,
    MetricError, NoSkill, ScoreIntervals, ScoredClasses, TemperatureFit, UncertaintySummary, apply_temperature,
    fit_temperature, logits_of,
};
use crate::overall::Overall;
use crate::report::Report;
use crate::skill::Skill;
use crate::verdict::{CalibrationVerdict, SecondClass};

/// The least number of rows, or clusters of rows, that are split into one half for fitting and one for evaluation.
const FEWEST_ROWS_TO_SPLIT: usize = 20;

/// What a report of sums leaves out, and why.
const LEFT_OUT: &str = "The rows of this report stay where they are, and only sums over them are known. Numbers that need \
     single rows are left out: the ACE and its bins of equal mass, bootstrap intervals, recall and precision of every \
     class, which classes are taken for which, how the confidence ranks the mistakes, temperature scaling, and for two \
     classes AUROC, AUPRC, calibration slope and decision curve. The interval of the difference above is that \
     of a normal distribution with the variance of the";
/// What variance that is, without clusters.
const OF_ROWS: &str = "rows, which are taken for independent: where several are of one patient, it is too narrow.";
/// And with clusters.
const OF_CLUSTERS: &str = "clusters; the bars of the bins take rows for independent.";

/// All numbers of a classification report.
#[derive(Debug, Clone, Serialize)]
pub struct ClassAnalysis {
    /// The headline in words.
    pub verdict: CalibrationVerdict,
    /// The scores of predicting the frequencies of the classes; `None` where single rows are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_skill: Option<NoSkill>,
    /// The headline numbers.
    pub overall: Overall,
    /// What is left out, and why, where single rows are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Bootstrap intervals of the headline numbers; `None` where single rows are not known.
    pub confidence_intervals: Option<ScoreIntervals>,
    /// Equal-width bins.
    pub bins: Vec<Bin>,
    /// The 95 % intervals of their accuracies.
    #[serde(skip)]
    pub bin_intervals: Vec<Option<Interval>>,
    /// Equal-mass bins; their edges are the smallest and largest confidence inside. None where single rows are not known.
    pub equal_mass_bins: Vec<Bin>,
    /// The decomposition of the top-label Brier score.
    pub brier_decomposition: Option<BrierDecomposition>,
    /// Scores of every class, `[C]`; none where single rows are not known.
    pub classes: Vec<ClassRow>,
    /// One-vs-rest ECE of every class, `[C]`.
    pub classwise_ece: Vec<f64>,
    /// How well the confidence ranks the mistakes; `None` where single rows are not known.
    pub selective: Option<Selective>,
    /// The numbers for decisions between two classes; `None` for any other number of classes, or where single rows are not
    /// known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<BinaryAnalysis>,
    /// Which classes are taken for which; `None` for two classes, or where single rows are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confusion: Option<ConfusionAnalysis>,
    /// The numbers that need the particles.
    pub uncertainty: Option<UncertaintySummary>,
    /// The effect of temperature scaling; `None` with too few rows to split.
    pub temperature_scaling: Option<TemperatureDiagnosis>,
    /// The numbers of every group of rows; none without groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupAnalysis>,
}

/// How well a score ranks the mistakes; `None` where there are no mistakes, or only mistakes.
#[derive(Debug, Clone, Serialize)]
pub struct Selective {
    /// Probability that a wrong row has a lower confidence than a right one; ties count half.
    pub auroc_misclassification: Option<f64>,
    /// The same with the mutual information as the score.
    pub auroc_mutual_information: Option<f64>,
    /// Share of wrong rows that pass the confidence threshold which 95 % of the right rows pass.
    pub fpr95: Option<f64>,
    /// Area under the risk-coverage curve.
    pub aurc: Option<f64>,
}

/// The effect of temperature scaling. T is fitted on a seeded half of the rows, or clusters, and evaluated on the other. No
/// other number of the report uses it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TemperatureDiagnosis {
    /// The fit on the first half.
    #[serde(flatten)]
    pub fit: TemperatureFit,
    /// Rows of the first half.
    pub fit_rows: usize,
    /// Rows of the other half.
    pub evaluated_rows: usize,
    /// NLL of the other half at T = 1.
    pub evaluated_nll_before: f64,
    /// NLL of the other half at T.
    pub evaluated_nll_after: f64,
    /// ECE of the other half at T = 1.
    pub evaluated_ece_before: Option<f64>,
    /// ECE of the other half at T.
    pub evaluated_ece_after: Option<f64>,
}

impl ClassAnalysis {
    pub(super) fn new(
        report: &Report<'_>,
        predictions: &ClassPredictions<'_>,
        uncertainty: Option<UncertaintySummary>,
    ) -> Result<Self, MetricError> {
        let (n, bins, seed) = (predictions.len(), report.bins, report.seed);
        let scored = ScoredClasses::of_predictions(predictions, bins)?;
        let (confidence, correct) = (scored.confidence(), scored.correct());
        let resamples = resamples(n);
        let second = report.class_name(1, 2);
        let Headline { verdict, no_skill, intervals } = headline(predictions, &scored, &second, resamples, seed)?;
        let wrong: Vec<bool> = correct.iter().map(|right| !right).collect();
        let doubt: Vec<f64> = confidence.iter().map(|c| -c).collect();
        let by_information = uncertainty
            .as_ref()
            .filter(|u| u.row_mutual_information.len() == n && u.particles > 1)
            .map(|u| metrics::auroc(&u.row_mutual_information, &wrong))
            .transpose()?
            .flatten();
        let of_groups = |of| groups::of_classes(predictions, of, &second, bins, resamples, seed);
        Ok(Self {
            verdict,
            no_skill,
            overall: overall(&scored, bins),
            left_out: None,
            confidence_intervals: Some(intervals),
            brier_decomposition: metrics::brier_decomposition(confidence, correct, bins)?,
            classes: metrics::per_class(predictions),
            classwise_ece: scored.one_vs_rest().iter().map(|class| class.ece().unwrap_or(0.0)).collect(),
            selective: Some(Selective {
                auroc_misclassification: metrics::auroc(&doubt, &wrong)?,
                auroc_mutual_information: by_information,
                fpr95: metrics::fpr95(confidence, correct)?,
                aurc: metrics::aurc(confidence, &wrong)?,
            }),
            binary: BinaryAnalysis::new(predictions, &scored, |class| report.class_name(class, 2)),
            confusion: ConfusionAnalysis::new(predictions),
            uncertainty,
            temperature_scaling: temperature(predictions, bins, seed)?,
            bins: scored.top().bins().to_vec(),
            bin_intervals: scored.top_intervals(),
            equal_mass_bins: scored.equal_mass().bins().to_vec(),
            groups: report.groups.map_or(Ok(Vec::new()), of_groups)?,
        })
    }

    /// The numbers that sums over at least one row give.
    pub(super) fn of_sums(
        report: &Report<'_>,
        scores: &ClientScores,
        sums: &ClassSums,
        uncertainty: Option<UncertaintySummary>,
    ) -> Self {
        let (rows, calibration) = (scores.rows(), sums.calibration());
        let name = || report.class_name(1, 2);
        let (difference, brier) = (sums.mean_gap(1, rows), sums.mean_brier(rows));
        let of_second = || (rows, scores.independent_of_second());
        let second = (sums.classes() == 2).then(|| SecondClass::of_sums(name(), of_second(), difference, brier));
        let clusters = scores.clusters();
        let of_clusters = clusters.map(|count| ("clusters", count));
        let sizes = of_clusters.into_iter().chain([("classes", sums.classes()), ("bins", sums.bins())]).collect();
        Self {
            verdict: CalibrationVerdict::of_classes(
                &calibration,
                clusters,
                scores.signed_gap_interval(),
                second.as_ref(),
                |_| Skill::default(),
            ),
            no_skill: None,
            overall: Overall::new(rows, sizes, |metric| {
                let shown = metric.classes.filter(|of| !of.meaning.is_empty());
                shown.map(|_| metric.sums.and_then(|of| of(scores)))
            }),
            left_out: Some(format!("{LEFT_OUT} {}", if clusters.is_some() { OF_CLUSTERS } else { OF_ROWS })),
            confidence_intervals: None,
            brier_decomposition: sums.brier_decomposition(rows),
            classes: Vec::new(),
            classwise_ece: sums.classwise_ece(rows),
            selective: None,
            binary: None,
            confusion: None,
            uncertainty,
            temperature_scaling: None,
            bins: calibration.bins().to_vec(),
            bin_intervals: calibration.accuracy_intervals(),
            equal_mass_bins: Vec::new(),
            groups: Vec::new(),
        }
    }
}

fn temperature(
    predictions: &ClassPredictions<'_>,
    bins: usize,
    seed: u64,
) -> Result<Option<TemperatureDiagnosis>, MetricError> {
    if predictions.independent() < FEWEST_ROWS_TO_SPLIT {
        return Ok(None);
    }
    // Rows of one cluster are in one half.
    let of_clusters = predictions.clusters().map(Clusters::rows_of_each);
    let rows = |units: &[usize]| match &of_clusters {
        None => units.to_vec(),
        Some(of_clusters) => units.iter().flat_map(|unit| of_clusters[*unit].iter().copied()).collect(),
    };
    let mut order: Vec<usize> = (0..predictions.independent()).collect();
    // A stream of its own: the split does not depend on how often the bootstrap drew.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(1);
    order.shuffle(&mut rng);
    let (fitted, judged) = order.split_at(order.len() / 2);
    let (fitted, judged) = (predictions.select(&rows(fitted))?, predictions.select(&rows(judged))?);
    let fit = fit_temperature(&logits_of(&fitted), fitted.labels(), fitted.classes())?;
    let scaled = apply_temperature(&judged, fit.temperature)?;
    let ece = |of: &ClassPredictions<'_>| -> Result<Option<f64>, MetricError> {
        let top = of.top_label();
        Ok(metrics::equal_width(&top.confidence, &top.correct, bins)?.ece())
    };
    Ok(Some(TemperatureDiagnosis {
        fit,
        fit_rows: fitted.len(),
        evaluated_rows: judged.len(),
        evaluated_nll_before: metrics::nll(&judged).value,
        evaluated_nll_after: metrics::nll(&scaled).value,
        evaluated_ece_before: ece(&judged)?,
        evaluated_ece_after: ece(&scaled)?,
    }))
}
